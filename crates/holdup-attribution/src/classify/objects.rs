//! What a wait on an object is for, and how the object is named.
//!
//! In: an [`Object`] and what was done with it. Out: a cause, where the object alone decides it, and a
//! [`Resource`]. Paths and addresses are passed on as they are: views make them printable.

use holdup_evidence::{Cause, DeviceNumber, Object, ObjectKind, SocketAddress};
use holdup_knowledge::file_systems;
use holdup_knowledge::file_systems::Backing;
use holdup_model::attributed::{Common, Disk, FdKind, Peer, Server};
use holdup_model::attributed::{Resource, ResourceKind};
use std::net::SocketAddr;

/// What was done with the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Data was awaited.
    In,
    /// Room was awaited.
    Out,
    /// A connection was made.
    Connect,
    /// A client was awaited.
    Accept,
    /// A driver was asked for something.
    Control,
}

const AF_UNIX: u16 = 1;
const AF_NETLINK: u16 = 16;
const AF_ALG: u16 = 38;
/// TCP, and its multipath kind.
const TCP_PROTOCOLS: [u16; 2] = [6, 262];
/// TCP states, `tcp(7)`.
const TCP_SYN_SENT: u8 = 2;
/// Nothing but a connection that failed leaves a socket closed while room to send is awaited.
const TCP_CLOSED: u8 = 7;
const TCP_LISTEN: u8 = 10;
/// `SOCK_STREAM`, `SOCK_DGRAM`, `SOCK_SEQPACKET`.
const SOCKET_TYPES: [(u16, &str); 4] = [(1, "stream"), (2, "dgram"), (3, "raw"), (5, "seqpacket")];

/// The ports of name servers: plain and over TLS.
const DNS_PORTS: [u16; 2] = [53, 853];
/// Multicast DNS: no server of one's own, but the whole link is asked.
const MULTICAST_DNS_PORT: u16 = 5353;
/// Sockets of local resolvers: systemd's varlink interfaces for hosts and users, nscd, nslcd (LDAP), SSSD, winbind,
/// avahi.
const RESOLVER_SOCKETS: [&str; 11] = [
    "/run/systemd/resolve/",
    "/run/systemd/userdb/",
    "/run/nscd/socket",
    "/var/run/nscd/socket",
    "/run/nslcd/socket",
    "/var/run/nslcd/socket",
    "/var/lib/sss/pipes/",
    "/run/samba/winbindd/",
    "/var/run/samba/winbindd/",
    "/run/avahi-daemon/socket",
    "/var/run/avahi-daemon/socket",
];
/// Where programs look for an entropy daemon's socket.
const ENTROPY_SOCKETS: [&str; 4] = [
    "/var/run/egd-pool",
    "/run/egd-pool",
    "/dev/egd-pool",
    "/etc/egd-pool",
];

/// `/dev/random` and the hardware generator.
const RANDOM_DEVICES: [DeviceNumber; 2] = [
    DeviceNumber { major: 1, minor: 8 },
    DeviceNumber {
        major: 10,
        minor: 183,
    },
];
const RANDOM_PATHS: [&str; 3] = ["/dev/random", "/dev/hwrng", "/dev/hw_random"];
/// Major numbers of terminals: virtual and serial, console and pty multiplexer, pty, USB and others.
const TERMINAL_MAJORS: [u32; 7] = [4, 5, 166, 188, 204, 207, 229];
const PTY_MAJORS: std::ops::RangeInclusive<u32> = 136..=143;
/// Major number of the kernel's graphics devices.
const DRM_MAJOR: u32 = 226;

/// Who serves the data of this file system, when it is no block device of this machine.
#[must_use]
pub fn served_by(file_system: &str) -> Option<Cause> {
    match file_systems::backing(file_system)? {
        Backing::Process => Some(Cause::FsFuse),
        Backing::Network => Some(Cause::FsNetwork),
        Backing::Disk | Backing::Memory | Backing::Kernel | Backing::Layers | Backing::Automount => None,
    }
}

/// Whether a file system has no device behind it, so that nothing on it waits for one (tmpfs may, for swap).
pub(super) fn is_virtual(file_system: &str) -> bool {
    file_systems::backing(file_system) == Some(Backing::Kernel)
}

