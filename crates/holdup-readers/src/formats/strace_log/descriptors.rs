//! What a process's descriptors are, from the calls that made them: for logs without `-y`, and for what `-y` leaves out.
//!
//! In: calls that came back. Out: the object of a descriptor, in the form that `-yy` gives it: a path, `pipe:[17]`,
//! `TCP:[->10.0.0.1:80]`. An own port and a peer's number are left out, so that a thousand connections to one peer are one.

use super::arguments::{address, angle, descriptor, split, string};
use super::line::Call;
use memchr::memmem;
use std::borrow::Cow;
use std::collections::HashMap;

/// Descriptors of one process that are remembered; more than any limit that programs are commonly given.
const DESCRIPTORS: usize = 100_000;

/// Before what a socket that is not connected yet, or that listens, is.
pub(super) const CONNECTING: &str = "connecting ";
const LISTENING: &str = "listening ";

/// What a descriptor is.
#[derive(Debug, Clone, Default)]
pub(super) struct Descriptor {
    /// Empty where that is not known.
    name: Box<str>,
    /// For a socket, its transport (`TCP`).
    transport: &'static str,
    pub(super) durable: bool,
    pub(super) direct: bool,
}

impl Descriptor {
    /// Of a socket its transport, else empty.
    pub(super) fn transport(&self) -> &'static str {
        self.transport
    }
}

/// The descriptors of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Descriptors {
    by_number: HashMap<u32, Descriptor>,
}

impl Descriptors {
    pub(super) fn get(&self, fd: u32) -> Option<&Descriptor> {
        self.by_number.get(&fd)
    }

    /// What a descriptor is, by what the line itself says of it or by the call that made it.
    pub(super) fn object<'a>(&'a self, fd: u32, said: Option<&'a [u8]>) -> Option<Cow<'a, str>> {
        let known = self
            .by_number
            .get(&fd)
            .map(|known| &*known.name)
            .filter(|name| !name.is_empty());
        let known_state = known.filter(|name| name.starts_with(CONNECTING) || name.starts_with(LISTENING));
        let said = said.and_then(plain);
        // Of a connected Unix socket -yy has two numbers and not the path that it was connected to.
        let numbers = said
            .as_deref()
            .is_some_and(|said| said.starts_with("UNIX") && !said.contains('"'));
        match said {
            Some(said) if known_state.is_none() && !(numbers && known.is_some()) => Some(said),
            _ => known.map(Cow::Borrowed),
        }
    }

    /// Remembers what a call made of descriptors.
    pub(super) fn learn(&mut self, call: &Call<'_>, returned: Option<i64>) {
        let args = call.args;
        let new = || {
            let text = call.result;
            let (fd, said) = descriptor(text)?;
            Some((fd, said.and_then(plain)))
        };
        match call.name {
            b"open" | b"openat" | b"openat2" | b"creat" => {
                let Some((fd, said)) = new() else { return };
                let has = |flag: &[u8]| memmem::find(args, flag).is_some();
                let path = || split(args).find_map(string).map(Cow::Borrowed);
                self.put(
                    fd,
                    Descriptor {
                        name: said.or_else(path).unwrap_or_default().into(),
                        transport: "",
                        durable: has(b"O_SYNC") || has(b"O_DSYNC"),
                        direct: has(b"O_DIRECT|") || has(b"|O_DIRECT"),
                    },
                );
            }
            b"socket" => {
                if let Some((fd, _)) = new() {
                    let transport = transport(args);
                    self.put(
                        fd,
                        Descriptor {
                            transport,
                            ..Descriptor::default()
                        },
                    );
                }
            }
            b"connect" => self.connect(args, returned),
            b"sendto" => self.name_unconnected(args),
            b"listen" if returned == Some(0) => {
                if let Some((fd, said)) = descriptor(args) {
                    let name = said.and_then(plain).unwrap_or(Cow::Borrowed("TCP:[]"));
                    let name = format!("{LISTENING}{name}");
                    self.by_number.entry(fd).or_default().name = name.into();
                }
            }
            b"accept" | b"accept4" => {
                if let Some((fd, said)) = new() {
                    let peer = || address(args, "TCP").map(Cow::Owned);
                    self.name(fd, said.or_else(peer));
                }
            }
            b"pipe" | b"pipe2" | b"socketpair" if returned == Some(0) => self.both(call),
            b"dup" | b"dup2" | b"dup3" => self.copy(args, new().map(|(fd, _)| fd)),
            b"fcntl" if memmem::find(args, b"F_DUPFD").is_some() => self.copy(args, new().map(|(fd, _)| fd)),
            b"close" if returned == Some(0) => {
                if let Some((fd, _)) = descriptor(args) {
                    self.by_number.remove(&fd);
                }
            }
            b"epoll_create" | b"epoll_create1" => self.named(new(), "anon_inode:[eventpoll]"),
            b"eventfd" | b"eventfd2" => self.named(new(), "anon_inode:[eventfd]"),
            b"timerfd_create" => self.named(new(), "anon_inode:[timerfd]"),
            b"signalfd" | b"signalfd4" => self.named(new(), "anon_inode:[signalfd]"),
            b"inotify_init" | b"inotify_init1" => self.named(new(), "anon_inode:inotify"),
            b"pidfd_open" => self.named(new(), "anon_inode:[pidfd]"),
            _ => {}
        }
    }

