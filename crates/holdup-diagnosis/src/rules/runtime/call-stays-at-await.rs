//! Calls of asynchronous functions of Node.js stand at one await, at a first look and at a last: nothing has settled that promise.

use crate::rules::{Generality, Rule, RuleId, Run, say, tasks};
use holdup_evidence::{Cause, TaskRuntime};
use holdup_model::attributed::{Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::CallStaysAtAwait, check)
    .about("calls of asynchronous functions stand at an await that nothing ends")
    .causes(&[Cause::LockFutex])
    .from(0.0)
    .generality(Generality::Describes);

/// What the calls wait for, as it follows "wait".
const WHAT: &str = "for a promise";

fn check(run: &Run<'_>) -> Verdict {
    tasks::judge(run, WHAT, |task| stands(run, task), finding)
}

/// Whether only other code of the program can end the wait of a call, and no other call is known that it waits for.
fn stands(run: &Run<'_>, task: &Task) -> bool {
    let inside = task.cause == Cause::LockFutex && !task.lock && !task.pool;
    let known = |id: u64| {
        let mut all = run.attributed.tasks.iter();
        all.any(|other| (other.pid, other.id) == (task.pid, id))
    };
    task.runtime == TaskRuntime::Node
        && task.state == TaskState::Waiting
        && inside
        && task.place.is_some()
        && !task.awaits.is_some_and(known)
}

/// Calls that queue at one await, and those of the same function that are past it.
struct Queue<'a> {
    waiting: Vec<&'a Task>,
    past: Vec<&'a Task>,
}

impl<'a> Queue<'a> {
    /// A pool or a lock of the program's own is a promise for who comes second: some stand where they want it, and who has it is further on.
    fn of(run: &Run<'a>, waiting: &[&'a Task]) -> Option<Queue<'a>> {
        let mut at: BTreeMap<String, Vec<&'a Task>> = BTreeMap::new();
        for task in waiting {
            at.entry(tasks::place(task)).or_default().push(task);
        }
        let (_, queued) = at.into_iter().max_by_key(|(_, tasks)| tasks.len())?;
        let first = *queued.first()?;
        let same = queued
            .iter()
            .all(|task| task.resource.name == first.resource.name);
        let all = run.attributed.tasks.iter();
        let past: Vec<&Task> = all.filter(|task| is_past(task, first)).collect();
        let is_queue = same && queued.len() > past.len() && !past.is_empty();
        is_queue.then_some(Queue {
            waiting: queued,
            past,
        })
    }

    fn finding(&self, run: &Run<'_>) -> Finding {
        let name = self.waiting[0].resource.name.as_str();
        let what = match name {
            "" => WHAT.to_owned(),
            name => format!("for {name}"),
        };
        let count = self.past.len() as u64;
        let outcome = format!(
            "; {} {} past that and may have it, in {}",
            say::several(count, tasks::name(self.past[0])),
            if count == 1 { "is" } else { "are" },
            tasks::say_places(&tasks::places(&self.past, |task| {
                format!("{}{}", tasks::place(task), tasks::waits_for(task))
            }))
        );
        tasks::finding(run, RULE.id, Severity::Note, &self.waiting, [&what, &outcome])
            .confidence(Confidence::Suspect)
            .and(Evidence::new(
                "nothing notes who has what they wait for; calls of the same function that are past this await are candidates, and no more",
                "the objects of the program, read from its memory",
            ))
            .remedy(Remedy::safe(
                "do not wait for a server while keeping what others queue for, or with a time limit; give it back in a `finally`",
            ))
    }
}

/// Whether a call waits further on in the function in which another one waits.
fn is_past(task: &Task, other: &Task) -> bool {
    let (Some(one), Some(other_place)) = (&task.place, &other.place) else {
        return false;
    };
    let same = one.symbol.is_some() && one.symbol == other_place.symbol && one.file == other_place.file;
    let waits = task.runtime == TaskRuntime::Node && task.state == TaskState::Waiting;
    task.pid == other.pid && waits && same && one.line > other_place.line && other_place.line.is_some()
}

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    if let Some(queue) = Queue::of(run, waiting) {
        return queue.finding(run);
    }
    let mut awaited: Vec<&str> = waiting.iter().map(|task| task.resource.name.as_str()).collect();
    awaited.sort_unstable();
    awaited.dedup();
    let what = match awaited.as_slice() {
        [name] if !name.is_empty() => format!("for {name}"),
        _ => WHAT.to_owned(),
    };
    let outcome = match waiting {
        [one] => {
            tasks::caller(one).map_or_else(String::new, |frame| format!(", called by {}", say::place(frame)))
        }
        _ => String::new(),
    };
    let outcome = format!("{outcome}; nothing has settled that promise");
    tasks::finding(run, RULE.id, Severity::Note, waiting, [&what, &outcome])
        .confidence(Confidence::Suspect)
        .and(Evidence::new(
            "no descriptor, timer, name or pool is known that this await is for: other code of the program is to settle the promise",
            "the objects of the program, read from its memory",
        ))
        .remedy(Remedy::safe(
            "find the code that is to settle that promise: an event that came before its listener was added, or a callback that is never \
             called, leaves it open for ever",
        ))
        .remedy(Remedy::safe(
            "check the state before waiting for an event (of a socket, destroyed or closed), and give the await a time limit \
             (AbortSignal.timeout, Promise.race)",
        ))
        .remedy(Remedy::pointless(
            "a faster peer: no request to one is known to be open here",
        ))
}