/// Whether a path names a device for randomness, however it is written (`/dev/./random`).
pub(super) fn is_random_path(path: &str) -> bool {
    let plain: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    path.starts_with('/')
        && RANDOM_PATHS
            .iter()
            .any(|random| random.split('/').skip(1).eq(plain.iter().copied()))
}

/// Whether the object gives randomness: by its path, whatever has been put there, or by its number.
pub(super) fn is_random(object: &Object) -> bool {
    let by_path = object.path.as_deref().is_some_and(is_random_path);
    let socket = |address: &SocketAddress| matches!(address, SocketAddress::Unix(path) if ENTROPY_SOCKETS.contains(&path.as_str()));
    by_path
        || match &object.kind {
            ObjectKind::CharDevice(number) => RANDOM_DEVICES.contains(number),
            ObjectKind::Socket { peer, .. } => socket(peer),
            _ => false,
        }
}

/// Whether the other end of a socket resolves names.
pub(super) fn asks_for_names(object: &Object) -> bool {
    match &object.kind {
        ObjectKind::Socket {
            peer: SocketAddress::Inet(peer),
            ..
        } => {
            DNS_PORTS.contains(&peer.port())
                || (peer.port() == MULTICAST_DNS_PORT && peer.ip().is_multicast())
        }
        ObjectKind::Socket {
            peer: SocketAddress::Unix(path),
            ..
        } => RESOLVER_SOCKETS.iter().any(|socket| path.starts_with(socket)),
        _ => false,
    }
}

/// What a wait on this object is for; `None` where the object alone does not tell.
pub(super) fn cause(object: &Object, used: Use) -> Option<Cause> {
    if is_random(object) {
        return Some(Cause::RandomDevice);
    }
    Some(match &object.kind {
        ObjectKind::Pipe | ObjectKind::Fifo => Cause::IpcPipe,
        ObjectKind::Socket { .. } if used == Use::Control => return None,
        ObjectKind::Socket { .. } if asks_for_names(object) && matches!(used, Use::In | Use::Out) => {
            Cause::NetDns
        }
        ObjectKind::Socket { family: AF_UNIX, .. } => Cause::IpcUnix,
        ObjectKind::Socket {
            family: AF_NETLINK | AF_ALG,
            ..
        } => Cause::KernelWork,
        ObjectKind::Socket { .. } => match used {
            Use::In | Use::Control => Cause::NetReceive,
            Use::Out => Cause::NetSend,
            Use::Connect => Cause::NetConnect,
            Use::Accept => Cause::NetAccept,
        },
        ObjectKind::Eventfd | ObjectKind::Signalfd | ObjectKind::Inotify => Cause::IpcQueue,
        ObjectKind::Timerfd => Cause::TimerSleep,
        ObjectKind::Pidfd => Cause::ProcessChild,
        ObjectKind::Epoll => Cause::PollWait,
        ObjectKind::CharDevice(number) => char_device(*number, object.path.as_deref()),
        ObjectKind::Anonymous(name) => anonymous(name)?,
        ObjectKind::File if object.file_system == "mqueue" => Cause::IpcQueue,
        ObjectKind::File | ObjectKind::Directory | ObjectKind::BlockDevice(_) | ObjectKind::Other(_) => {
            return None;
        }
    })
}

/// What a polled object that became ready, or was awaited, is a wait for. A listening socket is awaited for
/// clients, a connecting one for its connection.
pub(super) fn polled_cause(object: &Object, used: Use) -> Option<Cause> {
    if !asks_for_names(object) {
        match tcp_state(object) {
            Some(TCP_LISTEN) => return Some(Cause::NetAccept),
            Some(TCP_SYN_SENT | TCP_CLOSED) if used == Use::Out => return Some(Cause::NetConnect),
            _ => {}
        }
    }
    cause(object, used)
}

/// The state of a TCP socket: others keep numbers of their own meaning there.
fn tcp_state(object: &Object) -> Option<u8> {
    match &object.kind {
        ObjectKind::Socket { protocol, state, .. } if TCP_PROTOCOLS.contains(protocol) => Some(*state),
        _ => None,
    }
}

