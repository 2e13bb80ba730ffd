//! Tasks of language runtimes that stood in one place, at a first look and at a last: what the rules about them share.

use crate::rules::{RuleId, Run, duration, say};
use holdup_evidence::{Cause, Frame, Ns, TaskRuntime};
use holdup_knowledge::{go, rust};
use holdup_model::attributed::{Asker, Resource, ResourceKind, Task, TaskState, ThreadName};
use holdup_model::finding::{Evidence, Finding, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::{BTreeMap, BTreeSet};

/// Time between the two looks below which a task that stands in one place has merely been met there twice, nanoseconds.
const MIN_STOOD_NS: Ns = 1_000_000_000;

/// Share of the time that a process's threads run above which what stands may only be slow: a blocked program runs no code but a timer's.
pub(super) const RUNS_SHARE: f64 = 0.01;

/// Places that a sentence names.
pub(super) const MAX_PLACES: usize = 3;

/// Judges the tasks that wait, if only for work, and are `of_interest`, each process's together, those that wait for a pool by themselves. `what`: what they wait for, as it follows "wait".
pub(super) fn judge(
    run: &Run<'_>,
    what: &str,
    of_interest: impl Fn(&Task) -> bool,
    finding: impl Fn(&Run<'_>, &[&Task]) -> Finding,
) -> Verdict {
    let tasks = &run.attributed.tasks;
    if tasks.is_empty() {
        return Verdict::Clear("0 tasks of language runtimes were observed".to_owned());
    }
    let mut by_process: BTreeMap<(u32, bool), Vec<&Task>> = BTreeMap::new();
    let mut met_once = 0;
    for task in tasks {
        if !matches!(task.state, TaskState::Waiting | TaskState::Idle) || !of_interest(task) {
            continue;
        }
        match task.stood >= MIN_STOOD_NS {
            true => by_process.entry((task.pid, task.pool)).or_default().push(task),
            false => met_once += 1,
        }
    }
    if by_process.is_empty() && met_once > 0 && run.attributed.elapsed < MIN_STOOD_NS {
        return Verdict::CannotTell(format!(
            "whether {} still waits {what} a second later: observe for longer",
            several(met_once, "task")
        ));
    }
    if by_process.is_empty() {
        return Verdict::Clear(format!(
            "0 of {} waited {what} at a first look and a second later; {met_once} did at the last look",
            several(tasks.len(), "task")
        ));
    }
    Verdict::Fires(by_process.values().map(|tasks| finding(run, tasks)).collect())
}

/// Tasks of a process that stood, where only code of the program can end their wait: `15 asynchronous calls wait in loadFlags (gate.js:33)`.
pub(super) fn who_stand(run: &Run<'_>, pid: u32) -> Option<String> {
    let stands = |task: &&Task| {
        let inside = task.cause == Cause::LockFutex && task.state == TaskState::Waiting;
        task.pid == pid && inside && task.stood >= MIN_STOOD_NS && task.place.is_some()
    };
    let standing: Vec<&Task> = run.attributed.tasks.iter().filter(stands).collect();
    let first = standing.first()?;
    let wait = if standing.len() == 1 { "waits" } else { "wait" };
    Some(format!(
        "{} {wait} in {}",
        several(standing.len(), name(first)),
        say_places(&places(&standing, place))
    ))
}

/// The other tasks whose code uses what these wait for: not those that wait for the same, nor for one of them or of those.
pub(super) fn users<'a>(all: &'a [Task], waiting: &[&Task]) -> Vec<&'a Task> {
    let wanted: BTreeSet<u64> = waiting
        .iter()
        .flat_map(|task| task.channels.awaits.iter().copied())
        .collect();
    let Some(pid) = waiting.first().map(|task| task.pid) else {
        return Vec::new();
    };
    let same = |task: &Task| waiting.iter().any(|one| one.id == task.id);
    let uses = |task: &&Task| {
        task.pid == pid
            && !same(task)
            && task.place.is_some()
            && task.channels.uses.iter().any(|one| wanted.contains(one))
    };
    let mut found: Vec<&Task> = all.iter().filter(uses).collect();
    let known: BTreeSet<u64> = found
        .iter()
        .map(|task| task.id)
        .chain(waiting.iter().map(|task| task.id))
        .collect();
    found.retain(|task| task.awaits.is_none_or(|awaited| !known.contains(&awaited)));
    found
}

