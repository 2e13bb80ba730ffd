//! Who had the CPU for which a thread queued, and by which right.

use crate::Ns;
use crate::event::{TaskName, ThreadId};
use serde::{Deserialize, Serialize};

/// A thread got a CPU after queueing; this is who had it until then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanInstead {
    /// When it got the CPU.
    pub at: Ns,
    /// Who queued.
    pub thread: ThreadId,
    /// How much of its queueing this record stands for.
    pub ns: Ns,
    /// Who ran on that CPU just before; `None` when it was idle.
    pub by: Option<TaskName>,
    /// The CPU.
    pub cpu: u32,
    /// How that one is scheduled.
    #[serde(default)]
    pub by_class: Scheduling,
    /// How the one that queued is scheduled.
    #[serde(default)]
    pub class: Scheduling,
    /// Whether both are of one scheduling group (cgroup, or session where sessions have groups of their own): only
    /// then do their nice values count against each other.
    #[serde(default)]
    pub same_group: bool,
    /// Where the one that queued may run.
    #[serde(default)]
    pub allowed: Allowed,
}

/// How the kernel lets a task have its turn on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// Real time or deadline: before all others, for as long as it likes.
    RealTime,
    /// Fair among its like.
    Fair {
        /// From -20 (the most) to 19 (the least).
        nice: i8,
    },
    /// Only where nobody else wants to (`SCHED_IDLE`).
    Idle,
}

impl Default for Scheduling {
    fn default() -> Scheduling {
        Scheduling::Fair { nice: 0 }
    }
}

/// The CPUs that a thread may run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Allowed {
    /// How many; 0: not known.
    pub count: u32,
    /// Which of the first 64, a bit each.
    pub first: u64,
}
