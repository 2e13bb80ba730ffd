//! Listeners at which clients wait: who has them open, whether he still listens, and who has the connections that were accepted there.
//!
//! The problem: a server that has reached its limit of connections, or whose workers are all taken, accepts nobody else, and who holds it is
//! not the client that waits. In: the processes that were asked about, when observation ends. Out: the listeners of their network namespace,
//! those with clients in their queue in full. Sets are read by a child that can be abandoned ([`super::behind`]).

use super::behind::Readers;
use super::moment::Moment;
use super::sessions::STOPPED;
use holdup_evidence::Ns;
use holdup_evidence::facts::{Acceptor, ConnectedClients, Listener, Unaccepted};
use holdup_model::churn::Churn;
use holdup_proc::descriptors::Open;
use holdup_proc::event_loops::{self, Listened};
use holdup_proc::sockets::{Sockets, Tcp};
use holdup_proc::{Root, listeners, names};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// Listeners that are looked at in full.
const MAX_LISTENERS: usize = 4;

/// Connections of one listener whose clients are looked up.
const MAX_CONNECTIONS: usize = 4096;

/// Processes of one name that are known by their ids.
const MAX_PIDS: usize = 3;

/// Processes of one listener.
const MAX_ACCEPTORS: usize = 64;

/// The listeners of the network namespace of these processes; `None` where they are in several, or gone.
pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Option<Vec<Listener>> {
    let living: Vec<u32> = pids
        .iter()
        .copied()
        .filter(|pid| moment.namespace(*pid).is_some())
        .collect();
    let first = *living.first()?;
    let namespace = moment.namespace(first);
    if living.iter().any(|pid| moment.namespace(*pid) != namespace) {
        return None;
    }
    let mut found = listeners::of_process(&moment.root, first);
    let queued = found.iter_mut().filter(|one| one.waiting > 0);
    for listener in queued.take(MAX_LISTENERS) {
        listener.processes = acceptors(first, listener.address, moment);
        listener.clients = clients(first, listener.address, moment);
    }
    Some(found)
}

/// Looks up the clients of listeners that leave others in their queue.
pub(super) fn of_queues(queues: &mut [Unaccepted], moment: &mut Moment) {
    for queue in queues.iter_mut().take(MAX_LISTENERS) {
        if let Some(pid) = queue.processes.first() {
            queue.clients = clients(*pid, queue.address, moment);
        }
    }
}

/// The processes that are named as clients of these.
pub(super) fn pids(queues: &[Unaccepted]) -> BTreeSet<u32> {
    let clients = queues.iter().flat_map(|queue| &queue.clients);
    clients.flat_map(|one| &one.pids).copied().collect()
}

/// Connections to one peer from which they are made again and again.
const MIN_MADE: u64 = 3;

/// How long such a connection is open at most, at the median, nanoseconds: a server that is over its limit says so and closes.
const MAX_OPEN_NS: Ns = 1_000_000_000;

/// Looks up who has the connections of listeners at which connections were made again and again, for moments: a server that has
/// reached its limit ends them. The observed processes are its clients, or the server. Out: the processes that are named.
pub(super) fn of_ended(
    pid: u32,
    churn: &Churn,
    listeners: &mut [Listener],
    moment: &mut Moment,
) -> BTreeSet<u32> {
    let ended = churn.connections.iter().filter(|one| {
        let again = one.made >= MIN_MADE;
        again && one.closed.saturating_mul(2) >= one.made && one.p50 <= MAX_OPEN_NS
    });
    let ends: Vec<SocketAddr> = ended.filter_map(|one| one.end.parse().ok()).collect();
    let known = |one: &&mut Listener| ends.iter().any(|end| is_at(one.address, *end));
    let mut named = BTreeSet::new();
    for listener in listeners.iter_mut().filter(known).take(MAX_LISTENERS) {
        listener.processes = acceptors(pid, listener.address, moment);
        listener.clients = clients(pid, listener.address, moment);
        named.extend(listener.clients.iter().flat_map(|one| &one.pids));
    }
    named
}

/// An address as both families write it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether a socket of this end is at a listener.
fn is_at(listener: SocketAddr, local: SocketAddr) -> bool {
    let (listener, local) = (canonical(listener), canonical(local));
    listener.port() == local.port() && (listener.ip().is_unspecified() || listener.ip() == local.ip())
}

