//! Sleeping because the program was told to.

use crate::rules::{Extend, Generality, HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, duration, say, tasks};
use holdup_evidence::{Cause, TaskRuntime};
use holdup_knowledge::rust;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::{AttributedWait, Task};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Polls of a thread from which it is a loop: one that waits for a start or an end alone does so once.
const MIN_POLLS: u64 = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SleepsOnPurpose, check)
    .about("it sleeps on purpose")
    .causes(&[Cause::TimerSleep])
    .generality(Generality::Describes);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let own = waits.only(|wait| !is_tickers(run, wait));
    let Some(own) = own.filter(|own| run.matters(own.cost(), MATTERS)) else {
        return Verdict::Clear(
            "0 of its goroutines sleep: the sleeps are those of tickers and time limits that others wait with".to_owned(),
        );
    };
    let waits = &own;
    // Of the one there may be much and of the other nothing that anybody waited for.
    let (limits, sleeps): (Vec<_>, Vec<_>) = run
        .worth(waits, waits.split(is_limit), MATTERS)
        .into_iter()
        .partition(|group| is_limit(group.main()));
    let limits = limits.iter().map(ran_out);
    let sleeps = sleeps.iter().map(|group| slept(run, group));
    Verdict::Fires(limits.chain(sleeps).collect())
}

/// How it is known that somebody waited while a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delayed {
    /// Threads slept with a request to answer.
    Requests,
    /// The process had clients whose data nobody read, as observation began and as it ended.
    Clients(u32),
    /// Clients stood in the queue of its listener at both times.
    Queued(u32),
    /// The loop has other tasks.
    Tasks(u64),
}

/// The longest sleep outside of a poll by a thread that also polls many things with epoll, and for whom it is known that somebody waited. A
/// thread of a server may sleep between two rounds and poll besides: that is its work, and keeps nobody waiting. One that pauses for moments
/// between two polls keeps nobody waiting either.
fn in_event_loop<'a>(run: &Run<'a>, waits: &Waits<'a>) -> Option<(&'a AttributedWait, Delayed)> {
    let thread = |wait: &AttributedWait| (wait.asker.name.pid, wait.asker.name.tid);
    let sleeps = |wait: &&AttributedWait| {
        let sleeps = system_calls::is_named(wait.call.as_deref(), Kind::Sleeps);
        // A row of several threads is no thread: one of them sleeps, and another one polls.
        sleeps && wait.max >= HARM_FLOOR && wait.asker.name.tid != 0
    };
    let loops = |one: &AttributedWait| {
        let polls = |row: &AttributedWait| {
            let epoll = system_calls::is_named(row.call.as_deref(), Kind::WaitsForEpoll);
            epoll && row.count > 0 && thread(row) == thread(one)
        };
        run.waits(polls).is_some_and(|polls| polls.count() >= MIN_POLLS)
    };
    let longest = waits
        .iter()
        .filter(sleeps)
        .filter(|one| loops(one))
        .max_by_key(|wait| wait.max)?;
    Some((longest, delayed(run, longest)?))
}

/// Whether somebody is known to have waited while that thread slept.
pub(in crate::rules) fn is_delayed(run: &Run<'_>, sleep: &AttributedWait) -> bool {
    delayed(run, sleep).is_some()
}

/// Who waited while that thread slept.
fn delayed(run: &Run<'_>, sleep: &AttributedWait) -> Option<Delayed> {
    let name = &sleep.asker.name;
    let requests = run.attributed.requests.as_ref();
    let slept = requests.and_then(|found| found.causes.get(&Cause::TimerSleep));
    if slept.is_some_and(|slept| slept.max >= HARM_FLOOR) {
        return Some(Delayed::Requests);
    }
    let aside = run
        .facts
        .set_aside
        .iter()
        .flatten()
        .find(|one| one.pid == name.pid && one.waiting() > 0);
    if let Some(aside) = aside {
        return Some(Delayed::Clients(aside.waiting()));
    }
    let queues = run.facts.unaccepted.iter().flatten();
    let queue = queues
        .filter(|queue| queue.processes.contains(&name.pid))
        .max_by_key(|queue| queue.after);
    if let Some(queue) = queue {
        return Some(Delayed::Queued(queue.after));
    }
    let mut loops = run.attributed.event_loops.iter();
    let tasks = loops.find(|one| (one.pid, one.tid) == (name.pid, name.tid));
    let others = tasks.map_or(0, |one| one.tasks.saturating_sub(1));
    (others > 0).then_some(Delayed::Tasks(others))
}

