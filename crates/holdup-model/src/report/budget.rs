//! The budget of an observation: what it might take, what it took, and what was left out.

use holdup_evidence::Ns;
use holdup_evidence::budget::Thinned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much CPU time observation might take, and what became of it. The start of holdup and the work on the report are no part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Of one CPU; of the CPU time of what is observed, where that was more than one CPU.
    pub share: f64,
    /// Set by --budget: with a duration, observation ends once it is used up.
    pub firm: bool,
    /// CPU time that this came to.
    pub allowed_ns: Ns,
    /// CPU time that was used while holdup observed.
    pub used_ns: Ns,
    /// Of that, by BPF programs.
    pub programs_ns: Ns,
    /// Of that, by the processes of holdup.
    pub own_ns: Ns,
    /// Whether the kernel counted the time of the BPF programs; if not, it is an estimate from every 64th run.
    pub counted: bool,
    /// CPU time before observation began.
    pub start_ns: Ns,
    /// What was left out to stay within the budget, in order.
    pub thinned: Vec<ThinnedStep>,
}

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinnedStep {
    /// What: requests, stacks, repeats, most_stacks, time.
    #[schemars(with = "String")]
    pub what: Thinned,
    /// Since when, from the begin of observation.
    pub since_ns: Ns,
    /// Until when, from the same; null: until the end.
    pub until_ns: Option<Ns>,
    /// What that costs in accuracy.
    pub effect: String,
}
