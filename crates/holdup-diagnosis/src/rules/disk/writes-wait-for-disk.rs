//! Writing waits for a disk: syncing, direct writes, discards.

use crate::rules::devices::for_each_device;
use crate::rules::{Extend, Generality, Need, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::WritesWaitForDisk, check)
    .about("writes wait for a disk, or for a limit on it")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::DiskSync, Cause::DiskWrite, Cause::DiskDiscard])
    .generality(Generality::Describes);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    for_each_device(run, waits, |group, device, who| {
        let what = match group.cause() {
            Cause::DiskSync => "waits for its data to be safe on",
            Cause::DiskDiscard => "waits for freed blocks to be discarded on",
            _ => "waits for its writes to",
        };
        let title = match device.limited() {
            true => format!("{who} {what} {}, which its cgroup limits", device.name),
            false => format!("{who} {what} {}", device.name),
        };
        let finding = RULE
            .finding(Severity::Warning, title, group)
            .and_if(say::clock(run, group))
            .and_if(say::kernel_top(group));
        device.tell(finding).remedy(match group.cause() {
            Cause::DiskSync => Remedy::changing(
                "sync less, or later, or in another thread",
                "data that was not synced is lost in a crash",
            ),
            Cause::DiskDiscard => Remedy::safe(
                "discard in the background (fstrim.timer) instead of at each deletion (mount option discard)",
            ),
            _ => {
                Remedy::safe("write less, write to a faster device, or move other writers to another device")
            }
        })
    })
}