impl Delayed {
    fn evidence(self) -> Evidence {
        let (text, source) = match self {
            Delayed::Requests => (
                "a thread slept with a request to answer".to_owned(),
                say::SCHEDULER,
            ),
            Delayed::Clients(count) => (
                format!(
                    "{} had sent data that it did not read",
                    say::several(count.into(), "client")
                ),
                "/proc/net/tcp",
            ),
            Delayed::Queued(count) => (
                format!(
                    "{} waited for it to accept them",
                    say::several(count.into(), "client")
                ),
                "/proc/net/tcp",
            ),
            Delayed::Tasks(count) => (
                format!(
                    "{} of the loop could not run meanwhile",
                    say::several(count, "other task")
                ),
                "the program's own structures, read from its memory",
            ),
        };
        Evidence::new(text, source)
    }
}

/// The goroutines that sleep, if a thread of Go's scheduler slept in its poll for them.
fn sleeping<'a>(run: &Run<'a>, wait: &AttributedWait) -> Option<Vec<&'a Task>> {
    if !system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll) {
        return None;
    }
    let own = |task: &&Task| task.pid == wait.asker.name.pid && task.runtime == TaskRuntime::Go;
    let mut tasks = run.attributed.tasks.iter().filter(own).peekable();
    tasks.peek()?;
    Some(
        tasks
            .filter(|task| task.cause == Cause::TimerSleep && task.place.is_some())
            .collect(),
    )
}

/// Whether a thread of Go's scheduler slept while none of its goroutines does: what it waited for is the next tick of a ticker, or a time limit.
fn is_tickers(run: &Run<'_>, wait: &AttributedWait) -> bool {
    sleeping(run, wait).is_some_and(|tasks| tasks.is_empty())
}

/// Whether it was a wait for another thread that its time limit ended.
fn is_limit(wait: &AttributedWait) -> bool {
    let futex = system_calls::is_named(wait.call.as_deref(), Kind::WaitsForFutex);
    futex && wait.resource.detail.sleeps.is_none()
}

fn slept(run: &Run<'_>, waits: &Waits<'_>) -> Finding {
    if let Some((longest, delayed)) = in_event_loop(run, waits) {
        return loop_sleeps(waits, longest, delayed);
    }
    let who = say::who(&waits.main().asker.name);
    let title = match sleeping(run, waits.main()).filter(|tasks| !tasks.is_empty()) {
        Some(tasks) => format!(
            "{} of {who} {} on purpose in {}, for {}",
            say::several(tasks.len() as u64, tasks::name(tasks[0])),
            if tasks.len() == 1 { "sleeps" } else { "sleep" },
            tasks::say_places(&tasks::places(&tasks, tasks::place)),
            say::cost(waits)
        ),
        // The thread sleeps for a task, which has no thread while it waits.
        None if rust::drives_tokio(&waits.main().asker.stack) => format!(
            "A task of tokio in {} waits for a timer, for {}; which task that is was not read",
            say::name_or(&waits.main().asker.name.process, "the program"),
            say::cost(waits)
        ),
        None => format!("{who} sleeps on purpose, for {}", say::cost(waits)),
    };
    RULE.finding(Severity::Note, title, waits).remedy(Remedy::safe(
        "sleep less, or wait for an event instead of sleeping",
    ))
}

fn loop_sleeps(waits: &Waits<'_>, longest: &AttributedWait, delayed: Delayed) -> Finding {
    let who = say::who(&longest.asker.name);
    let title = format!(
        "{who} sleeps for up to {} in the thread of its event loop, and blocks all other work there",
        duration(longest.max)
    );
    RULE.finding(Severity::Warning, title, waits)
        .about_if_unnamed(Some(longest.resource.clone()))
        .and(Evidence::new(
            "the same thread waits with epoll for its other work",
            say::SCHEDULER,
        ))
        .and(delayed.evidence())
        .remedy(Remedy::safe(
            "use the timer of the loop (await asyncio.sleep, setTimeout), or move blocking code to another \
             thread (asyncio.to_thread, run_in_executor, a worker)",
        ))
        .remedy(Remedy::safe(
            "set PYTHONASYNCIODEBUG=1 to find the place: asyncio then names each callback that takes over \
             100 ms",
        ))
}

/// A thread may sleep so, to be woken early when the program ends; or nobody does what it hopes for.
fn ran_out(waits: &Waits<'_>) -> Finding {
    let who = say::who(&waits.main().asker.name);
    let title = format!(
        "{who} waits for another thread until a timeout: {}",
        say::cost(waits)
    );
    let count = waits.count().max(1);
    let nobody = format!(
        "{}: no other thread released or signalled it in that time",
        say::ran_out(count, count)
    );
    RULE.finding(Severity::Note, title, waits)
        .and(Evidence::new(nobody, say::SCHEDULER))
        .remedy(Remedy::safe(
            "find the thread that should have released or signalled it, and what it does: it may wait in the \
             same queue, or have signalled before the wait began, which is lost unless the waiter checks \
             first",
        ))
        .remedy(Remedy::safe(
            "sleep less, if it is only a sleep that can be interrupted",
        ))
        .remedy(Remedy::pointless(
            "only a shorter timeout: the event has then not happened either",
        ))
}
