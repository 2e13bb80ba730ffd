//! CPUs that are short, by figures: more tasks are ready than there are CPUs, or the hypervisor runs something else.
//!
//! In: [`Observed`]. Out: the verdict of `cpu-contended` on artefacts.

use super::figures::{self, Intervals, mean, often, span};
use super::{Extend, RuleId, Run, pressures, say};
use holdup_evidence::observed::{Awaited, Metric, SeenWait, Short};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Percent of CPU time taken by the hypervisor from which the machine is noticeably slower: a tenth.
pub(crate) const MIN_STEAL_PERCENT: f64 = 10.0;

/// Tasks ready to run, for each CPU, from which they wait for turns. The tasks that run are counted with them.
const MIN_RUNNABLE_PER_CPU: f64 = 1.5;

/// Percent of CPU time, idle or waiting for disks, up to which there is none to spare.
pub(crate) const MAX_IDLE_PERCENT: f64 = 10.0;

/// Percent of the time in which some task was ready and had no CPU, from which CPUs are short: half.
pub(crate) const MIN_PRESSURE_PERCENT: f64 = 50.0;

/// Percent of CPU time in interrupts from which they are what keeps the CPU busy: the kernel's own threads for them take over once
/// they come faster than they are served.
pub(crate) const MIN_INTERRUPTS_PERCENT: f64 = 30.0;

/// Percent of CPU time in work of low priority from which that is what keeps the CPU busy: it gives way to anything else.
const MIN_NICE_PERCENT: f64 = 50.0;

/// The verdict.
pub(super) fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let machine = |metric| figures::of(observed, metric).filter(|cpu| cpu.of().is_empty());
    let stolen = machine(Metric::CpuStealPercent)
        .find(|steal| often(steal.from(MIN_STEAL_PERCENT).len(), steal.count()));
    let mut findings: Vec<Finding> = stolen.map(|steal| by_hypervisor(&steal)).into_iter().collect();
    let mut queues = machine(Metric::ProcessesRunnable).peekable();
    let Some(first) = queues.peek().copied() else {
        if !findings.is_empty() {
            return Verdict::Fires(findings);
        }
        return without_queue(observed);
    };
    let Some(cpus) = run.facts.cpus.filter(|cpus| *cpus > 0) else {
        if !findings.is_empty() {
            return Verdict::Fires(findings);
        }
        return without_cpus(&first);
    };
    let ready = MIN_RUNNABLE_PER_CPU * f64::from(cpus);
    let short = queues.find(|queue| {
        let spare = spare(queue);
        let mut high = queue.from(ready);
        high.retain(|report| spare(*report).is_none_or(|spare| spare <= MAX_IDLE_PERCENT));
        often(high.len(), queue.count())
    });
    let machine = say::several(u64::from(cpus), "CPU");
    findings.extend(short.map(|queue| {
        let mut finding = ready_to_run(&queue, &machine);
        if observed.waits.as_deref().is_some_and(|waits| !is_late(waits)) {
            finding.severity = Severity::Note;
        }
        finding
    }));
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    if doubtful(&first) {
        return Verdict::CannotTell(figures::doubted(WHAT));
    }
    Verdict::Clear(format!(
        "{} tasks are runnable at a time, of {}",
        span(&first.values(), 0),
        say::several(u64::from(cpus), "CPU")
    ))
}

/// For how long somebody waits for an answer, nanoseconds, so that it may be late: what is shorter is what any answer takes.
const MIN_LATE_NS: Ns = 150_000_000;

/// Whether anybody waits for a CPU, or for an answer that nobody has begun to work on: a machine whose CPUs a build uses up does not lack them if
/// all are answered in time.
fn is_late(waits: &[SeenWait]) -> bool {
    waits.iter().any(|wait| match (wait.on, &wait.short) {
        (Awaited::Cpu | Awaited::Turn, _) => true,
        (Awaited::Answer, Short::Answer(owed)) => (owed.unread || owed.came) && wait.ns >= MIN_LATE_NS,
        _ => false,
    })
}

/// What is asked for where a single report of top is all there is.
const WHAT: &str = "how many tasks wait for a CPU, and how idle it is";

/// Whether what the CPU did meanwhile may be an average since boot: then the queue was looked at for an instant.
fn doubtful(queue: &Intervals<'_>) -> bool {
    queue
        .other(Metric::CpuIdlePercent, "")
        .is_some_and(|idle| idle.doubtful())
}

