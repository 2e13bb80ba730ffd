//! Workers of a server of which none is left for another client: all of them wait.
//!
//! The problem: that a worker waits is ordinary, and a thread that waits for an answer is reported so by other rules; that nobody is left is what
//! stops the service, and who queues behind them is no thread of it. In: who works side by side ([`Workers`]), and their waits. Out: those of
//! which all are taken, what most of them wait for, and who stands in the queue. A worker that came back to its place counts as free, and
//! so does one that is on a CPU.

use super::list::peer_slow::peer;
use super::own_listener::Own;
use super::{Run, Waits, java_waits, own_listener, say, shares};
use holdup_evidence::facts::{SetAside, SharedListener, Workers};
use holdup_evidence::{Cause, Frame, Ns};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, AwaitedClients};
use holdup_model::finding::Evidence;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Part of the observed time that a worker spends in one wait, from which it is taken.
const MIN_TAKEN_SHARE: f64 = 0.9;

/// How long each of its waits is at least, those apart that a limit of time ended, nanoseconds: one that has answers sooner serves its clients.
const MIN_STAND_NS: Ns = 1_000_000_000;

/// Of the observed time, so little was waiting for clients of one who is never free: one part of this many at most.
const NEVER_FREE: Ns = 20;

/// Workers from which they are a pool. What the clients of a single one wait for is reported by rules about its waits and its queue; one that
/// waits for itself is a pool of one.
const MIN_OF_POOL: usize = 2;

/// Functions in which a thread begins before it runs its own, by the libraries that have them.
const C_LIBRARY: &[&str] = &["libc.so", "libpthread.so", "ld-musl"];

/// What the workers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workforce {
    /// Processes that accept at the same listener.
    Processes,
    /// Processes that their parent hands work to.
    Helpers,
    /// Threads.
    Threads,
}

/// Who waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Queued<'a> {
    /// Clients that nobody has accepted.
    At(&'a SharedListener),
    /// Clients that were accepted, and that no worker listens to.
    Accepted(u32),
    /// Clients of the process that hands out the work, which have sent something and have no answer.
    Unanswered(u32),
}

/// A server of which all workers wait.
#[derive(Debug, Clone)]
pub(super) struct Taken<'a> {
    workers: &'a Workers,
    /// Their name, with the script where an interpreter runs one.
    name: String,
    kind: Workforce,
    /// How many workers there are.
    pub(super) count: usize,
    /// The waits of those that wait for the same: most of them.
    pub(super) waits: Waits<'a>,
    /// How many of them that are.
    same: usize,
    /// Of the observed time, the part that each of those spent in that wait, at least.
    share: f64,
    /// Who waits for one of them.
    pub(super) queued: Option<Queued<'a>>,
    /// That they wait for themselves.
    pub(super) own: Option<Own<'a>>,
}

/// What a thread did all the time.
#[derive(Debug, Clone, Copy)]
enum Did<'a> {
    /// It was in this wait.
    Waited(&'a AttributedWait),
    /// It waited for what its client sends.
    Heard,
    /// It was free for a client, now and then at least.
    Free,
    /// It waited for clients while those stood where it does not listen.
    Deaf,
    /// Something else.
    Other,
}

/// A thread of a worker.
#[derive(Debug, Clone)]
struct Thread<'a> {
    pid: u32,
    tid: u32,
    did: Did<'a>,
    /// One of its rows, for its name and stack.
    row: &'a AttributedWait,
}

