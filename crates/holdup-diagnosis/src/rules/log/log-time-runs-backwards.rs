//! Time runs backwards in a log: a clock that was set, or two logs in one file.

use super::super::log_times::quote;
use crate::rules::{Rule, RuleId, Run, duration, fires, say};
use holdup_evidence::observed::{Happening, LogEvent, SpanKind, What};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::LogTimeRunsBackwards, check)
    .about("time runs backwards in a log")
    .causes(&[Cause::Unknown]);

/// Jumps that are shown.
const SHOWN: usize = 3;

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let jumps: Vec<(&Happening, Ns, bool)> = observed
        .happenings
        .iter()
        .filter_map(|one| match one.what {
            What::Log(LogEvent::Backwards { ns }) => Some((one, ns, false)),
            What::Log(LogEvent::AnotherLog { ns }) => Some((one, ns, true)),
            _ => None,
        })
        .collect();
    let Some((first, ns, another)) = jumps.first().copied() else {
        return match observed
            .spans
            .iter()
            .find(|span| span.kind == SpanKind::LogCovers)
        {
            Some(log) => Verdict::Clear(format!("times run forwards in {}", log.name)),
            None => Verdict::CannotTell("whether time ran backwards: a log with times".to_owned()),
        };
    };
    let not_shown: u64 = observed
        .happenings
        .iter()
        .map(|one| match one.what {
            What::Log(LogEvent::MoreBackwards { times }) => times,
            _ => 0,
        })
        .sum();
    let what = |another| match another {
        true => "the lines behind it are made differently, so it is another log",
        false => "it is another log, or the clock was set: the log alone does not show which",
    };
    let title = match not_shown.saturating_add(jumps.len() as u64) {
        1 if another => format!(
            "Two logs are run together: time goes back by {} between them",
            duration(ns)
        ),
        1 => format!("Time runs backwards by {} in a log", duration(ns)),
        many => format!("Time runs backwards {} in a log", say::several(many, "time")),
    };
    let text = |one: &Happening, ns, another| {
        format!("back by {} here: {}; {}", duration(ns), one.text, what(another))
    };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Note,
        title,
        Cause::Unknown,
        quote(observed, text(first, ns, another), &first.quote),
    );
    for (one, ns, another) in jumps.iter().skip(1).take(SHOWN - 1) {
        finding = finding.and(quote(observed, text(one, *ns, *another), &one.quote));
    }
    fires(finding.remedy(Remedy::safe(
        "read the parts as logs of their own: no gap is taken across such a place",
    )))
}
