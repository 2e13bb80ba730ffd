//! What observed programs wrote in their own logs about work that waits or is refused.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// A log file that observed processes have open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnLog {
    /// Its path, as its writers have it. Hostile text.
    pub file: String,
    /// Observed processes that have it open for writing, lowest id first.
    pub writers: Vec<u32>,
    /// The name of the first writer. Hostile text.
    pub process: String,
    /// Whether a writer is one that was asked about, and not one that was found in the way.
    pub asked: bool,
    /// Bytes that were written during observation.
    pub added: u64,
    /// Bytes that were read of what had been written before.
    pub before: u64,
    /// How long observation lasted.
    pub watched: Ns,
    /// Lines that explain why work waits or is refused, those that count most first.
    pub said: Vec<LogLine>,
}

/// A line of a log that explains why work waits or is refused; lines that differ in numbers alone are one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// What it says.
    pub reason: LogReason,
    /// It reports a state that lasts until another line ends it, and no such line came.
    pub standing: bool,
    /// The line, without what a logger puts before it, cut to a bearable length. Hostile text.
    pub text: String,
    /// Where in the file the quoted line stands; `None` where the file was not read from its beginning.
    pub line: Option<u64>,
    /// How often it was written during observation.
    pub during: u64,
    /// How often it was written in the time before that still counts.
    pub before: u64,
    /// How long before the end of observation it was last written; `None` where the lines have no time.
    pub ago: Option<Ns>,
}

/// Why a program says that work waits or is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogReason {
    /// It refuses work: an alarm is set, it is read-only.
    Refuses,
    /// A limit of its own is reached: connections, workers, requests, a queue.
    #[default]
    Limit,
    /// It delays work on purpose.
    Slows,
    /// It puts work off.
    Defers,
    /// No space is left on a file system.
    NoSpace,
    /// No memory is left, or no more may be used.
    NoMemory,
    /// No file descriptor is left.
    NoDescriptor,
    /// It waits for a lock.
    Lock,
    /// A peer did not answer in time.
    NoAnswer,
    /// A peer cannot be reached.
    Unreachable,
    /// It reports itself, or a part of it, as stuck or behind.
    Stalled,
}
