//! Cgroups that run into their limit of memory or CPU time while a machine is recorded.
//!
//! The problem: a cgroup that reads again and again what it has to give back makes thousands of short waits for a disk, each of which is
//! nothing; that the limit is what causes them only the kernel's counts of the cgroup tell. And which cgroup it is that throttles a thread
//! no event of the scheduler says. In: the counts when observation begins and when
//! it ends. Out: those cgroups that ran into a limit. The kernel's files of a cgroup take locks that whoever makes cgroups holds, so a child
//! reads them that can be abandoned ([`super::behind`]).

use super::behind::Readers;
use holdup_evidence::observed::{Limited, Quote, SeenCgroup};
use holdup_proc::Root;
use holdup_proc::cgroup_limits::{self, Limits};

/// Cgroups that are kept, of each kind of limit.
const KEPT_MAX: usize = 64;

/// What was counted when observation began.
#[derive(Debug, Default)]
pub(super) struct MemoryLimits(Option<Limits>);

impl MemoryLimits {
    /// Begins.
    pub(super) fn begin() -> MemoryLimits {
        let mut reader: Readers<(), Limits> =
            Readers::new(|| Box::new(|()| cgroup_limits::find_slowing(&Root::system())));
        MemoryLimits(reader.ask_patiently(0, ()))
    }

    /// Those that ran into their limit since then.
    pub(super) fn finish(self) -> Vec<SeenCgroup> {
        let Some(limits) = self.0 else {
            return Vec::new();
        };
        let mut reader: Readers<Limits, Vec<SeenCgroup>> =
            Readers::new(|| Box::new(|limits: Limits| limits.used(&Quote::default())));
        let mut seen = reader.ask_patiently(0, limits).unwrap_or_default();
        seen.retain(|one| match one.what {
            Limited::CpuTime => one.used > 0.0,
            Limited::Memory | Limited::Tasks => one.paused || one.hits.unwrap_or(0) > 0,
        });
        // Those that were throttled in most periods, and those that read most again.
        let (mut throttled, mut memory): (Vec<_>, Vec<_>) =
            seen.into_iter().partition(|one| one.what == Limited::CpuTime);
        throttled.sort_by(|one, other| other.used.total_cmp(&one.used));
        memory.sort_by_key(|one| std::cmp::Reverse((one.paused, one.read_again)));
        memory.truncate(KEPT_MAX);
        throttled.truncate(KEPT_MAX);
        memory.extend(throttled);
        memory
    }
}
