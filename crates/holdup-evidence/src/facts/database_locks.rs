//! Who waits for whom in a database server, as the server's own memory has it.

use super::{SessionClient, SessionState};
use crate::Ns;
use serde::{Deserialize, Serialize};

/// A session that waits for a lock of its server, or that another one waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockSession {
    /// The server: its first process.
    pub server: u32,
    /// The process that serves it. 0 of a prepared transaction, which no session has any more.
    pub pid: u32,
    /// The thread that serves it. 0 where that is not known.
    pub tid: u32,
    /// Its process's name. Hostile text.
    pub process: String,
    /// The number by which the server itself calls it: what its commands want.
    pub id: u64,
    /// The name that its client gave itself. Hostile text.
    pub application: String,
    /// What it does, where that is known.
    pub state: Option<SessionState>,
    /// For how long its transaction had been open.
    pub open_ns: Option<Ns>,
    /// What it waits for; `None` of one that waits for no lock.
    pub waits: Option<LockWait>,
    /// Who is at the other end of its connection, of one that waits for no lock.
    pub client: Option<SessionClient>,
    /// The pooler through which that one is connected.
    pub pooler: Option<SessionClient>,
}

/// What a session waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockWait {
    /// What kind of lock it is.
    pub kind: LockKind,
    /// Which of that kind, as the server has it; empty where that is not known. Hostile text.
    pub name: String,
    /// The sessions that it waits for, by their numbers: those first that have the lock, then those that stand before it in the queue.
    pub behind: Vec<u64>,
}

/// What a lock of a database is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A row, or the end of the transaction that has changed it.
    Row,
    /// A table.
    Table,
    /// A table's definition.
    Definition,
    /// A database's definition.
    Schema,
    /// The whole server: changes of data, or commits.
    Server,
    /// A number that programs have agreed on.
    Advisory,
    /// A name that programs have agreed on.
    User,
    /// The end of a transaction.
    Transaction,
    /// Anything else.
    #[default]
    Other,
}
