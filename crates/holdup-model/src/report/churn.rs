//! What was made anew, as the report has it.

use super::Asker;
use crate::churn::{Born, Failure};
use holdup_evidence::Ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Threads, processes and connections that were made while the subject was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Churn {
    /// How long it was watched.
    pub watched_ns: Ns,
    /// Threads and processes, by who made them; most first, 64 at most.
    pub made: Vec<Births>,
    /// TCP connections, by whom they were made to, or where they were accepted; most first, 64 at most.
    pub connections: Vec<Conversations>,
    /// How processes ended that were started; those of which some failed, most first, 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<Ends>,
    /// Whether what connections carried could be known; where not, the counts of questions and handshakes are 0 and mean nothing.
    pub traffic_told: bool,
}

/// Threads or processes that were made by the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Births {
    /// Which.
    pub what: Born,
    /// Who made them, and where in its code most of the time.
    pub by: Asker,
    /// How many were made.
    pub made: u64,
    /// The same a second.
    pub per_second: f64,
    /// How many of them ended.
    pub ended: u64,
    /// How long those lived: the median,
    pub p50_ns: Ns,
    /// and the longest.
    pub max_ns: Ns,
    /// What they were called at their end, most frequent first.
    pub names: Vec<String>,
}

/// Processes of one name that one process had started, and that have ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    /// Who started them.
    pub by: Asker,
    /// What they were called at their end.
    pub program: String,
    /// How many ended.
    pub ended: u64,
    /// Of these, how many failed: with another status than 0, or by a signal that a defect raises.
    pub failed: u64,
    /// How most of those failed; null where none did.
    pub failure: Option<Failure>,
    /// How many failed like that.
    pub alike: u64,
    /// How long those that ended had lived: the median.
    pub p50_ns: Ns,
}

/// Connections with one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversations {
    /// Whom they were made to; of those that were accepted, where.
    pub end: String,
    /// Whether they were accepted.
    pub accepted: bool,
    /// Who asked for them, and where in its code; of those that were accepted, who used one.
    pub by: Asker,
    /// How many were made.
    pub made: u64,
    /// The same a second.
    pub per_second: f64,
    /// How many of them were closed.
    pub closed: u64,
    /// Of those, how many carried one request,
    pub one_request: u64,
    /// several,
    pub several_requests: u64,
    /// or an unknown number.
    pub unknown_requests: u64,
    /// How many this end closed first,
    pub closed_here: u64,
    /// or the other.
    pub closed_by_peer: u64,
    /// How long they were open: the median,
    pub p50_ns: Ns,
    /// and all of them together, from being asked for.
    pub open_ns: Ns,
    /// How much of that was making them: connecting, and the TLS handshake where one was seen.
    pub setup_ns: Ns,
    /// TLS handshakes; null where none was seen.
    pub tls: Option<Handshakes>,
}

/// TLS handshakes, by their first records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handshakes {
    /// Full ones.
    pub full: u64,
    /// Of those, how many clients had offered an earlier session.
    pub offered_in_vain: u64,
    /// Those that took up an earlier session.
    pub resumed: u64,
    /// Those of which it could not be known.
    pub unknown: u64,
    /// How long one took on the mean; 0: not known.
    pub mean_ns: Ns,
}
