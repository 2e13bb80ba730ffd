//! Attribution against a slow and obviously right one, and against cases written by hand.

mod awaited_answers;
mod cases;
mod crowd;
mod deadlock;
mod exit;
mod follow_blocker;
mod left_behind;
mod lock_queues;
mod neighbours;
mod orders;
mod owners;
mod prediction;
mod properties;
mod scene;
mod simulator;
mod threads;
mod timeline;
mod turns;
mod who;

use crate::attribution::{Attribution, Classifier};
use crate::classify::{Classified, Site};
use holdup_evidence::{Call, Cause, Event, Finish, Frame, Object, SystemFacts};
use holdup_model::attributed::{Attributed, Resource, ResourceKind};

/// A call that the tests' classifier takes for this cause; `about` tells resources apart.
pub(super) fn call_for(cause: Cause, about: u64) -> Call {
    let number = Cause::ALL
        .iter()
        .position(|known| *known == cause)
        .expect("every cause is listed");
    Call {
        number: i32::try_from(number).expect("a short list"),
        args: [about, 0, 0, 0],
    }
}

fn cause_of(number: i64) -> Cause {
    usize::try_from(number)
        .ok()
        .and_then(|number| Cause::ALL.get(number).copied())
        .unwrap_or(Cause::Unknown)
}

/// The cause is what the call's number says; the value returned overrides it once memory is there.
fn wait(site: &Site) -> Classified {
    let found = site.memory.and_then(|memory| memory.returned);
    let cause = cause_of(found.unwrap_or_else(|| i64::from(site.call.number)));
    Classified {
        cause,
        resource: Resource {
            kind: ResourceKind::Name,
            name: site.call.args[0].to_string(),
            ..Resource::default()
        },
        timed_out: false,
        bytes: None,
        call: (cause == Cause::ProcessExec).then_some("execve"),
        why_unknown: None,
    }
}

fn on_cpu(call: Call, user: bool, _: Option<&Object>, _: Option<&[String]>) -> Classified {
    Classified {
        cause: if user { Cause::CpuUser } else { Cause::CpuKernel },
        resource: Resource {
            name: call.args[0].to_string(),
            ..Resource::default()
        },
        timed_out: false,
        bytes: None,
        call: None,
        why_unknown: None,
    }
}

/// A stack that asks for an interpreter's lock says so, whatever the wait seemed to be for.
fn by_user_stack(_: Cause, _: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    let takes = stack.first()?.symbol.as_deref() == Some("take_gil");
    takes.then(|| (Cause::RuntimeInterpreter, Resource::default()))
}

fn name_resource(_: &mut Resource, _: Cause, _: &SystemFacts) {}

/// The tests' classifier.
pub(super) fn classifier() -> Classifier {
    Classifier {
        wait,
        on_cpu,
        by_user_stack,
        of_runtime: |_| {},
        name_resource,
    }
}

/// Attributes events with the tests' classifier.
pub(super) fn attribute(events: &[Event], finish: &Finish, facts: &SystemFacts) -> Attributed {
    let mut attribution = Attribution::with(classifier());
    for event in events {
        attribution.push(event);
    }
    attribution.finish(finish, facts)
}

/// What holds of every run, whatever was lost.
pub(super) fn balances(run: &Attributed) -> Result<(), String> {
    let path: u64 = run.path.values().map(|tally| tally.ns).sum();
    if path != run.elapsed {
        return Err(format!("path {path} of {} elapsed", run.elapsed));
    }
    for thread in &run.threads {
        let causes: u64 = thread.causes.values().map(|tally| tally.ns).sum();
        if causes != thread.wall {
            return Err(format!("{:?}: {causes} of {}", thread.name, thread.wall));
        }
    }
    let walls: u64 = run.threads.iter().map(|thread| thread.wall).sum();
    let rows: u64 = run.waits.iter().map(|row| row.ns).sum();
    let coverage = &run.coverage;
    if walls != rows || walls != coverage.observed || walls != coverage.attributed + coverage.unknown {
        return Err(format!("threads {walls}, rows {rows}, coverage {coverage:?}"));
    }
    if let Some(row) = run.waits.iter().find(|row| row.handed_on_ns > run.elapsed) {
        return Err(format!("{} handed on of {}", row.handed_on_ns, run.elapsed));
    }
    timeline::agrees(run)
}
