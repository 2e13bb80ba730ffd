//! A real-time task has its CPU.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, duration, fires, percent, queueing};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// How much of the queueing, one part in so many, must have been behind real-time tasks.
const MIN_SHARE_ONE_IN: Ns = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::RealTimeThreadHogsCpu, check)
    .about("a real-time task occupies the CPU")
    .causes(&[Cause::SchedRunqueue])
    .explains(&[RuleId::CpuContended]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(queue) = queueing::known(waits) else {
        return Verdict::CannotTell(format!(
            "who had the CPU while {} queued for {}",
            queueing::who(waits).0,
            duration(waits.cost())
        ));
    };
    if queue.real_time.saturating_mul(MIN_SHARE_ONE_IN) < queue.known {
        return Verdict::Clear(format!(
            "of {} that it queued, {} were behind real-time tasks",
            duration(queue.known),
            duration(queue.real_time)
        ));
    }
    let (who, _) = queueing::who(waits);
    let winner = queueing::winner(waits);
    let name = winner
        .as_ref()
        .map_or("a real-time task", |winner| winner.name.as_str());
    let title = format!(
        "{name}, a real-time task, has the CPU for {} of the time while {who} is runnable",
        percent(run.share(waits.cost()))
    );
    let text = format!(
        "{} of {} in the run queue {who} was behind a task of a real-time policy (SCHED_FIFO, SCHED_RR or \
         SCHED_DEADLINE)",
        duration(queue.real_time),
        duration(queue.known)
    );
    let finding = RULE
        .finding(Severity::Warning, title, waits)
        .about_if_unnamed(winner)
        .and(Evidence::new(text, "sched_switch"))
        .and_if(queueing::who_ran(run, waits));
    let finding = finding.and_if(run.facts.sysctl.get("kernel/sched_rt_runtime_us").map(|runtime| {
        Evidence::new(
            format!("real-time tasks may use {runtime} µs of each second of a CPU"),
            "kernel.sched_rt_runtime_us",
        )
    }));
    fires(
        finding
            .confidence(Confidence::Proved)
            .remedy(Remedy::changing(
                "remove its real-time policy (chrt -o -p 0 PID), or bind it to a separate CPU",
                "it may then miss its deadlines",
            ))
            .remedy(Remedy::pointless(
                "a lower nice value: real-time tasks run before all normal tasks",
            )),
    )
}
