//! Waits of a service that nobody waits for: whatever a thread of it waits for then, no client has lost anything by it.
//!
//! In: waits of processes that run already, and what is known of the requests that they answered meanwhile. Out: which of the waits can have
//! delayed no client, with the fact that shows it. General rules, which describe whatever takes time, leave these out.
//!
//! Seven facts show it. All requests together took so little time that next to none of the wait can have been in it: each second that a
//! client loses is a second of a request. Or the one who is waited for waits for work itself, and no thread with a request to answer
//! waits so: nobody has anything for it. Or the other end of the pipe is the process's own: its threads stir each other so. Or a child is
//! waited for that waits for clients: a wrapper lives for as long as its service. Or a thread slept that serves nobody while others of its
//! process were free for clients, and no client is known to have waited: it does other chores of the service. Or its parent gives it work, or
//! others of the service tell it something now and then.
//! Samples show no requests. There a figure must exceed its own error.

use super::list::sleeps_on_purpose;
use super::{Run, Waits, duration, held, pools, say};
use holdup_evidence::facts::Workers;
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, AwaitedClients, Holder, Requests, ThreadName};
use std::collections::BTreeSet;

/// Requests from which their time says something of the service: a few may all have been quick by chance.
const MIN_REQUESTS: u64 = 20;

/// Of the wait, what can have been in requests is one part of this many at most.
const NO_CLIENTS: Ns = 50;

/// Waits that begin and end without work of the machine's: they are for others of the service, for time, or for peers.
const FOR_OTHERS: [Cause; 9] = [
    Cause::TimerSleep,
    Cause::LockFutex,
    Cause::IpcPipe,
    Cause::IpcUnix,
    Cause::IpcQueue,
    Cause::IpcSignal,
    Cause::NetReceive,
    Cause::PollWait,
    Cause::ProcessChild,
];

/// How it is known that nobody waits for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// So long did all requests take together, and so many there were.
    Requests(Ns, u64),
    /// The one who is waited for waits for work.
    IdlePeer,
    /// The process has both ends.
    OwnPipe,
    /// The child that is waited for waits for clients.
    IdleChild,
    /// Its parent gives it work there.
    Orders,
    /// Others tell it something now and then, and do not wait for it.
    Words,
    /// It slept aside from those that were free for clients, and no client waited.
    Housekeeping,
}

/// The waits without those that nobody waits for; `Err` with the reason where none is left.
pub(super) fn without<'a>(run: &Run<'a>, waits: Waits<'a>) -> Result<Waits<'a>, String> {
    if !run.attributed.of_threads || run.machine || run.observed.is_some() {
        return Ok(waits);
    }
    let first = waits.iter().find_map(|wait| Some((wait, shown(run, wait)?)));
    let Some((wait, how)) = first else {
        return Ok(waits);
    };
    let why = how.words(wait, &waits);
    waits.only(|wait| shown(run, wait).is_none()).ok_or(why)
}

/// Whether, and how it is known that no client waits for this wait.
fn shown(run: &Run<'_>, wait: &AttributedWait) -> Option<Shown> {
    if wait.cause == Cause::ProcessChild && has_idle_children(wait) {
        return Some(Shown::IdleChild);
    }
    if is_aside(run, wait) && none_waits(run) && !sleeps_on_purpose::is_delayed(run, wait) {
        return Some(Shown::Housekeeping);
    }
    if let Some(how) = of_service(run, wait) {
        return Some(how);
    }
    if !FOR_OTHERS.contains(&wait.cause) || !serves(run, wait) || wait.deadlock || wait.orphaned.is_some() {
        return None;
    }
    if wait.cause == Cause::IpcPipe && reads(wait) && is_own(wait) {
        return Some(Shown::OwnPipe);
    }
    let requests = run.attributed.requests.as_ref();
    if let Some(of_requests) = requests.and_then(|requests| bounded(requests, wait)) {
        return Some(of_requests);
    }
    let lock = wait.cause == Cause::LockFutex
        && !is_kept(run, wait)
        && requests.is_some_and(|requests| in_none(requests, wait));
    let pipe = wait.cause == Cause::IpcPipe && reads(wait);
    ((lock || pipe) && idle_in_subject(run, wait)).then_some(Shown::IdlePeer)
}

/// Whether all children that are waited for wait for clients themselves.
fn has_idle_children(wait: &AttributedWait) -> bool {
    !wait.holders.is_empty() && wait.holders.iter().all(|child| child.doing == Some(Cause::Idle))
}

