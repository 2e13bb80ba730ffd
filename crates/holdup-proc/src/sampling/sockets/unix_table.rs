//! All Unix sockets of this network namespace, as the kernel tells them in messages (`sock_diag(7)`).
//!
//! The problem: `/proc/net/unix` is text, and an abstract name in it may have line ends: anybody can add lines about anybody's socket. The
//! choice: in a message a name has a length. In: nothing. Out: the sockets by inode; `None` where the kernel does not answer so.

use super::diag::{self, BY_FAMILY, Diag, HEADER};
use crate::listen_queues::LIST;
use crate::sockets::Unix;
use std::collections::HashMap;

/// `UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN` (linux/unix_diag.h).
const SHOWS: u32 = 1 | 4 | 16;

/// `UNIX_DIAG_NAME`, `UNIX_DIAG_PEER`, `UNIX_DIAG_RQLEN`.
const NAME: u16 = 0;
const PEER: u16 = 2;
const QUEUES: u16 = 4;

/// Bytes of `struct unix_diag_msg`, and where the type, the state and the inode are in it.
const MESSAGE: usize = 16;
const TYPE: usize = HEADER + 1;
const STATE: usize = HEADER + 2;
const INODE: usize = HEADER + 4;

/// The state of a socket that listens.
const LISTENS: u8 = 10;

/// Parts that are read, each of some hundred sockets at least.
const MAX_PARTS: usize = 4096;

/// All of them; those without a path have nothing beside.
#[must_use]
pub fn read() -> Option<HashMap<u64, Option<Unix>>> {
    let mut all = HashMap::new();
    let diag = Diag::open(libc::NETLINK_SOCK_DIAG)?;
    diag.list(&request(), MAX_PARTS, &mut |message| all.extend(socket(message)));
    // A machine without any such socket is none: then the kernel did not answer.
    (!all.is_empty()).then_some(all)
}

/// `struct nlmsghdr` and `struct unix_diag_req`: those in any state.
fn request() -> Vec<u8> {
    const REQUEST: usize = 24;
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(LIST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    for word in [u32::MAX, 0, SHOWS, 0, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// What a message tells.
fn socket(message: &[u8]) -> Option<(u64, Option<Unix>)> {
    let inode = u64::from(diag::word(message, INODE)?);
    let attribute = |wanted| diag::attribute(message, HEADER + MESSAGE, wanted);
    let Some(path) = attribute(NAME).and_then(path) else {
        return Some((inode, None));
    };
    let datagrams = i32::from(*message.get(TYPE)?) == libc::SOCK_DGRAM;
    let accepts = *message.get(STATE)? == LISTENS;
    // Clients of datagrams connect theirs, or have a name that the kernel chose, which is abstract.
    let takes = datagrams && attribute(PEER).is_none() && !path.starts_with('@');
    let queue = attribute(QUEUES).and_then(|queues| diag::word(queues, 0));
    let named = Unix {
        path,
        listens: accepts || takes,
        may_take: false,
        waiting: queue.filter(|_| accepts),
    };
    Some((inode, Some(named)))
}

/// A name as `/proc/net/unix` has it: an abstract one begins with a zero, that of a file may end with one.
fn path(name: &[u8]) -> Option<String> {
    let name = match name.first()? {
        0 => name,
        _ => name.strip_suffix(&[0]).unwrap_or(name),
    };
    Some(String::from_utf8_lossy(name).replace('\0', "@"))
}

#[cfg(test)]
mod tests {
    use super::{LISTENS, path, socket};
    use crate::sampling::sockets::diag::HEADER;

    /// A message about socket 7 with these attributes.
    fn message(kind: i32, state: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes.extend([libc::AF_UNIX as u8, kind as u8, state, 0]);
        bytes.extend(7u32.to_ne_bytes());
        bytes.extend([0; 8]);
        for (kind, value) in attributes {
            bytes.extend((value.len() as u16 + 4).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn names_are_as_the_text_has_them() {
        assert_eq!(path(b"/run/a\0").as_deref(), Some("/run/a"));
        assert_eq!(path(b"/run/a").as_deref(), Some("/run/a"));
        assert_eq!(path(b"\0a\nb\0c").as_deref(), Some("@a\nb@c"));
        assert_eq!(path(b""), None);
    }

    #[test]
    fn who_listens_and_who_takes_datagrams_is_known() {
        let name: (u16, &[u8]) = (0, b"/run/a\0");
        let peer: (u16, &[u8]) = (2, &[9, 0, 0, 0]);
        let queues: (u16, &[u8]) = (4, &[3, 0, 0, 0, 128, 0, 0, 0]);
        let of =
            |kind, state, attributes: &[(u16, &[u8])]| socket(&message(kind, state, attributes)).unwrap().1;
        let listener = of(libc::SOCK_STREAM, LISTENS, &[name, queues]).unwrap();
        assert!(listener.listens && listener.waiting == Some(3));
        let accepted = of(libc::SOCK_STREAM, 1, &[name, peer, queues]).unwrap();
        assert!(!accepted.listens && accepted.waiting.is_none());
        assert!(
            of(libc::SOCK_DGRAM, 1, &[name]).unwrap().listens,
            "others are connected to it"
        );
        assert!(
            !of(libc::SOCK_DGRAM, 1, &[name, peer]).unwrap().listens,
            "a client"
        );
        assert!(!of(libc::SOCK_DGRAM, 7, &[(0, b"\0a")]).unwrap().listens);
        assert_eq!(of(libc::SOCK_STREAM, 1, &[peer]), None, "no name");
        assert!(socket(&[0; 10]).is_none());
    }
}
