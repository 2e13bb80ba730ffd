//! Requests that wait for their turn with a server that runs all the time.
//!
//! In: lists of tasks and of connections, at some times. Out: the servers with who waits for them. One thread that is always busy is no
//! shortage of CPUs, and who waits for it sleeps. What has arrived on a connection and is not read waits for its turn. The client that
//! the server works for is the one whose request it has read, and that came about when somebody was answered for the last time. Without
//! such a thread the connections are not listed.

use super::behind::Wait;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Awaited, SeenLoad};
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::listen_queues::ListenQueue;
use holdup_proc::task_list::TaskList;
use holdup_proc::{Root, listen_queues, names};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

/// Lists from which it is no chance how many of them a thread runs in.
const MIN_LISTS: u32 = 4;

/// Part of the lists in which a thread runs or is runnable, from which it runs all the time: of ten lists one or two miss one that pauses
/// between two requests.
const MIN_RAN_SHARE: f64 = 0.6;

/// Part of the lists in which requests must stand before it.
const MIN_QUEUED_SHARE: f64 = 0.4;

/// Part of those lists in which one client must be the one that it works for, and how many they must be.
const MIN_SERVED_SHARE: f64 = 0.6;
const MIN_SERVED_LISTS: u32 = 2;

/// What a server must use of one CPU, percent: with less it waits for a CPU rather than others for it.
const MIN_CPU_PERCENT: u32 = 10;

/// Processes that are looked at in one list, those that ran most first. A build has dozens that run all the time.
const MAX_SERVERS: usize = 64;

/// How often all processes are looked through for who has the connections: some 5 µs for each descriptor.
const MAX_RESOLVED: u32 = 4;

/// A question that is unanswered for less passes: it is on its way.
const MIN_ASKED_MS: u32 = 20;

/// Two questions that came so close together may each be the last, milliseconds: the kernel's clock for these has ticks.
const TOGETHER_MS: u32 = 20;

/// Questions that are followed in one list.
const MAX_ASKED: usize = 500;

/// Ticks of `USER_HZ` in a second, and percent in a whole.
const TICKS: f64 = 100.0;
const WHOLE: f64 = 100.0;

const MS: Ns = 1_000_000;

/// A process that runs all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) load: SeenLoad,
    /// The process whose requests it answers for most of the time.
    pub(super) client: Option<u32>,
}

/// What was seen of a server.
#[derive(Debug, Default)]
struct Server {
    queued: u32,
    most: u32,
    /// In how many lists it worked for the client with this end of a connection, and for this process.
    served: HashMap<u64, u32>,
    /// Who waited, in the list in which most did.
    waits: Vec<Wait>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Queued {
    lists: u32,
    /// In how many lists a thread ran or was runnable.
    ran: HashMap<(u32, u32), u32>,
    /// When each process began, and its CPU time in the first list and in the last, in ticks.
    ticks: HashMap<u32, (u64, u64, u64)>,
    servers: BTreeMap<u32, Server>,
    /// Processes that had no sockets, such as compilers.
    without: HashSet<u32>,
    resolved: u32,
    /// Who has an end of a connection, as far as that was looked up, and what they are called: clients may be gone when the look is over.
    of: HashMap<u64, u32>,
    names: HashMap<u32, String>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Who waits.
    pub(super) waits: Vec<Wait>,
    /// The servers that run all the time.
    pub(super) busy: HashMap<u32, Busy>,
    /// Names of all of these.
    pub(super) names: HashMap<u32, String>,
}

/// Connections in one list.
struct Connections<'a> {
    all: &'a [Connection],
    by_ends: HashMap<(SocketAddr, SocketAddr), &'a Connection>,
    queues: &'a [ListenQueue],
}

impl<'a> Connections<'a> {
    fn of(all: &'a [Connection], queues: &'a [ListenQueue]) -> Connections<'a> {
        Connections {
            all,
            by_ends: all.iter().map(|one| ((one.local, one.peer), one)).collect(),
            queues,
        }
    }

    /// The other end, on this machine.
    fn other(&self, one: &Connection) -> Option<&'a Connection> {
        self.by_ends.get(&(one.peer, one.local)).copied()
    }

    /// The socket that a server's process has of a connection: its listener's, where nobody has accepted it.
    fn server(&self, one: &Connection) -> Option<u64> {
        match one.inode {
            0 => listen_queues::listener(self.queues, one.local).map(|queue| queue.inode),
            inode => Some(inode),
        }
    }
}

