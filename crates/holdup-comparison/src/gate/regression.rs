//! Conditions over a comparison: `regression`, `regression>5%`.
//!
//! Whether a change is more than chance is `comparison`'s answer. A limit asks for more: that the change lies above it, with 95 %. Where the
//! interval holds the limit, more runs are needed, and the sentence says how many.

use super::{Judged, NORMAL_95};
use holdup_evidence::units::{duration, percent};
use holdup_model::report::{Comparison, GateOutcome, GateUnit, Measured, Report};

/// Standard errors above the limit of chance at which 85 % of true changes are found: the 85th percentile of the normal distribution.
const POWER_85: f64 = 1.04;

/// Change to look for where no limit is given: 10 %.
const USUAL_CHANGE: f64 = 0.10;

/// Least runs of each side that any test can use.
const LEAST_RUNS: u32 = 4;

/// Runs that nobody records: beyond it, reduce the variation instead.
const MOST_RUNS: u32 = 1_000;

/// Judges it; `limit` is a part of BEFORE, 0: any change.
pub(super) fn judge(limit: f64, report: &Report) -> Judged {
    let Some(comparison) = &report.comparison else {
        return Judged::cannot_tell("there is no comparison");
    };
    let (Some(before), Some(change)) = (comparison.before_ns, comparison.change_ns) else {
        return Judged::cannot_tell("BEFORE and AFTER have no time that can be compared");
    };
    if before == 0 {
        return Judged::cannot_tell("BEFORE took no time");
    }
    let part = |ns: i64| ns as f64 / before as f64;
    let Some(significant) = comparison.significant else {
        return Judged::cannot_tell(format!(
            "the change is {}, and run-to-run variation was not measured: {}",
            signed(change, before),
            runs(comparison, limit)
        ));
    };
    let interval = comparison.interval_ns.map(|ends| ends.map(part));
    let measured = interval.map(|[low, high]| Measured {
        unit: GateUnit::Change,
        value: part(change),
        low,
        high: Some(high),
        limit,
    });
    let slower = significant && change > 0;
    let outcome = match interval {
        _ if limit == 0.0 && slower => GateOutcome::Failed,
        _ if limit == 0.0 => GateOutcome::Passed,
        _ if significant && change <= 0 => GateOutcome::Passed,
        Some([low, _]) if slower && low > limit => GateOutcome::Failed,
        Some([_, high]) if high <= limit => GateOutcome::Passed,
        _ => GateOutcome::CannotTell,
    };
    let range = comparison.interval_ns.map_or_else(String::new, |[low, high]| {
        format!(" (95 %: {} to {})", signed(low, before), signed(high, before))
    });
    let (faster, change) = (change <= 0, signed(change, before));
    let text = match outcome {
        GateOutcome::Failed => format!("AFTER is slower than BEFORE: {change}{range}"),
        GateOutcome::Passed if significant && faster => {
            format!("AFTER is faster than BEFORE: {change}{range}")
        }
        GateOutcome::Passed => {
            format!("no change that is more than noise and above the limit: {change}{range}")
        }
        GateOutcome::CannotTell => format!(
            "the change is {change}{range}, so it may be above the limit or not: {}",
            runs(comparison, limit)
        ),
    };
    Judged {
        measured,
        ..Judged::new(outcome, text)
    }
}

/// `+12.3 %` of BEFORE, with the time.
fn signed(change: i64, before: u64) -> String {
    let sign = if change < 0 { "-" } else { "+" };
    let size = change.unsigned_abs();
    format!("{sign}{} ({sign}{})", percent(size, before), duration(size))
}

/// How many runs would tell.
fn runs(comparison: &Comparison, limit: f64) -> String {
    let change = if limit > 0.0 { limit } else { USUAL_CHANGE };
    match comparison.run_to_run.map(|varies| runs_needed(varies, change)) {
        None => format!("record at least {LEAST_RUNS} runs of each"),
        Some(many) if many >= MOST_RUNS => "runs vary too much: use a quieter machine".to_owned(),
        Some(many) => format!(
            "record about {} runs of each",
            many.max(comparison.before_n.min(comparison.after_n).saturating_add(1))
        ),
    }
}

/// Runs of each side with which 85 % of such changes are found at the 5 % level, where runs vary by `varies` (standard deviation over mean) and
/// `change` is a part of BEFORE. Two more than the normal approximation says: with few runs the variation itself is an estimate.
#[must_use]
pub fn runs_needed(varies: f64, change: f64) -> u32 {
    let errors = (NORMAL_95 + POWER_85) * varies / change;
    let runs = 2.0 * errors * errors + 2.0;
    match runs.is_finite() {
        true => (runs.ceil() as u32).clamp(LEAST_RUNS, MOST_RUNS),
        false => MOST_RUNS,
    }
}
