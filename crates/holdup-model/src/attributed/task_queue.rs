//! Queues of tasks of a language runtime, as looks at the program met them.

use super::Resource;
use holdup_evidence::{Cause, Frame, Ns, TaskRuntime};
use serde::{Deserialize, Serialize};

/// By what a task is known to have what others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskHas {
    /// The runtime's or the library's own structures say it.
    Noted,
    /// Its code takes it, and its frames refer to it.
    Taken,
    /// Its frames refer to the channel or queue, or its code names it: it may take from there.
    Uses,
}

/// A task that had what others waited for, at some of the looks. Tasks in one place are one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskHolder {
    /// By what that is known.
    pub has: TaskHas,
    /// Where it stood in the application's code.
    pub place: Frame,
    /// What it waited for there, at most of these looks.
    pub cause: Cause,
    /// The same, where it has a name.
    #[serde(default)]
    pub resource: Resource,
    /// At how many looks that was.
    pub looks: u64,
}

/// What tasks of a queue wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskQueueFor {
    /// A lock.
    #[default]
    Lock,
    /// A place among so many: a connection of a pool, or a place of a semaphore.
    Pool,
    /// Somebody who takes what they send: on a channel, or from a full queue.
    Taker,
}

/// Tasks that waited for one lock, pool, semaphore, channel or queue.
///
/// All of it comes from looks at instants: what lies between two of them is taken to be like the nearer one, so times are estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskQueue {
    /// Whose tasks they are.
    pub runtime: TaskRuntime,
    /// Process id.
    pub pid: u32,
    /// The process's name.
    pub process: String,
    /// For what they waited.
    pub cause: Cause,
    /// The same, by name.
    #[serde(default)]
    pub resource: Resource,
    /// Of which kind that is.
    #[serde(default, rename = "for")]
    pub kind: TaskQueueFor,
    /// Where most of them stood in the application's code.
    pub place: Frame,
    /// The whole stack there, innermost first.
    #[serde(default)]
    pub stack: Vec<Frame>,
    /// In how many other places some stood.
    #[serde(default)]
    pub other_places: u64,
    /// How many different tasks waited at some look.
    pub tasks: u64,
    /// The most that waited at one.
    pub most: u64,
    /// At how many looks somebody waited, and how many there were while the process lived.
    pub met: u64,
    /// See `met`.
    pub looks: u64,
    /// For how long somebody waited, nanoseconds: an estimate.
    pub covered: Ns,
    /// The sum of what all tasks waited, nanoseconds: an estimate.
    pub waited: Ns,
    /// The longest time over which looks that followed each other met one task in it, nanoseconds: it waited at least as long.
    #[serde(default)]
    pub longest: Ns,
    /// Who had it, by the number of looks; at most three.
    #[serde(default)]
    pub holders: Vec<TaskHolder>,
}
