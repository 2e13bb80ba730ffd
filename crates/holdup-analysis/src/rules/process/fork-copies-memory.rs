//! fork copies the page tables of a large process.

use crate::attributed::AttributedWait;
use crate::classify::COPIES;
use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::ForkCopiesMemory,
    about: "fork copies a large process",
    needs: &[Need::SchedulerEvents, Need::CpuSamples],
    causes: &[Cause::CpuKernel],
    from: 0.0,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

/// Kernel functions that copy an address space.
const COPYING: &[&str] = &[
    "copy_page_range",
    "copy_pte_range",
    "copy_p4d_range",
    "dup_mmap",
    "dup_mm",
];

/// Where no kernel stack is to be had, by its flags alone: what else such a call does is little beside the copying.
fn copies(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let copying = |function: &String| COPYING.iter().any(|copying| function.starts_with(copying));
    system_calls::is_named(wait.call.as_deref(), Kind::Creates)
        && (wait.kernel_stack.iter().any(copying)
            || run.attributed.by_looks && wait.resource.detail.contains_key(COPIES))
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
    let title = format!("{who} spends {share} of its time on copying its own page tables to start processes");
    let text = format!(
        "in {}, while the process itself stands still",
        group.main().call.as_deref().unwrap_or("fork")
    );
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "CPU samples"))
        .and_if(say::kernel_top(group))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "start programs with posix_spawn or vfork, which copy nothing (in Python: subprocess without preexec_fn)",
        ))
        .remedy(Remedy::safe(
            "start a small helper process early, and let it start the others",
        ))
        .remedy(Remedy::changing(
            "use huge pages for the large memory: there is then one entry to copy where there were 512",
            "it may take more memory",
        ))
}