/// A finding about tasks of one process, of which there is at least one. Its title: `2 goroutines of shop (pid 7) wait {what} in main.pay
/// (pay.go:9), for at least 2.90 s`, and `outcome`.
pub(super) fn finding(
    run: &Run<'_>,
    rule: RuleId,
    severity: Severity,
    tasks: &[&Task],
    [what, outcome]: [&str; 2],
) -> Finding {
    let first = tasks[0];
    let one = tasks.len() == 1;
    let stood = tasks.iter().map(|task| task.stood).max().unwrap_or_default();
    let process = say::name_or(&first.process, "a process");
    let title = Title::from(format!(
        "{} of {process} (pid {}) {} {what} in {}, for at least {}",
        several(tasks.len(), name(first)),
        first.pid,
        if one { "waits" } else { "wait" },
        say_places(&places(tasks, place)),
        duration(stood)
    ))
    .with(outcome);
    let observed = Evidence::new(
        format!(
            "{} there, with the same callers, at a first look and {} later",
            if one { "it stood" } else { "each stood" },
            duration(stood)
        ),
        "the program's own structures, read from its memory",
    );
    let lasted = stood.min(run.attributed.elapsed);
    let peer = first.resource.detail.peer.is_some();
    let (cause, kind) = match first.cause {
        _ if peer => (Cause::NetReceive, ResourceKind::Socket),
        Cause::LockMonitor => (Cause::LockMonitor, ResourceKind::Lock),
        _ => (Cause::LockFutex, ResourceKind::Lock),
    };
    Finding::new(rule.id(), severity, title, cause, lasted, observed).about(
        Resource::named(kind, first.resource.name.clone()),
        Asker {
            name: ThreadName {
                pid: first.pid,
                tid: first.pid,
                process: first.process.clone(),
                thread: first.process.clone(),
            },
            frame: first.place.as_ref().and_then(|frame| frame.symbol.clone()),
            ..Default::default()
        },
    )
}

/// The tasks of a process that are in a function in which others wait, and further in: they are past the place where those stand.
pub(super) fn further_in<'a>(all: &'a [Task], waiting: &[&Task]) -> Vec<(&'a Task, &'a Frame)> {
    let Some(pid) = waiting.first().map(|task| task.pid) else {
        return Vec::new();
    };
    let ids: BTreeSet<u64> = waiting.iter().map(|task| task.id).collect();
    let within = |places: Vec<&Frame>| within(all, pid, &ids, &places);
    let own = within(waiting.iter().filter_map(|task| task.place.as_ref()).collect());
    match own.is_empty() {
        // A type of the program's own around a channel or a lock: who called its method goes on when that returns.
        true if waiting.iter().all(|task| task.runtime == TaskRuntime::Go) => within(
            waiting
                .iter()
                .filter_map(|task| caller(task))
                .filter(|frame| !is_first(frame))
                .collect(),
        ),
        _ => own,
    }
}

/// Whether a function is the program's first, in which everything is.
fn is_first(frame: &Frame) -> bool {
    frame.symbol.as_deref() == Some(go::FIRST_FUNCTION)
}

/// The tasks of a process beside these that are in one of these functions and further in.
fn within<'a>(
    all: &'a [Task],
    pid: u32,
    ids: &BTreeSet<u64>,
    places: &[&Frame],
) -> Vec<(&'a Task, &'a Frame)> {
    let same = |frame: &&Frame| {
        let is = |place: &&Frame| place.symbol == frame.symbol && place.file == frame.file;
        frame.symbol.is_some() && places.iter().any(is)
    };
    let others = all
        .iter()
        .filter(|task| task.pid == pid && !ids.contains(&task.id) && !task.lock && !task.pool && !task.sends);
    let busy = others.filter(|task| task.state != TaskState::Idle);
    busy.filter_map(|task| Some((task, task.stack.iter().find(same)?)))
        .collect()
}

