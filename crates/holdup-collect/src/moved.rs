//! What processes read and write meanwhile: a program that waits again and again, and moves on, is no stuck one.
//!
//! In: processes, as observation begins and as it ends. Out: for each that was there both times the bytes in between.

use holdup_evidence::facts::Moved;
use holdup_proc::Root;
use holdup_proc::transfers::{self, Transfers};
use std::collections::{BTreeMap, BTreeSet};

/// Processes that are looked at: a file each, twice.
const PROCESSES_MAX: usize = 256;

/// What each had read and written at an instant.
#[derive(Debug, Default)]
pub(super) struct Before(BTreeMap<u32, Transfers>);

impl Before {
    /// Looks at these processes.
    pub(super) fn look(pids: &BTreeSet<u32>, root: &Root) -> Before {
        if pids.len() > PROCESSES_MAX {
            return Before::default();
        }
        let of = |pid: &u32| Some((*pid, transfers::of(root, *pid)?));
        Before(pids.iter().filter_map(of).collect())
    }

    /// What they have moved since.
    pub(super) fn since(&self, root: &Root) -> Vec<Moved> {
        let of = |(pid, before): (&u32, &Transfers)| {
            let now = transfers::of(root, *pid)?;
            // Less than before is another process of the same number.
            Some(Moved {
                pid: *pid,
                read: now.read.checked_sub(before.read)?,
                written: now.written.checked_sub(before.written)?,
            })
        };
        let moved = self.0.iter().filter_map(of);
        moved.filter(|one| one.read > 0 || one.written > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Before;
    use holdup_proc::Root;
    use std::collections::BTreeSet;

    #[test]
    fn what_was_written_in_between_is_told_and_who_is_gone_is_left_out() {
        let root = Root::system();
        let own = std::process::id();
        let gone = u32::MAX - 1;
        let before = Before::look(&BTreeSet::from([own, gone]), &root);
        if before.0.is_empty() {
            return;
        }
        let mut file = std::fs::File::create("/dev/null").unwrap();
        std::io::Write::write_all(&mut file, &[7; 4096]).unwrap();
        let moved = before.since(&root);
        assert_eq!(moved.len(), 1);
        assert!(moved[0].pid == own && moved[0].written >= 4096);
    }
}
