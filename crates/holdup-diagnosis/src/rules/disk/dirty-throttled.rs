//! Writing into memory waits, because too much is on its way to the disk already.

use crate::rules::devices::for_each_device;
use crate::rules::{Extend, Generality, Need, Rule, RuleId, Run, Waits, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::DirtyThrottled, check)
    .about("too many dirty pages: the writer has to wait for write-back")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::DiskWriteback])
    .generality(Generality::General);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    for_each_device(run, waits, |group, device, who| {
        let strict = device.dirty_limit.map(say::bytes);
        let title = match &strict {
            Some(limit) => format!(
                "{who} waits for write-back: {} may have only {limit} of dirty pages",
                device.name
            ),
            None => format!(
                "{who} writes faster than {} can store, and waits for write-back",
                device.name
            ),
        };
        let finding = RULE
            .finding(Severity::Warning, title, group)
            .and_if(strict.map(|limit| {
                let text = format!("its limit is strict: {limit}, however much memory the machine has");
                Evidence::new(text, "/sys/class/bdi strict_limit and max_bytes")
            }))
            .and_if(settings(run).filter(|_| device.dirty_limit.is_none()))
            .and_if(say::kernel_top(group));
        let finding = match device.dirty_limit {
            Some(_) => finding.remedy(Remedy::changing(
                "raise or lift the device's own limit (/sys/class/bdi: max_bytes, strict_limit)",
                "more data is lost if the device is removed or the machine crashes",
            )),
            None => finding.remedy(Remedy::changing(
                "allow more dirty pages (vm.dirty_bytes): this helps if it writes in bursts",
                "a later sync takes longer, and more is lost in a crash",
            )),
        };
        device
            .tell(finding)
            .remedy(Remedy::safe(
                "write less, or to a faster device; keep scratch files in memory (tmpfs)",
            ))
            .remedy(Remedy::safe(
                "let bulk writers bypass the cache (O_DIRECT) or sync often, so that only they wait",
            ))
    })
}

/// What the machine allows.
fn settings(run: &Run<'_>) -> Option<Evidence> {
    let setting = |name: &str| run.facts.sysctl.get(name).filter(|value| *value != "0");
    let text = match (setting("vm/dirty_bytes"), setting("vm/dirty_ratio")) {
        (Some(bytes), _) => format!("vm.dirty_bytes is {bytes}"),
        (None, Some(ratio)) => format!("vm.dirty_ratio is {ratio} % of the memory that is free or cache"),
        (None, None) => return None,
    };
    Some(Evidence::new(text, "/proc/sys/vm"))
}
