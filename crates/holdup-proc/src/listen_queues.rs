//! The queues of this network namespace's TCP listeners: how many clients wait, and how many may, which no file of `/proc` tells.
//!
//! In: nothing. Out: each listener, as the kernel lists them (`sock_diag(7)`); none where it refuses. It answers from its table of
//! listeners alone, however many connections there are, and before the answer is read, so nothing here waits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h), and the types of an end and of an error (linux/netlink.h).
pub(crate) const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// The state of a socket that listens, as a bit.
const LISTENING: u32 = 1 << 10;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
pub(crate) const LIST: u16 = 0x301;

/// Bytes of `struct nlmsghdr`, and of `struct inet_diag_msg` behind it.
pub(crate) const HEADER: usize = 16;
pub(crate) const MESSAGE: usize = 72;

/// Where a message has the port and the address that it listens at, how many clients wait, how many may (`idiag_rqueue`,
/// `idiag_wqueue`), and its inode.
const PORT: usize = 4;
const ADDRESS: usize = 8;
const WAITING: usize = 56;
const LIMIT: usize = 60;
const INODE: usize = 68;

/// Longest part of an answer, bytes.
const MAX_PART_BYTES: usize = 32 << 10;

/// Parts that are read: some ten thousand listeners, or five thousand connections with what is known of each.
const MAX_PARTS: usize = 64;

/// A listener's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenQueue {
    /// Where it listens.
    pub address: SocketAddr,
    /// Clients that it has not accepted.
    pub waiting: u32,
    /// How many may wait; the kernel lets in one more.
    pub limit: u32,
    /// The listener's inode.
    pub inode: u64,
}

/// All listeners' queues now.
#[must_use]
pub fn read() -> Vec<ListenQueue> {
    let mut queues = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        dump(family, TCP, LISTENING, 0, &mut |message| {
            queues.extend(message.get(HEADER..HEADER + MESSAGE).and_then(queue));
        });
    }
    queues
}

/// The listener that takes clients of an address: the one of just that, else of any on the same port.
#[must_use]
pub fn listener(queues: &[ListenQueue], address: SocketAddr) -> Option<&ListenQueue> {
    let at = |queue: &&ListenQueue| queue.address.port() == address.port();
    let same = |queue: &&ListenQueue| queue.address.ip().to_canonical() == address.ip();
    let mut all = queues.iter().filter(at);
    let exact = all.clone().find(same);
    exact.or_else(|| all.find(|queue| queue.address.ip().is_unspecified()))
}

fn queue(message: &[u8]) -> Option<ListenQueue> {
    let ip = message.get(ADDRESS..ADDRESS + 16)?;
    let ip: IpAddr = match i32::from(*message.first()?) {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(&ip[..4]).ok()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(ip).ok()?).into(),
        _ => return None,
    };
    let port = u16::from_be_bytes(message.get(PORT..PORT + 2)?.try_into().ok()?);
    Some(ListenQueue {
        address: SocketAddr::new(ip, port),
        waiting: word(message, WAITING)?,
        limit: word(message, LIMIT)?,
        inode: u64::from(word(message, INODE)?),
    })
}

/// Four bytes at a place.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// `struct inet_diag_req_v2`: all sockets of a family and a protocol in these states, with these attributes.
fn request(family: libc::c_int, protocol: u8, states: u32, attributes: u8) -> Vec<u8> {
    const ID: usize = 48;
    let mut bytes = Vec::with_capacity(HEADER + 8 + ID);
    bytes.extend(((HEADER + 8 + ID) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(LIST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family as u8, protocol, attributes, 0]);
    bytes.extend(states.to_ne_bytes());
    bytes.extend([0; ID]);
    bytes
}

/// Protocols, by number.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// Lists the sockets of a family and a protocol in these states: each message, with its header, is handed over. Whether the list was read to
/// its end.
pub(crate) fn dump(
    family: libc::c_int,
    protocol: u8,
    states: u32,
    attributes: u8,
    each: &mut dyn FnMut(&[u8]),
) -> bool {
    let request = request(family, protocol, states, attributes);
    list(libc::NETLINK_SOCK_DIAG, &request, each)
}

/// Asks the kernel for a list by one of its protocols: each message, with its header, is handed over. Whether it was read to its end.
pub(crate) fn list(protocol: libc::c_int, request: &[u8], each: &mut dyn FnMut(&[u8])) -> bool {
    // SAFETY: makes a descriptor, or none.
    let socket = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            protocol,
        )
    };
    if socket < 0 {
        return false;
    }
    // SAFETY: it was just made, and is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    list_by(&socket, request, MAX_PARTS, each)
}

