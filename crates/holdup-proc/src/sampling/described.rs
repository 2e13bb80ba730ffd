//! What a call is about, and what descriptors are, by the kernel's words for them.
//!
//! In: a call's number and arguments, the target of a link in `fd`, the text of `fdinfo`, tables of sockets, mounts and locks. Out:
//! [`Object`]s. Nothing that a link leads to is touched: what a path is, a file or a FIFO, is known by where in the kernel the thread
//! sleeps, and on which file system by the number of its mount.

use super::site::Site;
use super::sockets::unix_peers;
use crate::mountinfo;
use crate::root::{Root, text_if_there};
use crate::sockets::Sockets;
use holdup_evidence::{Call, DeviceNumber, Object, ObjectKind, PolledFd, SocketAddress};
use holdup_knowledge::system_calls::{self, Kind, Limit, PollSet};
use std::net::SocketAddr;

/// The family of Unix sockets.
pub const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SOCK_STREAM: u16 = 1;
const SOCK_DGRAM: u16 = 2;
const TCP: u16 = 6;
const UDP: u16 = 17;
/// States of `tcp(7)`.
const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const LISTEN: u8 = 10;

/// A descriptor's flag that it is a directory, as `fdinfo` has it (octal).
const O_DIRECTORY: u32 = 0o200_000;

/// Devices that are known by their path: no node is ever looked at.
const DEVICES: [(&str, u32, u32); 6] = [
    ("/dev/null", 1, 3),
    ("/dev/zero", 1, 5),
    ("/dev/random", 1, 8),
    ("/dev/urandom", 1, 9),
    ("/dev/tty", 5, 0),
    ("/dev/console", 5, 1),
];

/// A flag of `io_uring_enter`: its first argument is the ring's place among those that the thread has registered, which nothing
/// shows to others, and no descriptor.
const IORING_ENTER_REGISTERED_RING: u64 = 16;

/// What a call's arguments lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Nothing that could be looked at.
    Nothing,
    /// A descriptor.
    Descriptor(i32),
    /// A descriptor, and a lock on it.
    Lock(i32),
    /// A socket, and the address that it is to be connected to.
    Connect {
        /// The descriptor.
        fd: i32,
        /// Where the address is.
        at: u64,
        /// Its bytes.
        length: u64,
    },
    /// An epoll instance, by its descriptor.
    Epoll(i32),
    /// A ring of io_uring, by its descriptor.
    Ring(i32),
    /// `struct pollfd` at an address.
    Poll {
        /// Where.
        at: u64,
        /// How many.
        count: u64,
    },
    /// Sets of a select.
    Select {
        /// One more than the highest descriptor.
        count: u64,
        /// Where they are; 0 for none.
        sets: [u64; 3],
    },
    /// A futex at an address.
    Futex(u64),
    /// A path at an address.
    Path(u64),
}

/// What a call is about.
#[must_use]
pub fn about(call: &Call) -> About {
    let Some(known) = system_calls::of(call) else {
        return About::Nothing;
    };
    let argument = |at: u8| call.args.get(usize::from(at)).copied().unwrap_or_default();
    match known.poll_set {
        Some(PollSet::Array { at, count }) => {
            return About::Poll {
                at: argument(at),
                count: argument(count),
            };
        }
        Some(PollSet::Bits { count, sets }) => {
            return About::Select {
                count: argument(count),
                sets: sets.map(argument),
            };
        }
        None => {}
    }
    if let Some(at) = known.futex {
        return About::Futex(argument(at));
    }
    if let Some(path) = known.path {
        return About::Path(argument(path.argument));
    }
    let Some(fd) = known.descriptor.map(argument) else {
        return About::Nothing;
    };
    let fd = i32::try_from(fd & 0xffff_ffff).unwrap_or(-1);
    let [_, second, third, fourth] = call.args;
    match () {
        () if known.is(Kind::WaitsForEpoll) => About::Epoll(fd),
        () if known.is(Kind::WaitsForCompletions) => match fourth & IORING_ENTER_REGISTERED_RING {
            0 => About::Ring(fd),
            _ => About::Nothing,
        },
        () if known.is(Kind::Connects) => About::Connect {
            fd,
            at: second,
            length: third,
        },
        () if known.is(Kind::LocksFiles) => About::Lock(fd),
        () => About::Descriptor(fd),
    }
}