/// Share of the time that threads of a process ran.
pub(super) fn runs(run: &Run<'_>, pid: u32) -> f64 {
    let threads = run.attributed.threads.iter();
    let of_process = threads.filter(|thread| thread.name.pid == pid);
    let on_cpu = of_process.flat_map(|thread| {
        let causes = thread.causes.iter().filter(|(cause, _)| cause.on_cpu());
        causes.map(|(_, tally)| tally.ns)
    });
    let ran: Ns = on_cpu.sum();
    ran as f64 / run.attributed.elapsed.max(1) as f64
}

/// So many tasks of a runtime: `3 goroutines`.
pub(super) fn several_named(count: u64, runtime: TaskRuntime) -> String {
    say::several(count, name_of(runtime))
}

/// How its runtime calls such a task.
pub(super) fn name(task: &Task) -> &'static str {
    name_of(task.runtime)
}

fn name_of(runtime: TaskRuntime) -> &'static str {
    match runtime {
        TaskRuntime::Go => "goroutine",
        TaskRuntime::Asyncio => "asyncio task",
        TaskRuntime::Java => "virtual thread",
        TaskRuntime::Node => "asynchronous call",
        TaskRuntime::Tokio => "tokio task",
    }
}

/// The function and line in which a task stands.
pub(super) fn place(task: &Task) -> String {
    task.place
        .as_ref()
        .map_or_else(|| "an unknown place".to_owned(), say::place)
}

/// Where a candidate stands, by whom that was called, and what it waits for.
pub(super) fn stands_called(task: &Task) -> String {
    match caller(task) {
        Some(frame) => format!(
            "{}, called by {}{}",
            place(task),
            say::place(frame),
            waits_for(task)
        ),
        None => format!("{}{}", place(task), waits_for(task)),
    }
}

/// What a task waits for, for the end of a sentence.
pub(super) fn waits_for(task: &Task) -> String {
    match task.resource.name.as_str() {
        "" => String::new(),
        what => format!(", waiting for {what}"),
    }
}

/// The application's function that called the one in which a task stands.
pub(super) fn caller(task: &Task) -> Option<&Frame> {
    let place = task.place.as_ref()?;
    let from = task.stack.iter().skip_while(|frame| frame.symbol != place.symbol);
    let own = |frame: &&Frame| match task.runtime {
        TaskRuntime::Go => go::is_application(frame) && !go::is_wrapper(frame),
        TaskRuntime::Asyncio | TaskRuntime::Java | TaskRuntime::Node => frame.file.is_some(),
        TaskRuntime::Tokio => frame.file.is_some() && !rust::of_library(frame),
    };
    from.skip(1)
        .find(|frame| own(frame) && frame.symbol != place.symbol)
}

/// Different places of tasks, the most frequent first.
pub(super) fn places(tasks: &[&Task], shown: fn(&Task) -> String) -> Vec<String> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for task in tasks {
        *places.entry(shown(task)).or_default() += 1;
    }
    let mut order: Vec<(String, usize)> = places.into_iter().collect();
    // Equally frequent ones stay in the order of their names.
    order.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    order.into_iter().map(|(place, _)| place).collect()
}

/// The first of them, and how many more there are.
pub(super) fn say_places(places: &[String]) -> String {
    let first = &places[..places.len().min(MAX_PLACES)];
    let named = first.join(" and ");
    match places.len() - first.len() {
        0 => named,
        more => format!("{named} and {}", several(more, "other place")),
    }
}

fn several(count: usize, what: &str) -> String {
    say::several(u64::try_from(count).unwrap_or(u64::MAX), what)
}
