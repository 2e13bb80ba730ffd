//! Roots: the ends of all ways, each with who waited behind it and for how long.
//!
//! In: attributed waits. Out: the roots that somebody waited behind for longer than a healthy machine makes anybody wait, worst first.
//! Each wait is in one root at most.

use super::crowd::{self, Crowd};
use super::ends::{self, End, Key, Lock};
use super::path::{Graph, Step};
use holdup_evidence::facts::{SessionState, StoppedChild};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Attributed, AttributedWait, Resource, ThreadName};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A single wait behind a root from which somebody notices, nanoseconds. Locks, answers and syncs of a healthy machine take less.
const MIN_LONGEST_NS: Ns = 1_000_000_000;

/// All waits behind something that is slow rather than stopped, below which one of them may be chance, nanoseconds.
const MIN_ALL_NS: Ns = 2_000_000_000;

/// Share of the observed time in which threads stood in a queue for a CPU while other programs had it, all added up, from which CPUs are
/// short.
const MIN_QUEUED_SHARE: f64 = 0.5;

/// Part of the queueing that the programs that had the CPUs must account for, so that naming them says something.
const MIN_RAN_SHARE: f64 = 0.1;

/// Part of a process's CPU time from which a function stands for what it ran.
const MIN_FUNCTION_SHARE: f64 = 0.5;

/// A thread behind a root.
#[derive(Debug, Clone)]
pub(crate) struct Waiter<'a> {
    pub(crate) name: &'a ThreadName,
    pub(crate) ns: Ns,
    pub(crate) longest: Ns,
    /// Waits for the root itself rather than for somebody who waits for it.
    pub(crate) directly: bool,
    /// In how many waits.
    pub(crate) count: u64,
    /// Whether it asked for something, or needs something, rather than waits for a child or for whatever comes.
    pub(crate) depends: bool,
}

/// A root.
#[derive(Debug, Clone)]
pub(crate) struct Root<'a> {
    pub(crate) key: Key,
    /// The thread at the end of the longest way.
    pub(crate) name: &'a ThreadName,
    pub(crate) cause: Option<Cause>,
    pub(crate) resource: Option<&'a Resource>,
    pub(crate) lock: Option<Lock<'a>>,
    /// What the root waited for in turn.
    pub(crate) beyond: Option<Step<'a>>,
    /// Threads that were in the end themselves: of a disk those that waited for it.
    pub(crate) own: Vec<Waiter<'a>>,
    /// Those that waited for them, directly or through others.
    pub(crate) behind: Vec<Waiter<'a>>,
    /// Programs that had the CPUs meanwhile, and for how long.
    pub(crate) ran: Vec<(String, Ns)>,
    /// The function that it ran, if one stands for its CPU time.
    pub(crate) function: Option<&'a str>,
    longest: Ns,
    /// The longest that a session was seen to end.
    ended: Ns,
    /// Of a session that is idle in a transaction: its client.
    pub(crate) idle_of: Option<&'a str>,
    /// From the longest wait to the end.
    pub(crate) way: Vec<Step<'a>>,
    /// Whether the longest wait was not over.
    pub(crate) open: bool,
    /// Threads in it that somebody depends on.
    pub(super) asked: Vec<&'a ThreadName>,
    /// Of a disk: who used it while others had many short waits for it.
    pub(crate) crowd: Option<Crowd<'a>>,
}

