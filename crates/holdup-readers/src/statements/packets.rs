//! Packets that were sent again, as tcpdump prints them: the same request from the same place, and no answer between.
//!
//! In: lines of a text that no reader knows, `A > B: …`. Out: what was sent again most often, over which time.

use super::flows::Flows;
use super::shape;
use super::tables::Fact;
use crate::find::find;
use crate::formats::Stamps;
use holdup_evidence::Ns;
use holdup_evidence::observed::{StatementKind, When};

/// Requests that are remembered; the oldest makes room.
const REQUESTS: usize = 64;

/// Bytes of a line that are looked at.
const LINE: usize = 400;

/// Follows the packets of one artefact.
#[derive(Debug, Default)]
pub(super) struct Packets {
    /// The time of the packet whose contents may stand on the next line.
    at: Option<When>,
    requests: Vec<Request>,
    next: usize,
    flows: Flows,
}

#[derive(Debug)]
struct Request {
    key: Vec<u8>,
    times: u64,
    first: Option<When>,
    last: Option<When>,
    line: u64,
}

impl Packets {
    /// Takes a line; whether it is a packet.
    pub(super) fn line(&mut self, line: &[u8], number: u64, stamps: &mut Stamps) -> bool {
        let line = line.get(..LINE).unwrap_or(line);
        // Nearly every line of a log ends the look here.
        let Some(arrow) = find(line, b" > ") else {
            if find(line, b" IP").is_some() {
                self.at = stamps.of(line).and_then(|stamp| stamp.when());
            }
            return false;
        };
        let of_connection = find(line, b": Flags [").is_some() && {
            let at = stamps.of(line).and_then(|stamp| stamp.when());
            self.flows.line(line, arrow, at.or(self.at), number)
        };
        let Some(key) = request(line, arrow) else {
            return of_connection;
        };
        if let Some(at) = stamps.of(line).and_then(|stamp| stamp.when()) {
            self.at = Some(at);
        }
        match self.requests.iter_mut().find(|known| known.key == key) {
            Some(known) => {
                known.times += 1;
                known.last = self.at;
            }
            None => {
                let new = Request {
                    key,
                    times: 1,
                    first: self.at,
                    last: self.at,
                    line: number,
                };
                match self.requests.get_mut(self.next) {
                    // One that was sent again is kept.
                    Some(old) if old.times < 2 => *old = new,
                    Some(_) => {}
                    None => self.requests.push(new),
                }
                self.next = (self.next + 1) % REQUESTS;
            }
        }
        true
    }

    /// What was sent again most often, and what connections waited for.
    pub(super) fn end(&mut self) -> Vec<Fact> {
        let again = self.sent_again();
        again.into_iter().chain(self.flows.end()).collect()
    }

    fn sent_again(&mut self) -> Option<Fact> {
        let all = std::mem::take(&mut self.requests).into_iter();
        let most = all.filter(|one| one.times > 1).max_by_key(|one| one.times)?;
        let ns = most
            .last
            .zip(most.first)
            .and_then(|(last, first)| last.since(first));
        let ns = ns.and_then(|ns| Ns::try_from(ns).ok()).filter(|ns| *ns > 0);
        let within = ns.map_or_else(String::new, |ns| {
            format!(" in {}", holdup_evidence::units::duration(ns))
        });
        Some(Fact {
            kind: StatementKind::TimedOut,
            share: None,
            ns,
            line: most.line,
            text: format!(
                "sent again without an answer, {} times{within}: {}",
                most.times,
                shape::sentence(&most.key, 0)
            ),
        })
    }
}