impl Thread<'_> {
    fn is_first(&self) -> bool {
        self.pid == self.tid
    }

    fn is_taken(&self) -> bool {
        matches!(self.did, Did::Waited(_) | Did::Heard)
    }

    /// The function that it was started with. The frames of who asked a library's thread are others'.
    fn entry(&self) -> Option<(&str, Option<&str>, u64)> {
        let own = self.row.resource.detail.asks_for_threads.is_none();
        entry(&self.row.asker.stack).filter(|_| own)
    }

    /// Whether both do the same work, as far as is known: they wait for the same, or have the same name but for its number, and began in the
    /// same function.
    fn is_of_pool(&self, other: &Thread<'_>) -> bool {
        if let (Did::Waited(one), Did::Waited(other)) = (self.did, other.did)
            && (one.cause, target(one)) == (other.cause, target(other))
        {
            return true;
        }
        if self.is_first() || other.is_first() {
            return self.is_first() && other.is_first();
        }
        let name = |thread: &Thread<'_>| java_waits::pool_of(&thread.row.asker.name.thread).to_owned();
        let began = match (self.entry(), other.entry()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        name(self) == name(other) && began
    }
}

/// The function that a thread was started with: by name, or by its place in its module.
pub(super) fn entry(stack: &[Frame]) -> Option<(&str, Option<&str>, u64)> {
    let module = |frame: &Frame| frame.module.clone().unwrap_or_default();
    let own = |frame: &&Frame| {
        let module = module(frame);
        !C_LIBRARY.iter().any(|library| module.starts_with(library))
    };
    let first = stack.iter().rev().find(own)?;
    let offset = match first.symbol {
        Some(_) => 0,
        None => first.offset,
    };
    Some((
        first.module.as_deref().unwrap_or_default(),
        first.symbol.as_deref(),
        offset,
    ))
}

/// The servers of which all workers wait.
pub(super) fn taken<'a>(run: &Run<'a>) -> Vec<Taken<'a>> {
    let all = &run.facts.workers;
    let workers = all
        .iter()
        .filter(|one| one.unobserved == 0 && !is_master(one, all));
    workers.filter_map(|one| Taken::of(run, one)).collect()
}

/// Whether these have started others that accept at their listeners, and leave the clients to them.
fn is_master(one: &Workers, all: &[Workers]) -> bool {
    let shares = |other: &Workers| {
        let mut at = other.at.iter();
        at.any(|at| one.at.iter().any(|own| own.address == at.address))
    };
    all.iter()
        .any(|other| one.pids.contains(&other.parent) && !other.pids.contains(&other.parent) && shares(other))
}

/// The process that started the workers of a listener, if it is none of them: it leaves its clients to those.
pub(super) fn masters(run: &Run<'_>, address: &str) -> Vec<u32> {
    let all = run.facts.workers.iter();
    let of_listener = all.filter(|one| one.at.iter().any(|at| at.address == address));
    let parents = of_listener.map(|one| one.parent);
    parents.collect()
}

/// How many answers came in these waits, those apart that a limit of time ended.
fn answers(rows: &[&AttributedWait]) -> u64 {
    let ended = |row: &&AttributedWait| row.count.saturating_sub(row.timed_out);
    rows.iter().map(ended).fold(0, u64::saturating_add)
}

fn own(rows: &[&AttributedWait]) -> Ns {
    rows.iter().map(|row| row.ns).fold(0, Ns::saturating_add)
}

/// Whether somebody who waits so may be known by others to begin: nobody who depends on him is known.
fn rests(cause: Cause) -> bool {
    cause.rests() || matches!(cause, Cause::LockFutex | Cause::PollWait | Cause::Unknown)
}

