//! Event loops that keep clients waiting, and whom they have asked meanwhile.

use super::SessionClient;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// An event loop that does not listen to some of the clients that it has accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetAside {
    /// Its process.
    pub pid: u32,
    /// The name of that. Hostile text.
    pub process: String,
    /// Clients that were set aside both times: their descriptors are in none of its sets, or what they have sent is unread.
    pub clients: u32,
    /// Clients that it listened to when observation ended.
    pub listened_to: u32,
    /// TCP connections that it had made to others then.
    pub asks_on: u32,
    /// Those of them that are processes of this machine, where they are few.
    pub serves: Vec<SessionClient>,
    /// Those that were set aside both times and had no answer to what they had sent last, for as long as the observation took. `None`
    /// where the kernel's notes of when a connection sent and received were not read.
    pub unanswered: Option<u32>,
    /// The servers to which it had connections then, those first on which it waits for most answers.
    pub servers: Vec<AskedServer>,
    /// Clients to which it had sent something just before, where they are processes of this machine: the first of them.
    pub answers: Vec<SessionClient>,
}

impl SetAside {
    /// Clients of those that were set aside that have asked for something and wait, as far as that is known: who keeps a connection for later
    /// has its answer, and is set aside by a server whose threads listen to one client each.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.unanswered.unwrap_or(self.clients)
    }
}

/// A server to which an event loop has connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, where that is on this machine.
    pub pid: Option<u32>,
    /// The name of that. Hostile text.
    pub process: String,
    /// Connections to it.
    pub connections: u32,
    /// Those of them on which the process had the last word, but for a moment: each may wait for the first piece of an answer.
    pub asking: u32,
    /// Those of them on which the server had the last word, and nothing has come for seconds: none of them serves anybody, unless an answer
    /// pauses for so long.
    pub free: u32,
    /// Those of them on which something was sent, and nothing received since for as long as the observation took.
    pub unanswered: u32,
    /// For how long that is so on the one where it is so for longest, milliseconds.
    pub longest_ms: u64,
}

impl Default for AskedServer {
    fn default() -> AskedServer {
        AskedServer {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            pid: None,
            process: String::new(),
            connections: 0,
            asking: 0,
            free: 0,
            unanswered: 0,
            longest_ms: 0,
        }
    }
}
