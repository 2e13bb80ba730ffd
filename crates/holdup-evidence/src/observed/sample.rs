//! A profile: stacks with weights.

use super::{Quote, StackId};
use serde::{Deserialize, Serialize};

/// What one profile shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// Which artefact, as a [`Quote`] has it.
    pub source: u32,
    /// What a weight counts.
    pub weight: Weight,
    /// Whether the samples are of time spent waiting (off the CPU), of running, or of both; `None`: not reported.
    pub waiting: Option<bool>,
    /// Stacks, root thread or process name first where there is one, with their weights, heaviest first.
    pub stacks: Vec<(StackId, u64)>,
    /// All weights together, those of stacks that were not kept included.
    pub total: u64,
    /// Where it begins.
    #[serde(default)]
    pub quote: Quote,
}

/// What a weight counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Samples.
    Count,
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
}
