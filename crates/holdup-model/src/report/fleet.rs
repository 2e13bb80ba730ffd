//! What a report of many hosts has beside the rest.

use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host whose recordings are in the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetHost {
    /// Its name; two hosts may have the same.
    pub name: String,
    /// What tells it from all others, and what `host` of findings, waits, threads and links refers to: name and a hash of its machine id.
    pub id: String,
    /// When the first segment that is reported of begins, RFC 3339; null where there is none.
    pub from: Option<String>,
    /// When the last one ends.
    pub to: Option<String>,
    /// How many segments are reported of.
    pub segments: u32,
    /// How many segments of the window the host had to drop before the store had them.
    pub dropped: u64,
    /// Since when nothing came from it, RFC 3339; null where it reported until the window's end.
    pub silent_since: Option<String>,
    /// Threads' time that was observed there, nanoseconds.
    pub observed_ns: Option<Ns>,
    /// Its first sentence, as `holdup show` says it; null where nothing of it could be judged.
    pub sentence: Option<String>,
    /// What of it could not be read or judged.
    pub problems: Vec<String>,
}

/// What was read of a store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetStore {
    /// Where it is.
    pub url: String,
    /// The window that was asked for: its begin, RFC 3339.
    pub from: String,
    /// Its end.
    pub to: String,
    /// Objects that were listed.
    pub objects_listed: u64,
    /// Objects that something was read of.
    pub objects_read: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Objects that could not be read, each with why.
    pub problems: Vec<String>,
}

/// A path of waits from one host to another, to where it began: each process waits for the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetPath {
    /// From a process that waits to the one at which the path ends. Nothing is said of their order in time: clocks of hosts differ.
    pub steps: Vec<PathStep>,
    /// Processes of other hosts whose waits end at the same place, the one that waited longest first.
    pub dependants: Vec<PathStep>,
}

/// A process on such a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathStep {
    /// Its host's id, as in `hosts`.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// What it waited for or did; null where nothing that it did explains it.
    #[schemars(with = "Option<String>")]
    pub cause: Option<Cause>,
    /// For how long, its threads added up, nanoseconds.
    pub ns: Ns,
    /// What that was about, as in `waits`.
    pub resource: Option<String>,
    /// How the process before it is known to have waited for this one.
    pub reached: Reached,
}

/// How a process is known to be the one that another waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// By what.
    pub by: ReachedBy,
    /// The address and port at which it was reached; null where it is on the same host.
    pub address: Option<String>,
}

/// By what it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReachedBy {
    /// The path begins here.
    Start,
    /// Both hosts have the same connection, each from its own end.
    FourTuple,
    /// It serves the address and port that was asked, and no other program of that host does.
    AddressAndPort,
    /// The host's own report says that it was in the way.
    Host,
}

impl FleetPath {
    /// The rule of findings that are of more than one host.
    pub const RULE: &'static str = "waits-across-hosts";
}
