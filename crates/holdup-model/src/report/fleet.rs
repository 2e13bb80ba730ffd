//! What a report of many hosts has beside the rest.

use holdup_evidence::Ns;
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