/// Whether a thread slept, and serves nobody, as far as is known, while others of its program were free for clients: they began in another
/// function or have other names, and next to none of the requests' time was sleep.
pub(super) fn is_aside(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let own = &wait.asker.name;
    if !run.attributed.of_threads || wait.cause != Cause::TimerSleep || own.pid == 0 {
        return false;
    }
    let free = |row: &AttributedWait| match row.cause {
        Cause::NetAccept => true,
        Cause::Idle => AwaitedClients::read(&row.resource.name).is_some(),
        _ => false,
    };
    let beside: Vec<&AttributedWait> = run
        .attributed
        .waits
        .iter()
        .filter(|row| free(row) && row.asker.name.process == own.process)
        .collect();
    let requests = run.attributed.requests.as_ref();
    !beside.is_empty()
        && !beside.iter().any(|row| is_alike(row, wait))
        && requests.is_none_or(|requests| in_none(requests, wait))
}

/// Whether two threads may do the same work: they are one, or nothing shows that they began in other places.
fn is_alike(row: &AttributedWait, wait: &AttributedWait) -> bool {
    let (one, other) = (&row.asker.name, &wait.asker.name);
    if one.pid == other.pid && one.tid == other.tid {
        return true;
    }
    let first = |name: &ThreadName| name.pid == name.tid;
    if one.pid == other.pid && (first(one) != first(other) || one.thread != other.thread) {
        return false;
    }
    match (pools::entry(&row.asker.stack), pools::entry(&wait.asker.stack)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Whether no client is known to wait: for an answer, for a thread, or to be accepted.
fn none_waits(run: &Run<'_>) -> bool {
    let requests = run.attributed.requests.as_ref();
    let asked = requests.is_some_and(|requests| requests.open > 0 || requests.resting > 0);
    let mut queues = run.facts.unaccepted.iter().flatten();
    let mut aside = run.facts.set_aside.iter().flatten();
    !asked && !queues.any(|queue| queue.after > 0) && !aside.any(|one| one.waiting() > 0)
}

/// Whether a process reads what others of its service tell it: its parent's orders, a word of those that are idle themselves, or what comes
/// now and then from many.
fn of_service(run: &Run<'_>, wait: &AttributedWait) -> Option<Shown> {
    let channel = matches!(wait.cause, Cause::IpcPipe | Cause::IpcUnix) && reads(wait);
    if !channel || wait.holders.is_empty() || wait.deadlock || wait.orphaned.is_some() || is_own(wait) {
        return None;
    }
    let requests = run.attributed.requests.as_ref();
    if requests.is_some_and(|requests| !in_none(requests, wait)) {
        return None;
    }
    let observed: BTreeSet<u32> = run
        .attributed
        .threads
        .iter()
        .map(|thread| thread.name.pid)
        .collect();
    if wait.cause == Cause::IpcPipe && ordered_by_parent(run, wait, &observed) {
        return Some(Shown::Orders);
    }
    let mut ends = wait.holders.iter();
    if !ends.all(|holder| observed.contains(&holder.name.pid)) {
        return None;
    }
    if ends_idle(run, wait) {
        return Some(Shown::IdlePeer);
    }
    let served = requests.is_some_and(|requests| requests.count >= MIN_REQUESTS);
    (served && takes_words(run, wait)).then_some(Shown::Words)
}

/// Whether the parent of a worker has the other end, among others that inherited it, and is observed: what it waits for is judged.
fn ordered_by_parent(run: &Run<'_>, wait: &AttributedWait, observed: &BTreeSet<u32>) -> bool {
    let is_end = |pid: u32| wait.holders.iter().any(|holder| holder.name.pid == pid);
    let of_pool = |workers: &&Workers| workers.pids.contains(&wait.asker.name.pid);
    let mut pools = run.facts.workers.iter().filter(of_pool);
    wait.open && pools.any(|workers| observed.contains(&workers.parent) && is_end(workers.parent))
}

/// Processes that are followed from one to the next that it waits for.
const MAX_FOLLOWED: usize = 16;

/// Whether all who have the other end wait for work, or for a word of such.
fn ends_idle(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let mut known = BTreeSet::from([wait.asker.name.pid]);
    let mut left = vec![wait];
    let mut idle = false;
    while let Some(wait) = left.pop() {
        if wait.holders.is_empty() {
            return false;
        }
        for holder in &wait.holders {
            let cause = match holder.doing {
                Some(Cause::Idle) => {
                    idle = true;
                    continue;
                }
                Some(cause @ (Cause::IpcPipe | Cause::IpcUnix)) if known.len() < MAX_FOLLOWED => cause,
                _ => return false,
            };
            if !known.insert(holder.name.pid) {
                continue;
            }
            let theirs = |row: &&AttributedWait| {
                row.asker.name.pid == holder.name.pid && row.cause == cause && reads(row)
            };
            let before = left.len();
            left.extend(run.attributed.waits.iter().filter(theirs));
            if left.len() == before {
                return false;
            }
        }
    }
    idle
}

/// Words from which it is known that they come.
const MIN_WORDS: u64 = 3;

/// Whether others tell a process something again and again, and none of them waits for it: it writes a log, or counts.
fn takes_words(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let pid = wait.asker.name.pid;
    let for_it = |row: &AttributedWait| {
        let waits = row.cause != Cause::Idle && row.asker.name.pid != pid;
        waits && row.holders.iter().any(|holder| holder.name.pid == pid)
    };
    let works = |row: &AttributedWait| {
        let rests = row.cause.on_cpu() || matches!(row.cause, Cause::Idle | Cause::SchedRunqueue);
        row.asker.name.pid == pid && !rests && !(row.cause == wait.cause && reads(row))
    };
    let mut rows = run.attributed.waits.iter();
    let polls = system_calls::is_named(wait.call.as_deref(), Kind::Polls | Kind::WaitsForEpoll);
    let words = wait.count.saturating_sub(wait.timed_out);
    polls && words >= MIN_WORDS && !rows.any(|row| for_it(row) || works(row))
}

/// Whether all requests together took too little time for this wait to have been in them. Whoever has sent something that nobody works on
/// may wait for any thread.
fn bounded(requests: &Requests, wait: &AttributedWait) -> Option<Shown> {
    let whole = requests.total.saturating_add(requests.oldest_open);
    let none = requests.resting == 0 && whole.saturating_mul(NO_CLIENTS) <= wait.ns;
    (none && requests.count >= MIN_REQUESTS).then_some(Shown::Requests(requests.total, requests.count))
}

/// Whether threads with a request to answer hardly ever waited so.
fn in_none(requests: &Requests, wait: &AttributedWait) -> bool {
    let inside = requests.causes.get(&wait.cause).map_or(0, |tally| tally.ns);
    inside.saturating_mul(NO_CLIENTS) <= wait.ns
}

/// Whether threads of the same program wait for clients: only who serves can be idle.
fn serves(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let name = &wait.asker.name;
    let mut all = run.attributed.waits.iter();
    all.any(|other| other.cause == Cause::Idle && other.asker.name.process == name.process)
}

fn reads(wait: &AttributedWait) -> bool {
    !system_calls::is_named(wait.call.as_deref(), Kind::Writes | Kind::MovesData)
}

fn is_own(wait: &AttributedWait) -> bool {
    let own = |holder: &Holder| holder.name.pid == wait.asker.name.pid;
    wait.asker.name.pid != 0 && !wait.holders.is_empty() && wait.holders.iter().all(own)
}

/// Whether somebody has what is waited for, and keeps it from others.
fn is_kept(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let keeps = |holder: &Holder| holder.how_known.holds() && !held::takes_turns(run, holder);
    wait.holders.iter().any(keeps)
}

/// Whether the one who is waited for most is of what was asked about, and waits for work.
fn idle_in_subject(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let subject = |pid: u32| run.attributed.threads.iter().any(|thread| thread.name.pid == pid);
    let longest = wait.holders.iter().max_by_key(|holder| holder.ns);
    longest.is_some_and(|holder| holder.doing == Some(Cause::Idle) && subject(holder.name.pid))
}

impl Shown {
    fn words(self, wait: &AttributedWait, waits: &Waits<'_>) -> String {
        let who = say::who(&wait.asker.name);
        let own = duration(waits.own());
        match self {
            Shown::Requests(total, count) => format!(
                "{own} of {} kept no client waiting: {} took {} all together",
                wait.cause.phrase(),
                say::several(count, "request"),
                duration(total)
            ),
            Shown::IdlePeer => {
                format!("{own}: the one that {who} waits for was idle itself, and no request waited so")
            }
            Shown::Orders => format!("{own}: {who} waits for work from the process that started it"),
            Shown::Words => format!(
                "{own}: {who} takes what other processes of the service write, and none of them waits for it"
            ),
            Shown::IdleChild => format!("{own}: the child that {who} waits for was waiting for clients"),
            Shown::Housekeeping => format!(
                "{own}: {who} slept while other threads of its process waited for clients, and no client \
                 is known to have waited"
            ),
            Shown::OwnPipe => format!("{own}: {who} waits for another thread of its process to write"),
        }
    }
}

/// Errors of a sampled figure within which it may be chance.
const ERRORS: Ns = 2;

/// Of samples of processes that run already: why a figure shows nothing, if it does not exceed its own error.
pub(super) fn may_be_chance(run: &Run<'_>, waits: &Waits<'_>) -> Option<String> {
    let error = waits.error();
    let chance =
        run.attributed.of_threads && waits.estimated() && error.saturating_mul(ERRORS) >= waits.own();
    chance.then(|| {
        format!(
            "{} of {}, with an error of {}: so few samples may be chance",
            duration(waits.own()),
            waits.cause(),
            duration(error)
        )
    })
}
