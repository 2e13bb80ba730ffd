//! TCP connections and UDP sockets of this network namespace; of connections, each with when something was last sent and received on it: who waits for an answer.
//!
//! In: nothing. Out: [`Connection`]s, as the kernel lists them (`sock_diag(7)`); none where it refuses. One that has sent something and
//! received nothing since waits for an answer, whatever its program is and however it sleeps. The kernel answers before the answer is
//! read, so nothing here waits.

use crate::listen_queues::{HEADER, MESSAGE, TCP, UDP, dump, word};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// States of connections that are open on this side, as bits: established, and closed by the peer.
const OPEN: u32 = 1 << 1 | 1 << 8;

/// `INET_DIAG_INFO`, as the bit and as the number of an attribute.
const WITH_INFO: u8 = 1 << 1;
const INFO: u16 = 2;

/// Where `struct tcp_info` has the milliseconds since something was sent and received, and the bytes that were acknowledged and received.
/// The kernel's clock for these has ticks: what follows within one cannot be distinguished.
const LAST_SENT: usize = 44;
const LAST_RECEIVED: usize = 52;
const ACKNOWLEDGED: usize = 120;
const RECEIVED: usize = 128;

/// Where it has how often in a row the oldest segment was sent again, and the microseconds until it is sent the next time, which double each time.
const RESENT: usize = 2;
const UNTIL_SENT_AGAIN: usize = 8;

/// Microseconds in a millisecond.
const US_IN_MS: u32 = 1_000;

/// Where it has the numbers of segments with data, received and sent.
const DATA_SEGMENTS_IN: usize = 152;
const DATA_SEGMENTS_OUT: usize = 156;

/// The kernel counts the begin of a connection as a byte that was acknowledged.
const BEGIN_BYTES: u64 = 1;

/// Where `struct inet_diag_msg` has ports, addresses, bytes that were not read, bytes that were not sent, and the inode.
const PORTS: usize = 4;
const LOCAL: usize = 8;
const PEER: usize = 24;
const UNREAD: usize = 56;
const UNSENT: usize = 60;
const INODE: usize = 68;

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Own end.
    pub local: SocketAddr,
    /// Other end.
    pub peer: SocketAddr,
    /// Bytes that have come and were not read.
    pub unread: u32,
    /// Bytes that it has sent and that have not arrived: on their way, or in the queue of a device. Of a UDP socket with the memory that they take.
    pub unsent: u32,
    /// Inode; 0 of one that nobody has accepted.
    pub inode: u64,
    /// Milliseconds since it sent something without receiving anything since; `None` where it waits for no answer.
    pub asks_ms: Option<u32>,
    /// Of an end that was connected to: milliseconds since it received something without sending anything since; `None` where it owes no answer.
    pub owes_ms: Option<u32>,
    /// Milliseconds since something was received on it; `None` where nothing was.
    pub received_ms: Option<u32>,
    /// Of one that sends again what has not arrived: about the milliseconds for which it has not, at most so many that were seen to go by.
    pub resent_ms: Option<u32>,
    /// Milliseconds since it sent something; `None` where it has sent nothing.
    pub sent_ms: Option<u32>,
    /// Whether it has sent and received something last within one tick of the kernel's clock, so that it may wait for an answer.
    pub may_ask: bool,
    /// Segments with data that it has sent.
    pub sent_segments: u32,
    /// Segments with data that it has received.
    pub received_segments: u32,
    /// Bytes that it has received.
    pub received_bytes: u64,
    /// Whether it was answered about as often as it sent: neither a log nor a subscription is.
    pub speaks_in_turn: bool,
}

impl Connection {
    /// One on which nothing is unread, unsent or awaited.
    #[must_use]
    pub fn at_rest(local: SocketAddr, peer: SocketAddr, inode: u64) -> Connection {
        Connection {
            local,
            peer,
            unread: 0,
            unsent: 0,
            inode,
            asks_ms: None,
            owes_ms: None,
            received_ms: None,
            resent_ms: None,
            sent_ms: None,
            may_ask: false,
            sent_segments: 0,
            received_segments: 0,
            received_bytes: 0,
            speaks_in_turn: false,
        }
    }
}

