//! What a trace calls an object, as the object that a live run would have seen.
//!
//! In: a path, or what `strace -yy` writes for what has none (`pipe:[17]`, `TCP:[->10.0.0.1:80]`). Out: an [`Object`].
//! What the text does not tell (the file system, an own port) stays empty.

use holdup_evidence::{DeviceNumber, Object, ObjectKind, SocketAddress};
use std::net::SocketAddr;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_NETLINK: u16 = 16;
const SOCK_STREAM: u16 = 1;
const SOCK_DGRAM: u16 = 2;
const TCP: u16 = 6;
const UDP: u16 = 17;
/// States of `tcp(7)`.
const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const LISTEN: u8 = 10;

/// Devices that are known by their path where the trace gives no number.
const DEVICES: [(&str, u32, u32); 6] = [
    ("/dev/null", 1, 3),
    ("/dev/zero", 1, 5),
    ("/dev/random", 1, 8),
    ("/dev/urandom", 1, 9),
    ("/dev/tty", 5, 0),
    ("/dev/console", 5, 1),
];

/// File systems without a device, by where they are always mounted.
const VIRTUAL: [(&str, &str); 3] = [("/proc/", "proc"), ("/sys/", "sysfs"), ("/dev/", "devtmpfs")];

/// The object that a trace names so.
pub(super) fn object(name: &str) -> Object {
    let (name, state) = match name {
        _ if name.starts_with("connecting ") => (name.trim_start_matches("connecting "), SYN_SENT),
        _ if name.starts_with("listening ") => (name.trim_start_matches("listening "), LISTEN),
        _ => (name, ESTABLISHED),
    };
    let (path, device) = device(name);
    let kind = match device {
        Some(kind) => kind,
        None if path.starts_with('/') => ObjectKind::File,
        None => socket(name, state).unwrap_or_else(|| nameless(name)),
    };
    let path = path.starts_with('/').then(|| path.to_owned());
    let virtual_one = VIRTUAL
        .iter()
        .find(|(mount, _)| path.as_deref().is_some_and(|path| path.starts_with(mount)));
    Object {
        kind,
        path,
        inode: 0,
        device: DeviceNumber::default(),
        file_system: virtual_one.map_or_else(String::new, |(_, kind)| (*kind).to_owned()),
    }
}

/// `/dev/pts/0<char 136:0>`, or a device by its path.
fn device(name: &str) -> (&str, Option<ObjectKind>) {
    if let Some((path, rest)) = name.split_once('<') {
        let number = |kind: &str| {
            let (major, minor) = rest.strip_prefix(kind)?.trim_end_matches('>').split_once(':')?;
            Some(DeviceNumber {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            })
        };
        let kind = number("char ")
            .map(ObjectKind::CharDevice)
            .or_else(|| number("block ").map(ObjectKind::BlockDevice));
        return (path, kind);
    }
    let known = DEVICES.iter().find(|(path, ..)| *path == name);
    let terminal = name
        .strip_prefix("/dev/pts/")
        .and_then(|number| number.parse().ok());
    let number = known
        .map(|(_, major, minor)| (*major, *minor))
        .or_else(|| terminal.map(|minor| (136, minor)));
    let kind = number.map(|(major, minor)| ObjectKind::CharDevice(DeviceNumber { major, minor }));
    (name, kind)
}

fn socket(name: &str, state: u8) -> Option<ObjectKind> {
    let (transport, inside) = name.split_once(":[")?;
    let inside = inside.strip_suffix(']').unwrap_or(inside);
    if transport.starts_with("UNIX") {
        let path = inside.trim_matches('"');
        let path = if path.starts_with(['/', '@']) { path } else { "" };
        let peer = SocketAddress::Unix(path.to_owned());
        let kind = if transport == "UNIX-STREAM" {
            SOCK_STREAM
        } else {
            SOCK_DGRAM
        };
        return Some(of_kind(
            AF_UNIX,
            kind,
            0,
            0,
            SocketAddress::Unix(String::new()),
            peer,
        ));
    }
    let (kind, protocol) = match transport {
        "TCP" | "TCPv6" => (SOCK_STREAM, TCP),
        "UDP" | "UDPv6" => (SOCK_DGRAM, UDP),
        "NETLINK" => {
            return Some(of_kind(
                AF_NETLINK,
                0,
                0,
                0,
                SocketAddress::Other(AF_NETLINK),
                SocketAddress::Other(AF_NETLINK),
            ));
        }
        _ => return None,
    };
    let none = SocketAddr::from(([0, 0, 0, 0], 0));
    let (local, peer) = inside.split_once("->").unwrap_or((inside, ""));
    let local: SocketAddr = local.parse().unwrap_or(none);
    let peer: SocketAddr = peer.parse().unwrap_or(none);
    let state = if protocol == TCP { state } else { 0 };
    Some(of_kind(
        AF_INET,
        kind,
        protocol,
        state,
        SocketAddress::Inet(local),
        SocketAddress::Inet(peer),
    ))
}

fn of_kind(
    family: u16,
    kind: u16,
    protocol: u16,
    state: u8,
    local: SocketAddress,
    peer: SocketAddress,
) -> ObjectKind {
    ObjectKind::Socket {
        family,
        kind,
        protocol,
        state,
        local,
        peer,
        peer_pid: None,
    }
}

/// The kernel's name for what has none.
fn nameless(name: &str) -> ObjectKind {
    if name.starts_with("pipe:") {
        return ObjectKind::Pipe;
    }
    match name.strip_prefix("anon_inode:") {
        Some("[eventpoll]") => ObjectKind::Epoll,
        Some("[eventfd]") => ObjectKind::Eventfd,
        Some("[timerfd]") => ObjectKind::Timerfd,
        Some("[signalfd]") => ObjectKind::Signalfd,
        Some("[pidfd]") => ObjectKind::Pidfd,
        Some("inotify" | "[inotify]" | "[fanotify]") => ObjectKind::Inotify,
        Some(other) => ObjectKind::Anonymous(other.to_owned()),
        None => ObjectKind::Other(0),
    }
}

#[cfg(test)]
mod tests {
    use super::object;
    use holdup_evidence::{DeviceNumber, ObjectKind};

    #[test]
    fn names_of_a_trace_are_objects() {
        assert_eq!(object("/etc/hosts").kind, ObjectKind::File);
        let random = DeviceNumber { major: 1, minor: 8 };
        assert_eq!(
            object("/dev/random<char 1:8>").kind,
            ObjectKind::CharDevice(random)
        );
        assert_eq!(
            object("/dev/random<char 1:8>").path.as_deref(),
            Some("/dev/random")
        );
        assert_eq!(object("/dev/random").kind, ObjectKind::CharDevice(random));
        assert_eq!(object("pipe:[17]").kind, ObjectKind::Pipe);
        for (name, wanted) in [
            ("connecting TCP:[->10.0.0.1:80]", 2),
            ("listening TCP:[0.0.0.0:80]", 10),
        ] {
            let ObjectKind::Socket { state, .. } = object(name).kind else {
                panic!("{name}")
            };
            assert_eq!(state, wanted);
        }
        assert!(matches!(
            object("UNIX-STREAM:[\"/run/nscd/socket\"]").kind,
            ObjectKind::Socket { family: 1, .. }
        ));
        assert_eq!(object("").kind, ObjectKind::Other(0));
    }
}
