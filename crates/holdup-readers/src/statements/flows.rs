//! Connections in a listing of packets: a receiver that takes no more data, an answer that is long in coming, a connection that is refused.
//!
//! In: lines of TCP as tcpdump prints them, `A > B: Flags […], …`. Out: of each of the three the worst.
//! Source: the manual of tcpdump, "TCP Packets"; RFC 9293, 3.8.6 (windows) and 3.10.7.1 (the answer to a request of a connection that
//! nobody takes).

use super::shape;
use super::tables::Fact;
use crate::find::find;
use crate::numbers::whole;
use holdup_evidence::Ns;
use holdup_evidence::observed::{StatementKind, When};
use holdup_evidence::units::duration;
use std::collections::HashMap;

/// Connections that are followed; of more, the rest is not.
const MAX_CONNECTIONS: usize = 4_096;

/// Bytes of an address with its port.
const MAX_ADDRESS_BYTES: usize = 120;

/// How long an answer may take before people notice: a tenth of a second (Nielsen, Usability Engineering, 1993).
const MAX_ANSWER_NS: Ns = 100_000_000;

/// One direction of a connection.
#[derive(Debug, Default, Clone)]
struct Side {
    /// When it last sent data that the other side has not sent data after.
    asked: Option<(When, u64)>,
    /// Since when its window is closed.
    closed: Option<(When, u64)>,
    /// Whether it asked for the connection.
    opens: bool,
}

/// What was worst.
#[derive(Debug, Clone)]
struct Worst {
    ns: Ns,
    line: u64,
    who: String,
    /// Whether it went on at the end.
    open: bool,
}

/// Follows the connections of one artefact.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// By both addresses, the lesser first, with the sides in that order.
    all: HashMap<Vec<u8>, [Side; 2], foldhash::fast::FixedState>,
    closed: Option<Worst>,
    answer: Option<Worst>,
    refused: Option<(u64, u64, String)>,
    last: Option<When>,
}

/// A packet of TCP.
struct Packet<'a> {
    from: &'a [u8],
    to: &'a [u8],
    flags: &'a [u8],
    window: Option<u64>,
    length: u64,
}

impl<'a> Packet<'a> {
    fn of(line: &'a [u8], arrow: usize) -> Option<Packet<'a>> {
        let before = line.get(..arrow)?;
        let begin = before
            .iter()
            .rposition(|byte| *byte == b' ')
            .map_or(0, |at| at + 1);
        let behind = line.get(arrow + 3..)?;
        let colon = find(behind, b": Flags [")?;
        let body = behind.get(colon + b": Flags [".len()..)?;
        let end = body.iter().position(|byte| *byte == b']')?;
        let number = |name: &[u8]| {
            let rest = body.get(find(body, name)? + name.len()..)?;
            let digits = rest
                .iter()
                .position(|byte| !byte.is_ascii_digit())
                .unwrap_or(rest.len());
            whole(rest.get(..digits)?)
        };
        let (from, to) = (before.get(begin..)?, behind.get(..colon)?);
        let fits =
            |address: &[u8]| (1..=MAX_ADDRESS_BYTES).contains(&address.len()) && !address.contains(&b' ');
        (fits(from) && fits(to)).then_some(Packet {
            from,
            to,
            flags: body.get(..end)?,
            window: number(b", win "),
            length: number(b", length ").unwrap_or(0),
        })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags.contains(&flag)
    }
}

/// Nanoseconds between two instants.
fn between(first: When, last: When) -> Option<Ns> {
    last.since(first).and_then(|ns| Ns::try_from(ns).ok())
}

fn name(address: &[u8]) -> String {
    shape::sentence(address, 0)
}

impl Flows {
    /// Takes a line that has ` > ` at a place; whether it is a packet of a connection.
    pub(super) fn line(&mut self, line: &[u8], arrow: usize, at: Option<When>, number: u64) -> bool {
        let (Some(packet), Some(at)) = (Packet::of(line, arrow), at) else {
            return false;
        };
        self.packet(&packet, at, number);
        true
    }

    fn packet(&mut self, packet: &Packet<'_>, at: When, number: u64) {
        self.last = Some(at);
        let first = packet.from <= packet.to;
        let (one, other) = if first {
            (packet.from, packet.to)
        } else {
            (packet.to, packet.from)
        };
        let key = [one, b" ".as_slice(), other].concat();
        if !self.all.contains_key(&key) && self.all.len() >= MAX_CONNECTIONS {
            return;
        }
        let sides = self.all.entry(key).or_default();
        let (own, peer) = match sides {
            [one, other] if first => (one, other),
            [one, other] => (other, one),
        };
        // The addresses are used again for another connection.
        if packet.has(b'S') && !packet.has(b'.') {
            (*own, *peer) = (Side::default(), Side::default());
            own.opens = true;
        }
        let is_reset = packet.has(b'R');
        if is_reset {
            if std::mem::take(&mut peer.opens) && peer.asked.is_none() && own.asked.is_none() {
                let refused = self.refused.get_or_insert_with(|| (0, number, name(packet.from)));
                refused.0 += 1;
            }
            (*own, *peer) = (Side::default(), Side::default());
            return;
        }
        if packet.has(b'S') {
            // Its window is no promise of data yet.
            peer.opens &= !packet.has(b'.');
            return;
        }
        if packet.length > 0 {
            if let Some((asked, line)) = peer.asked.take() {
                let ns = between(asked, at).filter(|ns| *ns >= MAX_ANSWER_NS);
                longer(&mut self.answer, ns, line, packet.from, false);
            }
            own.asked = Some((at, number));
        }
        match (packet.window, own.closed) {
            (Some(0), None) => own.closed = Some((at, number)),
            (Some(1..), Some((since, line))) => {
                own.closed = None;
                longer(&mut self.closed, between(since, at), line, packet.from, false);
            }
            _ => {}
        }
    }

