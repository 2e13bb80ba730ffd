//! Packets that were sent again, as tcpdump prints them: the same request from the same place, and whether an answer was seen between.
//!
//! In: lines of a text that no reader knows, `A > B: …`. Out: what was sent again most often, over which time: without an answer, before
//! one came, or although each was answered. The last is another trouble: the answers were seen on their way, and the sender did not take them.

use super::flows::Flows;
use super::shape;
use super::tables::Fact;
use crate::find::find;
use crate::formats::Stamps;
use crate::numbers::whole;
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

/// What a packet asks for, by which its answer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Connection,
    /// Bytes of a stream up to this number: an acknowledgement of so many answers them.
    Bytes {
        end: u64,
    },
    /// A name: the answer has the number of the question.
    Name {
        id: u64,
    },
}

/// How an answer looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Accepts,
    Resets,
    Acknowledges,
    Names,
}

impl Answer {
    fn words(self) -> &'static str {
        match self {
            Answer::Accepts => "a SYN-ACK",
            Answer::Resets => "a reset",
            Answer::Acknowledges => "an acknowledgement",
            Answer::Names => "an answer to the question",
        }
    }
}

#[derive(Debug)]
struct Request {
    key: Vec<u8>,
    from: Vec<u8>,
    to: Vec<u8>,
    asks: Asks,
    times: u64,
    /// How often it was sent, and an answer was seen before it was sent again.
    answered: u64,
    /// Whether an answer was seen since it was last sent.
    has_answer: bool,
    answer: Option<Answer>,
    /// Whether the sender went on, so that it has got an answer. The same words are another request then.
    over: bool,
    first: Option<When>,
    last: Option<When>,
    line: u64,
}