impl<'a> Taken<'a> {
    fn of(run: &Run<'a>, workers: &'a Workers) -> Option<Taken<'a>> {
        let threads = threads(run, workers);
        let waits = |thread: &&Thread<'a>| matches!(thread.did, Did::Waited(_));
        let taken: Vec<&Thread<'a>> = threads.iter().filter(|thread| thread.is_taken()).collect();
        let each = workers
            .pids
            .iter()
            .all(|pid| taken.iter().any(|thread| thread.pid == *pid));
        // Who accepts clients himself and makes a process for each has no end of them.
        if !each || accepts(run, workers) || !taken.iter().any(waits) {
            return None;
        }
        // Of threads that do different work those count that are most.
        let of_pool = |one: &Thread<'a>| {
            let alike = |all: &mut dyn Iterator<Item = &Thread<'a>>| {
                all.filter(|other| one.is_of_pool(other)).count()
            };
            // Of two that wait for the same the one with more of its kind is the worker.
            (alike(&mut taken.iter().copied()), alike(&mut threads.iter()))
        };
        let main = *taken
            .iter()
            .filter(|one| waits(one))
            .max_by_key(|one| of_pool(one))?;
        let pool: Vec<&Thread<'a>> = taken.iter().copied().filter(|one| main.is_of_pool(one)).collect();
        let aside = aside(run, workers, &pool);
        let left = |thread: &Thread<'a>| match thread.did {
            Did::Free => aside.is_none() || main.is_of_pool(thread),
            Did::Other => main.is_of_pool(thread),
            Did::Waited(_) | Did::Heard | Did::Deaf => false,
        };
        if threads.iter().any(left) || served(run, workers, pool.len()) {
            return None;
        }
        let queued = standing(workers)
            .map(Queued::At)
            .or(aside.map(Queued::Accepted))
            .or_else(|| unanswered(run, workers).map(Queued::Unanswered));
        let kind = match (pool.iter().all(|thread| thread.is_first()), workers.at.is_empty()) {
            (true, true) => Workforce::Helpers,
            (true, false) => Workforce::Processes,
            (false, _) => Workforce::Threads,
        };
        let known = kind != Workforce::Threads && pool.len() >= MIN_OF_POOL;
        if queued.is_none() && !known {
            return None;
        }
        let waits = most(run, &pool)?;
        if kind == Workforce::Threads
            && waits.cause() == Cause::TimerSleep
            && !sleeps_for_requests(run, &waits)
        {
            return None;
        }
        let threads_of = |waits: &Waits<'_>| {
            let ids: BTreeSet<(u32, u32)> = waits.iter().map(id).collect();
            ids.len()
        };
        let same = threads_of(&waits);
        let share = shares::least(&waits, run.attributed.wall);
        let listens = waits
            .iter()
            .any(|wait| system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll));
        if same * 2 < pool.len() || queued.is_none() && listens {
            return None;
        }
        let own = own_listener::of(workers, &waits).filter(|_| same == pool.len());
        if pool.len() < MIN_OF_POOL && own.is_none() {
            return None;
        }
        Some(Taken {
            workers,
            name: named(run, workers),
            kind,
            count: pool.len(),
            waits,
            same,
            share,
            queued,
            own,
        })
    }

    /// Whether it is trouble by itself: clients queue, or what the workers wait for is nothing to rest in.
    pub(super) fn is_trouble(&self) -> bool {
        self.queued.is_some() || self.own.is_some() || !rests(self.waits.cause())
    }

    /// Whether a finding is about these waits.
    pub(super) fn is_about(&self, cause: Cause, pid: u32) -> bool {
        cause == self.waits.cause() && self.workers.pids.contains(&pid)
    }

    /// The address in whose queue clients stand.
    pub(super) fn queue(&self) -> Option<&'a str> {
        match &self.queued {
            Some(Queued::At(listener)) => Some(&listener.address),
            _ => None,
        }
    }

    /// Whether one or several are spoken of.
    pub(super) fn is_plural(&self) -> bool {
        self.same > 1
    }

    /// `workers of php-fpm`.
    fn what(&self) -> String {
        let name = &self.name;
        let s = if self.count == 1 { "" } else { "s" };
        match self.kind {
            Workforce::Processes => format!("worker{s} of {name}"),
            Workforce::Threads => format!("worker thread{s} of {name}"),
            Workforce::Helpers => format!(
                "{name} helper{s} of {}",
                say::name_or(&self.workers.parent_process, "its parent")
            ),
        }
    }

    /// `all 3 workers of php-fpm`, for a sentence.
    pub(super) fn all(&self) -> String {
        match self.count {
            1 => format!("the only {}", self.what()),
            count => format!("all {count} {}", self.what()),
        }
    }

    /// The same where it begins a sentence about those that wait for the same: with how many those are.
    pub(super) fn subject(&self) -> String {
        match (self.count, self.same) {
            (1, _) => format!("The only {}", self.what()),
            (count, same) if count == same => format!("All {count} {}", self.what()),
            (count, same) => format!("{same} of the {count} {}", self.what()),
        }
    }

    /// What follows for others, for the end of a clause; empty where that is not known.
    pub(super) fn so(&self) -> String {
        let others = match self.count - self.same {
            0 => "",
            1 => ", and the other one waits elsewhere",
            _ => ", and the others wait elsewhere",
        };
        let more = |count: u32| match count {
            1 => "1 more client waits".to_owned(),
            count => format!("{count} more clients wait"),
        };
        match &self.queued {
            Some(Queued::At(at)) => format!("{others}, so {} in the queue of {}", more(at.after), at.address),
            Some(Queued::Accepted(count)) => format!("{others}, so {} for one of them", more(*count)),
            Some(Queued::Unanswered(count)) => format!(
                "{others}, and {} of {} {} no answer",
                say::several((*count).into(), "client"),
                say::name_or(&self.workers.parent_process, "its parent"),
                if *count == 1 { "has" } else { "have" }
            ),
            None => others.to_owned(),
        }
    }

    /// What it means for a finding of another rule about the same waits: `it takes all 3 workers of php-fpm, so …`.
    pub(super) fn clause(&self) -> String {
        format!("; it takes {}{}", self.all(), self.so())
    }

    /// How that is known.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let mut all = vec![Evidence::new(
            format!(
                "{}: {}, {} of the time or more, and none was free",
                self.all(),
                match (self.count, self.same) {
                    (1, _) => "it waited for that".to_owned(),
                    (all, same) if all == same => "each waited for that".to_owned(),
                    (_, same) => format!("{same} of them waited for that"),
                },
                say::percent(self.share)
            ),
            say::SCHEDULER,
        )];
        match &self.queued {
            Some(Queued::At(at)) => all.push(Evidence::new(
                format!(
                    "{} stood in the queue of {} when observation began, and {} when it ended",
                    say::several(at.before.into(), "client"),
                    at.address,
                    at.after
                ),
                "the queues of listeners (sock_diag, /proc/net/tcp)",
            )),
            Some(Queued::Accepted(count)) => all.push(Evidence::new(
                format!(
                    "{} had a connection that no worker used",
                    say::several((*count).into(), "more client")
                ),
                "/proc/PID/fdinfo and /proc/net/tcp",
            )),
            Some(Queued::Unanswered(count)) => all.push(Evidence::new(
                format!(
                    "{} had sent something and had no answer when observation ended",
                    say::several((*count).into(), "client")
                ),
                "requests on accepted connections",
            )),
            None => {}
        }
        all
    }
}

