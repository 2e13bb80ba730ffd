//! Files are read again and again, because a memory limit pushes them out of the cache.

use crate::rules::devices::device;
use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, fires, memory, say};
use holdup_evidence::Cause;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// Pages read again from which it is a habit: 4 MiB, more than the start of a program reads twice by chance.
const MIN_PAGES: u64 = 1024;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::CachePushedOut, check)
    .about("files are read again because its memory limit evicts them from the cache")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::MemPagefault, Cause::DiskRead]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(limit) = memory::limit(run) else {
        return Verdict::Clear("its cgroup sets 0 limits on memory".into());
    };
    let (Some(again), Some(reached)) = (run.facts.cgroup.memory.files_again, limit.reached) else {
        return Verdict::CannotTell("how many pages were read again in its cgroup".into());
    };
    if reached == 0 || again < MIN_PAGES {
        let again = say::several(again, "page");
        return Verdict::Clear(format!(
            "{again} of files were read again in cgroup {}",
            limit.cgroup
        ));
    }
    let main = waits.main();
    let title = format!(
        "{} reads the same files again: its cgroup may use {}, and the cache is evicted",
        say::who(&main.asker.name),
        say::bytes(limit.bytes)
    );
    let device = device(run, main);
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .and_if(memory::came_back(Some(again), "of files was read again"))
        .and_if(say::kernel_top(waits));
    let finding = limit.tell(finding).remedy(Remedy::safe(
        "reduce the memory of the program, so that more of its files and code stay cached",
    ));
    fires(finding.remedy(Remedy::pointless(format!(
        "a faster disk than {}, or another run: pages are evicted as soon as they are read",
        device.name
    ))))
}
