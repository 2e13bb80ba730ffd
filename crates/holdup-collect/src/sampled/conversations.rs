//! Which clients of the sampled processes wait for an answer, and which of their own questions to others have none: connections on which the
//! other end has had the last word and was heard, or they have.
//!
//! The problem: looks see nobody read or write. The choice: the kernel notes of each TCP socket when it last sent and received; who
//! is asked now and then has had the last word since then. That is as a tracer knows it of what was said before it came, and so it is reported. In:
//! processes, and where they serve. Out: events, as such conversations are met, and when somebody has said more. What was so at the look before is
//! taken back only after the waits between the two looks were reported: they were seen in what was so then.

use crate::moment::Moment;
use holdup_evidence::{Earlier, Event, Ns, SaidSince, Serving, SocketAddress};
use holdup_proc::clocks;
use holdup_proc::sampling::sockets::last_words::{Asker, LastWord, Said};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;

/// Between two looks at the connections that are known, and at which there are, nanoseconds.
const BETWEEN: Ns = 50_000_000;
const ANEW: Ns = 100_000_000;

/// What looks take is at most this part of the time.
const SELDOM: Ns = 400;

/// Connections that are looked at.
const MAX_CONNECTIONS: usize = 1024;

/// The kernel's coarse clock, which it notes such instants by: not finer than this, nanoseconds.
const TICK: Ns = 10_000_000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// To be reported before the waits since the look before.
    pub(super) since: Vec<Event>,
    /// And after them.
    pub(super) over: Vec<Event>,
}

/// What is known of them.
#[derive(Debug)]
pub(super) struct Conversations {
    /// `None` where there is nobody to ask.
    asker: Option<Asker>,
    ports: HashSet<u16>,
    /// By inode.
    connections: BTreeMap<u64, Connection>,
    /// When they are to be looked at next, and when it is to be looked which there are.
    looked: Ns,
    anew: Ns,
}

#[derive(Debug)]
struct Connection {
    pid: u32,
    local: SocketAddr,
    peer: SocketAddr,
    /// When the last word was said that was reported.
    reported_at: Option<Ns>,
}

impl Conversations {
    /// Of processes that serve there.
    pub(super) fn of(serving: &Serving) -> Conversations {
        let port = |address: &SocketAddress| match address {
            SocketAddress::Inet(address) => Some(address.port()),
            SocketAddress::Unix(_) | SocketAddress::Other(_) => None,
        };
        Conversations {
            asker: Asker::open(),
            ports: serving.addresses.iter().filter_map(port).collect(),
            connections: BTreeMap::new(),
            looked: 0,
            anew: 0,
        }
    }

    /// Looks for the first time, at a moment that others look at, too.
    pub(super) fn begin(&mut self, pids: &BTreeSet<u32>, moment: &mut Moment) -> Vec<Event> {
        let now = clocks::monotonic();
        (self.looked, self.anew) = (now, now + ANEW);
        self.find(pids, moment);
        // Nothing was told that could be over.
        self.ask(now).since
    }

    /// Looks, if it is time to.
    pub(super) fn look(&mut self, pids: &BTreeSet<u32>) -> Found {
        let now = clocks::monotonic();
        if self.asker.is_none() || now < self.looked {
            return Found::default();
        }
        let seldom = |least: Ns, since: Ns| {
            let took = clocks::monotonic().saturating_sub(since);
            now.saturating_add(took.saturating_mul(SELDOM).max(least))
        };
        if now >= self.anew {
            self.find(pids, &mut Moment::now());
            self.anew = seldom(ANEW, now);
        }
        let began = clocks::monotonic();
        let found = self.ask(now);
        self.looked = seldom(BETWEEN, began);
        found
    }

    /// The connections that these processes have.
    fn find(&mut self, pids: &BTreeSet<u32>, moment: &mut Moment) {
        let mut found = BTreeMap::new();
        for pid in pids {
            let Some(ends) = moment.ends(*pid).filter(|ends| !ends.sockets.is_empty()) else {
                continue;
            };
            let sockets = moment.sockets(*pid);
            let own = sockets
                .tcp
                .iter()
                .filter(|socket| !socket.listens && !socket.knocks && ends.sockets.contains(&socket.inode));
            for socket in own.take(MAX_CONNECTIONS.saturating_sub(found.len())) {
                let known = self.connections.remove(&socket.inode);
                let connection = known.unwrap_or(Connection {
                    pid: *pid,
                    local: socket.local,
                    peer: socket.peer,
                    reported_at: None,
                });
                // Of those who inherited it the first.
                found.entry(socket.inode).or_insert(connection);
            }
        }
        // What is gone stays for one more look, which says so.
        found.extend(std::mem::take(&mut self.connections));
        self.connections = found;
    }

    fn ask(&mut self, now: Ns) -> Found {
        let mut found = Found::default();
        let (asker, ports) = (&self.asker, &self.ports);
        self.connections.retain(|inode, connection| {
            let asked = asker.as_ref();
            let word = asked.and_then(|asker| asker.ask(connection.local, connection.peer, *inode));
            let accepted = ports.contains(&connection.local.port());
            let said = match word {
                Some(LastWord::Others(said)) if accepted => Some(said),
                Some(LastWord::Own(said)) if !accepted => Some(said),
                _ => None,
            };
            let at = said.map(|Said { ago, .. }| now.saturating_sub(ago));
            let same =
                matches!((at, connection.reported_at), (Some(at), Some(reported)) if at.abs_diff(reported) <= TICK);
            if !same && connection.reported_at.take().is_some() {
                // What is new of the same conversation takes its place.
                let list = if said.is_some() {
                    &mut found.since
                } else {
                    &mut found.over
                };
                list.push(Event::SaidSince(SaidSince {
                    connection: *inode,
                    inode: *inode,
                }));
            }
            if let (false, Some(at), Some(said)) = (same, at, said) {
                connection.reported_at = Some(at);
                found.since.push(Event::Earlier(Earlier {
                    pid: connection.pid,
                    connection: *inode,
                    inode: *inode,
                    said_at: at,
                    tick: TICK,
                    by_client: accepted,
                    after: said.after,
                    words: None,
                    unclear: false,
                }));
            }
            word.is_some()
        });
        found
    }
}
