//! Questions to the kernel about single sockets (`sock_diag`): anybody may ask about those of his own network namespace.
//!
//! In: a request. Out: the answer's bytes, and its attributes. The kernel answers before `send` returns, so nothing here waits; a first
//! question may make the kernel load a module, which is why it is asked beside the loop.

use crate::{filters, listen_queues};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// The ways to ask that this process was given, because it may make none itself: see [`give`].
static GIVEN: OnceLock<Vec<OwnedFd>> = OnceLock::new();

/// The kinds that a reader is given, in their order.
const KINDS: [libc::c_int; 2] = [libc::NETLINK_SOCK_DIAG, libc::NETLINK_ROUTE];

/// What a reader needs to ask about sockets; empty where there is none.
pub(in crate::sampling) fn to_give() -> Vec<OwnedFd> {
    let all: Option<Vec<OwnedFd>> = KINDS.map(|kind| Some(Diag::open(kind)?.0)).into_iter().collect();
    all.unwrap_or_default()
}

/// In a reader, which may make no sockets: these are to be used from now on.
pub(in crate::sampling) fn give(sockets: Vec<OwnedFd>) {
    // A reader is given them once; later ones are as good.
    GIVEN.set(sockets).ok();
}

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
pub(in crate::sampling) const BY_FAMILY: u16 = 20;

/// Bytes of `struct nlmsghdr`.
pub(in crate::sampling) const HEADER: usize = 16;

/// Longest answer, bytes: a TCP socket's has some four hundred.
const ANSWER: usize = 4096;

/// A way to ask.
#[derive(Debug)]
pub(in crate::sampling) struct Diag(OwnedFd);

impl Diag {
    /// `None` where there is none: the kernel has no such sockets, or a filter refuses them. `of`: `NETLINK_SOCK_DIAG` and the like.
    pub(in crate::sampling) fn open(of: libc::c_int) -> Option<Diag> {
        if filters::kills(filters::Call::Netlink) {
            return None;
        }
        let given = GIVEN.get().map(|given| {
            let at = KINDS.iter().position(|kind| *kind == of)?;
            given.get(at)?.try_clone().ok().map(Diag)
        });
        if let Some(given) = given {
            return given;
        }
        // SAFETY: makes a descriptor, or none.
        let socket = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                of,
            )
        };
        // SAFETY: it was just made, and is nobody else's.
        (socket >= 0).then(|| Diag(unsafe { OwnedFd::from_raw_fd(socket) }))
    }

    /// Hands over each message of a list that this whole request, header and all, asks for, from so many parts of it.
    pub(in crate::sampling) fn list(&self, request: &[u8], most: usize, each: &mut dyn FnMut(&[u8])) {
        listen_queues::list_by(&self.0, request, most, each);
    }

    /// The kernel's answer to a request of this type; an error's has another type than what was asked for.
    pub(in crate::sampling) fn ask(&self, kind: u16, request: &[u8]) -> Option<Vec<u8>> {
        /// `NLM_F_REQUEST`.
        const ASKS: u16 = 1;
        let mut bytes = Vec::with_capacity(HEADER + request.len());
        bytes.extend(u32::try_from(HEADER + request.len()).ok()?.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(ASKS.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(request);
        // SAFETY: the buffer is as long as it is said to be.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 {
            return None;
        }
        let mut answer = vec![0u8; ANSWER];
        // SAFETY: as above; the descriptor does not block.
        let length = unsafe { libc::recv(self.0.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        answer.truncate(usize::try_from(length).ok()?);
        let said = usize::try_from(word(&answer, 0)?).ok()?;
        answer.truncate(said);
        Some(answer)
    }
}

/// The type of an answer.
pub(in crate::sampling) fn kind(answer: &[u8]) -> Option<u16> {
    half(answer, 4)
}

/// Four bytes at a place.
pub(in crate::sampling) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Two.
pub(in crate::sampling) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// What the attribute of this type holds; they begin at `from`.
pub(in crate::sampling) fn attribute(answer: &[u8], from: usize, wanted: u16) -> Option<&[u8]> {
    let mut at = from;
    loop {
        let length = usize::from(half(answer, at)?);
        if length < 4 {
            return None;
        }
        if half(answer, at + 2)? == wanted {
            return answer.get(at + 4..at + length);
        }
        at += length.next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::attribute;

    #[test]
    fn attributes_are_found_within_bounds() {
        let mut bytes = vec![9; 3];
        bytes.extend([6, 0, 1, 0, 7, 7, 0, 0, 8, 0, 2, 0, 1, 2, 3, 4]);
        let bytes = &bytes[3..];
        assert_eq!(attribute(bytes, 0, 1), Some([7, 7].as_slice()));
        assert_eq!(attribute(bytes, 0, 2), Some([1, 2, 3, 4].as_slice()));
        assert_eq!(attribute(bytes, 0, 3), None);
        assert_eq!(attribute(&[0; 8], 0, 3), None, "no length");
        assert_eq!(
            attribute(&[200, 0, 1, 0, 5], 0, 1),
            None,
            "longer than the answer"
        );
    }
}
