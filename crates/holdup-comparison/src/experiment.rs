//! Does it get faster when a wait is taken away, and by how much? The sums behind `holdup try`.
//!
//! In: pairs of runs, one as it is and one without the wait, next to each other in time. Out: an [`Experiment`].
//!
//! The factor is that of geometric means: the one mean of ratios that does not depend on which run stands above the line (Fleming and
//! Wallace, "How not to lie with statistics", CACM 29, 1986). Its interval is Student's (Biometrika 6, 1908) on the logarithms of the
//! pairs' ratios. A pair's runs are neighbours, and the arms change places from pair to pair (A B B A), so what drifts steadily, such as
//! a disk that gets warm or a table that grows, cancels out of two pairs and widens the interval of fewer.

use crate::comparison::significance::LEVEL;
use crate::comparison::student::quantile;
use holdup_evidence::units::{duration, factor, share as percent};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Experiment, ExperimentCause, Outcome, PredictedBy};
use std::collections::{BTreeMap, BTreeSet};

/// A prediction is called off when it misses the measured saving by more than this part: what `cargo xtask predictions` asks of it.
const OFF: f64 = 0.15;

/// Of the elapsed time as it is: what may be left of a wait that was taken away. With more, the factor would be that of some other
/// change. Given by the command's definition.
const MAX_LEFT_SHARE: f64 = 0.10;

/// Of the elapsed time: a wait with less is not there. Run-to-run variation of most commands is as large.
const NOT_THERE: f64 = 0.01;

/// A run that is shorter says more of starting a program than of what it does: a dynamically linked one takes a millisecond.
const SHORT_NS: Ns = 10_000_000;

/// One run of CMD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arm {
    /// From its start to its end.
    pub elapsed: Ns,
    /// The critical path by cause; adds up to `elapsed`.
    pub path: BTreeMap<Cause, Ns>,
}

impl From<&Attributed> for Arm {
    fn from(attributed: &Attributed) -> Arm {
        let causes = attributed.path.iter();
        Arm {
            elapsed: attributed.elapsed,
            path: causes.map(|(cause, tally)| (*cause, tally.ns)).collect(),
        }
    }
}

impl Arm {
    /// How much of it these causes are.
    fn of(&self, causes: &[Cause]) -> Ns {
        causes.iter().filter_map(|cause| self.path.get(cause)).sum()
    }

    /// As a part of it.
    fn share(&self, causes: &[Cause]) -> f64 {
        self.of(causes) as f64 / (self.elapsed as f64).max(1.0)
    }
}

/// One run each way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pair {
    /// As it is.
    pub as_is: Arm,
    /// Without the wait.
    pub without: Arm,
}

/// What was tried, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Design {
    /// As the command line has it.
    pub without: String,
    /// What that is.
    pub causes: Vec<Cause>,
    /// How it is taken away.
    pub how: String,
    /// What escapes: said where much is left.
    pub escapes: String,
    /// What a remedy of this kind gives up.
    pub risk: String,
    /// What CMD can't touch.
    pub contained: Vec<String>,
    /// What it can.
    pub not_contained: Vec<String>,
}

/// Whether a run has so little of the wait that taking it away would tell nothing.
#[must_use]
pub fn not_there(as_is: &Arm, design: &Design) -> bool {
    as_is.share(&design.causes) < NOT_THERE
}

/// What the critical path alone says: it is as much shorter as that wait is on it, unless another branch becomes critical.
#[must_use]
pub fn predict_by_path(as_is: &Arm, causes: &[Cause]) -> Ns {
    as_is.elapsed.saturating_sub(as_is.of(causes))
}

/// CMD that does not wait for it: one run tells.
#[must_use]
pub fn nothing_to_take(design: &Design, as_is: &Arm) -> Experiment {
    let share = as_is.share(&design.causes);
    let words = if as_is.of(&design.causes) == 0 {
        format!(
            "No part of its {} is {}: there is nothing to remove.",
            duration(as_is.elapsed),
            design.without
        )
    } else {
        format!(
            "Only {} of its {} is {}: the gain cannot be larger, and is within the variation of runs.",
            percent(share),
            duration(as_is.elapsed),
            design.without
        )
    };
    Experiment {
        runs: 1,
        baseline_ns: as_is.elapsed,
        outcome: Outcome::NotThere,
        verdict: vec![words],
        ..blank(design)
    }
}

