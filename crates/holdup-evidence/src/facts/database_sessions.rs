//! Sessions of a database server that has a process for each, as the processes' titles tell them.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A process of a database server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseSession {
    /// The process.
    pub pid: u32,
    /// Its name. Hostile text.
    pub process: String,
    /// The server's first process, which is the parent of all its sessions.
    pub server: u32,
    /// What its title says that it does.
    pub state: SessionState,
    /// Whether a signal had stopped it.
    pub stopped: bool,
    /// Who is at the other end of its connection.
    pub client: Option<SessionClient>,
    /// Of one that waits for a lock: the command of its statement (`ALTER TABLE`), and the tables that the statement names. Nothing else of
    /// it is kept. Hostile text.
    pub command: String,
    /// See there.
    pub tables: Vec<String>,
}

/// A thread of a database server that has a thread for each session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadSession {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Which of the server's stages it waits in, by the server's own words; `None` where it waits for its client, or that is not known.
    /// Hostile text.
    pub stage: Option<String>,
    /// Who is at the other end of the connection on which it waits for the next statement.
    pub client: Option<SessionClient>,
}

/// What a process of a database server does, by its title.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    /// It waits for a statement of its client, and no transaction is open.
    Idle,
    /// It waits for a statement of its client, whose transaction is open: what that has locked stays locked.
    IdleInTransaction,
    /// It executes a statement, and waits for a lock of another session.
    Waiting,
    /// It executes a statement.
    Works,
    /// It sends the server's log to a standby server.
    SendsLog,
    /// It receives the log of a primary server.
    ReceivesLog,
    /// It serves no client.
    #[default]
    Background,
}

/// The other end of a session's connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionClient {
    /// Its address, where the connection is one of TCP.
    pub address: Option<SocketAddr>,
    /// Its process, where that is on this machine.
    pub pid: Option<u32>,
    /// The name of that. Hostile text.
    pub process: String,
    /// Whether a signal had stopped it.
    pub stopped: bool,
}
