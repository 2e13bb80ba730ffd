//! The other end of a Unix socket, as the kernel's `sock_diag` tells anybody about the sockets of his own network namespace.
//!
//! In: an inode. Out: that of its peer. Asked for each socket anew: pairs that a program wakes itself by are few, and asked for once
//! a wait.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `SOCK_DIAG_BY_FAMILY`, `UDIAG_SHOW_PEER`, `UNIX_DIAG_PEER` (linux/unix_diag.h).
const BY_FAMILY: u16 = 20;
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;

/// Bytes of `struct nlmsghdr`, of `struct unix_diag_req`, and of `struct unix_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 24;
const MESSAGE: usize = 16;

/// The peer of a socket; `None` where it has none, or the kernel does not say.
pub(super) fn of(inode: u64) -> Option<u64> {
    let inode = u32::try_from(inode).ok()?;
    // SAFETY: makes a descriptor, or none.
    let socket = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            libc::NETLINK_SOCK_DIAG,
        )
    };
    if socket < 0 {
        return None;
    }
    // SAFETY: it was just made, and is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let request = request(inode);
    // SAFETY: the buffer is as long as it is said to be. The kernel answers before it returns.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return None;
    }
    let mut answer = [0u8; 512];
    // SAFETY: as above; the descriptor does not block.
    let length = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
    peer(answer.get(..usize::try_from(length).ok()?)?, inode)
}

/// A question about one socket.
fn request(inode: u32) -> Vec<u8> {
    /// `NLM_F_REQUEST`.
    const ASKS: u16 = 1;
    /// "Of any cookie".
    const ANY: u32 = u32::MAX;
    let length = u32::try_from(HEADER + REQUEST).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(ASKS.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    for word in [u32::MAX, inode, SHOW_PEER, ANY, ANY] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// The peer that an answer names.
fn peer(answer: &[u8], inode: u32) -> Option<u64> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    if half(4)? != BY_FAMILY || word(HEADER + 4)? != inode {
        return None;
    }
    let end = usize::try_from(word(0)?).ok()?.min(answer.len());
    let mut at = HEADER + MESSAGE;
    while at + 4 <= end {
        let length = usize::from(half(at)?);
        if length < 4 {
            return None;
        }
        if half(at + 2)? == PEER {
            return word(at + 4).map(u64::from);
        }
        at += length.next_multiple_of(4);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{of, peer};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_pair_knows_each_other() {
        let (one, other) = UnixStream::pair().unwrap();
        let inode = |socket: &UnixStream| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
            let text = link.to_string_lossy().into_owned();
            text.trim_matches(|c: char| !c.is_ascii_digit())
                .parse::<u64>()
                .unwrap()
        };
        assert_eq!(of(inode(&one)), Some(inode(&other)));
        assert_eq!(of(inode(&other)), Some(inode(&one)));
    }

    #[test]
    fn an_answer_that_is_cut_off_says_nothing() {
        assert_eq!(peer(&[], 7), None);
        assert_eq!(peer(&[0xff; 40], u32::MAX), None);
    }
}
