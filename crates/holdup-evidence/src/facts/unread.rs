//! Clients and receivers that do not read what they are sent, and answers that a program leaves unread.

use super::SessionClient;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Clients of a process on whose connections the same was unsent when observation began and when it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadAnswers {
    /// Whose clients they are.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// How many.
    pub clients: u32,
    /// What stands on the connection with most of it, bytes.
    pub most: u64,
    /// Those of them that are on this machine, as far as they are few.
    pub readers: Vec<SessionClient>,
}

/// A receiver to which a process has connected and that reads nothing of what it is sent, from the begin of observation to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FullOutput {
    /// Who sends.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// Where the receiver is.
    pub receiver: Option<SocketAddr>,
    /// The receiver, where it is on this machine. Its address is that of its end.
    pub reader: Option<SessionClient>,
    /// How many such connections there are to it.
    pub connections: u32,
    /// What stands on the one with most of it, bytes.
    pub most: u64,
}

/// Connections that a process has made to one server, with answers on them that it left unread from the begin of observation to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftUnread {
    /// Whose connections they are.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// Where the server is.
    pub server: Option<SocketAddr>,
    /// The server, where it is on this machine.
    pub server_pid: Option<u32>,
    /// Its name. Hostile text.
    pub server_process: String,
    /// How many such connections there are.
    pub connections: u32,
    /// What stands on the one with most of it, bytes.
    pub most: u64,
}
