//! Tasks stand still because memory is short, by the kernel's own account.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, fires, pressures};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Percent of the time in which some task waited for memory from which the machine is noticeably slower.
pub(crate) const MIN_SOME_PERCENT: f64 = 20.0;

/// The same in which all tasks did that had something to do: that time is lost whole. A tenth.
pub(crate) const MIN_FULL_PERCENT: f64 = 10.0;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::TasksStallForMemory, check)
    .about("tasks stall because memory is short")
    .causes(&[Cause::MemReclaim])
    .generality(Generality::Describes)
    .explains(&[RuleId::TasksStallForIo]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let full = pressures::high(observed, Metric::PressureMemoryFullPercent, MIN_FULL_PERCENT);
    let some = pressures::high(observed, Metric::PressureMemorySomePercent, MIN_SOME_PERCENT);
    let Some(worst) = full.or(some) else {
        return match pressures::most(observed, Metric::PressureMemorySomePercent) {
            Some(most) => Verdict::Clear(format!("tasks waited for memory at most {most:.1} % of the time")),
            None => Verdict::CannotTell(
                "for what share of the time tasks waited for memory: `grep -H . /proc/pressure/*`".to_owned(),
            ),
        };
    };
    let who = if full.is_some() {
        "All tasks were stalled"
    } else {
        "At least one task was stalled"
    };
    let title = format!("{who} for memory {}{}", worst.words(), worst.place());
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::MemReclaim,
        worst.evidence("waiting for memory"),
    )
    .confidence(Confidence::Proved)
    .and_if(
        some.filter(|_| full.is_some())
            .map(|some| some.evidence("some task waited")),
    );
    finding = finding
        .remedy(
            Remedy::safe(
                "check whether pages are swapped in and out, and list the processes that use the \
             memory",
            )
            .with_command("vmstat 1 5; ps -eo pid,rss,comm --sort=-rss | head"),
        )
        .remedy(Remedy::safe(
            "reduce the memory of its programs, or add memory (memory.high and memory.max \
         of a cgroup also cause pressure)",
        ))
        .remedy(Remedy::pointless("a faster CPU: the programs wait for memory"));
    fires(finding)
}
