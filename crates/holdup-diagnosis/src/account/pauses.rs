//! The longest pause of a JVM with its cause, what all pauses come to, and threads that had to wait for memory.

use super::{Rank, Ranked};
use crate::rules::list::collector_stops_threads;
use crate::rules::{MATTERS, percent};
use holdup_evidence::observed::{Metric, Series, Span, SpanKind};
use holdup_evidence::units::duration;
use holdup_evidence::{Ns, Observed};

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let kinds = [
        (
            SpanKind::GcPause,
            Metric::GcPauseMs,
            "a collection",
            "collections",
        ),
        (
            SpanKind::SafepointPause,
            Metric::SafepointPauseMs,
            "a safepoint",
            "safepoints",
        ),
    ];
    for (kind, metric, one, many) in kinds {
        if let Some(longest) = longest(observed, kind) {
            all.push(pause(observed, longest, metric, one, many));
        }
    }
    if let Some(reach) = longest(observed, SpanKind::SafepointReach).filter(|reach| reach.ns > 0) {
        let text = format!(
            "it took up to {} until all threads had come to stand for a safepoint{}",
            duration(reach.ns),
            named(reach)
        );
        let rank = if reach.ns >= collector_stops_threads::MIN_NS {
            Rank::Saturated
        } else {
            Rank::Ordinary
        };
        all.push(Ranked::new(rank, "safepoint", text, (observed, &reach.quote)).ns(reach.ns));
    }
    if let Some(stall) = longest(observed, SpanKind::AllocationStall) {
        let series = sum_of(observed, Metric::AllocationStallMs, stall.quote.source);
        let together =
            series.map(|series| format!("; {} stalls, {} together", series.count, duration(total(series))));
        let who = if stall.name.is_empty() {
            "a thread"
        } else {
            stall.name.as_str()
        };
        let text = format!(
            "{who} waited {} for memory that the collector had to free first (allocation stall){}",
            duration(stall.ns),
            together.unwrap_or_default()
        );
        all.push(
            Ranked::new(
                Rank::Saturated,
                "allocation stall",
                text,
                (observed, &stall.quote),
            )
            .ns(stall.ns),
        );
    }
}

fn longest(observed: &Observed, kind: SpanKind) -> Option<&Span> {
    let of_kind = observed.spans.iter().filter(|span| span.kind == kind);
    of_kind.max_by_key(|span| span.ns)
}

fn sum_of(observed: &Observed, metric: Metric, source: u32) -> Option<&Series> {
    observed.of(metric).find(|series| series.source == source)
}

fn total(series: &Series) -> Ns {
    (series.sum.max(0.0) * 1e6) as Ns
}

/// ` (name)`, where it has one.
fn named(span: &Span) -> String {
    match span.name.as_str() {
        "" => String::new(),
        name => format!(" ({name})"),
    }
}

fn pause(observed: &Observed, longest: &Span, metric: Metric, one: &str, many: &str) -> Ranked {
    let source = longest.quote.source;
    let mut text = format!(
        "the longest pause for {one}{} is {}",
        named(longest),
        duration(longest.ns)
    );
    let series = sum_of(observed, metric, source);
    let covers = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::JvmLogCovers && span.quote.source == source)
        .fold(0, |sum: Ns, span| sum.saturating_add(span.ns));
    let mut share = None;
    if let Some(series) = series.filter(|series| series.count > 1) {
        text.push_str(&format!(
            "; {} {many}, {} together",
            series.count,
            duration(total(series))
        ));
        if covers >= total(series) && covers > 0 {
            let part = total(series) as f64 / covers as f64;
            text.push_str(&format!(", {} of {}", percent(part), duration(covers)));
            share = Some(part);
        }
    }
    let heap = observed
        .of(Metric::HeapAfterGcPercent)
        .filter(|heap| heap.source == source && kind_has_heap(longest.kind))
        .find_map(|heap| heap.greatest());
    if let Some(heap) = heap {
        text.push_str(&format!(
            "; up to {:.0} % of the heap still in use after one",
            heap.value
        ));
    }
    let long = longest.ns >= collector_stops_threads::MIN_NS || share.is_some_and(|share| share >= MATTERS);
    // An evacuation that failed, or a collection of everything, is not what collectors are made to do, however short.
    let is_forced = |span: &&Span| FORCED.iter().any(|word| span.name.contains(word));
    let others = observed
        .spans
        .iter()
        .filter(|span| span.kind == longest.kind && span.quote.source == source);
    let other = others.filter(is_forced).max_by_key(|span| span.ns);
    let forced = other.is_some();
    if let Some(other) = other.filter(|other| other.quote != longest.quote || other.name != longest.name) {
        text.push_str(&format!("; {} took {}", other.name, duration(other.ns)));
    }
    let rank = match (long, forced) {
        (true, _) => Rank::Saturated,
        (false, true) => Rank::Failed,
        (false, false) => Rank::Ordinary,
    };
    if rank == Rank::Ordinary {
        text.push_str(&format!(
            " ({}, or {} of the time, are much)",
            duration(collector_stops_threads::MIN_NS),
            percent(MATTERS)
        ));
    }
    let line = Ranked::new(rank, many, text, (observed, &longest.quote)).ns(longest.ns);
    match share {
        Some(share) => line.share(share),
        None => line,
    }
}