/// The name of workers; where all of them interpret the same script with that.
fn named(run: &Run<'_>, workers: &Workers) -> String {
    let scripts: BTreeSet<Option<&str>> = workers.pids.iter().map(|pid| say::script(run, *pid)).collect();
    let script = scripts.first().copied().flatten().filter(|_| scripts.len() == 1);
    let name = script.unwrap_or(&workers.process);
    say::name_or(name.trim(), "a server").to_owned()
}

fn id(wait: &AttributedWait) -> (u32, u32) {
    (wait.asker.name.pid, wait.asker.name.tid)
}

/// The listener at which most clients stood, both times.
fn standing(workers: &Workers) -> Option<&SharedListener> {
    let queued = workers.at.iter().filter(|at| at.before > 0 && at.after > 0);
    queued.max_by_key(|at| at.after)
}

/// How many more clients were set aside than these threads serve: a thread of its own takes them in, and they wait for one of the pool.
fn aside(run: &Run<'_>, workers: &Workers, pool: &[&Thread<'_>]) -> Option<u32> {
    if pool.iter().any(|thread| thread.is_first()) {
        return None;
    }
    let all = run.facts.set_aside.iter().flatten();
    let own = all.filter(|one: &&SetAside| workers.pids.contains(&one.pid));
    let clients = own.map(|one| one.clients).fold(0, u32::saturating_add);
    let served = u32::try_from(pool.len()).unwrap_or(u32::MAX);
    clients.checked_sub(served).filter(|more| *more > 0)
}