impl<'a> Root<'a> {
    fn new(end: &End<'a>) -> Root<'a> {
        Root {
            key: end.key.clone(),
            name: end.name,
            cause: end.cause,
            resource: end.resource,
            lock: end.lock,
            beyond: end.beyond,
            own: Vec::new(),
            behind: Vec::new(),
            ran: Vec::new(),
            function: None,
            longest: 0,
            ended: 0,
            idle_of: None,
            way: Vec::new(),
            open: false,
            asked: Vec::new(),
            crowd: None,
        }
    }

    /// Whether somebody depends on what this thread's process does in it.
    pub(super) fn is_asked(&self, name: &ThreadName) -> bool {
        name.pid != 0 && self.asked.iter().any(|asked| asked.pid == name.pid)
    }

    fn add(&mut self, row: &'a AttributedWait, end: &End<'a>, way: &[Step<'a>]) {
        // What was waited for before observation began counts, as far as it was observed.
        let longest = row.max.min(row.ns);
        if longest > self.longest {
            self.open = row.open;
        }
        // Of waits that are about as long the one tells most that leads furthest; who waits for a child tells little.
        let tells = end.steps == 0 || ends::depends(row.cause);
        if self.way.is_empty() || (tells && way.len() > self.way.len() && longest >= self.longest / 2) {
            self.way = way.to_vec();
        }
        if end.asked && !self.is_asked(end.name) {
            self.asked.push(end.name);
        }
        if end.steps > 0 && longest > self.longest {
            (self.name, self.cause, self.beyond) = (end.name, end.cause, end.beyond);
            self.resource = end.resource.or(self.resource);
            self.lock = end.lock.or(self.lock);
        }
        self.longest = self.longest.max(longest);
        self.ended = self.ended.max(if end.lock.is_some() { end.ns } else { 0 });
        let list = if end.steps == 0 {
            &mut self.own
        } else {
            &mut self.behind
        };
        push(list, row, end.steps <= 1);
    }

    /// Time of all that waited behind it; of what is slow itself, those that were in it count.
    pub(crate) fn held(&self) -> Ns {
        let behind = self.behind.iter().map(|one| one.ns);
        let own = self.own.iter().map(|one| one.ns);
        let halted = matches!(self.key, Key::Halted(_) | Key::Lock(_) | Key::Busy(_));
        let own = own.filter(|_| !halted).fold(0, Ns::saturating_add);
        behind.fold(own, Ns::saturating_add)
    }

    /// The longest single wait behind it.
    pub(crate) fn longest(&self) -> Ns {
        self.longest
    }

    /// Whether somebody could not go on at all for most of the time because of it. That comes before what slows many.
    fn stands(&self, wall: Ns) -> bool {
        let one_thing = matches!(
            self.key,
            Key::Halted(_) | Key::Lock(_) | Key::Files(_) | Key::Silent(_)
        );
        one_thing && self.longest >= wall / 2
    }

    /// Whether somebody waited behind it for longer than on a healthy machine. `wall`: how long was observed.
    fn matters(&self, wall: Ns) -> bool {
        let long = self.longest >= MIN_LONGEST_NS;
        // Who alone waits for an answer has asked for what is computed.
        let several = || {
            let direct = self.behind.iter();
            let direct = direct.filter(|one| one.directly && one.name.pid != self.name.pid);
            direct.count() > 1
        };
        match &self.key {
            Key::Lock(_) if self.lock.is_some_and(|lock| lock.session) => {
                long && self.ended >= MIN_LONGEST_NS
            }
            Key::Lock(_) | Key::Kernel(_) => long,
            Key::Halted(_) => self.behind.iter().any(|one| one.longest >= MIN_LONGEST_NS),
            Key::Busy(_) => several() && long,
            Key::Disk(_) if self.crowd.is_some() => true,
            Key::Disk(_) | Key::Files(_) | Key::Silent(_) => long && self.held() >= MIN_ALL_NS,
            Key::Memory(_) | Key::Quota(_) => self.held() >= MIN_ALL_NS.max(wall / 20),
            Key::Cpus => {
                let foreign: Ns = self.ran.iter().map(|(_, ns)| *ns).fold(0, Ns::saturating_add);
                foreign as f64 >= wall as f64 * MIN_QUEUED_SHARE
            }
        }
    }
}

fn push<'a>(list: &mut Vec<Waiter<'a>>, row: &'a AttributedWait, directly: bool) {
    let one = Waiter {
        name: &row.asker.name,
        ns: row.ns,
        longest: row.max.min(row.ns),
        directly,
        count: row.count,
        depends: ends::depends(row.cause),
    };
    join(list, one);
}

/// Whether a row is somebody's wait: what is idle, sleeps or runs waits for nobody.
fn waits(row: &AttributedWait) -> bool {
    let own = matches!(
        row.cause,
        Cause::Idle | Cause::TimerSleep | Cause::NetAccept | Cause::Unknown
    );
    !own && !row.cause.on_cpu() && row.asker.name.tid != 0 && !ends::takes_in(row) && !is_last(row)
}

/// Whether a thread queues for a CPU because somebody had it run only when nobody else would.
fn is_last(row: &AttributedWait) -> bool {
    row.cause == Cause::SchedRunqueue && row.queue.as_ref().is_some_and(|queue| queue.idle_class)
}

/// The roots that matter, worst first.
pub(crate) fn of<'a>(
    attributed: &'a Attributed,
    titled: &'a [Titled],
    stopped: &[StoppedChild],
) -> Vec<Root<'a>> {
    let graph = Graph::new(attributed, stopped);
    let mut roots: BTreeMap<Key, Root<'a>> = BTreeMap::new();
    let mut loose: Vec<(&'a AttributedWait, Vec<Step<'a>>)> = Vec::new();
    let mut beyond: BTreeMap<Key, Key> = BTreeMap::new();
    for row in attributed.waits.iter().filter(|row| waits(row)) {
        let way = graph.way(row);
        match ends::of(&graph, &way) {
            Some(end) => {
                if let Some(files) = ends::through_files(&graph, &way).filter(|files| *files != end.key) {
                    beyond.entry(files).or_insert_with(|| end.key.clone());
                }
                let root = roots.entry(end.key.clone()).or_insert_with(|| Root::new(&end));
                root.add(row, &end, &way);
            }
            None => loose.push((row, way)),
        }
    }
    files_of_one(&mut roots, beyond);
    stopped_servers(&graph, &mut roots);
    idle_sessions(&mut roots, &mut loose, titled);
    waiting_sessions(&graph, &mut roots);
    behind_sessions(&graph, &mut roots, &loose);
    behind_processes(&mut roots, &loose);
    if let Some(root) = roots.get_mut(&Key::Cpus) {
        root.ran = ran(attributed);
    }
    for root in roots.values_mut() {
        crowd::find(root, attributed);
    }
    let mut found: Vec<Root<'a>> = roots
        .into_values()
        .filter(|root| root.matters(attributed.wall))
        .collect();
    for root in &mut found {
        root.function = function(&graph, root.name.pid);
    }
    found.sort_by_key(|root| (!root.stands(attributed.wall), std::cmp::Reverse(root.held())));
    found
}