    /// What was worst.
    pub(super) fn end(&mut self) -> Vec<Fact> {
        let mut read = std::mem::take(self);
        if let Some(last) = read.last {
            for (key, sides) in &read.all {
                let mut addresses = key.split(|byte| *byte == b' ');
                for side in sides {
                    let address = addresses.next().unwrap_or_default();
                    if let Some((since, line)) = side.closed {
                        longer(&mut read.closed, between(since, last), line, address, true);
                    }
                }
            }
        }
        let fact = |kind, ns, line, text| Fact {
            kind,
            share: None,
            ns,
            line,
            text,
        };
        let mut facts = Vec::new();
        if let Some(Worst { ns, line, who, open }) = read.closed {
            let end = if open {
                ", and at the end of the listing"
            } else {
                ""
            };
            let text = format!(
                "{who} took no data for {}{end}: its receive window was 0, because its program did not read",
                duration(ns)
            );
            facts.push(fact(StatementKind::Stalled, Some(ns), line, text));
        }
        if let Some((times, line, who)) = read.refused {
            let times = match times {
                1 => String::new(),
                times => format!(", {times} times"),
            };
            let text = format!("{who} refuses connections: the answer to the first packet is a reset{times}");
            facts.push(fact(StatementKind::Unreachable, None, line, text));
        }
        if let Some(Worst { ns, line, who, .. }) = read.answer {
            let text = format!(
                "{who} answered {} after it had been sent data; the longest of the listing",
                duration(ns)
            );
            facts.push(fact(StatementKind::Took, Some(ns), line, text));
        }
        facts
    }
}

/// Keeps what took longest; of the same, what stands first.
fn longer(worst: &mut Option<Worst>, ns: Option<Ns>, line: u64, who: &[u8], open: bool) {
    let Some(ns) = ns.filter(|ns| *ns > 0) else { return };
    if worst
        .as_ref()
        .is_none_or(|worst| (ns, std::cmp::Reverse(line)) > (worst.ns, std::cmp::Reverse(worst.line)))
    {
        *worst = Some(Worst {
            ns,
            line,
            who: name(who),
            open,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const OPENED: &str = "16:03:24.100000 IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [S], seq 27, win 64240, length 0\n\
        16:03:24.200000 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [S.], seq 99, ack 28, win 64240, length 0\n\
        16:03:24.300000 IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [P.], seq 1:100, ack 1, win 502, length 99\n";

    fn said(text: &str) -> Vec<(K, String)> {
        let all = read_text("t", text.as_bytes()).observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn a_receiver_that_takes_no_data() {
        let text = OPENED.to_owned()
            + "16:03:24.400000 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [.], ack 100, win 0, length 0\n\
               16:03:25.400000 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [.], ack 100, win 0, length 0\n\
               16:03:27.400000 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [.], ack 100, win 502, length 0\n";
        let closed = "10.0.1.53.80 took no data for 3.00 s: its receive window was 0, because its program did not read";
        assert_eq!(said(&text), [(K::Stalled, closed.to_owned())]);
        let open: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
        assert!(
            said(&open)[0]
                .1
                .contains("for 1.00 s, and at the end of the listing"),
            "{:?}",
            said(&open)
        );
    }

    #[test]
    fn an_answer_that_is_long_in_coming_and_a_refusal() {
        let text = OPENED.to_owned()
            + "16:03:26.550000 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [P.], seq 1:100, ack 100, win 502, length 99\n";
        assert_eq!(
            said(&text),
            [(
                K::Took,
                "10.0.1.53.80 answered 2.25 s after it had been sent data; the longest of the listing"
                    .to_owned()
            )]
        );
        let text = "16:03:24.100000 IP 10.0.0.1.1020 > 10.0.1.53.81: Flags [S], seq 27, win 64240, length 0\n\
            16:03:24.100100 IP 10.0.1.53.81 > 10.0.0.1.1020: Flags [R.], seq 0, ack 28, win 0, length 0\n";
        assert_eq!(
            said(text),
            [(
                K::Unreachable,
                "10.0.1.53.81 refuses connections: the answer to the first packet is a reset".to_owned()
            )]
        );
    }

    #[test]
    fn a_conversation_in_order_is_none_of_these() {
        let text = OPENED.to_owned()
            + "16:03:24.350000 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [P.], seq 1:100, ack 100, win 502, length 99\n\
               16:03:29.350000 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [R.], seq 100, ack 100, win 0, length 0\n";
        assert_eq!(said(&text), []);
        for rubbish in [
            " > : Flags [",
            "1. > 2: Flags [S], win , length \n",
            "a > b: Flags [], win 99999999999999999999\n",
        ] {
            let _ = said(rubbish);
        }
    }
}
