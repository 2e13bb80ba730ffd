//! Tasks of a language runtime wait for a lock of the program, at a first look and at a last. No thread waits for it.

use crate::rules::{Check, Generality, Need, Place, Rule, RuleId, Run, duration, say};
use holdup_evidence::{Cause, Frame, Ns, TaskRuntime};
use holdup_knowledge::go;
use holdup_model::attributed::{Asker, Resource, ResourceKind, Task, TaskState, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Time between the two looks below which a task that stands in one place has merely been met there twice, nanoseconds.
const MIN_STOOD_NS: Ns = 1_000_000_000;

/// Places that a sentence names.
const MAX_PLACES: usize = 3;

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

fn check(run: &Run<'_>) -> Verdict {
    let tasks = &run.attributed.tasks;
    if tasks.is_empty() {
        return Verdict::Clear("0 tasks of language runtimes were observed".to_owned());
    }
    let waiting = tasks
        .iter()
        .filter(|task| task.lock && task.state == TaskState::Waiting);
    let mut by_process: BTreeMap<u32, Vec<&Task>> = BTreeMap::new();
    let mut met_once: u64 = 0;
    for task in waiting {
        match task.stood >= MIN_STOOD_NS {
            true => by_process.entry(task.pid).or_default().push(task),
            false => met_once += 1,
        }
    }
    if by_process.is_empty() && met_once > 0 && run.attributed.elapsed < MIN_STOOD_NS {
        return Verdict::CannotTell(format!(
            "whether {} still waits for a lock a second later: observe for longer",
            say::several(met_once, "task")
        ));
    }
    if by_process.is_empty() {
        return Verdict::Clear(format!(
            "0 of {} waited for a lock at a first look and a second later; {met_once} did at the last look",
            say::several(u64::try_from(tasks.len()).unwrap_or(u64::MAX), "task")
        ));
    }
    Verdict::Fires(by_process.values().map(|tasks| finding(run, tasks)).collect())
}

/// The function and line in which a task stands.
fn place(task: &Task) -> String {
    task.place
        .as_ref()
        .map_or_else(|| "an unknown place".to_owned(), say::place)
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
                place(holder)
            );
            Evidence::new(text, source)
        }
        None => {
            let candidates = candidates(&run.attributed.tasks, tasks);
            let named: Vec<String> = candidates
                .iter()
                .take(MAX_PLACES)
                .map(doing)
                .collect();
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
    format!("{}{method}, {what}", place(task))
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

fn finding(run: &Run<'_>, tasks: &[&Task]) -> Finding {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for task in tasks {
        *places.entry(place(task)).or_default() += 1;
    }
    let mut order: Vec<(&String, &usize)> = places.iter().collect();
    order.sort_by_key(|(place, count)| (std::cmp::Reverse(**count), *place));
    let first: Vec<&str> = order
        .iter()
        .take(MAX_PLACES)
        .map(|(place, _)| place.as_str())
        .collect();
    let more = match order.len().saturating_sub(MAX_PLACES) {
        0 => String::new(),
        more => format!(
            " and {}",
            say::several(u64::try_from(more).unwrap_or(u64::MAX), "other place")
        ),
    };
    let stood = tasks.iter().map(|task| task.stood).max().unwrap_or_default();
    let one = tasks.len() == 1;
    let name = match tasks[0].runtime {
        TaskRuntime::Go => "goroutine",
        TaskRuntime::Asyncio => "asyncio task",
        TaskRuntime::Java => "virtual thread",
    };
    let process = say::name_or(&tasks[0].process, "a process");
    let pid = tasks[0].pid;
    let title = format!(
        "{} of {process} (pid {pid}) {} for a lock in {}{more}, and did so {} before",
        say::several(u64::try_from(tasks.len()).unwrap_or(u64::MAX), name),
        if one { "waits" } else { "wait" },
        first.join(" and "),
        duration(stood)
    );
    let seen = Evidence::new(
        format!(
            "{} there, with the same callers, at a first look and {} later",
            if one { "it stood" } else { "each stood" },
            duration(stood)
        ),
        "the program's own structures, read from its memory",
    );
    let asker = ThreadName {
        pid,
        tid: pid,
        process: tasks[0].process.clone(),
        thread: tasks[0].process.clone(),
    };
    let finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::LockFutex,
        stood.min(run.attributed.elapsed),
        seen,
    )
    .confidence(Confidence::Strong)
    .about(
        Resource::named(ResourceKind::Lock, tasks[0].resource.name.clone()),
        Asker {
            name: asker,
            frame: tasks[0].place.as_ref().and_then(|frame| frame.symbol.clone()),
            ..Default::default()
        },
    )
    .and(has_it(run, tasks));
    let finding = match order.len() {
        1 => finding,
        _ => finding.remedy(Remedy::safe(
            "check whether these functions take the same locks in different orders: each then waits for a lock that another of them has",
        )),
    };
    finding.remedy(Remedy::safe(
        "look in a dump of all tasks for one that has locked it and waits for something else, or has returned without unlocking it",
    ))
}