/// How many clients of the parent have no answer, where these are its helpers and it is observed.
fn unanswered(run: &Run<'_>, workers: &Workers) -> Option<u32> {
    let mut rows = run.attributed.waits.iter();
    let observed = workers.at.is_empty() && rows.any(|row| row.asker.name.pid == workers.parent);
    let requests = run.attributed.requests.as_ref().filter(|_| observed)?;
    let count = u32::try_from(requests.open.saturating_add(requests.resting)).unwrap_or(u32::MAX);
    (count > 0).then_some(count)
}

/// Whether more requests than there are workers were answered meanwhile, and soon: somebody was left for them.
fn served(run: &Run<'_>, workers: &Workers, count: usize) -> bool {
    let ports: Vec<u16> = workers
        .at
        .iter()
        .filter_map(|at| Some(at.address.parse::<SocketAddr>().ok()?.port()))
        .collect();
    let listeners = run.attributed.requests.iter().flat_map(|all| &all.listeners);
    let mut own = listeners.filter(|one| one.port.is_some_and(|port| ports.contains(&port)));
    own.any(|one| one.count > count as u64 && one.p50 < MIN_STAND_NS)
}

/// Whether threads slept with a request to answer, as far as is known: who only looks round now and then is no worker.
fn sleeps_for_requests(run: &Run<'_>, waits: &Waits<'_>) -> bool {
    let requests = run.attributed.requests.as_ref();
    let slept = requests.and_then(|all| all.causes.get(&Cause::TimerSleep));
    slept.is_some_and(|slept| slept.ns.saturating_mul(2) >= waits.own())
}

/// What the threads of workers did.
fn threads<'a>(run: &Run<'a>, workers: &'a Workers) -> Vec<Thread<'a>> {
    let mut rows: BTreeMap<(u32, u32), Vec<&'a AttributedWait>> = BTreeMap::new();
    for wait in &run.attributed.waits {
        if workers.pids.contains(&wait.asker.name.pid) {
            rows.entry(id(wait)).or_default().push(wait);
        }
    }
    let of = |((pid, tid), rows): ((u32, u32), Vec<&'a AttributedWait>)| {
        let row = *rows.iter().max_by_key(|row| row.ns)?;
        let did = did(run, workers, &rows);
        Some(Thread { pid, tid, did, row })
    };
    rows.into_iter().filter_map(of).collect()
}

fn did<'a>(run: &Run<'a>, workers: &Workers, rows: &[&'a AttributedWait]) -> Did<'a> {
    let wall = run.attributed.wall;
    let enough = |ns: Ns| ns as f64 >= MIN_TAKEN_SHARE * wall as f64;
    let of = |which: &dyn Fn(&AttributedWait) -> bool| -> Vec<&'a AttributedWait> {
        rows.iter().copied().filter(|row| which(row)).collect()
    };
    let free = of(&|row| awaits_client(workers, row) && !is_deaf(workers, row));
    if own(&free).saturating_mul(NEVER_FREE) > wall {
        return Did::Free;
    }
    if enough(own(&of(&|row| awaits_client(workers, row)))) {
        return Did::Deaf;
    }
    let heard = of(&|row| row.cause == Cause::Idle && is_request(row));
    if enough(own(&heard)) {
        return Did::Heard;
    }
    let mut same: BTreeMap<(Cause, &str), Vec<&'a AttributedWait>> = BTreeMap::new();
    for row in of(&|row| waits(workers, row)) {
        same.entry((row.cause, &row.resource.name)).or_default().push(row);
    }
    let stands = |rows: &&Vec<&'a AttributedWait>| {
        enough(own(rows)) && own(rows) / answers(rows).max(1) >= MIN_STAND_NS
    };
    let longest = same
        .values()
        .find(stands)
        .and_then(|rows| rows.iter().max_by_key(|row| row.ns));
    longest.map_or(Did::Other, |row| Did::Waited(row))
}

