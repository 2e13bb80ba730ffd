//! Name servers of this machine that were asked, and whom they ask in turn.
//!
//! The problem: most programs ask a name server beside them, which asks another one: who does not answer is at the end. In: the addresses at
//! which answers were awaited, and the process that awaited them. Out: who listens at each, as far as that is in the same network namespace,
//! and to where its sockets are connected that it asks on, else whom its arguments name. A server that asks from unconnected sockets, and read
//! from a file whom, does not show it.

use super::behind::Readers;
use super::moment::Moment;
use super::sessions::STOPPED;
use holdup_evidence::facts::{NameServer, QueuedBytes};
use holdup_knowledge::name_servers;
use holdup_proc::descriptors::Open;
use holdup_proc::sockets::Tcp;
use holdup_proc::{Root, names, titles};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// Servers one behind another that are followed.
const MAX_HOPS: usize = 4;

/// Servers that were asked themselves.
const MAX_ASKED: usize = 4;

/// Ports at which names are asked for, beside the port at which the server itself was asked: in the clear, and with TLS.
const PORTS: [u16; 2] = [53, 853];

/// Follows these servers, asked by that process. Those of other machines are left out.
pub(super) fn look(pid: u32, asked: &BTreeSet<SocketAddr>, moment: &mut Moment) -> Vec<NameServer> {
    let mut found: Vec<NameServer> = Vec::new();
    for first in asked.iter().take(MAX_ASKED) {
        let mut next = Some(*first);
        for _ in 0..MAX_HOPS {
            let Some(address) = next.filter(|at| found.iter().all(|known| known.address != *at)) else {
                break;
            };
            let Some(server) = server(pid, address, moment) else {
                break;
            };
            next = server.asks;
            found.push(server);
        }
    }
    found
}

/// Who listens at an address of the namespace that a process is in.
fn server(pid: u32, address: SocketAddr, moment: &mut Moment) -> Option<NameServer> {
    // Of another address nobody knows here whether it is this machine's.
    if !address.ip().is_loopback() {
        return None;
    }
    let sockets = moment.sockets(pid);
    let at = |one: &&Tcp| {
        let ip = one.local.ip().to_canonical();
        let same = ip == address.ip().to_canonical() || ip.is_unspecified();
        one.inode != 0 && one.peer.port() == 0 && one.local.port() == address.port() && same
    };
    let all: Vec<Tcp> = sockets.udp.iter().filter(at).copied().collect();
    let wanted: HashSet<Open> = all.iter().map(|one| Open::Socket(one.inode)).collect();
    if wanted.is_empty() {
        return Some(NameServer {
            address,
            ..NameServer::default()
        });
    }
    let holders: HashMap<Open, Vec<u32>> = moment.holders(&wanted);
    let owner = holders.values().flatten().min().copied();
    let unread = all.iter().map(|one| u64::from(one.unread)).sum();
    Some(NameServer {
        address,
        pid: owner,
        process: owner
            .and_then(|pid| names::comm(&moment.root, pid))
            .unwrap_or_default(),
        stopped: owner.is_some_and(|pid| names::state(&moment.root, pid) == Some(STOPPED)),
        unread: Some(QueuedBytes(unread)),
        asks: owner.and_then(|owner| asks(owner, address, moment)),
    })
}

/// To where the sockets are connected that a server asks on: most of them.
fn asks(server: u32, own: SocketAddr, moment: &mut Moment) -> Option<SocketAddr> {
    let ends = moment.ends(server)?;
    let sockets = moment.sockets(server);
    let mine = |one: &&Tcp| !one.listens && one.peer.port() != 0 && ends.sockets.contains(&one.inode);
    let udp = sockets.udp.iter().filter(mine);
    // What it was asked by TCP is at its own port.
    let by_tcp = |one: &&Tcp| mine(one) && one.local.port() != own.port() && PORTS.contains(&one.peer.port());
    let mut by_peer: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for one in udp.chain(sockets.tcp.iter().filter(by_tcp)) {
        *by_peer.entry(one.peer).or_default() += 1;
    }
    let most = by_peer.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(peer, _)| peer).or_else(|| listed(server))
}

/// Whom a server was started to ask, as its arguments say. Reading them can block, so a child does it.
fn listed(server: u32) -> Option<SocketAddr> {
    let root = Root::system();
    let name = names::comm(&root, server)?;
    let mut readers: Readers<u32, Option<Vec<String>>> =
        Readers::new(|| Box::new(|pid| titles::arguments(&Root::system(), pid)));
    let arguments = readers.ask(server, server).flatten()?;
    let asked = name_servers::forwards_to(&name, arguments.iter().map(String::as_str));
    asked.first().copied()
}

#[cfg(test)]
mod tests {
    use super::{Moment, look};
    use std::collections::BTreeSet;
    use std::net::UdpSocket;

    #[test]
    fn a_server_is_told_with_what_it_has_not_read() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(address).unwrap();
        client.send(b"who is it?").unwrap();
        let own = std::process::id();
        let asked = BTreeSet::from([address]);
        let found = look(own, &asked, &mut Moment::now());
        assert_eq!(found.len(), 1);
        assert!(found[0].unread.is_some_and(|unread| unread.0 > 0), "{found:?}");
        let away = BTreeSet::from(["192.0.2.53:53".parse().unwrap()]);
        assert_eq!(look(own, &away, &mut Moment::now()), []);
    }
}
