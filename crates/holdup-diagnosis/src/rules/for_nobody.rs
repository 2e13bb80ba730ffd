//! Waits of a service that nobody waits for: whatever a thread of it waits for then, no client has lost anything by it.
//!
//! In: waits of processes that run already, and what is known of the requests that they answered meanwhile. Out: which of the waits can have
//! delayed no client, with the fact that shows it. General rules, which describe whatever takes time, leave these out.
//!
//! Three facts show it. All requests together took so little time that next to none of the wait can have been in it: each second that a
//! client loses is a second of a request. Or the one who is waited for waits for work itself, and no thread with a request to answer
//! waits so: nobody has anything for it. Or the other end of the pipe is the process's own: its threads stir each other so.
//! Samples show no requests. There a figure must exceed its own error.

use super::{Run, Waits, duration, held, say};
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, Holder, Requests};

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
