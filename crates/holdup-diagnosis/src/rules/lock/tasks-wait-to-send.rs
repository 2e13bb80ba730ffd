//! Tasks of a language runtime wait to send on a channel, at a first look and at a last: nobody received meanwhile.

use crate::rules::{Check, Generality, Need, Place, Rule, RuleId, Run, duration, say};
use holdup_evidence::{Cause, Ns, TaskRuntime};
use holdup_model::attributed::{Asker, Resource, ResourceKind, Task, TaskState, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Time between the two looks below which a task that stands in one place has merely been met there twice, nanoseconds.
const MIN_STOOD_NS: Ns = 1_000_000_000;

/// Share of the time that a process's threads run above which a receiver may only be slow: a blocked pipeline runs no code but a timer's.
const RUNS_SHARE: f64 = 0.01;

/// Places that a sentence names.
const MAX_PLACES: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::TasksWaitToSend,
    about: "tasks of a runtime wait to send on a channel, at a first look and at a last",
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
    let sending = tasks
        .iter()
        .filter(|task| task.sends && task.state == TaskState::Waiting);
    let mut by_process: BTreeMap<u32, Vec<&Task>> = BTreeMap::new();
    let mut met_once: u64 = 0;
    for task in sending {
        match task.stood >= MIN_STOOD_NS {
            true => by_process.entry(task.pid).or_default().push(task),
            false => met_once += 1,
        }
    }
    if by_process.is_empty() && met_once > 0 && run.attributed.elapsed < MIN_STOOD_NS {
        return Verdict::CannotTell(format!(
            "whether {} still waits to send a second later: observe for longer",
            say::several(met_once, "task")
        ));
    }
    if by_process.is_empty() {
        return Verdict::Clear(format!(
            "0 of {} waited to send at a first look and a second later; {met_once} did at the last look",
            say::several(count(tasks.len()), "task")
        ));
    }
    Verdict::Fires(by_process.values().map(|tasks| finding(run, tasks)).collect())
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The function and line in which a task stands.
fn place(task: &Task) -> String {
    let Some(frame) = &task.place else {
        return "an unknown place".to_owned();
    };
    let function = frame.symbol.as_deref().unwrap_or("an unknown function");
    let file = frame.file.as_deref().and_then(|file| file.rsplit('/').next());
    match (file, frame.line) {
        (Some(file), Some(line)) => format!("{function} ({file}:{line})"),
        _ => function.to_owned(),
    }
}

/// Different places, the most frequent first.
fn places<'a>(tasks: impl Iterator<Item = &'a Task>, told: fn(&Task) -> String) -> String {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for task in tasks {
        *places.entry(told(task)).or_default() += 1;
    }
    let mut order: Vec<(&String, &usize)> = places.iter().collect();
    order.sort_by_key(|(place, count)| (std::cmp::Reverse(**count), *place));
    let first: Vec<&str> = order
        .iter()
        .take(MAX_PLACES)
        .map(|(place, _)| place.as_str())
        .collect();
    match order.len().saturating_sub(MAX_PLACES) {
        0 => first.join(" and "),
        more => format!(
            "{} and {}",
            first.join(" and "),
            say::several(count(more), "other place")
        ),
    }
}

/// Share of the time that threads of a process ran.
fn runs(run: &Run<'_>, pid: u32) -> f64 {
    let threads = run.attributed.threads.iter();
    let of_process = threads.filter(|thread| thread.name.pid == pid);
    let on_cpu = of_process.flat_map(|thread| {
        let causes = thread.causes.iter().filter(|(cause, _)| cause.on_cpu());
        causes.map(|(_, tally)| tally.ns)
    });
    let ran: Ns = on_cpu.sum();
    ran as f64 / run.attributed.elapsed.max(1) as f64
}

/// Who else may have to do with these channels: tasks that refer to one and do not wait to send on it.
fn candidates<'a>(run: &Run<'a>, sending: &[&Task]) -> Vec<&'a Task> {
    let channels: BTreeSet<u64> = sending
        .iter()
        .flat_map(|task| task.channels.awaits.iter().copied())
        .collect();
    let refers = |task: &&Task| {
        task.channels
            .refers
            .iter()
            .any(|channel| channels.contains(channel))
    };
    let of_process = |task: &&Task| task.pid == sending[0].pid;
    run.attributed
        .tasks
        .iter()
        .filter(of_process)
        .filter(refers)
        .collect()
}

fn candidate(task: &Task) -> String {
    let does = match task.state {
        TaskState::Running => "runs",
        TaskState::Ready => "is runnable",
        TaskState::Waiting | TaskState::Idle => "waits",
    };
    match task.resource.name.as_str() {
        "" => format!("{} {does}", place(task)),
        what => format!("{} {does} for {what}", place(task)),
    }
}

fn finding(run: &Run<'_>, tasks: &[&Task]) -> Finding {
    let stood = tasks.iter().map(|task| task.stood).max().unwrap_or_default();
    let one = tasks.len() == 1;
    let name = match tasks[0].runtime {
        TaskRuntime::Go => "goroutine",
        TaskRuntime::Asyncio => "task",
        TaskRuntime::Java => "virtual thread",
    };
    let process = say::name_or(&tasks[0].process, "a process");
    let pid = tasks[0].pid;
    let share = runs(run, pid);
    let title = format!(
        "{} of {process} (pid {pid}) {} to send in {}, and did so {} before: nobody received",
        say::several(count(tasks.len()), name),
        if one { "waits" } else { "wait" },
        places(tasks.iter().copied(), place),
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
    let others = candidates(run, tasks);
    let known = tasks.iter().any(|task| !task.channels.awaits.is_empty());
    let who = match (others.is_empty(), known) {
        (false, _) => format!(
            "candidates for the receiver, which refer to the channel: {}",
            places(others.iter().copied(), candidate)
        ),
        (true, true) => format!("no other {name}'s stack refers to the channel"),
        (true, false) => "which channel it is was not found".to_owned(),
    };
    let (severity, confidence) = match share > RUNS_SHARE {
        true => (Severity::Note, Confidence::Suspect),
        false => (Severity::Warning, Confidence::Strong),
    };
    let finding = Finding::new(
        RULE.id.id(),
        severity,
        title,
        Cause::LockFutex,
        stood.min(run.attributed.elapsed),
        seen,
    )
    .confidence(confidence)
    .about(
        Resource::named(ResourceKind::Lock, tasks[0].resource.name.clone()),
        Asker {
            name: asker,
            frame: tasks[0].place.as_ref().and_then(|frame| frame.symbol.clone()),
            ..Default::default()
        },
    )
    .and(Evidence::new(who, "channels, and the stacks of all tasks"))
    .and(Evidence::new(
        format!("its threads ran for {:.1} % of the time", share * 100.0),
        "the scheduler's events",
    ));
    match others.is_empty() {
        true => finding.remedy(Remedy::safe(
            "look for a receiver that has returned early, for instance after an error or a time limit: give the channel room for one value, \
             or let the sender stop by a context",
        )),
        false => finding.remedy(Remedy::safe(
            "find out why the receiver does not receive: it may wait for something that a sender has",
        )),
    }
}
