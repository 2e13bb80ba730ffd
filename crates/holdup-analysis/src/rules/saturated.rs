//! CPUs that are short, by figures: more tasks are ready than there are CPUs, or the hypervisor runs something else.
//!
//! In: [`Observed`]. Out: the verdict of `cpu-contended` on artefacts.

use super::figures::{self, Intervals, mean, often, told};
use super::{Extend, RuleId, Run, say};
use crate::finding::{Confidence, Finding, Remedy, Severity, Verdict};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};

/// Percent of CPU time taken by the hypervisor from which the machine is noticeably slower: a tenth.
const STOLEN: f64 = 10.0;

/// Tasks ready to run, for each CPU, from which they wait for turns. The tasks that run are counted with them.
const READY: f64 = 1.5;

/// Percent of CPU time, idle or waiting for disks, up to which there is none to spare.
const SPARE: f64 = 10.0;

/// Percent of CPU time in work of low priority from which that is what keeps the CPU busy: it gives way to anything else.
const NICE: f64 = 50.0;

/// The verdict.
pub(super) fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let machine = |metric| figures::of(observed, metric).filter(|cpu| cpu.of().is_empty());
    let stolen = machine(Metric::CpuStealPercent).find(|steal| often(steal.from(STOLEN).len(), steal.count()));
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
    let ready = READY * f64::from(cpus);
    let short = queues.find(|queue| {
        let spare = spare(queue);
        let mut high = queue.from(ready);
        high.retain(|report| spare(*report).is_none_or(|spare| spare <= SPARE));
        often(high.len(), queue.count())
    });
    findings.extend(short.map(|queue| ready_to_run(&queue, cpus)));
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    Verdict::Clear(format!(
        "{} tasks are ready to run at a time, of {}",
        told(&first.values(), 0),
        say::several(u64::from(cpus), "CPU")
    ))
}

/// Where nothing tells how many are ready, none waits for a CPU that has time to spare.
fn without_queue(observed: &Observed) -> Verdict {
    let what = "how many tasks wait for a CPU (`vmstat 1 5`, `sar -q`)";
    let idle = figures::of(observed, Metric::CpuIdlePercent).find(|cpu| cpu.of().is_empty());
    let Some(idle) = idle else {
        return Verdict::CannotTell(figures::missing(observed, Metric::ProcessesRunnable, what));
    };
    let spare = spare(&idle);
    let spare = idle.points().filter_map(|point| spare(point.report));
    match spare.reduce(f64::min).filter(|least| *least > SPARE) {
        Some(least) => Verdict::Clear(format!("the CPU has at least {least:.0} % of its time to spare")),
        None => Verdict::CannotTell(format!("{what}; the CPU is {} % idle", told(&idle.values(), 0))),
    }
}

/// Without the number of CPUs a queue says nothing, but where none can be longer than it.
fn without_cpus(queue: &Intervals<'_>) -> Verdict {
    let idle = queue.other(Metric::CpuIdlePercent, "").map(|idle| idle.values()).unwrap_or_default();
    let least = idle.iter().copied().fold(100.0, f64::min);
    if !idle.is_empty() && least > SPARE {
        return Verdict::Clear(format!("the CPU is at least {least:.0} % idle in {} intervals", idle.len()));
    }
    Verdict::CannotTell(format!(
        "how many CPUs there are: {} tasks are ready to run at a time (nproc, or the banner of iostat)",
        told(&queue.values(), 0)
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

fn ready_to_run(queue: &Intervals<'_>, cpus: u32) -> Finding {
    let ready = told(&queue.values(), 0);
    let machine = say::several(u64::from(cpus), "CPU");
    let nice = queue.other(Metric::CpuNicePercent, "").map(|nice| mean(&nice.values()));
    let gives_way = nice.is_some_and(|nice| nice >= NICE);
    let severity = if gives_way { Severity::Note } else { Severity::Warning };
    let share = |metric| queue.other(metric, "").map(|cpu| mean(&cpu.values()));
    let (user, system) = (share(Metric::CpuUserPercent), share(Metric::CpuSystemPercent));
    let used = user.zip(system).map(|(user, system)| {
        queue.evidence(format!("the CPU spends {user:.0} % in programs and {system:.0} % in the kernel"))
    });
    let low = nice.filter(|_| gives_way).map(|nice| {
        queue.evidence(format!("{nice:.0} % of it is work of low priority (nice), which gives way to other work"))
    });
    let leader = figures::leader(queue.observed, Metric::ProcessCpuPercent);
    let leader = leader.filter(|leader| leader.most() >= 1.0).map(|leader| {
        let share = mean(&leader.values());
        leader.evidence(format!("{} uses the most: {share:.0} % of a CPU", leader.of()))
    });
    let idle = queue.other(Metric::CpuIdlePercent, "").map(|idle| {
        idle.evidence(format!("the CPU is {} % idle", told(&idle.values(), 0)))
    });
    Finding::without_duration(
        RuleId::CpuContended.id(),
        severity,
        format!("{ready} tasks are ready to run at a time, for {machine}: the CPU is short"),
        Cause::SchedRunqueue,
        queue.evidence(format!(
            "{ready} tasks run or are ready to, {machine}, in {}",
            say::several(queue.count() as u64, "interval")
        )),
    )
    .and_if(idle)
    .and_if(used)
    .and_if(low)
    .and_if(leader)
    .remedy(Remedy::safe("see who uses it").with_command("pidstat -u 1 5"))
    .remedy(Remedy::changing(
        "run less at a time, or give what can wait a lower priority (nice, cpu.weight)",
        "what has the lower priority takes longer",
    ))
    .remedy(Remedy::pointless("faster disks: nobody waits for them here"))
}

fn by_hypervisor(steal: &Intervals<'_>) -> Finding {
    let stolen = told(&steal.values(), 0);
    Finding::without_duration(
        RuleId::CpuContended.id(),
        Severity::Warning,
        format!("The hypervisor ran something else on this machine's CPUs {stolen} % of the time"),
        Cause::SchedSteal,
        steal.evidence(format!(
            "{stolen} % of CPU time were stolen; at least {STOLEN:.0} % in {} of {}",
            steal.from(STOLEN).len(),
            say::several(steal.count() as u64, "interval")
        )),
    )
    .confidence(Confidence::Proved)
    .remedy(Remedy::safe(
        "move the guest to a host with less on it, or give it CPUs of its own; see whether its credits are spent",
    ))
}