impl Queued {
    /// Looks once. `ask` lists connections, and `queues` listeners.
    pub(super) fn turn(
        &mut self,
        root: &Root,
        own: u32,
        list: &TaskList,
        ask: fn() -> Vec<Connection>,
        queues: fn() -> Vec<ListenQueue>,
    ) {
        self.lists += 1;
        for task in list.busy.iter().filter(|task| task.state == 'R') {
            *self.ran.entry((task.pid, task.tid)).or_default() += 1;
        }
        for process in list.processes.iter().filter(|process| !process.kernel) {
            let known = self
                .ticks
                .entry(process.pid)
                .or_insert((process.began, process.ticks, 0));
            // An id that is used again is another process.
            if known.0 != process.began {
                *known = (process.began, process.ticks, 0);
            }
            known.2 = process.ticks;
        }
        let busy = self.busy(2);
        if busy.is_empty() {
            return;
        }
        let (all, queues) = (ask(), queues());
        if all.iter().all(|one| one.unread == 0) {
            return;
        }
        let connections = Connections::of(&all, &queues);
        for pid in busy {
            self.look(root, own, pid, &connections);
        }
    }

    /// Processes with a thread that has run in most lists so far, the one that did most first.
    fn busy(&self, least: u32) -> Vec<u32> {
        let mut most: HashMap<u32, u32> = HashMap::new();
        for ((pid, _), ran) in self.ran.iter().filter(|(_, ran)| self.is_busy(**ran, least)) {
            let known = most.entry(*pid).or_default();
            *known = (*known).max(*ran);
        }
        let mut pids: Vec<(u32, u32)> = most
            .into_iter()
            .filter(|(pid, _)| self.ticks.contains_key(pid) && !self.without.contains(pid))
            .collect();
        pids.sort_by_key(|(pid, ran)| (std::cmp::Reverse(*ran), *pid));
        pids.into_iter().take(MAX_SERVERS).map(|(pid, _)| pid).collect()
    }

    fn is_busy(&self, ran: u32, least: u32) -> bool {
        self.lists >= least && f64::from(ran) >= MIN_RAN_SHARE * f64::from(self.lists)
    }

    /// What stands before a server now.
    fn look(&mut self, root: &Root, own: u32, pid: u32, connections: &Connections<'_>) {
        let Some(sockets) = descriptors::ends(root, pid).map(|ends| ends.sockets) else {
            return;
        };
        if sockets.is_empty() {
            self.without.insert(pid);
            return;
        }
        let has = |one: &&Connection| {
            connections
                .server(one)
                .is_some_and(|inode| sockets.contains(&inode))
        };
        let waiting: Vec<&Connection> = (connections.all.iter())
            .filter(|one| one.unread > 0)
            .filter(has)
            .collect();
        if waiting.is_empty() {
            return;
        }
        let server = self.servers.entry(pid).or_default();
        server.queued += 1;
        server.most = server.most.max(u32::try_from(waiting.len()).unwrap_or(u32::MAX));
        let served = served(&sockets, connections);
        if let Some(served) = served {
            *server.served.entry(served).or_default() += 1;
        }
        if self.resolved >= MAX_RESOLVED {
            return;
        }
        self.resolved += 1;
        let waits = self.resolve(root, own, pid, &waiting, served, connections);
        let server = self.servers.entry(pid).or_default();
        if waits.len() > server.waits.len() {
            server.waits = waits;
        }
    }

