//! Answers that processes wait for on connections that they have made, whatever it is that their threads sleep in.
//!
//! The problem: a relay, an event loop and a runtime with a scheduler of its own sleep in one call for everything, and what was asked before
//! observation began was seen by nobody. In: processes, as observation ends. Out: by server, connections on which the process had the last
//! word, with how far that came. TCP's times are the kernel's; of a Unix socket it is known only that nobody has accepted it.

use super::moment::Moment;
use super::sessions::STOPPED;
use holdup_evidence::facts::{OwedAnswers, SessionClient, Taken};
use holdup_proc::conversations::{self, Connection};
use holdup_proc::descriptors::{self, Open};
use holdup_proc::names;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::sockets::{Sockets, Tcp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// Processes that are looked at: of more, a recorder's, each look would take long.
const PROCESSES_MAX: usize = 64;

/// Servers of a process, and clients that are named.
const SERVERS_MAX: usize = 4;
const NAMED_MAX: usize = 3;

/// Listeners of Unix sockets that are asked for their queues, one question to the kernel each.
const LISTENERS_ASKED_MAX: usize = 64;

/// No answer for so long is no matter of a moment, milliseconds.
const MIN_MS: u32 = 1500;

/// Who says something at once after what it has received acknowledges that, and asks nothing, milliseconds.
const AT_ONCE_MS: u32 = 100;

/// Data segments without any answer that one request may take. More than that is a log, or figures that nobody answers.
const REQUEST_SEGMENTS_MAX: u32 = 8;

/// Connections to a server.
#[derive(Debug, Default)]
struct Found {
    taken: Taken,
    /// The socket at the other end.
    other: Option<u64>,
    questions: u32,
    longest_ms: u32,
}

/// Looks at these processes.
pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Vec<OwedAnswers> {
    if pids.len() > PROCESSES_MAX {
        return Vec::new();
    }
    let mut all = None;
    let mut queued = None;
    let mut found = Vec::new();
    for pid in pids {
        if moment.namespace(*pid) != moment.namespace(std::process::id()) {
            continue;
        }
        let Some(ends) = moment.ends(*pid) else { continue };
        if ends.sockets.is_empty() {
            continue;
        }
        let sockets = moment.sockets(*pid);
        let all = all.get_or_insert_with(conversations::read);
        let mut servers = of_tcp(&ends.sockets, all, &sockets);
        let queued = queued.get_or_insert_with(|| unix_queues(&sockets));
        servers.extend(of_unix(&ends.sockets, queued));
        if servers.is_empty() {
            continue;
        }
        let (clients, asked_by) = clients(*pid, &ends.sockets, all, &sockets, moment);
        let mut servers: Vec<(String, Found)> = servers.into_iter().collect();
        servers.sort_by_key(|(_, one)| std::cmp::Reverse((one.questions, one.longest_ms)));
        for (server, one) in servers.into_iter().take(SERVERS_MAX) {
            found.push(OwedAnswers {
                pid: *pid,
                process: names::comm(&moment.root, *pid).unwrap_or_default(),
                by: one.other.and_then(|inode| holder(*pid, inode, moment)),
                server,
                taken: one.taken,
                questions: one.questions,
                longest_ms: one.longest_ms.into(),
                clients,
                asked_by: asked_by.clone(),
            });
        }
    }
    found
}

/// The ports at which somebody listens: what is there was accepted, whoever has it by now.
fn listened_at(sockets: &Sockets) -> HashSet<u16> {
    let listeners = sockets.tcp.iter().filter(|one| one.listens);
    listeners.map(|one| one.local.port()).collect()
}

/// Whether something was asked there, and nothing came.
fn asks(one: &Connection) -> bool {
    let waits = one.asks_ms.filter(|ms| *ms >= MIN_MS);
    waits.is_some_and(|asked| match one.received_ms {
        Some(received) => received >= asked.saturating_add(AT_ONCE_MS) && one.speaks_in_turn,
        None => one.sent_segments <= REQUEST_SEGMENTS_MAX,
    })
}

fn of_tcp(own: &HashSet<u64>, all: &[Connection], sockets: &Sockets) -> BTreeMap<String, Found> {
    let ports = listened_at(sockets);
    let mut servers: BTreeMap<String, Found> = BTreeMap::new();
    let made = |one: &&Connection| own.contains(&one.inode) && !ports.contains(&one.local.port());
    for one in all.iter().filter(made).filter(|one| asks(one)) {
        let found = servers.entry(one.peer.to_string()).or_default();
        found.questions += 1;
        found.longest_ms = found.longest_ms.max(one.asks_ms.unwrap_or(0));
        let is_other = |other: &&Tcp| (other.local, other.peer) == (one.peer, one.local);
        if let Some(other) = sockets.tcp.iter().find(is_other) {
            found.taken = match (other.inode, other.unread) {
                (0, _) => Taken::NotAccepted,
                (_, 0) => Taken::Read,
                _ => Taken::NotRead,
            };
            found.other = sockets.other_end(one.local, one.peer);
        }
    }
    servers
}

/// Clients that nobody has accepted yet at Unix sockets: the path, and the listener.
fn unix_queues(sockets: &Sockets) -> HashMap<u64, (String, u64)> {
    let listeners = sockets.unix.iter().filter(|(_, one)| one.listens);
    let mut queued = HashMap::new();
    for (listener, one) in listeners.take(LISTENERS_ASKED_MAX) {
        for client in unix_peers::queued(*listener) {
            queued.insert(client, (one.path.clone(), *listener));
        }
    }
    queued
}

fn of_unix(own: &HashSet<u64>, queued: &HashMap<u64, (String, u64)>) -> BTreeMap<String, Found> {
    let mut servers: BTreeMap<String, Found> = BTreeMap::new();
    for (path, listener) in own.iter().filter_map(|inode| queued.get(inode)) {
        let found = servers.entry(path.clone()).or_default();
        found.questions += 1;
        found.taken = Taken::NotAccepted;
        found.other = Some(*listener);
    }
    servers
}

/// Clients to which a process has owed an answer.
fn clients(
    pid: u32,
    own: &HashSet<u64>,
    all: &[Connection],
    sockets: &Sockets,
    moment: &Moment,
) -> (u32, Vec<SessionClient>) {
    let ports = listened_at(sockets);
    let owed = |one: &&Connection| {
        let waits = one.owes_ms.is_some_and(|ms| ms >= MIN_MS);
        own.contains(&one.inode) && ports.contains(&one.local.port()) && waits
    };
    let owed: Vec<&Connection> = all.iter().filter(owed).collect();
    let ends = owed.iter().take(NAMED_MAX);
    let ends: Vec<(SocketAddr, u64)> = ends
        .filter_map(|one| Some((one.peer, sockets.other_end(one.local, one.peer)?)))
        .collect();
    let named = ends.into_iter().filter_map(|(address, inode)| {
        let mut client = holder(pid, inode, moment)?;
        client.address = Some(address);
        Some(client)
    });
    (u32::try_from(owed.len()).unwrap_or(u32::MAX), named.collect())
}

/// Who has a socket, and is not this process.
fn holder(pid: u32, inode: u64, moment: &Moment) -> Option<SessionClient> {
    let open = Open::Socket(inode);
    let holders = descriptors::holders(&moment.root, &HashSet::from([open.clone()]), std::process::id());
    let other = *holders.get(&open)?.iter().find(|one| **one != pid)?;
    Some(SessionClient {
        address: None,
        pid: Some(other),
        process: names::comm(&moment.root, other).unwrap_or_default(),
        stopped: names::state(&moment.root, other) == Some(STOPPED),
    })
}

#[cfg(test)]
mod tests {
    use super::asks;
    use holdup_proc::conversations::Connection;

    fn connection(asks_ms: Option<u32>, received_ms: Option<u32>) -> Connection {
        let any = "127.0.0.1:1".parse().unwrap();
        Connection {
            asks_ms,
            received_ms,
            sent_segments: 3,
            speaks_in_turn: true,
            ..Connection::at_rest(any, any, 7)
        }
    }

    #[test]
    fn a_request_without_an_answer_is_one_and_a_word_of_thanks_is_none() {
        assert!(asks(&connection(Some(4000), None)));
        assert!(asks(&connection(Some(4000), Some(9000))));
        assert!(
            !asks(&connection(Some(4000), Some(4003))),
            "it acknowledged something"
        );
        assert!(!asks(&connection(Some(300), None)), "a moment ago");
        assert!(!asks(&connection(None, Some(9000))));
    }

    #[test]
    fn a_log_and_a_subscription_ask_for_nothing() {
        let log = Connection {
            sent_segments: 900,
            ..connection(Some(4000), None)
        };
        let subscription = Connection {
            speaks_in_turn: false,
            ..connection(Some(4000), Some(9000))
        };
        assert!(!asks(&log) && !asks(&subscription));
    }
}