/// Who waits for files without its being known for what their server waits: behind the same root as others that wait for files there.
fn files_of_one<'a>(roots: &mut BTreeMap<Key, Root<'a>>, beyond: BTreeMap<Key, Key>) {
    for (files, end) in beyond {
        let long = roots.get(&files).map_or(0, |root| root.longest);
        let same = roots.get(&end).is_some_and(|root| root.longest >= long / 2);
        let from = if same { roots.remove(&files) } else { None };
        if let (Some(from), Some(into)) = (from, roots.get_mut(&end)) {
            for one in from.own.into_iter().chain(from.behind) {
                join(&mut into.behind, one);
            }
        }
    }
}

/// A silent address of which others saw that a process has it, and that this one was stopped: then that is the root.
fn stopped_servers<'a>(graph: &Graph<'a>, roots: &mut BTreeMap<Key, Root<'a>>) {
    let servers = graph.servers();
    let silent: Vec<Key> = roots
        .keys()
        .filter(|key| matches!(key, Key::Silent(_)))
        .cloned()
        .collect();
    for key in silent {
        let Key::Silent(address) = &key else { continue };
        let Some(halted) = servers
            .get(address.as_str())
            .map(|server| Key::Halted(server.pid))
            .filter(|halted| roots.contains_key(halted))
        else {
            continue;
        };
        let Some(from) = roots.remove(&key) else { continue };
        if let Some(into) = roots.get_mut(&halted) {
            into.longest = into.longest.max(from.longest);
            // Who asked that address waited for the stopped process.
            for one in from.own.into_iter().chain(from.behind) {
                join(&mut into.behind, one);
            }
        }
    }
}

/// A session of a database, by the title that its server has given it.
#[derive(Debug, Clone)]
pub(crate) struct Titled {
    pub(crate) name: ThreadName,
    /// The first process of its server.
    pub(crate) server: u32,
    pub(crate) state: SessionState,
    /// The program at the other end of its connection.
    pub(crate) client: String,
}

