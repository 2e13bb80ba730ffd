//! Garbage collection stops all threads for much of the time.

use super::super::log_times::{covered, longest, most, quote, share, sum};
use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{
    Check, Extend, HARM_FLOOR, MATTERS, Need, Place, Rule, RuleId, Run, duration, fires, percent, say,
};
use holdup_evidence::observed::{Metric, SpanKind};
use holdup_evidence::{Cause, Ns, Observed};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::CollectorStopsThreads,
    about: "garbage collection stops all threads for much of the time",
    needs: &[Need::Artefacts],
    causes: &[Cause::RuntimeGc],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

/// A pause that people notice even if it is the only one: the second from which a pause breaks the flow of thought.
const LONG: Ns = 1_000_000_000;

/// Percent of the heap in use after a full collection from which it has no room to work in: collectors begin to collect
/// all the time below a fifth free.
const FULL: f64 = 80.0;

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(series) = most(observed, Metric::GcPauseMs) else {
        return Verdict::CannotTell(
            "for how long the collector stopped the threads: a log with `-Xlog:gc`, or before JDK 9 `-XX:+PrintGCDetails`"
                .to_owned(),
        );
    };
    let (total, log) = (
        sum(series),
        covered(observed, SpanKind::JvmLogCovers, series.source),
    );
    let part = share(total, log);
    let worst = longest(observed, SpanKind::GcPause, series.source);
    let worst = worst.filter(|worst| worst.ns >= LONG || (part >= MATTERS && total >= HARM_FLOOR));
    let Some(worst) = worst else {
        return Verdict::Clear(format!(
            "{} took {} together, {} of the time that the log covers",
            say::several(series.count, "pause"),
            duration(total),
            percent(part)
        ));
    };
    let title = match part >= MATTERS {
        true => format!(
            "Garbage collection stops all threads for {} of the time",
            percent(part.min(1.0))
        ),
        false => format!("Garbage collection stops all threads for {}", duration(worst.ns)),
    };
    let first = quote(
        observed,
        format!(
            "{}, {} together in {} of log",
            say::several(series.count, "pause"),
            duration(total),
            duration(log)
        ),
        &worst.quote,
    );
    let left = observed
        .of(Metric::HeapAfterGcPercent)
        .find(|heap| heap.source == series.source);
    let left = left
        .and_then(|heap| heap.greatest())
        .filter(|heap| heap.value >= FULL);
    let full = left.map(|heap| {
        let text = format!(
            "after a full collection {:.0} % of the heap is still in use",
            heap.value
        );
        quote(observed, text, &heap.quote)
    });
    let room = match full {
        Some(_) => Remedy::changing(
            "give the heap more room (-Xmx)",
            "the memory must be there, or the machine pages",
        ),
        None => Remedy::safe("make less garbage: profile allocations where the pauses are many and short"),
    };
    fires(
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
            format!("the longest, {}: {}", worst.name, duration(worst.ns)),
            &worst.quote,
        ))
        .and_if(full)
        .remedy(room)
        .remedy(Remedy::safe("see what the heap is full of").with_command("jcmd PID GC.class_histogram")),
    )
}