/// Where nothing tells how many are ready, none waits for a CPU that has time to spare.
fn without_queue(observed: &Observed) -> Verdict {
    let what = "how many tasks wait for a CPU (`vmstat 1 5`, `sar -q`)";
    let idle = figures::of(observed, Metric::CpuIdlePercent).find(|cpu| cpu.of().is_empty());
    if let Some(pressure) = pressures::high(observed, Metric::PressureCpuSomePercent, MIN_PRESSURE_PERCENT) {
        return Verdict::Fires(vec![under_pressure(&pressure)]);
    }
    let Some(idle) = idle else {
        if let Some(most) = pressures::most(observed, Metric::PressureCpuSomePercent) {
            return Verdict::Clear(format!(
                "at least one task waited for a CPU at most {most:.1} % of the time"
            ));
        }
        return Verdict::CannotTell(figures::missing(observed, Metric::ProcessesRunnable, what));
    };
    let spare = spare(&idle);
    let spare: Vec<f64> = idle.points().filter_map(|point| spare(point.report)).collect();
    let none = spare.iter().filter(|spare| **spare <= MAX_IDLE_PERCENT).count();
    if often(none, spare.len()) {
        let when = match none == spare.len() {
            true => String::new(),
            false => format!(" in {none} of {}", say::several(spare.len() as u64, "interval")),
        };
        return Verdict::Fires(vec![used_up(&idle, &when)]);
    }
    if idle.doubtful() {
        return Verdict::CannotTell(figures::doubted(WHAT));
    }
    let least = spare.iter().copied().fold(100.0, f64::min);
    match none {
        0 => Verdict::Clear(format!("the CPU is unused for at least {least:.0} % of its time")),
        _ => Verdict::Clear(format!(
            "the CPU is unused for less than {MAX_IDLE_PERCENT:.0} % of its time in {none} of {}",
            say::several(spare.len() as u64, "interval")
        )),
    }
}

/// Tasks that wait for a CPU by the kernel's own account.
fn under_pressure(pressure: &pressures::Pressure<'_>) -> Finding {
    Finding::without_duration(
        RuleId::CpuContended.id(),
        Severity::Warning,
        format!(
            "At least one task was runnable without a CPU {}{}",
            pressure.words(),
            pressure.place()
        ),
        Cause::SchedRunqueue,
        pressure.evidence("waiting for a CPU"),
    )
    .confidence(Confidence::Proved)
    .remedy(
        Remedy::safe("list the processes that use the CPU, and count the waiting tasks")
            .with_command("pidstat -u 1 5; vmstat 1 5"),
    )
    .remedy(Remedy::changing(
        "run less at a time, or lower the priority of work that can wait (nice, cpu.weight); for a cgroup, \
         raise its quota",
        "work of lower priority takes longer",
    ))
}

/// A CPU that is used up, where nothing tells whether anybody waits for it.
fn used_up(idle: &Intervals<'_>, when: &str) -> Finding {
    let share = span(&idle.values(), 0);
    let title = format!("The CPU is used up{when}: {share} % idle");
    let first = idle.evidence(format!(
        "the CPU is {share} % idle; the number of waiting tasks is not known (`vmstat 1 5`, `sar -q`)"
    ));
    Finding::without_duration(
        RuleId::CpuContended.id(),
        Severity::Note,
        title,
        Cause::SchedRunqueue,
        first,
    )
    .and_if(programs(idle))
    .and_if(leader(idle))
    .remedy(
        Remedy::safe("list the processes that use it, and count the waiting tasks")
            .with_command("pidstat -u 1 5; vmstat 1 5"),
    )
}

/// Where the number of CPUs is not known: a machine without a moment to spare has no more of them than tasks that are
/// ready, so that much longer queues at other times are queues.
fn without_cpus(queue: &Intervals<'_>) -> Verdict {
    /// Queues longer than the shortest by so much are no chance.
    const LONGER: f64 = 1.25;
    /// Percent of CPU time to spare up to which each CPU ran something.
    const NOTHING: f64 = 2.0;
    let spare = spare(queue);
    let left: Vec<f64> = queue.points().filter_map(|point| spare(point.report)).collect();
    let least = left.iter().copied().fold(100.0, f64::min);
    if doubtful(queue) && least > MAX_IDLE_PERCENT {
        return Verdict::CannotTell(figures::doubted(WHAT));
    }
    if !left.is_empty() && least > MAX_IDLE_PERCENT {
        return Verdict::Clear(format!(
            "the CPU is unused for at least {least:.0} % of its time in {}",
            say::several(left.len() as u64, "interval")
        ));
    }
    let full = queue
        .points()
        .filter(|point| spare(point.report).is_some_and(|spare| spare <= NOTHING));
    let at_most = full
        .map(|point| point.value)
        .filter(|ready| *ready >= 1.0)
        .reduce(f64::min);
    if let Some(at_most) = at_most
        && often(queue.from(at_most * LONGER).len(), queue.count())
    {
        let cpus = format!("at most {}", say::several(at_most as u64, "CPU"));
        return Verdict::Fires(vec![ready_to_run(queue, &cpus).confidence(Confidence::Suspect)]);
    }
    Verdict::CannotTell(format!(
        "how many CPUs there are: {} tasks are runnable at a time (nproc, or the banner of iostat)",
        span(&queue.values(), 0)
    ))
}

