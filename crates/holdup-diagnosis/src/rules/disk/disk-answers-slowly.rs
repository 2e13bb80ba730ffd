//! A disk takes long for a request although it is not busy.

use crate::rules::figures::{Intervals, mean, often, span};
use crate::rules::{Extend, Generality, Rule, RuleId, Run, figures, fires, say};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Milliseconds a request from which it took long: five times what a disk that turns needs for the worst seek.
pub(crate) const MIN_SLOW_MS: f64 = 100.0;

/// Percent of an interval with a request in flight up to which the disk had time to spare.
const MAX_BUSY_PERCENT: f64 = 80.0;

/// Requests a second from which a mean is one: of fewer, a disk that had to spin up is all there is.
pub(crate) const MIN_REQUESTS_PER_SECOND: f64 = 2.0;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::DiskAnswersSlowly, check)
    .about("a disk is slow to answer although it is not busy")
    .causes(&[Cause::DiskRead])
    .generality(Generality::General)
    .explains(&[RuleId::TasksStallForIo]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    // What is written is written back by the kernel in bursts that nobody waits for; reads are waited for.
    let waits = [Metric::DiskReadWaitMs, Metric::DiskWaitMs];
    let all: Vec<Intervals<'_>> = waits
        .into_iter()
        .flat_map(|metric| figures::of(observed, metric))
        .collect();
    let Some(longest) = all.iter().max_by(|a, b| a.most().total_cmp(&b.most())) else {
        let what = "how long a disk takes for a request (`iostat -x`: await)";
        return Verdict::CannotTell(figures::missing(observed, Metric::DiskWaitMs, what));
    };
    let slow = all.iter().map(|disk| (disk, slow_reports(disk)));
    let slow = slow.filter(|(disk, reports)| often(reports.len(), disk.count()));
    match slow.max_by_key(|(_, reports)| reports.len()) {
        Some((disk, reports)) => fires(finding(disk, &reports)),
        None => Verdict::Clear(format!(
            "a read took {MIN_SLOW_MS:.0} ms or more from a disk that was not busy in {} of {} ({} took the \
             longest, {:.1} ms)",
            all.iter().map(|disk| slow_reports(disk).len()).max().unwrap_or(0),
            say::several(longest.count() as u64, "interval"),
            longest.of(),
            longest.most()
        )),
    }
}

/// The reports in which reads took long although the disk had time to spare.
fn slow_reports(disk: &Intervals<'_>) -> Vec<u32> {
    let value = |metric, report| {
        let beside = disk.beside(metric)?;
        beside.in_reports(&[report]).first().copied()
    };
    let reads_most = |report| {
        let (reads, writes) = (
            value(Metric::DiskReadsPerSecond, report).unwrap_or(0.0),
            value(Metric::DiskWritesPerSecond, report).unwrap_or(0.0),
        );
        let only_reads = disk.series.metric == Metric::DiskReadWaitMs;
        reads >= MIN_REQUESTS_PER_SECOND && (only_reads || reads > writes)
    };
    let spare = |report| value(Metric::DiskUtilPercent, report).is_some_and(|util| util < MAX_BUSY_PERCENT);
    let long = disk.from(MIN_SLOW_MS).into_iter();
    long.filter(|report| reads_most(*report) && spare(*report))
        .collect()
}

fn finding(disk: &Intervals<'_>, reports: &[u32]) -> Finding {
    let name = disk.of();
    let waits = disk.in_reports(reports);
    let beside = |metric| {
        disk.beside(metric)
            .map(|of| of.in_reports(reports))
            .unwrap_or_default()
    };
    let util = beside(Metric::DiskUtilPercent);
    let title = format!(
        "{name} takes {} ms for a read although it is only {} % busy",
        span(&waits, 0),
        span(&util, 0)
    );
    let first = disk.evidence(format!(
        "{name}: {} ms a request in {} of {}, {} reads/s, {:.1} in flight at a time",
        span(&waits, 1),
        reports.len(),
        say::several(disk.count() as u64, "interval"),
        span(&beside(Metric::DiskReadsPerSecond), 0),
        mean(&beside(Metric::DiskQueueLength))
    ));
    let resource = Resource {
        kind: ResourceKind::Device,
        name: name.to_owned(),
        ..Resource::default()
    };
    let queue = mean(&beside(Metric::DiskQueueLength)) >= 1.0;
    let text = match queue {
        true => {
            "requests come in bursts and queue behind each other, or a limit (of a cloud volume, a \
             hypervisor or a cgroup) delays them"
        }
        false => {
            "each single request is slow: a disk that spins up or repairs, a path that fails over, or a limit"
        }
    };
    Finding::without_duration(RULE.id.id(), Severity::Warning, title, Cause::DiskRead, first)
        .about(resource, Asker::default())
        .and_if(Some(disk.evidence(text)))
        .confidence(Confidence::Suspect)
        .remedy(Remedy::safe(
            "compare with the limits of the volume, and of cgroups (io.max, blkio.throttle)",
        ))
        .remedy(
            Remedy::safe("check whether the kernel reports errors or resets of it")
                .with_command("dmesg -T | grep -iE 'error|reset|timeout'"),
        )
        .remedy(Remedy::pointless(
            "moving other work off this disk: it is not busy",
        ))
}