    /// Who it is that waits for its turn, and who asks whom meanwhile.
    fn resolve(
        &mut self,
        root: &Root,
        own: u32,
        pid: u32,
        waiting: &[&Connection],
        served: Option<u64>,
        connections: &Connections<'_>,
    ) -> Vec<Wait> {
        let asks = (connections.all.iter())
            .filter(|one| one.inode != 0 && is_client(connections.queues, one))
            .filter_map(|one| Some((one, one.asks_ms.filter(|ms| *ms >= MIN_ASKED_MS)?)))
            .filter_map(|(one, ms)| {
                let other = connections.other(one)?;
                Some((one.inode, connections.server(other)?, other, ms))
            });
        let asks: Vec<(u64, u64, &Connection, u32)> = asks.take(MAX_ASKED).collect();
        let ends = asks.iter().flat_map(|(client, server, ..)| [*client, *server]);
        let wanted: HashSet<Open> = (ends.chain(served))
            .filter(|inode| !self.of.contains_key(inode))
            .map(Open::Socket)
            .collect();
        for (open, pids) in descriptors::holders(root, &wanted, own) {
            if let (Open::Socket(inode), [one]) = (open, pids.as_slice()) {
                self.of.insert(inode, *one);
                let known = self.names.contains_key(one);
                if let Some(name) = (!known).then(|| names::comm(root, *one)).flatten() {
                    self.names.insert(*one, name);
                }
            }
        }
        let turns: HashSet<(SocketAddr, SocketAddr)> =
            waiting.iter().map(|one| (one.local, one.peer)).collect();
        let mut waits: Vec<Wait> = Vec::new();
        for (client, server, other, ms) in asks {
            let is_turn = turns.contains(&(other.local, other.peer));
            let holder = if is_turn {
                Some(pid)
            } else {
                self.of.get(&server).copied()
            };
            let Some((waiter, holder)) = self.of.get(&client).copied().zip(holder) else {
                continue;
            };
            if waiter == holder || waiter == own {
                continue;
            }
            let on = if is_turn { Awaited::Turn } else { Awaited::Answer };
            waits.push((
                waiter,
                on,
                other.local.to_string(),
                Some(holder),
                Ns::from(ms) * MS,
            ));
        }
        waits
    }

    /// Who waits, and for which servers; `watched` are the seconds of the look.
    pub(super) fn finish(mut self, root: &Root, own: u32, watched: f64) -> Turns {
        let mut turns = Turns::default();
        let busy: HashSet<u32> = self.busy(MIN_LISTS).into_iter().collect();
        for (pid, server) in std::mem::take(&mut self.servers) {
            let Some(load) = busy
                .contains(&pid)
                .then(|| self.load(pid, &server, watched))
                .flatten()
            else {
                continue;
            };
            let client = (load.threads == 1)
                .then(|| self.client(root, own, &server))
                .flatten();
            turns.busy.insert(pid, Busy { load, client });
            turns.waits.extend(server.waits);
        }
        turns.names = self.names;
        turns
    }

    /// How much it had to do; `None` where that was little.
    fn load(&self, pid: u32, server: &Server, watched: f64) -> Option<SeenLoad> {
        let of =
            |(id, ran): (&(u32, u32), &u32)| (id.0 == pid && self.is_busy(*ran, MIN_LISTS)).then_some(*ran);
        let ran: Vec<u32> = self.ran.iter().filter_map(of).collect();
        let (_, first, last) = self.ticks.get(&pid)?;
        let cpu = last.saturating_sub(*first) as f64 / TICKS / watched.max(1.0) * WHOLE;
        let load = SeenLoad {
            threads: u32::try_from(ran.len()).unwrap_or(u32::MAX),
            ran: ran.into_iter().max()?,
            queued: server.queued,
            lists: self.lists,
            most: server.most,
            cpu_percent: cpu.round() as u32,
        };
        let queued = f64::from(load.queued) >= MIN_QUEUED_SHARE * f64::from(load.lists);
        (queued && load.cpu_percent >= MIN_CPU_PERCENT).then_some(load)
    }

