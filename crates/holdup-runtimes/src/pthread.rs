//! Which thread of the kernel a thread of the C library is.
//!
//! In: what `pthread_self` points to. Out: the kernel's id of that thread, in its own pid namespace.

use crate::memory::{Memory, Source};

/// How glibc's structure begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Glibc {
    /// With a pointer to itself, and a second one two words on (x86-64).
    Selves,
    /// With 24 words, behind which it is in a list (aarch64).
    List,
}

/// The C libraries of a processor: where they keep a thread's id in what `pthread_self` points to.
#[derive(Debug, Clone, Copy)]
struct Libraries {
    glibc: Glibc,
    glibc_tid: u64,
    /// musl's begins with a pointer to itself everywhere.
    musl_tid: u64,
}

const X86_64: Libraries = Libraries {
    glibc: Glibc::Selves,
    glibc_tid: 720,
    musl_tid: 48,
};
const AARCH64: Libraries = Libraries {
    glibc: Glibc::List,
    glibc_tid: LIST + 16,
    musl_tid: 32,
};

const HERE: Libraries = match cfg!(target_arch = "aarch64") {
    true => AARCH64,
    false => X86_64,
};

/// Where the list is in which glibc has its threads, bytes: an address of the next, and one of the one before.
const LIST: u64 = 24 * 8;

/// The id; `None` where this is no thread of a known C library.
pub(crate) fn tid<S: Source>(memory: &mut Memory<S>, pthread: u64) -> Option<u32> {
    tid_by(&HERE, memory, pthread)
}

fn tid_by<S: Source>(libraries: &Libraries, memory: &mut Memory<S>, pthread: u64) -> Option<u32> {
    if pthread == 0 {
        return None;
    }
    let begins_with_itself = memory.word(pthread)? == pthread;
    let glibc = match libraries.glibc {
        Glibc::Selves => begins_with_itself && memory.word(pthread.checked_add(16)?)? == pthread,
        Glibc::List => !begins_with_itself,
    };
    let at = match (glibc, libraries.glibc) {
        (true, Glibc::Selves) => libraries.glibc_tid,
        (true, Glibc::List) => {
            // Whom it has as its next has it as the one before.
            let list = pthread.checked_add(LIST)?;
            let next = memory.word(list)?;
            (memory.word(next.checked_add(8)?)? == list).then_some(libraries.glibc_tid)?
        }
        (false, _) => begins_with_itself.then_some(libraries.musl_tid)?,
    };
    plausible(memory.int(pthread.checked_add(at)?)?)
}

/// The kernel gives out no larger ones.
pub(crate) fn plausible(tid: u32) -> Option<u32> {
    (1..=1 << 22).contains(&tid).then_some(tid)
}

#[cfg(test)]
mod tests {
    use super::{AARCH64, Libraries, X86_64, tid_by};
    use crate::memory::{Memory, Written};

    const THREAD: u64 = 0x7000_0000;
    const NEXT: u64 = 0x7100_0000;

    fn found(libraries: &Libraries, words: &[(u64, u64)]) -> Option<u32> {
        let mut written = Written::default();
        // All of it is there.
        (0..100).for_each(|word| written.word(THREAD + 8 * word, 0));
        for (at, value) in words {
            written.word(*at, *value);
        }
        tid_by(libraries, &mut Memory::new(written), THREAD)
    }

    #[test]
    fn on_x86_64_a_thread_points_to_itself() {
        let selves = [(THREAD, THREAD), (THREAD + 16, THREAD), (THREAD + 720, 77)];
        assert_eq!(found(&X86_64, &selves), Some(77));
        assert_eq!(found(&X86_64, &[(THREAD, THREAD), (THREAD + 48, 78)]), Some(78));
        assert_eq!(found(&X86_64, &selves[1..]), None);
    }

    #[test]
    fn on_aarch64_a_thread_is_in_a_list() {
        let list = THREAD + 24 * 8;
        let listed = [(list, NEXT), (NEXT + 8, list), (list + 16, 77)];
        assert_eq!(found(&AARCH64, &listed), Some(77));
        let of_another = [(list, NEXT), (NEXT + 8, list + 8), (list + 16, 77)];
        assert_eq!(found(&AARCH64, &of_another), None);
        assert_eq!(found(&AARCH64, &[(THREAD, THREAD), (THREAD + 32, 78)]), Some(78));
    }
}
