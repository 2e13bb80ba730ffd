//! Whoever asks for memory has to free some first.

use crate::rules::{Extend, Generality, Need, Rule, RuleId, Run, Waits, fires, memory, say};
use holdup_evidence::Cause;
use holdup_knowledge::functions::families;
use holdup_model::finding::{Evidence, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::MadeToFreeMemory, check)
    .about("it must reclaim memory before each allocation")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::MemReclaim])
    .generality(Generality::General);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let function = main.resource.detail.function.as_deref();
    let compacts = function.is_some_and(families::compacts);
    let limit = memory::limit_reached(run).filter(|_| in_cgroup(waits));
    let title = match (&limit, compacts) {
        (Some(limit), _) => format!(
            "{who} must reclaim memory before it can allocate: its cgroup may use {}",
            say::bytes(limit.bytes)
        ),
        (None, true) => format!("{who} waits for memory compaction for a huge page"),
        (None, false) => {
            format!("{who} must reclaim memory before it can allocate: the machine is short of memory")
        }
    };
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .and_if(say::kernel_top(waits));
    let finding = match (&limit, compacts) {
        (Some(limit), _) => limit.tell(finding),
        (None, true) => finding.remedy(
            Remedy::changing(
                "make huge pages only in the background",
                "programs that profit from huge pages get them later",
            )
            .with_command("echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag"),
        ),
        (None, false) => finding.and_if(watermark(run)).remedy(Remedy::changing(
            "raise vm.watermark_scale_factor: the kernel then reclaims earlier, in the background",
            "more memory stays unused",
        )),
    };
    fires(finding.remedy(Remedy::safe(
        "write and read less at once, and sync in between, so that there are clean pages to reclaim",
    )))
}

/// Whether the memory was freed for a cgroup's limit, by the kernel's functions for that.
fn in_cgroup(waits: &Waits<'_>) -> bool {
    let of_cgroup = |name: &String| families::of_memory_cgroup(name);
    let main = waits.main();
    main.kernel_stack.iter().any(of_cgroup) || main.resource.detail.function.as_ref().is_some_and(of_cgroup)
}

fn watermark(run: &Run<'_>) -> Option<Evidence> {
    let value = run.facts.sysctl.get("vm/watermark_scale_factor")?;
    let text = format!("background reclaim begins at {value}/10000 of memory");
    Some(Evidence::new(text, "/proc/sys/vm/watermark_scale_factor"))
}
