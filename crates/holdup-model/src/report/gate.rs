//! What `--fail-on` came to: each condition beside what was observed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The conditions of `--fail-on`, and whether one of them holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// Of all conditions together: it fails where one fails; else it cannot be determined where one cannot.
    pub outcome: GateOutcome,
    /// Each condition, as it was given.
    pub checks: Vec<Check>,
}

/// What a condition came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// The condition does not hold.
    Passed,
    /// Whether it holds cannot be determined from what was observed.
    CannotTell,
    /// The condition holds.
    Failed,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The condition, as `--fail-on` takes it.
    pub condition: String,
    /// What it came to.
    pub outcome: GateOutcome,
    /// What was compared with the limit; null of conditions without a figure, and where there is no figure.
    pub measured: Option<Measured>,
    /// Findings that the condition holds for, by their place in `findings`.
    pub findings: Vec<u32>,
    /// The outcome in one sentence, with the figure and the reason.
    pub text: String,
}

/// A figure and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// What the figures count.
    pub unit: GateUnit,
    /// The figure.
    pub value: f64,
    /// The least that it can be, with 95 %: an estimate may be too high.
    pub low: f64,
    /// The most that it can be, with 95 %; null where observation sets no bound: not all was observed.
    pub high: Option<f64>,
    /// What it may be before the condition holds.
    pub limit: f64,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateUnit {
    /// A part of the whole, 0 to 1.
    Share,
    /// Nanoseconds.
    Ns,
    /// Change as a part of BEFORE: 0.1 is 10 % more.
    Change,
}

impl Gate {
    /// Of these conditions.
    #[must_use]
    pub fn of(checks: Vec<Check>) -> Gate {
        let worst = checks.iter().map(|check| check.outcome).max();
        Gate {
            outcome: worst.unwrap_or(GateOutcome::Passed),
            checks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Check, Gate, GateOutcome};

    #[test]
    fn one_that_fails_outweighs_one_that_cannot_tell() {
        let of = |outcomes: &[GateOutcome]| {
            let check = |outcome: &GateOutcome| Check {
                condition: String::new(),
                outcome: *outcome,
                measured: None,
                findings: vec![],
                text: String::new(),
            };
            Gate::of(outcomes.iter().map(check).collect()).outcome
        };
        use GateOutcome::{CannotTell, Failed, Passed};
        assert_eq!(of(&[]), Passed);
        assert_eq!(of(&[Passed, CannotTell]), CannotTell);
        assert_eq!(of(&[CannotTell, Failed, Passed]), Failed);
    }
}
