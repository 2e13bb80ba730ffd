//! Ledgers of threads that have ended, and how many become few.
//!
//! A build starts a hundred thousand processes. The ledgers of the smallest are added up by process name, so
//! that what is kept is bounded and every sum stays. In: ledgers. Out: at most as many as asked for, besides
//! one for each name.

use super::ledger::{Book, Ledger, Owner};
use super::task_table::{NameId, TaskTable};
use holdup_evidence::{AskerSample, Ns, Role, ThreadId};
use holdup_model::timeline::MAX_PIECES;
use std::collections::HashMap;

/// Ended threads kept each for itself before the smaller half is folded: five times what is listed.
const MAX_ENDED: usize = 1000;

/// Process names that smallest threads are distinguished by; further ones share an entry.
const MAX_NAMES: usize = 512;

/// What an entry for further process names is called.
const OTHERS: &str = "(others)";

/// Threads that are gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    ledgers: HashMap<ThreadId, Ledger>,
    folded: HashMap<NameId, Ledger>,
    /// Which of these the ledger of a thread went into, of threads with pieces on the time line.
    into: HashMap<ThreadId, NameId>,
    ids: Numbers,
}

/// What is kept of threads that are gone.
pub(super) struct Gone {
    /// Ledgers of single threads, by their number.
    pub(super) single: Vec<(ThreadId, Ledger)>,
    /// Ledgers of many, by process name.
    pub(super) folded: HashMap<NameId, Ledger>,
    /// Which of these some threads are in.
    pub(super) into: HashMap<ThreadId, NameId>,
}

impl Ended {
    /// A thread is gone for good.
    pub(super) fn add(&mut self, id: ThreadId, ledger: Ledger, tasks: &mut TaskTable, book: &mut Book) {
        self.ids.insert(id.0);
        if ledger.role == Role::Neighbour {
            return;
        }
        self.ledgers.insert(id, ledger);
        if self.ledgers.len() > MAX_ENDED {
            let mut by_size: Vec<(Ns, ThreadId)> = self
                .ledgers
                .iter()
                .map(|(id, ledger)| (ledger.wall, *id))
                .collect();
            by_size.sort_unstable();
            if self.into.len() > MAX_PIECES {
                let shown = book.pieces.threads();
                self.into.retain(|id, _| shown.contains(id));
            }
            for (_, id) in &by_size[..MAX_ENDED / 2] {
                if let Some(ledger) = self.ledgers.remove(id) {
                    self.into.insert(*id, fold(&mut self.folded, ledger, tasks, book));
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

    /// All of it.
    pub(super) fn into_ledgers(self) -> Gone {
        let mut single: Vec<(ThreadId, Ledger)> = self.ledgers.into_iter().collect();
        single.sort_by_key(|(id, _)| *id);
        Gone {
            single,
            folded: self.folded,
            into: self.into,
        }
    }
}

/// Adds a ledger to that of its process name; says which that is.
pub(super) fn fold(
    folded: &mut HashMap<NameId, Ledger>,
    ledger: Ledger,
    tasks: &mut TaskTable,
    book: &mut Book,
) -> NameId {
    let (name, pid) = match ledger.owner {
        Owner::Thread(identity) => (tasks.process_name(identity.process), tasks.pid(identity.process)),
        Owner::Folded { process, pid } => (process, pid),
    };
    let name = if folded.len() < MAX_NAMES || folded.contains_key(&name) {
        name
    } else {
        tasks.name_id(OTHERS)
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
    name
}

/// A set of small numbers.
#[derive(Debug, Clone, Default)]
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