/// Who has a listener open.
fn acceptors(pid: u32, at: SocketAddr, moment: &mut Moment) -> Vec<Acceptor> {
    let sockets = moment.sockets(pid);
    let listener = sockets
        .tcp
        .iter()
        .find(|one| one.listens && one.inode != 0 && one.local == at);
    let Some(listener) = listener else {
        return Vec::new();
    };
    let open = Open::Socket(listener.inode);
    let holders = moment.holders(&HashSet::from([open.clone()]));
    let mut sets: Readers<u32, Option<Listened>> =
        Readers::new(|| Box::new(|pid| event_loops::read(&Root::system(), pid)));
    let processes = holders.get(&open).into_iter().flatten().take(MAX_ACCEPTORS);
    let acceptor = |pid: &u32| Acceptor {
        pid: *pid,
        process: names::comm(&moment.root, *pid).unwrap_or_default(),
        stopped: names::state(&moment.root, *pid) == Some(STOPPED),
        polled: sets
            .ask(*pid, *pid)
            .flatten()
            .map(|listened| listened.polled.contains(&listener.inode)),
    };
    processes.map(acceptor).collect()
}

/// Connections that were accepted at a listener: from where, and the inode of the other end where that is of the same namespace.
fn accepted(at: SocketAddr, sockets: &Sockets) -> Vec<(IpAddr, Option<u64>)> {
    let here = |one: &&Tcp| {
        let connected = !one.listens && !one.knocks && one.peer.port() != 0;
        connected && one.inode != 0 && is_at(at, one.local)
    };
    let ends: HashMap<(SocketAddr, SocketAddr), u64> = sockets
        .tcp
        .iter()
        .filter(|one| !one.listens && one.inode != 0)
        .map(|one| ((canonical(one.local), canonical(one.peer)), one.inode))
        .collect();
    let other = |one: &Tcp| {
        let inode = ends.get(&(canonical(one.peer), canonical(one.local))).copied();
        (canonical(one.peer).ip(), inode)
    };
    let connections = sockets.tcp.iter().filter(here).take(MAX_CONNECTIONS);
    connections.map(other).collect()
}

/// Who has the connections that a listener has accepted, most first.
fn clients(pid: u32, at: SocketAddr, moment: &mut Moment) -> Vec<ConnectedClients> {
    let connections = accepted(at, &moment.sockets(pid));
    let wanted: HashSet<Open> = connections
        .iter()
        .filter_map(|(_, inode)| inode.map(Open::Socket))
        .collect();
    let holders = match wanted.is_empty() {
        true => HashMap::new(),
        false => moment.holders(&wanted),
    };
    let mut by_name: BTreeMap<(String, Option<IpAddr>), (BTreeSet<u32>, u32)> = BTreeMap::new();
    for (from, inode) in connections {
        // Of one that several have inherited, the first has made it.
        let pid = inode.and_then(|inode| holders.get(&Open::Socket(inode))?.first().copied());
        let name = pid
            .and_then(|pid| names::comm(&moment.root, pid))
            .unwrap_or_default();
        let from = pid.is_none().then_some(from);
        let entry = by_name.entry((name, from)).or_default();
        entry.0.extend(pid);
        entry.1 += 1;
    }
    let mut all: Vec<ConnectedClients> = by_name
        .into_iter()
        .map(|((process, address), (pids, connections))| ConnectedClients {
            process,
            address,
            processes: u32::try_from(pids.len()).unwrap_or(u32::MAX),
            pids: pids.into_iter().take(MAX_PIDS).collect(),
            connections,
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.connections));
    all
}

#[cfg(test)]
mod tests {
    use super::{Moment, look};
    use std::collections::BTreeSet;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_listener_with_a_queue_is_told_with_who_has_it_and_its_connections() {
        let own = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let here = || {
            let found = look(&BTreeSet::from([own]), &mut Moment::now()).unwrap();
            found.into_iter().find(|one| one.address == address).unwrap()
        };
        assert_eq!(
            (here().waiting, here().processes.len()),
            (0, 0),
            "nobody waits there"
        );
        let _client = TcpStream::connect(address).unwrap();
        let _accepted = listener.accept().unwrap();
        let _queued = TcpStream::connect(address).unwrap();
        let full = here();
        assert_eq!(full.waiting, 1);
        // Both ends are of this process, which is never looked through.
        assert_eq!(full.clients.iter().map(|one| one.connections).sum::<u32>(), 1);
        assert_eq!(look(&BTreeSet::from([u32::MAX]), &mut Moment::now()), None);
    }
}
