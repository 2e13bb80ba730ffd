//! What a report of `holdup host` has beside the rest.

use crate::randomness::Aspect;
use holdup_evidence::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a whole machine does, from its own files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// In one sentence: what the load average is made of, and what is short.
    pub verdict: String,
    /// The kernel's release.
    pub release: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<u32>,
    /// Threads at the end.
    pub threads: u64,
    /// How often all tasks were listed; what is said of tasks is a mean over these lists.
    pub lists: u32,
    /// The load average, taken apart; null where it is not known.
    pub load: Option<Load>,
    /// Who was blocked (state D) in what, most first.
    pub blocked: Vec<BlockedTasks>,
    /// What the machine has of each resource, and who uses it.
    pub resources: Vec<HostResource>,
    /// Facts that wait to hurt.
    pub facts: Vec<HostFact>,
    /// Where the machine's randomness comes from.
    pub randomness: Vec<Aspect>,
}

/// The load average, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Of the last minute, at the end.
    pub one: f64,
    /// Of the last five.
    pub five: Option<f64>,
    /// Of the last fifteen.
    pub fifteen: Option<f64>,
    /// Tasks that ran or were ready to, at a time; null where no list was made.
    pub running: Option<f64>,
    /// Tasks that were blocked in the kernel (state D), at a time.
    pub blocked: Option<f64>,
    /// Whose most of those that ran or were ready to are, and how many at a time.
    pub runners: Vec<Runner>,
    /// Idle time of the CPUs, percent, time in wait for disks not counted.
    pub idle_percent: Option<f64>,
    /// Time in wait for disks, percent.
    pub iowait_percent: Option<f64>,
}

/// Tasks of one program that ran or were ready to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    /// Their name.
    pub process: String,
    /// How many of them at a time.
    pub tasks: f64,
}

/// Tasks of one program that were blocked at one place in the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedTasks {
    /// Their name.
    pub process: String,
    /// The kernel function; null where the kernel does not tell.
    pub function: Option<String>,
    /// A file that they were at, where one was seen.
    pub file: Option<String>,
    /// Disks that they waited for, where seen.
    pub disks: Vec<String>,
    /// What that is a wait for.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// How many of them at a time.
    pub tasks: f64,
    /// In what part of the lists there was one.
    pub share: f64,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostResource {
    /// `cpu`, `memory`, `swap`, `disk sda`, `all disks`, `file systems`, `network`, `tasks`, `cgroup limits`, `open files`, `connections`.
    #[schemars(with = "String")]
    pub name: HostResourceName,
    /// Whether a rule finds it short; the finding says more.
    pub short: bool,
    /// How much of it is used, how much waits for it, what failed.
    pub text: String,
    /// Who uses it most.
    pub users: Vec<String>,
}

/// Which resource of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum HostResourceName {
    /// All CPUs.
    Cpu,
    /// Memory.
    Memory,
    /// Swap space.
    Swap,
    /// A disk, by name.
    Disk(String),
    /// All disks together.
    AllDisks,
    /// File systems.
    FileSystems,
    /// The network.
    Network,
    /// Limits of cgroups.
    CgroupLimits,
    /// Threads.
    Tasks,
    /// Open files.
    OpenFiles,
    /// Connections that are tracked.
    Connections,
    /// One that another version of holdup tells of.
    Other(String),
}

impl HostResourceName {
    /// Those that have one name.
    const NAMED: [(&'static str, HostResourceName); 10] = [
        ("cpu", HostResourceName::Cpu),
        ("memory", HostResourceName::Memory),
        ("swap", HostResourceName::Swap),
        ("all disks", HostResourceName::AllDisks),
        ("file systems", HostResourceName::FileSystems),
        ("network", HostResourceName::Network),
        ("cgroup limits", HostResourceName::CgroupLimits),
        ("tasks", HostResourceName::Tasks),
        ("open files", HostResourceName::OpenFiles),
        ("connections", HostResourceName::Connections),
    ];
}

impl std::fmt::Display for HostResourceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HostResourceName::Disk(disk) => write!(f, "disk {disk}"),
            HostResourceName::Other(name) => f.write_str(name),
            named => {
                let own = HostResourceName::NAMED.iter().find(|(_, one)| one == named);
                f.write_str(own.map_or("", |(name, _)| name))
            }
        }
    }
}

impl From<String> for HostResourceName {
    fn from(name: String) -> HostResourceName {
        let own = HostResourceName::NAMED
            .into_iter()
            .find(|(text, _)| *text == name);
        match (own, name.strip_prefix("disk ")) {
            (Some((_, named)), _) => named,
            (None, Some(disk)) => HostResourceName::Disk(disk.to_owned()),
            (None, None) => HostResourceName::Other(name),
        }
    }
}

impl From<HostResourceName> for String {
    fn from(name: HostResourceName) -> String {
        name.to_string()
    }
}

/// A fact that does no harm yet, or that somebody should know of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostFact {
    /// An id: `deleted-file-open`, `disk-order`, `frozen-cgroup`, `kernel-log`, `limit-near`, `read-only`.
    pub kind: String,
    /// In plain words.
    pub text: String,
}
