//! Who waits for a name server that does not answer.
//!
//! In: UDP sockets, at some times. Out: sockets that are connected to a name server and stay so for seconds with nothing received: a resolver
//! opens one for a question, and closes it with the answer. One that is there in all lists may be kept open for no question: it counts if its
//! process polls it like a question ([`super::open_question`]).

use super::close_looks::{Answers, Question};
use holdup_evidence::Ns;
use holdup_proc::conversations::Connection;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// The port of name servers.
const NAMES_PORT: u16 = 53;

/// The shortest wait that is reported: an answer from far away takes a tenth of it.
const MIN_UNANSWERED_NS: Ns = 1_500_000_000;

/// Sockets that are followed.
const MAX_SOCKETS: usize = 2000;

/// Sockets in all lists whose processes are asked.
const MAX_KEPT: usize = 100;

const SECOND: f64 = 1e9;

/// A socket that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Asks {
    inode: u64,
    server: SocketAddr,
}

/// When it was seen first and last, seconds since boot, and in which lists.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: f64,
    to: f64,
    first: u32,
    last: u32,
}

/// A server that somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) server: SocketAddr,
    /// The socket of the one who asks.
    pub(super) client: u64,
    /// The server's socket, if it is on this machine.
    pub(super) of_server: Option<u64>,
    pub(super) ns: Ns,
    /// Whether it may be kept open for no question.
    pub(super) kept: bool,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct NamesAsked {
    lists: u32,
    spans: HashMap<Asks, Span>,
    /// Sockets that name servers of this machine have, by address.
    servers: HashMap<SocketAddr, u64>,
    /// Sockets of clients, each with its process, as long as it was there.
    pub(super) of: HashMap<u64, u32>,
}

impl NamesAsked {
    /// Looks once, at `now` seconds since boot; the sockets whose process is not known yet.
    pub(super) fn turn(&mut self, now: f64, sockets: &[Connection]) -> HashSet<u64> {
        self.lists += 1;
        let lists = self.lists;
        let mut unknown = HashSet::new();
        for one in sockets {
            if one.local.port() == NAMES_PORT && one.peer.port() == 0 {
                self.servers.insert(one.local, one.inode);
            }
            if one.peer.port() != NAMES_PORT || one.unread > 0 || one.inode == 0 {
                continue;
            }
            let asks = Asks {
                inode: one.inode,
                server: one.peer,
            };
            if self.spans.len() >= MAX_SOCKETS && !self.spans.contains_key(&asks) {
                continue;
            }
            let span = self.spans.entry(asks).or_insert(Span {
                from: now,
                to: now,
                first: lists,
                last: lists,
            });
            (span.to, span.last) = (now, lists);
            // Whoever it is of is asked for when it has been there before.
            if span.first < lists && !self.of.contains_key(&one.inode) {
                unknown.insert(one.inode);
            }
        }
        unknown
    }

    /// Who was not answered, longest first.
    pub(super) fn unanswered(&self) -> Vec<Unanswered> {
        let comes_or_goes = |span: &Span| span.first > 1 || span.last < self.lists;
        // Of one server it is enough that one of its sockets came or went.
        let servers: HashSet<SocketAddr> = (self.spans.iter())
            .filter(|(_, span)| ns(span) >= MIN_UNANSWERED_NS && comes_or_goes(span))
            .map(|(asks, _)| asks.server)
            .collect();
        let mut all: Vec<Unanswered> = (self.spans.iter())
            .filter(|(_, span)| ns(span) >= MIN_UNANSWERED_NS)
            .map(|(asks, span)| Unanswered {
                server: asks.server,
                client: asks.inode,
                of_server: self.server(asks.server),
                ns: ns(span),
                kept: !servers.contains(&asks.server),
            })
            .collect();
        all.sort_by_key(|one| (std::cmp::Reverse(one.ns), one.client));
        all
    }

    /// The socket at which a server of this machine takes questions for an address.
    fn server(&self, address: SocketAddr) -> Option<u64> {
        let same = |local: &&SocketAddr| local.ip().to_canonical() == address.ip();
        let exact = self.servers.keys().find(same);
        let any = || self.servers.keys().find(|local| local.ip().is_unspecified());
        // One that listens at all addresses answers for this machine's alone.
        let found = exact.or_else(|| any().filter(|_| address.ip().is_loopback()))?;
        self.servers.get(found).copied()
    }
}

/// Questions about the processes of sockets that may be kept open for no question.
pub(super) fn to_ask(unanswered: &[Unanswered], of: &HashMap<u64, u32>) -> Vec<Question> {
    let kept = unanswered.iter().filter(|one| one.kept).take(MAX_KEPT);
    let asks = kept.filter_map(|one| {
        Some(Question::Asks {
            pid: *of.get(&one.client)?,
            socket: one.client,
        })
    });
    asks.collect()
}

