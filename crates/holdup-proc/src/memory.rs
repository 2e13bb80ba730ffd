//! A sleeping thread's memory and switch count, read from outside without stopping it.
//!
//! Copying another process's memory never waits for that process's locks on its address space longer than a
//! page look-up takes, and fails on pages that are not there.

use crate::filters;
use crate::root::Root;
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;

/// Pieces end at multiples of this, so that the last one ends with the mapping, bytes.
const PIECE: usize = 1024;

/// Up to `most` bytes of a thread's memory from `address` upward; `None` when not even the first piece can be
/// read.
#[must_use]
pub fn read(tid: u32, address: u64, most: usize) -> Option<Vec<u8>> {
    if filters::kills(filters::Call::Memory) {
        return None;
    }
    let start = usize::try_from(address).ok()?;
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while filled < most {
        let at = start.checked_add(filled)?;
        let length = (PIECE - at % PIECE).min(most - filled);
        let mut local = [IoSliceMut::new(&mut bytes[filled..filled + length])];
        let remote = [RemoteIoVec {
            base: at,
            len: length,
        }];
        match process_vm_readv(Pid::from_raw(i32::try_from(tid).ok()?), &mut local, &remote) {
            Ok(copied) if copied == length => filled += length,
            _ => break,
        }
    }
    bytes.truncate(filled);
    (filled > 0).then_some(bytes)
}

/// Whether reading a thread's memory is refused as such, rather than that it is gone or has nothing there.
#[must_use]
pub fn is_refused(tid: u32, address: u64) -> bool {
    if filters::kills(filters::Call::Memory) {
        return true;
    }
    let (Ok(pid), Ok(base)) = (i32::try_from(tid), usize::try_from(address)) else {
        return false;
    };
    let mut byte = [0];
    let mut local = [IoSliceMut::new(&mut byte)];
    let remote = [RemoteIoVec { base, len: 1 }];
    let answer = process_vm_readv(Pid::from_raw(pid), &mut local, &remote);
    matches!(answer, Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS))
}

/// How often a thread has blocked since its birth.
#[must_use]
pub fn voluntary_switches(root: &Root, tid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(root.proc.join(tid.to_string()).join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// The id of a thread in its own pid namespace.
#[must_use]
pub fn inside(root: &Root, tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(root.proc.join(tid.to_string()).join("status")).ok()?;
    inside_by(&status, tid)
}

/// The same of a thread that sleeps: `None` of one that runs or is about to.
#[must_use]
pub fn inside_asleep(root: &Root, tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(root.proc.join(tid.to_string()).join("status")).ok()?;
    let state = status.lines().find_map(|line| line.strip_prefix("State:"))?;
    let runs = state.trim_start().starts_with('R');
    (!runs).then(|| inside_by(&status, tid))?
}

fn inside_by(status: &str, tid: u32) -> Option<u32> {
    // One that is in no other namespace has one number only; old kernels do not say it.
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.map_or(Some(tid), |ids| ids.split_whitespace().last()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{inside, inside_asleep, is_refused, read, voluntary_switches};
    use crate::root::Tree;

    #[test]
    fn own_memory_is_read_up_to_the_end_of_its_mapping() {
        let known = *b"what this thread's stack holds";
        let found = read(std::process::id(), known.as_ptr() as u64, known.len()).unwrap();
        assert_eq!(found, known);
        assert_eq!(
            read(std::process::id(), 8, 64),
            None,
            "nothing is mapped at the bottom"
        );
        assert!(
            !is_refused(std::process::id(), 8),
            "it is not there, which is no refusal"
        );
    }

    #[test]
    fn the_switch_count_is_the_kernels() {
        let tree = Tree::new(&[(
            "proc/7/status",
            "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n",
        )]);
        assert_eq!(voluntary_switches(&tree.root, 7), Some(12));
        assert_eq!(voluntary_switches(&tree.root, 8), None);
    }

    #[test]
    fn a_thread_has_a_number_inside_its_namespace() {
        let tree = Tree::new(&[
            ("proc/7/status", "Name:\tx\nNSpid:\t7\t3\n"),
            ("proc/8/status", "Name:\tx\nNSpid:\t8\n"),
            ("proc/9/status", "Name:\tx\n"),
        ]);
        let ids = [7, 8, 9, 10].map(|tid| inside(&tree.root, tid));
        assert_eq!(ids, [Some(3), Some(8), Some(9), None]);
    }

    #[test]
    fn a_thread_that_runs_is_not_asleep() {
        let tree = Tree::new(&[
            ("proc/7/status", "Name:\tx\nState:\tS (sleeping)\nNSpid:\t7\t3\n"),
            ("proc/8/status", "Name:\tx\nState:\tR (running)\nNSpid:\t8\n"),
            ("proc/9/status", "Name:\tx\n"),
        ]);
        let ids = [7, 8, 9, 10].map(|tid| inside_asleep(&tree.root, tid));
        assert_eq!(ids, [Some(3), None, None, None]);
    }
}
