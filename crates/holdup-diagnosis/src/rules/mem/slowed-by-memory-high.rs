//! Slowed on purpose by its cgroup's memory.high.

use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_model::attributed::ResourceKind;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::SlowedByMemoryHigh, check)
    .about("memory.high of its cgroup throttles it")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::MemLimit]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let facts = &run.facts.cgroup;
    let who = say::who(&waits.main().asker.name);
    let cgroup = facts
        .memory
        .cgroup
        .as_ref()
        .map_or_else(|| "its cgroup".to_owned(), |cgroup| format!("cgroup {cgroup}"));
    let limit = match facts.memory_high {
        Some(bytes) => format!("memory.high, {} for {cgroup}", say::bytes(bytes)),
        None => format!("memory.high of {cgroup}"),
    };
    let title = format!("{who} is throttled: it uses more than {limit}");
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .and_if(say::kernel_top(waits));
    finding.resource.kind = ResourceKind::Cgroup;
    if let Some(times) = facts.memory.high_reached.filter(|times| *times > 0) {
        let text = format!("it was over memory.high {}", say::several(times, "time"));
        finding = finding.and(Evidence::new(text, "memory.events high"));
    }
    fires(
        finding
            .remedy(Remedy::changing(
                format!("raise {limit}"),
                "other programs then have less memory",
            ))
            .remedy(Remedy::safe("reduce its memory: smaller caches, fewer workers"))
            .remedy(Remedy::pointless(
                "waiting for the OOM killer: memory.high never kills, it only throttles",
            )),
    )
}
