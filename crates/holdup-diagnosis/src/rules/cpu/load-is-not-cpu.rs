//! The load average is high, and it is tasks that wait and not CPUs that are short.

use crate::rules::blocked::Series;
use crate::rules::figures::{Intervals, mean, median, span};
use crate::rules::{Extend, Generality, Rule, RuleId, Run, blocked, figures, fires, say};
use holdup_evidence::observed::{Metric, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Load from which it is worth a word at all: less is a few tasks on any machine.
pub(crate) const HIGH: f64 = 4.0;

/// Load for each CPU from which people call it high: twice as many tasks as can run.
pub(crate) const HIGH_EACH: f64 = 2.0;

/// Part of the load that blocked tasks must make up to be what it is.
const MIN_SHARE: f64 = 0.5;

/// Percent of the CPUs' time in wait for disks from which it is reported with the idle time: less is in the rounding.
const MIN_IOWAIT_PERCENT: f64 = 5.0;

/// Percent of the CPUs' time, idle or waiting for disks, from which tasks beyond the number of CPUs do not want a CPU:
/// the scheduler would have given them one.
pub(crate) const MIN_IDLE_PERCENT: f64 = 30.0;

/// Lists of tasks from which they tell of now: one may be of an odd moment.
const MIN_LISTS: usize = 2;

/// Percent up to which the CPUs have no time to spare.
const MAX_IDLE_PERCENT: f64 = 10.0;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::LoadIsNotCpu, check)
    .about("the load average is high, but the CPUs are partly idle")
    .causes(&[Cause::Unknown])
    .generality(Generality::Describes)
    .explains(&[RuleId::TasksPileUp])
    .intermediate();

/// What the artefacts tell of the load.
struct LoadFigures<'a> {
    load: Intervals<'a>,
    /// The median of its values.
    value: f64,
    /// The CPUs' time to spare, percent, and what shows it.
    spare: Option<(f64, Intervals<'a>)>,
    /// Blocked tasks by a list of them.
    listed: Option<Series<'a>>,
    /// Blocked tasks by vmstat or sar.
    counted: Option<Intervals<'a>>,
}

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let all = figures::of(observed, Metric::LoadAverage1);
    let Some(load) = all.max_by(|a, b| median(&a.values()).total_cmp(&median(&b.values()))) else {
        return Verdict::CannotTell("the load average: `uptime`, /proc/loadavg, `top -b`".to_owned());
    };
    let value = median(&load.values());
    let cpus = run.facts.cpus.filter(|cpus| *cpus > 0).map(f64::from);
    let high = cpus.map_or(HIGH, |cpus| HIGH.max(HIGH_EACH * cpus));
    if value < high {
        let machine = cpus.map(|cpus| format!(", of {}", say::several(cpus as u64, "CPU")));
        return Verdict::Clear(format!("the load is {value:.1}{}", machine.unwrap_or_default()));
    }
    let found = LoadFigures {
        load,
        value,
        spare: spare(observed),
        listed: blocked::series(observed).filter(|series| series.whole),
        counted: machine(observed, Metric::ProcessesBlocked),
    };
    let now = now(observed);
    if let Some((tasks, lists)) = now.filter(|(tasks, _)| *tasks < MIN_SHARE * value) {
        return Verdict::Clear(format!(
            "the load of {value:.0} covers the last minutes: {tasks:.0} tasks run or are blocked now, in \
             {lists} lists"
        ));
    }
    let listed = found
        .listed
        .as_ref()
        .map_or(0.0, |series| median(&series.blocked()));
    let counted = found.counted.map_or(0.0, |blocked| median(&blocked.values()));
    // While the average still rises there are more than it tells, and those that run may be most of them.
    let all = now.map_or(value, |(tasks, _)| tasks.max(value));
    let enough = |blocked: f64| blocked >= MIN_SHARE * all;
    let idle = found
        .spare
        .as_ref()
        .filter(|(_, idle)| !idle.doubtful())
        .map(|(spare, _)| *spare);
    if enough(listed)
        || enough(counted)
        || (cpus.is_some() && idle.is_some_and(|spare| spare >= MIN_IDLE_PERCENT))
    {
        return fires(finding(&found, cpus));
    }
    match idle {
        Some(spare) if spare <= MAX_IDLE_PERCENT => Verdict::Clear(format!(
            "the load is {value:.0}, and the CPU is unused for {spare:.0} % of its time"
        )),
        _ => Verdict::CannotTell(missing(&found, cpus)),
    }
}

/// Tasks that ran or were blocked at a time in lists of all threads, and how many lists there are; `None` where one alone might
/// be of an odd moment.
fn now(observed: &Observed) -> Option<(f64, usize)> {
    let all = |list: &&Snapshot| list.kind == SnapshotKind::Kernel && list.states;
    let lists = observed.snapshots.iter().filter(all);
    let of_threads = lists.filter(|list| list.total.is_some() && list.of_threads == Some(true));
    let counts: Vec<f64> = of_threads
        .map(|list| {
            let counted = |state| matches!(state, State::Runnable | State::Uninterruptible);
            list.threads.iter().filter(|task| counted(task.state)).count() as f64
        })
        .collect();
    (counts.len() >= MIN_LISTS).then(|| (median(&counts), counts.len()))
}

