//! What the report has of an experiment: `holdup try`.
//!
//! Durations are means over runs of CMD, geometric where they are elapsed times, so that `speedup` is `baseline_ns` over
//! `measured_ns` and the mean of the pairs' ratios too.

use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CMD as it is beside CMD with a wait taken away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// What was taken away: a cause, or `disk` for all of `disk.*`.
    pub without: String,
    /// How often CMD ran each way.
    pub runs: u32,
    /// How long it takes as it is.
    pub baseline_ns: Ns,
    /// How long it should take without; null where nothing could be predicted.
    pub predicted_ns: Option<Ns>,
    /// How long it took without; null where it was not run so.
    pub measured_ns: Option<Ns>,
    /// How much of that is still the wait that should be gone.
    pub remaining_ns: Option<Ns>,
    /// `baseline_ns` over `measured_ns`; null where there is no verdict.
    pub speedup: Option<f64>,
    /// Where the true factor lies, with 95 %; null of fewer than two runs each way, and where there is no verdict.
    pub interval: Option<[f64; 2]>,
    /// What a remedy of this kind gives up.
    pub risk: String,
    /// How the wait was taken away.
    pub how: String,
    /// What the prediction rests on.
    pub predicted_by: Option<PredictedBy>,
    /// What came of it.
    pub outcome: Outcome,
    /// The answer, in plain words.
    pub verdict: Vec<String>,
    /// Where the elapsed time goes, either way; largest without first.
    pub causes: Vec<ExperimentCause>,
    /// What most of the time goes to without that wait.
    #[schemars(with = "Option<String>")]
    pub bottleneck: Option<Cause>,
    /// Elapsed times, in the order of the pairs: as it is, without.
    pub pairs: Vec<[Ns; 2]>,
    /// What CMD could not touch.
    pub contained: Vec<String>,
    /// What it could.
    pub not_contained: Vec<String>,
    /// What is to be kept in mind.
    pub notes: Vec<String>,
}

/// What a prediction rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PredictedBy {
    /// The waits were replayed without that one.
    Replay,
    /// That wait's part of the critical path was left out. Another branch may become critical, so it takes at least as long.
    CriticalPath,
}

/// What came of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is faster without, by more than chance.
    Faster,
    /// It is slower without, by more than chance.
    Slower,
    /// There is no difference beyond chance.
    NoDifference,
    /// One run each way: how much runs vary is not known.
    NotSure,
    /// No verdict: too much of the wait was left.
    Remains,
    /// CMD hardly waits for it: nothing was taken away.
    NotThere,
}

/// A cause, either way: mean time along the critical path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentCause {
    /// The cause.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// As it is.
    pub baseline_ns: Ns,
    /// Without.
    pub measured_ns: Ns,
}
