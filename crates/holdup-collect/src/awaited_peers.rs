//! For which address each process waits that is watched because others wait for it.
//!
//! In: processes, when observation ends. Out: those whose first thread sleeps in a read of a connection, with its other end. A child that can
//! be abandoned ([`super::behind`]) reads what the thread sleeps in.

use super::behind::Readers;
use super::database_memory::{Answer, Question, answer};
use super::moment::Moment;
use holdup_evidence::facts::AwaitedPeer;
use std::collections::BTreeSet;

/// Processes that are looked at.
const MAX_PROCESSES: usize = 64;

/// Looks at these.
pub(super) fn look(pids: &BTreeSet<u32>) -> Vec<AwaitedPeer> {
    if pids.is_empty() {
        return Vec::new();
    }
    let mut readers: Readers<Question, Option<Answer>> = Readers::new(|| Box::new(answer));
    let mut moment = Moment::now();
    let mut found = Vec::new();
    for pid in pids.iter().copied().take(MAX_PROCESSES) {
        let thread = Question::Thread {
            pid,
            tid: pid,
            stages: None,
        };
        let Some(Answer::Socket(inode)) = readers.ask(pid, thread).flatten() else {
            continue;
        };
        let sockets = moment.sockets(pid);
        let connection = sockets
            .tcp
            .iter()
            .find(|one| one.inode == inode && !one.listens && one.peer.port() != 0);
        if let Some(connection) = connection {
            found.push(AwaitedPeer {
                pid,
                address: connection.peer.to_string(),
            });
        }
    }
    found
}