/// Whether a thread sleeps in a fault until a page of a file has been read.
#[must_use]
pub fn reads_a_page(site: &Site) -> bool {
    const READING: [&str; 5] = [
        "folio_wait_bit_common",
        "folio_wait_bit",
        "__folio_lock_or_retry",
        "wait_on_page_bit_common",
        "__lock_page_or_retry",
    ];
    let function = site.function.as_deref();
    site.call == Some(Call::none()) && function.is_some_and(|name| READING.contains(&name))
}

/// Where in a thread's memory it stands how long its call may last, and how many nanoseconds the second number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit {
    /// Where.
    pub at: u64,
    /// A unit of the parts of a second.
    pub unit: u64,
}

/// The same of a call; `None` where it has no limit, or an argument has it. `fifth`: its fifth argument.
#[must_use]
pub fn time_limit(call: &Call, fifth: u64) -> Option<TimeLimit> {
    const MICROSECOND: u64 = 1_000;
    let known = system_calls::of(call).filter(|known| known.is(Kind::Polls | Kind::WaitsForEpoll))?;
    let argument = |at: u8| call.args.iter().chain([&fifth]).nth(usize::from(at)).copied();
    let (at, unit) = match known.limit? {
        Limit::Timeval(at) => (argument(at)?, MICROSECOND),
        Limit::Timespec(at) => (argument(at)?, 1),
        Limit::Milliseconds(_) => return None,
    };
    (at != 0).then_some(TimeLimit { at, unit })
}

/// The ends and the inode of a TCP connection.
#[must_use]
pub fn connection(object: &Object) -> Option<(SocketAddr, SocketAddr, u64)> {
    match &object.kind {
        ObjectKind::Socket {
            protocol: TCP,
            state,
            local: SocketAddress::Inet(local),
            peer: SocketAddress::Inet(peer),
            ..
        } if *state != LISTEN => Some((*local, *peer, object.inode)),
        _ => None,
    }
}

/// The same with its state, as in `tcp(7)`.
#[must_use]
pub fn connection_with_state(object: &Object) -> Option<(SocketAddr, SocketAddr, u64, u8)> {
    let (local, peer, inode) = connection(object)?;
    match &object.kind {
        ObjectKind::Socket { state, .. } => Some((local, peer, inode, *state)),
        _ => None,
    }
}

/// The number in `pipe:[17]`.
#[must_use]
pub fn number(link: &str, prefix: &str) -> Option<u64> {
    link.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok()
}

/// Whether a thread sleeps where only pipes, named ones too, make it sleep.
#[must_use]
pub fn is_pipe(site: &Site) -> bool {
    let functions = [
        "pipe_read",
        "pipe_write",
        "anon_pipe_read",
        "anon_pipe_write",
        "fifo_pipe_read",
        "fifo_pipe_write",
        "wait_for_partner",
        "pipe_wait_readable",
        "pipe_wait_writable",
    ];
    site.function
        .as_deref()
        .is_some_and(|name| functions.contains(&name))
}

/// What has no path: a pipe, or an anonymous inode.
#[must_use]
pub fn nameless(link: &str) -> Object {
    let kind = match link.strip_prefix("anon_inode:") {
        None if link.starts_with("pipe:[") => ObjectKind::Pipe,
        None => ObjectKind::Other(0),
        Some("[eventpoll]") => ObjectKind::Epoll,
        Some("[eventfd]") => ObjectKind::Eventfd,
        Some("[timerfd]") => ObjectKind::Timerfd,
        Some("[signalfd]") => ObjectKind::Signalfd,
        Some("[pidfd]") => ObjectKind::Pidfd,
        Some("inotify" | "[inotify]" | "[fanotify]") => ObjectKind::Inotify,
        Some(other) => ObjectKind::Anonymous(other.to_owned()),
    };
    Object {
        kind,
        path: None,
        inode: number(link, "pipe:[").unwrap_or_default(),
        device: DeviceNumber::default(),
        file_system: String::new(),
    }
}

