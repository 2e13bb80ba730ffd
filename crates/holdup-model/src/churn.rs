//! What was made anew while threads were watched: threads, processes, connections, and how soon they were gone again.

use crate::attributed::{Asker, ThreadName};
use holdup_evidence::Ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Churn {
    /// How long it was watched.
    pub watched: Ns,
    /// Threads and processes, by who made them; most first.
    pub made: Vec<Births>,
    /// Connections that were asked for, by whom they were made to, and those that were accepted, by where; most first.
    pub connections: Vec<Conversations>,
    /// How processes ended that were started, by who started them and what they were called; those that failed most often first.
    pub ends: Vec<Ends>,
    /// Whether what connections carried could be known.
    pub traffic_told: bool,
}

/// What is born.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Born {
    /// A thread.
    #[default]
    Thread,
    /// A process.
    Process,
}

/// Threads or processes that were made by the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Births {
    /// Which.
    pub what: Born,
    /// Who made them, and where most of the stacks were that were sampled then.
    pub by: Asker,
    /// How many were made.
    pub made: u64,
    /// Of these, how many ended.
    pub ended: u64,
    /// How long those lived: the median,
    pub p50: Ns,
    /// and the longest.
    pub longest: Ns,
    /// What they were called at their end, most frequent first.
    pub names: Vec<Called>,
}

/// Processes of one name that one process had started, and that have ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ends {
    /// Who started them.
    pub by: ThreadName,
    /// What they were called at their end. Hostile text.
    pub program: String,
    /// How many ended.
    pub ended: u64,
    /// Of these, how many failed: with another status than 0, or by a signal that a defect raises.
    pub failed: u64,
    /// How most of those failed.
    pub failure: Option<Failure>,
    /// How many failed like that.
    pub alike: u64,
    /// How long those that ended had lived: the median.
    pub p50: Ns,
}

/// How a process failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// It ended with this status.
    Status(u8),
    /// A signal ended it that the kernel sends for a defect (`SIGSEGV`, `SIGBUS`), or that it raises itself (`SIGABRT`), by number.
    Signal(u8),
}

/// What some were called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Called {
    /// The name, as the kernel has it. Hostile text.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// Connections with one end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversations {
    /// Whom they were made to; of those that were accepted, where.
    pub end: String,
    /// Whether they were accepted.
    pub accepted: bool,
    /// Who asked for them, or used them.
    pub by: Asker,
    /// How many were made.
    pub made: u64,
    /// Of these, how many by a thread that had a request to answer.
    pub for_requests: u64,
    /// Of those that were made, how many were closed.
    pub closed: u64,
    /// Of those, how many had carried one question and its answer,
    pub once: u64,
    /// more of them,
    pub more: u64,
    /// or an unknown number.
    pub untold: u64,
    /// How many were closed first by this end,
    pub closed_here: u64,
    /// or by the other.
    pub closed_by_peer: u64,
    /// How long they were open, of those that were closed: the median,
    pub p50: Ns,
    /// and all together, from being asked for.
    pub open_ns: Ns,
    /// How long making them took, of those that were closed: until they were connected, and through a TLS handshake where one
    /// is known to be.
    pub setup_ns: Ns,
    /// Their TLS handshakes.
    pub tls: Handshakes,
}

/// TLS handshakes, as their first records showed in the clear.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handshakes {
    /// Full ones.
    pub full: u64,
    /// Of these, how many clients had offered to take an earlier session up.
    pub in_vain: u64,
    /// Those that took up an earlier session.
    pub resumed: u64,
    /// Those of which it could not be known.
    pub untold: u64,
    /// How long those took that were told and came to their end, from the connection on,
    pub ns: Ns,
    /// and how many those are.
    pub timed: u64,
}

impl Handshakes {
    /// How many there were.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.full + self.resumed + self.untold
    }

    /// How long one took on the mean; 0 where none was timed.
    #[must_use]
    pub fn mean(&self) -> Ns {
        self.ns.checked_div(self.timed).unwrap_or(0)
    }
}

impl Churn {
    /// How many a second `count` in the time that was watched are.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.watched.max(1) as f64 / 1e9)
    }
}
