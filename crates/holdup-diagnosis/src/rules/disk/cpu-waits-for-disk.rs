//! The CPU has hardly anything to do but to wait for disks, and no disk is busy all the time.

use crate::rules::figures::{Intervals, mean, often, span};
use crate::rules::{Extend, Generality, Rule, RuleId, Run, figures, fires, paging, say};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Percent of CPU time in iowait from which waiting for disks is what the machine mostly does: one task that always waits
/// is a quarter of four CPUs.
pub(crate) const WAITS: f64 = 30.0;

/// Percent of an interval with a request in flight from which a disk is worth naming.
const MIN_BUSY_PERCENT: f64 = 10.0;

/// Disks that are named.
const MAX_DISKS: usize = 3;

/// The part of the iowait that the listed disks have to be busy for at least, all together. While a CPU is in iowait, a request is
/// in flight at one of them, so that disks that are busy for less are not what it waits for. Half, because the kernel has counted
/// a disk's busy time in ticks since 5.0 and misses short requests.
const EXPLAINS: f64 = 0.5;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::CpuWaitsForDisk, check)
    .about("the CPU mostly waits for disks")
    .causes(&[Cause::DiskRead])
    .generality(Generality::Describes)
    .explains(&[RuleId::TasksStallForIo])
    .intermediate();

fn check(run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(cpu) = worst(observed, true).or_else(|| worst(observed, false)) else {
        let what = "how much of its time the CPU waits for disks (iowait)";
        return Verdict::CannotTell(figures::missing(observed, Metric::CpuIowaitPercent, what));
    };
    let high = cpu.from(WAITS);
    // Where there are figures of single CPUs alone, half of them must wait.
    let (waiting, all) = (waiting(observed), single(observed).count());
    if !cpu.of().is_empty() && waiting.saturating_mul(2) < all && !cpu.doubtful() {
        return Verdict::Clear(format!(
            "{waiting} of {all} CPUs wait for disks at least {WAITS:.0} % of the time"
        ));
    }
    if !often(high.len(), cpu.count()) {
        if cpu.doubtful() {
            return Verdict::CannotTell(figures::doubted("how much of its time the CPU waits for disks"));
        }
        return Verdict::Clear(format!(
            "iowait is at most {:.1} % in {}",
            cpu.most(),
            say::several(cpu.count() as u64, "interval")
        ));
    }
    fires(finding(run, &cpu, &high))
}

/// Of the machine or of a single CPU, that which waits most.
fn worst(observed: &Observed, machine: bool) -> Option<Intervals<'_>> {
    let most = |cpu: &Intervals<'_>| mean(&cpu.values());
    figures::of(observed, Metric::CpuIowaitPercent)
        .filter(|cpu| cpu.of().is_empty() == machine)
        .max_by(|a, b| most(a).total_cmp(&most(b)))
}

fn single(observed: &Observed) -> impl Iterator<Item = Intervals<'_>> {
    figures::of(observed, Metric::CpuIowaitPercent).filter(|cpu| !cpu.of().is_empty())
}

/// How many single CPUs mostly wait.
fn waiting(observed: &Observed) -> usize {
    single(observed)
        .filter(|cpu| often(cpu.from(WAITS).len(), cpu.count()))
        .count()
}