/// What would tell of what the load is.
fn missing(figures: &LoadFigures<'_>, cpus: Option<f64>) -> String {
    let mut missing = Vec::new();
    if figures.spare.is_none() || figures.spare.as_ref().is_some_and(|(_, idle)| idle.doubtful()) {
        missing.push("how idle the CPUs are (`vmstat 1 5`)");
    }
    if cpus.is_none() {
        missing.push("how many CPUs there are (`nproc`, the banner of iostat)");
    }
    if figures.listed.is_none() {
        missing.push("which tasks are blocked (`ps -eLo pid,tid,stat,wchan:32,comm`)");
    }
    format!(
        "what the load of {:.0} is made of: {}",
        figures.value,
        missing.join(", ")
    )
}

fn machine(observed: &Observed, metric: Metric) -> Option<Intervals<'_>> {
    figures::of(observed, metric).find(|series| series.of().is_empty())
}

/// Time that is idle or in wait for disks, percent, and the figures that show it.
fn spare(observed: &Observed) -> Option<(f64, Intervals<'_>)> {
    let all = figures::of(observed, Metric::CpuIdlePercent).filter(|idle| idle.of().is_empty());
    // An only report of top is the worst of several.
    let idle = all.min_by_key(Intervals::doubtful)?;
    let waits = idle.other(Metric::CpuIowaitPercent, "");
    let waits = waits.map_or(0.0, |waits| mean(&waits.values()));
    Some((mean(&idle.values()) + waits, idle))
}

fn finding(found: &LoadFigures<'_>, cpus: Option<f64>) -> Finding {
    let value = found.value;
    let series = found
        .listed
        .as_ref()
        .filter(|series| median(&series.blocked()) > 0.0);
    let group = series.and_then(|series| series.largest(|_| true));
    let who = series.zip(group.as_ref());
    let blocked = series.map(|series| median(&series.blocked()));
    let mut parts = Vec::new();
    if let Some((_, group)) = who {
        let place = match group.function {
            "" => String::new(),
            function => format!(", {} of them at {function}", group.tasks.len()),
        };
        let count = blocked.unwrap_or(0.0);
        parts.push(format!(
            "{count:.0} tasks are blocked{place} ({})",
            blocked::most_named(&group.tasks)
        ));
    } else if let Some(counted) = found.counted.filter(|counted| counted.most() >= 1.0) {
        parts.push(format!("{} tasks are blocked", span(&counted.values(), 0)));
    }
    if let Some((spare, idle)) = &found.spare {
        // Time in wait for disks is the CPU's to spare, and some tools count it apart.
        parts.push(match *spare - mean(&idle.values()) < MIN_IOWAIT_PERCENT {
            true => format!("the CPU is {} % idle", span(&idle.values(), 0)),
            false => format!("the CPU is {spare:.0} % idle or waiting for disks"),
        });
    }
    let busy = found
        .spare
        .as_ref()
        .is_some_and(|(spare, idle)| *spare <= MAX_IDLE_PERCENT && !idle.doubtful());
    let title = match busy {
        true => format!(
            "The load of {value:.0} is mostly not CPU load: {}",
            parts.join(", ")
        ),
        false => format!("The load of {value:.0} is not CPU load: {}", parts.join(", ")),
    };
    let (cause, demoted) = match who {
        Some((series, group)) => {
            let channel = series.channel(group);
            (channel.cause, series.told_by_disk(channel))
        }
        None => (Cause::Unknown, disk_is_busy(found)),
    };
    let severity = if demoted {
        Severity::Note
    } else {
        Severity::Warning
    };
    let finding = Finding::without_duration(RULE.id.id(), severity, title, cause, first(found, cpus))
        .and_if(idle(found))
        .and_if(counted(found));
    match who {
        Some((series, group)) => {
            let finding = finding.and(series.evidence(group, ""));
            blocked::tell(finding, series, group).confidence(Confidence::Strong)
        }
        None => finding
            .confidence(Confidence::Suspect)
            .remedy(
                Remedy::safe("list the blocked tasks and where they wait")
                    .with_command("ps -eLo pid,tid,stat,wchan:32,comm | grep ' D'"),
            )
            .remedy(Remedy::pointless("more CPUs: the present ones are partly idle")),
    }
}

fn disk_is_busy(found: &LoadFigures<'_>) -> bool {
    /// Percent of an interval with a request in flight, as what calls a disk busy has it.
    const BUSY: f64 = 60.0;
    let mut disks = figures::of(found.load.observed, Metric::DiskUtilPercent);
    disks.any(|disk| figures::often(disk.from(BUSY).len(), disk.count()))
}

fn first(told_: &LoadFigures<'_>, cpus: Option<f64>) -> Evidence {
    let machine = cpus.map(|cpus| format!(" on {}", say::several(cpus as u64, "CPU")));
    told_.load.evidence(format!(
        "the load average is {}{}; it counts running, runnable and uninterruptible (D) tasks",
        span(&told_.load.values(), 1),
        machine.unwrap_or_default()
    ))
}

fn idle(figures: &LoadFigures<'_>) -> Option<Evidence> {
    let (spare, idle) = figures.spare.as_ref()?;
    Some(idle.evidence(format!(
        "the CPU is unused for {spare:.0} % of its time, idle or waiting for disks"
    )))
}

fn counted(found: &LoadFigures<'_>) -> Option<Evidence> {
    let counted = found.counted.filter(|counted| counted.most() >= 1.0)?;
    Some(counted.evidence(format!(
        "{} tasks are blocked for I/O at a time",
        span(&counted.values(), 0)
    )))
}
