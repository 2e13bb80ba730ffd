//! Tasks of language runtimes: what a program runs many of on few threads.

use crate::{Ns, UserStackId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

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
    /// Virtual threads of Java.
    Java,
    /// Asynchronous functions of Node.js that stand at an `await`.
    Node,
    /// Tasks of Rust's `tokio`.
    Tokio,
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

/// Channels of a task, by what tells them apart within its process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskChannels {
    /// Those that it waits for; pools of connections and locks are among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<u64>,
    /// Those that others wait for, and that its stack, or a structure that its stack refers to, has the address of; groups of tasks among them;
    /// and pools of which it refers to a connection, and locks that its code has taken where it stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refers: Vec<u64>,
    /// Those that others wait for, and that its code names: it may have to do with them, before this wait or after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<u64>,
    /// Whether a timer may send to one of those that it waits for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
}

impl TaskChannels {
    fn is_empty(&self) -> bool {
        self.awaits.is_empty() && self.refers.is_empty() && self.uses.is_empty() && !self.timed
    }
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
    /// The channels that it has to do with.
    #[serde(default, skip_serializing_if = "TaskChannels::is_empty")]
    pub channels: TaskChannels,
    /// Where it stands.
    pub stack: Option<UserStackId>,
    /// Its name, where tasks have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The thread that runs it and nothing else until it is over, where it is no task of a scheduler: its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// The task that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<u64>,
    /// The task that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<u64>,
    /// The descriptor that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<u32>,
    /// The other end of the TCP connection that this descriptor is, or to where it sends datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    /// Whether it sends datagrams there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub datagrams: bool,
    /// What else it is open on, in words: the path of a file or FIFO, or who has the other end of a pipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// The file, or module of the runtime, of the function that it called and whose result it awaits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_in: Option<String>,
    /// The task that has the lock that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<u64>,
    /// The thread that has it, where no task does: its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_thread: Option<u32>,
}

/// Tasks as they were at one instant while observation went on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLook {
    /// When they had been read, `CLOCK_MONOTONIC`.
    pub at: Ns,
    /// The tasks.
    pub tasks: Vec<RuntimeTask>,
}

/// A descriptor that a task of a runtime waits for, and who waits for that task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedDescriptor {
    /// Process id.
    pub pid: u32,
    /// The inode of the socket or pipe.
    pub inode: u64,
    /// The other end of a TCP connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    /// Frames of the task that waits for it, and of those that wait for that one, innermost first.
    pub stack: UserStackId,
    /// Whether one of them stands in the application's code, and the first has work.
    pub asks: bool,
}