/// Whether the parent of these is free for their clients.
fn accepts(run: &Run<'_>, workers: &Workers) -> bool {
    let of_parent = |row: &&AttributedWait| row.asker.name.pid == workers.parent;
    let rows = run.attributed.waits.iter().filter(of_parent);
    let free = rows.filter(|row| awaits_client(workers, row) && !is_deaf(workers, row));
    let free = free.map(|row| row.ns).fold(0, Ns::saturating_add);
    free.saturating_mul(NEVER_FREE) > run.attributed.wall
}

/// Whether a thread is kept by something, and does not wait for its parent to give it work.
fn waits(workers: &Workers, row: &AttributedWait) -> bool {
    let works = row.cause.on_cpu() || row.cause == Cause::SchedRunqueue;
    let idle = matches!(row.cause, Cause::Idle | Cause::NetAccept);
    // Who asks at the listener of these waits for one of them, whoever has opened it.
    let of_parent = row.holders.iter().any(|holder| holder.name.pid == workers.parent)
        && own_listener::asked_at(workers, &row.resource).is_none();
    let from_nobody = matches!(row.cause, Cause::IpcPipe | Cause::IpcUnix) && row.holders.is_empty();
    let is_free = works || idle || of_parent || (from_nobody && workers.at.is_empty());
    !is_free
}

fn is_request(row: &AttributedWait) -> bool {
    let awaited = AwaitedClients::read(&row.resource.name);
    matches!(awaited, Some(AwaitedClients::Request(_)))
}

/// Whether a thread waits for a client of these workers.
fn awaits_client(workers: &Workers, row: &AttributedWait) -> bool {
    let is_own = |address: &str| workers.at.iter().any(|at| at.address == address);
    match row.cause {
        Cause::NetAccept => row
            .resource
            .detail
            .local
            .is_none_or(|local| is_own(&local.to_string())),
        Cause::Idle => match AwaitedClients::read(&row.resource.name) {
            Some(AwaitedClients::Connection(at)) => is_own(&at),
            _ => false,
        },
        _ => false,
    }
}

/// Whether clients stood where a thread waited for them, and it slept on: it listens to its set, and they are not in it.
fn is_deaf(workers: &Workers, row: &AttributedWait) -> bool {
    let at = AwaitedClients::read(&row.resource.name);
    let at = at.as_ref().map(AwaitedClients::at);
    let mut queued = workers.at.iter().filter(|one| one.before > 0 && one.after > 0);
    row.open && answers(&[row]) <= 1 && queued.any(|one| Some(one.address.as_str()) == at)
}

/// Of the waits of these threads those for the same, which most of them are in.
fn most<'a>(run: &Run<'a>, pool: &[&Thread<'a>]) -> Option<Waits<'a>> {
    let waited: Vec<&'a AttributedWait> = pool
        .iter()
        .filter_map(|thread| match thread.did {
            Did::Waited(row) => Some(row),
            _ => None,
        })
        .collect();
    let ids: BTreeSet<(u32, u32)> = waited.iter().map(|row| id(row)).collect();
    let causes: BTreeSet<Cause> = waited.iter().map(|row| row.cause).collect();
    let all = run.waits(|wait| ids.contains(&id(wait)) && causes.contains(&wait.cause))?;
    let mut groups = all.split(|wait| (wait.cause, target(wait)));
    groups.sort_by_key(|group| {
        let ids: BTreeSet<(u32, u32)> = group.iter().map(id).collect();
        std::cmp::Reverse((ids.len(), group.own()))
    });
    groups.into_iter().next()
}

/// What somebody waits for, as far as several can wait for the same.
fn target(wait: &AttributedWait) -> String {
    match peer(wait) {
        address if address.is_empty() => wait.resource.name.clone(),
        address => address,
    }
}
