//! Threads at an instant: a thread dump, a list of processes.

use super::{Quote, StackId, When};
use crate::facts::IoLimit;
use crate::{Call, Ns};
use serde::{Deserialize, Serialize};

/// All threads of a process or machine at an instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What was looked at.
    pub kind: SnapshotKind,
    /// When.
    #[serde(default)]
    pub at: Option<When>,
    /// What the snapshot says of the program: a JVM and its version.
    #[serde(default)]
    pub program: Option<String>,
    /// The threads, in the artefact's order.
    pub threads: Vec<SeenThread>,
    /// Deadlocks that the artefact itself reports, each as the names of its threads.
    #[serde(default)]
    pub deadlocks: Vec<Vec<String>>,
    /// Tasks that there were, those that only sleep and are not in `threads` included.
    #[serde(default)]
    pub total: Option<u64>,
    /// Whether the tasks are threads, and not processes; `None` where that cannot be determined.
    #[serde(default)]
    pub of_threads: Option<bool>,
    /// Whether the list tells what each task does: without states none can be told to be blocked or not.
    #[serde(default)]
    pub states: bool,
    /// Where it begins.
    #[serde(default)]
    pub quote: Quote,
}

impl Snapshot {
    /// With no threads so far, of which each will have a state.
    #[must_use]
    pub fn new(kind: SnapshotKind, quote: Quote) -> Self {
        Self {
            kind,
            at: None,
            program: None,
            threads: Vec::new(),
            deadlocks: Vec::new(),
            total: None,
            of_threads: None,
            states: true,
            quote,
        }
    }
}

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotKind {
    /// The threads of a JVM, by itself.
    Jvm,
    /// The threads of a process, by a debugger.
    Native,
    /// The goroutines of a Go program, by its runtime.
    Go,
    /// The threads of a Python program, by its frames.
    Python,
    /// The threads of a .NET program, by its frames.
    Dotnet,
    /// The threads of a Ruby program, by its frames.
    Ruby,
    /// Threads or processes by the kernel (`ps`, `top -H`, `/proc/PID/stack`).
    Kernel,
}

/// One thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenThread {
    /// Its name.
    pub name: String,
    /// The kernel's thread id (a dump's `nid`).
    pub tid: Option<u32>,
    /// Process id, where known.
    pub pid: Option<u32>,
    /// The number that its runtime gives it (`#12` of a JVM's dump).
    pub number: Option<u64>,
    /// What it does, by its own account.
    pub state: State,
    /// The same in its runtime's words (`chan receive`), where those tell more.
    pub words: String,
    /// How long it has waited at least, ns, where its runtime tells.
    pub waited: Option<Ns>,
    /// Its stack, innermost first.
    pub stack: Option<StackId>,
    /// The lock that it waits for.
    pub waits_for: Option<LockRef>,
    /// Locks that it holds.
    pub holds: Vec<LockRef>,
    /// CPU time since it began.
    pub cpu: Option<Ns>,
    /// Time since it began.
    pub elapsed: Option<Ns>,
    /// Whether it is a virtual thread.
    pub is_virtual: bool,
    /// The kernel function that it sleeps in (`wchan`); one that ends in `…` was cut by the list.
    pub kernel_function: Option<String>,
    /// Its functions in the kernel, innermost first (`/proc/PID/stack`).
    pub kernel_stack: Option<StackId>,
    /// The system call that it is in (`/proc/PID/syscall`).
    pub call: Option<Call>,
    /// Who traces it, where that is reported and somebody does.
    pub tracer: Option<u32>,
    /// What it used of a CPU, percent, as the list has it.
    pub cpu_percent: Option<f64>,
    /// Its parent's process id.
    pub parent: Option<u32>,
    /// Whether it has a terminal.
    pub terminal: Option<bool>,
    /// The file that the call it is in works on, where that was looked up.
    pub file: Option<SeenFile>,
    /// Where it was read.
    pub quote: Quote,
}

/// A file that a task works on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenFile {
    /// Its path; empty where only the disk is known.
    pub path: String,
    /// The kernel's name of the disk that it is on, empty where that is not known.
    pub disk: String,
    /// Limits of the task's cgroups on that disk.
    pub limits: Vec<IoLimit>,
}

/// What a thread does, by the artefact's account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not known.
    #[default]
    Unknown,
    /// Runs or could run; of a Java thread also: waits in native code.
    Runnable,
    /// Waits to enter a monitor.
    Blocked,
    /// Waits without a limit, on a monitor or parked.
    Waiting,
    /// The same with a limit.
    TimedWaiting,
    /// Sleeps on purpose.
    Sleeping,
    /// Not begun or ended.
    Ended,
    /// `S` of the kernel: sleeps and can be woken by a signal.
    Interruptible,
    /// `D` of the kernel: sleeps and can't.
    Uninterruptible,
    /// `T`: stopped.
    Stopped,
    /// `t`: held by a tracer.
    Traced,
    /// `Z`: over, and not yet seen to by its parent.
    Zombie,
    /// `I`: an idle kernel thread.
    Idle,
}

/// A lock as a dump names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct LockRef {
    /// Its address or number, as the artefact has it.
    pub id: String,
    /// Its class.
    pub class: String,
    /// How the thread waits for it; `None` for one that it holds.
    pub wait: Option<LockWait>,
    /// The thread that has it, where the artefact says so itself.
    pub owner: Option<String>,
}

/// How a thread waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockWait {
    /// To enter a monitor.
    Enter,
    /// In `Object.wait`.
    Wait,
    /// Parked on a synchroniser.
    Park,
    /// For a class to be initialised by another thread.
    ClassInit,
}
