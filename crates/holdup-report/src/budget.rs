//! The budget of an observation, for the report.

use holdup_evidence::budget::{self, Thinned};
use holdup_model::report::{Budget, ThinnedStep};

/// The same with what each step costs in accuracy.
pub(crate) fn told(budget: &budget::Budget) -> Budget {
    Budget {
        share: budget.share,
        firm: budget.firm,
        allowed_ns: budget.allowed,
        used_ns: budget.used,
        programs_ns: budget.programs,
        own_ns: budget.own,
        counted: budget.counted,
        start_ns: budget.start,
        thinned: budget
            .steps
            .iter()
            .map(|step| ThinnedStep {
                what: step.what,
                since_ns: step.since,
                until_ns: step.until,
                effect: effect(step.what).to_owned(),
            })
            .collect(),
    }
}

/// What it costs in accuracy.
fn effect(what: Thinned) -> &'static str {
    match what {
        Thinned::Requests => {
            "fewer single requests: percentiles are coarser; the number of requests stays exact"
        }
        Thinned::Stacks => {
            "a fifth of the stacks: functions are known for fewer waits, and more waits have the cause of an earlier one in the same call; times stay exact"
        }
        Thinned::Repeats => {
            "no record of waits like the one before: totals and numbers stay exact; the time line and the critical path have fewer pieces"
        }
        Thinned::MostStacks => {
            "one stack in 25: functions are known for few waits, and most waits have the cause of an earlier one in the same call; times stay exact"
        }
        Thinned::Time => "observation ended early: nothing is known of the time after it",
    }
}
