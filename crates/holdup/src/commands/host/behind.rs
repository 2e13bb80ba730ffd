//! Which processes wait for which, by the kernel's own tables: most of them sleep in state S, and no list of blocked tasks has them.
//!
//! In: the tables at some times. Out: [`SeenWait`]s that went on. File locks are in `/proc/locks`, with who has them. Who has sent something
//! on a connection and received nothing since waits for an answer. Threads that wait for a file system of a process sleep in a function of
//! FUSE. Sessions of PostgreSQL say in their titles that they wait for a lock, or are idle in a transaction. Of a stopped process the
//! other ends of its pipes and Unix sockets wait if they are in a call on it. Tables that cannot block are read here; what can is asked of
//! processes that can be left behind ([`super::close_looks`]).

use super::asks;
use super::beyond;
use super::close_looks::{self, Close, Question};
use super::halted::{Halted, Why};
use super::last_words;
use super::looked_up::{self, MAX_STOPPED, ends_of, named, sessions};
use super::names_asked::{self, NamesAsked, Unanswered};
use super::queued::{Queued, Turns};
use super::room::{self, Room};
use super::served;
use holdup_evidence::Ns;
use holdup_evidence::facts::SessionState;
use holdup_evidence::observed::{
    Awaited, Doing, FrozenVolume, Owed, Quote, SeenClient, SeenProcess, SeenWait, Short,
};
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::listen_queues::ListenQueue;
use holdup_proc::lock_table::{self, LockWait};
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::task_list::TaskList;
use holdup_proc::{Root, names, tasks};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

/// The shortest wait that is reported: what is shorter is what any machine has.
const MIN_WAIT_NS: Ns = 1_000_000_000;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Waits for one kind of thing that are reported, longest first.
pub(super) const MAX_WAITS: usize = 500;

/// Processes that wait for one frozen file system, and that others are looked for behind.
const FROZEN_MAX: usize = 4;

/// Where the tables are, as a source of evidence.
pub(super) const NAME: &str = "/proc, sock_diag";

/// What the kernel lists of sockets; a test says it itself.
pub(super) type Ask = fn() -> Vec<Connection>;

/// Who waits, in what, for what, for whom, and for how long at least.
pub(super) type Wait = (u32, Awaited, String, Option<u32>, Ns);

/// A wait that is followed through the look: since when, until when, seconds since boot.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: f64,
    to: f64,
    turn: u32,
}

/// What was seen so far.
#[derive(Debug)]
pub(super) struct Behind {
    root: Root,
    ask: Ask,
    turns: u32,
    locks: HashMap<LockWait, Span>,
    /// Processes that stand still.
    halted: Halted,
    /// Threads in a wait for a file system of a process when the look began, with how often they had gone to sleep by then.
    asleep: HashMap<(u32, u32), u64>,
    /// Titles of sessions when the look began.
    titles: Option<Close>,
    /// Requests before servers that run all the time.
    queued: Queued,
    /// Threads that may wait for room.
    room: Room,
    /// Questions to name servers, and how their sockets are listed.
    names: NamesAsked,
    datagrams: Ask,
}

impl Behind {
    /// Begins.
    pub(super) fn start(root: &Root, ask: Ask, datagrams: Ask) -> Behind {
        Behind {
            ask,
            turns: 0,
            locks: HashMap::new(),
            halted: Halted::default(),
            asleep: served::waiters(root),
            titles: Some(Close::start(
                root,
                [sessions(root), vec![Question::Frozen]].concat(),
            )),
            queued: Queued::default(),
            room: Room::start(root),
            names: NamesAsked::default(),
            datagrams,
            root: root.clone(),
        }
    }

    /// Looks at who waits for names: that is cheap, and a question is given up after some seconds.
    pub(super) fn names_turn(&mut self, own: u32, now: Option<f64>) {
        let now = now.unwrap_or(0.0);
        let unknown = self.names.turn(now, &(self.datagrams)());
        if !unknown.is_empty() {
            let wanted: HashSet<Open> = unknown.into_iter().map(Open::Socket).collect();
            for (open, pids) in descriptors::holders(&self.root, &wanted, own) {
                if let (Open::Socket(inode), Some(pid)) = (open, pids.first()) {
                    self.names.of.insert(inode, *pid);
                }
            }
        }
    }