fn kind_has_heap(kind: SpanKind) -> bool {
    kind == SpanKind::GcPause
}

/// Causes of collections that say that something went wrong, in the JVM's words.
const FORCED: [&str; 11] = [
    "Full",
    "exhausted",
    "to-space overflow",
    "Heap Dump",
    "promotion failed",
    "concurrent mode failure",
    "System.gc()",
    "Humongous",
    "Degenerated",
    "global",
    "Evacuation Failure",
];

#[cfg(test)]
mod tests {
    use crate::account::values::tests::report;
    use crate::account::{account, judged};
    use holdup_evidence::observed::{Metric, Quote, Span, SpanKind};
    use holdup_model::report::AccountOutcome;

    fn span(kind: SpanKind, name: &str, ms: u64) -> Span {
        Span {
            kind,
            name: name.to_owned(),
            began: None,
            ns: ms * 1_000_000,
            thread: None,
            usual: None,
            quote: Quote::default(),
            text: String::new(),
        }
    }

    #[test]
    fn the_longest_pause_is_told_with_its_cause_and_the_sum_of_all() {
        let mut observed = report(&[
            (Metric::GcPauseMs, "", 3171.0),
            (Metric::HeapAfterGcPercent, "", 96.0),
        ]);
        observed.series[0].count = 3;
        observed.series[0].sum = 6000.0;
        observed.spans = vec![
            span(
                SpanKind::GcPause,
                "GC pause (G1 Evacuation Pause) (to-space exhausted)",
                3171,
            ),
            span(SpanKind::JvmLogCovers, "", 30_000),
        ];
        assert_eq!(
            account(&observed)[0].text,
            "the longest pause for a collection (GC pause (G1 Evacuation Pause) (to-space exhausted)) is 3.17 s; 3 collections, \
             6.00 s together, 20.0 % of 30.00 s; up to 96 % of the heap still in use after one"
        );
        assert_eq!(judged(&observed).1, Some(AccountOutcome::CannotTell));
    }

    #[test]
    fn short_pauses_are_ordinary_by_their_norm() {
        let mut observed = report(&[(Metric::GcPauseMs, "", 5.0)]);
        observed.spans = vec![span(SpanKind::GcPause, "Pause Young (Normal)", 5)];
        assert_eq!(judged(&observed).1, Some(AccountOutcome::Healthy));
        assert!(
            account(&observed)[0]
                .text
                .ends_with("(1.00 s, or 10.0 % of the time, are much)"),
            "{}",
            account(&observed)[0].text
        );
    }

    #[test]
    fn a_thread_that_waited_for_memory_is_named() {
        let mut observed = report(&[(Metric::AllocationStallMs, "", 20.07)]);
        observed.spans = vec![span(SpanKind::AllocationStall, "main", 20)];
        assert!(
            account(&observed)[0]
                .text
                .starts_with("main waited 20.0 ms for memory"),
            "{}",
            account(&observed)[0].text
        );
    }
}
