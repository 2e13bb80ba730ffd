//! For whom processes wait that others wait for.

use serde::{Deserialize, Serialize};

/// A process that waits for the other end of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AwaitedPeer {
    /// The process.
    pub pid: u32,
    /// The address of the other end.
    pub address: String,
}