fn finding(run: &Run<'_>, cpu: &Intervals<'_>, high: &[u32]) -> Finding {
    let who = match cpu.of() {
        "" => "The CPU".to_owned(),
        of => figures::cpu_name(of),
    };
    let waits = span(&cpu.values(), 0);
    let (busy, too_idle) = match disks(cpu) {
        disks if is_explained(cpu) => (disks, Vec::new()),
        disks => (Vec::new(), disks),
    };
    let names: Vec<&str> = busy.iter().map(Intervals::of).collect();
    let title = match names.as_slice() {
        [] => format!("{who} waits for disks {waits} % of its time"),
        _ => format!(
            "{who} waits for disks {waits} % of its time: {}",
            names.join(", ")
        ),
    };
    let first = cpu.evidence(format!(
        "iowait is {waits} %; at least {WAITS:.0} % in {} of {}",
        high.len(),
        say::several(cpu.count() as u64, "interval")
    ));
    let resource = Resource {
        kind: ResourceKind::Device,
        name: names.first().map(|name| (*name).to_owned()).unwrap_or_default(),
        ..Resource::default()
    };
    let mut finding =
        Finding::without_duration(RULE.id.id(), Severity::Warning, title, Cause::DiskRead, first)
            .about(resource, Asker::default())
            .and_if(others(cpu, Metric::CpuUserPercent, "in its own code"))
            .and_if(several(cpu))
            .and_if(blocked(cpu));
    for disk in &busy {
        finding = finding.and(paging::disk(disk));
    }
    let paging = busy.iter().find(|disk| paging::looks_like_swap(disk));
    if let Some(disk) = paging.filter(|_| run.facts.swaps.is_empty()) {
        finding = finding
            .and(disk.evidence(format!(
                "suspected: {} is a swap disk, because its reads are one page and its writes a few pages. \
                 Then memory is short and the machine pages",
                disk.of()
            )))
            .remedy(
                Remedy::safe("list the swap disks, and read that output together with this")
                    .with_command("swapon --show"),
            );
    }
    for disk in &too_idle {
        finding = finding.and(disk.evidence(format!(
            "{} is busy {} % of the time, which is less than the iowait: the disks listed explain less than half of it; the list may \
             be cut, or a network file system is slow",
            disk.of(),
            span(&disk.values(), 0)
        )));
    }
    let unnamed = busy.is_empty();
    if unnamed {
        finding = finding.remedy(Remedy::safe("find the disk").with_command("iostat -xz 1 5"));
    }
    finding
        .confidence(if unnamed {
            Confidence::Suspect
        } else {
            Confidence::Strong
        })
        .remedy(
            Remedy::safe("list the waiting tasks").with_command("ps -eo pid,stat,wchan:24,comm | grep ' D'"),
        )
        .remedy(Remedy::pointless("more CPUs: they would be idle"))
}

/// The disks that do something meanwhile, busiest first.
fn disks<'a>(cpu: &Intervals<'a>) -> Vec<Intervals<'a>> {
    let own = figures::of(cpu.observed, Metric::DiskUtilPercent)
        .filter(|disk| disk.series.source == cpu.series.source);
    let mut disks: Vec<Intervals<'a>> = own.filter(|disk| disk.most() >= MIN_BUSY_PERCENT).collect();
    disks.sort_by(|a, b| mean(&b.values()).total_cmp(&mean(&a.values())));
    disks.truncate(MAX_DISKS);
    disks
}

/// Whether the disks are busy for as much of the time as the CPU waits for some.
fn is_explained(cpu: &Intervals<'_>) -> bool {
    let own = figures::of(cpu.observed, Metric::DiskUtilPercent)
        .filter(|disk| disk.series.source == cpu.series.source);
    let busy: f64 = own.map(|disk| mean(&disk.values())).sum();
    busy >= mean(&cpu.values()) * EXPLAINS
}

/// How many wait, where there are figures of single CPUs alone.
fn several(cpu: &Intervals<'_>) -> Option<Evidence> {
    let all = single(cpu.observed).count();
    let of_one = !cpu.of().is_empty() && all > 1;
    of_one.then(|| {
        let waiting = waiting(cpu.observed);
        cpu.evidence(format!(
            "{waiting} of {all} CPUs wait for disks at least {WAITS:.0} % of the time"
        ))
    })
}

fn others(cpu: &Intervals<'_>, metric: Metric, what: &str) -> Option<Evidence> {
    let other = cpu.other(metric, cpu.of())?;
    Some(other.evidence(format!("the CPU is {} % {what}", span(&other.values(), 0))))
}

fn blocked(cpu: &Intervals<'_>) -> Option<Evidence> {
    let blocked = cpu
        .other(Metric::ProcessesBlocked, "")
        .filter(|blocked| blocked.most() >= 1.0)?;
    Some(blocked.evidence(format!(
        "{} tasks are blocked for a disk at a time",
        span(&blocked.values(), 0)
    )))
}
