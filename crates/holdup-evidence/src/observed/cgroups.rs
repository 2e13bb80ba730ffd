//! Limits of control groups, and how much of each is used.

use super::{Quote, SeenProcess};
use crate::Ns;
use serde::{Deserialize, Serialize};

/// A cgroup's limit on something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenCgroup {
    /// Its path below the mount point of its hierarchy.
    pub cgroup: String,
    /// What is limited.
    pub what: Limited,
    /// How much is used; of CPU time, periods in which it was used up.
    pub used: f64,
    /// The limit, in the same unit; of CPU time, periods that there were.
    pub limit: f64,
    /// How often somebody ran into it while it was watched; of memory, how often a process was ended for it. `None` where the
    /// kernel does not count.
    #[serde(default)]
    pub refused: Option<u64>,
    /// Of CPU time, how many CPUs it may use.
    #[serde(default)]
    pub cpus: Option<f64>,
    /// Of memory, bytes with cached files, which count against the limit, too.
    #[serde(default)]
    pub whole: Option<f64>,
    /// Of memory, how often the limit was reached while it was watched, so that something had to be given back first.
    #[serde(default)]
    pub hits: Option<u64>,
    /// Of memory, pages that were read again from a disk while it was watched, because they had been given back.
    #[serde(default)]
    pub read_again: Option<u64>,
    /// How long it was watched.
    #[serde(default)]
    pub watched: Option<Ns>,
    /// Processes in it, where somebody ran into the limit; the first few.
    #[serde(default)]
    pub processes: Vec<SeenProcess>,
    /// Of CPU time and tasks, the ids of all processes in it and in the cgroups below, where it was used up; at most some hundreds.
    #[serde(default)]
    pub members: Vec<u32>,
    /// The programs that have most of it, where it is nearly used up or was; of CPU time, that used most of it while it was watched.
    #[serde(default)]
    pub users: Vec<CgroupUser>,
    /// Of memory, whether whoever needs more waits until another one gives some back: nobody may be killed for it.
    #[serde(default)]
    pub paused: bool,
    /// Where it was read.
    #[serde(default)]
    pub quote: Quote,
}

/// A program in a cgroup, with what its processes have of what is limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupUser {
    /// Its name. Hostile text.
    pub name: String,
    /// The process of it that has most.
    pub pid: u32,
    /// Its processes.
    pub processes: u64,
    /// What they have: tasks, bytes in memory, or nanoseconds of CPU time that they used.
    pub amount: f64,
}

/// What a cgroup limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limited {
    /// Processes and threads.
    Tasks,
    /// Memory that can't be given back: files that are cached are left out. Bytes.
    Memory,
    /// CPU time in each period.
    CpuTime,
}
