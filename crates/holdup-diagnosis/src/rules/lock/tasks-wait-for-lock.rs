//! Tasks of a language runtime wait for a lock of the program, at a first look and at a last. No thread waits for it.

use crate::rules::{Rule, RuleId, Run, say, tasks};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame, TaskRuntime};
use holdup_knowledge::{go, java};
use holdup_model::attributed::{AttributedWait, Task, TaskState};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::TasksWaitForLock, check)
    .about("tasks of a runtime wait for a lock, at a first look and at a last")
    .causes(&[Cause::LockFutex, Cause::LockMonitor])
    .from(0.0);

/// What the tasks wait for, as it follows "wait".
const WHAT: &str = "for a lock";

fn check(run: &Run<'_>) -> Verdict {
    tasks::judge(run, WHAT, |task| task.lock, finding)
}

/// Who has the lock that most of them want.
enum Has<'a> {
    Task(&'a Task),
    /// The thread, by what it waited for longest.
    Thread(&'a AttributedWait),
}

impl Has<'_> {
    /// `virtual thread till in Till.count (Till.java:7)`.
    fn who(&self) -> String {
        match self {
            Has::Task(task) => {
                let kind = match task.runtime {
                    TaskRuntime::Java => "virtual thread ",
                    TaskRuntime::Go | TaskRuntime::Asyncio => "",
                };
                let name = say::name_or(task.name.as_deref().unwrap_or_default(), "a task");
                format!("{kind}{name} in {}", tasks::place(task))
            }
            Has::Thread(wait) => {
                let place = chosen_frame(&wait.asker.stack)
                    .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
                format!("{}{place}", say::who(&wait.asker.name))
            }
        }
    }

    /// What it waits for.
    fn does(&self) -> String {
        let (cause, name) = match self {
            Has::Task(task) => (task.cause, &task.resource.name),
            Has::Thread(wait) => (wait.cause, &wait.resource.name),
        };
        match name.as_str() {
            "" => cause.phrase().to_owned(),
            name => format!("waiting for {name}"),
        }
    }
}

fn has<'a>(run: &Run<'a>, tasks: &[&Task]) -> Option<Has<'a>> {
    let pid = tasks.first()?.pid;
    let mut held: BTreeMap<(Option<u64>, Option<u32>), usize> = BTreeMap::new();
    for task in tasks {
        *held.entry((task.held_by, task.held_by_thread)).or_default() += 1;
    }
    held.remove(&(None, None));
    let most = held.into_iter().max_by_key(|(_, count)| *count);
    match most?.0 {
        (Some(id), _) => {
            let mut all = run.attributed.tasks.iter();
            all.find(|one| (one.pid, one.id) == (pid, id)).map(Has::Task)
        }
        (None, tid) => {
            let own = |wait: &AttributedWait| (wait.asker.name.pid, Some(wait.asker.name.tid)) == (pid, tid);
            let waits = run.attributed.waits.iter().filter(|wait| own(wait));
            waits.max_by_key(|wait| wait.ns).map(Has::Thread)
        }
    }
}

/// Who has the lock, where that is known.
fn has_it(run: &Run<'_>, tasks: &[&Task]) -> Evidence {
    let source = "the layout of the runtime's locks";
    match has(run, tasks) {
        Some(holder) => Evidence::new(format!("held by {}, {}", holder.who(), holder.does()), source),
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
        .filter_map(|task| type_of(task, task.place.as_ref()?.symbol.as_deref()?))
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
            let of_type = |frame: &&Frame| {
                let symbol = frame.symbol.as_deref();
                symbol.and_then(|symbol| type_of(task, symbol)) == Some(*wanted)
            };
            Some((task, task.stack.iter().find(of_type)?))
        })
        .collect()
}

/// The type of which a function is a method.
fn type_of<'a>(task: &Task, symbol: &'a str) -> Option<&'a str> {
    match task.runtime {
        TaskRuntime::Go => go::receiver(symbol),
        TaskRuntime::Java => Some(java::class(symbol)),
        TaskRuntime::Asyncio => None,
    }
}

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let outcome = has(run, waiting).map_or_else(String::new, |holder| format!("; {} has it", holder.who()));
    let finding = tasks::finding(run, RULE.id, Severity::Warning, waiting, [WHAT, &outcome])
        .confidence(Confidence::Strong)
        .and(has_it(run, waiting));
    let finding = match (tasks::places(waiting, tasks::place).len(), outcome.is_empty()) {
        (1, _) | (_, false) => finding,
        _ => finding.remedy(Remedy::safe(
            "check whether these functions take the same locks in different orders: each then waits for a lock that another of them has",
        )),
    };
    if let Some(holder) = has(run, waiting) {
        return finding.remedy(Remedy::safe(format!(
            "do not wait while holding it: the holder is {}",
            holder.does()
        )));
    }
    finding.remedy(Remedy::safe(
        "look in a dump of all tasks for one that has locked it and waits for something else, or has returned without unlocking it",
    ))
}
