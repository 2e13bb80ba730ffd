//! Under which key of a path a thread's time is kept.
//!
//! The first threads of a run have a key of their own for everything they spend time on. A run that goes on
//! to start thousands shares the later ones' keys by process name and kind of thing, so that a path stays
//! small; at the end a shared key's time is dealt out to its members by how much time each has.

use super::path::Key;
use super::task_table::NameId;
use super::what::Class;
use std::collections::HashMap;

/// Threads that get keys of their own: beyond the 200 that a report lists, and few enough that a path of
/// them with some ten keys each is a tree of three levels.
const OWN_THREADS: u64 = 256;

/// Keys in all before even they share: 24 bytes each in a path that nobody shares.
const MAX_OWN: u32 = 32_768;

/// Shared keys before process names no longer count.
const MAX_BY_NAME: usize = 32_768;

/// Elapsed time before a thread's birth whose [`holdup_evidence::Start`] was lost: no thread's own.
pub(super) const BEFORE: Key = Key(0);

/// Gives out keys.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    next: u32,
    shared: HashMap<(Option<NameId>, Class), Key>,
}

impl Keys {
    /// With none given out.
    pub(super) fn new() -> Keys {
        Keys {
            next: BEFORE.0 + 1,
            shared: HashMap::new(),
        }
    }

    /// Whether the `nth` thread of a run has keys of its own.
    pub(super) fn own(&self, nth: u64) -> bool {
        nth < OWN_THREADS
    }

    /// A key: of its own where the thread has such, else that of its process name and class.
    pub(super) fn give(&mut self, own: bool, process: NameId, class: Class) -> Key {
        if own && self.next < MAX_OWN {
            return self.fresh();
        }
        let by_name = (Some(process), class);
        if let Some(key) = self.shared.get(&by_name) {
            return *key;
        }
        let group = if self.shared.len() < MAX_BY_NAME {
            by_name
        } else {
            (None, class)
        };
        if let Some(key) = self.shared.get(&group) {
            return *key;
        }
        let key = self.fresh();
        self.shared.insert(group, key);
        key
    }

    fn fresh(&mut self) -> Key {
        let key = Key(self.next);
        self.next += 1;
        key
    }
}
