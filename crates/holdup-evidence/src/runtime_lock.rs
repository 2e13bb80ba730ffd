//! Locks that a runtime keeps, as its own structures name them.
//!
//! To the kernel all of them are waits for a word in memory. A runtime that describes itself says which lock a thread waits
//! for and who has it; which runtime that is does not matter to who reads this.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// Which kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeLockKind {
    /// Every object can be locked so (`synchronized`).
    Monitor,
    /// An object that is a lock and nothing else.
    Lock,
    /// Code that one thread prepares before any may use it: its owner is the one that does.
    Class,
    /// A lock of an interpreted language, which its owner cannot take twice.
    Mutex,
    /// The same, which its owner can take again.
    Recursive,
    /// A lock of an interpreted language, which its owner cannot take twice, and whose waiters sleep on words of their own: it may change
    /// hands while a wait for it goes on.
    Queued,
    /// The lock that one thread of an interpreter has while it runs: it may change hands while a wait for it goes on.
    Global,
    /// A semaphore of an interpreted language: its owner has one of its places, and its waiters sleep on words of their own.
    Semaphore,
}

/// How a lock was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeLockSource {
    /// In the runtime's own structures, from outside.
    #[default]
    Structures,
    /// The runtime said so, when it was asked for what its threads do.
    Dump,
}

/// A lock that a thread was seen to wait for, while it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeLock {
    /// Which kind.
    pub kind: RuntimeLockKind,
    /// The class of the object, or the class that is prepared. Hostile text.
    pub class: String,
    /// What tells it from others of its class for as long as it is waited for; 0 where nothing does.
    pub identity: u64,
    /// Who had it when the runtime was looked at: a thread id in the waiter's own pid namespace. `None` where that could not
    /// be reported.
    pub owner: Option<u32>,
    /// How it was seen.
    #[serde(default)]
    pub source: RuntimeLockSource,
    /// When it was first and last seen so: at other times another may have had it.
    #[serde(default)]
    pub seen: (Ns, Ns),
}

impl RuntimeLock {
    /// Whether it is the same lock in the same hands, whenever it was seen.
    #[must_use]
    pub fn is_same(&self, other: &RuntimeLock) -> bool {
        let look_up = |lock: &RuntimeLock| (lock.kind, lock.identity, lock.owner);
        look_up(self) == look_up(other) && self.class == other.class
    }
}
