//! The load average, taken apart: tasks that run or are ready to, and tasks that are blocked in the kernel.
//!
//! In: figures and lists of tasks. Out: [`Load`], [`BlockedTasks`], and the first sentence of the report. The average is of a
//! minute and more, the lists are of the time of the look: where they disagree the sentence says so.

use crate::rules::say;
use holdup_attribution::classify;
use holdup_evidence::observed::{Metric, SeenThread, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed, TaskState};
use holdup_model::report::{BlockedTasks, Load, Runner};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks at a time from which they are worth a word in the sentence: one at most of the moments is chance.
const WORTH: f64 = 0.75;

/// Percent of time in wait for disks from which it is reported beside the idle time.
const MIN_IOWAIT_PERCENT: f64 = 5.0;

/// A load average is high where it is twice what was seen and more than that by as many tasks as any machine has.
const FADES: f64 = 2.0;
const FADES_BY: f64 = 4.0;

/// Part of the blocked tasks from which what they wait for is what all of them do.
const MIN_SAME_SHARE: f64 = 0.9;

/// Part of them below which no place is reported.
const HALF: f64 = 0.5;

/// Tasks of a program from which they are counted.
const MIN_TASKS: f64 = 1.5;

/// Programs that are kept of those that ran.
const RUNNERS: usize = 10;

/// Programs, and disks, that are named.
const NAMED: usize = 2;

fn lists(observed: &Observed) -> impl Iterator<Item = &Snapshot> {
    let kernel = |snapshot: &&Snapshot| snapshot.kind == SnapshotKind::Kernel && snapshot.states;
    observed.snapshots.iter().filter(kernel)
}

fn last(observed: &Observed, metric: Metric) -> Option<f64> {
    let series = observed.of(metric).find(|series| series.of.is_empty())?;
    series.points.last().map(|point| point.value)
}

