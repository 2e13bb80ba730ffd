//! What keeps a server from its clients that does nothing itself: one of them that says nothing, or one of its own that was killed.

use super::SeenClient;
use crate::Ns;
use serde::{Deserialize, Serialize};

/// A client on whose connection all threads of a server that take in requests stand, and on which nothing comes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Occupied {
    /// Who has the other end; where that is on another machine, only its address as the name. Hostile text.
    pub by: SeenClient,
    /// For how long nothing has come on it; `None` if nothing ever has.
    pub silent: Option<Ns>,
    /// How many threads of the server stand so, each on a connection.
    pub threads: u32,
}

/// A process of the same service that was killed, and that may have had the lock that the server waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Killed {
    /// Its id, and its name. Hostile text.
    pub process: SeenClient,
    /// Its parent, which has not yet asked for its end: it is a zombie.
    pub zombie_of: Option<SeenClient>,
    /// Whether it was killed because memory was short: the cgroup whose limit was reached, empty for the machine's memory. Hostile text.
    pub memory: Option<String>,
    /// The signal that ended it; 0 if that is not known.
    pub signal: u32,
    /// How long ago; `None` where that is not known.
    pub ago: Option<Ns>,
}