    /// The client that it worked for in most lists in which others waited.
    fn client(&self, root: &Root, own: u32, server: &Server) -> Option<u32> {
        let (inode, lists) = server
            .served
            .iter()
            .max_by_key(|(inode, lists)| (**lists, **inode))?;
        let often = f64::from(*lists) >= MIN_SERVED_SHARE * f64::from(server.queued);
        if !often || *lists < MIN_SERVED_LISTS {
            return None;
        }
        self.of.get(inode).copied().or_else(|| {
            let wanted = HashSet::from([Open::Socket(*inode)]);
            let holders = descriptors::holders(root, &wanted, own);
            match holders.into_values().next()?.as_slice() {
                [one] => Some(*one),
                _ => None,
            }
        })
    }
}

/// Whether an end is a client's: one of a listener's port answers, and has sent something last whenever it has nothing to do.
pub(super) fn is_client(queues: &[ListenQueue], one: &Connection) -> bool {
    listen_queues::listener(queues, one.local).is_none()
}

/// How long ago a request may have come that a server works for since it has answered somebody for the last time, milliseconds: it may have
/// waited for its own turn before.
fn longest_before(answered_ms: u32) -> u32 {
    const QUEUED_MS: u32 = 50;
    answered_ms.saturating_mul(2).saturating_add(QUEUED_MS)
}

/// The client's end of the connection that a server works for: its request is read, and nobody was answered since it came, or shortly
/// before. A client that waits for something to happen has asked long before others were answered.
fn served(sockets: &HashSet<u64>, connections: &Connections<'_>) -> Option<u64> {
    let own = connections
        .all
        .iter()
        .filter(|one| one.inode != 0 && sockets.contains(&one.inode));
    let clients: Vec<(&Connection, u32)> = own
        .filter_map(|one| Some((connections.other(one)?, one.unread)))
        .collect();
    let read = || {
        clients
            .iter()
            .filter(|(client, unread)| *unread == 0 && client.inode != 0)
    };
    let is_since = |client: &Connection, ms: u32| {
        let others = clients.iter().filter(|(other, _)| other.inode != client.inode);
        let answered = others.filter_map(|(other, _)| other.received_ms).min();
        answered.is_none_or(|answered| ms <= longest_before(answered))
    };
    // One that asks again as soon as it is answered does both within a tick of the clock; so does one that has nothing to ask any more. Of both
    // kinds the last one that was read is the one: whoever asked before was answered, or waits for something to happen.
    let asked = |client: &Connection| {
        let again = client.sent_ms.or(client.received_ms).filter(|_| client.may_ask);
        client
            .asks_ms
            .map(|ms| (ms, true))
            .or(again.map(|ms| (ms, false)))
    };
    let mut found: Vec<(u32, bool, u64)> = read()
        .filter_map(|(client, _)| {
            let (ms, asks) = asked(client)?;
            is_since(client, ms).then_some((ms, asks, client.inode))
        })
        .collect();
    found.sort_unstable();
    let (last, asks, inode) = *found.first()?;
    let together = |one: &&(u32, bool, u64)| one.0 <= last.saturating_add(TOGETHER_MS);
    match asks {
        true => Some(inode),
        // Of several that may ask it may be any, and one of those that do ask is surer.
        false => {
            let mut near = found.iter().filter(together);
            let sure = near.clone().find(|one| one.1);
            let alone = near.clone().count() == 1;
            sure.or(near.next().filter(|_| alone)).map(|one| one.2)
        }
    }
}

