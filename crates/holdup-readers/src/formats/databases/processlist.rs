//! MySQL's and MariaDB's own list of their connections: `SHOW [FULL] PROCESSLIST`, in any of its forms.

use super::table::Row;
use super::{printable, seconds};
use crate::numbers::{decimal, whole};
use holdup_evidence::observed::{DatabaseServer, SeenSession, SessionDoing};

/// What a connection is that has no statement.
const IDLE: &[u8] = b"Sleep";

/// What the server's own threads are, and those that send what was written to other servers.
const OWN: [&[u8]; 7] = [
    b"Daemon",
    b"Binlog Dump",
    b"Binlog Dump GTID",
    b"Connect",
    b"Slave_IO",
    b"Slave_SQL",
    b"Slave_worker",
];

/// What a row tells; `None` of the server's own threads.
pub(super) fn session(row: &Row) -> Option<SeenSession> {
    let id = row.cell("id");
    whole(id)?;
    let (command, state) = (row.cell("command"), row.cell("state"));
    if OWN.contains(&command) {
        return None;
    }
    let lock = lock(state);
    let doing = match (command == IDLE, lock.is_some()) {
        (true, _) => SessionDoing::Idle,
        (false, true) => SessionDoing::Waits,
        (false, false) => SessionDoing::Works,
    };
    let client = match row.cell("host") {
        b"" => printable(row.cell("user")),
        host => format!("{}@{}", printable(row.cell("user")), printable(host)),
    };
    Some(SeenSession {
        server: DatabaseServer::Mysql,
        id: printable(id),
        client,
        doing,
        doing_ns: decimal(row.cell("time")).and_then(seconds),
        lock: lock.map(printable).unwrap_or_default(),
        held_by: Vec::new(),
        statement: printable(row.cell("info")),
    })
}

/// The lock that a state is the wait for: `Waiting for table metadata lock`, `Waiting for global read lock`, `User lock`, and
/// `Locked` before MySQL 5.5.
fn lock(state: &[u8]) -> Option<&[u8]> {
    let waits = state
        .strip_prefix(b"Waiting for ")
        .filter(|what| what.ends_with(b"lock"));
    match state {
        b"User lock" => Some(b"user lock"),
        b"Locked" => Some(b"table lock"),
        _ => waits,
    }
}
