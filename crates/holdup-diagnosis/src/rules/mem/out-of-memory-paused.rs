//! Its cgroup is out of memory, and the kernel may not end anybody there: all wait.

use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, fires, memory, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// Where the kernel lets a thread wait that may not be ended.
const PAUSED: &str = "mem_cgroup_oom_synchronize";

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::OutOfMemoryPaused, check)
    .about("its cgroup is out of memory, and the OOM killer is disabled")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::MemReclaim]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let paused = |wait: &holdup_model::attributed::AttributedWait| {
        wait.resource
            .detail
            .function
            .as_ref()
            .is_some_and(|name| name == PAUSED)
    };
    let Some(waits) = waits
        .only(paused)
        .filter(|waits| run.matters(waits.cost(), MATTERS))
    else {
        return Verdict::Clear(format!("{PAUSED} took less than 10 % of the elapsed time"));
    };
    let who = say::who(&waits.main().asker.name);
    let limit = memory::limit(run);
    let of = limit.as_ref().map_or_else(
        || "its cgroup".to_owned(),
        |limit| format!("cgroup {}", limit.cgroup),
    );
    let title = format!("{who} is paused: {of} is out of memory, and its OOM killer is disabled");
    let mut finding = RULE
        .finding(Severity::Critical, title, &waits)
        .and_if(say::kernel_top(&waits))
        .and_if(waits.holders().first().map(ended_by))
        .proved_if(run.facts.cgroup.memory.oom_killer == Some(false));
    if run.facts.cgroup.memory.oom_killer == Some(false) {
        finding = finding.and(Evidence::new("oom_kill_disable is 1", "memory.oom_control"));
    }
    if let Some(limit) = &limit {
        finding = limit.tell(finding);
    }
    fires(finding.remedy(Remedy::changing(
        "enable the OOM killer (memory.oom_control 0), and restart the killed process",
        "a process of the cgroup is killed when the limit is reached",
    )))
}

fn ended_by(holder: &holdup_model::attributed::Holder) -> Evidence {
    let text = format!(
        "{} freed memory, and it continued",
        say::who_with_pid(&holder.name)
    );
    Evidence::new(text, say::how_known(holder.how_known))
}
