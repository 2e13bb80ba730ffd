//! The first change of a file in an overlay copies all of it.

use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, fires, say};
use holdup_evidence::Cause;
use holdup_knowledge::functions::families;
use holdup_model::finding::{Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::CopyUp, check)
    .about("the first change of a file in an overlay copies the whole file")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[
        Cause::DiskRead,
        Cause::DiskWrite,
        Cause::DiskWriteback,
        Cause::DiskSync,
        Cause::CpuKernel,
    ])
    .explains(&[
        RuleId::DirtyThrottled,
        RuleId::KernelTimeDominates,
        RuleId::ReadsWaitForDisk,
        RuleId::SmallSynchronousWrites,
    ]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let copies = |wait: &holdup_model::attributed::AttributedWait| {
        wait.kernel_stack
            .iter()
            .any(|function| families::copies_up(function))
    };
    let Some(waits) = waits
        .only(copies)
        .filter(|waits| run.matters(waits.cost(), MATTERS))
    else {
        return Verdict::Clear("ovl_copy_up took less than 10 % of the elapsed time".into());
    };
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let call = main.call.as_deref().unwrap_or("a call");
    let title = format!("{call} of {who} first copies a whole file to the upper layer of an overlay");
    let finding = RULE
        .finding(Severity::Warning, title, &waits)
        .and_if(say::kernel_top(&waits));
    fires(
        finding
            .remedy(Remedy::safe(
                "keep large files that change in a volume (a bind mount), not in the image's layers",
            ))
            .remedy(Remedy::safe(
                "change owner and mode of files when the image is built, and not when it starts",
            ))
            .remedy(Remedy::changing(
                "mount the overlay with metacopy=on, so that a change of mode or owner copies no data",
                "the upper layer is then not a complete copy",
            )),
    )
}
