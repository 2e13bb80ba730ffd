//! Threads of several segments: which are the same, and their time added up.

use super::tallies;
use holdup_model::attributed::Attributed;
use holdup_model::attributed::{ThreadLedger, ThreadName};
use std::collections::HashMap;

/// Threads that are distinguished; of more, the smallest are one entry a process, as in a live report.
const MAX_THREADS: usize = 200;

/// Which thread of several that had the same numbers, one after the other.
pub(super) type Which = (u32, u32, String, u32);

/// All threads so far.
#[derive(Debug, Default)]
pub(super) struct Threads {
    list: Vec<ThreadLedger>,
    /// The latest with these numbers, and how many came before it.
    latest: HashMap<(u32, u32, String), (usize, u32)>,
}

/// An entry for several threads is known by its process; one for one by its numbers.
fn key(name: &ThreadName) -> (u32, u32, String) {
    let process = match name.tid {
        0 => name.process.clone(),
        // A program may rename itself and stays the same thread.
        _ => String::new(),
    };
    (name.pid, name.tid, process)
}

impl Threads {
    /// Takes those of the first segment.
    pub(super) fn begin(&mut self, first: &mut Attributed) {
        self.add(std::mem::take(&mut first.threads), false);
    }

    /// Adds those of the next. `anew`: none of them is one of before.
    pub(super) fn add(&mut self, next: Vec<ThreadLedger>, anew: bool) {
        for ledger in &mut self.list {
            ledger.open &= !anew;
        }
        for ledger in next {
            let number = self.list.len();
            let (at, earlier) = self.latest.entry(key(&ledger.name)).or_insert((number, 0));
            let same = *at < number && (self.list[*at].open || ledger.name.tid == 0);
            if !same {
                if *at < number {
                    (*at, *earlier) = (number, *earlier + 1);
                }
                self.list.push(ledger);
                continue;
            }
            let sum = &mut self.list[*at];
            sum.wall = sum.wall.saturating_add(ledger.wall);
            sum.lost = sum.lost.saturating_add(ledger.lost);
            sum.threads = sum.threads.max(ledger.threads);
            sum.open = ledger.open;
            sum.name = ledger.name;
            tallies(&mut sum.causes, ledger.causes);
        }
    }

    /// Which thread a wait of the segment that was added last is of.
    pub(super) fn which(&self, name: &ThreadName) -> Which {
        let (pid, tid, process) = key(name);
        let known = self.latest.get(&(pid, tid, process.clone()));
        (pid, tid, process, known.map_or(0, |(_, earlier)| *earlier))
    }

    /// Longest first; the smallest of many as one entry a process.
    pub(super) fn finish(mut self) -> Vec<ThreadLedger> {
        self.list
            .sort_by_key(|ledger| (std::cmp::Reverse(ledger.wall), ledger.name.pid, ledger.name.tid));
        if self.list.len() <= MAX_THREADS {
            return self.list;
        }
        let mut folded: Vec<ThreadLedger> = Vec::new();
        for ledger in self.list.split_off(MAX_THREADS) {
            let same = |one: &&mut ThreadLedger| {
                one.name.pid == ledger.name.pid && one.name.process == ledger.name.process
            };
            match folded.iter_mut().find(same) {
                Some(sum) => {
                    let open = sum.open || ledger.open;
                    sum.wall = sum.wall.saturating_add(ledger.wall);
                    sum.lost = sum.lost.saturating_add(ledger.lost);
                    sum.threads = sum.threads.max(1).saturating_add(ledger.threads.max(1));
                    tallies(&mut sum.causes, ledger.causes);
                    sum.open = open;
                }
                None => folded.push(ThreadLedger {
                    name: ThreadName {
                        tid: 0,
                        thread: String::new(),
                        ..ledger.name
                    },
                    threads: ledger.threads.max(1),
                    ..ledger
                }),
            }
        }
        self.list.extend(folded);
        self.list
    }
}
