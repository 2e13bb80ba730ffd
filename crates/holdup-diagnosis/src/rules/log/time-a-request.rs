//! How long one of many equal pieces of work took, and how that differs between artefacts.

use super::super::log_times::quote;
use crate::rules::{Rule, RuleId, Run, duration, fires};
use holdup_evidence::observed::{Span, SpanKind};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::TimeARequest, check)
    .about("how long each of many equal pieces of work took")
    .causes(&[Cause::Unknown]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let all: Vec<(&Span, u64)> = observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::Requests)
        .filter_map(|span| Some((span, count(span)?)))
        .collect();
    let Some((first, times)) = all.first().copied() else {
        return match observed.spans.iter().find(|span| span.kind == SpanKind::CommandElapsed) {
            Some(span) => Verdict::Clear(format!("{} was spent on 1 piece of work, as far as is known", duration(span.ns))),
            None => Verdict::CannotTell(
                "how long a request took: the number of requests and the time for all, such as `time` before a loop".to_owned(),
            ),
        };
    };
    let title = format!(
        "{} took {}: {} each",
        first.name,
        duration(first.ns),
        duration(first.ns / times)
    );
    let mut finding = Finding::new(
        RULE.id.id(),
        Severity::Note,
        title,
        Cause::Unknown,
        first.ns,
        quote(observed, first.text.clone(), &first.quote),
    );
    for (other, times_there) in all.iter().skip(1) {
        let (each, before) = (other.ns / times_there, first.ns / times);
        let change = (each as f64 / (before.max(1)) as f64 - 1.0) * 100.0;
        let text = format!(
            "{} took {} there: {} each, {change:+.1} %; with one run each this may be noise",
            other.name,
            duration(other.ns),
            duration(each)
        );
        finding = finding.and(quote(observed, text, &other.quote));
    }
    fires(finding.confidence(Confidence::Proved).remedy(Remedy::safe(
        "measure several runs of each before you trust the difference",
    )))
}

/// How many, from the name's first word; at least one.
fn count(span: &Span) -> Option<Ns> {
    let count: Ns = span.name.split(' ').next()?.parse().ok()?;
    (count > 0).then_some(count)
}
