//! Roots: the ends of all ways, each with who waited behind it and for how long.
//!
//! In: attributed waits. Out: the roots that somebody waited behind for longer than a healthy machine makes anybody wait, worst first.
//! Each wait is in one root at most.

use super::crowd::{self, Crowd};
use super::ends::{self, End, Key, Lock};
use super::files;
use super::names::Names;
use super::onward::Onward;
use super::path::{Graph, Step};
use super::room;
use super::sessions::{self, Titled};
use super::weight;
use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::{Attributed, AttributedWait, Holder, HowKnown, Queue, Resource, ThreadName};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A single wait behind a root from which somebody notices, nanoseconds. Locks, answers and syncs of a healthy machine take less.
pub(crate) const MIN_LONGEST_NS: Ns = 1_000_000_000;

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
    /// Whether it asked a service for an answer.
    pub(crate) asks: bool,
    /// The child that it waits for, which waits itself: both are one job.
    pub(crate) child: Option<u32>,
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
    /// Where that leads to.
    pub(crate) onward: Option<Onward<'a>>,
    /// Of a process that does not read: what those are in that write to it.
    pub(crate) awaited: Option<Cause>,
    /// Threads that were in the end themselves: of a disk those that waited for it.
    pub(crate) own: Vec<Waiter<'a>>,
    /// Those that waited for them, directly or through others.
    pub(crate) behind: Vec<Waiter<'a>>,
    /// Programs that had the CPUs meanwhile, and for how long.
    pub(crate) ran: Vec<(String, Ns)>,
    /// The function that it ran, if one stands for its CPU time.
    pub(crate) function: Option<&'a str>,
    pub(super) longest: Ns,
    /// The longest that a session was seen to end.
    pub(super) ended: Ns,
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
    pub(super) fn new(end: &End<'a>) -> Root<'a> {
        Root {
            key: end.key.clone(),
            name: end.name,
            cause: end.cause,
            resource: end.resource,
            lock: end.lock,
            beyond: end.beyond,
            onward: end.onward,
            awaited: end.awaited,
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

    /// Whether somebody depends on this thread's process.
    pub(super) fn is_asked(&self, name: &ThreadName) -> bool {
        name.pid != 0 && self.asked.iter().any(|asked| asked.pid == name.pid)
    }

    pub(super) fn add(&mut self, row: &'a AttributedWait, end: &End<'a>, way: &[Step<'a>]) {
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
        self.onward = self.onward.or(end.onward);
        if end.asked && !self.is_asked(end.name) {
            self.asked.push(end.name);
        }
        if end.steps > 0 && longest > self.longest {
            (self.name, self.cause, self.beyond) = (end.name, end.cause, end.beyond);
            self.onward = end.onward.or(self.onward);
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
        // A shell that waits for its command, which waits here, is no second one.
        let child = way
            .get(1)
            .filter(|_| row.cause == Cause::ProcessChild && end.steps > 0);
        let one = Waiter {
            child: child.map(|child| child.name.pid),
            ..waiter(row, end.steps <= 1)
        };
        join(list, one);
    }

    /// Time of all that waited behind it; of what is slow itself, those that were in it count.
    pub(crate) fn held(&self) -> Ns {
        let behind = apart(self.behind.iter()).into_iter().map(|one| one.ns);
        let own = self.own.iter().map(|one| one.ns);
        let own = own.filter(|_| !self.is_one_process()).fold(0, Ns::saturating_add);
        behind.fold(own, Ns::saturating_add)
    }

    /// Whether a process is the root, and not something that is short or slow.
    pub(crate) fn is_one_process(&self) -> bool {
        matches!(
            self.key,
            Key::Halted(_) | Key::Lock(_) | Key::Busy(_) | Key::Reader(_)
        )
    }

    /// Of files that a process answers for: that process, if it is known.
    pub(crate) fn server(&self) -> Option<&'a ThreadName> {
        let steps = self.way.windows(2).rev();
        let mut served = steps.filter_map(|pair| match pair {
            [waiter, server] => ends::waits_for_files(waiter).then_some(server.name),
            _ => None,
        });
        served.next()
    }

    /// The longest single wait behind it.
    pub(crate) fn longest(&self) -> Ns {
        self.longest
    }

    /// Whether somebody could not go on at all for most of the time because of it. That comes before what slows many.
    fn stands(&self, wall: Ns) -> bool {
        let one_thing = matches!(
            self.key,
            Key::Halted(_) | Key::Lock(_) | Key::Files(_) | Key::Silent(_) | Key::Reader(_) | Key::Unread(_)
        );
        one_thing && self.longest >= wall / 2
    }

    /// Whether those behind it queue for a file's lock, and nobody waits for them, while who has it gets on with its work: they take turns,
    /// which may be meant so.
    fn takes_turns(&self) -> bool {
        let on_file = self.lock.is_some_and(|lock| lock.cause == Cause::LockFile);
        let waits = self
            .onward
            .and_then(|onward| onward.before)
            .and_then(|step| step.cause);
        let stuck = waits.is_some_and(ends::depends);
        on_file
            && matches!(self.key, Key::Lock(_))
            && !stuck
            && self.behind.iter().all(|one| one.directly || !one.depends)
    }

    /// How grave it is: what nobody can get past comes first. Queues for a lock that may be meant, and for the CPUs, which all programs have
    /// in common, come last.
    fn rank(&self, wall: Ns) -> u8 {
        match () {
            () if self.key == Key::Cpus => 3,
            () if self.takes_turns() => 2,
            () if self.stands(wall) => 0,
            () => 1,
        }
    }

    /// Whether it comes after all that is one program's own.
    pub(crate) fn comes_last(&self) -> bool {
        self.key == Key::Cpus || self.takes_turns()
    }

    /// How many different processes wait for it directly.
    fn direct(&self) -> usize {
        let direct = self.behind.iter().chain(&self.own).filter(|one| one.directly);
        let pids: HashSet<u32> = direct.map(|one| one.name.pid).collect();
        pids.len()
    }

    /// Processes of which others wait for a program and its child, which waits here.
    pub(crate) fn jobs(&self) -> HashMap<u32, &'a ThreadName> {
        let parents = self.behind.iter();
        parents.filter_map(|one| Some((one.child?, one.name))).collect()
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
            // One that writes more than is read may mean to. That somebody waits for it, or that several do so, is no pipeline.
            Key::Reader(_) | Key::Unread(_) => {
                let kept = !self.asked.is_empty() || self.direct() > 1;
                long && self.held() >= MIN_ALL_NS && kept
            }
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

/// These without those that wait for a child which is among them: both are one job.
pub(crate) fn apart<'b, 'a: 'b>(waiters: impl Iterator<Item = &'b Waiter<'a>>) -> Vec<&'b Waiter<'a>> {
    let all: Vec<&Waiter<'_>> = waiters.collect();
    let pids: HashSet<u32> = all.iter().map(|one| one.name.pid).collect();
    let is_parent = |one: &Waiter<'_>| one.child.is_some_and(|child| pids.contains(&child));
    all.iter().copied().filter(|one| !is_parent(one)).collect()
}

pub(super) fn waiter(row: &AttributedWait, directly: bool) -> Waiter<'_> {
    Waiter {
        name: &row.asker.name,
        ns: row.ns,
        longest: row.max.min(row.ns),
        directly,
        count: row.count,
        depends: ends::depends(row.cause) || room::is_for_room(row),
        asks: weight::asks(row),
        child: None,
    }
}

/// Whether a row is somebody's wait: what is idle, sleeps or runs waits for nobody.
pub(super) fn waits(row: &AttributedWait) -> bool {
    let own = matches!(
        row.cause,
        Cause::Idle | Cause::TimerSleep | Cause::NetAccept | Cause::Unknown
    );
    !own && !row.cause.on_cpu()
        && row.asker.name.tid != 0
        && !ends::takes_in(row)
        && !is_last(row)
        && !is_stirred(row)
}

/// Whether a loop waits for whatever comes: who woke it is somebody who came, and nobody it waited for.
fn is_stirred(row: &AttributedWait) -> bool {
    let by_waking = |holder: &Holder| holder.how_known == HowKnown::Waker;
    row.cause == Cause::PollWait && row.holders.iter().all(by_waking)
}

/// The nice value from which a thread is meant to run after others: what `nice COMMAND` gives without a value (POSIX). Services are given less, to
/// stand behind another one and still be served.
const MIN_BACKGROUND_NICE: i8 = 10;

/// Whether a thread queues for a CPU because somebody had it run after all others: in the idle class, or in the background, as builds and backups.
fn is_last(row: &AttributedWait) -> bool {
    let after =
        |queue: &Queue| queue.idle_class || queue.nice.is_some_and(|nice| nice >= MIN_BACKGROUND_NICE);
    row.cause == Cause::SchedRunqueue && row.queue.as_ref().is_some_and(after)
}

/// The roots that matter, worst first.
pub(crate) fn of<'a>(
    attributed: &'a Attributed,
    facts: &'a SystemFacts,
    names: &Names<'a>,
    titled: &'a [Titled],
) -> Vec<Root<'a>> {
    let graph = Graph::new(attributed, facts);
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
    files::join_of_one_server(facts, &mut roots, beyond);
    stopped_servers(&graph, &mut roots);
    own_listeners(facts, &mut roots);
    sessions::idle(&mut roots, &mut loose, titled);
    sessions::waiting(&graph, &mut roots);
    sessions::behind(&graph, &mut roots, &loose);
    behind_processes(&mut roots, &loose);
    in_queues(&graph, &mut roots, &loose);
    if let Some(root) = roots.get_mut(&Key::Cpus) {
        root.ran = ran(attributed);
    }
    for root in roots.values_mut() {
        crowd::find(root, attributed, names);
    }
    let mut found: Vec<Root<'a>> = roots
        .into_values()
        .filter(|root| root.matters(attributed.wall))
        .collect();
    for root in &mut found {
        root.function = function(&graph, root.name.pid);
    }
    found.sort_by_key(|root| (root.rank(attributed.wall), std::cmp::Reverse(root.held())));
    found
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

/// An address that accepts no connection, where a process of this machine listens and clients stand in its queue: what that process does
/// instead is a finding of its own, and who is behind it is found there.
fn own_listeners(facts: &SystemFacts, roots: &mut BTreeMap<Key, Root<'_>>) {
    let queues = facts.unaccepted.iter().flatten();
    let standing = queues.filter(|queue| queue.after > 0 && !queue.processes.is_empty());
    let listens: HashSet<String> = standing.map(|queue| queue.address.to_string()).collect();
    roots.retain(|key, root| {
        let Key::Silent(address) = key else { return true };
        let address = address.split(' ').next().unwrap_or(address);
        root.cause != Some(Cause::NetConnect) || !listens.contains(address)
    });
}

/// Adds a waiter to a list, or its time to its own place there.
pub(super) fn join<'a>(list: &mut Vec<Waiter<'a>>, one: Waiter<'a>) {
    let same = |other: &&mut Waiter<'_>| (other.name.pid, other.name.tid) == (one.name.pid, one.name.tid);
    match list.iter_mut().find(same) {
        Some(known) => {
            known.ns = known.ns.saturating_add(one.ns);
            known.longest = known.longest.max(one.longest);
            known.directly |= one.directly;
            known.count = known.count.saturating_add(one.count);
            known.depends |= one.depends;
            known.asks |= one.asks;
            known.child = known.child.or(one.child);
        }
        None => list.push(one),
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
            join(&mut root.behind, waiter(row, false));
        }
    }
}

