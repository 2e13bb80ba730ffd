//! The memory that a run may have, as rules about memory name it.
//!
//! In: the facts. Out: [`Limit`], the nearest limit of its cgroup, and what the counters say happened there.

use super::{Run, say};
use holdup_model::attributed::ResourceKind;
use holdup_model::finding::{Evidence, Finding, Remedy};

/// Where the counters are.
const SOURCE: &str = "the cgroup's memory.stat and memory.events";

/// Bytes of a page, as they are counted: a kernel with larger ones has more of these.
const PAGE: u64 = 4096;

/// A cgroup's memory limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    /// The cgroup that sets it.
    pub cgroup: String,
    /// Bytes.
    pub bytes: u64,
    /// How often it stopped an allocation meanwhile, where counted.
    pub reached: Option<u64>,
}

/// The limit that the run lived under, where its cgroup or an ancestor has one.
pub(super) fn limit(run: &Run<'_>) -> Option<Limit> {
    let facts = &run.facts.cgroup;
    Some(Limit {
        cgroup: facts.memory.cgroup.clone()?,
        bytes: facts.memory_max?,
        reached: facts.memory.limit_reached,
    })
}

/// The limit, if it is known to have stopped allocations while the run lasted.
pub(super) fn limit_reached(run: &Run<'_>) -> Option<Limit> {
    limit(run).filter(|limit| limit.reached.is_some_and(|times| times > 0))
}

impl Limit {
    /// `12.0 MiB for cgroup /job`.
    pub(super) fn words(&self) -> String {
        format!("{} for cgroup {}", say::bytes(self.bytes), self.cgroup)
    }

    /// Names the cgroup as what the finding is about, and raising its limit as what to do.
    pub(super) fn tell(&self, mut finding: Finding) -> Finding {
        let resource = &mut finding.resource;
        let before = std::mem::replace(&mut resource.name, self.cgroup.clone());
        resource.kind = ResourceKind::Cgroup;
        resource.detail.was_for.get_or_insert(before);
        resource.detail.limit.get_or_insert(self.bytes);
        let times = match self.reached {
            Some(times) if times > 0 => format!(", reached {} in that time", say::several(times, "time")),
            _ => String::new(),
        };
        finding
            .and(Evidence::new(
                format!("its memory limit is {}{times}", self.words()),
                SOURCE,
            ))
            .remedy(Remedy::changing(
                format!("raise the memory limit, {}", self.words()),
                "other programs then have less memory",
            ))
    }
}

/// How much came back, by a counter of pages.
pub(super) fn came_back(pages: Option<u64>, what: &str) -> Option<Evidence> {
    let pages = pages.filter(|pages| *pages > 0)?;
    let size = say::bytes(pages.saturating_mul(PAGE));
    Some(Evidence::new(
        format!("{size} {what} in that cgroup in that time"),
        SOURCE,
    ))
}
