//! Who owns a lock that processes share, as far as its memory can be believed.
//!
//! The problem: the lock's memory names its owner by a thread id, and whoever may write there can put anybody's id. The choice: an owner must
//! have written there itself, so it has the memory mapped, to write to, at which the waiter waits. The id is one of the waiter's own pid
//! namespace. In: the waiter, the address and the id. Out: the owner, if it is one. Reading mappings can block, so a child does it
//! ([`crate::behind`]).

use crate::behind::Readers;
use holdup_proc::maps::{self, Mapping};
use holdup_proc::namespaces::{self, Place};
use holdup_proc::{Root, names};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Pairs of a waiter and an owner that are looked at: of more nothing is known.
const PAIRS_MAX: usize = 1024;

/// Who an id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// Nobody lives under it.
    Nobody,
    /// This thread of this process, as the machine has them.
    Thread { pid: u32, tid: u32 },
    /// That could not be found out.
    Unknown,
}

/// Whether two processes share a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shares {
    Yes,
    No,
    Unknown,
}

/// What is asked.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Question {
    waiter: u32,
    address: u64,
    other: u32,
}

/// What is known of owners.
#[derive(Debug)]
pub(crate) struct SharedOwners {
    readers: Readers<Question, Shares>,
    /// By waiter, address of the lock, and owner: a process may have one of two memories and not the other.
    known: HashMap<(u32, u64, u32), Shares>,
}

impl Default for SharedOwners {
    fn default() -> SharedOwners {
        SharedOwners {
            readers: Readers::new(|| Box::new(|question| shares(&Root::system(), question))),
            known: HashMap::new(),
        }
    }
}

/// Whom an id in the memory of a waiter stands for.
pub(crate) fn named(root: &Root, waiter: u32, id: u32) -> Named {
    let process = match namespaces::place(root, waiter) {
        Place::Here => names::process_of(root, id).map(|pid| (pid, id)),
        Place::Within(within) => {
            let thread = within.thread(root, id);
            return thread.map_or(Named::Unknown, |(pid, tid)| Named::Thread { pid, tid });
        }
        Place::Unknown => return Named::Unknown,
    };
    match process {
        // A process that has ended and whose status nobody has collected is gone as well.
        Some((pid, tid)) if pid == tid && matches!(names::state(root, tid), Some('Z' | 'X')) => Named::Nobody,
        Some((pid, tid)) => Named::Thread { pid, tid },
        // Where other users' processes are hidden, nothing is known: the first process is always there.
        None if names::process_of(root, 1).is_some() => Named::Nobody,
        None => Named::Unknown,
    }
}

impl SharedOwners {
    /// Whether a process has the memory of another one's lock.
    pub(crate) fn share(&mut self, waiter: u32, address: u64, other: u32) -> Shares {
        if waiter == other {
            return Shares::Yes;
        }
        if let Some(known) = self.known.get(&(waiter, address, other)) {
            return *known;
        }
        if self.known.len() >= PAIRS_MAX {
            return Shares::Unknown;
        }
        let question = Question {
            waiter,
            address,
            other,
        };
        let found = self.readers.ask(waiter, question).unwrap_or(Shares::Unknown);
        self.known.insert((waiter, address, other), found);
        found
    }
}

fn shares(root: &Root, question: Question) -> Shares {
    let Question {
        waiter,
        address,
        other,
    } = question;
    match (maps::shared(root, waiter), maps::written(root, other)) {
        (Some(own), Some(others)) => has(&own, address, &others),
        _ => Shares::Unknown,
    }
}

/// Whether what one has shared at an address is in what the other shares.
fn has(own: &[Mapping], address: u64, others: &[Mapping]) -> Shares {
    let at = own.iter().find(|one| (one.start..one.end).contains(&address));
    // What is not shared at all is no other process's.
    let Some(at) = at.filter(|at| at.inode != 0) else {
        return Shares::No;
    };
    let offset = (address - at.start).saturating_add(at.offset);
    let same = |one: &&Mapping| {
        let within = one.offset..one.offset.saturating_add(one.end - one.start);
        (one.device, one.inode) == (at.device, at.inode) && within.contains(&offset)
    };
    match others.iter().find(same) {
        Some(_) => Shares::Yes,
        None => Shares::No,
    }
}

#[cfg(test)]
mod tests {
    use super::{Named, Shares, has, named};
    use holdup_proc::Root;
    use holdup_proc::maps::Mapping;

    fn mapping(start: u64, offset: u64, inode: u64) -> Mapping {
        Mapping {
            start,
            end: start + 0x2000,
            offset,
            device: (0, 1),
            inode,
            path: "/dev/zero (deleted)".to_owned(),
        }
    }

    #[test]
    fn an_owner_has_the_word_itself() {
        let own = [mapping(0x1000, 0, 7)];
        assert_eq!(has(&own, 0x1010, &[mapping(0x9000, 0, 7)]), Shares::Yes);
        assert_eq!(has(&own, 0x1010, &[]), Shares::No);
        assert_eq!(
            has(&own, 0x1010, &[mapping(0x1000, 0, 8)]),
            Shares::No,
            "at the same address, another file"
        );
        assert_eq!(
            has(&own, 0x1010, &[mapping(0x9000, 0x2000, 7)]),
            Shares::No,
            "another part of the file"
        );
        let elsewhere = Mapping {
            device: (0, 2),
            ..mapping(0x9000, 0, 7)
        };
        assert_eq!(has(&own, 0x1010, &[elsewhere]), Shares::No);
    }

    #[test]
    fn what_the_waiter_does_not_share_nobody_else_has() {
        let others = [mapping(0x1000, 0, 7)];
        assert_eq!(has(&[], 0x1010, &others), Shares::No);
        assert_eq!(has(&[mapping(0x1000, 0, 0)], 0x1010, &others), Shares::No);
        assert_eq!(has(&[mapping(0x1000, 0, 7)], 0x8000, &others), Shares::No);
    }

    #[test]
    fn an_id_stands_for_a_thread_or_for_nobody() {
        let root = Root::system();
        let own = std::process::id();
        assert_eq!(named(&root, own, own), Named::Thread { pid: own, tid: own });
        // Beyond the kernel's highest.
        assert_eq!(named(&root, own, 4_194_305), Named::Nobody);
        assert_eq!(named(&root, 4_194_305, own), Named::Unknown, "no waiter");
    }
}
