//! Memory comes back from swap, again and again.

use crate::finding::{Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, fires, memory, say};
use holdup_evidence::Cause;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::SwapThrash,
    about: "its memory is on a swap device and has to come back",
    needs: &[Need::SchedulerEvents, Need::KernelStacks],
    causes: &[Cause::MemSwapin],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let limit = memory::limit_reached(run);
    let why = match &limit {
        Some(limit) => format!("its cgroup may keep {}", say::bytes(limit.bytes)),
        None => "there is not enough memory for all that runs".to_owned(),
    };
    let from = say::name_or(&main.resource.name, "swap").to_owned();
    let title = format!("{who} waits for its memory to come back, {from}: {why}");
    let counted = run.facts.cgroup.memory.memory_again.filter(|_| limit.is_some());
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .and_if(memory::came_back(counted, "of memory came back from swap"))
        .and_if(say::kernel_top(waits));
    finding = match &limit {
        Some(limit) => limit.tell(finding),
        None => finding.remedy(
            Remedy::safe("see who has the memory, and give this program more of it or the others less")
                .with_command("ps -eo pid,rss,comm --sort=-rss"),
        ),
    };
    fires(
        finding
            .remedy(Remedy::safe(
                "let it use less at once: smaller caches, fewer workers",
            ))
            .remedy(Remedy::pointless(
                "a faster disk for its files: what it waits for is its own memory",
            )),
    )
}