impl Request {
    /// Which trouble a repetition is.
    fn repeated(&self) -> Repeated {
        if self.answered == 0 {
            Repeated::Unanswered
        } else if self.answered + u64::from(!self.has_answer) >= self.times {
            // The listing may end before the last answer.
            Repeated::Answered
        } else {
            Repeated::Sometimes
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Unanswered,
    Sometimes,
    Answered,
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
        let Some(packet) = Packet::of(line, arrow) else {
            return of_connection;
        };
        self.answers(&packet);
        let Some((asks, key)) = packet.request(line) else {
            return of_connection;
        };
        if let Some(at) = stamps.of(line).and_then(|stamp| stamp.when()) {
            self.at = Some(at);
        }
        match self
            .requests
            .iter_mut()
            .find(|known| !known.over && known.key == key)
        {
            Some(known) => {
                known.times += 1;
                known.has_answer = false;
                known.last = self.at;
            }
            None => {
                let new = Request {
                    key,
                    from: packet.from.to_vec(),
                    to: packet.to.to_vec(),
                    asks,
                    times: 1,
                    answered: 0,
                    has_answer: false,
                    answer: None,
                    over: false,
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

    /// Marks what this packet answers, and what its sender has got an answer to.
    fn answers(&mut self, packet: &Packet<'_>) {
        for known in &mut self.requests {
            if known.over {
                continue;
            }
            if known.from == packet.to && known.to == packet.from {
                if let Some(answer) = packet.answer(known.asks) {
                    known.answered += u64::from(!known.has_answer);
                    known.has_answer = true;
                    known.answer.get_or_insert(answer);
                }
            } else if known.asks == Asks::Connection && known.from == packet.from && known.to == packet.to {
                // It goes on with a connection that was accepted, or ends it: a later request is another one's.
                known.over = packet.flags().is_some_and(|flags| !flags.contains(&b'S'));
            }
        }
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
        let what = shape::sentence(&most.key, 0);
        let times = most.times;
        let peer = shape::sentence(&most.to, 0);
        let text = match (most.repeated(), most.answer) {
            (Repeated::Unanswered, _) | (_, None) => {
                format!("sent again without an answer, {times} times{within}: {what}")
            }
            (Repeated::Answered, Some(answer)) => format!(
                "sent again although it was answered, {times} times{within}: {what}: {peer} answers each with {}, and the sender \
                 repeats {}: the answers do not reach it, or it does not take them",
                answer.words(),
                match (most.asks, most.over) {
                    (Asks::Connection, false) => "the SYN, so that the handshake is not completed",
                    (Asks::Connection, true) => "the SYN",
                    (Asks::Bytes { .. }, _) => "the bytes",
                    (Asks::Name { .. }, _) => "the question",
                }
            ),
            (Repeated::Sometimes, Some(answer)) => format!(
                "sent again, {times} times{within}, and {} of them answered ({peer}, with {}): {what}",
                most.answered,
                answer.words()
            ),
        };
        Some(Fact {
            kind: StatementKind::TimedOut,
            share: None,
            ns,
            line: most.line,
            text,
        })
    }
}

/// A packet, as far as questions and answers need it.
struct Packet<'a> {
    from: &'a [u8],
    to: &'a [u8],
    /// What stands behind `A > B: `.
    body: &'a [u8],
    /// Where the sender and what is behind `A > B: ` begin in the line.
    begin: usize,
    body_at: usize,
}

impl<'a> Packet<'a> {
    fn of(line: &'a [u8], arrow: usize) -> Option<Packet<'a>> {
        let before = line.get(..arrow)?;
        let begin = before
            .iter()
            .rposition(|byte| *byte == b' ')
            .map_or(0, |at| at + 1);
        let behind = line.get(arrow + 3..)?;
        let colon = find(behind, b": ")?;
        let from = before.get(begin..)?;
        let to = behind.get(..colon)?;
        let is_address = from.contains(&b'.') || from.contains(&b':');
        // Whom it goes to is one word.
        (is_address && !to.contains(&b' ')).then_some(Packet {
            from,
            to,
            body: behind.get(colon + 2..)?,
            begin,
            body_at: arrow + 3 + colon + 2,
        })
    }

    /// The flags of TCP.
    fn flags(&self) -> Option<&'a [u8]> {
        let flags = self.body.strip_prefix(b"Flags [")?;
        flags.get(..flags.iter().position(|byte| *byte == b']')?)
    }

    /// What a packet asks, from its sender to what it asks: a connection, a name, or bytes of a stream. An answer asks nothing.
    fn request(&self, line: &[u8]) -> Option<(Asks, Vec<u8>)> {
        if let Some(flags) = self.flags() {
            let seq = find(self.body, b", seq ")? + b", seq ".len();
            let rest = self.body.get(seq..)?;
            let end = rest.iter().position(|byte| *byte == b',')?;
            let numbers = rest.get(..end)?;
            // Bytes, or the request of a connection; the answer to that has a point.
            let last = find(numbers, b":").and_then(|colon| whole(numbers.get(colon + 1..)?));
            let asks = match last {
                Some(end) => Asks::Bytes { end },
                None if flags.contains(&b'S') && !flags.contains(&b'.') => Asks::Connection,
                None => return None,
            };
            // A sum between the two has the time of sending in it.
            let flags_end = find(self.body, b"]")? + 1;
            let head = line.get(self.begin..self.body_at + flags_end)?;
            return Some((asks, [head, b", seq ", numbers].concat()));
        }
        // `13609+ AAAA? mysql. (23)`: a question; its answer has counts of records.
        find(self.body, b"? ").filter(|_| find(self.body, b"+ ").is_some())?;
        let id = self.id().unwrap_or(u64::MAX);
        Some((Asks::Name { id }, line.get(self.begin..)?.to_vec()))
    }

    /// The number of a question or an answer about names, behind the sum of the packet.
    fn id(&self) -> Option<u64> {
        let body = match self.body.strip_prefix(b"[") {
            Some(rest) => rest.get(find(rest, b"] ")? + 2..)?,
            None => self.body,
        };
        let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
        whole(body.get(..digits)?)
    }

    /// Whether it answers what the other side asks.
    fn answer(&self, asks: Asks) -> Option<Answer> {
        match (asks, self.flags()) {
            (Asks::Name { id }, None) => {
                let asks_too = find(self.body, b"+ ").is_some() && find(self.body, b"? ").is_some();
                (self.id() == Some(id) && !asks_too).then_some(Answer::Names)
            }
            (Asks::Connection, Some(flags)) if flags.contains(&b'R') => Some(Answer::Resets),
            (Asks::Connection, Some(flags)) => {
                (flags.contains(&b'S') && flags.contains(&b'.')).then_some(Answer::Accepts)
            }
            (Asks::Bytes { end }, Some(_)) => {
                let rest = self.body.get(find(self.body, b", ack ")? + b", ack ".len()..)?;
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let ack = whole(rest.get(..digits)?)?;
                (ack >= end).then_some(Answer::Acknowledges)
            }
            (Asks::Name { .. }, Some(_)) | (Asks::Connection | Asks::Bytes { .. }, None) => None,
        }
    }
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

    #[test]
    fn a_connection_that_is_answered_each_time_and_asked_for_again() {
        let round = |second: u32| {
            format!(
                "11:20:{second:02}.100000 IP 198.51.100.9.40112 > 203.0.113.4.8443: Flags [S], seq 77, win 64240, length 0\n\
                 11:20:{second:02}.100090 IP 203.0.113.4.8443 > 198.51.100.9.40112: Flags [S.], seq 5, ack 78, win 65160, length 0\n"
            )
        };
        let told = said(&(round(1) + &round(2) + &round(4)));
        assert!(
            told[0]
                .starts_with("sent again although it was answered, 3 times in 3.00 s: 198.51.100.9.40112 > ")
                && told[0].contains("203.0.113.4.8443 answers each with a SYN-ACK")
                && told[0].contains("the handshake is not completed: the answers do not reach it"),
            "{told:?}"
        );
        // A listing that ends with the question has no answer to it yet.
        let cut = round(1) + &round(2) + round(4).lines().next().unwrap() + "\n";
        assert!(said(&cut)[0].starts_with("sent again although"), "{cut}");
        // A refusal is an answer too.
        let refused = (round(1) + &round(2)).replace("Flags [S.]", "Flags [R.]");
        assert!(
            said(&refused)[0].contains("answers each with a reset"),
            "{refused}"
        );
    }

    #[test]
    fn an_answer_to_the_second_request_alone_is_no_answer_to_each() {
        let text = "11:20:01.1 IP 198.51.100.9.40112 > 203.0.113.4.8443: Flags [S], seq 77, win 64240, length 0\n\
                    11:20:02.1 IP 198.51.100.9.40112 > 203.0.113.4.8443: Flags [S], seq 77, win 64240, length 0\n\
                    11:20:02.2 IP 203.0.113.4.8443 > 198.51.100.9.40112: Flags [S.], seq 5, ack 78, win 65160, length 0\n\
                    11:20:02.3 IP 198.51.100.9.40112 > 203.0.113.4.8443: Flags [.], ack 1, win 502, length 0\n";
        let told = said(text);
        assert!(
            told[0].starts_with(
                "sent again, 2 times in 1.00 s, and 1 of them answered (203.0.113.4.8443, with a SYN-ACK)"
            ),
            "{told:?}"
        );
    }

    #[test]
    fn bytes_and_names_that_are_answered_and_sent_again() {
        let text = "11:20:01.1 IP 198.51.100.9.40112 > 203.0.113.4.25: Flags [P.], seq 1:41, ack 1, win 502, length 40\n\
                    11:20:01.2 IP 203.0.113.4.25 > 198.51.100.9.40112: Flags [.], ack 41, win 509, length 0\n\
                    11:20:01.7 IP 198.51.100.9.40112 > 203.0.113.4.25: Flags [P.], seq 1:41, ack 1, win 502, length 40\n\
                    11:20:01.8 IP 203.0.113.4.25 > 198.51.100.9.40112: Flags [.], ack 41, win 509, length 0\n";
        assert!(
            said(text)[0].contains("answers each with an acknowledgement"),
            "{:?}",
            said(text)
        );
        // What is acknowledged is what came before.
        let before = text.replace("ack 41", "ack 1");
        assert!(
            said(&before)[0].starts_with("sent again without an answer, 2 times"),
            "{:?}",
            said(&before)
        );
        let text = "11:20:01.1 IP 10.7.0.4.50001 > 10.7.0.1.53: 4021+ A? depot.example. (31)\n\
                    11:20:01.2 IP 10.7.0.1.53 > 10.7.0.4.50001: 4021 1/0/0 A 10.7.3.3 (47)\n\
                    11:20:06.1 IP 10.7.0.4.50001 > 10.7.0.1.53: 4021+ A? depot.example. (31)\n\
                    11:20:06.2 IP 10.7.0.1.53 > 10.7.0.4.50001: 4021 1/0/0 A 10.7.3.3 (47)\n";
        assert!(
            said(text)[0].contains("10.7.0.1.53 answers each with an answer to the question"),
            "{:?}",
            said(text)
        );
        let other = text.replace("4021 1/0/0", "4022 1/0/0");
        assert!(
            said(&other)[0].starts_with("sent again without an answer"),
            "{other}"
        );
    }

    #[test]
    fn a_port_that_is_used_again_is_another_connection() {
        let whole = "IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [S], seq 0, win 64240, length 0\n\
                     IP 10.0.1.53.80 > 10.0.0.1.1020: Flags [S.], seq 0, ack 1, win 64240, length 0\n\
                     IP 10.0.0.1.1020 > 10.0.1.53.80: Flags [.], ack 1, win 502, length 0\n";
        let at = |time: &str| -> String { whole.lines().map(|line| format!("{time} {line}\n")).collect() };
        assert_eq!(
            said(&(at("16:03:24.100000") + &at("16:04:24.100000"))),
            Vec::<String>::new()
        );
    }
}
