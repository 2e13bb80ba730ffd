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
    #[schemars(with = "String")]
    pub what: MilestoneKind,
    /// What, in words.
    pub text: String,
    /// Units that were up in the same instant, having waited for it.
    pub with: Vec<String>,
    /// Where it stands.
    pub source: String,
}

/// What an instant of the boot is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MilestoneKind {
    /// The kernel's first line.
    FirstLine,
    /// The kernel has set itself up.
    KernelReady,
    /// The first program is started.
    InitStarted,
    /// The service manager starts.
    ManagerStarted,
    /// The kernel waits for the device of the root file system.
    WaitsForRoot,
    /// The root file system is mounted.
    RootMounted,
    /// The first file system is mounted.
    FirstMount,
    /// Swap space is used.
    SwapOn,
    /// A network interface has its link.
    LinkUp,
    /// The random generator is seeded.
    RandomSeeded,
    /// A process listens.
    Listens,
    /// A device has not come in time.
    DeviceMissing,
    /// A unit runs out of time.
    TimedOut,
    /// Nothing is logged for long.
    Pause,
    /// A target is reached, by name; or what another version of holdup tells of.
    Target(String),
}

impl MilestoneKind {
    /// Those that have one id.
    const NAMED: [(&'static str, MilestoneKind); 14] = [
        ("first-line", MilestoneKind::FirstLine),
        ("kernel-ready", MilestoneKind::KernelReady),
        ("init-started", MilestoneKind::InitStarted),
        ("manager-started", MilestoneKind::ManagerStarted),
        ("waits-for-root", MilestoneKind::WaitsForRoot),
        ("root-mounted", MilestoneKind::RootMounted),
        ("first-mount", MilestoneKind::FirstMount),
        ("swap-on", MilestoneKind::SwapOn),
        ("link-up", MilestoneKind::LinkUp),
        ("random-seeded", MilestoneKind::RandomSeeded),
        ("listens", MilestoneKind::Listens),
        ("device-missing", MilestoneKind::DeviceMissing),
        ("timed-out", MilestoneKind::TimedOut),
        ("pause", MilestoneKind::Pause),
    ];
}

impl std::fmt::Display for MilestoneKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = MilestoneKind::NAMED.iter().find(|(_, one)| one == self);
        match (self, own) {
            (_, Some((id, _))) => f.write_str(id),
            (MilestoneKind::Target(name), None) => f.write_str(name),
            (_, None) => Ok(()),
        }
    }
}

impl From<String> for MilestoneKind {
    fn from(id: String) -> MilestoneKind {
        let own = MilestoneKind::NAMED.into_iter().find(|(text, _)| *text == id);
        own.map_or(MilestoneKind::Target(id), |(_, named)| named)
    }
}

impl From<MilestoneKind> for String {
    fn from(kind: MilestoneKind) -> String {
        kind.to_string()
    }
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
    /// How long its own start took, where known.
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
