//! The other ends of connections and pipes that tasks wait for.
//!
//! In: a process and a descriptor of it. Out: the peer of the TCP connection that it is, or what else it is open on. The tables of connections are read once for each
//! network namespace, when observation ends.

use super::goroutines::inode;
use super::programs;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::sockets::{self, Tcp};
use holdup_proc::{Root, names};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Network namespaces whose tables are read; each may have some fifty thousand connections.
const TABLES_MAX: usize = 4;

/// Processes, and descriptors of each, that are looked through for who has the other end of something; and all of them together.
const PROCESSES_MAX: usize = 4_096;
const DESCRIPTORS_MAX: usize = 1_024;
const ALL_MAX: usize = 65_536;

/// Unix sockets whose peers the kernel is asked for.
const UNIX_MAX: usize = 256;

/// What the kernel calls a pipe that has no name, and a socket.
const PIPE: &str = "pipe:[";
const SOCKET: &str = "socket:[";

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// Processes by what they have open: the text of the link.
    open: Option<HashMap<String, Vec<u32>>>,
    names: HashMap<u32, Option<String>>,
    tables: HashMap<Option<String>, Connections>,
    datagrams: HashMap<Option<String>, HashMap<u64, SocketAddr>>,
    unix: HashMap<Option<String>, HashMap<u64, String>>,
    asked: usize,
}

/// The TCP connections of a network namespace.
#[derive(Debug, Default)]
struct Connections {
    /// By inode: the other end, and whether the process has made the connection.
    by_inode: HashMap<u64, (SocketAddr, bool)>,
    /// The inode of the other end, where it is on this machine: that of a connection, else that of a listener which has not accepted it.
    other_ends: HashMap<u64, u64>,
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

    fn table(&mut self, pid: u32) -> Option<&Connections> {
        let root = Root::system();
        let namespace = names::network_namespace(&root, pid);
        if !self.tables.contains_key(&namespace) && self.tables.len() >= TABLES_MAX {
            return None;
        }
        let read = || connections(&sockets::tcp_of(&root, pid));
        Some(self.tables.entry(namespace).or_insert_with(read))
    }

    fn connection(&mut self, pid: u32, descriptor: u32) -> Option<(SocketAddr, bool)> {
        let inode = inode(pid, descriptor)?;
        self.table(pid)?.by_inode.get(&inode).copied()
    }

    /// The process of this machine that has the other end of a TCP connection, in words.
    pub(super) fn of_process(&mut self, pid: u32, descriptor: u32) -> Option<String> {
        let inode = inode(pid, descriptor)?;
        let table = self.table(pid)?;
        let (peer, _) = *table.by_inode.get(&inode)?;
        let other = *table.other_ends.get(&inode)?;
        let process = self.having(pid, &format!("{SOCKET}{other}]"))?;
        Some(format!("{peer} (tcp) of {process}"))
    }

    /// What a descriptor is open on, if that is a file with a name, or a pipe or Unix socket whose other end a process has.
    pub(super) fn opened(&mut self, pid: u32, descriptor: u32) -> Option<String> {
        let link = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        let text = link.to_str()?;
        if text.starts_with('/') {
            return Some(text.to_owned());
        }
        if text.starts_with(PIPE) {
            return self
                .having(pid, text)
                .map(|process| format!("a pipe of {process}"));
        }
        self.unix_peer(pid, text.strip_prefix(SOCKET)?.strip_suffix(']')?.parse().ok()?)
    }

    /// The other end of a Unix socket: its path and its process.
    fn unix_peer(&mut self, pid: u32, inode: u64) -> Option<String> {
        let root = Root::system();
        let namespace = names::network_namespace(&root, pid);
        // The kernel tells of the sockets of one's own network.
        if namespace != names::network_namespace(&root, std::process::id()) || self.asked >= UNIX_MAX {
            return None;
        }
        self.asked += 1;
        let other = unix_peers::of(inode).filter(|other| *other != 0)?;
        let paths = self.unix.entry(namespace).or_insert_with(|| {
            let known = sockets::without_tcp(&root, pid).unix.into_iter();
            known.map(|(inode, one)| (inode, one.path)).collect()
        });
        let path = paths.get(&other).cloned();
        let process = self.having(pid, &format!("{SOCKET}{other}]"));
        match (path, process) {
            (Some(path), Some(process)) => Some(format!("{path} of {process}")),
            (Some(path), None) => Some(path),
            (None, process) => Some(format!("a Unix socket of {}", process?)),
        }
    }

