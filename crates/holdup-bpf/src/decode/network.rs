//! What the network says of waits, from the records about it. Addresses and names are hostile.

use super::text;
use crate::decode::RawEvent;
use crate::skeleton::types as wire;
use holdup_evidence::ThreadId;
use holdup_evidence::network::{Connection, NameAsked, Outcome, TcpState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a DNS message before its questions.
const DNS_HEADER: usize = 12;
/// Longest label of a name, bytes; greater lengths mean something else.
const LABEL: usize = 63;

pub(super) fn tcp(raw: &wire::holdup_tcp) -> RawEvent {
    let device = text(&raw.device);
    RawEvent::Tcp(TcpState {
        thread: ThreadId(raw.head.thread),
        seq: raw.seq,
        began_unsent: raw.began_unsent,
        began_unacked: raw.began_unacked,
        began_window: raw.began_window,
        segment: raw.segment,
        unacked: raw.unacked,
        window: raw.window,
        retransmitted: raw.retransmitted,
        acked: raw.acked,
        round_trip_us: raw.round_trip,
        ticks: raw.lasted,
        window_ticks: raw.limited.min(raw.lasted),
        unanswered: raw.unanswered,
        probes: raw.probes,
        state: raw.state,
        no_delay: raw.no_delay != 0,
        throttled: raw.throttled != 0,
        device: (!device.is_empty()).then_some(device),
    })
}

pub(super) fn connection(raw: &wire::holdup_connection) -> RawEvent {
    let outcome = match (raw.made, raw.error) {
        (0, 0) => Outcome::GivenUp,
        (0, error) => Outcome::Failed(error),
        _ => Outcome::Made,
    };
    RawEvent::Connection(Connection {
        thread: ThreadId(raw.head.thread),
        began: raw.began,
        at: raw.at.max(raw.began),
        peer: address(raw.family, raw.peer, raw.port),
        outcome,
    })
}

pub(super) fn question(raw: &wire::holdup_question) -> RawEvent {
    let message = raw.message.get(..raw.len as usize).unwrap_or_default();
    RawEvent::NameAsked(NameAsked {
        at: raw.at,
        socket: raw.inode,
        server: address(raw.family, raw.server, raw.port),
        name: name(message),
    })
}

pub(super) fn address(family: u16, bytes: [u8; 16], port: u16) -> SocketAddr {
    let [a, b, c, d, ..] = bytes;
    let ip: IpAddr = match i32::from(family) {
        libc::AF_INET6 => Ipv6Addr::from(bytes).to_canonical(),
        _ => Ipv4Addr::new(a, b, c, d).into(),
    };
    SocketAddr::new(ip, port)
}

/// The name of the first question of a DNS message; nothing if it is an answer, is cut off or is no such message.
fn name(message: &[u8]) -> Option<String> {
    let (header, mut rest) = message.split_at_checked(DNS_HEADER)?;
    let answer = header[2] & 0x80 != 0;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    if answer || questions == 0 {
        return None;
    }
    let mut name = String::new();
    loop {
        let (&length, after) = rest.split_first()?;
        if length == 0 {
            break;
        }
        if usize::from(length) > LABEL {
            return None;
        }
        let (label, after) = after.split_at_checked(usize::from(length))?;
        if !name.is_empty() {
            name.push('.');
        }
        let printable = |byte: &u8| match byte {
            b'!'..=b'~' => char::from(*byte),
            _ => '?',
        };
        name.extend(label.iter().map(printable));
        rest = after;
    }
    // Resolvers may write a name in any mixture of cases; it is the same name.
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::name;
    use proptest::prelude::{any, proptest};

    fn question(labels: &[&[u8]]) -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in labels {
            message.push(label.len() as u8);
            message.extend(*label);
        }
        message.extend([0, 0, 1, 0, 1]);
        message
    }

    #[test]
    fn a_question_names_what_is_asked_for() {
        let asked = question(&[b"Db", b"shop", b"test"]);
        assert_eq!(name(&asked).as_deref(), Some("db.shop.test"));
        assert_eq!(name(&question(&[b"a\n\x1b[b", b"c"])).as_deref(), Some("a??[b.c"));
    }

    #[test]
    fn what_is_no_question_names_nothing() {
        let whole = question(&[b"db", b"shop"]);
        for cut in 0..whole.len() - 5 {
            assert_eq!(name(&whole[..cut]), None, "{cut}");
        }
        let mut answer = whole.clone();
        answer[2] |= 0x80;
        assert_eq!(name(&answer), None);
        let mut empty = whole.clone();
        empty[5] = 0;
        assert_eq!(name(&empty), None);
        let mut pointer = whole;
        pointer[12] = 0xc0;
        assert_eq!(name(&pointer), None);
        assert_eq!(name(&question(&[])), None, "the root");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_name_or_none(message in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(name) = name(&message) {
                assert!(name.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
