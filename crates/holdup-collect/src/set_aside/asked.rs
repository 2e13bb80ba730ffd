//! Whom an event loop has asked while it keeps clients waiting: the kernel notes of each TCP connection when it last sent and received.
//!
//! In: a process, its clients that were set aside, and all connections of this network namespace. Out: how many of those clients have no
//! answer, the servers to which the process is connected and how many of them owe it one, and which clients it is answering.

use super::super::moment::Moment;
use super::{MAX_NAMED, others};
use holdup_evidence::facts::{AskedServer, SessionClient};
use holdup_proc::conversations::Connection;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

/// Servers that are reported.
const MAX_SERVERS: usize = 4;

/// Whom something was sent so short a time ago is being answered, milliseconds.
const JUST_BEFORE_MS: u32 = 2000;

/// What is on the way of a process, and what it owes.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) unanswered: u32,
    pub(super) servers: Vec<AskedServer>,
    pub(super) answers: Vec<SessionClient>,
}

/// Looks at the connections of a process. `watched`: what has no answer for as long counts.
pub(super) fn of(
    pid: u32,
    aside: &BTreeSet<u64>,
    all: &[Connection],
    watched: Duration,
    moment: &mut Moment,
) -> Asked {
    let Some(ends) = moment.ends(pid) else {
        return Asked::default();
    };
    let sockets = moment.sockets(pid);
    let own = |inode: u64| inode != 0 && ends.sockets.contains(&inode);
    let listeners = sockets.tcp.iter().filter(|one| one.listens && own(one.inode));
    let ports: HashSet<u16> = listeners.map(|one| one.local.port()).collect();
    let whole = |ms: Option<u32>| ms.is_some_and(|ms| Duration::from_millis(ms.into()) >= watched);
    let mut found = Asked::default();
    let mut servers: BTreeMap<SocketAddr, (AskedServer, (SocketAddr, SocketAddr))> = BTreeMap::new();
    let mut answered = Vec::new();
    for one in all.iter().filter(|one| own(one.inode)) {
        if ports.contains(&one.local.port()) {
            found.unanswered += u32::from(aside.contains(&one.inode) && whole(one.owes_ms));
            let just = one.asks_ms.is_some_and(|ms| ms <= JUST_BEFORE_MS);
            if just && answered.len() < MAX_NAMED && !aside.contains(&one.inode) {
                answered.push((one.local, one.peer));
            }
            continue;
        }
        let (server, _) = servers
            .entry(one.peer)
            .or_insert_with(|| (AskedServer::default(), (one.local, one.peer)));
        server.address = one.peer;
        server.connections += 1;
        let asks = one.asks_ms.is_some() || one.may_ask;
        server.asking += u32::from(asks);
        server.free += u32::from(!asks && one.received_ms.is_some_and(|ms| ms > JUST_BEFORE_MS));
        if let Some(ms) = one.asks_ms.filter(|_| whole(one.asks_ms)) {
            server.unanswered += 1;
            server.longest_ms = server.longest_ms.max(ms.into());
        }
    }
    found.answers = others(pid, &answered, moment);
    let mut servers: Vec<_> = servers.into_values().collect();
    servers.sort_by_key(|(server, _)| std::cmp::Reverse((server.unanswered, server.connections)));
    servers.truncate(MAX_SERVERS);
    for (mut server, ends) in servers {
        if let Some(process) = others(pid, &[ends], moment).pop() {
            (server.pid, server.process) = (process.pid, process.process);
        }
        found.servers.push(server);
    }
    found
}
