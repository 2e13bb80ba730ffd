//! Ledgers of threads that have ended, and how many become few.
//!
//! A build starts a hundred thousand processes. The ledgers of the smallest are added up by process name, so
//! that what is kept is bounded and every sum stays. In: ledgers. Out: at most as many as asked for, besides
//! one for each name.

use super::ledger::{Book, Ledger, Owner};
use super::people::{NameId, People};
use holdup_evidence::{AskerSample, Ns, ThreadId};
use std::collections::HashMap;

/// Ended threads kept each for itself before the smaller half is folded: five times what is listed.
const MAX_ENDED: usize = 1000;

/// Process names that smallest threads are told apart by; further ones share an entry.
const MAX_NAMES: usize = 512;

/// What an entry for further process names is called.
const OTHERS: &str = "(others)";

/// Threads that are gone.
#[derive(Debug, Default)]
pub(super) struct Ended {
    ledgers: HashMap<ThreadId, Ledger>,
    folded: HashMap<NameId, Ledger>,
    ids: Numbers,
}

impl Ended {
    /// A thread is gone for good.
    pub(super) fn add(&mut self, id: ThreadId, ledger: Ledger, people: &mut People, book: &mut Book) {
        self.ids.insert(id.0);
        self.ledgers.insert(id, ledger);
        if self.ledgers.len() > MAX_ENDED {
            let mut by_size: Vec<(Ns, ThreadId)> = self
                .ledgers
                .iter()
                .map(|(id, ledger)| (ledger.wall, *id))
                .collect();
            by_size.sort_unstable();
            for (_, id) in &by_size[..MAX_ENDED / 2] {
                if let Some(ledger) = self.ledgers.remove(id) {
                    fold(&mut self.folded, ledger, people, book);
                }
            }
        }
    }

    /// Whether a thread is gone.
    pub(super) fn contains(&self, id: ThreadId) -> bool {
        self.ids.contains(id.0)
    }

    /// A user stack that came after its thread was gone; `false` when nothing remembers what it is of.
    pub(super) fn asked_by(&mut self, sample: &AskerSample) -> bool {
        self.ledgers
            .get_mut(&sample.thread)
            .is_some_and(|ledger| ledger.asked_by(sample).is_some())
    }

    /// All ledgers: of single threads, then of many.
    pub(super) fn into_ledgers(self) -> (Vec<(ThreadId, Ledger)>, HashMap<NameId, Ledger>) {
        let mut single: Vec<(ThreadId, Ledger)> = self.ledgers.into_iter().collect();
        single.sort_by_key(|(id, _)| *id);
        (single, self.folded)
    }
}

/// Adds a ledger to that of its process name.
pub(super) fn fold(
    folded: &mut HashMap<NameId, Ledger>,
    ledger: Ledger,
    people: &mut People,
    book: &mut Book,
) {
    let (name, pid) = match ledger.owner {
        Owner::Thread(identity) => (
            people.process_name(identity.process),
            people.pid(identity.process),
        ),
        Owner::Folded { process, pid } => (process, pid),
    };
    let name = if folded.len() < MAX_NAMES || folded.contains_key(&name) {
        name
    } else {
        people.name_id(OTHERS)
    };
    let target = folded.entry(name).or_insert_with(|| {
        let mut empty = Ledger::new(Owner::Folded { process: name, pid }, false, name, book);
        empty.threads = 0;
        empty
    });
    if let Owner::Folded { pid: known, .. } = &mut target.owner
        && *known != pid
    {
        *known = 0;
    }
    target.absorb(ledger, name, book);
}

/// A set of small numbers.
#[derive(Debug, Default)]
struct Numbers {
    bits: Vec<u64>,
}

/// Largest number kept: 8 MB. A source that counts further is not one that numbers threads.
const MAX_NUMBER: u32 = 1 << 26;

impl Numbers {
    fn insert(&mut self, number: u32) {
        if number >= MAX_NUMBER {
            return;
        }
        let word = (number / 64) as usize;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (number % 64);
    }

    fn contains(&self, number: u32) -> bool {
        self.bits
            .get((number / 64) as usize)
            .is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}
