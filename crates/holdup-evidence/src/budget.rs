//! How much an observation might take, how much it took, and what was left out so that it took no more.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// What is left out to stay within the budget, in this order: what costs a person least to go without comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinned {
    /// Fewer requests are reported one by one; all are counted, and times with a request to answer stay exact.
    Requests,
    /// Fewer stacks are taken; times stay exact, functions that asked are known for fewer waits, and more waits have their cause from an
    /// earlier one in the same call.
    Stacks,
    /// Waits like the one before are known by their number; totals stay exact.
    Repeats,
    /// Hardly any stack is taken.
    MostStacks,
    /// Observation ended before its time.
    Time,
}

/// The steps before the last resort.
pub const STEPS: [Thinned; 4] = [
    Thinned::Requests,
    Thinned::Stacks,
    Thinned::Repeats,
    Thinned::MostStacks,
];

/// Something that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What.
    pub what: Thinned,
    /// Since when, from the begin of observation.
    pub since: Ns,
    /// Until when, from the same; `None`: until the end.
    pub until: Option<Ns>,
}

/// The budget of an observation, and what became of it. The start of holdup and the work on the report are no part of it: they are the same
/// however long one observes, and are over before and after.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Of one CPU; of the CPU time of what is observed, where that was more than one CPU.
    pub share: f64,
    /// A person set it: where it is known how long observation is to last, that ends once it is used up.
    pub firm: bool,
    /// CPU time that this came to.
    pub allowed: Ns,
    /// CPU time that was used: the two below.
    pub used: Ns,
    /// Of that, by the programs in the kernel.
    pub programs: Ns,
    /// Of that, by holdup's own processes.
    pub own: Ns,
    /// Whether the kernel itself counted the time of the programs; else it is an estimate from every 64th run of most of them.
    pub counted: bool,
    /// CPU time before observation began.
    pub start: Ns,
    /// What was left out, in the order in which it was.
    pub steps: Vec<Step>,
}
