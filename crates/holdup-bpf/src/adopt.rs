//! Watches what runs already.
//!
//! In: processes, and what their sleeping threads' memory said of the calls that they are in ([`Looked`]), since a program
//! can't read the memory of a task that does not run. Out: a record for each thread, as for one that is born. How, and what
//! is done about threads that change their state meanwhile, is in `bpf/adopt.h`.

use crate::later::{Iterators, Later};
use crate::skeleton::{TraceSkel, types as wire};
use holdup_evidence::Role;
use libbpf_rs::{Iter, MapCore, MapFlags, ProgramMut};
use std::io::Read;
use std::time::Duration;

/// Words around a futex that are looked at, the first of them [`holdup_evidence::FUTEX_AT`] words before it.
pub const LOOKED_WORDS: usize = holdup_evidence::FUTEX_WORDS;

/// Descriptors of a poll that are looked at.
pub const POLLED_LOOKED: usize = 4;

/// How long holdup sleeps before each try to adopt threads, and whether it is the last. One that changed its state while it
/// was looked at does so for a moment. And the kernel keeps nothing of any task on a CPU on which it was interrupted while
/// it was at what it keeps of another, for whichever observer: until that one has had its turn, which sleeping gives it.
const PAUSES: [(Duration, bool); 8] = [
    (Duration::ZERO, false),
    (Duration::ZERO, false),
    (Duration::from_millis(1), false),
    (Duration::from_millis(2), false),
    (Duration::from_millis(4), false),
    (Duration::from_millis(8), false),
    (Duration::from_millis(16), false),
    (Duration::from_millis(32), true),
];

/// What a sleeping thread's memory said of its call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Looked {
    /// Thread id.
    pub tid: u32,
    /// Number of the call.
    pub number: i32,
    /// The call's first argument.
    pub address: u64,
    /// futex: memory around it.
    pub words: [u32; LOOKED_WORDS],
    /// poll: descriptors and what was asked for.
    pub polled: [Option<(i32, u16)>; POLLED_LOOKED],
    /// select: the first 64 descriptors, a bit each.
    pub reads: u64,
    /// The same for writing.
    pub writes: u64,
}

/// Adopts the threads of these processes. Says whether their connections could be looked at, too.
pub(crate) fn adopt(
    skeleton: &mut TraceSkel<'static>,
    iterators: &mut Iterators,
    processes: &[(u32, Role)],
    looked: &[Looked],
) -> libbpf_rs::Result<bool> {
    for (pid, role) in processes {
        let role = match role {
            Role::Subject => wire::holdup_role::HOLDUP_ROLE_SUBJECT,
            Role::Neighbour => wire::holdup_role::HOLDUP_ROLE_NEIGHBOUR,
        };
        let (pid, role) = (pid.to_ne_bytes(), role.0.to_ne_bytes());
        skeleton.maps.wanted.update(&pid, &role, MapFlags::ANY)?;
    }
    for one in looked {
        let (key, value) = (one.tid.to_ne_bytes(), one.to_bytes());
        skeleton.maps.looked_at.update(&key, &value, MapFlags::ANY)?;
    }
    for (pause, last) in PAUSES {
        std::thread::sleep(pause);
        if !left_for_later(skeleton, iterators, last)? {
            break;
        }
    }
    let connections = iterators.run(Later::LookAtFile, skeleton).is_ok();
    // What is looked at is of this instant; whom a process creates is announced.
    for (pid, _) in processes {
        skeleton.maps.wanted.delete(&pid.to_ne_bytes()).ok();
    }
    for one in looked {
        skeleton.maps.looked_at.delete(&one.tid.to_ne_bytes()).ok();
    }
    Ok(connections)
}

/// Tries every task that is wanted and not watched yet. Says whether there are any that it could not adopt.
fn left_for_later(
    skeleton: &mut TraceSkel<'static>,
    iterators: &mut Iterators,
    last: bool,
) -> libbpf_rs::Result<bool> {
    if let Some(state) = skeleton.maps.bss_data.as_deref_mut() {
        state.left_for_later = 0;
        state.last_round = u8::from(last);
    }
    iterators.run(Later::AdoptTask, skeleton)?;
    let state = skeleton.maps.bss_data.as_deref();
    Ok(state.is_some_and(|state| state.left_for_later > 0))
}

/// Runs a program for every task there is.
pub(crate) fn run(program: &ProgramMut<'_>) -> libbpf_rs::Result<()> {
    let link = program.attach_trace()?;
    let mut tasks = Iter::new(&link)?;
    let mut nothing = Vec::new();
    // It writes no text; reading is what makes it run.
    tasks.read_to_end(&mut nothing).ok();
    Ok(())
}

impl Looked {
    /// `struct holdup_looked` in `bpf/wire.h`.
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.number.to_ne_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(self.address.to_ne_bytes());
        bytes.extend(self.words.iter().flat_map(|word| word.to_ne_bytes()));
        for polled in self.polled {
            let (fd, events) = polled.unwrap_or((-1, 0));
            bytes.extend(fd.to_ne_bytes());
            bytes.extend(events.to_ne_bytes());
            bytes.extend([0; 2]);
        }
        bytes.extend(self.reads.to_ne_bytes());
        bytes.extend(self.writes.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Looked;
    use crate::skeleton::types::holdup_looked;

    #[test]
    fn the_programs_get_what_was_looked_at() {
        let looked = Looked {
            tid: 1,
            number: 7,
            address: 0x1234_5678_9abc_def0,
            words: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            polled: [Some((5, 1)), None, None, None],
            reads: 1 << 63,
            writes: 2,
        };
        let bytes = looked.to_bytes();
        assert_eq!(bytes.len(), size_of::<holdup_looked>());
        // SAFETY: as long as the structure, which is made of integers only.
        let raw: holdup_looked = unsafe { bytes.as_ptr().cast::<holdup_looked>().read_unaligned() };
        assert_eq!(
            (
                raw.number,
                raw.address,
                raw.words[9],
                raw.select_reads,
                raw.select_writes
            ),
            (7, looked.address, 10, 1 << 63, 2)
        );
        assert_eq!((raw.fds[0].fd, raw.fds[0].events, raw.fds[1].fd), (5, 1, -1));
    }
}