/// Whether the socket was connecting when it was seen.
#[must_use]
pub fn is_connecting(object: &Object) -> bool {
    tcp_state(object) == Some(TCP_SYN_SENT)
}

/// The first of the ports that the kernel gives who connects, unless it was set otherwise. Services listen below.
const FIRST_OF_CLIENTS: u16 = 32_768;

/// Whether a client's connection was made and is over: its own port is given back, and only the client's is known.
#[must_use]
pub fn is_over(object: &Object) -> bool {
    let ports = match &object.kind {
        ObjectKind::Socket {
            local: SocketAddress::Inet(local),
            peer: SocketAddress::Inet(peer),
            ..
        } => (local.port(), peer.port()),
        _ => return false,
    };
    tcp_state(object) == Some(TCP_CLOSED) && ports.0 == 0 && ports.1 >= FIRST_OF_CLIENTS
}

/// Whether this is the same socket, seen while it was still connecting.
pub(super) fn was_connecting(before: &Object, now: &Object) -> bool {
    is_connecting(before) && before.inode == now.inode && matches!(now.kind, ObjectKind::Socket { .. })
}

fn char_device(number: DeviceNumber, path: Option<&str>) -> Cause {
    let graphics = |path: &str| {
        ["/dev/dri/", "/dev/nvidia", "/dev/kfd"]
            .iter()
            .any(|start| path.starts_with(start))
    };
    if TERMINAL_MAJORS.contains(&number.major) || PTY_MAJORS.contains(&number.major) {
        Cause::IpcTty
    } else if number.major == DRM_MAJOR || path.is_some_and(graphics) {
        Cause::GpuWait
    } else {
        Cause::DeviceWait
    }
}

/// Anonymous inodes by the kernel's name for them, in brackets or not.
fn anonymous(name: &str) -> Option<Cause> {
    let name = name.trim_start_matches("anon_inode:").trim_matches(['[', ']']);
    Some(match name {
        "io_uring" | "aio" => Cause::IoAsync,
        "fanotify" | "userfaultfd" | "seccomp notify" | "inotify" => Cause::IpcQueue,
        "timerfd" => Cause::TimerSleep,
        "sync_file" | "dma-buf" => Cause::GpuWait,
        _ if name.starts_with("kvm-vcpu") => Cause::DeviceWait,
        _ => return None,
    })
}

/// A resource with a name and nothing else.
pub(super) fn named(kind: ResourceKind, name: impl Into<String>) -> Resource {
    Resource::named(kind, name)
}

/// The object as a report names it.
pub(super) fn resource(object: &Object) -> Resource {
    let path = |otherwise: &str| object.path.clone().unwrap_or_else(|| otherwise.to_owned());
    let kind_of = |resource: Resource, kind| resource.with(|facts| facts.fd_kind = Some(kind));
    let inode = object.inode;
    match &object.kind {
        ObjectKind::File => on_disk(
            named(ResourceKind::File, path("a deleted or unnamed file")),
            object,
        ),
        ObjectKind::Directory => on_disk(named(ResourceKind::File, path("a directory")), object),
        ObjectKind::BlockDevice(number) => {
            let resource = named(ResourceKind::Device, path("a block device"));
            resource.with(|facts| facts.device = Some(Disk::Number(*number)))
        }
        ObjectKind::CharDevice(number) => {
            let resource = named(ResourceKind::Device, path("a character device"));
            let resource = resource.with(|facts| facts.character_device = Some(*number));
            kind_of(resource, FdKind::CharacterDevice)
        }
        ObjectKind::Pipe => {
            let resource = named(ResourceKind::File, format!("pipe:[{inode}]"));
            kind_of(resource.with(|facts| facts.inode = Some(inode)), FdKind::Pipe)
        }
        ObjectKind::Fifo => {
            let resource = named(ResourceKind::File, path("a FIFO"));
            kind_of(resource.with(|facts| facts.inode = Some(inode)), FdKind::Fifo)
        }
        ObjectKind::Socket { .. } => kind_of(socket(object), FdKind::Socket),
        ObjectKind::Epoll => kind_of(named(ResourceKind::Kernel, "epoll"), FdKind::Epoll),
        ObjectKind::Eventfd => kind_of(named(ResourceKind::Kernel, "eventfd"), FdKind::Eventfd),
        ObjectKind::Timerfd => kind_of(named(ResourceKind::Kernel, "timerfd"), FdKind::Timerfd),
        ObjectKind::Signalfd => kind_of(named(ResourceKind::Kernel, "signalfd"), FdKind::Signalfd),
        ObjectKind::Inotify => kind_of(named(ResourceKind::Kernel, "inotify"), FdKind::Inotify),
        ObjectKind::Pidfd => kind_of(Resource::of(Common::Child), FdKind::Pidfd),
        ObjectKind::Anonymous(name) => kind_of(named(ResourceKind::Kernel, name.clone()), FdKind::Anonymous),
        ObjectKind::Other(_) => named(ResourceKind::Kernel, path("an object without a name")),
    }
}

