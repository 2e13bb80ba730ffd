//! What went on while processes waited: pieces that came without a question, and bytes that they read and wrote.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What a server has sent a process without being asked, on connections that this one has made, while both were observed: a stream of events, a
/// subscription, the lines of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pushed {
    /// Who receives it.
    pub pid: u32,
    /// Where the server is.
    pub server: Option<SocketAddr>,
    /// On how many connections.
    pub connections: u32,
    /// In how many segments of TCP.
    pub pieces: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Connections of the process to the same server on which it asked for something meanwhile, or waits for an answer.
    pub asked: u32,
}

/// What a process has read and written with system calls while it was observed, whatever from and to (`/proc/PID/io`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moved {
    /// Which process.
    pub pid: u32,
    /// Bytes that it has read.
    pub read: u64,
    /// Bytes that it has written.
    pub written: u64,
}