    /// Looks once. `now`: seconds since boot; `own` is the process that looks, and `queues` lists listeners.
    pub(super) fn turn(
        &mut self,
        own: u32,
        list: &TaskList,
        now: Option<f64>,
        queues: fn() -> Vec<ListenQueue>,
    ) {
        self.queued.turn(&self.root, own, list, self.ask, queues);
        let now = now.unwrap_or(0.0);
        self.turns += 1;
        let turn = self.turns;
        for wait in lock_table::read(&self.root) {
            let span = self.locks.entry(wait).or_insert(Span {
                from: now,
                to: now,
                turn,
            });
            // One that let go in between waits anew.
            if span.turn + 1 < turn {
                span.from = now;
            }
            (span.to, span.turn) = (now, turn);
        }
        self.halted.turn(&self.root, list);
    }

    /// What was seen; `watched` are the seconds of the look, `own` is the process that looks, `frozen` are file systems that others wait for.
    pub(super) fn finish(
        mut self,
        own: u32,
        watched: f64,
        queues: &[ListenQueue],
        quote: Quote,
        frozen: &[FrozenVolume],
    ) -> Vec<SeenWait> {
        let root = self.root.clone();
        let look = (watched * SECOND) as Ns;
        let before = self.titles.take().map(Close::take).unwrap_or_default();
        let why = std::mem::take(&mut self.halted).finish(&root, &before);
        let stopped: BTreeSet<u32> = why.keys().copied().collect();
        let connections = (self.ask)();
        let unanswered = self.names.unanswered();
        let room = std::mem::take(&mut self.room).finish(&root, own, look, &connections);
        let mut found = Found {
            room,
            sockets: match unanswered.is_empty() {
                true => Vec::new(),
                false => (self.datagrams)(),
            },
            unanswered,
            asking: std::mem::take(&mut self.names.of),
            turns: std::mem::take(&mut self.queued).finish(&root, own, watched),
            own,
            look,
            ends: ends_of(&root, &stopped),
            connections,
            locks: Vec::new(),
            fuse: Vec::new(),
            stopped,
            why,
            frozen: (frozen.iter().flat_map(|one| one.waiters.iter().take(FROZEN_MAX)))
                .copied()
                .collect(),
        };
        let last = self.turns;
        for (wait, span) in self.locks.drain() {
            let ns = ((span.to - span.from) * SECOND) as Ns;
            if span.turn == last && ns >= MIN_WAIT_NS {
                found.locks.push((wait, ns));
            }
        }
        found
            .locks
            .sort_by(|one, other| (other.1, one.0.waiter).cmp(&(one.1, other.0.waiter)));
        found.locks.truncate(MAX_WAITS);
        let now = served::waiters(&root);
        // Who has not run since the look began waits for the same file all the while.
        let same = now
            .into_iter()
            .filter(|(id, slept)| self.asleep.get(id) == Some(slept));
        found.fuse = same.map(|(id, _)| id).take(MAX_WAITS).collect();
        found.fuse.sort_unstable();
        found.tell(&root, &before, queues, &quote)
    }
}

/// What the look found, before names.
#[derive(Debug)]
struct Found {
    own: u32,
    look: Ns,
    /// Processes that stand still, and why.
    stopped: BTreeSet<u32>,
    why: BTreeMap<u32, Why>,
    /// Processes that wait to write to a frozen file system.
    frozen: BTreeSet<u32>,
    /// Other ends of what stopped processes have open: which process has it, as what, and of whom it is.
    ends: Vec<(Open, u32)>,
    connections: Vec<Connection>,
    locks: Vec<(LockWait, Ns)>,
    fuse: Vec<(u32, u32)>,
    /// Who waits for servers that run all the time.
    turns: Turns,
    /// Who waits for room.
    room: room::Found,
    /// Questions to name servers, and whose sockets they were asked on.
    unanswered: Vec<Unanswered>,
    /// UDP sockets, if somebody waits for a name.
    sockets: Vec<Connection>,
    asking: HashMap<u64, u32>,
}