/// Judges what was measured; `pairs` has at least one. `predicted`: what the elapsed time of the first run would be, and what says so.
#[must_use]
pub fn judge(design: &Design, pairs: &[Pair], predicted: Option<(Ns, PredictedBy)>) -> Experiment {
    let as_is = || pairs.iter().map(|pair| &pair.as_is);
    let without = || pairs.iter().map(|pair| &pair.without);
    let baseline = geometric(as_is().map(|arm| arm.elapsed));
    let measured = geometric(without().map(|arm| arm.elapsed));
    let remaining = mean(without().map(|arm| arm.of(&design.causes)));
    // Of one run, scaled to the mean of all.
    let predicted_ns = predicted.zip(pairs.first()).map(|((ns, _), first)| {
        let part = ns as f64 / (first.as_is.elapsed as f64).max(1.0);
        (part * baseline).round() as Ns
    });
    let speedup = baseline / measured;
    let interval = interval(pairs);
    let left = remaining / baseline;
    let outcome = match interval {
        _ if left > MAX_LEFT_SHARE => Outcome::Remains,
        None => Outcome::NotSure,
        Some([low, _]) if low > 1.0 => Outcome::Faster,
        Some([_, high]) if high < 1.0 => Outcome::Slower,
        Some(_) => Outcome::NoDifference,
    };
    let causes = causes(pairs);
    let bottleneck = causes.iter().find(|one| !design.causes.contains(&one.cause));
    let mut experiment = Experiment {
        runs: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        baseline_ns: baseline.round() as Ns,
        predicted_ns,
        predicted_by: predicted_ns.and(predicted).map(|(_, by)| by),
        measured_ns: Some(measured.round() as Ns),
        remaining_ns: Some(remaining.round() as Ns),
        speedup: Some(speedup).filter(|_| outcome != Outcome::Remains),
        interval: interval.filter(|_| outcome != Outcome::Remains),
        outcome,
        bottleneck: bottleneck.map(|one| one.cause),
        pairs: pairs
            .iter()
            .map(|pair| [pair.as_is.elapsed, pair.without.elapsed])
            .collect(),
        ..blank(design)
    };
    experiment.verdict = verdict(&experiment, left, &design.escapes);
    experiment
        .verdict
        .extend(bottleneck.and_then(|one| now_most(one, &experiment)));
    experiment.causes = causes;
    experiment.verdict.extend(off(&experiment, design));
    if experiment.measured_ns.is_some_and(|ns| ns < SHORT_NS) {
        let words = format!(
            "without the wait, CMD ends within {}, and much of that is program start; for a better estimate, give CMD more work",
            duration(SHORT_NS)
        );
        experiment.notes.push(words);
    }
    experiment
}

/// What the design says, with nothing measured.
fn blank(design: &Design) -> Experiment {
    Experiment {
        without: design.without.clone(),
        runs: 0,
        baseline_ns: 0,
        predicted_ns: None,
        measured_ns: None,
        remaining_ns: None,
        speedup: None,
        interval: None,
        risk: design.risk.clone(),
        how: design.how.clone(),
        predicted_by: None,
        outcome: Outcome::NotSure,
        verdict: Vec::new(),
        causes: Vec::new(),
        bottleneck: None,
        pairs: Vec::new(),
        contained: design.contained.clone(),
        not_contained: design.not_contained.clone(),
        notes: Vec::new(),
    }
}

/// Where the factor lies; `None` of one pair.
fn interval(pairs: &[Pair]) -> Option<[f64; 2]> {
    let count = pairs.len() as f64;
    if pairs.len() < 2 {
        return None;
    }
    let logs: Vec<f64> = pairs
        .iter()
        .map(|pair| ln(pair.as_is.elapsed) - ln(pair.without.elapsed))
        .collect();
    let centre = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - centre).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let reach = quantile(LEVEL, count - 1.0) * error;
    Some([(centre - reach).exp(), (centre + reach).exp()])
}

fn ln(ns: Ns) -> f64 {
    (ns.max(1) as f64).ln()
}

