//! Limits on processes and threads that are used up.

use serde::{Deserialize, Serialize};

/// A limit of which nothing was left when observation ended, or into which somebody ran meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskLimit {
    /// What it is a limit of.
    pub of: TasksOf,
    /// Processes and threads that there may be.
    pub limit: u64,
    /// Those that there were.
    pub used: u64,
    /// How often the kernel refused to make one meanwhile; `None` where it does not count.
    pub refused: Option<u64>,
    /// Observed processes that it binds, lowest id first.
    pub binds: Vec<u32>,
    /// Programs that use it up, the one with most first.
    pub programs: Vec<TaskUser>,
}

/// What a limit on processes and threads is one of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TasksOf {
    /// All of a user, by name or number (`RLIMIT_NPROC`).
    User(String),
    /// All in a cgroup (`pids.max`).
    Cgroup(String),
}

impl Default for TasksOf {
    fn default() -> TasksOf {
        TasksOf::Cgroup(String::new())
    }
}

/// A program that uses up a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskUser {
    /// Its name, with its script if it is an interpreter. Hostile text.
    pub name: String,
    /// One of its processes, the lowest.
    pub pid: u32,
    /// Its processes and threads.
    pub tasks: u64,
}