    /// The one other process that has this open, in words.
    fn having(&mut self, pid: u32, link: &str) -> Option<String> {
        let open = self.open.get_or_insert_with(all_open);
        let others: Vec<u32> = open
            .get(link)?
            .iter()
            .copied()
            .filter(|other| *other != pid)
            .collect();
        let first = *others.first()?;
        let name = self.names.entry(first).or_insert_with(|| named(first)).clone()?;
        Some(match others.len() {
            1 => format!("{name} (pid {first})"),
            _ => format!("{name} (pid {first}) and others"),
        })
    }
}

/// A process by what a person knows: of an interpreter its script.
fn named(pid: u32) -> Option<String> {
    let script = programs::look(std::iter::once(&pid)).pop();
    match script {
        Some(program) => Some(program.name),
        None => names::comm(&Root::system(), pid),
    }
}

/// Who has which pipes and sockets open.
fn all_open() -> HashMap<String, Vec<u32>> {
    let mut open: HashMap<String, Vec<u32>> = HashMap::new();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return open;
    };
    let pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut left = ALL_MAX;
    for pid in pids.take(PROCESSES_MAX) {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        for entry in descriptors.flatten().take(DESCRIPTORS_MAX.min(left)) {
            left -= 1;
            let Ok(link) = std::fs::read_link(entry.path()) else {
                continue;
            };
            let Some(text) = link
                .to_str()
                .filter(|text| text.starts_with(PIPE) || text.starts_with(SOCKET))
            else {
                continue;
            };
            let pids = open.entry(text.to_owned()).or_default();
            if pids.last() != Some(&pid) {
                pids.push(pid);
            }
        }
    }
    open
}

/// To where sockets send that are connected, by inode.
fn connected(table: &[Tcp]) -> HashMap<u64, SocketAddr> {
    let sends = table.iter().filter(|one| one.peer.port() != 0 && one.inode != 0);
    sends.map(|one| (one.inode, one.peer)).collect()
}

/// The connections that processes have: one to a port of this machine on which somebody listens was made by a client.
fn connections(table: &[Tcp]) -> Connections {
    let listening: HashMap<u16, u64> = table
        .iter()
        .filter(|one| one.listens)
        .map(|one| (one.local.port(), one.inode))
        .collect();
    let connected = || table.iter().filter(|one| !one.listens && one.inode != 0);
    let by_ends: HashMap<(SocketAddr, SocketAddr), u64> = connected()
        .map(|one| ((one.local, one.peer), one.inode))
        .collect();
    let other_end = |one: &Tcp| {
        let accepted = by_ends.get(&(one.peer, one.local));
        let listens = || {
            listening
                .get(&one.peer.port())
                .filter(|_| one.peer.ip().is_loopback())
        };
        accepted.or_else(listens).copied().filter(|inode| *inode != 0)
    };
    Connections {
        by_inode: connected()
            .map(|one| (one.inode, (one.peer, !listening.contains_key(&one.local.port()))))
            .collect(),
        other_ends: connected()
            .filter_map(|one| Some((one.inode, other_end(one)?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::connections;
    use holdup_proc::sockets::Tcp;

    fn tcp(local: &str, peer: &str, listens: bool, inode: u64) -> Tcp {
        Tcp {
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
            listens,
            knocks: false,
            waiting: 0,
            unread: 0,
            unsent: 0,
            probes: false,
            inode,
        }
    }

    #[test]
    fn a_connection_to_a_listener_was_made_by_a_client() {
        let found = connections(&[
            tcp("0.0.0.0:80", "0.0.0.0:0", true, 1),
            tcp("127.0.0.1:80", "127.0.0.1:40000", false, 2),
            tcp("127.0.0.1:40001", "127.0.0.1:5432", false, 3),
            tcp("127.0.0.1:40002", "127.0.0.1:5432", false, 0),
        ]);
        let peers = found.by_inode;
        assert_eq!(peers.len(), 2);
        assert_eq!(peers[&2], ("127.0.0.1:40000".parse().unwrap(), false));
        assert_eq!(peers[&3], ("127.0.0.1:5432".parse().unwrap(), true));
        assert!(found.other_ends.is_empty());
    }

    #[test]
    fn the_other_end_is_the_accepted_connection_or_else_the_listener() {
        let found = connections(&[
            tcp("127.0.0.1:80", "0.0.0.0:0", true, 1),
            tcp("127.0.0.1:80", "127.0.0.1:40000", false, 2),
            tcp("127.0.0.1:40000", "127.0.0.1:80", false, 3),
            // Nobody has accepted it: the queue's end has no inode.
            tcp("127.0.0.1:80", "127.0.0.1:40001", false, 0),
            tcp("127.0.0.1:40001", "127.0.0.1:80", false, 4),
            tcp("10.0.0.1:40002", "10.0.0.2:80", false, 5),
        ]);
        assert_eq!(
            (
                found.other_ends.get(&3),
                found.other_ends.get(&4),
                found.other_ends.get(&5)
            ),
            (Some(&2), Some(&1), None)
        );
    }
}
