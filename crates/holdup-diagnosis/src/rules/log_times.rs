//! What rules about logs share: how long a log is, sums of its figures, evidence that quotes it.
//!
//! In: [`Observed`]. Out: totals by artefact.

use holdup_evidence::observed::{Metric, Quote, Series, Span, SpanKind};
use holdup_evidence::{Ns, Observed};
use holdup_model::finding::Evidence;

/// How long a log is from its first to its last time; 0 where that is not known.
pub(super) fn covered(observed: &Observed, kind: SpanKind, source: u32) -> Ns {
    let spans = of_source(observed, kind, source).map(|span| span.ns);
    spans.fold(0, Ns::saturating_add)
}

/// Spans of a kind in an artefact.
pub(super) fn of_source(observed: &Observed, kind: SpanKind, source: u32) -> impl Iterator<Item = &Span> {
    let spans = observed.spans.iter();
    spans.filter(move |span| span.kind == kind && span.quote.source == source)
}

/// The longest span of a kind in an artefact.
pub(super) fn longest(observed: &Observed, kind: SpanKind, source: u32) -> Option<&Span> {
    of_source(observed, kind, source).max_by_key(|span| span.ns)
}

/// All of a series of milliseconds.
pub(super) fn sum(series: &Series) -> Ns {
    (series.sum.max(0.0) * 1e6) as Ns
}

/// The series of a metric with the greatest sum.
pub(super) fn most(observed: &Observed, metric: Metric) -> Option<&Series> {
    observed.of(metric).max_by(|a, b| a.sum.total_cmp(&b.sum))
}

/// A share of a length; 0 of nothing.
pub(super) fn share(part: Ns, of: Ns) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// Evidence that quotes an artefact.
pub(super) fn quote(observed: &Observed, text: impl Into<String>, quote: &Quote) -> Evidence {
    Evidence::new(text, observed.place(quote))
}
