//! Which processes serve others: they have sockets that listen, or connections that were accepted.
//!
//! In: processes. Out: those that serve, and where, as the tables of sockets and the links in `/proc/PID/fd` show.

use super::moment::Moment;
use holdup_evidence::{Serving, SocketAddress};
use holdup_proc::sockets::Sockets;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// What of a network namespace matters here.
#[derive(Debug, Default)]
struct Namespace {
    /// Sockets that listen or were accepted, by inode.
    serving: HashSet<u64>,
}

/// Looks at these processes.
pub(super) fn look(pids: &[u32], moment: &mut Moment) -> Serving {
    let mut namespaces: HashMap<Option<String>, Namespace> = HashMap::new();
    let mut found = Serving::default();
    for pid in pids {
        let namespace = namespaces
            .entry(moment.namespace(*pid))
            .or_insert_with(|| namespace(&moment.sockets(*pid), &mut found.addresses));
        let serves = moment
            .ends(*pid)
            .is_some_and(|ends| !ends.sockets.is_disjoint(&namespace.serving));
        if serves {
            found.processes.push(*pid);
        }
    }
    found
}

fn namespace(sockets: &Sockets, addresses: &mut Vec<SocketAddress>) -> Namespace {
    let listening = sockets.tcp.iter().filter(|socket| socket.listens);
    let listening: Vec<SocketAddr> = listening.map(|socket| socket.local).collect();
    let ports: HashSet<u16> = listening.iter().map(SocketAddr::port).collect();
    let listening_paths = sockets.unix.values().filter(|socket| socket.listens);
    let paths: HashSet<&str> = listening_paths.map(|socket| socket.path.as_str()).collect();
    let tcp = sockets
        .tcp
        .iter()
        .filter(|socket| ports.contains(&socket.local.port()))
        .map(|socket| socket.inode);
    let unix = sockets
        .unix
        .iter()
        .filter(|(_, socket)| paths.contains(socket.path.as_str()))
        .map(|(inode, _)| *inode);
    let serving = tcp.chain(unix).filter(|inode| *inode != 0).collect();
    addresses.extend(listening.into_iter().map(SocketAddress::Inet));
    addresses.extend(paths.into_iter().map(|path| SocketAddress::Unix(path.to_owned())));
    Namespace { serving }
}

#[cfg(test)]
mod tests {
    use super::look;
    use holdup_evidence::SocketAddress;
    use std::net::TcpListener;

    #[test]
    fn a_listener_serves() {
        let own = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = SocketAddress::Inet(listener.local_addr().unwrap());
        let found = look(&[own], &mut super::Moment::now());
        assert_eq!(found.processes, [own]);
        assert!(found.addresses.contains(&address));
    }
}
