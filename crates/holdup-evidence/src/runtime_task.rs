//! Tasks of language runtimes: what a program runs many of on few threads.

use crate::{Ns, UserStackId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose tasks they are.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TaskRuntime {
    /// Goroutines.
    #[default]
    Go,
    /// Tasks of Python's `asyncio`.
    Asyncio,
}

/// What the runtime says that a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskDoes {
    /// A thread runs it.
    Runs,
    /// It could run.
    Ready,
    /// A thread makes a system call for it.
    Calls,
    /// It is parked.
    Waits,
}

/// A task, as it was when observation ended. All text is hostile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeTask {
    /// Whose it is.
    pub runtime: TaskRuntime,
    /// Process id.
    pub pid: u32,
    /// The process's name.
    pub process: String,
    /// Its number in the program.
    pub id: u64,
    /// What it does.
    pub does: TaskDoes,
    /// What it waits for, in the runtime's words.
    pub reason: Option<String>,
    /// About since when it waits, `CLOCK_MONOTONIC`, by the runtime's own note; `None` where there is none.
    pub since: Option<Ns>,
    /// Since when it was met in the same wait and the same place, `CLOCK_MONOTONIC`, at the first look and at the last; `None` where it was
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stood_since: Option<Ns>,
    /// Where it stands.
    pub stack: Option<UserStackId>,
    /// Its name, where tasks have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The task that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<u64>,
    /// The descriptor that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<u32>,
    /// The task that has the lock that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<u64>,
}