    /// A poll for room to write has come back: a connection that was being made is made or has failed.
    pub(super) fn connected(&mut self, fd: u32) {
        if let Some(known) = self.by_number.get_mut(&fd)
            && let Some(name) = known.name.strip_prefix(CONNECTING)
        {
            known.name = name.into();
        }
    }

    fn connect(&mut self, args: &[u8], returned: Option<i64>) {
        /// `-EINPROGRESS`.
        const IN_PROGRESS: i64 = -115;
        let Some((fd, said)) = descriptor(args) else {
            return;
        };
        let known = self.by_number.entry(fd).or_default();
        let transport = match known.transport {
            "" => transport_of(said.unwrap_or_default()),
            known => known,
        };
        if let Some(address) = address(args, transport) {
            known.name = match returned {
                Some(IN_PROGRESS) => format!("{CONNECTING}{address}").into(),
                _ => address.into(),
            };
        }
    }

    /// A datagram to an address: answers are awaited from there.
    fn name_unconnected(&mut self, args: &[u8]) {
        let Some((fd, said)) = descriptor(args) else {
            return;
        };
        if memmem::find(args, b"sa_family=").is_some() {
            let transport = self.by_number.get(&fd).map_or("", |known| known.transport);
            let transport = if transport.is_empty() {
                transport_of(said.unwrap_or_default())
            } else {
                transport
            };
            let to = address(args, transport).map(Cow::Owned);
            self.name(fd, to);
        }
    }

    fn both(&mut self, call: &Call<'_>) {
        let Some(open) = memmem::find(call.args, b"[") else {
            return;
        };
        let list = call.args.get(open..).unwrap_or_default();
        let mut numbers: Vec<(u32, Option<Box<str>>)> = Vec::new();
        for part in split(list.get(1..).unwrap_or_default()).take(2) {
            if let Some((fd, said)) = descriptor(part) {
                numbers.push((fd, said.and_then(plain).map(|name| name.into())));
            }
        }
        let kind = if call.name == b"socketpair" {
            "UNIX-STREAM:[]"
        } else {
            "pipe:[]"
        };
        for (fd, said) in numbers {
            let name = said.unwrap_or_else(|| kind.into());
            self.put(
                fd,
                Descriptor {
                    name,
                    ..Descriptor::default()
                },
            );
        }
    }

    fn copy(&mut self, args: &[u8], new: Option<u32>) {
        let old = descriptor(args)
            .and_then(|(fd, _)| self.by_number.get(&fd))
            .cloned();
        match (old, new) {
            (Some(old), Some(new)) => self.put(new, old),
            (None, Some(new)) => {
                self.by_number.remove(&new);
            }
            _ => {}
        }
    }

    fn named(&mut self, new: Option<(u32, Option<Cow<'_, str>>)>, name: &'static str) {
        if let Some((fd, _)) = new {
            self.name(fd, Some(Cow::Borrowed(name)));
        }
    }

    fn name(&mut self, fd: u32, name: Option<Cow<'_, str>>) {
        if let Some(name) = name {
            let mut known = self.by_number.remove(&fd).unwrap_or_default();
            known.name = name.into();
            self.put(fd, known);
        }
    }

    fn put(&mut self, fd: u32, what: Descriptor) {
        if self.by_number.len() < DESCRIPTORS || self.by_number.contains_key(&fd) {
            self.by_number.insert(fd, what);
        }
    }
}

/// The transport of a socket that is made.
fn transport(args: &[u8]) -> &'static str {
    let mut parts = split(args);
    let (family, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let stream = kind.starts_with(b"SOCK_STREAM");
    match family {
        b"AF_UNIX" | b"AF_LOCAL" if stream => "UNIX-STREAM",
        b"AF_UNIX" | b"AF_LOCAL" => "UNIX-DGRAM",
        b"AF_NETLINK" => "NETLINK",
        _ if stream => "TCP",
        _ if kind.starts_with(b"SOCK_DGRAM") => "UDP",
        _ => "RAW",
    }
}

pub(super) fn transport_of(said: &[u8]) -> &'static str {
    const ALL: [&str; 5] = ["TCP", "UDP", "UNIX-STREAM", "UNIX-DGRAM", "NETLINK"];
    ALL.into_iter()
        .find(|name| said.starts_with(name.as_bytes()))
        .unwrap_or("TCP")
}

