//! What stands at the head of a segment: whose observation, when, where, by which clock, made by what.
//!
//! It is small and stands in the file's own metadata, so that a directory of a day is looked through without unpacking one
//! segment.

use crate::Break;
use holdup_evidence::Ns;
use holdup_model::report::{Backend, Elsewhere, SubjectKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Letters of a boot's id in a segment's identity: 64 of its 122 random bits.
const BOOT_LETTERS: usize = 16;

/// The head of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The version of holdup that made it.
    pub holdup: String,
    /// By which command.
    pub kind: SubjectKind,
    /// Where the evidence came from.
    pub backend: Backend,
    /// CMD and its arguments, secrets masked; or what was asked about.
    #[serde(default)]
    pub command: Vec<String>,
    /// Process ids, CMD's own first.
    #[serde(default)]
    pub pids: Vec<u32>,
    /// When observation began, `CLOCK_MONOTONIC`, nanoseconds.
    pub started: Ns,
    /// The same as Unix time, nanoseconds.
    pub started_unix: i64,
    /// How long it lasted, nanoseconds.
    pub length: Ns,
    /// When it ended, since boot, suspended time included, nanoseconds; `None` where that was not measured.
    #[serde(default)]
    pub ended_boot: Option<Ns>,
    /// CMD's exit status as a shell has it; `None` where it ran on or there was none.
    #[serde(default)]
    pub exit: Option<i32>,
    /// Processes in other namespaces than holdup's.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
    /// The host's name; `None` where it was taken out.
    #[serde(default)]
    pub host: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`: what tells one boot from another.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// `uname -r`.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The time zone of the machine.
    #[serde(default)]
    pub zone: Zone,
    /// The systemd unit that was observed, where it was asked for.
    #[serde(default)]
    pub unit: Option<String>,
    /// The cgroup that was observed, where it was asked for.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Build ids of the files that frames are in, by the file's base name, where they are known.
    #[serde(default)]
    pub build_ids: BTreeMap<String, String>,
    /// Whether more than secrets was taken out (`--redact`).
    #[serde(default)]
    pub redacted: bool,
    /// Conditions of a recorder that held in it, each with its figure; of several segments those of all.
    #[serde(default)]
    pub detail: Vec<String>,
    /// Whether it lacks detail because no such condition held near it.
    #[serde(default)]
    pub coarse: bool,
    /// How many segments it was put together from; 1 of one that was written.
    #[serde(default = "one")]
    pub segments: u32,
    /// What can't be exact, because it was put together: in words.
    #[serde(default)]
    pub approximate: Vec<String>,
    /// What lies between the segments that it was put together from: another boot, a clock that was set, a gap.
    #[serde(default)]
    pub breaks: Vec<Break>,
}

/// A time zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Zone {
    /// Its name (`Europe/Zurich`), where the machine tells it.
    pub name: Option<String>,
    /// Seconds east of UTC at the time.
    pub offset: i32,
}

fn one() -> u32 {
    1
}

impl Head {
    /// Of an observation by `kind` and `backend` that began at an instant and at a date: CMD was not named, nothing is known of the machine,
    /// and nothing was taken out.
    #[must_use]
    pub fn new(
        (kind, backend): (SubjectKind, Backend),
        (started, started_unix): (Ns, i64),
        length: Ns,
    ) -> Self {
        Self {
            holdup: String::new(),
            kind,
            backend,
            command: vec![],
            pids: vec![],
            started,
            started_unix,
            length,
            ended_boot: None,
            exit: None,
            elsewhere: vec![],
            host: None,
            boot_id: None,
            kernel: None,
            zone: Zone::default(),
            unit: None,
            cgroup: None,
            build_ids: BTreeMap::new(),
            redacted: false,
            detail: vec![],
            coarse: false,
            segments: one(),
            approximate: vec![],
            breaks: vec![],
        }
    }

    /// Whether both are of one boot of one machine, so that their instants are of one clock that nobody sets.
    pub(crate) fn is_of_boot_of(&self, other: &Head) -> bool {
        self.boot_id.is_some() && self.boot_id == other.boot_id && self.host == other.host
    }

    /// Says of this one that nothing of what happened in it is known.
    pub fn lose(&mut self) {
        let (from, to) = (self.started_unix, self.ended_unix());
        self.breaks.push(Break::Lost { from, to });
    }

    /// Whether all of it is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.segments == one() && self.breaks.iter().any(|one| matches!(one, Break::Lost { .. }))
    }

    /// What tells this segment from all others of all hosts, whatever was done to a clock that people set: the begin of the boot's id, and
    /// the instant at which it began in that boot. Letters, digits and `-` only.
    #[must_use]
    pub fn identity(&self) -> String {
        let boot = self.boot_id.as_deref().unwrap_or_default();
        let boot: String = boot
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(BOOT_LETTERS)
            .collect();
        let boot = if boot.is_empty() { "unknown" } else { &boot };
        format!("{boot}-{}", self.started)
    }

    /// When it ended, Unix time, nanoseconds.
    #[must_use]
    pub fn ended_unix(&self) -> i64 {
        self.started_unix
            .saturating_add(i64::try_from(self.length).unwrap_or(i64::MAX))
    }
}
