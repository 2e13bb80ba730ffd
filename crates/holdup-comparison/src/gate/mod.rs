//! `--fail-on`: whether one of some conditions holds for a report.
//!
//! In: conditions ([`Condition`]), a report, and reports to compare its findings with. Out: a [`Gate`]. A condition has three outcomes,
//! like a rule: it holds, it does not hold, or it cannot be determined, and then the reason is given. What decides is the report's figures
//! and ids, never its sentences. Figures are compared as intervals: [`figures`] says how far off each may be.

mod condition;
mod figures;
mod findings;
mod regression;

pub use condition::{Condition, Conditions, Limit, causes_named};

pub use regression::runs_needed;

use holdup_model::report::{Check, Gate, GateOutcome, Report};

/// Standard errors to each side of an estimate that hold the true value with 95 %.
const NORMAL_95: f64 = 1.96;

/// What conditions are judged with.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The report.
    pub report: &'a Report,
    /// Reports whose findings are known already.
    pub baselines: &'a [Report],
    /// Whether too much of a report's time has no known cause for any verdict about it.
    pub undecided: fn(&Report) -> bool,
}

/// Judges all conditions.
#[must_use]
pub fn judge(conditions: &Conditions, with: Evidence<'_>) -> Gate {
    Gate::of(conditions.all().iter().map(|one| check(one, with)).collect())
}

fn check(condition: &Condition, with: Evidence<'_>) -> Check {
    let judged = match condition {
        Condition::Time { causes, limit, .. } => figures::judge(condition, causes, *limit, with.report),
        Condition::Rule(rule) => findings::of_rule(rule, with),
        Condition::Severity(least) => findings::of_severity(*least, with),
        Condition::NewFinding => findings::new(with),
        Condition::Regression(limit) => regression::judge(*limit, with.report),
    };
    Check {
        condition: condition.to_string(),
        outcome: judged.outcome,
        measured: judged.measured,
        findings: judged.findings,
        text: judged.text,
    }
}

/// What a condition came to, before it is named.
#[derive(Debug)]
struct Judged {
    outcome: GateOutcome,
    measured: Option<holdup_model::report::Measured>,
    findings: Vec<u32>,
    text: String,
}

impl Judged {
    fn new(outcome: GateOutcome, text: impl Into<String>) -> Judged {
        Judged {
            outcome,
            measured: None,
            findings: Vec::new(),
            text: text.into(),
        }
    }

    fn cannot_tell(text: impl Into<String>) -> Judged {
        Judged::new(GateOutcome::CannotTell, text)
    }
}

#[cfg(test)]
mod power;
#[cfg(test)]
mod tests;