/// Those that are questions, each with the process that asks.
pub(super) fn open<'a>(
    unanswered: &'a [Unanswered],
    of: &HashMap<u64, u32>,
    answers: &Answers,
) -> Vec<(u32, &'a Unanswered)> {
    let known = unanswered
        .iter()
        .filter_map(|one| Some((*of.get(&one.client)?, one)));
    known
        .filter(|(pid, one)| !one.kept || answers.asks(*pid, one.client))
        .collect()
}

/// Whom a name server of this machine asks in turn, and the socket of that one: to where its own sockets are connected, else what it was
/// told when it was started.
pub(super) fn beyond(
    own: &HashSet<u64>,
    servers: &[SocketAddr],
    sockets: &[Connection],
) -> Option<(SocketAddr, Option<u64>)> {
    let connected = sockets
        .iter()
        .filter(|one| own.contains(&one.inode) && one.peer.port() != 0);
    let asked = connected
        .map(|one| one.peer)
        .next()
        .or(servers.first().copied())?;
    let at = |one: &&Connection| {
        let ip = one.local.ip().to_canonical();
        let same = ip == asked.ip() || ip.is_unspecified() && asked.ip().is_loopback();
        one.peer.port() == 0 && one.local.port() == asked.port() && same
    };
    let server = sockets
        .iter()
        .find(at)
        .map(|one| one.inode)
        .filter(|inode| *inode != 0);
    Some((asked, server))
}

/// An address as it is said of a name server: without the port that all have.
pub(super) fn said(server: SocketAddr) -> String {
    match server.port() {
        NAMES_PORT => server.ip().to_string(),
        _ => server.to_string(),
    }
}

fn ns(span: &Span) -> Ns {
    ((span.to - span.from) * SECOND) as Ns
}

#[cfg(test)]
mod tests {
    use super::{NamesAsked, beyond};
    use holdup_proc::conversations::Connection;
    use std::net::SocketAddr;

    fn socket(inode: u64, peer: &str) -> Connection {
        Connection::at_rest(
            SocketAddr::from(([10, 0, 0, 9], 40_000)),
            peer.parse().unwrap(),
            inode,
        )
    }

    #[test]
    fn a_question_that_stays_open_is_unanswered_and_its_server_may_be_here() {
        let mut asked = NamesAsked::default();
        let server = Connection {
            local: "127.0.0.53:53".parse().unwrap(),
            ..socket(7, "0.0.0.0:0")
        };
        let asks = socket(1, "127.0.0.53:53");
        assert!(asked.turn(10.0, &[server]).is_empty());
        assert!(asked.turn(11.0, &[server, asks]).is_empty());
        assert_eq!(
            asked.turn(12.0, &[server, asks]).into_iter().collect::<Vec<_>>(),
            [1]
        );
        asked.turn(13.0, &[server, asks]);
        let found = asked.unanswered();
        assert_eq!(
            (found.len(), found[0].of_server, found[0].ns, found[0].kept),
            (1, Some(7), 2_000_000_000, false)
        );
    }

    #[test]
    fn whom_a_server_asks_its_sockets_show_or_its_arguments() {
        let local = |inode: u64, local: &str, peer: &str| Connection {
            local: local.parse().unwrap(),
            ..socket(inode, peer)
        };
        let all = [
            local(7, "127.0.0.1:53", "0.0.0.0:0"),
            local(8, "127.0.0.1:5353", "0.0.0.0:0"),
            local(9, "127.0.0.1:40000", "192.0.2.7:53"),
        ];
        let servers = ["127.0.0.1:5353".parse().unwrap()];
        let of = |own: &[u64], servers| beyond(&own.iter().copied().collect(), servers, &all);
        assert_eq!(of(&[7], &servers), Some((servers[0], Some(8))));
        assert_eq!(
            of(&[7, 9], &servers),
            Some(("192.0.2.7:53".parse().unwrap(), None))
        );
        assert_eq!(of(&[7], &[]), None);
    }

    #[test]
    fn quick_questions_other_ports_and_a_socket_that_is_always_open_are_none() {
        let mut asked = NamesAsked::default();
        for turn in 0..5_u64 {
            let quick = socket(100 + turn, "10.0.0.1:53");
            let (other, kept) = (socket(5, "10.0.0.1:123"), socket(6, "10.0.0.2:53"));
            asked.turn(turn as f64, &[quick, other, kept]);
        }
        let found = asked.unanswered();
        assert_eq!((found.len(), found[0].client, found[0].kept), (1, 6, true));
    }
}