fn on_disk(resource: Resource, object: &Object) -> Resource {
    resource.with(|facts| {
        facts.device = Some(Disk::Number(object.device));
        facts.file_system = Some(object.file_system.clone());
    })
}

fn socket(object: &Object) -> Resource {
    let ObjectKind::Socket {
        family,
        kind,
        protocol,
        local,
        peer,
        peer_pid,
        ..
    } = &object.kind
    else {
        return Resource::default();
    };
    let socket_type = SOCKET_TYPES
        .iter()
        .find(|(number, _)| number == kind)
        .map_or("socket", |(_, name)| *name);
    if *family == AF_UNIX {
        return unix_socket(object.inode, local, peer, *peer_pid, socket_type);
    }
    let transport = protocol_name(*protocol, socket_type);
    let SocketAddress::Inet(own) = local else {
        if *family == 0 {
            return Resource::of(Common::UnseenSocket);
        }
        return named(ResourceKind::Socket, format!("{} socket", family_name(*family)));
    };
    let other = match peer {
        SocketAddress::Inet(other) if other.port() != 0 || !other.ip().is_unspecified() => Some(*other),
        _ => None,
    };
    let name = match other {
        Some(other) => format!("{} ({transport})", shown(other)),
        None if tcp_state(object) == Some(TCP_LISTEN) => format!("listening on {}", shown(*own)),
        None => format!("{transport} socket on {}", shown(*own)),
    };
    named(ResourceKind::Socket, name).with(|facts| {
        facts.protocol = Some(transport.to_owned());
        facts.local = Some(shown(*own));
        facts.port = Some(other.map_or(own.port(), |other| other.port()));
        facts.peer = other.map(|other| Peer::Address(shown(other)));
        facts.server = other
            .filter(|_| asks_for_names(object))
            .map(|other| Server::Address(other.ip().to_canonical()));
    })
}

/// An address as people write it: an IPv4 address inside an IPv6 one is shown as what it is.
fn shown(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn unix_socket(
    inode: u64,
    local: &SocketAddress,
    peer: &SocketAddress,
    peer_pid: Option<u32>,
    socket_type: &str,
) -> Resource {
    let path = |address: &SocketAddress| match address {
        SocketAddress::Unix(path) if !path.is_empty() => Some(path.clone()),
        _ => None,
    };
    let name = path(peer)
        .or_else(|| path(local))
        .or_else(|| peer_pid.map(|pid| format!("unix socket of pid {pid}")));
    let name = name.unwrap_or_else(|| format!("socket:[{inode}]"));
    named(ResourceKind::Socket, name).with(|facts| {
        facts.protocol = Some(format!("unix {socket_type}"));
        facts.inode = Some(inode);
        facts.peer_pid = peer_pid;
    })
}

fn protocol_name(protocol: u16, otherwise: &'static str) -> &'static str {
    match protocol {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        58 => "icmpv6",
        132 => "sctp",
        136 => "udplite",
        262 => "mptcp",
        _ => otherwise,
    }
}

/// The name of a socket's family, for those that have no addresses here.
fn family_name(family: u16) -> String {
    let name = match family {
        AF_NETLINK => "netlink",
        17 => "packet",
        29 => "CAN",
        31 => "Bluetooth",
        AF_ALG => "kernel crypto",
        40 => "vsock",
        44 => "XDP",
        _ => return format!("family {family}"),
    };
    name.to_owned()
}
