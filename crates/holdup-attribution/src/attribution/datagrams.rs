//! Datagrams over UDP, by peer, as rules read them: names for processes, times until the end, and the protocol.

use super::task_table::TaskTable;
use holdup_evidence::{Finish, Ns};
use holdup_knowledge::datagrams::request;
use holdup_model::attributed::{DatagramPeer, Datagrams, ThreadName};
use std::net::IpAddr;

/// What was sent, until `end`. Who listens to a group or to everybody owes no answer, so those are left out.
pub(super) fn judged(finish: &Finish, end: Ns, tasks: &TaskTable) -> Option<Datagrams> {
    let found = finish.datagrams.as_ref()?;
    let peers = found.peers.iter().filter(|one| !to_many(one.peer.ip()));
    let peers = peers.map(|one| {
        let name = tasks.name_of(one.pid).unwrap_or_default();
        DatagramPeer {
            peer: one.peer.to_string(),
            by: ThreadName {
                pid: one.pid,
                tid: one.pid,
                process: name.to_owned(),
                thread: name.to_owned(),
            },
            protocol: request(&one.begins, one.size, one.peer.port()),
            sent: one.sent,
            received: one.received,
            unanswered: one.unanswered,
            failed: one.failed,
            silent: match one.unanswered {
                0 => 0,
                _ => end.saturating_sub(one.silent_since),
            },
            watched: end.saturating_sub(one.since),
        }
    });
    Some(Datagrams {
        peers: peers.collect(),
        refused: found.refused,
    })
}

fn to_many(ip: IpAddr) -> bool {
    ip.is_multicast() || matches!(ip, IpAddr::V4(four) if four.is_broadcast())
}
