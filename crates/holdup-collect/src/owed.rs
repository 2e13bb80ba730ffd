//! Answers that processes wait for on connections that they have made, whatever it is that their threads sleep in.
//!
//! The problem: a relay, an event loop and a runtime with a scheduler of its own sleep in one call for everything, and what was asked before
//! observation began was seen by nobody. In: processes, as observation ends. Out: by server, connections on which the process had the last
//! word, with how far that came. TCP's times are the kernel's; of a Unix socket it is known only that nobody has accepted it.

use super::moment::Moment;
use super::sessions::STOPPED;
use holdup_evidence::facts::{OwedAnswers, SessionClient, Taken};
use holdup_proc::conversations::{self, Connection};
use holdup_proc::names;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::sockets::Sockets;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;

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
    /// The listener at the other end, of a Unix socket.
    other: Option<u64>,
    /// Both ends of one connection over TCP.
    between: Option<(SocketAddr, SocketAddr)>,
    questions: u32,
    longest_ms: u32,
}

/// What is known of all sockets of this network namespace: looked up, for there may be many, and many processes that have some.
#[derive(Debug)]
struct Known {
    sockets: Rc<Sockets>,
    /// Connections by inode.
    connections: HashMap<u64, Connection>,
    /// Inode and unread bytes of an end, by its own address and the other one's.
    ends: HashMap<(SocketAddr, SocketAddr), (u64, u32)>,
    /// The ports at which somebody listens: what is there was accepted, whoever has it by now.
    ports: HashSet<u16>,
    /// Clients that nobody has accepted yet at Unix sockets: the path, and the listener.
    queued: HashMap<u64, (String, u64)>,
}

/// An address as both families write it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl Known {
    fn of(sockets: Rc<Sockets>) -> Known {
        let listeners = sockets.tcp.iter().filter(|one| one.listens);
        let ports = listeners.map(|one| one.local.port()).collect();
        let ends = sockets.tcp.iter().filter(|one| !one.listens);
        let ends = ends.map(|one| {
            let between = (canonical(one.local), canonical(one.peer));
            (between, (one.inode, one.unread))
        });
        let of_inode = conversations::read().into_iter().map(|one| (one.inode, one));
        Known {
            ends: ends.collect(),
            connections: of_inode.filter(|(inode, _)| *inode != 0).collect(),
            ports,
            queued: unix_queues(&sockets),
            sockets,
        }
    }

    /// The connections of a process, in a certain order.
    fn connections_of(&self, own: &HashSet<u64>) -> Vec<&Connection> {
        let mut found: Vec<&Connection> = own
            .iter()
            .filter_map(|inode| self.connections.get(inode))
            .collect();
        found.sort_by_key(|one| one.inode);
        found
    }

    /// The other end of a connection: its inode and the bytes that were not read there.
    fn other(&self, one: &Connection) -> Option<(u64, u32)> {
        self.ends
            .get(&(canonical(one.peer), canonical(one.local)))
            .copied()
    }
}

/// Looks at these processes.
pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Vec<OwedAnswers> {
    if pids.len() > PROCESSES_MAX {
        return Vec::new();
    }
    let mut known = None;
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
        let known = known.get_or_insert_with(|| Known::of(sockets));
        let mut servers = of_tcp(&ends.sockets, known);
        servers.extend(of_unix(&ends.sockets, &known.queued));
        if servers.is_empty() {
            continue;
        }
        let (clients, asked_by) = clients(*pid, &ends.sockets, known, moment);
        let mut servers: Vec<(String, Found)> = servers.into_iter().collect();
        servers.sort_by_key(|(_, one)| std::cmp::Reverse((one.questions, one.longest_ms)));
        for (server, one) in servers.into_iter().take(SERVERS_MAX) {
            found.push(OwedAnswers {
                pid: *pid,
                process: names::comm(&moment.root, *pid).unwrap_or_default(),
                by: one.other(known).and_then(|inode| holder(*pid, inode, moment)),
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

impl Found {
    /// The socket at the other end; of what nobody has accepted, the listener's.
    fn other(&self, known: &Known) -> Option<u64> {
        match self.between {
            Some((local, peer)) => known.sockets.other_end(local, peer),
            None => self.other,
        }
    }
}

/// Whether something was asked there, and nothing came.
fn asks(one: &Connection) -> bool {
    let waits = one.asks_ms.filter(|ms| *ms >= MIN_MS);
    waits.is_some_and(|asked| match one.received_ms {
        Some(received) => received >= asked.saturating_add(AT_ONCE_MS) && one.speaks_in_turn,
        None => one.sent_segments <= REQUEST_SEGMENTS_MAX,
    })
}

fn of_tcp(own: &HashSet<u64>, known: &Known) -> BTreeMap<String, Found> {
    let mut servers: BTreeMap<String, Found> = BTreeMap::new();
    let made = |one: &&Connection| !known.ports.contains(&one.local.port());
    for one in known
        .connections_of(own)
        .into_iter()
        .filter(made)
        .filter(|one| asks(one))
    {
        let found = servers.entry(one.peer.to_string()).or_default();
        found.questions += 1;
        found.longest_ms = found.longest_ms.max(one.asks_ms.unwrap_or(0));
        if let Some(other) = known.other(one) {
            found.taken = match other {
                (0, _) => Taken::NotAccepted,
                (_, 0) => Taken::Read,
                _ => Taken::NotRead,
            };
            found.between = Some((one.local, one.peer));
        }
    }
    servers
}

/// Clients that nobody has accepted yet at Unix sockets: the path, and the listener. Those with most clients are asked first, whoever has
/// how many.
fn unix_queues(sockets: &Sockets) -> HashMap<u64, (String, u64)> {
    let listeners = sockets
        .unix
        .iter()
        .filter(|(_, one)| one.listens && one.waiting != Some(0));
    let mut listeners: Vec<_> = listeners.collect();
    listeners.sort_by_key(|(inode, one)| (std::cmp::Reverse(one.waiting), **inode));
    let mut queued = HashMap::new();
    for (listener, one) in listeners.into_iter().take(LISTENERS_ASKED_MAX) {
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
fn clients(pid: u32, own: &HashSet<u64>, known: &Known, moment: &Moment) -> (u32, Vec<SessionClient>) {
    let owed = |one: &&Connection| {
        let waits = one.owes_ms.is_some_and(|ms| ms >= MIN_MS);
        known.ports.contains(&one.local.port()) && waits
    };
    let owed: Vec<&Connection> = known.connections_of(own).into_iter().filter(owed).collect();
    let ends = owed.iter().take(NAMED_MAX);
    let ends = ends.filter_map(|one| Some((one.peer, known.sockets.other_end(one.local, one.peer)?)));
    let named = ends.filter_map(|(address, inode)| {
        let mut client = holder(pid, inode, moment)?;
        client.address = Some(address);
        Some(client)
    });
    (u32::try_from(owed.len()).unwrap_or(u32::MAX), named.collect())
}

/// Who has a socket, and is not this process.
fn holder(pid: u32, inode: u64, moment: &Moment) -> Option<SessionClient> {
    let mut holders = moment.holders_of(inode).iter();
    let other = *holders.find(|one| **one != pid)?;
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
