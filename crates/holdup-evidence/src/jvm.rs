//! What a Java virtual machine says of itself, and the pauses that were seen of it.
//!
//! A pause is put together from what the kernel shows (which threads of the machine stopped, until the VM thread let them go) and from
//! the machine's own counters (whether it collected garbage meanwhile).

use crate::{Ns, ThreadId};
use serde::{Deserialize, Serialize};

/// A Java virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Jvm {
    /// Its process.
    pub pid: u32,
    /// Whether its own figures could be read; else why not.
    pub figures: Figures,
    /// Java's version (`17.0.15`). Hostile text, as all others here.
    pub version: Option<String>,
    /// The machine's name (`OpenJDK 64-Bit Server VM`).
    pub name: Option<String>,
    /// Who built it.
    pub vendor: Option<String>,
    /// What collects its garbage.
    pub collector: Option<Collector>,
    /// How large its heap may become, bytes.
    pub max_heap: Option<u64>,
    /// Options that begin with `-X`; what a program is given by `-D` may be secret.
    pub options: Vec<String>,
    /// Of the options that begin with `-D` those that say where seeds for random numbers come from, and which file says so. `None` where
    /// its options are not known, or not all of them.
    pub security: Option<Vec<String>>,
    /// The main class, module or archive.
    pub main: Option<String>,
    /// Processors that it has by the kernel's and its own rules: those it may run on, the quota of its cgroup, its option.
    pub processors: Option<u32>,
    /// Threads that it has for collecting garbage while the others stand still, as far as they have been started.
    pub collecting_threads: u32,
    /// Since when its figures run, nanoseconds before they were read last.
    pub uptime: Option<Ns>,
    /// Its counters when it was first looked at.
    pub before: JvmCounters,
    /// Its counters when it was looked at last.
    pub after: JvmCounters,
    /// How long it was looked at between the two, nanoseconds.
    pub between: Ns,
    /// What it stopped all its threads for while it was looked at, in its own words, and how often; most often first. Empty where
    /// it does not tell.
    pub operations: Vec<(String, u64)>,
    /// The thread dumps that it was asked for.
    pub dumps: Vec<JvmDump>,
}

/// A thread dump that a machine was asked for: it stood still meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JvmDump {
    /// From the request to the end of the answer, nanoseconds: it stood still for at most so long.
    pub pause: Ns,
    /// Threads that it had.
    pub threads: u32,
    /// Why it was asked, in words.
    pub why: String,
}

/// Whether a machine's own figures can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figures {
    /// They were.
    Read,
    /// It shares no memory with such figures: `-XX:+PerfDisableSharedMem`, `-XX:-UsePerfData`, or it can't write to its `/tmp`.
    #[default]
    NotShared,
    /// They are there, and not to be understood or not to be read.
    Unreadable(String),
}

/// What collects garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collector {
    /// One thread, all others stopped.
    Serial,
    /// Many threads, all others stopped.
    Parallel,
    /// The old one that worked beside the program.
    Cms,
    /// G1.
    G1,
    /// ZGC.
    Z,
    /// Shenandoah.
    Shenandoah,
    /// None: memory is not taken back.
    Epsilon,
}

impl Collector {
    /// As people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Collector::Serial => "Serial",
            Collector::Parallel => "Parallel",
            Collector::Cms => "CMS",
            Collector::G1 => "G1",
            Collector::Z => "ZGC",
            Collector::Shenandoah => "Shenandoah",
            Collector::Epsilon => "Epsilon",
        }
    }

    /// Whether it works beside the threads of the program for the most part.
    #[must_use]
    pub fn is_concurrent(self) -> bool {
        matches!(self, Collector::Z | Collector::Shenandoah)
    }
}

/// What a machine has counted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JvmCounters {
    /// Collections, or pauses of collections, that are over.
    pub collections: u64,
    /// How long they took, all threads stopped.
    pub collecting: Ns,
    /// The cause of the last one.
    pub last_cause: Option<String>,
    /// Safepoints.
    pub safepoints: Option<u64>,
    /// How long all threads stood still at them.
    pub stopped: Option<Ns>,
    /// How long it took until all did.
    pub reaching: Option<Ns>,
    /// Classes that were loaded from files.
    pub classes: Option<u64>,
    /// Classes that were there in an archive.
    pub shared_classes: Option<u64>,
    /// How long loading, checking and linking classes took, of all threads together.
    pub loading: Option<Ns>,
    /// How long the threads that compile were at it, waiting for a CPU included.
    pub compiling: Option<Ns>,
}

/// All Java threads of a machine were stopped, or on their way to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JvmPause {
    /// Whose.
    pub pid: u32,
    /// The thread that stopped the others, and let them go.
    pub by: ThreadId,
    /// When the first thread stopped, or the machine began to wait for them.
    pub from: Ns,
    /// When it no longer waited for any; `None` where it waited for nobody.
    pub reached: Option<Ns>,
    /// When the first was let go.
    pub to: Ns,
    /// The thread that came last, where it was that which the others waited for.
    pub late: Option<ThreadId>,
    /// What it was for.
    pub work: PauseWork,
}

/// What a thread of a machine waited for, where that was the machine itself; seen by looks, which do not show who let it go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JvmStop {
    /// Whether most of it went into waiting for all others to stop.
    pub reaching: bool,
    /// What it was for.
    pub work: PauseWork,
}

/// What threads were stopped for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PauseWork {
    /// Collecting garbage, by the machine's counters or by the threads that did it.
    Collection {
        /// What collected.
        collector: Option<Collector>,
        /// Why, in the machine's words. Hostile text.
        why: Option<String>,
    },
    /// Something else, by the same counters.
    Other,
    /// The same, and what the machine calls it. Hostile text.
    Operation(String),
    /// Nobody can tell.
    Unknown,
}
