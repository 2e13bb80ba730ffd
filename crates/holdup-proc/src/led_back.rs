//! Which processes have all their open questions end in the queue of one listener: directly, or through others.
//!
//! The problem: workers of a server may wait for a proxy that waits for one of them. The proxy's requests stand in their queue then, but so do
//! those of other clients, and it may wait for somebody else on their account. The choice: a process leads back only if whatever it has asked,
//! and was not answered, is at that listener or with its workers, or with a process that leads back itself. In: a listener, and the
//! kernel's tables of connections and sockets. Out: those processes. Of Unix sockets the kernel keeps no times: each connection that was made
//! counts as a question, and so does each UDP socket with a peer. What goes to another machine leads nowhere. Whoever asks has looked at
//! all connections and all descriptors: of a part of them nothing follows.

use crate::conversations::Connection;
use crate::descriptors;
use crate::listen_queues::{self, ListenQueue};
use crate::root::Root;
use crate::sampling::sockets::unix_peers;
use crate::sockets::Sockets;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// A question that is open for less is on its way, milliseconds.
const MIN_ASKED_MS: u32 = 50;

/// Processes that are looked at, and Unix sockets whose other ends are asked for, one question to the kernel each.
const PROCESSES_MAX: usize = 64;
const SOCKETS_MAX: usize = 512;

/// A process that leads back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Led {
    /// Which.
    pub pid: u32,
    /// How many of its connections stand in the queue; 0 of one that only asks others.
    pub queued: u32,
}

/// Where a question is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the queue of this listener.
    Queue(u64),
    /// With this process.
    Process(u32),
    /// Nobody knows.
    Elsewhere,
}

/// The kernel's tables at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// TCP connections.
    pub connections: &'a [Connection],
    /// TCP listeners.
    pub queues: &'a [ListenQueue],
    /// All sockets.
    pub sockets: &'a Sockets,
}

/// Open questions on TCP connections, by who asks. They are the same whichever listener is looked at.
#[derive(Debug, Default)]
pub struct Asked {
    tcp: HashMap<u32, Vec<At>>,
    /// Those that may be open: what was sent and received last was so within one tick.
    unclear: HashMap<u32, Vec<At>>,
}

/// A look.
struct Look<'a, F> {
    root: &'a Root,
    sockets: &'a Sockets,
    of: F,
    tcp: &'a HashMap<u32, Vec<At>>,
    /// Those that may be open: what was sent and received last was so within one tick.
    unclear: &'a HashMap<u32, Vec<At>>,
    /// Sockets of UDP that are connected to somebody: the kernel does not tell whether a question there is open.
    datagrams: HashSet<u64>,
    asked: usize,
}

/// Who leads back to a listener, lowest id first. `workers`: who takes its clients; `of`: the first process that has a socket.
#[must_use]
pub fn to(
    root: &Root,
    listener: u64,
    workers: &BTreeSet<u32>,
    tables: Tables<'_>,
    of: impl Fn(u64) -> Option<u32>,
) -> Vec<Led> {
    let asked = Asked::of(tables.connections, tables.queues, &of);
    asked.lead_back(root, listener, workers, tables.sockets, of)
}

impl Asked {
    /// Those of all processes. `of`: the first process that has a socket.
    #[must_use]
    pub fn of(connections: &[Connection], queues: &[ListenQueue], of: impl Fn(u64) -> Option<u32>) -> Asked {
        let by_ends: HashMap<(SocketAddr, SocketAddr), &Connection> = connections
            .iter()
            .map(|one| ((one.local, one.peer), one))
            .collect();
        let asks = |one: &&Connection| {
            let open = one.may_ask || one.asks_ms.is_some_and(|ms| ms >= MIN_ASKED_MS);
            open && one.inode != 0 && listen_queues::listener(queues, one.local).is_none()
        };
        let mut found = Asked::default();
        for one in connections.iter().filter(asks) {
            let Some(pid) = of(one.inode) else { continue };
            let server = by_ends.get(&(one.peer, one.local));
            let at = match server {
                Some(server) if server.inode == 0 => {
                    listen_queues::listener(queues, server.local).map(|queue| At::Queue(queue.inode))
                }
                Some(server) => of(server.inode).map(At::Process),
                None => None,
            };
            let questions = match one.asks_ms {
                Some(ms) if ms >= MIN_ASKED_MS => &mut found.tcp,
                _ => &mut found.unclear,
            };
            questions
                .entry(pid)
                .or_default()
                .push(at.unwrap_or(At::Elsewhere));
        }
        found
    }