impl Found {
    fn tell(
        self,
        root: &Root,
        before: &close_looks::Answers,
        queues: &[ListenQueue],
        quote: &Quote,
    ) -> Vec<SeenWait> {
        let asks = asks::of(&self.connections, queues);
        let mut wanted: HashSet<Open> = asks
            .iter()
            .flat_map(|ask| [ask.client, ask.server])
            .map(Open::Socket)
            .collect();
        wanted.extend(self.ends.iter().map(|(end, _)| end.clone()));
        let servers = self.unanswered.iter().filter_map(|one| one.of_server);
        wanted.extend(servers.map(Open::Socket));
        let sessions = sessions(root);
        // The clients of sessions have the other ends of their connections.
        let clients = self.clients_of(root, &sessions, &mut wanted);
        let holders = match wanted.is_empty() {
            true => HashMap::new(),
            false => descriptors::holders(root, &wanted, self.own),
        };
        // Clients that come and go may be gone when they are asked for more.
        let early: HashMap<u32, String> = (holders.values().flatten().collect::<HashSet<_>>().into_iter())
            .filter_map(|pid| Some((*pid, names::comm(root, *pid)?)))
            .collect();
        let mut questions: Vec<Question> = sessions.clone();
        questions.extend(self.locks.iter().map(|(wait, _)| Question::Lock {
            waiter: wait.waiter,
            noted: wait.holder,
            own: self.own,
        }));
        questions.extend(
            self.fuse
                .iter()
                .map(|(pid, tid)| Question::Mount { pid: *pid, tid: *tid }),
        );
        for (end, _) in &self.ends {
            let at = holders.get(end).into_iter().flatten();
            questions.extend(
                at.filter(|pid| !self.stopped.contains(pid))
                    .map(|pid| Question::At {
                        pid: *pid,
                        end: close_looks::link(end),
                    }),
            );
        }
        let server_of = |one: &Unanswered| holders.get(&Open::Socket(one.of_server?))?.first().copied();
        let name_servers: BTreeSet<u32> = self.unanswered.iter().filter_map(server_of).collect();
        questions.extend(name_servers.iter().map(|pid| Question::Forwards { pid: *pid }));
        questions.extend(names_asked::to_ask(&self.unanswered, &self.asking));
        let answers = Close::start(root, questions).take();
        let mut waits: Vec<Wait> = self.room.waits.clone();
        let mut add = |waiter: u32, on, name: &str, holder: Option<u32>, ns| {
            if Some(waiter) != holder && waiter != self.own {
                waits.push((waiter, on, name.to_owned(), holder, ns));
            }
        };
        for (wait, ns) in &self.locks {
            let (file, holder) = answers.lock(wait.waiter, wait.holder);
            add(wait.waiter, Awaited::FileLock, &file, holder, *ns);
        }
        let files = self.files(root, &answers);
        let daemons: BTreeSet<u32> = files.iter().filter_map(|(.., daemon)| *daemon).collect();
        let of = |inode: u64| holders.get(&Open::Socket(inode))?.first().copied();
        let ends = beyond::Ends {
            stopped: self.stopped.iter().take(MAX_STOPPED).copied().collect(),
            frozen: self.frozen.iter().copied().collect(),
            away: (asks.iter().filter(|ask| ask.server == 0))
                .filter_map(|ask| of(ask.client))
                .collect(),
        };
        for (daemon, end) in beyond::behind(root, self.own, &ends, &daemons, &self.connections) {
            add(daemon, Awaited::Peer, "", Some(end), self.look);
        }
        for (waiter, mount, daemon) in files {
            add(waiter, Awaited::Files, &mount, daemon, self.look);
        }
        let asking = names_asked::open(&self.unanswered, &self.asking, &answers);
        for (client, one) in asking.iter().take(MAX_WAITS) {
            let server = names_asked::said(one.server);
            add(*client, Awaited::Names, &server, server_of(one), one.ns);
        }
        let longest = asking.iter().map(|(_, one)| one.ns).max().unwrap_or(0);
        let name_servers: BTreeSet<u32> = asking.iter().filter_map(|(_, one)| server_of(one)).collect();
        for server in name_servers {
            if let Some((name, beyond)) = self.beyond(root, server, answers.forwards(server)) {
                add(server, Awaited::Names, &name, beyond, longest);
            }
        }
        // Who has a lock, and waits for its only child, keeps it for as long as that takes.
        let lockers: BTreeSet<u32> = (self.locks.iter())
            .filter_map(|(wait, _)| answers.lock(wait.waiter, wait.holder).1)
            .collect();
        for locker in lockers {
            if let Some(child) = looked_up::awaited_child(root, locker) {
                add(locker, Awaited::Child, "", Some(child), self.look);
            }
        }
        for (end, of) in &self.ends {
            for pid in holders.get(end).into_iter().flatten() {
                if answers.is_at(*pid, &close_looks::link(end)) {
                    add(*pid, Awaited::Peer, "", Some(*of), self.look);
                }
            }
        }
        let both = |state: SessionState| {
            let of = |pid: &u32| before.session(*pid) == Some(state) && answers.session(*pid) == Some(state);
            let pids = sessions.iter().filter_map(Question::session);
            pids.filter(of).collect::<Vec<u32>>()
        };
        let idle = both(SessionState::IdleInTransaction);
        for waiter in both(SessionState::Waiting) {
            let server = names::parent(root, waiter);
            let mut same = idle.iter().filter(|pid| names::parent(root, **pid) == server);
            // Of several nobody knows which it is.
            let one = same.next().filter(|_| same.next().is_none());
            add(waiter, Awaited::SessionLock, "", one.copied(), self.look);
            // A session that waits works for its client, which waits for it.
            let client = clients
                .get(&waiter)
                .and_then(|inode| holders.get(&Open::Socket(*inode))?.first().copied());
            if let Some(client) = client {
                add(client, Awaited::Answer, "", Some(waiter), self.look);
            }
        }
        let apart: HashSet<u32> = waits
            .iter()
            .map(|(waiter, ..)| *waiter)
            .chain(self.stopped.iter().copied())
            .collect();
        let mut answers_awaited: BTreeMap<(u32, u32), (String, Ns)> = BTreeMap::new();
        let mut unread: HashSet<(u32, u32)> = HashSet::new();
        let mut inferred: HashSet<(u32, u32)> = HashSet::new();
        for ask in &asks {
            let of = |inode: u64| {
                let pids = holders.get(&Open::Socket(inode))?;
                // Of several that have inherited it, the one that is known to stand still.
                let known = pids.iter().find(|pid| apart.contains(pid));
                known.or(pids.first()).copied()
            };
            if ask.server == 0 {
                waits.extend(
                    of(ask.client).map(|client| (client, Awaited::Answer, ask.at.clone(), None, ask.ns)),
                );
                continue;
            }
            let Some((client, server)) = of(ask.client).zip(of(ask.server)) else {
                continue;
            };
            // Of several that take clients from one queue, one that stands still does not keep them waiting.
            let takers = holders
                .get(&Open::Socket(ask.server))
                .map_or(&[][..], Vec::as_slice);
            let stands =
                |pid: &u32| self.stopped.contains(pid) || apart.contains(pid) && is_alone(root, *pid);
            // A parent whose children take clients takes none itself.
            let parents: HashSet<u32> = takers
                .iter()
                .filter_map(|pid| names::parent(root, *pid))
                .collect();
            let mut workers = takers
                .iter()
                .filter(|pid| takers.len() > 1 && !parents.contains(pid));
            if ask.queued && takers.len() > 1 && !workers.all(stands) {
                continue;
            }
            if client != server && client != self.own {
                let known = answers_awaited.entry((client, server)).or_default();
                if ask.ns > known.1 {
                    *known = (ask.at.clone(), ask.ns);
                }
                if ask.unread {
                    unread.insert((client, server));
                }
            }
        }
        let mut asked: Vec<_> = answers_awaited.into_iter().collect();
        asked.sort_by_key(|(ids, (_, ns))| (std::cmp::Reverse(*ns), *ids));
        // Whoever is known to wait for something else does not wait on its connections.
        let at_end = |server: u32| !waits.iter().any(|(waiter, ..)| *waiter == server);
        let who = asked.iter().filter(|(ids, _)| at_end(ids.1));
        let who: Vec<(u32, u32, Ns)> = who.map(|(ids, one)| (ids.0, ids.1, one.1)).collect();
        for (client, server, at, ns) in last_words::beyond(root, self.own, &who, &self.connections, queues) {
            inferred.insert((client, server));
            waits.push((client, Awaited::Answer, at, Some(server), ns));
        }
        // What was seen before servers that run all the time was seen at another time.
        let turns = self.turns.waits.iter().filter(|(client, on, _, server, _)| {
            let same = |((one, other), _): &((u32, u32), _)| one == client && Some(*other) == *server;
            *on == Awaited::Turn || !asked.iter().any(same)
        });
        waits.extend(turns.cloned());
        for ((client, server), (at, ns)) in asked.iter().take(MAX_WAITS) {
            waits.push((*client, Awaited::Answer, at.clone(), Some(*server), *ns));
        }
        let pids: BTreeSet<u32> = waits
            .iter()
            .flat_map(|(waiter, _, _, holder, _)| [Some(*waiter), *holder])
            .flatten()
            .chain(self.turns.busy.values().filter_map(|busy| busy.client))
            .chain(self.why.values().filter_map(|why| why.tracer))
            .chain(
                clients
                    .values()
                    .filter_map(|inode| holders.get(&Open::Socket(*inode))?.first().copied()),
            )
            .collect();
        let known = looked_up::with_jobs(
            root,
            &waits,
            named(root, looked_up::with_parents(root, &waits, pids)),
        );
        let name = |pid: u32| {
            let known = (known.get(&pid)).or_else(|| early.get(&pid).or(self.turns.names.get(&pid)));
            known.cloned().unwrap_or_default()
        };
        let client_of = |pid: u32| {
            let client = match self.turns.busy.get(&pid) {
                Some(busy) => busy.client?,
                None => *holders.get(&Open::Socket(*clients.get(&pid)?))?.first()?,
            };
            Some(SeenClient {
                pid: client,
                name: name(client),
            })
        };
        let seen = |pid: u32| SeenProcess {
            pid,
            name: name(pid),
            doing: match () {
                () if self.why.contains_key(&pid) => self.why[&pid].doing,
                () if idle.contains(&pid) => Doing::IdleInTransaction,
                () if self.turns.busy.contains_key(&pid) => Doing::Running,
                () => Doing::Unknown,
            },
            client: client_of(pid),
            load: self.turns.busy.get(&pid).map(|busy| busy.load),
            full: self.room.full.get(&pid).cloned(),
            descriptors: None,
            tracer: self.why.get(&pid).and_then(|why| {
                let pid = why.tracer?;
                let name = name(pid);
                Some(SeenClient { pid, name })
            }),
            cgroup: self.why.get(&pid).and_then(|why| why.cgroup.clone()),
        };
        let short = |waiter: u32, on: Awaited, holder: Option<u32>| match (on, holder) {
            (Awaited::Answer, Some(holder)) => Short::Answer(Owed {
                unread: unread.contains(&(waiter, holder)),
                inferred: inferred.contains(&(waiter, holder)),
                ..Owed::default()
            }),
            _ => Short::Nothing,
        };
        let found = waits.into_iter().map(|(waiter, on, name, holder, ns)| SeenWait {
            short: short(waiter, on, holder),
            waiter: seen(waiter),
            on,
            name,
            holder: holder.map(seen),
            ns,
            alone: is_alone(root, waiter),
            quote: quote.clone(),
            ..SeenWait::default()
        });
        found.collect()
    }

