//! A connection to storage that broke and does not come back, however often it is tried: iSCSI, NVMe over a network, Ceph.
//!
//! In: lines of the initiators. Out: for each connection that was not back at the end: why it broke, how often it was tried again, how far
//! apart, and why that fails. One that came back is forgotten.

use super::{Line, Span, digits};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Connections that are followed, and those that are told.
const MAX_CONNECTIONS: usize = 200;
const MAX_TOLD: usize = 3;

/// Attempts that fail from which it does not come back: the first may come too early.
const MIN_ATTEMPTS: u64 = 3;

/// Bytes of a name that are kept.
const MAX_BYTES: usize = 60;

/// What a kind of connection says of itself.
struct Transport {
    /// What it is, before its name.
    what: &'static str,
    broke: &'static [&'static str],
    again: &'static [&'static str],
    back: &'static [&'static str],
    gone: &'static [&'static str],
    name: fn(&str) -> Option<&str>,
}

const TRANSPORTS: [Transport; 3] = [
    Transport {
        what: "the iSCSI connection",
        broke: &[
            "detected conn error",
            "reported iSCSI connection",
            "ping timeout of",
        ],
        again: &["bind conn", "cannot make a connection"],
        back: &["operational after recovery", "is operational now"],
        gone: &[],
        name: iscsi,
    },
    Transport {
        what: "the connection of the NVMe controller",
        broke: &["starting error recovery"],
        again: &["econnecting in"],
        back: &["uccessfully reconnected"],
        gone: &["emoving ctrl"],
        name: nvme,
    },
    Transport {
        what: "the connection of the Ceph client to",
        broke: &["session lost"],
        again: &["socket closed (con state", "connect error", "socket error on"],
        back: &["session established", " up"],
        gone: &[],
        name: ceph,
    },
];

/// What the client of Ceph says of a connection that was open: servers close idle ones, and it is opened anew when it is needed.
const WAS_OPEN: &str = "(con state OPEN)";

/// `connection3:0: …`, `connection 3:0`, `conn 3:0`: the numbers.
fn iscsi(text: &str) -> Option<&str> {
    let mut places = ["connection", "conn"]
        .iter()
        .flat_map(|word| text.match_indices(*word));
    places.find_map(|(at, word)| {
        let rest = text.get(at + word.len()..)?.trim_start();
        let end = rest
            .find(|char: char| !char.is_ascii_digit() && char != ':')
            .unwrap_or(rest.len());
        let name = rest.get(..end)?.trim_end_matches(':');
        name.contains(':')
            .then_some(name)
            .filter(|name| name.len() < MAX_BYTES)
    })
}

fn nvme(text: &str) -> Option<&str> {
    let mut words = text.split([' ', ':', ',']);
    words.find(|word| {
        word.strip_prefix("nvme")
            .is_some_and(|number| !digits(number).is_empty())
    })
}

/// `libceph: osd3 (1)10.1.0.4:6801 socket closed (con state OPEN)`.
fn ceph(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("libceph: ")?;
    let name = rest.split_whitespace().next()?;
    let of_daemon = ["mon", "osd", "mds", "mgr"].iter().any(|kind| {
        name.strip_prefix(kind)
            .is_some_and(|number| number.starts_with(|char: char| char.is_ascii_digit()))
    });
    of_daemon.then_some(name)
}

/// What the numbers of libiscsi (`iscsi_err` in iscsi_if.h) say.
const CODES: [(&str, &str); 5] = [
    ("1011", "it failed"),
    ("1019", "sending on it failed"),
    ("1020", "the TCP connection was closed"),
    ("1021", "the recovery from errors of SCSI dropped the session"),
    ("1022", "the target did not answer a ping in time"),
];

/// Numbers of errno, as x86 and Arm have them (asm-generic/errno.h).
const ERRNO: [(&str, &str); 12] = [
    ("5", "input or output error"),
    ("11", "try again"),
    ("12", "out of memory"),
    ("19", "no such device"),
    ("32", "broken pipe"),
    ("101", "network unreachable"),
    ("104", "connection reset"),
    ("107", "not connected"),
    ("110", "timed out"),
    ("111", "connection refused"),
    ("112", "host is down"),
    ("113", "no route to host"),
];