    /// As [`to`].
    #[must_use]
    pub fn lead_back(
        &self,
        root: &Root,
        listener: u64,
        workers: &BTreeSet<u32>,
        sockets: &Sockets,
        of: impl Fn(u64) -> Option<u32>,
    ) -> Vec<Led> {
        let connected = sockets.udp.iter().filter(|one| one.peer.port() != 0);
        let look = Look {
            root,
            sockets,
            of,
            tcp: &self.tcp,
            unclear: &self.unclear,
            datagrams: connected.map(|one| one.inode).collect(),
            asked: 0,
        };
        look.to(listener, workers)
    }
}

impl<F: Fn(u64) -> Option<u32>> Look<'_, F> {
    fn to(mut self, listener: u64, workers: &BTreeSet<u32>) -> Vec<Led> {
        let unix = unix_peers::queued(listener);
        let mut queued: BTreeMap<u32, u32> = BTreeMap::new();
        let tcp = self.tcp.iter().map(|(pid, at)| {
            let here = at.iter().filter(|at| **at == At::Queue(listener));
            (*pid, here.count())
        });
        let of_unix = unix.iter().filter_map(|inode| Some(((self.of)(*inode)?, 1)));
        for (pid, count) in tcp.chain(of_unix).filter(|(_, count)| *count > 0) {
            *queued.entry(pid).or_default() += u32::try_from(count).unwrap_or(u32::MAX);
        }
        let unix: BTreeSet<u64> = unix.into_iter().collect();
        let mut leads: BTreeSet<u32> = BTreeSet::new();
        let mut next: BTreeSet<u32> = queued.keys().copied().collect();
        let mut looked = 0;
        while let Some(pid) = next.pop_first() {
            looked += 1;
            if looked > PROCESSES_MAX {
                break;
            }
            if workers.contains(&pid) || leads.contains(&pid) {
                continue;
            }
            let at = self.questions(pid, listener, &unix);
            let here = |at: &At| match at {
                At::Queue(queue) => *queue == listener,
                At::Process(server) => *server == pid || workers.contains(server) || leads.contains(server),
                At::Elsewhere => false,
            };
            // What may be a question is no reason to lead back, and one not to.
            let unclear = self.unclear.get(&pid);
            if !at.is_empty() && at.iter().chain(unclear.into_iter().flatten()).all(here) {
                leads.insert(pid);
                // Whoever asks it may lead back, too.
                next.extend(self.tcp.iter().filter_map(|(asker, at)| {
                    let asks = at.contains(&At::Process(pid)) && !leads.contains(asker);
                    asks.then_some(*asker)
                }));
            }
        }
        let led = |pid: u32| Led {
            pid,
            queued: queued.get(&pid).copied().unwrap_or(0),
        };
        leads.into_iter().map(led).collect()
    }

    /// All of a process.
    fn questions(&mut self, pid: u32, listener: u64, queued: &BTreeSet<u64>) -> Vec<At> {
        let mut found = self.tcp.get(&pid).cloned().unwrap_or_default();
        let Some(ends) = descriptors::ends(self.root, pid) else {
            return found;
        };
        let sockets = self.sockets;
        if ends.sockets.iter().any(|inode| self.datagrams.contains(inode)) {
            found.push(At::Elsewhere);
        }
        for inode in ends
            .sockets
            .iter()
            .filter(|inode| sockets.unnamed.contains(inode))
        {
            self.asked += 1;
            if self.asked > SOCKETS_MAX {
                found.push(At::Elsewhere);
                break;
            }
            if queued.contains(inode) {
                found.push(At::Queue(listener));
                continue;
            }
            match unix_peers::of(*inode) {
                // One that nobody has accepted elsewhere.
                Some(0) => found.push(At::Elsewhere),
                // Two ends without a name are a pair.
                Some(peer) if sockets.unix.contains_key(&peer) => {
                    found.push((self.of)(peer).map_or(At::Elsewhere, At::Process));
                }
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Led, Tables, to};
    use crate::conversations::Connection;
    use crate::listen_queues::ListenQueue;
    use crate::root::{Root, Tree};
    use crate::sockets::{Sockets, Tcp};
    use std::collections::BTreeSet;

    /// Sockets of a process have its id as their hundreds. The listener is 1000, at port 80; its workers are 1 and 2.
    fn led(connections: &[Connection]) -> Vec<(u32, u32)> {
        let folder = tempfile::tempdir().unwrap();
        led_below(&Root::below(folder.path()), &Sockets::default(), connections)
    }

    fn led_below(root: &Root, sockets: &Sockets, connections: &[Connection]) -> Vec<(u32, u32)> {
        let at = |port: u16, inode| ListenQueue {
            address: format!("127.0.0.1:{port}").parse().unwrap(),
            waiting: 1,
            limit: 10,
            inode,
        };
        let tables = Tables {
            connections,
            queues: &[at(80, 1000), at(81, 301), at(82, 401)],
            sockets,
        };
        let found = to(root, 1000, &BTreeSet::from([1, 2]), tables, |inode| {
            u32::try_from(inode / 100).ok()
        });
        found
            .into_iter()
            .map(|Led { pid, queued }| (pid, queued))
            .collect()
    }

    /// A client's end and the server's: 0 of one that nobody has accepted.
    fn asks(client: u64, from: u16, port: u16, server: u64) -> [Connection; 2] {
        let (from, to) = (
            format!("127.0.0.1:{from}").parse().unwrap(),
            format!("127.0.0.1:{port}").parse().unwrap(),
        );
        let mut own = Connection::at_rest(from, to, client);
        own.asks_ms = Some(5_000);
        [own, Connection::at_rest(to, from, server)]
    }

    #[test]
    fn a_proxy_whose_questions_are_all_there_leads_back_and_so_does_who_asks_it() {
        let queued = asks(310, 5001, 80, 0);
        let served = asks(311, 5002, 80, 110);
        let asked = asks(410, 5003, 81, 320);
        let all = [queued, served, asked].concat();
        assert_eq!(led(&all), [(3, 1), (4, 0)]);
    }

    #[test]
    fn what_was_asked_is_the_same_for_each_listener() {
        let all = [asks(310, 5001, 80, 0), asks(410, 5003, 81, 0)].concat();
        let at = |port: u16, inode| ListenQueue {
            address: format!("127.0.0.1:{port}").parse().unwrap(),
            waiting: 1,
            limit: 10,
            inode,
        };
        let of = |inode: u64| u32::try_from(inode / 100).ok();
        let asked = Asked::of(&all, &[at(80, 1000), at(81, 2000)], of);
        let folder = tempfile::tempdir().unwrap();
        let (root, workers) = (Root::below(folder.path()), BTreeSet::from([1]));
        let led = |listener| asked.lead_back(&root, listener, &workers, &Sockets::default(), of);
        assert_eq!(led(1000), [Led { pid: 3, queued: 1 }]);
        assert_eq!(led(2000), [Led { pid: 4, queued: 1 }]);
        assert_eq!(led(3000), []);
    }

    #[test]
    fn a_proxy_that_waits_for_another_server_too_does_not() {
        let queued = asks(310, 5001, 80, 0);
        let other = asks(312, 5004, 82, 410);
        assert_eq!(led(&[queued, other].concat()), []);
    }

    #[test]
    fn what_was_sent_and_received_in_one_tick_may_be_a_question_elsewhere() {
        let queued = asks(310, 5001, 80, 0);
        let unclear = |ends: [Connection; 2]| {
            let mut ends = ends;
            (ends[0].asks_ms, ends[0].may_ask) = (None, true);
            ends
        };
        let other = unclear(asks(312, 5004, 82, 410));
        assert_eq!(led(&[queued, other].concat()), [], "it may wait for that one");
        let served = unclear(asks(311, 5002, 80, 110));
        let client = unclear(asks(410, 5003, 81, 320));
        let all = [queued, served, client].concat();
        assert_eq!(led(&all), [(3, 1)], "whose connection may rest is none of them");
    }

    #[test]
    fn a_proxy_that_may_wait_for_a_name_does_not() {
        let queued = asks(310, 5001, 80, 0);
        let tree = Tree::new(&[]);
        let folder = tree.root.proc.join("3/fd");
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("socket:[350]", folder.join("4")).unwrap();
        let datagrams = |peer: &str| Sockets {
            udp: vec![Tcp {
                local: "127.0.0.1:40000".parse().unwrap(),
                peer: peer.parse().unwrap(),
                listens: false,
                knocks: false,
                waiting: 0,
                unread: 0,
                unsent: 0,
                probes: false,
                inode: 350,
            }],
            ..Sockets::default()
        };
        let led = |peer| led_below(&tree.root, &datagrams(peer), &queued);
        assert_eq!(led("127.0.0.53:53"), []);
        assert_eq!(led("0.0.0.0:0"), [(3, 1)], "one that takes datagrams of anybody");
    }

    #[test]
    fn what_goes_to_another_machine_leads_nowhere_and_a_worker_is_none_of_them() {
        let queued = asks(310, 5001, 80, 0);
        let mut far = asks(313, 5005, 443, 0)[0];
        far.peer = "192.0.2.7:443".parse().unwrap();
        assert_eq!(led(&[&queued[..], &[far]].concat()), []);
        let own = asks(110, 5006, 80, 0);
        assert_eq!(led(&own), [], "it asks itself");
    }
}