/// Sessions that wait for a lock of which nobody was seen to let go: behind the one session of their server that is idle in a transaction,
/// as the titles have it. Of several nobody knows which it is.
fn idle_sessions<'a>(
    roots: &mut BTreeMap<Key, Root<'a>>,
    loose: &mut Vec<(&'a AttributedWait, Vec<Step<'a>>)>,
    titled: &'a [Titled],
) {
    let of = |pid: u32| titled.iter().find(|one| one.name.pid == pid);
    loose.retain(|(row, way)| {
        let row: &'a AttributedWait = row;
        let waiting = way.last().and_then(|end| of(end.name.pid));
        let Some(waiting) = waiting.filter(|one| one.state == SessionState::Waiting) else {
            return true;
        };
        let idle =
            |one: &&Titled| one.server == waiting.server && one.state == SessionState::IdleInTransaction;
        let mut idle = titled.iter().filter(idle);
        let (Some(one), None) = (idle.next(), idle.next()) else {
            return true;
        };
        let longest = row.max.min(row.ns);
        if longest < MIN_LONGEST_NS {
            return true;
        }
        let own = way.len() <= 1;
        let end = End {
            key: Key::Lock(one.name.pid),
            name: &one.name,
            cause: Some(Cause::Idle),
            resource: None,
            lock: Some(Lock {
                cause: Cause::LockFutex,
                resource: own.then_some(&row.resource),
                session: true,
            }),
            steps: way.len(),
            beyond: None,
            ns: longest,
            asked: true,
        };
        let root = roots.entry(end.key.clone()).or_insert_with(|| Root::new(&end));
        let known = root.lock.and_then(|lock| lock.resource);
        root.add(row, &end, way);
        // The waiting session itself knows what it waits for.
        if let Some(lock) = &mut root.lock {
            lock.resource = lock.resource.or(known).or(own.then_some(&row.resource));
        }
        root.idle_of = Some(&one.client);
        false
    });
}

/// A session that has a lock others wait for and waits for another session itself is no root: it stands in the queue of one that waits for
/// nobody, if one is known.
fn waiting_sessions<'a>(graph: &Graph<'a>, roots: &mut BTreeMap<Key, Root<'a>>) {
    let of_session = |root: &Root<'_>| root.lock.is_some_and(|lock| lock.session);
    let waits = |root: &Root<'_>| graph.waited_for_session((root.name.pid, root.name.tid));
    let free = roots.values().filter(|root| of_session(root) && !waits(root));
    let Some(first) = free.max_by_key(|root| root.ended).map(|root| root.key.clone()) else {
        return;
    };
    let server = roots.get(&first).map(|root| root.name.process.clone());
    let queued = roots
        .values()
        .filter(|root| of_session(root) && waits(root) && Some(&root.name.process) == server.as_ref());
    let queued: Vec<Key> = queued.map(|root| root.key.clone()).collect();
    for key in queued {
        let Some(from) = roots.remove(&key) else { continue };
        if let Some(into) = roots.get_mut(&first) {
            into.longest = into.longest.max(from.longest);
            for one in from.behind {
                join(&mut into.behind, one);
            }
        }
    }
}

/// Adds a waiter to a list, or its time to its own place there.
fn join<'a>(list: &mut Vec<Waiter<'a>>, one: Waiter<'a>) {
    let same = |other: &&mut Waiter<'_>| (other.name.pid, other.name.tid) == (one.name.pid, one.name.tid);
    match list.iter_mut().find(same) {
        Some(known) => {
            known.ns = known.ns.saturating_add(one.ns);
            known.longest = known.longest.max(one.longest);
            known.directly |= one.directly;
            known.count = known.count.saturating_add(one.count);
            known.depends |= one.depends;
        }
        None => list.push(one),
    }
}

