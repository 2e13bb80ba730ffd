//! What a system call was about: a file, socket, pipe, device.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// An object that the source has described with [`crate::Event::Object`]; never reused for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId(pub u32);

/// A device number as user space writes it (`major:minor`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// One end of a socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SocketAddress {
    /// IPv4 or IPv6 address and port; the unspecified address with port 0 when there is none.
    Inet(SocketAddr),
    /// Unix socket: its path, `@name` when abstract, empty when unnamed.
    Unix(String),
    /// Netlink, packet and other families, by family number.
    Other(u16),
}

/// What kind of object a descriptor names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Block device node.
    BlockDevice(DeviceNumber),
    /// Character device node (1:8 is `/dev/random`).
    CharDevice(DeviceNumber),
    /// Unnamed pipe.
    Pipe,
    /// Named pipe; its path is in [`Object::path`].
    Fifo,
    /// Socket.
    Socket {
        /// Address family (`AF_INET` …).
        family: u16,
        /// Socket type (`SOCK_STREAM` …).
        kind: u16,
        /// IP protocol (6 TCP, 17 UDP), 0 elsewhere.
        protocol: u16,
        /// TCP state as in `tcp(7)` (1 established, 2 syn-sent, 10 listen); 0 elsewhere.
        state: u8,
        /// Own end.
        local: SocketAddress,
        /// Other end.
        peer: SocketAddress,
        /// Process id of a Unix socket's peer in holdup's pid namespace, where the kernel keeps it.
        peer_pid: Option<u32>,
    },
    /// epoll instance.
    Epoll,
    /// eventfd.
    Eventfd,
    /// timerfd.
    Timerfd,
    /// signalfd.
    Signalfd,
    /// inotify or fanotify instance.
    Inotify,
    /// pidfd.
    Pidfd,
    /// Another anonymous inode, by the kernel's name for it (`[io_uring]`).
    Anonymous(String),
    /// Something else, by the type bits of its mode.
    Other(u16),
}

/// An object, as seen the first time a thread waited on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// Path from the root of its mount namespace; `None` for what has none. Hostile text.
    pub path: Option<String>,
    /// Inode number, for `pipe:[N]` and `socket:[N]`.
    pub inode: u64,
    /// Device of the file system it lives on.
    pub device: DeviceNumber,
    /// File system type by the kernel's name (`ext4`, `fuse`, `nfs4`, `tmpfs`).
    pub file_system: String,
}
