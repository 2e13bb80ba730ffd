//! Tasks of language runtimes, as the report has them.

use super::Resource;
use holdup_evidence::{Cause, Frame, Ns, TaskChannels, TaskRuntime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a task did when observation ended.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// A thread ran it.
    Running,
    /// It could run, and no thread ran it.
    Ready,
    /// It waited for something.
    #[default]
    Waiting,
    /// It had no work, or is the runtime's own.
    Idle,
}

/// What a task waits for that only other tasks of its process end, and that is no lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskOthers {
    /// The end of a group of tasks.
    Group,
    /// A signal of a condition variable.
    Condition,
    /// A value of one channel.
    Value,
    /// Whatever comes first of several channels.
    First,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Whose it is.
    pub runtime: TaskRuntime,
    /// Process id.
    pub pid: u32,
    /// The process's name.
    #[serde(default)]
    pub process: String,
    /// Its number in the program.
    pub id: u64,
    /// What it did.
    #[serde(default)]
    pub state: TaskState,
    /// What for.
    pub cause: Cause,
    /// About how long it had waited, by the runtime's own note; 0 where there is none.
    #[serde(default)]
    pub since: Ns,
    /// Of that, under observation.
    #[serde(default)]
    pub ns: Ns,
    /// For how long it was met in the same wait and the same place, at a first look and at a last; 0 where it was not.
    #[serde(default)]
    pub stood: Ns,
    /// Whether it waited for a lock that another task has.
    #[serde(default)]
    pub lock: bool,
    /// Whether it waited for a place among so many, which other tasks have: a free connection of a pool, or a place of a semaphore.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pool: bool,
    /// Whether it waited to send on a channel.
    #[serde(default)]
    pub sends: bool,
    /// What it waited for that only other tasks end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<TaskOthers>,
    /// The task that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<u64>,
    /// The channels that it had to do with.
    #[serde(default)]
    pub channels: TaskChannels,
    /// What it waited for.
    #[serde(default)]
    pub resource: Resource,
    /// Where it stood in the application's code.
    #[serde(default)]
    pub place: Option<Frame>,
    /// Its name, where tasks have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The task that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<u64>,
    /// The task that had the lock that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<u64>,
    /// The thread that had it, where no task did: its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by_thread: Option<u32>,
    /// Its whole stack, innermost first.
    #[serde(default)]
    pub stack: Vec<Frame>,
}
