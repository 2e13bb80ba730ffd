//! What a look at a whole machine shows beside what artefacts can: `holdup host`.
//!
//! `holdup-proc` and the command fill it. `None` always means "not measured", never "no"; what could not be looked at is in
//! `holes`, in words.

use crate::randomness::Randomness;
use crate::{Ns, Observed};
use serde::{Deserialize, Serialize};

/// A look at a whole machine: everything that was seen, and nothing that is thought of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLook {
    /// What artefacts of the machine could show too.
    pub observed: Observed,
    /// What they could not.
    pub sight: HostSight,
    /// Where its randomness comes from.
    pub randomness: Randomness,
}

/// Everything of that kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSight {
    /// How long was looked.
    pub watched: Ns,
    /// How often all tasks were listed.
    pub lists: u32,
    /// The time between two lists: the more threads, the longer.
    pub interval: Ns,
    /// Threads of the last list.
    pub threads: u64,
    /// Who used CPUs, most first; shares of one CPU, percent.
    pub cpu: Vec<Use>,
    /// Who has memory, most first; KiB.
    pub memory: Vec<Use>,
    /// Who has memory in swap, most first; KiB.
    pub swap: Vec<Use>,
    /// Who read from disks, most first; KiB a second.
    pub reads: Vec<Use>,
    /// Who wrote to disks, most first; KiB a second.
    pub writes: Vec<Use>,
    /// Cgroups that are frozen and have processes in them.
    pub frozen: Vec<String>,
    /// Deleted files that are held open.
    pub deleted: Vec<DeletedFile>,
    /// Processes that have many of the descriptors that they may have.
    pub descriptors: Vec<ProcessLimit>,
    /// Disks and how their requests are put in order.
    pub schedulers: Vec<DiskScheduler>,
    /// What the kernel's log tells of the time before the last hour.
    pub older: Vec<OlderTrouble>,
    /// What could not be seen.
    pub holes: Vec<Hole>,
}

/// What a process uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Use {
    /// Its name.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// How much.
    pub amount: f64,
    /// How many processes of that name, where several are counted as one; `pid` is the one that used most. 0 is one.
    pub processes: u32,
    /// Its nice value, where that is not 0.
    pub nice: i32,
    /// The program that ran it, where `process` is one of that program's children that came and went, and `pid` that program.
    pub run_by: String,
}

impl Use {
    /// Who it is: `rustc (pid 7)`, `rustc (5 processes)`, `backup (pid 9, nice 19)`. The name is hostile text.
    #[must_use]
    pub fn who(&self) -> String {
        let mut listed = Vec::new();
        match (self.processes, self.pid) {
            (2.., _) => listed.push(format!("{} processes", self.processes)),
            (_, 0) => {}
            (_, pid) => listed.push(format!("pid {pid}")),
        }
        if self.nice != 0 {
            listed.push(format!("nice {}", self.nice));
        }
        let name = match self.run_by.as_str() {
            "" => self.process.clone(),
            parent => format!("{} run by {parent}", self.process),
        };
        match listed.is_empty() {
            true => name,
            false => format!("{name} ({})", listed.join(", ")),
        }
    }
}

/// A deleted file that somebody holds open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeletedFile {
    /// Its name when it had one.
    pub path: String,
    /// Who.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// Bytes that it takes on its disk; `None` where to ask could block.
    pub size: Option<u64>,
}

/// What a process has of something that is limited for each process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessLimit {
    /// Its name.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// How much it has.
    pub used: u64,
    /// How much it may have.
    pub limit: u64,
}

/// How the requests of a disk are put in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskScheduler {
    /// The disk.
    pub disk: String,
    /// Who orders them (`none`, `mq-deadline`, `bfq`).
    pub chosen: String,
    /// Who could.
    pub offered: Vec<String>,
    /// Whether the disk says that it turns; hypervisors say so of any.
    pub rotational: Option<bool>,
}

/// Trouble that is over, by the kernel's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OlderTrouble {
    /// What, in words for one of its kind.
    pub what: String,
    /// How often.
    pub count: u64,
    /// How long ago the last one was.
    pub ago: Ns,
    /// Its line.
    pub text: String,
}

/// What could not be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hole {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// What would make it visible.
    pub fix: String,
}
