//! System V semaphores: who took one.
//!
//! In: a process that waits for one of a set. Out: who used that semaphore last, as the kernel notes it. While somebody waits for it, it has
//! too little for one more, so who used it last took of it: of a semaphore that one process can have, that one has it.

use crate::root::Root;
use crate::{names, tasks};
use holdup_evidence::Call;
use holdup_knowledge::system_calls::{self, Kind};
use std::fs::read_link;
use std::path::Path;

/// What semctl(2) is asked for: who used a semaphore last, and how many wait for more of it.
const GETPID: i32 = 11;
const GETNCNT: i32 = 14;

/// Semaphores of a set that are looked at.
const SEMAPHORES_MAX: i32 = 64;

/// The process that used last the one semaphore of a set for which processes wait, in holdup's pid namespace. `None` where they wait for
/// several of the set, the waiter is in another IPC namespace or used it last itself, or the set may not be read; also where the last user
/// has ended, or waits for a semaphore itself: then it may have taken work that the semaphore counts, and has nothing to release.
#[must_use]
pub fn last_user(root: &Root, waiter: u32, set: u64) -> Option<u32> {
    let namespace = |process: &Path| read_link(process.join("ns/ipc")).ok();
    let own = namespace(&root.proc.join("self"))?;
    if namespace(&root.proc.join(waiter.to_string()))? != own {
        return None;
    }
    let set = i32::try_from(set).ok()?;
    let mut awaited = None;
    for semaphore in 0..SEMAPHORES_MAX {
        match ask(set, semaphore, GETNCNT) {
            None => break,
            Some(0) => {}
            // For which of them a process waits is only in its own memory.
            Some(_) if awaited.is_some() => return None,
            Some(_) => awaited = Some(semaphore),
        }
    }
    let pid = ask(set, awaited?, GETPID)?;
    let waits = |number| {
        let call = Call { number, args: [0; 4] };
        system_calls::is(&call, Kind::Semaphores)
    };
    let another = pid != 0 && pid != waiter && names::comm(root, pid).is_some();
    (another && tasks::call(root, pid).is_none_or(|call| !waits(call.number))).then_some(pid)
}

/// A number of a semaphore; `None` where there is none, or it may not be read.
fn ask(set: i32, semaphore: i32, what: i32) -> Option<u32> {
    // SAFETY: both questions have no fourth argument, and write nothing.
    let answer = unsafe { libc::semctl(set, semaphore, what) };
    u32::try_from(answer).ok()
}

#[cfg(test)]
mod tests {
    use super::{ask, last_user};
    use crate::root::{Root, Tree};

    #[test]
    fn a_set_for_which_nobody_waits_or_that_is_none_has_no_last_user() {
        let own = std::process::id();
        // SAFETY: makes a set of two semaphores that is nobody else's.
        let set = unsafe { libc::semget(libc::IPC_PRIVATE, 2, 0o600) };
        let id = u64::try_from(set).unwrap();
        assert_eq!(ask(set, 1, super::GETNCNT), Some(0));
        assert_eq!(ask(set, 2, super::GETNCNT), None, "it has two");
        assert_eq!(last_user(&Root::system(), own, id), None);
        assert_eq!(last_user(&Root::system(), own, u64::MAX), None);
        assert_eq!(
            last_user(&Tree::new(&[]).root, own, id),
            None,
            "its namespace is not known"
        );
        // SAFETY: the set is this test's own.
        unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
    }
}
