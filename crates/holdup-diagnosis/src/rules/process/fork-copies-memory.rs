//! fork copies the page tables of a large process.

use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::functions::families;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ForkCopiesMemory, check)
    .about("fork copies a large process")
    .needs(&[Need::SchedulerEvents, Need::CpuSamples])
    .causes(&[Cause::CpuKernel])
    .from(0.0)
    .explains(&[RuleId::CpuBound]);

/// Where no kernel stack is to be had, by its flags alone: what else such a call does is little beside the copying.
fn copies(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let copying = |function: &String| families::copies_address_space(function);
    system_calls::is_named(wait.call.as_deref(), Kind::Creates)
        && (wait.kernel_stack.iter().any(copying)
            || !run.attributed.source.samples_kernel_stacks() && wait.resource.detail.copies.is_some())
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let copying = waits.only(|wait| copies(run, wait));
    let cost = copying.as_ref().map_or(0, Waits::cost);
    let processes = copying.map_or_else(Vec::new, |copying| copying.split(|wait| wait.asker.name.pid));
    let worth = processes
        .iter()
        .filter(|process| run.matters_without_queueing(process.cost(), MATTERS));
    let findings: Vec<Finding> = worth.map(|process| finding(run, process)).collect();
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "copying address spaces in fork took {} of the elapsed time",
            percent(run.share(cost))
        ));
    }
    Verdict::Fires(findings)
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let who = say::who(&group.main().asker.name);
    let share = percent(run.share_of_own(group.cost()));
    let title = format!("{who} spends {share} of its time in copying its page tables to start processes");
    let text = format!(
        "in {}, while the process is blocked",
        group.main().call.as_deref().unwrap_or("fork")
    );
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "CPU samples"))
        .and_if(say::kernel_top(group))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "start programs with posix_spawn or vfork, which copy no page tables (in Python: subprocess \
             without preexec_fn)",
        ))
        .remedy(Remedy::safe(
            "start other programs from a small helper process that is started early",
        ))
        .remedy(Remedy::changing(
            "use huge pages for the large memory: one entry to copy instead of 512",
            "it may use more memory",
        ))
}
