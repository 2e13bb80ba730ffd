//! It may run on some CPUs only, which are busy while others are idle.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, duration, fires, percent, queueing, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// How much of its queueing, one part in so many, the CPUs that it may not use must have been idle for: less could be
/// the end of the run, or the moments between others' turns.
const IDLE_PART: Ns = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::PinnedToBusyCpu, check)
    .about("it is bound to busy CPUs while other CPUs are idle")
    .causes(&[Cause::SchedRunqueue])
    .explains(&[RuleId::CpuContended]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let cost = duration(waits.cost());
    let Some(queue) = queueing::known(waits) else {
        return Verdict::CannotTell(format!(
            "on which CPUs {} might run while it queued for {cost}",
            queueing::who(waits).0
        ));
    };
    let behind_better = queue.real_time.saturating_add(queue.outranked);
    if behind_better.saturating_mul(2) >= queue.known {
        return Verdict::Clear(format!(
            "{} of {} in the run queue were behind tasks of a higher priority",
            duration(behind_better),
            duration(queue.known)
        ));
    }
    let Some(others) = queueing::forbidden(run, queue) else {
        return Verdict::Clear(format!(
            "{} might run on {} CPUs while it queued for {cost}",
            queueing::who(waits).0,
            queue.allowed_count
        ));
    };
    let idle: Ns = others.iter().map(|(_, idle)| idle).sum();
    if idle.saturating_mul(IDLE_PART) < waits.cost() {
        return Verdict::Clear(format!(
            "the CPUs that it may not use were busy too: idle for {} while it queued for {cost}",
            duration(idle)
        ));
    }
    let (who, pid) = queueing::who(waits);
    let bound = queueing::cpus(&queue.allowed);
    let title = format!(
        "{who} is bound to {bound} and is queued there for {} of the time, while other CPUs are idle",
        percent(run.share(waits.cost()))
    );
    let each: Vec<String> = others
        .iter()
        .map(|(cpu, idle)| format!("CPU {cpu} for {}", duration(*idle)))
        .collect();
    let text = format!(
        "idle in that time, of {}: {}",
        duration(run.attributed.elapsed),
        each.join(", ")
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .and(Evidence::new(
            format!("it may run on {bound} only"),
            say::SCHEDULER,
        ))
        .and(Evidence::new(text, "/proc/stat"))
        .and_if(queueing::who_ran(run, waits))
        .confidence(Confidence::Proved);
    let ran = queueing::winner(waits).map(|winner| winner.name);
    finding.resource = Resource::named(ResourceKind::Kernel, bound).with(|facts| facts.ran = ran);
    fires(
        finding
            .remedy(
                Remedy::changing(
                    "let it run on more CPUs: its affinity (taskset), or the CPUs of its cgroup (cpuset.cpus)",
                    "programs that were separated may disturb each other",
                )
                .with_command(format!("taskset -pc {pid}")),
            )
            .remedy(Remedy::pointless("more CPUs: it may not use the idle ones")),
    )
}
