//! What a command's elapsed time would be without a wait, and what makes that doubtful.
//!
//! In: a [`Question`]. Out: [`Predictions`]. `holdup-attribution` answers; a report keeps the answer.

use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the elapsed time would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// The cause that is taken away.
    #[schemars(with = "String")]
    pub without: Cause,
    /// What is left of its waits: 0 for none of them, 0.5 for half.
    pub factor: f64,
    /// The elapsed time then.
    pub elapsed_ns: Ns,
    /// Why it may be otherwise.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// What is not modelled and would change a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// Requests of several threads were at the disk at once.
    DeviceQueueing,
    /// Several threads waited for the disk to have their data at once.
    GroupCommit,
    /// What is written is still to be written.
    DeferredWriteback,
    /// Sleeps of equal length, again and again.
    Polling,
    /// CPU time that passes with waiting.
    Spinning,
    /// The CPU quota of a cgroup was spent.
    Quota,
    /// The waits are for what others of the run do.
    OthersWork,
}

impl Doubt {
    /// In words: completes "not sure, because …".
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Doubt::DeviceQueueing => {
                "several threads waited for the disk at once, so the wait of one depends on the others"
            }
            Doubt::GroupCommit => "several threads waited for a sync at once, and one commit may serve many",
            Doubt::DeferredWriteback => "the data must still be written later",
            Doubt::Polling => {
                "these sleeps have equal length: if they poll for an event, it does not come sooner"
            }
            Doubt::Spinning => "some of the CPU time is busy waiting, which ends only with the awaited event",
            Doubt::OthersWork => "it waits for work of other threads in the run, which must still be done",
            Doubt::Quota => "the cgroup's CPU quota was spent, and would be spent sooner",
        }
    }
}

/// What was asked for, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Predictions {
    /// Worth most first; those at half behind those without.
    pub list: Vec<Prediction>,
    /// What the elapsed time would be without all the causes that [`Question::together`] has.
    pub together: Option<Ns>,
    /// Why there is none, or not all.
    pub not: Option<String>,
}

impl Predictions {
    /// What the elapsed time would be without this cause at all.
    ///
    /// # Errors
    /// Why that can't be said.
    pub fn without(&self, cause: Cause) -> Result<&Prediction, &str> {
        let found = self
            .list
            .iter()
            .find(|one| one.without == cause && one.factor == 0.0);
        found.ok_or_else(|| {
            self.not
                .as_deref()
                .unwrap_or("the command almost never waited for that")
        })
    }
}

/// What is to be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// CPUs that CMD may run on.
    pub cpus: u32,
    /// Causes to take away together, for [`Predictions::together`]; may be none.
    pub together: &'static [Cause],
}