/// What a packet asks, from its sender to what it asks: a connection, a name, or bytes of a stream. An answer asks nothing.
fn request(line: &[u8], arrow: usize) -> Option<Vec<u8>> {
    let before = line.get(..arrow)?;
    let begin = before
        .iter()
        .rposition(|byte| *byte == b' ')
        .map_or(0, |at| at + 1);
    let behind = line.get(arrow + 3..)?;
    let colon = find(behind, b": ")?;
    let sender = before.get(begin..)?;
    let is_address = sender.contains(&b'.') || sender.contains(&b':');
    let body = behind.get(colon + 2..)?;
    // Whom it goes to is one word.
    if !is_address || behind.get(..colon)?.contains(&b' ') {
        return None;
    }
    let from = arrow + 3 + colon + 2;
    let whole = if let Some(flags) = body.strip_prefix(b"Flags [") {
        let seq = find(body, b", seq ")? + b", seq ".len();
        let rest = body.get(seq..)?;
        let end = rest.iter().position(|byte| *byte == b',')?;
        // Bytes, or the request of a connection; the answer to that has a point.
        let range = rest.get(..end)?.contains(&b':');
        // A sum between the two has the time of sending in it.
        let flags_end = find(body, b"]").filter(|_| flags.starts_with(b"S]") || range)? + 1;
        let head = line.get(begin..from + flags_end)?;
        [head, b", seq ", rest.get(..end)?].concat()
    } else {
        // `13609+ AAAA? mysql. (23)`: a question; its answer has counts of records.
        find(body, b"? ").filter(|_| find(body, b"+ ").is_some())?;
        line.get(begin..)?.to_vec()
    };
    Some(whole)
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<String> {
        let all = read_text("t", text.as_bytes()).observed.statements;
        let given_up = all.into_iter().filter(|one| one.kind == StatementKind::TimedOut);
        given_up.map(|one| one.text).collect()
    }

    #[test]
    fn a_connection_that_nobody_answers() {
        let text = "16:03:24.164838 IP 10.0.0.187.1020 > 10.0.1.53.acp-proto: Flags [S], seq 2722685289, win 64240, length 0\n\
                    16:03:25.184372 IP 10.0.0.187.1020 > 10.0.1.53.acp-proto: Flags [S], seq 2722685289, win 64240, length 0\n\
                    16:03:27.232376 IP 10.0.0.187.1020 > 10.0.1.53.acp-proto: Flags [S], seq 2722685289, win 64240, length 0\n";
        let said = said(text);
        assert!(
            said[0].contains("3 times in 3.07 s") && said[0].contains("acp-proto"),
            "{said:?}"
        );
    }

    #[test]
    fn a_question_that_is_asked_again() {
        let text = "14:22:47.823940 IP (tos 0x0, ttl 64, proto UDP (17), length 51)\n    10.0.50.121.61914 > 10.0.50.1.53: [udp sum ok] 13609+ AAAA? mysql. (23)\n\
                    14:22:52.832774 IP (tos 0x0, ttl 64, proto UDP (17), length 51)\n    10.0.50.121.61914 > 10.0.50.1.53: [udp sum ok] 13609+ AAAA? mysql. (23)\n";
        let said = said(text);
        assert!(
            said[0].contains("2 times in 5.01 s") && said[0].contains("AAAA? mysql."),
            "{said:?}"
        );
    }

    #[test]
    fn a_conversation_is_in_order() {
        let text = "16:03:24.1 IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [S], seq 27, win 64240, length 0\n\
                    16:03:24.2 IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [S.], seq 99, ack 28, win 64240, length 0\n\
                    16:03:24.3 IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [P.], seq 1:100, ack 1, win 502, length 99\n\
                    16:03:24.4 IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [P.], seq 100:200, ack 1, win 502, length 99\n\
                    16:03:24.5 IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [.], ack 1, win 502, length 0\n\
                    16:03:24.6 IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [.], ack 1, win 502, length 0\n";
        assert_eq!(said(text), Vec::<String>::new());
        assert_eq!(
            said("a > b: \n > : Flags [\n 1. > 2: Flags [S], seq\n"),
            Vec::<String>::new()
        );
    }
}
