//! What a descriptor stood for, from the record that describes it. Every name and address in it is hostile.

use super::text;
use crate::decode::RawEvent;
use crate::skeleton::types as wire;
use holdup_evidence::{DeviceNumber, Object, ObjectId, ObjectKind, SocketAddress};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A dev_t as the kernel has it inside: 12 bits major, 20 bits minor.
fn device(raw: u32) -> DeviceNumber {
    DeviceNumber {
        major: raw >> 20,
        minor: raw & 0xf_ffff,
    }
}

pub(super) fn decode(raw: &wire::holdup_object) -> RawEvent {
    const S_IFMT: u32 = libc::S_IFMT;
    const PIPEFS_MAGIC: u64 = 0x5049_5045;
    const SOCKFS_MAGIC: u64 = 0x534F_434B;
    let path = path(raw);
    let name = path
        .as_deref()
        .map(|path| path.trim_start_matches('/').to_owned())
        .unwrap_or_default();
    let mut keep_path = true;
    let kind = match raw.mode & S_IFMT {
        libc::S_IFSOCK if raw.magic == SOCKFS_MAGIC => {
            keep_path = false;
            socket(raw)
        }
        libc::S_IFREG => ObjectKind::File,
        libc::S_IFDIR => ObjectKind::Directory,
        libc::S_IFBLK => ObjectKind::BlockDevice(device(raw.rdev)),
        libc::S_IFCHR => ObjectKind::CharDevice(device(raw.rdev)),
        libc::S_IFIFO if raw.magic == PIPEFS_MAGIC => {
            keep_path = false;
            ObjectKind::Pipe
        }
        libc::S_IFIFO => ObjectKind::Fifo,
        _ if name.starts_with('[') => {
            keep_path = false;
            anonymous(&name)
        }
        _ => ObjectKind::Other((raw.mode & S_IFMT) as u16),
    };
    RawEvent::Object {
        id: ObjectId(raw.id),
        object: Object {
            kind,
            path: path.filter(|_| keep_path),
            inode: raw.inode,
            device: device(raw.device),
            file_system: text(&raw.file_system),
        },
        in_file_system: raw.names_in_file_system != 0,
        peer_inode: (raw.peer_inode != 0).then_some(raw.peer_inode),
    }
}

/// The kernel's names for its anonymous inodes.
fn anonymous(name: &str) -> ObjectKind {
    match name {
        "[eventpoll]" => ObjectKind::Epoll,
        "[eventfd]" => ObjectKind::Eventfd,
        "[timerfd]" => ObjectKind::Timerfd,
        "[signalfd]" => ObjectKind::Signalfd,
        "[pidfd]" => ObjectKind::Pidfd,
        "inotify" | "[inotify]" | "[fanotify]" => ObjectKind::Inotify,
        other => ObjectKind::Anonymous(other.to_owned()),
    }
}

/// Components come from the leaf up.
fn path(raw: &wire::holdup_object) -> Option<String> {
    let used = raw.names.get(..raw.names_len as usize)?;
    let mut components: Vec<String> = used
        .split(|byte| *byte == 0)
        .map(text)
        .filter(|name| !name.is_empty())
        .collect();
    if components.is_empty() {
        return None;
    }
    components.retain(|name| name != "/");
    components.reverse();
    let mut path = String::new();
    if raw.names_truncated != 0 {
        path.push('…');
    }
    for component in &components {
        path.push('/');
        path.push_str(component);
    }
    if path.is_empty() {
        path.push('/');
    }
    Some(path)
}

fn socket(raw: &wire::holdup_object) -> ObjectKind {
    let family = i32::from(raw.family);
    let (local, peer) = match family {
        libc::AF_INET => (
            inet(
                Ipv4Addr::new(raw.local[0], raw.local[1], raw.local[2], raw.local[3]).into(),
                raw.local_port,
            ),
            inet(
                Ipv4Addr::new(raw.peer[0], raw.peer[1], raw.peer[2], raw.peer[3]).into(),
                raw.peer_port,
            ),
        ),
        libc::AF_INET6 => (
            inet(Ipv6Addr::from(raw.local).to_canonical(), raw.local_port),
            inet(Ipv6Addr::from(raw.peer).to_canonical(), raw.peer_port),
        ),
        libc::AF_UNIX => (
            SocketAddress::Unix(unix(&raw.local_unix, raw.local_unix_len)),
            SocketAddress::Unix(unix(&raw.peer_unix, raw.peer_unix_len)),
        ),
        _ => (SocketAddress::Other(raw.family), SocketAddress::Other(raw.family)),
    };
    ObjectKind::Socket {
        family: raw.family,
        kind: raw.kind,
        protocol: raw.protocol,
        state: raw.state as u8,
        local,
        peer,
        peer_pid: (raw.peer_pid != 0).then_some(raw.peer_pid),
    }
}

fn inet(address: IpAddr, port: u16) -> SocketAddress {
    SocketAddress::Inet(SocketAddr::new(address, port))
}

/// A path ends at its NUL; an abstract name begins with one and may hold more.
fn unix(raw: &[i8], len: u32) -> String {
    let Some(used) = raw.get(..len as usize) else {
        return String::new();
    };
    match used.split_first() {
        Some((0, rest)) if !rest.is_empty() => {
            let rest: Vec<u8> = rest.iter().map(|byte| byte.cast_unsigned()).collect();
            format!(
                "@{}",
                String::from_utf8_lossy(rest.strip_suffix(&[0]).unwrap_or(&rest))
            )
        }
        _ => text(used),
    }
}

#[cfg(test)]
mod tests {
    use super::device;
    use holdup_evidence::DeviceNumber;

    #[test]
    fn kernel_device_numbers_split_at_twenty_bits() {
        assert_eq!(device((7 << 20) | 3), DeviceNumber { major: 7, minor: 3 });
    }
}
