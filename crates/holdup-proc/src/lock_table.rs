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

/// A lock that somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// Who.
    pub pid: u32,
    /// The file, by inode.
    pub inode: u64,
    /// Whether nobody else may have one there.
    pub exclusive: bool,
    /// Whether it is of the whole file, by `flock`: then it belongs to the open file, and who is named asked for it.
    pub whole: bool,
    /// The first byte, and the last one.
    pub bytes: (u64, u64),
}

/// The locks of byte ranges (`fcntl`) and of files (`flock`) that processes have now.
#[must_use]
pub fn held(root: &Root) -> Vec<Held> {
    let text = text_if_there(&root.proc.join("locks")).unwrap_or_default();
    text.lines().take(MAX_LINES).filter_map(held_in).collect()
}

fn held_in(line: &str) -> Option<Held> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let whole = match words.next()? {
        "POSIX" => false,
        "FLOCK" => true,
        _ => return None,
    };
    // Advisory or not, then how.
    let exclusive = words.nth(1)? == "WRITE";
    let pid = words.next()?.parse().ok().filter(|pid| *pid > 0)?;
    let inode = words.next()?.rsplit(':').next()?.parse().ok()?;
    let first = words.next()?.parse().ok()?;
    let last = match words.next()? {
        "EOF" => u64::MAX,
        last => last.parse().ok()?,
    };
    Some(Held {
        pid,
        inode,
        exclusive,
        whole,
        bytes: (first, last),
    })
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
    use super::{Held, read};
    use crate::root::Tree;

    #[test]
    fn who_has_a_range_of_a_file_is_told_with_it() {
        let tree = Tree::new(&[(
            "proc/locks",
            "1: POSIX  ADVISORY  WRITE 50 fe:00:10 1073741825 1073741825\n\
             2: POSIX  ADVISORY  READ 51 fe:00:11 0 EOF\n\
             2: -> POSIX  ADVISORY  WRITE 52 fe:00:11 0 EOF\n\
             3: FLOCK  ADVISORY  WRITE 53 fe:00:12 0 EOF\n\
             4: POSIX  ADVISORY  WRITE -1 fe:00:13 0 EOF\n\
             5: POSIX\n",
        )]);
        let held = |pid, inode, exclusive, bytes| Held {
            pid,
            inode,
            exclusive,
            whole: pid == 53,
            bytes,
        };
        assert_eq!(
            super::held(&tree.root),
            [
                held(50, 10, true, (1_073_741_825, 1_073_741_825)),
                held(51, 11, false, (0, u64::MAX)),
                held(53, 12, true, (0, u64::MAX)),
            ]
        );
    }

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
