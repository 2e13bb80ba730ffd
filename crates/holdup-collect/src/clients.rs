//! Who else is a client where the observed processes are: a server that keeps some of its clients waiting may wait for others.
//!
//! In: processes. Out: the other clients of the servers on this machine that they are connected to, as the tables of sockets and
//! the links in `/proc/PID/fd` show.

use super::moment::Moment;
use holdup_evidence::facts::OtherClient;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::names;
use holdup_proc::sockets::{Sockets, Tcp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;

/// Clients of one server that are reported. Of a server with more, one among them says nothing.
const MAX_CLIENTS: usize = 8;

/// Looks at these processes.
pub(super) fn look(pids: &BTreeSet<u32>, moment: &mut Moment) -> Vec<OtherClient> {
    let mut namespaces: HashMap<Option<String>, Rc<Sockets>> = HashMap::new();
    let mut own: HashSet<u64> = HashSet::new();
    for pid in pids {
        own.extend(moment.ends(*pid).iter().flat_map(|ends| &ends.sockets));
        namespaces
            .entry(moment.namespace(*pid))
            .or_insert_with(|| moment.sockets(*pid));
    }
    let mut others: BTreeMap<SocketAddr, Vec<u64>> = BTreeMap::new();
    for sockets in namespaces.values() {
        let ports: HashSet<u16> = listening(sockets).map(|socket| socket.local.port()).collect();
        let client = |socket: &&Tcp| {
            let (local, peer) = (socket.local.port(), socket.peer.port());
            socket.inode != 0 && ports.contains(&peer) && !ports.contains(&local)
        };
        let clients = || sockets.tcp.iter().filter(client);
        let servers: BTreeSet<SocketAddr> = clients()
            .filter(|socket| own.contains(&socket.inode))
            .map(|socket| socket.peer)
            .collect();
        for socket in
            clients().filter(|socket| servers.contains(&socket.peer) && !own.contains(&socket.inode))
        {
            others.entry(socket.peer).or_default().push(socket.inode);
        }
    }
    let root = &moment.root;
    others.retain(|_, inodes| inodes.len() <= MAX_CLIENTS);
    let wanted: HashSet<Open> = others
        .values()
        .flatten()
        .map(|inode| Open::Socket(*inode))
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let holders = descriptors::holders(root, &wanted, std::process::id());
    let mut found = Vec::new();
    for (server, inodes) in others {
        let all = inodes
            .iter()
            .filter_map(|inode| holders.get(&Open::Socket(*inode)));
        let who: BTreeSet<u32> = all.flatten().copied().filter(|pid| !pids.contains(pid)).collect();
        found.extend(who.into_iter().map(|pid| OtherClient {
            server,
            pid,
            process: names::comm(root, pid).unwrap_or_default(),
        }));
    }
    found
}

fn listening(sockets: &Sockets) -> impl Iterator<Item = &Tcp> {
    sockets.tcp.iter().filter(|socket| socket.listens)
}