/// All of them; of very many the first ones.
#[must_use]
pub fn read() -> Vec<Connection> {
    listed().0
}

/// The same, and nothing where they are too many to be read to the end.
#[must_use]
pub fn read_whole() -> Option<Vec<Connection>> {
    let (all, whole) = listed();
    whole.then_some(all)
}

/// Those that were read, and whether that was the whole list.
fn listed() -> (Vec<Connection>, bool) {
    let mut all = Vec::new();
    let mut whole = true;
    for family in [libc::AF_INET, libc::AF_INET6] {
        whole &= dump(family, TCP, OPEN, WITH_INFO, &mut |message| {
            all.extend(connection(message))
        });
    }
    (all, whole)
}

/// UDP sockets, with and without a peer.
#[must_use]
pub fn datagrams() -> Vec<Connection> {
    let mut all = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        dump(family, UDP, u32::MAX, 0, &mut |message| {
            all.extend(connection(message))
        });
    }
    all
}

/// A message of the list.
fn connection(message: &[u8]) -> Option<Connection> {
    let body = message.get(HEADER..)?;
    let port = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let ip = |at: usize| -> Option<IpAddr> {
        let bytes = body.get(at..at + 16)?;
        match i32::from(*body.first()?) {
            libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..4]).ok()?).into()),
            libc::AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()),
            _ => None,
        }
    };
    let info = body.get(MESSAGE..).and_then(|rest| attribute(rest, INFO));
    Some(Connection {
        local: SocketAddr::new(ip(LOCAL)?, port(PORTS)?),
        peer: SocketAddr::new(ip(PEER)?, port(PORTS + 2)?),
        unread: word(body, UNREAD)?,
        unsent: word(body, UNSENT)?,
        inode: u64::from(word(body, INODE)?),
        asks_ms: info.and_then(asks),
        owes_ms: info.and_then(owes),
        received_ms: info.and_then(received),
        resent_ms: info.and_then(resent),
        sent_ms: info.and_then(sent),
        may_ask: info.is_some_and(|info| {
            received(info).is_some() && word(info, LAST_SENT) == word(info, LAST_RECEIVED)
        }),
        sent_segments: info
            .and_then(|info| word(info, DATA_SEGMENTS_OUT))
            .unwrap_or(u32::MAX),
        received_segments: info.and_then(|info| word(info, DATA_SEGMENTS_IN)).unwrap_or(0),
        received_bytes: info.and_then(|info| bytes(info, RECEIVED)).unwrap_or(0),
        speaks_in_turn: info.is_some_and(speaks_in_turn),
    })
}

/// When an end has received something last.
fn received(info: &[u8]) -> Option<u32> {
    (bytes(info, RECEIVED)? > 0).then(|| word(info, LAST_RECEIVED))?
}

/// For how long about an end has sent the same again. Each pause is as long as all before it, and so is the one that goes on.
fn resent(info: &[u8]) -> Option<u32> {
    let again = *info.get(RESENT)? > 0;
    let pause = word(info, UNTIL_SENT_AGAIN)?;
    again.then_some(pause / US_IN_MS)
}

/// When an end has sent something last.
fn sent(info: &[u8]) -> Option<u32> {
    (word(info, DATA_SEGMENTS_OUT)? > 0).then(|| word(info, LAST_SENT))?
}

/// A number of bytes.
fn bytes(info: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?))
}

/// For how long an end has waited for an answer, by its `struct tcp_info`.
fn asks(info: &[u8]) -> Option<u32> {
    let (sent, received) = (word(info, LAST_SENT)?, word(info, LAST_RECEIVED)?);
    let unanswered = sent < received || bytes(info, RECEIVED)? == 0;
    (bytes(info, ACKNOWLEDGED)? > BEGIN_BYTES && unanswered).then_some(sent)
}

/// For how long an end that was connected to has owed an answer, by its `struct tcp_info`. There the begin of the connection counts for no byte.
fn owes(info: &[u8]) -> Option<u32> {
    let (sent, heard) = (word(info, LAST_SENT)?, received(info)?);
    (heard < sent || bytes(info, ACKNOWLEDGED)? == 0).then_some(heard)
}

