//! `/proc/locks`: who waits for a file's lock, and who has it. Waiters sleep in state S and no list of blocked tasks has them.
//!
//! In: the tree. Out: each wait with the process that has the lock. The kernel takes short spin locks for it. Anybody may have as many
//! locks as he likes, before everybody else's in the table: it is read to its end, and only what is asked for is kept.

use crate::root::Root;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

/// Bytes of the table that are read, and for how long: some million locks.
const MAX_BYTES: u64 = 64 << 20;
const READ_TIME: Duration = Duration::from_millis(500);

/// Waits that are kept, locks that are, and those of one process.
const MAX_WAITS: usize = 20_000;
const MAX_HELD: usize = 50_000;
const MAX_HELD_BY_ONE: usize = 20_000;

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
    let mut of: HashMap<u32, usize> = HashMap::new();
    let mut few = |one: &Held| {
        let count = of.entry(one.pid).or_default();
        *count += 1;
        *count <= MAX_HELD_BY_ONE
    };
    let held = lines(root).filter_map(|line| held_in(&line));
    held.filter(|one| few(one)).take(MAX_HELD).collect()
}

/// The lines of the table, as far as they are read in time.
fn lines(root: &Root) -> impl Iterator<Item = String> {
    /// Lines after which the clock is looked at.
    const STEP: usize = 256;
    let until = Instant::now() + READ_TIME;
    let file = File::open(root.proc.join("locks")).ok();
    let lines = file.map(|file| BufReader::new(file.take(MAX_BYTES)).split(b'\n'));
    let lines = lines.into_iter().flatten().map_while(Result::ok).enumerate();
    let in_time = lines.take_while(move |(at, _)| at % STEP != 0 || Instant::now() < until);
    in_time.map(|(_, line)| String::from_utf8_lossy(&line).into_owned())
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
    let mut waits = Vec::new();
    // A waiter's number is that of the lock which it waits for, directly or behind others.
    let mut lock: Option<(String, Option<u32>)> = None;
    for line in lines(root) {
        if waits.len() >= MAX_WAITS {
            break;
        }
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
            lock = Some((number.to_owned(), pid));
            continue;
        }
        let holder = lock.as_ref().filter(|(same, _)| same == number);
        let holder = holder.and_then(|(_, pid)| *pid);
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
    fn whoever_has_many_locks_hides_nobody_elses() {
        const MANY: usize = 40_000;
        let mut text: String = (0..MANY)
            .map(|at| format!("{at}: POSIX  ADVISORY  WRITE 66 fe:00:9 {at} {at}\n"))
            .collect();
        text.push_str("a: FLOCK  ADVISORY  WRITE 70 fe:00:11 0 EOF\n");
        text.push_str("a: -> FLOCK  ADVISORY  WRITE 71 fe:00:11 0 EOF\n");
        let tree = Tree::new(&[("proc/locks", text.as_str())]);
        let waits = read(&tree.root);
        assert_eq!((waits.len(), waits[0].waiter, waits[0].holder), (1, 71, Some(70)));
        let held = super::held(&tree.root);
        assert!(held.iter().any(|one| one.pid == 70));
        assert!(held.len() < MANY, "of one process only so many");
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