/// What `-y` and `-yy` say of a descriptor, without what differs from connection to connection; `None` where they say
/// no more than that it is a socket.
pub(super) fn plain(said: &[u8]) -> Option<Cow<'_, str>> {
    let said = std::str::from_utf8(said).ok()?;
    let Some((kind, inside)) = said.split_once(":[").filter(|(kind, _)| !kind.contains('/')) else {
        return Some(Cow::Borrowed(said));
    };
    let inside = inside.strip_suffix(']').unwrap_or(inside);
    match kind {
        "socket" => None,
        "TCP" | "TCPv6" | "UDP" | "UDPv6" => match inside.split_once("->") {
            Some((_, peer)) => Some(Cow::Owned(format!("{kind}:[->{peer}]"))),
            None if inside.bytes().all(|byte| byte.is_ascii_digit()) => None,
            None => Some(Cow::Borrowed(said)),
        },
        _ if kind.starts_with("UNIX") => match inside.split_once(",\"") {
            Some((_, path)) => Some(Cow::Owned(format!("{kind}:[\"{path}]"))),
            None if inside.contains("->") => Some(Cow::Borrowed(said)),
            None => None,
        },
        _ => Some(Cow::Borrowed(said)),
    }
}

/// Whether a program can wake itself through such an object, so that a poll that nothing ended did not await it: an
/// eventfd, a pipe, a Unix socket without a path.
pub(super) fn may_be_own(object: &str) -> bool {
    object.starts_with("pipe:")
        || object == "anon_inode:[eventfd]"
        || object.starts_with("UNIX") && !object.contains('"')
}

/// What a result or an argument says in `<…>`, wherever it begins.
pub(super) fn annotated(text: &[u8]) -> Option<&[u8]> {
    let open = memchr::memchr(b'<', text)?;
    angle(text.get(open..)?)
}

#[cfg(test)]
mod tests {
    use super::{Descriptors, plain};
    use crate::formats::strace_log::arguments::returned;
    use crate::formats::strace_log::line::{Body, body};

    fn after(lines: &[&str], fd: u32) -> Option<String> {
        let mut all = Descriptors::default();
        for text in lines {
            let Some(Body::Call(call)) = body(text.as_bytes()) else {
                panic!("{text}")
            };
            all.learn(&call, returned(call.result));
        }
        all.object(fd, None).map(String::from)
    }

    #[test]
    fn descriptors_are_what_the_log_made_them() {
        let open = "openat(AT_FDCWD, \"/etc/hosts\", O_RDONLY) = 3";
        assert_eq!(after(&[open], 3).as_deref(), Some("/etc/hosts"));
        assert_eq!(after(&[open, "dup2(3, 7) = 7"], 7).as_deref(), Some("/etc/hosts"));
        assert_eq!(after(&[open, "close(3) = 0"], 3), None);
        assert_eq!(
            after(&["pipe2([3, 4], O_CLOEXEC) = 0"], 4).as_deref(),
            Some("pipe:[]")
        );
        let socket = "socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 3";
        let connect =
            "connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr(\"10.0.0.2\")}, 16) = 0";
        assert_eq!(
            after(&[socket, connect], 3).as_deref(),
            Some("UDP:[->10.0.0.2:53]")
        );
        let socket = "socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3";
        let connect = "connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"10.0.0.2\")}, 16) = -1 EINPROGRESS (Operation now in progress)";
        assert_eq!(
            after(&[socket, connect], 3).as_deref(),
            Some("connecting TCP:[->10.0.0.2:80]")
        );
    }

    #[test]
    fn what_differs_from_connection_to_connection_is_left_out() {
        let of = |said: &'static str| plain(said.as_bytes()).map(String::from);
        assert_eq!(
            of("TCP:[127.0.0.1:39062->127.0.0.1:80]").as_deref(),
            Some("TCP:[->127.0.0.1:80]")
        );
        assert_eq!(of("TCP:[2909245]"), None);
        assert_eq!(
            of("UNIX-STREAM:[1->2,\"/run/nscd/socket\"]").as_deref(),
            Some("UNIX-STREAM:[\"/run/nscd/socket\"]")
        );
        assert_eq!(of("/a:[b").as_deref(), Some("/a:[b"));
    }
}
