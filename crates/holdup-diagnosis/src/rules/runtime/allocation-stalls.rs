//! Threads wait for memory because the collector, which works beside them, does not keep up.

use super::super::log_times::{covered, longest, most, quote, share, sum};
use crate::rules::{HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::observed::{Metric, SpanKind};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::AllocationStalls, stalled, check)
    .about("threads wait for memory that a concurrent garbage collector has not freed yet")
    .causes(&[Cause::RuntimeGc]);

/// By the threads that waited for the collector.
fn stalled(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let stalls = waits.only(|wait| wait.resource.detail.collector_behind.is_some());
    let Some(stalls) = stalls.filter(|stalls| run.matters(stalls.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "less than {} of the time was spent in waiting for a concurrent collector",
            percent(MATTERS)
        ));
    };
    let main = stalls.main();
    let who = say::name_or(&main.asker.name.process, "a JVM");
    let title = format!(
        "Threads of {who} waited {} for memory, for {} together",
        say::several(stalls.count(), "time"),
        duration(stalls.own())
    );
    fires(remedied(RULE.finding(Severity::Warning, title, &stalls)))
}

fn remedied(finding: Finding) -> Finding {
    finding
        .remedy(Remedy::changing(
            "enlarge the heap (-Xmx): the collector needs free memory to stay ahead of the threads",
            "the machine must have the memory, or it swaps",
        ))
        .remedy(Remedy::safe(
            "give the collector more threads (-XX:ConcGCThreads) where CPUs are idle",
        ))
        .remedy(Remedy::safe("allocate less: profile allocations"))
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(series) = most(observed, Metric::AllocationStallMs) else {
        let pauses = most(observed, Metric::GcPauseMs).filter(|pauses| pauses.count > 0);
        return match pauses {
            Some(pauses) => Verdict::Clear(format!(
                "0 stalls are logged beside {}",
                say::several(pauses.count, "pause")
            )),
            None => {
                Verdict::CannotTell("whether threads waited for memory: a log with `-Xlog:gc`".to_owned())
            }
        };
    };
    let (total, log) = (
        sum(series),
        covered(observed, SpanKind::JvmLogCovers, series.source),
    );
    let worst = longest(observed, SpanKind::AllocationStall, series.source);
    let worst =
        worst.filter(|worst| worst.ns >= HARM_FLOOR || (share(total, log) >= MATTERS && total >= HARM_FLOOR));
    let Some(worst) = worst else {
        return Verdict::Clear(format!(
            "{} took {} together",
            say::several(series.count, "stall"),
            duration(total)
        ));
    };
    let title = format!(
        "Threads waited {} times for memory, for {} together",
        series.count,
        duration(total)
    );
    let first = quote(
        observed,
        format!("{} waited {}, the longest stall", worst.name, duration(worst.ns)),
        &worst.quote,
    );
    fires(remedied(
        Finding::new(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::RuntimeGc,
            total,
            first,
        )
        .and(quote(
            observed,
            format!(
                "{} in {} of log",
                say::several(series.count, "stall"),
                duration(log)
            ),
            &worst.quote,
        )),
    ))
}