/// How often those behind somebody who stands in a queue are looked for.
const MAX_ROUNDS: usize = 4;

/// Who asks at an address where all who answer wait behind a root, and whom none of them has accepted: behind the same root.
fn in_queues<'a>(
    graph: &Graph<'a>,
    roots: &mut BTreeMap<Key, Root<'a>>,
    loose: &[(&'a AttributedWait, Vec<Step<'a>>)],
) {
    let servers = graph.servers();
    let long = |row: &AttributedWait| row.max.min(row.ns) >= MIN_LONGEST_NS;
    for root in roots.values_mut().filter(|root| root.key != Key::Cpus) {
        for _ in 0..MAX_ROUNDS {
            let stands = |pid: u32| {
                let own = root.is_one_process() && root.name.pid == pid;
                let mut all = root.behind.iter().chain(&root.own);
                own || all.any(|one| one.name.pid == pid && one.longest >= MIN_LONGEST_NS)
            };
            let new = |(row, way): &(&'a AttributedWait, Vec<Step<'a>>)| {
                let end = way.last()?;
                let server = graph.asked_at(end).and_then(|address| servers.get(address));
                let behind = server.is_some_and(|server| stands(server.pid));
                let known = |one: &Waiter<'_>| one.name.tid == row.asker.name.tid;
                (behind && long(row) && !root.behind.iter().any(known)).then(|| waiter(row, false))
            };
            let new: Vec<Waiter<'a>> = loose.iter().filter_map(new).collect();
            if new.is_empty() {
                break;
            }
            for one in new {
                root.longest = root.longest.max(one.longest);
                join(&mut root.behind, one);
            }
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
