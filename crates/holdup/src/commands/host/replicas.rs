//! Commits of PostgreSQL that wait for a synchronous standby, followed to who is in the way there.
//!
//! The problem: a session that commits sleeps until the standby has confirmed; the standby's replay may wait for a session that reads there; and
//! none of them has anything that the kernel's tables show. In: titles of the servers' processes, and connections. Out: waits of those that
//! commit, with the session of the standby that its replay waits for, if there is one alone that may be it.

use super::close_looks::{Answers, Close, Question};
use super::looked_up::named;
use holdup_evidence::Ns;
use holdup_evidence::facts::SessionState;
use holdup_evidence::observed::{Awaited, Quote, SeenClient, SeenProcess, SeenStandby, SeenWait, Short};
use holdup_knowledge::postgres_titles;
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::{Root, names, tasks};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The shortest wait for an answer of a server for which its titles are read: a standby confirms in some milliseconds.
const MIN_ANSWER_NS: Ns = 1_000_000_000;

/// Processes of servers whose titles are read.
const PROCESSES_MAX: usize = 1_024;

/// Nanoseconds in a millisecond.
const MS: Ns = 1_000_000;

/// A standby, as far as it is known.
#[derive(Debug, Clone, Default)]
struct Standby {
    /// Where it is.
    address: String,
    /// The process that replays there, and whether it says that it waits.
    replay: Option<(u32, bool)>,
    /// Sessions there that do something.
    sessions: Vec<u32>,
}

/// What titles tell of the servers.
struct Servers {
    titles: Answers,
    /// By their first process.
    children: BTreeMap<u32, Vec<u32>>,
}

impl Servers {
    fn read(root: &Root) -> Servers {
        let is_server =
            |pid: &u32| names::comm(root, *pid).is_some_and(|name| postgres_titles::is_server(&name));
        let all: Vec<u32> = (tasks::processes(root).into_iter().filter(is_server))
            .take(PROCESSES_MAX)
            .collect();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in &all {
            if let Some(parent) = names::parent(root, *pid).filter(|parent| all.contains(parent)) {
                children.entry(parent).or_default().push(*pid);
            }
        }
        let asked = children.values().flatten();
        let asked = asked.map(|pid| Question::Title { pid: *pid }).collect();
        Servers {
            titles: Close::start(root, asked).take(),
            children,
        }
    }

    /// Sessions of a server that wait for a standby.
    fn commits(&self, server: u32) -> Vec<u32> {
        let of = self.children.get(&server).into_iter().flatten().copied();
        of.filter(|pid| {
            self.titles
                .title(*pid)
                .is_some_and(postgres_titles::awaits_standby)
        })
        .collect()
    }

    /// Processes of a server that do this.
    fn that(&self, server: u32, does: impl Fn(SessionState) -> bool) -> Vec<u32> {
        let of = self.children.get(&server).into_iter().flatten().copied();
        let state = |pid: &u32| self.titles.title(*pid).and_then(postgres_titles::state);
        of.filter(|pid| state(pid).is_some_and(&does)).collect()
    }

    /// The standby with this server.
    fn standby(&self, server: u32, address: String) -> Standby {
        let of = self.children.get(&server).into_iter().flatten();
        let mut replays = of.filter_map(|pid| {
            let waits = postgres_titles::replay_waits(self.titles.title(*pid)?)?;
            Some((*pid, waits))
        });
        Standby {
            address,
            replay: replays.next(),
            sessions: self.that(server, |state| {
                matches!(state, SessionState::Works | SessionState::IdleInTransaction)
            }),
        }
    }
}

/// Adds who waits for standbys. Titles are read only if somebody waits for an answer of such a server.
pub(super) fn add(
    root: &Root,
    own: u32,
    connections: &[Connection],
    quote: &Quote,
    waits: &mut Vec<SeenWait>,
) {
    let asked = |wait: &SeenWait| {
        let holder = wait.holder.as_ref();
        let of = holder.is_some_and(|holder| postgres_titles::is_server(&holder.name));
        wait.on == Awaited::Answer && of && wait.ns >= MIN_ANSWER_NS
    };
    if !waits.iter().any(asked) {
        return;
    }
    let servers = Servers::read(root);
    let found: Vec<SeenWait> = (servers.children.keys().copied())
        .filter_map(|server| {
            let commits = servers.commits(server);
            let standby = (!commits.is_empty())
                .then(|| standby_of(root, own, server, &servers, connections))
                .flatten()?;
            Some(of_server(root, &commits, &standby, connections, quote, waits))
        })
        .flatten()
        .collect();
    waits.extend(found);
}

