//! Who is at the other end of a socket.
//!
//! In: waits of all hosts. Out: for a wait on an address of another host the process there, and how that is known. A host has the addresses that its own
//! sockets have. Of two ways to know the process, the same connection seen from both ends comes first; else it must be the only program
//! of that host that serves this address and port. Anything that fits two is left alone.

use holdup_evidence::Cause;
use holdup_model::attributed::{AwaitedClients, Peer};
use holdup_model::report::{ReachedBy, Wait};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Networks that programs for containers and virtual machines make on each host anew, with the same addresses, by default: Docker's pools, podman,
/// LXC, libvirt, and Kubernetes' small distributions. First address and bits.
const OF_EACH_HOST: [(Ipv4Addr, u32); 11] = [
    (Ipv4Addr::new(10, 42, 0, 0), 15),
    (Ipv4Addr::new(10, 96, 0, 0), 12),
    (Ipv4Addr::new(10, 244, 0, 0), 16),
    (Ipv4Addr::new(172, 17, 0, 0), 16),
    (Ipv4Addr::new(172, 18, 0, 0), 15),
    (Ipv4Addr::new(172, 20, 0, 0), 14),
    (Ipv4Addr::new(172, 24, 0, 0), 13),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(10, 88, 0, 0), 15),
    (Ipv4Addr::new(10, 0, 3, 0), 24),
    (Ipv4Addr::new(100, 115, 92, 0), 23),
];

/// What carries the bytes; ports of one are not those of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    fn of(wait: &Wait) -> Option<Transport> {
        match wait.resource.detail.protocol.as_deref()? {
            "tcp" | "mptcp" => Some(Transport::Tcp),
            "udp" => Some(Transport::Udp),
            _ => None,
        }
    }
}

/// The process at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server<'a> {
    pub(super) host: &'a str,
    pub(super) process: &'a str,
    pub(super) pids: BTreeSet<u32>,
    /// Its threads that are known to have this connection, or to serve connections to this address: by process and thread.
    pub(super) serving: BTreeSet<(u32, u32)>,
    pub(super) at: SocketAddr,
    pub(super) by: ReachedBy,
}

/// Who has an end of a socket: by process its name, and its threads that serve there.
#[derive(Debug, Default)]
struct Ends<'a>(BTreeMap<u32, (&'a str, BTreeSet<u32>)>);

impl<'a> Ends<'a> {
    fn add(&mut self, wait: &'a Wait, serves: bool) {
        let asker = &wait.asker;
        let process = self.0.entry(asker.pid);
        let (_, serving) = process.or_insert((&asker.process, BTreeSet::new()));
        if serves {
            serving.insert(asker.tid);
        }
    }

    fn join(&mut self, other: &Ends<'a>) {
        for (pid, (name, tids)) in &other.0 {
            let (_, serving) = self.0.entry(*pid).or_insert((name, BTreeSet::new()));
            serving.extend(tids);
        }
    }

    /// As the one that is waited for, of the processes that can be meant; `None` of none, and of programs of several names.
    fn server(
        &self,
        host: &'a str,
        at: SocketAddr,
        by: ReachedBy,
        meant: impl Fn(u32) -> bool,
    ) -> Option<Server<'a>> {
        let meant = self.0.iter().filter(|(pid, _)| meant(**pid));
        let names: BTreeSet<&str> = meant.clone().map(|(_, (name, _))| *name).collect();
        let mut names = names.into_iter();
        let (Some(process), None) = (names.next(), names.next()) else {
            return None;
        };
        let threads = |(pid, (_, tids)): (&u32, &(&str, BTreeSet<u32>))| {
            let pid = *pid;
            tids.iter().map(move |tid| (pid, *tid)).collect::<Vec<_>>()
        };
        Some(Server {
            host,
            process,
            pids: meant.clone().map(|(pid, _)| *pid).collect(),
            serving: meant.flat_map(threads).collect(),
            at,
            by,
        })
    }
}

