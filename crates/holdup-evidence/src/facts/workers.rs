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
    /// Processes whose open questions all ended in this queue then, or with the workers: who waits for one of these waits for the workers.
    pub led_back: Vec<LedBack>,
}

/// A process that waits for nothing but the workers of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedBack {
    /// Its id.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// How many of its connections stood in the queue; 0 of one that only asks others of them.
    pub queued: u32,
}
