//! The other ends of connections that tasks wait for.
//!
//! In: a process and a descriptor of it. Out: the peer of the TCP connection that it is. The tables of connections are read once for each
//! network namespace, when observation ends.

use super::goroutines::inode;
use holdup_proc::sockets::{self, Tcp};
use holdup_proc::{Root, names};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Network namespaces whose tables are read; each may have some fifty thousand connections.
const TABLES_MAX: usize = 4;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Peers {
    tables: HashMap<Option<String>, HashMap<u64, SocketAddr>>,
}

impl Peers {
    /// The peer of a descriptor; `None` where it is no TCP connection, or that cannot be read.
    pub(super) fn of(&mut self, pid: u32, descriptor: u32) -> Option<SocketAddr> {
        let inode = inode(pid, descriptor)?;
        let root = Root::system();
        let namespace = names::network_namespace(&root, pid);
        if !self.tables.contains_key(&namespace) && self.tables.len() >= TABLES_MAX {
            return None;
        }
        let table = self
            .tables
            .entry(namespace)
            .or_insert_with(|| connections(sockets::tcp_of(&root, pid)));
        table.get(&inode).copied()
    }
}

/// The peers of connections that processes have, by inode. One that a client has opened to a port of this machine on which somebody listens
/// has the client as its peer: no server is waited for there, so it is left out.
fn connections(table: Vec<Tcp>) -> HashMap<u64, SocketAddr> {
    let listening: Vec<u16> = table
        .iter()
        .filter(|one| one.listens)
        .map(|one| one.local.port())
        .collect();
    let asked = |one: &&Tcp| !one.listens && one.inode != 0 && !listening.contains(&one.local.port());
    table
        .iter()
        .filter(asked)
        .map(|one| (one.inode, one.peer))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::connections;
    use holdup_proc::sockets::Tcp;

    #[test]
    fn only_connections_to_others_have_a_peer() {
        let tcp = |local: &str, peer: &str, listens: bool, inode: u64| Tcp {
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
            listens,
            knocks: false,
            waiting: 0,
            unread: 0,
            unsent: 0,
            inode,
        };
        let peers = connections(vec![
            tcp("0.0.0.0:80", "0.0.0.0:0", true, 1),
            tcp("127.0.0.1:80", "127.0.0.1:40000", false, 2),
            tcp("127.0.0.1:40001", "127.0.0.1:5432", false, 3),
            tcp("127.0.0.1:40002", "127.0.0.1:5432", false, 0),
        ]);
        assert_eq!(peers.len(), 1);
        assert_eq!(peers[&3], "127.0.0.1:5432".parse().unwrap());
    }
}
