//! The kernel works for it: which call, and on what.

use crate::finding::{Confidence, Evidence, Remedy, Severity, Verdict};
use crate::rules::{Extend, Need, Place, Rule, RuleId, Run, WORTH_A_NOTE, Waits, fires, percent, say};
use holdup_evidence::Cause;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::KernelTimeDominates,
    about: "much of the time the kernel works for it",
    needs: &[Need::SchedulerEvents, Need::CpuSamples],
    causes: &[Cause::CpuKernel],
    from: WORTH_A_NOTE,
    gives_way_to: &[
        RuleId::RandomReadsDominate,
        RuleId::ManyShortPrograms,
        RuleId::ForkCopiesMemory,
        RuleId::ManyShortThreads,
    ],
    place: Place::End,
    check,
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let calls = waits.split(|wait| wait.call.clone());
    let top = &calls[0];
    let main = top.main();
    let share = percent(run.share(waits.cost()));
    let title = match main.call.as_deref() {
        Some(call) => format!("The kernel works for it {share} of the time, mostly in {call}"),
        None => format!("The kernel works for it {share} of the time, mostly outside system calls"),
    };
    let on = match main.resource.name.as_str() {
        "" => String::new(),
        name => format!(", the most of it on {name}"),
    };
    let call = main.call.as_deref().unwrap_or("page faults and the like");
    let text = format!(
        "{} of the elapsed time in {call}{on}",
        percent(run.share(top.cost()))
    );
    let finding = RULE
        .finding(Severity::Note, title, waits)
        .and(Evidence::new(text, "CPU samples"))
        .and_if(say::kernel_top(top))
        .confidence(Confidence::Strong);
    fires(finding.remedy(Remedy::safe(match main.call {
        Some(_) => "make fewer of these calls: larger buffers, several requests in one call",
        None => "touch less memory for the first time: use blocks again instead of mapping new ones",
    })))
}
