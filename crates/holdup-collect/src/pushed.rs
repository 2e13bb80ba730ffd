//! What servers send without being asked: events, publications, the lines of a log that is followed.
//!
//! The problem: a relay of such a stream waits for the next piece nearly all the time, and so does its server; neither is late. What a
//! connection has carried tells them from one that waits for an answer, whatever the program is and however its threads sleep. In: all TCP
//! connections as observation begins; processes, as it ends. Out: by process and server, on which connections more came although the
//! process had nothing left to ask: its last word had been answered before, at least in part.

use super::moment::Moment;
use super::standing::PROCESSES_MAX;
use holdup_evidence::facts::Pushed;
use holdup_proc::conversations::{self, Connection};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// Servers of one process that are reported.
const SERVERS_MAX: usize = 8;

/// Who says something so soon after what it has received acknowledges that, and asks for nothing, milliseconds.
const AT_ONCE_MS: u32 = 100;

/// Pieces of a stream that began while nobody looked on, and over how long they came, milliseconds: the beginning of a slow answer is less.
const MIN_PIECES_ANEW: u32 = 3;
const MIN_ANEW_MS: u32 = 1000;

/// Segments in which such a stream may have been asked for.
const ASKED_FOR_MAX: u32 = 2;

/// How large a piece is on average, bytes, at most: more is a transfer, which goes on without a pause.
const PIECE_MAX: u64 = 16 << 10;

/// What connections had carried at an instant, by inode.
#[derive(Debug, Default)]
pub(super) struct Before(HashMap<u64, Connection>);

impl Before {
    /// Looks at all of this network namespace.
    pub(super) fn look() -> Before {
        let all = conversations::read().into_iter();
        Before(
            all.filter(|one| one.inode != 0)
                .map(|one| (one.inode, one))
                .collect(),
        )
    }

    /// What these processes were sent since.
    pub(super) fn since(&self, pids: &BTreeSet<u32>, moment: &mut Moment) -> Vec<Pushed> {
        let own = moment.namespace(std::process::id());
        let mut found = Vec::new();
        let mut now: Option<Vec<Connection>> = None;
        for pid in pids.iter().take(PROCESSES_MAX) {
            if moment.namespace(*pid) != own {
                continue;
            }
            let Some(ends) = moment.ends(*pid) else { continue };
            if ends.sockets.is_empty() {
                continue;
            }
            let sockets = moment.sockets(*pid);
            let listeners = sockets.tcp.iter().filter(|one| one.listens);
            let ports: HashSet<u16> = listeners.map(|one| one.local.port()).collect();
            let now = now.get_or_insert_with(conversations::read);
            let made = now
                .iter()
                .filter(|one| ends.sockets.contains(&one.inode) && !ports.contains(&one.local.port()));
            let mut servers: BTreeMap<SocketAddr, Pushed> = BTreeMap::new();
            for one in made {
                let before = self.0.get(&one.inode);
                let before = before.filter(|was| (was.local, was.peer) == (one.local, one.peer));
                let entry = servers.entry(one.peer).or_default();
                match pieces(before, one) {
                    Some((pieces, bytes)) => {
                        entry.connections += 1;
                        entry.pieces += u64::from(pieces);
                        entry.bytes += bytes;
                    }
                    None => entry.asked += u32::from(asked(before, one)),
                }
            }
            servers.retain(|_, one| one.connections > 0);
            found.extend(servers.into_iter().take(SERVERS_MAX).map(|(server, one)| Pushed {
                pid: *pid,
                server: Some(server),
                ..one
            }));
        }
        found
    }
}

/// Whether the last word there is the process's own, and is no answer to what came just before.
fn waits(one: &Connection) -> bool {
    one.asks_ms.is_some_and(|asked| {
        one.received_ms
            .is_none_or(|received| received.saturating_sub(asked) > AT_ONCE_MS)
    })
}

/// Whether it asked for something since, or waits for an answer.
fn asked(before: Option<&Connection>, now: &Connection) -> bool {
    let sent = before.map_or(0, |before| before.sent_segments);
    now.sent_segments > sent || waits(now)
}

