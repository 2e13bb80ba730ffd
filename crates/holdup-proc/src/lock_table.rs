//! `/proc/locks`: who waits for a file's lock, and who has it. Waiters sleep in state S and no list of blocked tasks has them.
//!
//! In: the tree. Out: each wait with the process that has the lock. The kernel takes short spin locks for it.

use crate::root::{Root, text_if_there};

/// Lines that are read: a machine with so many locks has other troubles.
const MAX_LINES: usize = 20_000;

/// What stands before a waiter, whose line follows the one of the lock that it waits for.
const WAITS: &str = "->";

/// A wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockWait {
    /// Who waits.
    pub waiter: u32,
    /// Who asked for the lock and got it; `None` where the kernel names nobody: the lock belongs to an open file.
    pub holder: Option<u32>,
    /// The file: device and inode, as the table has them.
    pub file: String,
}

/// All waits for locks now.
#[must_use]
pub fn read(root: &Root) -> Vec<LockWait> {
    let text = text_if_there(&root.proc.join("locks")).unwrap_or_default();
    let mut waits = Vec::new();
    // A waiter's number is that of the lock which it waits for, directly or behind others.
    let mut lock: Option<(&str, Option<u32>)> = None;
    for line in text.lines().take(MAX_LINES) {
        let mut words = line.split_ascii_whitespace();
        let Some(number) = words.next() else { continue };
        let mut rest = words.peekable();
        let waits_here = rest.next_if(|word| *word == WAITS).is_some();
        // The class, advisory or not, how; then who and which file.
        let mut rest = rest.skip(3);
        let (Some(pid), Some(file)) = (rest.next(), rest.next()) else {
            continue;
        };
        let pid: Option<u32> = pid.parse().ok().filter(|pid| *pid > 0);
        if !waits_here {
            lock = Some((number, pid));
            continue;
        }
        let holder = lock.filter(|(same, _)| *same == number).and_then(|(_, pid)| pid);
        if let Some(waiter) = pid {
            waits.push(LockWait {
                waiter,
                holder: holder.filter(|holder| *holder != waiter),
                file: file_of(file),
            });
        }
    }
    waits
}

/// Device and inode, without what may follow.
fn file_of(word: &str) -> String {
    word.chars().take(48).collect()
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::root::Tree;

    #[test]
    fn waiters_stand_below_the_lock_that_they_wait_for() {
        let tree = Tree::new(&[(
            "proc/locks",
            "1: POSIX  ADVISORY  WRITE 50 fe:00:10 0 EOF\n\
             2: FLOCK  ADVISORY  WRITE 70 fe:00:11 0 EOF\n\
             2: -> FLOCK  ADVISORY  WRITE 71 fe:00:11 0 EOF\n\
             2: -> FLOCK  ADVISORY  WRITE 72 fe:00:11 0 EOF\n\
             3: OFDLCK ADVISORY  WRITE -1 fe:00:12 0 EOF\n\
             3: -> POSIX  ADVISORY  WRITE 73 fe:00:12 0 EOF\n\
             4: -> FLOCK  ADVISORY  WRITE 74 fe:00:13 0 EOF\n\
             5: LEASE\n\n",
        )]);
        let listed: Vec<_> = read(&tree.root)
            .into_iter()
            .map(|wait| (wait.waiter, wait.holder, wait.file))
            .collect();
        let file = |name: &str| format!("fe:00:{name}");
        assert_eq!(
            listed,
            [
                (71, Some(70), file("11")),
                (72, Some(70), file("11")),
                (73, None, file("12")),
                (74, None, file("13")),
            ]
        );
        assert!(read(&Tree::new(&[]).root).is_empty());
    }
}