/// What has a path. `info`: the kernel's text about the descriptor, which names the mount; without one the path decides.
/// `None` where it is not known on which file system it is.
#[must_use]
pub fn file(path: &str, info: Option<&str>, mounts: &[mountinfo::Line], pipe: bool) -> Option<Object> {
    let field = |name: &str| {
        let mut lines = info.unwrap_or_default().lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    let mount = match field("mnt_id").and_then(|number| number.parse::<u32>().ok()) {
        Some(number) => mounts.iter().find(|line| line.number == number),
        None => mountinfo::of_path(mounts, path),
    };
    let flags = field("flags").and_then(|flags| u32::from_str_radix(flags, 8).ok());
    let kind = match device(path) {
        Some(device) => ObjectKind::CharDevice(device),
        None if pipe => ObjectKind::Fifo,
        None if flags.is_some_and(|flags| flags & O_DIRECTORY != 0) => ObjectKind::Directory,
        None => ObjectKind::File,
    };
    Some(Object {
        kind,
        path: Some(path.to_owned()),
        inode: field("ino")
            .and_then(|inode| inode.parse().ok())
            .unwrap_or_default(),
        device: mount.map(|mount| mount.device).unwrap_or_default(),
        file_system: mount.map(|mount| mount.file_system.clone()).unwrap_or_default(),
    })
}

/// A device by its path.
fn device(path: &str) -> Option<DeviceNumber> {
    let known = DEVICES.iter().find(|(known, ..)| *known == path);
    let terminal = || {
        let minor = path.strip_prefix("/dev/pts/")?.parse().ok()?;
        Some(DeviceNumber { major: 136, minor })
    };
    known
        .map(|(_, major, minor)| DeviceNumber {
            major: *major,
            minor: *minor,
        })
        .or_else(terminal)
}

/// A socket, as the tables have it.
#[must_use]
pub fn socket(inode: u64, sockets: &Sockets) -> Object {
    let of = |kind| Object {
        kind,
        path: None,
        inode,
        device: DeviceNumber::default(),
        file_system: "sockfs".to_owned(),
    };
    let family = |address: SocketAddr| if address.is_ipv4() { AF_INET } else { AF_INET6 };
    let found = |table: &[crate::sockets::Tcp]| table.iter().find(|socket| socket.inode == inode).copied();
    if let Some(tcp) = found(&sockets.tcp) {
        return of(ObjectKind::Socket {
            family: family(tcp.local),
            kind: SOCK_STREAM,
            protocol: TCP,
            state: match (tcp.listens, tcp.knocks) {
                (true, _) => LISTEN,
                (false, true) => SYN_SENT,
                (false, false) => ESTABLISHED,
            },
            local: SocketAddress::Inet(tcp.local),
            peer: SocketAddress::Inet(tcp.peer),
            peer_pid: None,
        });
    }
    if let Some(udp) = found(&sockets.udp) {
        return of(ObjectKind::Socket {
            family: family(udp.local),
            kind: SOCK_DGRAM,
            protocol: UDP,
            state: 0,
            local: SocketAddress::Inet(udp.local),
            peer: SocketAddress::Inet(udp.peer),
            peer_pid: None,
        });
    }
    let other = || {
        let peer = sockets.unix.get(&unix_peers::of(inode)?)?;
        Some(peer.path.clone())
    };
    let unix = |local: &str, state| {
        // The other end's path, where it has one: a server's accepted connection has the path at which that listens.
        let peer = (state == ESTABLISHED).then(other).flatten();
        of(ObjectKind::Socket {
            family: AF_UNIX,
            kind: SOCK_STREAM,
            protocol: 0,
            state,
            local: SocketAddress::Unix(local.to_owned()),
            peer: SocketAddress::Unix(peer.unwrap_or_default()),
            peer_pid: None,
        })
    };
    match sockets.unix.get(&inode) {
        Some(named) => unix(&named.path, if named.listens { LISTEN } else { ESTABLISHED }),
        None if sockets.unnamed.contains(&inode) => unix("", ESTABLISHED),
        // One of another family, or one that is in no table: a TCP socket before it connects.
        None => of(ObjectKind::Socket {
            family: 0,
            kind: 0,
            protocol: 0,
            state: 0,
            local: SocketAddress::Other(0),
            peer: SocketAddress::Other(0),
            peer_pid: None,
        }),
    }
}

/// The inode of a socket's other end, where that is on this machine: of a connection that is made, and of a Unix socket.
#[must_use]
pub fn other_end(inode: u64, object: &Object, sockets: &Sockets) -> Option<u64> {
    match &object.kind {
        ObjectKind::Socket {
            state: ESTABLISHED,
            local: SocketAddress::Inet(local),
            peer: SocketAddress::Inet(peer),
            ..
        } => sockets.other_end(*local, *peer),
        ObjectKind::Socket {
            family: AF_UNIX,
            state: ESTABLISHED,
            ..
        } => unix_peers::of(inode),
        _ => None,
    }
}

/// Gives a Unix socket that has no name the name of its other end, whose inode is `peer`.
pub fn name_peer(object: &mut Object, peer: Option<u64>, sockets: &Sockets) {
    if let ObjectKind::Socket {
        family: AF_UNIX,
        peer: other,
        ..
    } = &mut object.kind
        && let Some(named) = peer.and_then(|inode| sockets.unix.get(&inode))
    {
        *other = SocketAddress::Unix(named.path.clone());
    }
}

/// What of a socket may change while it stays the same: distinguished by this.
#[must_use]
pub fn socket_state(object: &Object) -> String {
    match &object.kind {
        ObjectKind::Socket { state, peer, .. } => format!(" {state} {peer:?}"),
        _ => String::new(),
    }
}

/// Whether every request that was made on a ring of io_uring has completed for good, from its `fdinfo`: the kernel counts those that
/// it has taken and the completions that it has put up, and lists those that wait for a file to become ready, as one does that
/// completes again and again. `false` also where it does not list them, as while another thread is at the ring.
#[must_use]
pub fn is_ring_at_rest(info: &str) -> bool {
    let value = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    let counted = |name: &str| value(name)?.trim().parse::<u32>().ok();
    let taken = counted("CachedSqHead:");
    let mut waiting = info.lines().skip_while(|line| !line.starts_with("PollList:"));
    let lists = waiting.next().is_some();
    taken.is_some()
        && [counted("SqTail:"), counted("CachedCqTail:")] == [taken; 2]
        && lists
        && waiting.next().is_some_and(|line| !line.starts_with(' '))
}

/// The descriptors of an epoll instance, and what is asked of them, from its `fdinfo`:
/// `tfd:        5 events:       19 data: … pos:0 ino:61 sdev:e`.
#[must_use]
pub fn epoll_set(text: &str) -> Vec<(i32, u16)> {
    let one = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let fd = words.next()?.parse().ok()?;
        let events = words.nth(1)?;
        let events = u32::from_str_radix(events, 16).ok()?;
        let level = match events & libc::EPOLLET.cast_unsigned() {
            0 => PolledFd::LEVEL,
            _ => 0,
        };
        Some((fd, u16::try_from(events & 0xffff).unwrap_or(u16::MAX) | level))
    };
    text.lines().filter_map(one).collect()
}

