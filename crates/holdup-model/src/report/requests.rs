//! Requests of a service, as a report has them.

use super::CauseShare;
use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time inside request windows, split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50_ns: Ns,
    /// 99th percentile.
    pub p99_ns: Ns,
    /// The slowest.
    #[serde(default)]
    pub max_ns: Ns,
    /// How many had been read and not answered when observation ended.
    #[serde(default)]
    pub open: u64,
    /// How long ago the oldest of those was read.
    #[serde(default)]
    pub oldest_open_ns: Ns,
    /// Connections on which something was read last that nothing was done for: no request, or one that was lost.
    #[serde(default)]
    pub resting: u64,
    /// Whether requests that were read before observation began were looked for on all connections.
    #[serde(default)]
    pub earlier_told: bool,
    /// Requests beside `count` that were answered only when something else had come, while the threads that had read them were idle.
    #[serde(default)]
    pub at_last: u64,
    /// The longest of those.
    #[serde(default)]
    pub at_last_max_ns: Ns,
    /// Where that time went: of threads that had a request to answer.
    pub causes: Vec<CauseShare>,
    /// The slowest hundredth beside the middle half; null of fewer than two.
    #[serde(default)]
    pub slow: Option<SlowRequests>,
    /// By the listener that they came in on, by port; those that were read before observation began are not among them.
    #[serde(default)]
    pub listeners: Vec<ListenerRequests>,
    /// Time of all that were read during observation, from being read to their answers or to the end, added up.
    #[serde(default)]
    pub total_ns: Ns,
    /// Servers that were asked for them, the one that took most time first.
    #[serde(default)]
    pub upstreams: Vec<UpstreamRequests>,
}

/// Questions to a server that the answers to requests needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamRequests {
    /// Its address; null for all Unix sockets together.
    pub server: Option<String>,
    /// The process that asked last.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// How many questions.
    pub asked: u64,
    /// From each question to the last of its answer that came, added up.
    pub ns: Ns,
    /// The most questions without an answer at one instant.
    pub most_in_flight: u64,
    /// From the first question to the end of the observation.
    pub watched_ns: Ns,
}

/// Requests that came in on one listener. At high rates a fair sample tells how many and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListenerRequests {
    /// The port; null for all Unix sockets together.
    pub port: Option<u16>,
    /// How many were answered.
    pub count: u64,
    /// Median.
    pub p50_ns: Ns,
    /// 99th percentile.
    pub p99_ns: Ns,
    /// The slowest.
    pub max_ns: Ns,
    /// How many had been read and not answered when observation ended.
    pub open: u64,
}

/// The slowest hundredth of requests beside the middle half, a request each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRequests {
    /// How many they are.
    pub count: u64,
    /// How long they took, on average.
    pub mean_ns: Ns,
    /// How long those of the middle half took, on average.
    pub usual_ns: Ns,
    /// What they had more of than the others, most first.
    pub more: Vec<MoreOf>,
    /// Method and path of one of them, where it was HTTP/1 in the clear.
    pub request: Option<String>,
    /// The port that all of them came in on, where others came in elsewhere.
    #[serde(default)]
    pub port: Option<u16>,
}

/// A cause that some requests had more of than others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoreOf {
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// How much more, a request.
    pub ns: Ns,
}
