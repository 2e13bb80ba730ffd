//! Requests that the subject answered, as rules and views are reported of them.

use super::{Tally, ThreadName};
use holdup_evidence::{Cause, Ns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Requests that were read on accepted connections, up to the first of each answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// How many were answered.
    pub count: u64,
    /// Median.
    pub p50: Ns,
    /// 99th percentile.
    pub p99: Ns,
    /// The slowest.
    pub longest: Ns,
    /// How many had been read and not answered when observation ended.
    pub open: u64,
    /// How long ago the oldest of those was read.
    pub oldest_open: Ns,
    /// Connections on which something was read last that nobody works on: no request, or one that was lost.
    #[serde(default)]
    pub resting: u64,
    /// Whether those that were read before anybody looked would be among them.
    #[serde(default)]
    pub earlier_told: bool,
    /// The time of threads that had a request to answer, by cause.
    pub causes: BTreeMap<Cause, Tally>,
    /// What the slow ones waited for.
    pub slow: Option<SlowRequest>,
    /// By the listener that they came in on, by port.
    pub listeners: Vec<OfListener>,
    /// Those of `count` that a timer of the server's own held up.
    #[serde(default)]
    pub held: HeldByTimer,
    /// Those beside `count` that were answered only when something else had come.
    #[serde(default)]
    pub at_last: AnsweredAtLast,
    /// Time of all that were read under observation, from being read to their answers or to the end, added up.
    #[serde(default)]
    pub total: Ns,
    /// Servers that were asked for them, the one that took most time first.
    #[serde(default)]
    pub upstreams: Vec<Upstream>,
    /// What was asked for, of those whose first bytes name it, those without an answer first; the few that were asked most.
    #[serde(default)]
    pub named: Vec<NamedRequests>,
}

/// Requests for one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedRequests {
    /// Method and path, or a command.
    pub line: String,
    /// How many of the answered ones that were kept.
    pub answered: u64,
    /// How many had no answer as observation ended.
    pub unanswered: u64,
}

/// A server that was asked for requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Upstream {
    /// Where it is; of Unix sockets, all together, nothing.
    pub server: Option<String>,
    /// Who asked last.
    pub by: ThreadName,
    /// Questions.
    pub asked: u64,
    /// From each question to the last of its answer that came, added up.
    pub ns: Ns,
    /// The most questions without an answer at one instant.
    pub most: u64,
    /// From the first question to the end.
    pub watched: Ns,
}

/// Requests that were answered as a poll's time limit had run out, and not before: they were open all the while, and nothing had become
/// ready that could have been waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldByTimer {
    /// How many.
    pub count: u64,
    /// From when each was read to when it was answered, added up.
    pub ns: Ns,
    /// The longest.
    pub longest: Ns,
    /// The id of the thread that answered that one.
    pub by: Option<u32>,
}

/// Requests for which nothing was done until something else came: another client, or an event of the server's own. They are a subscription, a
/// blocking pop or a long poll, or the acknowledgement of something that the server had sent; or somebody else than their reader worked on them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnsweredAtLast {
    /// How many.
    pub count: u64,
    /// The longest.
    pub longest: Ns,
}

/// Clients that were answered on the same connection before, and have had no answer to their last word since before observation began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unanswered {
    /// How many.
    pub clients: u64,
    /// For how long, of the one that waits longest.
    pub longest: Ns,
    /// The process that has not answered most of them; the figures are of its clients.
    pub by: ThreadName,
}

/// Requests that came in on one listener, as far as the sample tells that is kept of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfListener {
    /// The port; `None` for all Unix sockets.
    pub port: Option<u16>,
    /// How many were answered.
    pub count: u64,
    /// Median.
    pub p50: Ns,
    /// 99th percentile.
    pub p99: Ns,
    /// The slowest that was reported.
    pub longest: Ns,
    /// How many had been read and not answered when observation ended.
    pub open: u64,
}

/// The slowest hundredth of requests beside the middle half, a request each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowRequest {
    /// How many they are.
    pub number: u64,
    /// How long they took, on average.
    pub ns: Ns,
    /// How long the others took.
    pub usual: Ns,
    /// What they had more of than the others, most first.
    pub more: Vec<(Cause, Ns)>,
    /// Method and path of one of them, where it was HTTP/1 in the clear, or the command in Redis's protocol. Hostile text.
    pub line: Option<String>,
    /// One thread answers nearly all requests, and none that it read later than one of these before it: whoever else asks meanwhile
    /// waits, and that is in no request's time, which begins when it is read.
    pub nobody_else: bool,
    /// The port that all of them came in on, where others came in elsewhere.
    pub port: Option<u16>,
}