    /// Whom a name server asks in turn, and that one's process.
    fn beyond(&self, root: &Root, server: u32, servers: &[SocketAddr]) -> Option<(String, Option<u32>)> {
        let own = descriptors::ends(root, server)?.sockets;
        let (asked, socket) = names_asked::beyond(&own, servers, &self.sockets)?;
        let wanted: HashSet<Open> = socket.into_iter().map(Open::Socket).collect();
        let holders = match wanted.is_empty() {
            true => HashMap::new(),
            false => descriptors::holders(root, &wanted, self.own),
        };
        let process = holders.into_values().flatten().next();
        Some((names_asked::said(asked), process))
    }

    /// The inode of the client's end of each session's connection.
    fn clients_of(
        &self,
        root: &Root,
        sessions: &[Question],
        wanted: &mut HashSet<Open>,
    ) -> HashMap<u32, u64> {
        let by_inode: HashMap<u64, &Connection> =
            (self.connections.iter()).map(|one| (one.inode, one)).collect();
        let by_ends: HashMap<_, &Connection> = (self.connections.iter())
            .map(|one| ((one.local, one.peer), one))
            .collect();
        let mut clients = HashMap::new();
        for pid in sessions.iter().filter_map(Question::session) {
            let sockets = descriptors::ends(root, pid)
                .map(|ends| ends.sockets)
                .unwrap_or_default();
            let tcp = sockets.iter().filter_map(|inode| {
                let own = by_inode.get(inode)?;
                Some(by_ends.get(&(own.peer, own.local))?.inode)
            });
            let other = tcp
                .chain(sockets.iter().filter_map(|inode| unix_peers::of(*inode)))
                .find(|inode| *inode != 0);
            if let Some(inode) = other {
                wanted.insert(Open::Socket(inode));
                clients.insert(pid, inode);
            }
        }
        clients
    }

    /// Who waits for files of which mount, and who answers for that.
    fn files(&self, root: &Root, answers: &close_looks::Answers) -> Vec<(u32, String, Option<u32>)> {
        if self.fuse.is_empty() {
            return Vec::new();
        }
        let mounts = served::mounts(root);
        let servers = descriptors::fuse_servers(root, self.own);
        let found = self.fuse.iter().map(|(pid, tid)| {
            let mount = answers.mount(*pid, *tid);
            let mount = match mounts.as_slice() {
                [one] => Some(one),
                several => {
                    let known = several.iter().find(|one| Some(one.number) == mount);
                    known.or_else(|| served::only_awaited(root, several))
                }
            };
            let daemon = mount.and_then(|mount| served::daemon(&servers, mount));
            (
                *pid,
                mount.map_or_else(String::new, |mount| mount.target.clone()),
                daemon,
            )
        });
        let mut found: Vec<_> = found.collect();
        found.dedup();
        found
    }
}

/// Whether a process has one thread.
fn is_alone(root: &Root, pid: u32) -> bool {
    tasks::threads(root, pid).len() == 1
}