/// The waits of these commits.
fn of_server(
    root: &Root,
    commits: &[u32],
    standby: &Standby,
    connections: &[Connection],
    quote: &Quote,
    waits: &[SeenWait],
) -> Vec<SeenWait> {
    let since = |pid: u32| {
        let asked = waits.iter().filter(|wait| {
            let holder = wait.holder.as_ref().map(|holder| holder.pid);
            wait.on == Awaited::Answer && holder == Some(pid)
        });
        asked.map(|wait| wait.ns).max()
    };
    let longest = commits.iter().filter_map(|pid| since(*pid)).max().unwrap_or(0);
    let clients = holdup_collect::session_clients(&standby.sessions);
    let addresses = clients
        .iter()
        .filter_map(|(pid, client)| Some((*pid, client.address?)));
    let addresses: HashMap<u32, _> = addresses.collect();
    let session = standby
        .replay
        .filter(|(_, waits)| *waits)
        .and_then(|_| in_the_way(&standby.sessions, &addresses, connections, longest));
    let holder = session.or(standby.replay.map(|(pid, _)| pid));
    let client = session.and_then(|pid| clients.get(&pid)?.pid);
    let pids: BTreeSet<u32> = (commits.iter().copied())
        .chain(holder)
        .chain(client)
        .chain(standby.replay.map(|(pid, _)| pid))
        .collect();
    let names = named(root, pids.into_iter().collect());
    let name = |pid: u32| names.get(&pid).cloned().unwrap_or_default();
    let seen = |pid: u32| SeenClient { pid, name: name(pid) };
    let process = |pid: u32| SeenProcess {
        pid,
        name: name(pid),
        ..SeenProcess::default()
    };
    let replay = standby.replay.map(|(pid, _)| seen(pid)).unwrap_or_default();
    let commit = |pid: &u32| SeenWait {
        waiter: process(*pid),
        on: Awaited::Standby,
        name: match replay.pid {
            0 => standby.address.clone(),
            _ => String::new(),
        },
        holder: holder.map(|holder| SeenProcess {
            client: client.map(seen),
            ..process(holder)
        }),
        ns: since(*pid).unwrap_or(MIN_ANSWER_NS),
        alone: true,
        short: Short::Standby(SeenStandby {
            replay: replay.clone(),
            waits: standby.replay.is_some_and(|(_, waits)| waits),
            sessions: u32::try_from(standby.sessions.len()).unwrap_or(u32::MAX),
        }),
        quote: quote.clone(),
        ..SeenWait::default()
    };
    commits.iter().map(commit).collect()
}

/// The session that replay waits for: the only one that does something, else the only one whose client has asked it for at least as long as
/// commits wait.
fn in_the_way(
    sessions: &[u32],
    addresses: &HashMap<u32, std::net::SocketAddr>,
    connections: &[Connection],
    longest: Ns,
) -> Option<u32> {
    if let [one] = sessions {
        return Some(*one);
    }
    let asked_before = |pid: &&u32| {
        let address = addresses.get(*pid);
        let client = address.and_then(|address| connections.iter().find(|one| one.local == *address));
        client
            .and_then(|client| client.sent_ms)
            .is_some_and(|ms| Ns::from(ms) * MS >= longest)
    };
    let mut before = sessions.iter().filter(asked_before);
    before.next().copied().filter(|_| before.next().is_none())
}

/// The standby that a server sends its log to. Of several it is not known which one has to confirm; others may only copy the log, or be asynchronous.
fn standby_of(
    root: &Root,
    own: u32,
    server: u32,
    servers: &Servers,
    connections: &[Connection],
) -> Option<Standby> {
    let senders = servers.that(server, |state| state == SessionState::SendsLog);
    let sender = match senders.as_slice() {
        [] => return None,
        [one] => *one,
        _ => return Some(Standby::default()),
    };
    let sockets = descriptors::ends(root, sender)?.sockets;
    let of = |one: &&Connection| one.inode != 0 && sockets.contains(&one.inode);
    let one = connections.iter().find(of)?;
    let address = one.peer.to_string();
    let other = connections
        .iter()
        .find(|other| other.local == one.peer && other.peer == one.local);
    let receiver = other.filter(|other| other.inode != 0).and_then(|other| {
        let wanted = HashSet::from([Open::Socket(other.inode)]);
        let holders = descriptors::holders(root, &wanted, own);
        holders.into_values().next()?.first().copied()
    });
    Some(match receiver.and_then(|pid| names::parent(root, pid)) {
        Some(standby) => servers.standby(standby, address),
        None => Standby {
            address,
            ..Standby::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::in_the_way;
    use holdup_proc::conversations::Connection;
    use std::collections::HashMap;
    use std::net::SocketAddr;

    #[test]
    fn the_session_that_was_asked_before_commits_waited_is_in_the_way() {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let asked = |port: u16, seconds: u32| Connection {
            sent_ms: Some(seconds * 1000),
            ..Connection::at_rest(at(port), at(5432), 1)
        };
        let connections = [asked(7001, 90), asked(7002, 3), asked(7003, 80)];
        let addresses: HashMap<u32, SocketAddr> = [(1, at(7001)), (2, at(7002)), (3, at(7003))].into();
        let found = |sessions: &[u32]| in_the_way(sessions, &addresses, &connections, 30_000_000_000);
        assert_eq!(found(&[1, 2]), Some(1));
        assert_eq!(found(&[2]), Some(2), "the only one");
        assert_eq!(found(&[1, 2, 3]), None, "two may be it");
        assert_eq!(found(&[]), None);
    }
}
