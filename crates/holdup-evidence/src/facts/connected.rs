//! Listeners, who has them open, and who is connected there.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// A TCP listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listener {
    /// The address and port it listens on.
    pub address: SocketAddr,
    /// How many clients it has not accepted yet.
    pub waiting: u32,
    /// Processes that have it open, lowest id first; looked up where clients wait there.
    pub processes: Vec<Acceptor>,
    /// Who has the connections that were accepted there, most first; looked up where clients wait there.
    pub clients: Vec<ConnectedClients>,
}

impl Default for Listener {
    fn default() -> Listener {
        Listener {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            waiting: 0,
            processes: Vec::new(),
            clients: Vec::new(),
        }
    }
}

/// A process that has a listener open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Acceptor {
    /// The process.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// Whether a signal had stopped it.
    pub stopped: bool,
    /// Whether the listener was in a set that the process polls; `None` where it has no such sets, or they could not be read.
    pub polled: Option<bool>,
}

/// Processes of one name that are clients of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectedClients {
    /// The name; empty for clients that are no process that can be seen here. Hostile text.
    pub process: String,
    /// Where those are that cannot be seen: they are counted by this.
    pub address: Option<IpAddr>,
    /// The first of them, lowest id first.
    pub pids: Vec<u32>,
    /// How many they are.
    pub processes: u32,
    /// Their connections.
    pub connections: u32,
}

/// A name server of this machine that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, where that can be seen.
    pub pid: Option<u32>,
    /// The name of that. Hostile text.
    pub process: String,
    /// Whether a signal had stopped it.
    pub stopped: bool,
    /// What clients have sent it that it has not read, where somebody has the socket.
    pub unread: Option<QueuedBytes>,
    /// Whom it had asked and had no answer from.
    pub asks: Option<SocketAddr>,
}

/// Bytes in a queue, as the kernel counts them: with what it needs itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedBytes(pub u64);

impl Default for NameServer {
    fn default() -> NameServer {
        NameServer {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            pid: None,
            process: String::new(),
            stopped: false,
            unread: None,
            asks: None,
        }
    }
}
