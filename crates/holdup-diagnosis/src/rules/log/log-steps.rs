//! How long the steps of requests take, by the lines of their threads.

use super::super::log_times::{of_source, quote};
use crate::rules::{Rule, RuleId, Run, duration, fires};
use holdup_evidence::observed::{Span, SpanKind};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::LogSteps, check)
    .about("how long a step that recurs in a log takes")
    .causes(&[Cause::Unknown]);

/// Times from which a step recurs.
const MIN_RECURRENCES: usize = 3;

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut steps: BTreeMap<(u32, &str), Vec<&Span>> = BTreeMap::new();
    for step in observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::LogStep)
    {
        steps
            .entry((step.quote.source, &step.name))
            .or_default()
            .push(step);
    }
    let Some(((source, name), most)) = steps.iter().max_by_key(|(_, steps)| steps.len()) else {
        return Verdict::CannotTell(
            "how long steps of requests take: a log whose lines name their thread or request and say what begins".to_owned(),
        );
    };
    if most.len() < MIN_RECURRENCES {
        return Verdict::Clear(format!("{name} occurs {} times", most.len()));
    }
    let all = most[0]
        .usual
        .map_or(most.len() as u64, |(_, others)| others.saturating_add(1));
    let lengths: Vec<String> = most.iter().map(|step| duration(step.ns)).collect();
    let threads: BTreeSet<&str> = most.iter().filter_map(|step| step.thread.as_deref()).collect();
    let title = format!(
        "{all} times from {name}, for {}{}",
        lengths.join(", "),
        if all > most.len() as u64 { " and so on" } else { "" }
    );
    let (shortest, longest) = (
        most.iter().map(|step| step.ns).min(),
        most.iter().map(|step| step.ns).max(),
    );
    let range = format!(
        "{} to {} on {}: {}",
        duration(shortest.unwrap_or(0)),
        duration(longest.unwrap_or(0)),
        threads.into_iter().collect::<Vec<_>>().join(", "),
        most[0].text.replace('\n', " | ")
    );
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Note,
        title,
        Cause::Unknown,
        quote(observed, range, &most[0].quote),
    );
    if of_source(observed, SpanKind::StepWithThreads, *source)
        .next()
        .is_none()
    {
        let between = "time between two steps of a thread is not counted: it may have had nothing to do";
        finding = finding.and(quote(observed, between, &most[0].quote));
    }
    fires(finding.remedy(Remedy::safe(
        "compare with the same step in another log, and look at the steps that grew",
    )))
}
