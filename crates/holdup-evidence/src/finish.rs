//! The last thing that a source hands over.

use crate::attached::{UntoldRequests, Upstream};
use crate::budget::Budget;
use crate::{
    AwaitedDescriptor, Datagrams, EventLoop, Frame, InterpreterLock, Loss, NotMeasured, Ns, RuntimeTask,
    SharedWord, TaskLook, WorkerPool,
};
use serde::{Deserialize, Serialize};

/// What a source hands over when observation is over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// When observation began: CMD's exec.
    pub started: Ns,
    /// When it ended: CMD's exit.
    pub ended: Ns,
    /// Frames of each [`crate::UserStackId`], innermost first.
    pub user_stacks: Vec<Vec<Frame>>,
    /// What was dropped.
    pub losses: Vec<Loss>,
    /// What could not be seen.
    pub not_measured: Vec<NotMeasured>,
    /// CPU time of holdup's own process and run time of its BPF programs.
    pub own_cost: Ns,
    /// How much that might be, and what was left out for it; `None`: nobody kept to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Every wait at least this long has a kernel stack of its own.
    pub kernel_stack_budget: Ns,
    /// One user stack stands for this much blocked time.
    pub user_stack_budget: Ns,
    /// Period of the CPU sampling clock.
    pub cpu_sample_period: Ns,
    /// Whether requests would have been reported, had there been any.
    #[serde(default)]
    pub requests_told: bool,
    /// Those that were counted and not reported.
    #[serde(default)]
    pub untold_requests: UntoldRequests,
    /// Whether what is sent and received on sockets is reported.
    #[serde(default)]
    pub traffic_told: bool,
    /// Tasks of runtimes, as they were at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<RuntimeTask>,
    /// The same at instants before, in their order; empty where nobody looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_looks: Vec<TaskLook>,
    /// Processes whose tasks of tokio could be read by what describes them, whether there were any or not, and whether that was done in time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokio_read: Vec<u32>,
    /// Descriptors that tasks of runtimes waited for at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited_descriptors: Vec<AwaitedDescriptor>,
    /// Event loops that were kept from their events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_loops: Vec<EventLoop>,
    /// Pools of threads of runtimes, as they were at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<WorkerPool>,
    /// Who had the global locks of interpreters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interpreter_locks: Vec<InterpreterLock>,
    /// Servers that were asked for requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Upstream>,
    /// Datagrams over UDP, by peer; `None`: nobody could count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// Words of shared files for which threads wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_words: Vec<SharedWord>,
    /// Processes that somebody waits for as tables of the kernel have it: at their listeners clients stand. What each of their threads did
    /// is told, however idle it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointed_at: Vec<u32>,
}