/// All sockets that waits of hosts tell of.
#[derive(Debug, Default)]
pub(super) struct Sockets<'a> {
    /// Whose an address is; `None`: of several hosts, and so of nobody.
    owners: BTreeMap<IpAddr, Option<&'a str>>,
    /// Addresses that sockets of a process have, and so its network namespace: host and process.
    addresses: BTreeMap<(&'a str, u32), BTreeSet<IpAddr>>,
    /// Connections: the host, its own end, the other one.
    connections: BTreeMap<(&'a str, Transport, SocketAddr, SocketAddr), Ends<'a>>,
    /// Where clients are served: the host and the port, and at which of its addresses.
    served: BTreeMap<(&'a str, Transport, u16), BTreeMap<IpAddr, Ends<'a>>>,
}

impl<'a> Sockets<'a> {
    pub(super) fn of(waits: &'a [Wait]) -> Sockets<'a> {
        let mut all = Sockets::default();
        for wait in waits {
            all.add(wait);
        }
        all
    }

    fn add(&mut self, wait: &'a Wait) {
        let Some(host) = wait.host.as_deref() else {
            return;
        };
        if let Some(clients) = AwaitedClients::read(&wait.resource.name) {
            if let Ok(at) = clients.at().parse() {
                let serves = matches!(clients, AwaitedClients::Request(_));
                self.serves(host, Transport::Tcp, canonical(at), wait, serves);
            }
            return;
        }
        let (Some(local), Some(transport)) = (wait.resource.detail.local, Transport::of(wait)) else {
            return;
        };
        let local = canonical(local);
        match peer(wait) {
            Some(peer) => {
                self.owned(host, wait.asker.pid, local.ip());
                let ends = self.connections.entry((host, transport, local, peer));
                ends.or_default().add(wait, true);
            }
            // Of one whose other end has a name, nothing is known but that.
            None if wait.resource.detail.peer.is_some() => self.owned(host, wait.asker.pid, local.ip()),
            None => self.serves(host, transport, local, wait, false),
        }
    }

    fn serves(&mut self, host: &'a str, transport: Transport, at: SocketAddr, wait: &'a Wait, serves: bool) {
        self.owned(host, wait.asker.pid, at.ip());
        let port = self.served.entry((host, transport, at.port())).or_default();
        port.entry(at.ip()).or_default().add(wait, serves);
    }

    fn owned(&mut self, host: &'a str, pid: u32, address: IpAddr) {
        if is_of_one_host(address) {
            self.addresses.entry((host, pid)).or_default().insert(address);
            let owner = self.owners.entry(address).or_insert(Some(host));
            *owner = owner.filter(|owner| *owner == host);
        }
    }

    /// The process of another host that a wait is for.
    pub(super) fn server(&self, wait: &'a Wait) -> Option<Server<'a>> {
        let (at, transport) = (peer(wait)?, Transport::of(wait)?);
        if !is_joined(wait.cause) || wait.asker.pid == 0 {
            return None;
        }
        let host = (*self.owners.get(&at.ip())?)?;
        if wait.host.as_deref() == Some(host) {
            return None;
        }
        let local = wait.resource.detail.local.map(canonical);
        let both = local.and_then(|local| self.connections.get(&(host, transport, at, local)));
        if let Some(ends) = both {
            return ends.server(host, at, ReachedBy::FourTuple, |_| true);
        }
        // Where each host has such a network of its own, an address in it is of the host that asks.
        if is_of_each_host(at.ip()) && local.is_none_or(|local| is_of_each_host(local.ip())) {
            return None;
        }
        self.at_port(host, transport, at)
    }

    /// Who serves an address and port. A listener on all addresses serves those of its own network namespace, and a host may have many: it
    /// counts if another socket of the same process has the address.
    fn at_port(&self, host: &'a str, transport: Transport, at: SocketAddr) -> Option<Server<'a>> {
        let port = self.served.get(&(host, transport, at.port()))?;
        let by = ReachedBy::AddressAndPort;
        if let Some(exact) = port.get(&at.ip()) {
            return exact.server(host, at, by, |_| true);
        }
        let has_it = |pid: u32| {
            let own = self.addresses.get(&(host, pid));
            own.is_some_and(|own| own.contains(&at.ip()))
        };
        // One on all addresses of IPv4, and one of IPv6, are of one program mostly.
        let fits = |address: &IpAddr| address.is_unspecified() && (address.is_ipv6() || at.is_ipv4());
        let mut all = Ends::default();
        let listeners = port.iter().filter(|(address, _)| fits(address));
        listeners.for_each(|(_, ends)| all.join(ends));
        all.server(host, at, by, has_it)
    }
}

/// Whether such a wait is for whoever is at the other end of its socket.
pub(super) fn is_joined(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::NetReceive
            | Cause::NetSend
            | Cause::NetConnect
            | Cause::NetDns
            | Cause::NetTls
            | Cause::PollWait
    )
}

/// The other end, where it has an address.
pub(super) fn peer(wait: &Wait) -> Option<SocketAddr> {
    match &wait.resource.detail.peer {
        Some(Peer::Address(address)) => Some(canonical(*address)),
        _ => None,
    }
}

/// An IPv4 address inside an IPv6 one is that address. Scope and flow say nothing to another host.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether an address can tell one host from another.
fn is_of_one_host(address: IpAddr) -> bool {
    let near = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(near || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

/// Whether it lies in a network that each host may have for itself.
fn is_of_each_host(address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else {
        return false;
    };
    OF_EACH_HOST.iter().any(|(first, bits)| {
        let mask = u32::MAX << (u32::BITS - bits);
        address.to_bits() & mask == first.to_bits() & mask
    })
}