fn geometric(values: impl Iterator<Item = Ns>) -> f64 {
    let logs: Vec<f64> = values.map(ln).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

fn mean(values: impl Iterator<Item = Ns>) -> f64 {
    let values: Vec<f64> = values.map(|value| value as f64).collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Mean paths, largest without first.
fn causes(pairs: &[Pair]) -> Vec<ExperimentCause> {
    let arms = pairs.iter().flat_map(|pair| [&pair.as_is, &pair.without]);
    let names: BTreeSet<Cause> = arms.flat_map(|arm| arm.path.keys().copied()).collect();
    let mut causes: Vec<ExperimentCause> = names
        .into_iter()
        .map(|cause| ExperimentCause {
            cause,
            baseline_ns: mean(pairs.iter().map(|pair| pair.as_is.of(&[cause]))).round() as Ns,
            measured_ns: mean(pairs.iter().map(|pair| pair.without.of(&[cause]))).round() as Ns,
        })
        .filter(|one| one.baseline_ns > 0 || one.measured_ns > 0)
        .collect();
    causes.sort_by_key(|one| std::cmp::Reverse((one.measured_ns, one.baseline_ns)));
    causes
}

/// The first sentence is the answer.
fn verdict(experiment: &Experiment, left: f64, escapes: &str) -> Vec<String> {
    let without = &experiment.without;
    let (baseline, measured) = (
        duration(experiment.baseline_ns),
        duration(experiment.measured_ns.unwrap_or_default()),
    );
    let range = experiment
        .interval
        .map(|[low, high]| format!(" ({} to {} with 95 %)", factor(low), factor(high)))
        .unwrap_or_default();
    let speedup = experiment.speedup.unwrap_or(1.0);
    let sentence = match experiment.outcome {
        Outcome::Faster => format!(
            "Without {without} it takes {measured} instead of {baseline}: {} times as fast{range}.",
            factor(speedup)
        ),
        Outcome::Slower => format!(
            "Without {without} it takes {measured} instead of {baseline}: slower, {} times as long{range_of_slower}.",
            factor(1.0 / speedup),
            range_of_slower = experiment
                .interval
                .map(|[low, high]| format!(" ({} to {} with 95 %)", factor(1.0 / high), factor(1.0 / low)))
                .unwrap_or_default()
        ),
        Outcome::NoDifference => format!(
            "Without {without} it takes {measured}, unchanged {baseline}: no significant difference, {} \
             times as fast{range}.",
            factor(speedup)
        ),
        Outcome::NotSure | Outcome::NotThere => format!(
            "Without {without} it took {measured} instead of {baseline}: {} times as fast. One run each does \
             not show how much runs vary: use --runs 4.",
            factor(speedup)
        ),
        Outcome::Remains => format!(
            "No verdict: {} of {without} remains without it, {} of the unchanged {baseline} (limit: {}).",
            duration(experiment.remaining_ns.unwrap_or_default()),
            percent(left),
            percent(MAX_LEFT_SHARE)
        ),
    };
    let mut sentences = vec![sentence];
    if experiment.outcome == Outcome::Remains && !escapes.is_empty() {
        sentences.push(format!("Not removed: {escapes}."));
    }
    sentences
}

/// The next bottleneck.
fn now_most(one: &ExperimentCause, experiment: &Experiment) -> Option<String> {
    let whole = experiment.measured_ns?;
    let share = one.measured_ns as f64 / (whole as f64).max(1.0);
    Some(format!(
        "Most of the rest is {} ({}): {}, {} of it; unchanged it is {}.",
        one.cause.phrase(),
        one.cause.id(),
        duration(one.measured_ns),
        percent(share.min(1.0)),
        duration(one.baseline_ns)
    ))
}

/// Where the prediction was off: by how much, and which part of the rest changed most, which it took to stay.
fn off(experiment: &Experiment, design: &Design) -> Option<String> {
    let measured = experiment.measured_ns?;
    let saved = experiment.baseline_ns.checked_sub(measured)?;
    let predicted = experiment.baseline_ns.saturating_sub(experiment.predicted_ns?);
    if experiment.outcome != Outcome::Faster || predicted.abs_diff(saved) as f64 <= OFF * saved as f64 {
        return None;
    }
    let (more, changed): (_, fn(&ExperimentCause) -> Ns) = match predicted > saved {
        true => ("less", |one| one.measured_ns.saturating_sub(one.baseline_ns)),
        false => ("more", |one| one.baseline_ns.saturating_sub(one.measured_ns)),
    };
    let others = experiment
        .causes
        .iter()
        .filter(|one| !design.causes.contains(&one.cause));
    let most = others
        .max_by_key(|one| changed(one))
        .filter(|one| changed(one) > 0);
    let why = most.map_or_else(String::new, |one| {
        let than = if predicted > saved { "longer" } else { "shorter" };
        format!(
            "; {} ({}) was {} {than} than unchanged",
            one.cause.phrase(),
            one.cause.id(),
            duration(changed(one))
        )
    });
    Some(format!(
        "This is {more} than predicted: saved {}, predicted {}{why}.",
        duration(saved),
        duration(predicted)
    ))
}

#[cfg(test)]
mod tests;
