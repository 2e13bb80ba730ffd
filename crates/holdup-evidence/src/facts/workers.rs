//! Processes that serve the same clients, or help the same process.

use serde::{Deserialize, Serialize};

/// Processes of one name that a parent has started for the same work: they accept at the same listeners, or it hands them work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workers {
    /// Who started them.
    pub parent: u32,
    /// The name of that. Hostile text.
    pub parent_process: String,
    /// Their name. Hostile text.
    pub process: String,
    /// Those that are observed, lowest id first.
    pub pids: Vec<u32>,
    /// Children of the same parent and name that are not observed.
    pub unobserved: u32,
    /// Listeners that all of them have open. Empty for those that their parent hands work to, by pipes or pairs of sockets.
    pub at: Vec<SharedListener>,
}

/// A listener of several processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedListener {
    /// Its address and port, or the path of a Unix socket. Hostile text.
    pub address: String,
    /// Clients that nobody had accepted when observation began.
    pub before: u32,
    /// The same when it ended.
    pub after: u32,
}
