//! Answers that a process waits for on connections that it has made.

use super::SessionClient;
use serde::{Deserialize, Serialize};

/// Connections of a process to one server, on which it has sent something and received nothing since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwedAnswers {
    /// Whose connections they are.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// Where the server listens: an address, or a path. Hostile text; empty where that is not known.
    pub server: String,
    /// The server's process, where that is on this machine.
    pub by: Option<SessionClient>,
    /// What the server did with what was sent.
    pub taken: Taken,
    /// How many connections.
    pub questions: u32,
    /// For how long that is so on the one where it is so for longest, milliseconds; 0 where the kernel keeps no times.
    pub longest_ms: u64,
    /// Clients of the process that have had no answer for as long as was observed, as far as the kernel keeps times.
    pub clients: u32,
    /// Those, where they are processes of this machine: the first of them.
    pub asked_by: Vec<SessionClient>,
}

/// How far a request came in its server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// The other end was not found.
    #[default]
    Unknown,
    /// The connection stands in the queue of its listener.
    NotAccepted,
    /// It was accepted, and what was sent is unread.
    NotRead,
    /// It was read.
    Read,
}
