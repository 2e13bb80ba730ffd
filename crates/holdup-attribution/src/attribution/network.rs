//! Connections: the state of those that were waited on, and what became of those that were asked for.
//!
//! In: what the source says of connections, births, sleeps. Out: [`Connections`] by peer. A sleep counts as one
//! between two attempts only if who slept is who asked, or if both are processes started, one after the other, by
//! the same parent: other threads of the run sleep for reasons of their own.

use super::numbers::NumberMap;
use super::task_table::{Named, TaskTable};
use super::thread::Threads;
use holdup_evidence::network::{Connection, Outcome, TcpState};
use holdup_evidence::{Ns, ThreadId, Wait};
use holdup_model::connections::Connections;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Peers distinguished; of further ones nothing is kept.
const MAX_PEERS: usize = 1024;

/// `ECONNREFUSED`.
const REFUSED: u16 = 111;
/// `EADDRNOTAVAIL`: no local port was left.
const NO_PORT: u16 = 99;

/// Where a thread comes from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    parent: Option<ThreadId>,
    pid: u32,
    born: Ns,
}

/// A peer so far.
#[derive(Debug, Clone, Default)]
struct Peer {
    sums: Connections,
    by: Option<Named>,
    /// Whose request failed last in a way after which programs try again, and when.
    failed: Option<Failure>,
    first_refused: Option<Ns>,
    /// Sleep since then: how long, how often, until when.
    slept: (Ns, u64, Ns),
}

/// A request that failed at once.
#[derive(Debug, Clone, Copy)]
struct Failure {
    by: ThreadId,
    origin: Option<Origin>,
    at: Ns,
    /// Not by the peer: for want of a local port.
    no_port: bool,
}

/// What is kept of the network.
#[derive(Debug, Clone, Default)]
pub(super) struct Network {
    tcp: NumberMap<ThreadId, TcpState>,
    origins: NumberMap<ThreadId, Origin>,
    peers: HashMap<SocketAddr, Peer>,
    /// The peer to which a request failed last.
    last: Option<SocketAddr>,
}

/// Whether the second thread is one that the first one's attempts and sleeps take turns with.
fn takes_turns(one: (ThreadId, Option<Origin>), other: (ThreadId, Option<Origin>)) -> bool {
    if one.0 == other.0 {
        return true;
    }
    let (Some(first), Some(second)) = (one.1, other.1) else {
        return false;
    };
    let family = first.parent.is_some() && first.parent == second.parent
        || first.parent == Some(other.0)
        || second.parent == Some(one.0);
    first.pid != second.pid && family
}

impl Network {
    /// The state of a connection whose wait follows.
    pub(super) fn tcp(&mut self, tcp: &TcpState) {
        self.tcp.insert(tcp.thread, tcp.clone());
    }

    /// The state of the connection that this wait was on.
    pub(super) fn take_tcp(&mut self, wait: &Wait) -> Option<TcpState> {
        let known = self.tcp.get(&wait.thread)?;
        if known.seq != wait.seq {
            return None;
        }
        self.tcp.remove(&wait.thread)
    }

    /// A thread is born.
    pub(super) fn born(&mut self, thread: ThreadId, parent: Option<ThreadId>, pid: u32, born: Ns) {
        self.origins.insert(thread, Origin { parent, pid, born });
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, thread: ThreadId) {
        self.origins.remove(&thread);
        self.tcp.remove(&thread);
    }

    /// A thread slept.
    pub(super) fn slept(&mut self, thread: ThreadId, start: Ns, end: Ns) {
        let origin = self.origins.get(&thread).copied();
        let Some(peer) = self.last.and_then(|last| self.peers.get_mut(&last)) else {
            return;
        };
        let Some(Failure {
            by, origin: from, at, ..
        }) = peer.failed
        else {
            return;
        };
        // A process that lived before the failure sleeps for a reason of its own, unless it is who asked.
        let later = by == thread
            || origin.is_some_and(|origin| origin.born >= at)
            || from.is_some_and(|from| from.parent == Some(thread));
        if start >= at.max(peer.slept.2) && later && takes_turns((by, from), (thread, origin)) {
            peer.slept.0 = peer.slept.0.saturating_add(end.saturating_sub(start));
            peer.slept.1 += 1;
            peer.slept.2 = end;
        }
    }

    /// All peers, those asked most first.
    pub(super) fn connections(&mut self, tasks: &TaskTable) -> Vec<Connections> {
        let mut all: Vec<Connections> = self
            .peers
            .drain()
            .map(|(address, peer)| Connections {
                peer: address.to_string(),
                by: peer.by.map(|by| tasks.describe(&by)).unwrap_or_default(),
                ..peer.sums
            })
            .collect();
        all.sort_by_cached_key(|one| {
            let attempts = one.made + one.refused + one.no_port + one.failed + one.given_up;
            (Reverse(attempts), one.peer.clone())
        });
        all
    }
}

