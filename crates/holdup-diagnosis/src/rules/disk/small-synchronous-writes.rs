//! Many writes, each made safe on disk before the next one begins.

use crate::rules::devices::device;
use crate::rules::{Extend, Generality, MATTERS, Need, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Waits from which it is a habit rather than one flush at the end. One commit of a file system with a journal blocks
/// two to four times, so that fewer than this is a handful of commits.
const MIN_WAITS: u64 = 10;

/// Bytes of one write up to which it is small: above, disks are limited by how much they move and not by how often.
const MAX_SMALL_WRITE_BYTES: u64 = 1 << 20;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SmallSynchronousWrites, check)
    .about("many small synchronous writes, one after the other")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::DiskSync, Cause::DiskWrite])
    .generality(Generality::General)
    .explains(&[RuleId::WritesWaitForDisk]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let groups = run.worth(waits, waits.split(|wait| device(run, wait).name), MATTERS);
    let findings: Vec<Finding> = groups
        .iter()
        .filter(|group| is_habit(group))
        .map(|group| finding(run, group))
        .collect();
    if findings.is_empty() {
        let (cause, times) = (waits.cause(), say::several(waits.count(), "wait"));
        return Verdict::Clear(format!(
            "{cause} took {} in {times}: too few, or too large",
            duration(waits.own())
        ));
    }
    Verdict::Fires(findings)
}

fn is_habit(group: &Waits<'_>) -> bool {
    group.count() >= MIN_WAITS
        && group
            .main()
            .bytes
            .is_none_or(|bytes| bytes <= MAX_SMALL_WRITE_BYTES)
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let device = device(run, group.main());
    let (who, count) = (say::who(&group.main().asker.name), group.count());
    let what = match group.cause() {
        Cause::DiskWrite => "for a write to reach the disk",
        _ => "for its data to be safe on disk",
    };
    let each = match device.limited() {
        true => "a cgroup limit slows each",
        false => "each waits for the one before",
    };
    let text = format!(
        "on {}, {} each; one call may wait several times",
        device.name,
        duration(group.own() / count)
    );
    let finding = RULE
        .finding(
            Severity::Warning,
            format!("{who} waits {count} times {what}; {each}"),
            group,
        )
        .and(Evidence::new(text, say::source(group.main())))
        .and_if(say::clock(run, group));
    let batch = match group.cause() {
        Cause::DiskWrite => Remedy::safe("write more at a time, or several at once"),
        _ => Remedy::changing(
            "put many changes into one transaction, or sync once after a batch",
            "changes since the last sync are lost in a crash",
        ),
    };
    device
        .tell(finding)
        .remedy(batch)
        .remedy(Remedy::safe(
            "put the file on a faster device, or its log on a separate device",
        ))
        .remedy(Remedy::pointless(
            "more CPUs: each write still waits for the one before it",
        ))
}