/// What is idle or waits for disks, in a report.
fn spare<'a>(queue: &Intervals<'a>) -> impl Fn(u32) -> Option<f64> + use<'a> {
    let (idle, waits) = (
        queue.other(Metric::CpuIdlePercent, ""),
        queue.other(Metric::CpuIowaitPercent, ""),
    );
    move |report| {
        let of = |cpu: Option<Intervals<'_>>| cpu.and_then(|cpu| cpu.in_reports(&[report]).first().copied());
        of(idle).map(|idle| idle + of(waits).unwrap_or(0.0))
    }
}

/// What a program uses of one CPU, percent, from which a title names it: with less it is one of many.
const MIN_LEADER_PERCENT: f64 = 50.0;

/// Processes and threads that are started a second, from which that alone costs a good part of a CPU: starting and ending a program takes
/// about a millisecond.
const MIN_STARTED_PER_SECOND: f64 = 100.0;

fn ready_to_run(queue: &Intervals<'_>, machine: &str) -> Finding {
    let ready = span(&queue.values(), 0);
    let nice = queue
        .other(Metric::CpuNicePercent, "")
        .map(|nice| mean(&nice.values()));
    let gives_way = nice.is_some_and(|nice| nice >= MIN_NICE_PERCENT);
    let severity = if gives_way {
        Severity::Note
    } else {
        Severity::Warning
    };
    let low = nice.filter(|_| gives_way).map(|nice| {
        queue.evidence(format!(
            "{nice:.0} % of it is work of low priority (nice), which yields to other work"
        ))
    });
    let most = figures::leader(queue.observed, Metric::ProcessCpuPercent);
    let most = most.filter(|most| mean(&most.values()) >= MIN_LEADER_PERCENT);
    let uses = most.map_or_else(String::new, |most| {
        format!("; {}: {:.0} % of a CPU", most.of(), mean(&most.values()))
    });
    let started = queue.other(Metric::TasksStartedPerSecond, "");
    let started = started.filter(|started| mean(&started.values()) >= MIN_STARTED_PER_SECOND);
    let started = started.map(|started| {
        started.evidence(format!(
            "{} processes and threads are started a second",
            span(&started.values(), 0)
        ))
    });
    let idle = queue
        .other(Metric::CpuIdlePercent, "")
        .map(|idle| idle.evidence(format!("the CPU is {} % idle", span(&idle.values(), 0))));
    Finding::without_duration(
        RuleId::CpuContended.id(),
        severity,
        format!("{ready} tasks are runnable at a time, for {machine}: the CPU is short{uses}"),
        Cause::SchedRunqueue,
        queue.evidence(format!(
            "{ready} tasks run or are runnable, {machine}, in {}",
            say::several(queue.count() as u64, "interval")
        )),
    )
    .and_if(idle)
    .and_if(programs(queue))
    .and_if(low)
    .and_if(leader(queue))
    .and_if(started)
    .remedy(Remedy::safe("list the processes that use it").with_command("pidstat -u 1 5"))
    .remedy(Remedy::changing(
        "run less at a time, or lower the priority of work that can wait (nice, cpu.weight)",
        "work of lower priority takes longer",
    ))
    .remedy(Remedy::pointless("faster disks: no task waits for them"))
}

/// What the CPU does.
fn programs(beside: &Intervals<'_>) -> Option<Evidence> {
    let user = beside.other(Metric::CpuUserPercent, "")?;
    let system = beside.other(Metric::CpuSystemPercent, "")?;
    let (own, kernel) = (mean(&user.values()), mean(&system.values()));
    Some(user.evidence(format!(
        "the CPU spends {own:.0} % in programs and {kernel:.0} % in the kernel"
    )))
}

/// Who uses it most, where pidstat or its like is there.
fn leader(beside: &Intervals<'_>) -> Option<Evidence> {
    let leader = figures::leader(beside.observed, Metric::ProcessCpuPercent)?;
    let share = mean(&leader.values());
    (share >= 1.0).then(|| leader.evidence(format!("{} uses the most: {share:.0} % of a CPU", leader.of())))
}

fn by_hypervisor(steal: &Intervals<'_>) -> Finding {
    let stolen = span(&steal.values(), 0);
    Finding::without_duration(
        RuleId::CpuContended.id(),
        Severity::Warning,
        format!("The hypervisor ran something else on this machine's CPUs {stolen} % of the time"),
        Cause::SchedSteal,
        steal.evidence(format!(
            "{stolen} % of CPU time were stolen; at least {MIN_STEAL_PERCENT:.0} % in {} of {}",
            steal.from(MIN_STEAL_PERCENT).len(),
            say::several(steal.count() as u64, "interval")
        )),
    )
    .confidence(Confidence::Proved)
    .remedy(Remedy::safe(
        "move the guest to a host with less load, or give it dedicated CPUs; see whether its credits are \
         spent",
    ))
}