/// The same by a socket that is there, so many parts of it.
pub(crate) fn list_by(socket: &OwnedFd, request: &[u8], most: usize, each: &mut dyn FnMut(&[u8])) -> bool {
    // SAFETY: the buffer is as long as it is said to be.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return false;
    }
    let mut part = vec![0u8; MAX_PART_BYTES];
    for _ in 0..most {
        // SAFETY: as above; the descriptor does not block.
        let length = unsafe { libc::recv(socket.as_raw_fd(), part.as_mut_ptr().cast(), part.len(), 0) };
        let Ok(length) = usize::try_from(length) else {
            return false;
        };
        if take(&part[..length], each) {
            return true;
        }
    }
    false
}

/// Takes the messages of one part; whether the list ends with it.
fn take(mut part: &[u8], each: &mut dyn FnMut(&[u8])) -> bool {
    // The kernel sends nothing at all where there is nothing more; else the end is a message of its own, in this part or in a later one.
    let is_last = part.is_empty();
    while let Some(length) = word(part, 0).and_then(|length| usize::try_from(length).ok()) {
        let Some(message) = part.get(..length).filter(|_| length >= HEADER) else {
            return true;
        };
        let kind = word(message, 4).unwrap_or(0) as u16;
        if kind == DONE || kind == ERROR {
            return true;
        }
        each(message);
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    is_last
}

#[cfg(test)]
mod tests {
    use super::{ADDRESS, DONE, HEADER, INODE, LIMIT, MESSAGE, PORT, WAITING, queue, read, take};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn an_own_listener_has_the_queue_that_it_asked_for_and_the_clients_that_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // SAFETY: the descriptor is open; a second call changes the limit.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 3) }, 0);
        let address = listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).unwrap();
        let queues = read();
        let own = queues.iter().find(|queue| queue.address == address).unwrap();
        assert_eq!((own.waiting, own.limit), (1, 3));
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        assert_eq!(link.to_str().unwrap(), format!("socket:[{}]", own.inode));
    }

    #[test]
    fn messages_are_taken_within_bounds() {
        let message = |kind: u16, port: u16| {
            let mut bytes = vec![0u8; HEADER + MESSAGE];
            bytes[..4].copy_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            let found = &mut bytes[HEADER..];
            found[0] = libc::AF_INET as u8;
            found[PORT..PORT + 2].copy_from_slice(&port.to_be_bytes());
            found[ADDRESS..ADDRESS + 4].copy_from_slice(&[10, 0, 0, 9]);
            for (at, value) in [(WAITING, 2u32), (LIMIT, 128), (INODE, 77)] {
                found[at..at + 4].copy_from_slice(&value.to_ne_bytes());
            }
            bytes
        };
        let mut queues = Vec::new();
        let part = [message(20, 80), message(20, 81), message(DONE, 0)].concat();
        let mut add = |message: &[u8]| {
            queues.extend(message.get(HEADER..HEADER + MESSAGE).and_then(queue));
        };
        assert!(take(&part, &mut add));
        assert!(
            !take(&message(20, 80), &mut |_| {}),
            "without the end there is another part"
        );
        for length in 0..part.len() {
            take(&part[..length], &mut |_| {});
        }
        assert!(take(&[3, 0, 0, 0], &mut |_| {}), "shorter than its own header");
        let found: Vec<_> = queues
            .iter()
            .map(|one| (one.address.to_string(), one.waiting, one.limit, one.inode))
            .collect();
        let expected = ["10.0.0.9:80", "10.0.0.9:81"].map(|address| (address.to_owned(), 2, 128, 77));
        assert_eq!(found, expected);
    }
}