impl Network {
    /// A request for a connection is over.
    pub(super) fn connection(&mut self, connection: &Connection, threads: &Threads, tasks: &TaskTable) {
        let by = threads.get(&connection.thread);
        let by = by.map(|thread| tasks.named(&thread.identity));
        let full = self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&connection.peer);
        if full {
            return;
        }
        let who = (connection.thread, self.origins.get(&connection.thread).copied());
        let peer = self.peers.entry(connection.peer).or_default();
        if let Some(failure) = peer.failed
            && connection.began >= peer.slept.2
            && takes_turns((failure.by, failure.origin), who)
        {
            if failure.no_port {
                peer.sums.slept_without_port_ns =
                    peer.sums.slept_without_port_ns.saturating_add(peer.slept.0);
            } else {
                peer.sums.slept_ns = peer.sums.slept_ns.saturating_add(peer.slept.0);
                peer.sums.sleeps += peer.slept.1;
            }
        }
        peer.slept = (0, 0, 0);
        peer.failed = None;
        peer.by = by.or(peer.by);
        let length = connection.at.saturating_sub(connection.began);
        match connection.outcome {
            Outcome::Made => {
                peer.sums.made += 1;
                peer.sums.made_ns = peer.sums.made_ns.saturating_add(length);
                if let Some(first) = peer.first_refused.take() {
                    let until = connection.at.saturating_sub(first);
                    peer.sums.refused_until = peer.sums.refused_until.max(until);
                }
            }
            Outcome::Failed(error @ (REFUSED | NO_PORT)) => {
                let no_port = error == NO_PORT;
                if no_port {
                    peer.sums.no_port += 1;
                } else {
                    peer.sums.refused += 1;
                    peer.first_refused = peer.first_refused.or(Some(connection.at));
                }
                peer.failed = Some(Failure {
                    by: who.0,
                    origin: who.1,
                    at: connection.at,
                    no_port,
                });
                self.last = Some(connection.peer);
            }
            Outcome::Failed(_) => peer.sums.failed += 1,
            Outcome::GivenUp => peer.sums.given_up += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribution;
    use super::{NO_PORT, REFUSED};
    use holdup_evidence::network::{Connection, Outcome};
    use holdup_evidence::{Clock, Event, Ns, Start, TaskName, ThreadId};
    use holdup_model::connections::Connections;

    /// A run with threads (number, process, parent, birth).
    fn run(threads: &[(u32, u32, Option<u32>, Ns)]) -> Attribution {
        let mut run = Attribution::new();
        for (thread, pid, parent, at) in threads.iter().copied() {
            let clock = Clock {
                blocked: at,
                ..Clock::default()
            };
            run.push(&Event::Start(Start {
                at,
                thread: ThreadId(thread),
                task: TaskName {
                    pid,
                    tid: 100 + thread,
                    name: "app".to_owned(),
                    kernel: false,
                },
                parent: parent.map(|parent| (ThreadId(parent), clock)),
                inside: None,
                role: Default::default(),
                adopted: None,
            }));
        }
        run
    }

    fn asks(run: &mut Attribution, thread: u32, at: Ns, outcome: Outcome) {
        run.push(&Event::Connection(Connection {
            thread: ThreadId(thread),
            began: at,
            at: at + 1,
            peer: "127.0.0.1:9000".parse().unwrap(),
            outcome,
        }));
    }

    fn connections_of(run: &mut Attribution) -> Connections {
        let mut all = run.network.connections(&run.tasks);
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    const NO: Outcome = Outcome::Failed(REFUSED);

    #[test]
    fn sleep_between_two_requests_of_one_thread_counts() {
        let mut run = run(&[(0, 1, None, 0)]);
        run.network.slept(ThreadId(0), 0, 5);
        asks(&mut run, 0, 10, NO);
        run.network.slept(ThreadId(0), 12, 112);
        asks(&mut run, 0, 120, NO);
        run.network.slept(ThreadId(0), 122, 322);
        asks(&mut run, 0, 330, Outcome::Made);
        run.network.slept(ThreadId(0), 340, 940);
        let listed = connections_of(&mut run);
        assert_eq!(
            (listed.refused, listed.made, listed.slept_ns, listed.sleeps),
            (2, 1, 300, 2)
        );
        assert_eq!(listed.refused_until, 320);
        assert_eq!(listed.by.process, "app");
    }

    #[test]
    fn sleep_for_want_of_a_local_port_is_told_apart() {
        let mut run = run(&[(0, 1, None, 0)]);
        asks(&mut run, 0, 10, Outcome::Failed(NO_PORT));
        run.network.slept(ThreadId(0), 12, 112);
        asks(&mut run, 0, 120, NO);
        run.network.slept(ThreadId(0), 122, 322);
        asks(&mut run, 0, 330, Outcome::Made);
        let listed = connections_of(&mut run);
        assert_eq!((listed.no_port, listed.slept_without_port_ns), (1, 100));
        assert_eq!((listed.refused, listed.slept_ns, listed.sleeps), (1, 200, 1));
    }

    #[test]
    fn a_script_that_starts_a_process_for_each_counts() {
        let family = [
            (0, 1, None, 0),
            (1, 2, Some(0), 5),
            (2, 3, Some(0), 20),
            (3, 4, Some(0), 230),
        ];
        let mut run = run(&family);
        asks(&mut run, 1, 10, NO);
        run.network.slept(ThreadId(2), 21, 221);
        asks(&mut run, 3, 240, NO);
        assert_eq!(connections_of(&mut run).slept_ns, 200);
    }

    #[test]
    fn sleep_of_others_does_not_count() {
        // Another thread of the process; a process that lived before; a process of somebody else.
        let family = [
            (0, 1, None, 0),
            (1, 1, Some(0), 5),
            (2, 3, Some(0), 5),
            (3, 4, Some(2), 20),
        ];
        let mut run = run(&family);
        asks(&mut run, 0, 10, NO);
        for other in [1, 2, 3] {
            run.network.slept(ThreadId(other), 21, 221);
        }
        asks(&mut run, 0, 240, NO);
        assert_eq!(connections_of(&mut run).slept_ns, 0);
    }

    #[test]
    fn a_sleep_that_is_not_over_when_it_asks_again_does_not_count() {
        let mut run = run(&[(0, 1, None, 0), (1, 2, Some(0), 12)]);
        asks(&mut run, 0, 10, NO);
        run.network.slept(ThreadId(1), 13, 300);
        asks(&mut run, 0, 240, Outcome::GivenUp);
        let listed = connections_of(&mut run);
        assert_eq!((listed.slept_ns, listed.given_up), (0, 1));
    }
}