/// The mean over the intervals.
pub(super) fn mean(observed: &Observed, metric: Metric, of: &str) -> Option<f64> {
    let series = observed.of(metric).find(|series| series.of == of)?;
    let values: Vec<f64> = series.of_intervals().map(|point| point.value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What the intervals count together, of all that the metric is of.
pub(super) fn sum(observed: &Observed, metric: Metric) -> Option<f64> {
    let mut all = observed
        .of(metric)
        .flat_map(|series| series.of_intervals())
        .peekable();
    all.peek()?;
    Some(all.map(|point| point.value).sum())
}

/// The parts.
pub(super) fn of(observed: &Observed) -> Option<Load> {
    let one = last(observed, Metric::LoadAverage1)?;
    let count = lists(observed).count();
    let at_a_time = |state: State| {
        let all = lists(observed).flat_map(|list| &list.threads);
        // The kernel leaves what is frozen out of its load, too, and shows it in state D all the same.
        let of_state = all.filter(|task| task.state == state && !is_frozen(task)).count();
        (count > 0).then(|| of_state as f64 / count as f64)
    };
    Some(Load {
        one,
        five: last(observed, Metric::LoadAverage5),
        fifteen: last(observed, Metric::LoadAverage15),
        running: at_a_time(State::Runnable),
        blocked: at_a_time(State::Uninterruptible),
        runners: runners(observed),
        idle_percent: mean(observed, Metric::CpuIdlePercent, ""),
        iowait_percent: mean(observed, Metric::CpuIowaitPercent, ""),
    })
}

/// Whether a task stands still with its cgroup, or for suspend.
fn is_frozen(task: &SeenThread) -> bool {
    task.kernel_function
        .as_deref()
        .is_some_and(|name| plain(name) == "__refrigerator")
}

/// Whose tasks ran or were ready to, most first.
fn runners(observed: &Observed) -> Vec<Runner> {
    let count = lists(observed).count().max(1);
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let all = lists(observed).flat_map(|list| &list.threads);
    for task in all.filter(|task| task.state == State::Runnable) {
        *counts.entry(program(&task.name)).or_default() += 1;
    }
    let mut all: Vec<Runner> = counts
        .into_iter()
        .map(|(name, tasks)| Runner {
            process: name.to_owned(),
            tasks: f64::from(tasks) / count as f64,
        })
        .collect();
    all.sort_by(|a, b| b.tasks.total_cmp(&a.tasks));
    all.truncate(RUNNERS);
    all
}

/// A kernel function without what the compiler added to it.
fn plain(name: &str) -> &str {
    name.split_once('.').map_or(name, |(plain, _)| plain)
}

/// A kernel worker's name without its number.
fn program(name: &str) -> &str {
    match name.split_once('/') {
        Some((worker, _)) if worker == "kworker" => worker,
        _ => name,
    }
}

/// Who was blocked in what.
pub(super) fn blocked(observed: &Observed) -> Vec<BlockedTasks> {
    /// Tasks, and lists with one of them; and one with a stack.
    #[derive(Default)]
    struct Group<'a> {
        tasks: u64,
        lists: u64,
        stack: Option<&'a SeenThread>,
        file: Option<&'a str>,
        disks: BTreeSet<&'a str>,
    }
    let count = lists(observed).count();
    let mut groups: BTreeMap<(&str, &str), Group<'_>> = BTreeMap::new();
    for list in lists(observed) {
        let mut here: Vec<(&str, &str)> = Vec::new();
        for task in list
            .threads
            .iter()
            .filter(|task| task.state == State::Uninterruptible)
        {
            let key = (
                program(&task.name),
                task.kernel_function.as_deref().map_or("", plain),
            );
            let group = groups.entry(key).or_default();
            group.tasks += 1;
            if task.kernel_stack.is_some() {
                group.stack = Some(task);
            }
            if let Some(file) = &task.file {
                group.file = group
                    .file
                    .or(Some(file.path.as_str()).filter(|path| !path.is_empty()));
                group
                    .disks
                    .extend(Some(file.disk.as_str()).filter(|disk| !disk.is_empty()));
            }
            if !here.contains(&key) {
                here.push(key);
                group.lists += 1;
            }
        }
    }
    let mut all: Vec<BlockedTasks> = groups
        .into_iter()
        .map(|((process, function), group)| {
            let frames: Vec<String> = match group.stack.and_then(|task| task.kernel_stack) {
                Some(stack) => observed.stacks.frames(stack).map(str::to_owned).collect(),
                None => Some(function)
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
            };
            let cause = match frames.is_empty() {
                true => Cause::Unknown,
                false => classify::of_task(TaskState::Uninterruptible, &frames, None).cause,
            };
            BlockedTasks {
                process: process.to_owned(),
                function: Some(function).filter(|name| !name.is_empty()).map(str::to_owned),
                file: group.file.map(str::to_owned),
                disks: group.disks.into_iter().map(str::to_owned).collect(),
                cause,
                tasks: group.tasks as f64 / count as f64,
                share: group.lists as f64 / count as f64,
            }
        })
        .collect();
    all.sort_by(|a, b| b.tasks.total_cmp(&a.tasks));
    all
}

/// `Load 37 on 2 CPUs, of it 34 in disk.sync on sdb by sendmail; CPU 69 % idle`.
pub(super) fn sentence(load: Option<&Load>, blocked: &[BlockedTasks], cpus: Option<u32>) -> String {
    let machine = cpus.map(|cpus| format!(" on {}", say::several(u64::from(cpus), "CPU")));
    let machine = machine.unwrap_or_default();
    let Some(load) = load else {
        return format!("The load average is not known{machine}");
    };
    let one = load.one;
    let mut text = match one < 10.0 {
        true => format!("Load {one:.1}{machine}"),
        false => format!("Load {one:.0}{machine}"),
    };
    let (running, in_d) = (load.running.unwrap_or(0.0), load.blocked.unwrap_or(0.0));
    let mut faded = false;
    if load.running.is_some() && one >= FADES * (running + in_d) && one - running - in_d >= FADES_BY {
        text.push_str(", of the last minute; now");
        faded = true;
    } else if running.max(in_d) >= WORTH {
        text.push_str(", of it");
    }
    let mut parts = Vec::new();
    if in_d >= WORTH {
        parts.push(format!("{in_d:.0} {}", place(in_d, blocked)));
    }
    if running >= WORTH {
        parts.push(format!(
            "{running:.0} running or runnable{}",
            whose(load, running)
        ));
    }
    if parts.is_empty() && faded {
        parts.push("nothing runs or is blocked".to_owned());
    }
    if !parts.is_empty() {
        text.push_str(&format!(" {}", parts.join(" and ")));
    }
    if let Some(idle) = load.idle_percent {
        text.push_str(&format!("; CPU {idle:.0} % idle"));
        let waits = load.iowait_percent.filter(|waits| *waits >= MIN_IOWAIT_PERCENT);
        if let Some(waits) = waits {
            text.push_str(&format!(", {waits:.0} % idle with a disk request open"));
        }
    }
    text
}

/// ` (9 of rustc, 2 of cc)`: whose they are, where that is more than chance.
fn whose(load: &Load, running: f64) -> String {
    let found = load
        .runners
        .iter()
        .filter(|one| one.tasks >= MIN_TASKS)
        .take(NAMED);
    let names: Vec<String> = found
        .map(|one| format!("{:.0} of {}", one.tasks, one.process))
        .collect();
    let first = load.runners.first();
    match (names.is_empty(), first) {
        (false, _) => format!(" ({})", names.join(", ")),
        // It is one and the same that runs all the time.
        (true, Some(first)) if first.tasks >= running * HALF => format!(" ({})", first.process),
        (true, _) => String::new(),
    }
}

/// `in disk.sync on sdb by sendmail`: what most of them wait for, and who. Where that is not known, at which function.
fn place(all: f64, blocked: &[BlockedTasks]) -> String {
    let moving = || blocked.iter().filter(|one| one.cause != Cause::ProcessFrozen);
    let what = |one: &BlockedTasks| match (one.cause, &one.function) {
        (Cause::Unknown, Some(function)) => format!("at {function}"),
        (Cause::Unknown, None) => String::new(),
        (cause, _) => format!("in {}", cause.id()),
    };
    let mut by_place: BTreeMap<String, f64> = BTreeMap::new();
    for one in moving() {
        *by_place.entry(what(one)).or_default() += one.tasks;
    }
    let most = by_place.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((place, tasks)) = most else {
        return "blocked in the kernel".to_owned();
    };
    let same: Vec<&BlockedTasks> = moving().filter(|one| what(one) == place).collect();
    let disks: BTreeSet<&str> = same
        .iter()
        .flat_map(|one| &one.disks)
        .map(String::as_str)
        .collect();
    let disks: Vec<&str> = disks.into_iter().collect();
    let on = match disks.as_slice() {
        [] => String::new(),
        disks if disks.len() <= NAMED => format!(" on {}", disks.join(" and ")),
        disks => format!(" on {} disks", disks.len()),
    };
    let mut names: Vec<&str> = Vec::new();
    for one in &same {
        if !names.contains(&one.process.as_str()) {
            names.push(&one.process);
        }
    }
    let others = if names.len() > NAMED { " and others" } else { "" };
    names.truncate(NAMED);
    let by = format!("by {}{others}", names.join(", "));
    let is_all = tasks >= all * MIN_SAME_SHARE || tasks.round() >= all.round();
    match (place.is_empty(), is_all) {
        (true, _) => format!("blocked in the kernel (D) {by}"),
        (false, true) => format!("{place}{on} {by}"),
        (false, false) if tasks < all * HALF => "blocked in the kernel (D), at several places".to_owned(),
        (false, false) => format!("blocked in the kernel (D), {tasks:.0} of them {place}{on} {by}"),
    }
}
