//! The other ends of connections and pipes that tasks wait for.
//!
//! In: a process and a descriptor of it. Out: the peer of the TCP connection that it is, or what else it is open on. The tables of connections are read once for each
//! network namespace, when observation ends.

use super::goroutines::inode;
use holdup_proc::sockets::{self, Tcp};
use holdup_proc::{Root, names};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Network namespaces whose tables are read; each may have some fifty thousand connections.
const TABLES_MAX: usize = 4;

/// Pipes whose other end is looked for, and processes and descriptors that are looked through for one.
const PIPES_MAX: usize = 16;
const PROCESSES_MAX: usize = 4_096;
const DESCRIPTORS_MAX: usize = 256;

/// What the kernel calls a pipe that has no name.
const PIPE: &str = "pipe:[";

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Peers {
    pipes: HashMap<(u32, PathBuf), Option<String>>,
    tables: HashMap<Option<String>, HashMap<u64, (SocketAddr, bool)>>,
    datagrams: HashMap<Option<String>, HashMap<u64, SocketAddr>>,
}

impl Peers {
    /// The peer of a descriptor; `None` where it is no TCP connection that the process has made, or that cannot be read. Of one that a client
    /// has made, no server is waited for.
    pub(super) fn of(&mut self, pid: u32, descriptor: u32) -> Option<SocketAddr> {
        let (peer, made) = self.connection(pid, descriptor)?;
        made.then_some(peer)
    }

    /// The same, whoever made the connection: who does not read may be a client.
    pub(super) fn of_any(&mut self, pid: u32, descriptor: u32) -> Option<SocketAddr> {
        self.connection(pid, descriptor).map(|(peer, _)| peer)
    }

    /// To where a descriptor sends datagrams, and from where alone it gets any.
    pub(super) fn of_datagrams(&mut self, pid: u32, descriptor: u32) -> Option<SocketAddr> {
        let inode = inode(pid, descriptor)?;
        let root = Root::system();
        let namespace = names::network_namespace(&root, pid);
        if !self.datagrams.contains_key(&namespace) && self.datagrams.len() >= TABLES_MAX {
            return None;
        }
        let table = self
            .datagrams
            .entry(namespace)
            .or_insert_with(|| connected(&sockets::udp_of(&root, pid)));
        table.get(&inode).copied()
    }

    fn connection(&mut self, pid: u32, descriptor: u32) -> Option<(SocketAddr, bool)> {
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

    /// What a descriptor is open on, if that is a file with a name, or a pipe whose other end a process has.
    pub(super) fn opened(&mut self, pid: u32, descriptor: u32) -> Option<String> {
        let link = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        let text = link.to_str()?;
        if text.starts_with('/') {
            return Some(text.to_owned());
        }
        if !text.starts_with(PIPE) {
            return None;
        }
        let key = (pid, link);
        if !self.pipes.contains_key(&key) && self.pipes.len() < PIPES_MAX {
            let found = other_end(pid, &key.1);
            self.pipes.insert(key.clone(), found);
        }
        self.pipes.get(&key).cloned().flatten()
    }
}

/// The one other process that has a pipe open, in words.
fn other_end(pid: u32, link: &PathBuf) -> Option<String> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let others = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|other: &u32| *other != pid)
        .take(PROCESSES_MAX);
    let mut having = others.filter(|other| {
        let descriptors = std::fs::read_dir(format!("/proc/{other}/fd"));
        let mut descriptors = descriptors.into_iter().flatten().flatten().take(DESCRIPTORS_MAX);
        descriptors.any(|entry| std::fs::read_link(entry.path()).is_ok_and(|other| other == *link))
    });
    let (first, second) = (having.next()?, having.next());
    let name = names::comm(&Root::system(), first)?;
    Some(match second {
        None => format!("a pipe of {name} (pid {first})"),
        Some(_) => format!("a pipe of {name} (pid {first}) and others"),
    })
}

/// To where sockets send that are connected, by inode.
fn connected(table: &[Tcp]) -> HashMap<u64, SocketAddr> {
    let sends = table.iter().filter(|one| one.peer.port() != 0 && one.inode != 0);
    sends.map(|one| (one.inode, one.peer)).collect()
}

/// The peers of connections that processes have, by inode, and whether the process has made the connection: one to a port of this machine on
/// which somebody listens was made by a client.
fn connections(table: Vec<Tcp>) -> HashMap<u64, (SocketAddr, bool)> {
    let listening: Vec<u16> = table
        .iter()
        .filter(|one| one.listens)
        .map(|one| one.local.port())
        .collect();
    let connected = table.iter().filter(|one| !one.listens && one.inode != 0);
    connected
        .map(|one| (one.inode, (one.peer, !listening.contains(&one.local.port()))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::connections;
    use holdup_proc::sockets::Tcp;

    #[test]
    fn a_connection_to_a_listener_was_made_by_a_client() {
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
        assert_eq!(peers.len(), 2);
        assert_eq!(peers[&2], ("127.0.0.1:40000".parse().unwrap(), false));
        assert_eq!(peers[&3], ("127.0.0.1:5432".parse().unwrap(), true));
    }
}