/// Pieces, and their bytes, that came without a question; `None` where none did, or they may be an answer.
fn pieces(before: Option<&Connection>, now: &Connection) -> Option<(u32, u64)> {
    let (came, bytes) = match before {
        Some(before) => {
            // Whoever says a word meanwhile may ask for what comes: a client in a loop sends its next question as soon as it has its answer,
            // which looks like an acknowledgement.
            let answered = before.received_ms.is_some() && before.asks_ms.is_none();
            let came = now.received_segments.checked_sub(before.received_segments)?;
            let unasked = answered && now.sent_segments == before.sent_segments;
            let bytes = now.received_bytes.checked_sub(before.received_bytes)?;
            unasked.then_some((came, bytes))?
        }
        None => {
            // Who has never sent anything has asked for nothing since ever.
            let over = now.sent_ms.unwrap_or(u32::MAX).checked_sub(now.received_ms?)?;
            let streams = now.sent_segments <= ASKED_FOR_MAX
                && now.received_segments >= MIN_PIECES_ANEW
                && over >= MIN_ANEW_MS;
            streams.then_some((now.received_segments, now.received_bytes))?
        }
    };
    (came > 0 && bytes / u64::from(came) <= PIECE_MAX && !waits(now)).then_some((came, bytes))
}

#[cfg(test)]
mod tests {
    use super::{Before, Moment, pieces};
    use holdup_proc::conversations::Connection;
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    /// So many segments were sent and received, the last so many milliseconds ago.
    fn connection(sent: (u32, u32), received: (u32, u32)) -> Connection {
        let any = "127.0.0.1:1".parse().unwrap();
        Connection {
            asks_ms: (sent.1 < received.1 || received.0 == 0).then_some(sent.1),
            received_ms: (received.0 > 0).then_some(received.1),
            sent_ms: Some(sent.1),
            sent_segments: sent.0,
            received_segments: received.0,
            received_bytes: u64::from(received.0) * 30,
            ..Connection::at_rest(any, any, 7)
        }
    }

    fn came(before: ((u32, u32), (u32, u32)), now: ((u32, u32), (u32, u32))) -> Option<u32> {
        let before = connection(before.0, before.1);
        pieces(Some(&before), &connection(now.0, now.1)).map(|(pieces, _)| pieces)
    }

    #[test]
    fn events_behind_the_head_of_an_answer_are_pushed_and_an_answer_is_not() {
        let stream = ((1, 9000), (4, 1000));
        assert_eq!(came(stream, ((1, 14_000), (6, 500))), Some(2));
        assert_eq!(came(stream, ((1, 14_000), (4, 6000))), None, "nothing came");
        let asked = ((5, 3000), (5, 9000));
        assert_eq!(came(asked, ((5, 8000), (6, 500))), None, "the answer, late");
        let idle = ((5, 9000), (5, 8990));
        assert_eq!(
            came(idle, ((9, 600), (9, 500))),
            None,
            "a question for each answer"
        );
        assert_eq!(
            came(idle, ((6, 4000), (8, 6000))),
            None,
            "its last word has no answer"
        );
    }

    /// A client in a loop asks for the next thing as soon as it has the last one.
    #[test]
    fn whoever_says_a_word_meanwhile_may_have_asked() {
        let stream = ((2, 900), (9, 1000));
        assert_eq!(came(stream, ((3, 499), (12, 500))), None);
        let in_a_loop = ((5, 950), (9, 1000));
        assert_eq!(
            came(in_a_loop, ((5, 1950), (12, 500))),
            None,
            "asked before anybody looked"
        );
    }

    #[test]
    fn a_stream_that_began_meanwhile_is_known_by_its_pieces() {
        let anew = |sent, received| pieces(None, &connection(sent, received)).is_some();
        assert!(anew((1, 4000), (3, 700)));
        assert!(!anew((1, 4000), (2, 700)), "the beginning of an answer");
        assert!(!anew((1, 900), (3, 700)), "all at once");
        assert!(!anew((4, 4000), (6, 700)), "several questions");
        let large = Connection {
            received_bytes: 90 << 10,
            ..connection((1, 4000), (3, 700))
        };
        assert_eq!(pieces(None, &large), None, "a transfer");
    }

    #[test]
    fn what_a_server_says_by_itself_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // The listener is closed: the client's end is none that somebody serves.
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"subscribe").unwrap();
        server.read_exact(&mut [0; 9]).unwrap();
        let tick = || std::thread::sleep(Duration::from_millis(20));
        tick();
        server.write_all(b"yes").unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        let before = Before::look();
        tick();
        server.write_all(b"news").unwrap();
        client.read_exact(&mut [0; 4]).unwrap();
        let pids = BTreeSet::from([std::process::id()]);
        let found = before.since(&pids, &mut Moment::now());
        let own = found.iter().find(|one| one.server == client.peer_addr().ok());
        if let Some(own) = own {
            assert_eq!((own.pieces, own.bytes, own.asked), (1, 4, 0));
        } else {
            assert!(before.0.is_empty(), "the kernel lists no connections");
        }
    }
}