/// Who holds the lock on a file that a process waits for, from the kernel's list: who waits stands below the one it waits for,
/// with an arrow.
#[must_use]
pub fn lock_holder(root: &Root, pid: u32) -> Option<u32> {
    let text = text_if_there(&root.proc.join("locks"))?;
    let mut holder = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(1);
        let waits = words.clone().next() == Some("->");
        let owner = words
            .nth(if waits { 4 } else { 3 })
            .and_then(|word| word.parse::<i64>().ok());
        if !waits {
            holder = owner;
        } else if owner == Some(i64::from(pid)) {
            // Of a lock that belongs to an open file, and to no process, the kernel says -1.
            return Some(u32::try_from(holder?).unwrap_or_default());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{About, about, epoll_set, file, is_ring_at_rest, lock_holder, nameless};
    use crate::mountinfo;
    use crate::root::Tree;
    use holdup_evidence::{Call, DeviceNumber, ObjectKind};

    #[test]
    fn a_call_is_about_the_same_as_when_it_is_traced() {
        let of = |name| {
            about(&Call {
                args: [10, 11, 12, 0],
                ..Call::named(name)
            })
        };
        for name in ["link", "umount2", "lchown", "mknod"] {
            assert_eq!(of(name), About::Path(10), "{name}");
        }
        for name in ["linkat", "mount", "symlink", "openat"] {
            assert_eq!(of(name), About::Path(11), "{name}");
        }
        for name in ["epoll_ctl", "timerfd_settime", "read"] {
            assert_eq!(of(name), About::Descriptor(10), "{name}");
        }
        assert_eq!(of("fcntl"), About::Lock(10));
        assert_eq!(of("io_uring_enter"), About::Ring(10));
        assert_eq!(of("ppoll"), About::Poll { at: 10, count: 11 });
        assert_eq!(of("futex_wait"), About::Futex(10));
        assert_eq!(of("futex_waitv"), About::Nothing);
    }

    #[test]
    fn a_file_is_on_the_mount_that_its_descriptor_names() {
        let tree = Tree::new(&[(
            "proc/self/mountinfo",
            "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 0:50 / /mnt/x rw - fuse.sshfs host: rw\n",
        )]);
        let mounts = mountinfo::read(&tree.root, &mut Vec::new());
        let info = "pos:\t0\nflags:\t0100000\nmnt_id:\t22\nino:\t77\n";
        let of = |path, info| file(path, info, &mounts, false).unwrap();
        let seen = of("/mnt/x/a", Some(info));
        assert_eq!((seen.file_system.as_str(), seen.inode), ("fuse.sshfs", 77));
        assert_eq!(seen.device, DeviceNumber { major: 0, minor: 50 });
        assert_eq!(of("/mnt/x/a", None).file_system, "fuse.sshfs");
        assert_eq!(of("/etc/x", None).file_system, "ext4");
        assert_eq!(of("/a", Some("flags:\t0300000\n")).kind, ObjectKind::Directory);
        let random = DeviceNumber { major: 1, minor: 8 };
        assert_eq!(of("/dev/random", None).kind, ObjectKind::CharDevice(random));
        assert_eq!(file("/a", None, &mounts, true).unwrap().kind, ObjectKind::Fifo);
        assert_eq!(nameless("pipe:[17]").inode, 17);
    }

    #[test]
    fn a_ring_is_at_rest_once_what_it_took_is_answered() {
        let info = |taken: &str, answered: &str, waiting: &str| {
            format!(
                "pos:\t0\nSqHead:\t9\nSqTail:\t9\nCachedSqHead:\t{taken}\nCqTail:\t9\nCachedCqTail:\t{answered}\nSQEs:\t0\n{waiting}"
            )
        };
        let lists = |waiting| format!("UserBufs:\t0\nPollList:\n{waiting}CqOverflowList:\n");
        assert!(is_ring_at_rest(&info("9", "9", &lists(""))));
        assert!(!is_ring_at_rest(&info("9", "8", &lists(""))));
        // It is the kernel's own thread that is to take it.
        assert!(!is_ring_at_rest(&info("8", "8", &lists(""))));
        // One completes again and again, and has by chance made up for others.
        assert!(!is_ring_at_rest(&info(
            "9",
            "9",
            &lists("  op=27, task_works=0\n")
        )));
        // It was not listed, or the text was cut.
        assert!(!is_ring_at_rest(&info("9", "9", "")) && !is_ring_at_rest(&info("9", "9", "PollList:\n")));
        // Older kernels tell other names, and hostile text is no number.
        assert!(!is_ring_at_rest(
            "SqHead:\t9\nCqTail:\t9\nPollList:\nCqOverflowList:\n"
        ));
        assert!(!is_ring_at_rest(&info("x", "x", &lists(""))));
    }

    #[test]
    fn a_set_and_a_holder_are_read() {
        let text = "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data:                5  pos:0 ino:3d sdev:f\n\
                    tfd:        7 events: 80000001 data: 7\ntfd: x\n";
        assert_eq!(
            epoll_set(text),
            [(5, 0x19 | holdup_evidence::PolledFd::LEVEL), (7, 1)]
        );
        let tree = Tree::new(&[(
            "proc/locks",
            "1: POSIX  ADVISORY  WRITE 700 08:01:131 0 EOF\n1: -> POSIX  ADVISORY  WRITE 701 08:01:131 0 EOF\n\
             2: OFDLCK ADVISORY  WRITE -1 08:01:9 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 702 08:01:9 0 EOF\n",
        )]);
        let of = |pid| lock_holder(&tree.root, pid);
        assert_eq!((of(701), of(702), of(700)), (Some(700), Some(0), None));
    }
}
