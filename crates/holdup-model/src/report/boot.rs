//! What a report of `holdup boot` has beside the rest.

use crate::randomness::Aspect;
use holdup_evidence::{Cause, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the machine came up. Times are since the kernel's first line where that is known (`from_kernel`), else since the first
/// line of the log that tells any.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    /// In one sentence.
    pub verdict: String,
    /// The kernel, where its first line is there.
    pub release: Option<String>,
    /// The host that the artefacts name.
    pub host: Option<String>,
    /// How long it took; null where nothing tells.
    pub took_ns: Option<Ns>,
    /// Whether it may have gone on: the logs end before they say that it was over.
    pub at_least: bool,
    /// What came at the end of `took_ns`.
    pub until: Option<String>,
    /// When the random generator was seeded.
    pub seeded_ns: Option<Ns>,
    /// Whether times count from the kernel's first line.
    pub from_kernel: bool,
    /// Whether that line is older than the log has it: the journal's daemon took it when it started.
    pub taken_late: bool,
    /// Parts of the boot as systemd has them: firmware, loader, kernel, initrd, userspace.
    pub phases: Vec<BootPhase>,
    /// How far it had come when, in order.
    pub milestones: Vec<Milestone>,
    /// Waits of units whose length is proved, longest first. They may overlap.
    pub waits: Vec<BootWait>,
    /// The units of the critical chain, the last first.
    pub chain: Vec<ChainUnit>,
    /// Holes in it, longest first.
    pub holes: Vec<Hole>,
    /// Artefacts that are of another boot, or whose times can't be compared with this one's.
    pub apart: Vec<String>,
    /// What of this machine's boot could not be seen, a sentence each; empty for files.
    pub missing: Vec<String>,
    /// Where this machine's randomness comes from; empty for files.
    pub randomness: Vec<Aspect>,
}

/// A part of the boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BootPhase {
    /// Its name.
    pub name: String,
    /// Its length.
    pub ns: Ns,
}

/// An instant of the boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Milestone {
    /// When.
    pub at_ns: Ns,
    /// What, as an id: `first-line`, `init-started`, `random-seeded`, the name of a target.
    pub what: String,
    /// What, in words.
    pub text: String,
    /// Units that were up in the same instant, having waited for it.
    pub with: Vec<String>,
    /// Where it stands.
    pub source: String,
}

/// A wait of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BootWait {
    /// Which unit.
    pub unit: String,
    /// What it waited for.
    #[schemars(with = "String")]
    pub cause: Cause,
    /// The same in words, behind the unit's name.
    pub text: String,
    /// For how long.
    pub ns: Ns,
    /// When it began; null where the two clocks can't be compared.
    pub began_ns: Option<Ns>,
    /// The line with which it began.
    pub source: String,
    /// The line with which it ended.
    pub ended: String,
}

/// A unit of the critical chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainUnit {
    /// Its name.
    pub unit: String,
    /// When it was up, since systemd began.
    pub reached_ns: Ns,
    /// How long its own start took, where told.
    pub took_ns: Option<Ns>,
}

/// Time between what a unit of the chain waited for and its own beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hole {
    /// The unit behind it.
    pub unit: String,
    /// What was reached before it.
    pub after: String,
    /// When it began, since systemd began.
    pub began_ns: Option<Ns>,
    /// How long it is.
    pub ns: Ns,
    /// What filled it; null where no log of the same boot tells.
    pub what: Option<String>,
    /// Where it stands.
    pub source: String,
}
