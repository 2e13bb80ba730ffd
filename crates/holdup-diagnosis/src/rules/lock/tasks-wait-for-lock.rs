//! Tasks of a language runtime wait for a lock of the program, at a first look and at a last. No thread waits for it.

use crate::rules::{Check, Generality, Need, Place, Rule, RuleId, Run, say, tasks};
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::go;
use holdup_model::attributed::{Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::TasksWaitForLock,
    about: "tasks of a runtime wait for a lock, at a first look and at a last",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::LockFutex],
    from: 0.0,
    generality: Generality::Specific,
    explains: &[],
    place: Place::End,
    check: Check::Attached(check),
};

/// What the tasks wait for, as it follows "wait".
const WHAT: &str = "for a lock";

fn check(run: &Run<'_>) -> Verdict {
    tasks::judge(run, WHAT, |task| task.lock, finding)
}

/// Who has the lock, where that is known.
fn has_it(run: &Run<'_>, tasks: &[&Task]) -> Evidence {
    let source = "the layout of the runtime's locks";
    let known = tasks.iter().find_map(|task| {
        let held_by = task.held_by?;
        let all = run.attributed.tasks.iter();
        all.into_iter()
            .find(|one| (one.pid, one.id) == (task.pid, held_by))
    });
    match known {
        Some(holder) => {
            let name = holder.name.as_deref().unwrap_or("a task");
            let doing = match holder.resource.name.as_str() {
                "" => holder.cause.phrase().to_owned(),
                what => format!("waiting for {what}"),
            };
            let text = format!(
                "held by {} in {}, {doing}",
                say::name_or(name, "a task"),
                tasks::place(holder)
            );
            Evidence::new(text, source)
        }
        None => {
            let candidates = candidates(&run.attributed.tasks, tasks);
            let named: Vec<String> = candidates.iter().take(tasks::MAX_PLACES).map(doing).collect();
            match named.as_slice() {
                [] => Evidence::new(
                    "who has the lock is not known: the runtime does not note it",
                    source,
                ),
                named => Evidence::new(
                    format!(
                        "the runtime does not note who has the lock; {}, in a method of the same object's type: {}",
                        match candidates.len() {
                            1 => "one task is a candidate".to_owned(),
                            count => format!("{count} tasks are candidates"),
                        },
                        named.join("; ")
                    ),
                    "the methods in which tasks stand",
                ),
            }
        }
    }
}

/// What a candidate does: `main.askExchange (main.go:21) in main.(*Cache).refresh, waiting for a descriptor`.
fn doing((task, method): &(&Task, &Frame)) -> String {
    let own = task
        .place
        .as_ref()
        .is_some_and(|place| place.symbol == method.symbol);
    let method = match own {
        true => String::new(),
        false => format!(", called by {}", say::place(method)),
    };
    let what = match task.resource.name.as_str() {
        "" => task.cause.phrase().to_owned(),
        what => format!("waiting for {what}"),
    };
    format!("{}{method}, {what}", tasks::place(task))
}

/// Tasks that may have the lock for which others wait in methods of one type: those that wait for something else in a method of that type.
/// Other objects of the type have locks of their own, so these are candidates and no more.
fn candidates<'a>(all: &'a [Task], waiting: &[&Task]) -> Vec<(&'a Task, &'a Frame)> {
    let types: BTreeSet<&str> = waiting
        .iter()
        .filter_map(|task| go::receiver(task.place.as_ref()?.symbol.as_deref()?))
        .collect();
    let (Some(wanted), 1, Some(pid)) = (types.first(), types.len(), waiting.first().map(|task| task.pid))
    else {
        return Vec::new();
    };
    let elsewhere = all
        .iter()
        .filter(|task| task.pid == pid && !task.lock && task.state != TaskState::Idle);
    elsewhere
        .filter_map(|task| {
            let of_type = |frame: &&Frame| frame.symbol.as_deref().and_then(go::receiver) == Some(*wanted);
            Some((task, task.stack.iter().find(of_type)?))
        })
        .collect()
}

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let finding = tasks::finding(run, RULE.id, Severity::Warning, waiting, [WHAT, ""])
        .confidence(Confidence::Strong)
        .and(has_it(run, waiting));
    let finding = match tasks::places(waiting, tasks::place).len() {
        1 => finding,
        _ => finding.remedy(Remedy::safe(
            "check whether these functions take the same locks in different orders: each then waits for a lock that another of them has",
        )),
    };
    finding.remedy(Remedy::safe(
        "look in a dump of all tasks for one that has locked it and waits for something else, or has returned without unlocking it",
    ))
}