/// The connections of one artefact.
#[derive(Debug, Default)]
pub(super) struct Lost {
    connections: Vec<Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    what: &'static str,
    name: String,
    why: Option<&'static str>,
    /// Whether it was given up.
    gone: bool,
    attempts: u64,
    /// From the first attempt to the last.
    tried: Span,
    error: Option<(&'static str, &'static str)>,
    span: Span,
}

impl Lost {
    pub(super) fn line(&mut self, line: Line<'_>) {
        let has = |words: &[&str]| words.iter().any(|words| line.text.contains(words));
        for transport in &TRANSPORTS {
            let open = line.text.contains(WAS_OPEN);
            let broke = has(transport.broke) || open && has(transport.again);
            let again = has(transport.again) && !open;
            let (back, gone) = (has(transport.back), has(transport.gone));
            if !(broke || again || back || gone) {
                continue;
            }
            let Some(name) = (transport.name)(line.text) else {
                continue;
            };
            let same = |one: &Connection| one.what == transport.what && one.name == name;
            if back && !again || open {
                self.connections.retain(|one| !same(one));
            }
            if back && !again {
                return;
            }
            let place = match self.connections.iter().position(same) {
                Some(place) => place,
                None if self.connections.len() < MAX_CONNECTIONS => {
                    self.connections.push(Connection {
                        what: transport.what,
                        name: name.to_owned(),
                        ..Connection::default()
                    });
                    self.connections.len() - 1
                }
                None => return,
            };
            if let Some(connection) = self.connections.get_mut(place) {
                connection.add(line, broke, again);
                connection.gone |= gone;
            }
            return;
        }
    }

    pub(super) fn end(mut self, told: &mut Told) -> Vec<Fact> {
        self.connections.retain(|one| one.attempts >= MIN_ATTEMPTS);
        self.connections
            .sort_by_key(|one| std::cmp::Reverse(one.attempts));
        let facts = self.connections.iter().take(MAX_TOLD).map(|one| Fact {
            kind: StatementKind::Unreachable,
            share: None,
            ns: one.span.ns(),
            line: one.span.tell(told),
            text: one.sentence(),
        });
        facts.collect()
    }
}

impl Connection {
    fn add(&mut self, line: Line<'_>, broke: bool, again: bool) {
        self.span.add(line);
        if broke {
            let code = CODES
                .iter()
                .find(|(code, _)| line.text.contains(&format!("({code}")));
            self.why = self.why.or(code.map(|(_, words)| *words));
        }
        if again {
            self.attempts += 1;
            self.tried.add(line);
            self.error = error(line.text).or(self.error);
        }
    }

    fn sentence(&self) -> String {
        let why = self.why.map(|why| format!(" ({why})")).unwrap_or_default();
        let mut said = format!(
            "{} {} broke{why} and does not come back: {} attempts to connect again failed",
            self.what, self.name, self.attempts
        );
        let gaps = self.attempts.saturating_sub(1).max(1);
        if let Some(ns) = self.tried.ns() {
            let every: Ns = ns / gaps;
            said.push_str(&format!(", one every {} over {}", duration(every), duration(ns)));
        }
        if let Some((number, words)) = self.error {
            said.push_str(&format!(", with error -{number} ({words})"));
        }
        said.push_str(match self.gone {
            true => "; it was given up, and its requests fail",
            false => "; its requests wait",
        });
        said
    }
}

/// The number of an error with its words: `retcode -107`, `error -111`.
fn error(text: &str) -> Option<(&'static str, &'static str)> {
    let mut places = text.match_indices(" -");
    places.find_map(|(at, _)| {
        let number = digits(text.get(at + 2..)?);
        ERRNO.iter().find(|(known, _)| *known == number).copied()
    })
}
