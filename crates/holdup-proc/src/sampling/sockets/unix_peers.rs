//! The other end of a Unix socket, as the kernel's `sock_diag` tells anybody about the sockets of his own network namespace.
//!
//! In: an inode. Out: that of its peer. Asked for each socket anew: pairs that a program wakes itself by are few, and asked for once
//! a wait.

use super::diag::{self, BY_FAMILY, Diag, HEADER};

/// `UDIAG_SHOW_PEER`, `UNIX_DIAG_PEER` (linux/unix_diag.h).
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;

/// `UDIAG_SHOW_ICONS`, `UNIX_DIAG_ICONS`.
const SHOW_QUEUED: u32 = 8;
const QUEUED: u16 = 3;

/// Bytes of `struct unix_diag_msg`, and where the inode is in it.
const MESSAGE: usize = 16;
const INODE: usize = HEADER + 4;

/// The peer of a socket; `None` where it has none, or the kernel does not say.
#[must_use]
pub fn of(inode: u64) -> Option<u64> {
    let inode = u32::try_from(inode).ok()?;
    let answer = Diag::open(libc::NETLINK_SOCK_DIAG)?.ask(BY_FAMILY, &request(inode, SHOW_PEER))?;
    peer(&answer, inode)
}

/// The sockets of clients that a listener has not accepted.
#[must_use]
pub fn queued(listener: u64) -> Vec<u64> {
    let all = || {
        let inode = u32::try_from(listener).ok()?;
        let answer = Diag::open(libc::NETLINK_SOCK_DIAG)?.ask(BY_FAMILY, &request(inode, SHOW_QUEUED))?;
        if diag::kind(&answer)? != BY_FAMILY || diag::word(&answer, INODE)? != inode {
            return None;
        }
        let list = diag::attribute(&answer, HEADER + MESSAGE, QUEUED)?;
        let inodes = (0..list.len() / 4).filter_map(|at| diag::word(list, at * 4));
        Some(inodes.filter(|inode| *inode != 0).map(u64::from).collect())
    };
    all().unwrap_or_default()
}

/// A question about one socket: `struct unix_diag_req`.
fn request(inode: u32, shows: u32) -> Vec<u8> {
    /// "Of any cookie", and "in any state".
    const ANY: u32 = u32::MAX;
    let mut bytes = vec![libc::AF_UNIX as u8, 0, 0, 0];
    for word in [ANY, inode, shows, ANY, ANY] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// The peer that an answer names.
fn peer(answer: &[u8], inode: u32) -> Option<u64> {
    if diag::kind(answer)? != BY_FAMILY || diag::word(answer, INODE)? != inode {
        return None;
    }
    let peer = diag::attribute(answer, HEADER + MESSAGE, PEER)?;
    diag::word(peer, 0).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::{of, peer, queued};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn inode(socket: &impl AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        text.trim_matches(|c: char| !c.is_ascii_digit())
            .parse::<u64>()
            .unwrap()
    }

    #[test]
    fn a_pair_knows_each_other() {
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!(of(inode(&one)), Some(inode(&other)));
        assert_eq!(of(inode(&other)), Some(inode(&one)));
    }

    #[test]
    fn a_listener_knows_whom_it_has_not_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        assert_eq!(queued(inode(&listener)), [inode(&client)]);
        let _accepted = listener.accept().unwrap();
        assert!(queued(inode(&listener)).is_empty());
    }

    #[test]
    fn an_answer_that_is_cut_off_says_nothing() {
        assert_eq!(peer(&[], 7), None);
        assert_eq!(peer(&[0xff; 40], u32::MAX), None);
    }
}