/// The process that a server works for now, by its connections.
pub(super) fn works_for(
    root: &Root,
    own: u32,
    pid: u32,
    connections: &[Connection],
    queues: &[ListenQueue],
) -> Option<u32> {
    let sockets = descriptors::ends(root, pid)?.sockets;
    let inode = served(&sockets, &Connections::of(connections, queues))?;
    let wanted = HashSet::from([Open::Socket(inode)]);
    let holders = descriptors::holders(root, &wanted, own);
    match holders.into_values().next()?.as_slice() {
        [one] if *one != pid => Some(*one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Queued, Turns};
    use holdup_evidence::observed::Awaited;
    use holdup_proc::Root;
    use holdup_proc::conversations::Connection;
    use holdup_proc::listen_queues::ListenQueue;
    use holdup_proc::task_list::{Process, Task, TaskList};
    use std::net::SocketAddr;
    use std::os::unix::fs::symlink;

    /// Server, port 6379, of process 5. Of its clients 9 has its request read, 20 and 21 wait, 8 waits for something to happen since long
    /// ago; 30 waits for what 20 serves at port 8000.
    fn connections() -> Vec<Connection> {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let mut all = Vec::new();
        let mut pair = |port: u16, of: (u64, u64), unread: u32, ms: u32, server: u16| {
            let end = |local, peer, inode| Connection::at_rest(at(local), at(peer), inode);
            all.push(Connection {
                asks_ms: Some(ms),
                owes_ms: None,
                received_ms: Some(ms + 250),
                ..end(port, server, of.0)
            });
            // A server has sent something last whenever it has nothing to do.
            all.push(Connection {
                unread,
                asks_ms: Some(ms + 100),
                owes_ms: None,
                ..end(server, port, of.1)
            });
        };
        pair(40001, (91, 50), 0, 600, 6379);
        pair(40002, (201, 51), 9, 500, 6379);
        pair(40003, (211, 52), 9, 400, 6379);
        pair(40004, (81, 53), 0, 90_000, 6379);
        pair(40005, (301, 202), 0, 510, 8000);
        all
    }

    fn listeners() -> Vec<ListenQueue> {
        let of = |port: u16, inode| ListenQueue {
            address: SocketAddr::from(([0, 0, 0, 0], port)),
            waiting: 0,
            limit: 128,
            inode,
        };
        vec![of(6379, 59), of(8000, 209)]
    }

    /// What is found in so many lists; in `ran` of them the server runs.
    fn found(lists: u32, ran: u32) -> Turns {
        let folder = tempfile::tempdir().unwrap();
        for (pid, sockets) in [
            (5, vec![50, 51, 52, 53, 59]),
            (8, vec![81]),
            (9, vec![91]),
            (20, vec![201, 202, 209]),
            (21, vec![211]),
            (30, vec![301]),
        ] {
            let fds = folder.path().join(format!("proc/{pid}/fd"));
            std::fs::create_dir_all(&fds).unwrap();
            std::fs::write(
                folder.path().join(format!("proc/{pid}/comm")),
                format!("p{pid}\n"),
            )
            .unwrap();
            for (number, inode) in sockets.into_iter().enumerate() {
                symlink(format!("socket:[{inode}]"), fds.join(number.to_string())).unwrap();
            }
        }
        let root = Root::below(folder.path());
        let mut queued = Queued::default();
        for turn in 0..lists {
            let runs = Task {
                pid: 5,
                tid: 5,
                state: 'R',
                ..Task::default()
            };
            let list = TaskList {
                busy: (turn < ran).then_some(runs).into_iter().collect(),
                processes: vec![Process {
                    pid: 5,
                    ticks: u64::from(turn) * 90,
                    ..Process::default()
                }],
                threads: 1,
            };
            queued.turn(&root, 1, &list, connections, listeners);
        }
        queued.finish(&root, 1, f64::from(lists - 1))
    }

    #[test]
    fn who_waits_for_its_turn_and_for_whom_the_server_works_is_told() {
        let turns = found(10, 9);
        let busy = &turns.busy[&5];
        assert_eq!((busy.client, busy.load.threads), (Some(9), 1));
        assert_eq!((busy.load.ran, busy.load.lists, busy.load.most), (9, 10, 2));
        assert_eq!(busy.load.cpu_percent, 90);
        let mut waits: Vec<_> = turns.waits.iter().map(|one| (one.0, one.1, one.3)).collect();
        waits.sort_by_key(|one| one.0);
        assert_eq!(
            waits,
            [
                (8, Awaited::Answer, Some(5)),
                (9, Awaited::Answer, Some(5)),
                (20, Awaited::Turn, Some(5)),
                (21, Awaited::Turn, Some(5)),
                (30, Awaited::Answer, Some(20)),
            ]
        );
        assert_eq!(turns.names[&30], "p30");
    }

    #[test]
    fn a_server_that_pauses_and_one_that_was_seldom_looked_at_keep_nobody_waiting() {
        assert!(found(10, 4).busy.is_empty());
        assert!(found(3, 3).busy.is_empty());
    }
}
