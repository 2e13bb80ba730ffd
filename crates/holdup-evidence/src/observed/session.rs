//! Sessions of a database server, as its log, its list of sessions or a list of processes tells of them.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// One thing that was reported of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenSession {
    /// Whose session it is.
    pub server: DatabaseServer,
    /// What the server calls it: the process id of PostgreSQL's, the connection id of MySQL's.
    pub id: String,
    /// Who uses it: the name that a program has given itself, else the user; empty where that is not known.
    pub client: String,
    /// What it does.
    pub doing: SessionDoing,
    /// For how long it has done that, or had when it was over; `None` where that is not known.
    pub doing_ns: Option<Ns>,
    /// The lock that it waits for, in the server's words; empty where that is not known.
    pub lock: String,
    /// Sessions that are said to have that lock.
    pub held_by: Vec<String>,
    /// What it was asked for, or was asked for last; empty where that is not known.
    pub statement: String,
}

/// Makers of databases whose sessions are understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatabaseServer {
    /// PostgreSQL, and what has its words.
    #[default]
    Postgresql,
    /// MySQL and MariaDB.
    Mysql,
}

impl DatabaseServer {
    /// As people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DatabaseServer::Postgresql => "PostgreSQL",
            DatabaseServer::Mysql => "MySQL",
        }
    }
}

/// What a session does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionDoing {
    /// It works on a statement.
    #[default]
    Works,
    /// It waits for a lock.
    Waits,
    /// It has waited for a lock, and has it now.
    Waited,
    /// It has given up waiting for a lock.
    GaveUp,
    /// It was ended, because each of some waited for another.
    Deadlocked,
    /// It is between two statements of a transaction, and keeps what that has locked.
    IdleInTransaction,
    /// It is between two statements, and not known to be in a transaction.
    Idle,
    /// It was refused, because the server has as many as it may have.
    Refused,
}
