//! Which thread of the kernel a thread of the C library is.
//!
//! In: what `pthread_self` points to. Out: the kernel's id of that thread, in its own pid namespace.

use crate::memory::{Memory, Source};

/// Where the C libraries keep a thread's id in what `pthread_self` points to: glibc, musl. Both begin it with a pointer
/// to itself.
const TIDS: [u64; 2] = [720, 48];

/// The id; `None` where this is no thread of a known C library.
pub(crate) fn tid<S: Source>(memory: &mut Memory<S>, pthread: u64) -> Option<u32> {
    if pthread == 0 || memory.word(pthread)? != pthread {
        return None;
    }
    // glibc has a second pointer to itself two words on.
    let glibc = memory.word(pthread.checked_add(16)?)? == pthread;
    let at = pthread.checked_add(TIDS[usize::from(!glibc)])?;
    plausible(memory.int(at)?)
}

/// The kernel gives out no larger ones.
pub(crate) fn plausible(tid: u32) -> Option<u32> {
    (1..=1 << 22).contains(&tid).then_some(tid)
}
