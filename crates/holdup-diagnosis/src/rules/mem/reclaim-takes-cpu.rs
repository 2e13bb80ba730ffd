//! The CPU is spent on freeing memory and fetching it back: swap that is compressed in memory shows no disk at all.

use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, fires, memory, percent, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ReclaimTakesCpu, check)
    .about("the CPU is spent on memory reclaim and swap")
    .needs(&[Need::SchedulerEvents, Need::CpuSamples])
    .causes(&[Cause::CpuKernel]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let for_memory =
        |wait: &holdup_model::attributed::AttributedWait| wait.resource.detail.memory_work.is_some();
    let Some(memory_work) = waits.only(for_memory) else {
        return Verdict::Clear("0 % of its kernel time was spent on memory reclaim or swap".into());
    };
    let share = percent(run.share(memory_work.cost()));
    if !run.matters(memory_work.cost(), MATTERS) {
        return Verdict::Clear(format!(
            "{share} of the elapsed time was spent on memory reclaim or swap"
        ));
    }
    let main = memory_work.main();
    let who = say::who(&main.asker.name);
    let compressed = run.facts.swaps.iter().find(|area| area.path.contains("zram"));
    let limit = memory::limit_reached(run);
    let why = match &limit {
        Some(limit) => format!("its cgroup may use {}", say::bytes(limit.bytes)),
        None => "memory is short".to_owned(),
    };
    let title = format!("Memory reclaim and swap take {share} of the time of {who}: {why}");
    let mut finding = RULE
        .finding(Severity::Warning, title, &memory_work)
        .and_if(compressed.map(|area| {
            let text = format!(
                "{} is swap compressed in memory: it costs CPU, and no disk is busy",
                area.path
            );
            Evidence::new(text, "/proc/swaps")
        }))
        .and_if(memory::came_back(
            run.facts.cgroup.memory.memory_again.filter(|_| limit.is_some()),
            "of memory came back from swap",
        ))
        .and_if(say::kernel_top(&memory_work))
        .confidence(Confidence::Strong);
    if let Some(limit) = &limit {
        finding = limit.tell(finding);
    }
    fires(
        finding
            .remedy(Remedy::safe("reduce its memory: smaller caches, fewer workers"))
            .remedy(Remedy::pointless(
                "a faster CPU or disk: the same pages would only be swapped faster",
            )),
    )
}
