//! Conditions over findings: `finding:RULE`, `severity>=warning`, `new-finding`.
//!
//! A rule has three verdicts, and so has a condition over it: a rule that could not judge what was observed has not said that all is well.

use super::super::comparison::normal_name;
use super::{Evidence, Judged};
use holdup_evidence::Cause;
use holdup_model::attributed::ResourceKind;
use holdup_model::finding::Severity;
use holdup_model::report::{Finding, GateOutcome, Report};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The least severity that counts as new: notes describe, and come and go from run to run.
const NEW_FROM: Severity = Severity::Warning;

/// Findings that the sentence names; more are counted.
const NAMED: usize = 3;

/// Sentence for a report whose findings mean nothing.
const UNDECIDED: &str = "too much of the time has no known cause for any verdict";

/// `finding:RULE`.
pub(super) fn of_rule(rule: &str, with: Evidence<'_>) -> Judged {
    let report = with.report;
    if (with.undecided)(report) {
        return Judged::cannot_tell(UNDECIDED);
    }
    let found = which(report, |finding| finding.rule == rule);
    if !found.is_empty() {
        return failed("", report, found);
    }
    match verdict(report, rule) {
        Said::Clear => Judged::new(GateOutcome::Passed, format!("rule {rule} found nothing")),
        Said::CannotTell(missing) => Judged::cannot_tell(format!(
            "rule {rule} could not judge what was observed: {missing}"
        )),
        Said::Fires | Said::Nothing => {
            Judged::cannot_tell(format!("rule {rule} does not judge observations of this kind"))
        }
    }
}

/// `severity>=warning`.
pub(super) fn of_severity(least: Severity, with: Evidence<'_>) -> Judged {
    let report = with.report;
    if (with.undecided)(report) {
        return Judged::cannot_tell(UNDECIDED);
    }
    let found = which(report, |finding| finding.severity >= least);
    match found.is_empty() {
        true => Judged::new(GateOutcome::Passed, "no finding of that severity"),
        false => failed("", report, found),
    }
}

/// `new-finding`.
pub(super) fn new(with: Evidence<'_>) -> Judged {
    let (report, baselines) = (with.report, with.baselines);
    if (with.undecided)(report) {
        return Judged::cannot_tell(UNDECIDED);
    }
    if let Some(other) = baselines
        .iter()
        .find(|baseline| baseline.subject.kind != report.subject.kind)
    {
        return Judged::cannot_tell(format!(
            "the baseline is of another command: {:?}, and this report is of {:?}",
            other.subject.kind, report.subject.kind
        ));
    }
    let known: BTreeSet<Key<'_>> = baselines
        .iter()
        .flat_map(|baseline| baseline.findings.iter().map(key))
        .collect();
    let fresh = which(report, |finding| {
        finding.severity >= NEW_FROM && !known.contains(&key(finding))
    });
    if fresh.is_empty() {
        return Judged::new(GateOutcome::Passed, "no finding that the baseline does not have");
    }
    // A baseline that could not judge a rule does not say that there was nothing.
    let (proved, open): (Vec<u32>, Vec<u32>) = fresh.into_iter().partition(|at| {
        let rule = report.findings.get(*at as usize).map(|one| one.rule.as_str());
        rule.is_some_and(|rule| {
            baselines
                .iter()
                .any(|baseline| judged(baseline, rule, with.undecided))
        })
    });
    if proved.is_empty() {
        let text = format!(
            "{}, and the baseline could not judge that rule: record the baseline again",
            named(report, &open)
        );
        return Judged {
            findings: open,
            ..Judged::cannot_tell(text)
        };
    }
    failed("not in the baseline: ", report, proved)
}

/// What makes two findings of two observations the same one: the rule, the cause, and the resource without what is of one run.
type Key<'a> = (&'a str, Cause, ResourceKind, Cow<'a, str>);

fn key(finding: &Finding) -> Key<'_> {
    let resource = &finding.resource;
    (
        &finding.rule,
        finding.cause,
        resource.kind,
        normal_name(&resource.name),
    )
}

/// Places of findings for which something holds.
fn which(report: &Report, holds: impl Fn(&Finding) -> bool) -> Vec<u32> {
    let found = report.findings.iter().enumerate();
    let found = found.filter(|(_, finding)| holds(finding));
    found.filter_map(|(at, _)| u32::try_from(at).ok()).collect()
}

fn failed(before: &str, report: &Report, found: Vec<u32>) -> Judged {
    Judged {
        text: format!("{before}{}", named(report, &found)),
        findings: found,
        ..Judged::new(GateOutcome::Failed, "")
    }
}

/// Titles with their rules.
fn named(report: &Report, found: &[u32]) -> String {
    let titles = found.iter().filter_map(|at| report.findings.get(*at as usize));
    let mut titles: Vec<String> = titles
        .take(NAMED)
        .map(|finding| format!("{} ({})", finding.title, finding.rule))
        .collect();
    match found.len().saturating_sub(NAMED) {
        0 => {}
        more => titles.push(format!("and {more} more")),
    }
    titles.join("; ")
}

/// What a report has of a rule.
enum Said<'a> {
    Fires,
    Clear,
    CannotTell(&'a str),
    Nothing,
}

fn verdict<'a>(report: &'a Report, rule: &str) -> Said<'a> {
    if report.findings.iter().any(|one| one.rule == rule) {
        return Said::Fires;
    }
    if report.ruled_out.iter().any(|one| one.rule == rule) {
        return Said::Clear;
    }
    let open = report.cannot_tell.iter().find(|one| one.rule == rule);
    open.map_or(Said::Nothing, |one| Said::CannotTell(&one.missing))
}

/// Whether a baseline says of a rule that there was nothing, or what there was.
fn judged(baseline: &Report, rule: &str, undecided: fn(&Report) -> bool) -> bool {
    !undecided(baseline) && matches!(verdict(baseline, rule), Said::Fires | Said::Clear)
}
