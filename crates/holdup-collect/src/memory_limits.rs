//! Cgroups that run into their memory limit while a machine is recorded.
//!
//! The problem: a cgroup that reads again and again what it has to give back makes thousands of short waits for a disk, each of which is
//! nothing; that the limit is what causes them only the kernel's counts of the cgroup tell. In: the counts when observation begins and when
//! it ends. Out: those cgroups that ran into a limit. The kernel's files of a cgroup take locks that whoever makes cgroups holds, so a child
//! reads them that can be abandoned ([`super::behind`]).

use super::behind::Readers;
use holdup_evidence::observed::{Quote, SeenCgroup};
use holdup_proc::Root;
use holdup_proc::cgroup_limits::{self, Limits};

/// Cgroups that are kept.
const KEPT_MAX: usize = 64;

/// What was counted when observation began.
#[derive(Debug, Default)]
pub(super) struct MemoryLimits(Option<Limits>);

impl MemoryLimits {
    /// Begins.
    pub(super) fn begin() -> MemoryLimits {
        let mut reader: Readers<(), Limits> =
            Readers::new(|| Box::new(|()| cgroup_limits::find_memory(&Root::system())));
        MemoryLimits(reader.ask(0, ()))
    }

    /// Those that ran into their limit since then.
    pub(super) fn finish(self) -> Vec<SeenCgroup> {
        let Some(limits) = self.0 else {
            return Vec::new();
        };
        let mut reader: Readers<Limits, Vec<SeenCgroup>> =
            Readers::new(|| Box::new(|limits: Limits| limits.used(&Quote::default())));
        let mut seen = reader.ask(0, limits).unwrap_or_default();
        seen.retain(|one| one.hits.unwrap_or(0) > 0);
        seen.sort_by_key(|one| std::cmp::Reverse(one.read_again));
        seen.truncate(KEPT_MAX);
        seen
    }
}
