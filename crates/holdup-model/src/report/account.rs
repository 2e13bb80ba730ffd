//! What a report has of the largest things that artefacts show.

use holdup_evidence::Ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the largest things that the artefacts show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountLine {
    /// Which thing: a device, a unit, a process, a pause, a place where threads stand.
    pub what: String,
    /// How long it took or stood, nanoseconds; null where the artefact does not say.
    pub ns: Option<Ns>,
    /// Of what there is of its kind, 0..1: of the time, of the threads, of the CPUs; null where that is not known.
    pub share: Option<f64>,
    /// One sentence: thing, what is with it, and size.
    pub text: String,
    /// The main clause of `text`, where that has further ones: what it comes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// The further clauses of `text`, one by one: the artefact's own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
    /// Where it was read, as `name:line`.
    pub source: String,
    /// What makes it stand out.
    pub basis: AccountBasis,
}

/// Why a line is in the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccountBasis {
    /// The artefact itself reports a problem, in words or by a state.
    Reported,
    /// By its figures a resource is used nearly all of the time, or somebody queues for it.
    Saturated,
    /// It is the largest of its kind, and there is no norm for it.
    Largest,
    /// It is within what is usual.
    WithinNorm,
}

/// What artefacts come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccountOutcome {
    /// Something holds it up: there is a finding that is more than a note.
    HoldsUp,
    /// There is a largest thing, and nothing tells whether that is too much.
    CannotTell,
    /// All that was measured is within its norms.
    Healthy,
}