/// Sessions whose blocker nobody saw, where one blocker of that database is known: it is the one that ended such waits.
fn behind_sessions<'a>(
    graph: &Graph<'a>,
    roots: &mut BTreeMap<Key, Root<'a>>,
    loose: &[(&'a AttributedWait, Vec<Step<'a>>)],
) {
    let blockers = roots.values_mut().filter(|root| {
        let session = root.lock.is_some_and(|lock| lock.session);
        session && root.ended >= MIN_LONGEST_NS
    });
    // Of several the one that ended most.
    let Some(root) = blockers.max_by_key(|root| root.ended) else {
        return;
    };
    let server = root.name.process.clone();
    for (row, way) in loose {
        let end = way.last().filter(|end| graph.waited_for_session(end.id()));
        let stands = |cause| matches!(cause, Cause::IpcQueue | Cause::LockFutex | Cause::PollWait);
        let waits = end.is_some_and(|end| end.name.process == server && end.cause.is_some_and(stands));
        // What is short may be any wait of that session.
        if waits && row.max >= MIN_LONGEST_NS {
            push(&mut root.behind, row, way.len() <= 1);
            root.longest = root.longest.max(row.max.min(row.ns));
        }
    }
}

/// Who waits for a process of which only a thread is known that takes in clients: behind what another thread of that process waited for
/// at that time.
fn behind_processes<'a>(roots: &mut BTreeMap<Key, Root<'a>>, loose: &[(&'a AttributedWait, Vec<Step<'a>>)]) {
    let takes_in = |cause| {
        matches!(
            cause,
            None | Some(Cause::Idle | Cause::NetAccept | Cause::PollWait)
        )
    };
    for (row, way) in loose {
        let Some(end) = way.last().filter(|end| way.len() > 1 && takes_in(end.cause)) else {
            continue;
        };
        let longest = row.max.min(row.ns);
        if longest < MIN_LONGEST_NS {
            continue;
        }
        let covers = |one: &Waiter<'_>| one.name.pid == end.name.pid && one.longest >= longest / 2;
        let root = roots
            .values_mut()
            .filter(|root| root.behind.iter().any(covers))
            .max_by_key(|root| root.longest);
        if let Some(root) = root {
            push(&mut root.behind, row, false);
        }
    }
}

/// Who had the CPUs while threads of other programs were runnable, longest first. The kernel's own threads are not observed; they are in it
/// for moments, and named only if nobody else was.
fn ran(attributed: &Attributed) -> Vec<(String, Ns)> {
    let mut ran: HashMap<&str, Ns> = HashMap::new();
    let queued = attributed
        .waits
        .iter()
        .filter(|row| row.cause == Cause::SchedRunqueue && !is_last(row));
    for row in queued {
        for (name, ns) in &row.ran_instead {
            if *name != row.asker.name.process {
                let sum = ran.entry(name).or_default();
                *sum = sum.saturating_add(*ns);
            }
        }
    }
    let threads = attributed
        .threads
        .iter()
        .map(|thread| thread.name.process.as_str());
    let rows = attributed.waits.iter().map(|row| row.asker.name.process.as_str());
    let observed: HashSet<&str> = threads.chain(rows).collect();
    if ran.keys().any(|name| observed.contains(name)) {
        ran.retain(|name, _| observed.contains(name));
    }
    let mut ran: Vec<(String, Ns)> = ran.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect();
    ran.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
    ran
}

/// The programs that account for enough of that to be named.
pub(crate) fn named_of(ran: &[(String, Ns)]) -> Vec<&(String, Ns)> {
    let all: Ns = ran.iter().map(|(_, ns)| *ns).fold(0, Ns::saturating_add);
    let enough = |one: &&(String, Ns)| one.1 as f64 >= all as f64 * MIN_RAN_SHARE;
    ran.iter().filter(enough).collect()
}

/// The function that stands for what a process ran: at least half of its CPU time.
fn function<'a>(graph: &Graph<'a>, pid: u32) -> Option<&'a str> {
    let mut all: Ns = 0;
    let mut by_frame: HashMap<&str, Ns> = HashMap::new();
    for row in graph.of_process(pid).filter(|row| row.cause.on_cpu()) {
        all = all.saturating_add(row.ns);
        if let Some(frame) = &row.asker.frame {
            let sum = by_frame.entry(frame).or_default();
            *sum = sum.saturating_add(row.ns);
        }
    }
    let (frame, ns) = by_frame.into_iter().max_by_key(|(name, ns)| (*ns, *name))?;
    (ns > 0 && ns as f64 >= all as f64 * MIN_FUNCTION_SHARE).then_some(frame)
}