/// Pieces of an answer that each piece of a question may bring: an answer is longer than what asked for it.
const PIECES_OF_ANSWER: u32 = 64;

/// Whether an end has sent about as often as it was answered. A log's is answered seldom; a subscriber receives what it never asked for again.
fn speaks_in_turn(info: &[u8]) -> bool {
    let (Some(came), Some(went)) = (word(info, DATA_SEGMENTS_IN), word(info, DATA_SEGMENTS_OUT)) else {
        return false;
    };
    went <= came.saturating_mul(2).saturating_add(2) && came <= went.saturating_mul(PIECES_OF_ANSWER)
}

/// What the attribute of this type holds.
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let half = |at: usize| Some(u16::from_ne_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let length = usize::from(half(0)?);
        if length < 4 {
            return None;
        }
        if half(2)? == wanted {
            return rest.get(4..length);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{attribute, connection, datagrams, read, resent};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn who_sends_again_has_done_so_for_about_its_pause() {
        let mut info = [0_u8; 160];
        info[8..12].copy_from_slice(&12_800_000_u32.to_ne_bytes());
        assert_eq!(resent(&info), None, "all has arrived at the first time");
        info[2] = 6;
        assert_eq!(resent(&info), Some(12_800));
        assert_eq!(resent(&info[..9]), None);
    }

    #[test]
    fn who_has_asked_waits_and_who_was_answered_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let [mut asks, mut answered, silent] = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        let mut accepted = [(); 3].map(|()| listener.accept().unwrap().0);
        let pause = std::time::Duration::from_millis(20);
        // Whoever asks at once, within a tick of the kernel's clock, has received nothing as well.
        asks.write_all(b"a").unwrap();
        std::thread::sleep(pause);
        answered.write_all(b"b").unwrap();
        accepted[1].read_exact(&mut [0]).unwrap();
        std::thread::sleep(pause);
        accepted[1].write_all(b"c").unwrap();
        std::thread::sleep(pause);
        let all = read();
        let of = |stream: &TcpStream| {
            let local = stream.local_addr().unwrap();
            *all.iter()
                .find(|one| one.local == local && one.peer == address)
                .unwrap()
        };
        assert!(
            of(&asks).asks_ms.is_some() && of(&answered).asks_ms.is_none() && of(&silent).asks_ms.is_none()
        );
        let local = asks.local_addr().unwrap();
        let other = all
            .iter()
            .find(|one| one.local == address && one.peer == local)
            .unwrap();
        assert_eq!((other.unread, other.asks_ms), (1, None));
        assert!(of(&answered).received_ms.is_some() && of(&asks).received_ms.is_none());
        let served = |client: &TcpStream| {
            let client = client.local_addr().unwrap();
            *all.iter()
                .find(|one| one.local == address && one.peer == client)
                .unwrap()
        };
        assert!(
            served(&asks).owes_ms.is_some()
                && served(&answered).owes_ms.is_none()
                && served(&silent).owes_ms.is_none()
        );
    }

    #[test]
    fn a_socket_for_datagrams_has_its_peer_and_what_it_has_not_read() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (own, other) = (client.local_addr().unwrap(), server.local_addr().unwrap());
        client.connect(other).unwrap();
        client.send(b"question").unwrap();
        let all = datagrams();
        let asks = all.iter().find(|one| one.local == own).unwrap();
        assert_eq!((asks.peer, asks.unread), (other, 0));
        let asked = all.iter().find(|one| one.local == other).unwrap();
        assert!(asked.unread > 0 && asked.peer.port() == 0);
    }

    #[test]
    fn what_is_cut_off_says_nothing() {
        assert_eq!(connection(&[2; 60]), None);
        assert_eq!(attribute(&[200, 0, 2, 0, 1], 2), None);
        assert_eq!(attribute(&[0; 8], 2), None);
        assert_eq!(attribute(&[5, 0, 2, 0, 9], 2), Some([9].as_slice()));
    }
}
