//! It has a low priority, and others use the CPU.

use crate::rules::{Extend, Rule, RuleId, Run, Waits, duration, fires, percent, queueing};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::{Confidence, Evidence, Remedy, Severity, Verdict};

/// How much of the queueing, one part in so many, must have been behind others of a better rank.
const MIN_SHARE_ONE_IN: Ns = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::LowPriority, check)
    .about("its low priority gives the CPU to other tasks")
    .causes(&[Cause::SchedRunqueue])
    .explains(&[RuleId::CpuContended]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let Some(queue) = queueing::known(waits) else {
        return Verdict::CannotTell(format!(
            "at which priority {} queued for {}",
            queueing::who(waits).0,
            duration(waits.cost())
        ));
    };
    let rank = match (queue.idle_class, queue.nice) {
        (true, _) => "the idle class (SCHED_IDLE)".to_owned(),
        (_, Some(nice @ 1..)) => format!("nice {nice}"),
        (_, nice) => {
            return Verdict::Clear(match nice {
                Some(nice) => format!("it runs at nice {nice}, which is not low"),
                None => "0 s: it has a real-time policy itself".to_owned(),
            });
        }
    };
    if queue.outranked.saturating_mul(MIN_SHARE_ONE_IN) < queue.known {
        return Verdict::Clear(format!(
            "it runs at {rank}, but only {} of {} in the run queue were behind tasks of a higher priority",
            duration(queue.outranked),
            duration(queue.known)
        ));
    }
    let (who, pid) = queueing::who(waits);
    let title = format!(
        "{who} runs at {rank}: tasks of a higher priority have the CPU for {} of the time",
        percent(run.share(waits.cost()))
    );
    let text = format!(
        "{} of {} in the run queue it was behind tasks of a higher priority",
        duration(queue.outranked),
        duration(queue.known)
    );
    fires(
        RULE.finding(Severity::Warning, title, waits)
            .about_if_unnamed(queueing::winner(waits))
            .and(Evidence::new(text, "sched_switch"))
            .and_if(queueing::who_ran(run, waits))
            .confidence(Confidence::Proved)
            .remedy(
                Remedy::changing(
                    "give it a normal priority",
                    "the other tasks then get less CPU time",
                )
                .with_command(if queue.idle_class {
                    format!("chrt --other --pid 0 {pid}")
                } else {
                    format!("renice 0 -p {pid}")
                }),
            ),
    )
}
