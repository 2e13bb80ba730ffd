//! Calls of asynchronous functions of Node.js stand at one await, at a first look and at a last: nothing has settled that promise.

use crate::rules::{Generality, Rule, RuleId, Run, say, tasks};
use holdup_evidence::{Cause, TaskRuntime};
use holdup_model::attributed::{Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

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

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
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
