//! Reading waits for a disk: files, metadata, pages of mapped files.

use crate::rules::devices::for_each_device;
use crate::rules::{Extend, Generality, Need, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// Median wait from which a turning disk seeks for each read, nanoseconds: half a turn at 7200 per minute is 4.2 ms.
const MIN_SEEK_NS: Ns = 4_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ReadsWaitForDisk, check)
    .about("reads wait for a disk, or for a limit on it")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::DiskRead, Cause::MemPagefault])
    .generality(Generality::Describes);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    for_each_device(run, waits, |group, device, who| {
        let what = match group.cause() {
            Cause::MemPagefault => "accesses mapped files that must first be read from",
            _ => "waits for reads from",
        };
        let title = match device.limited() {
            true => format!("{who} {what} {}, which its cgroup limits", device.name),
            false => format!("{who} {what} {}", device.name),
        };
        let mut finding = RULE.finding(Severity::Warning, title, group);
        if let Some(file) = &device.file {
            finding = finding.and(Evidence::new(format!("most of it for {file}"), "the open file"));
        }
        if device.rotational == Some(true) && group.median() >= MIN_SEEK_NS {
            let text = format!(
                "{} is a rotating disk, and {} a read is the time of a seek",
                device.name,
                duration(group.median())
            );
            finding = finding.and(Evidence::new(text, "/sys/block queue/rotational"));
        }
        finding = finding.and_if(say::clock(run, group));
        device
            .tell(finding)
            .remedy(Remedy::safe(
                "run it again: if it is fast then, the data fits into memory and only the first run is slow",
            ))
            .remedy(Remedy::safe(
                "read more at a time or in advance (larger reads, posix_fadvise, several readers)",
            ))
    })
}
