//! What runs already: threads that are followed from the middle of their lives on.
//!
//! In: processes that were asked about. Out: their threads, followed from now on. Of what they made before, nothing is followed that was
//! not asked about; what they make from now on is.

use super::clocks::{TICK, stat};
use super::sampler::{Sampler, Tracked};
use super::site::sleeps;
use super::task::Folder;
use super::waiting::Awaited;
use super::{since, spent};
use crate::root::text_if_there;
use crate::{names, tasks};
use holdup_evidence::{Adopted, Ns, Role, ThreadId, Wait, Waker};
use std::collections::BTreeSet;

/// A wait that has lasted for so long is worth looking who is in its way, nanoseconds, and processes whose children are looked for.
const LASTS: Ns = 50_000_000;
const MOST_PARENTS: usize = 64;

impl Sampler {
    /// Follows these processes from now on; those that are gone, or are followed already, are no matter. What that comes to is reported with the
    /// next round.
    pub fn adopt(&mut self, pids: &[u32], at: Ns) {
        if self.processes.is_empty() {
            (self.last, self.now) = (at, at);
            self.scanned = at;
        }
        // What those that were asked about had made before is not followed; who is in their way has no such bound.
        if self.not_before == 0 {
            self.not_before = at;
        }
        let new: Vec<u32> = pids
            .iter()
            .copied()
            .filter(|pid| !self.processes.contains_key(pid))
            .collect();
        for pid in new {
            let process = names::comm(&self.root, pid).unwrap_or_default();
            let mut tids = tasks::threads(&self.root, pid);
            // A process begins with its first thread.
            tids.sort_unstable_by_key(|tid| (*tid != pid, *tid));
            for tid in tids {
                let Some(mut newborn) = self.newborn(pid, tid, pid) else {
                    continue;
                };
                newborn.parent = newborn.stat.parent;
                let adopted = Adopted {
                    process: process.clone(),
                    parent: newborn.stat.parent,
                };
                self.start(newborn, None, at, true, Some(adopted));
            }
        }
    }

    /// The same for processes that are in the way of those that are followed, if the kernel shows what they are in.
    pub fn adopt_neighbours(&mut self, pids: &[u32], at: Ns) {
        let shown = |pid: &u32| {
            let call = text_if_there(&self.root.proc.join(pid.to_string()).join("syscall"));
            call.is_some_and(|call| !call.is_empty())
        };
        let pids: Vec<u32> = pids.iter().copied().filter(shown).collect();
        self.adopts_as = Role::Neighbour;
        self.adopt(&pids, at);
        self.adopts_as = Role::Subject;
    }

    /// Children that were there before of those that have long waited for a child.
    #[must_use]
    pub fn awaited_children(&self) -> Vec<u32> {
        let waits = |thread: &Tracked| {
            let (waiting, since) = thread.account.asleep()?;
            let awaits = matches!(waiting.awaits_end(), Some(Awaited::Child(_) | Awaited::AnyChild));
            (awaits && self.now.saturating_sub(since) >= LASTS).then_some(thread.pid)
        };
        let parents: BTreeSet<u32> = self
            .threads
            .values()
            .filter_map(waits)
            .take(MOST_PARENTS)
            .collect();
        let children = parents
            .into_iter()
            .flat_map(|pid| tasks::children(&self.root, pid));
        children
            .filter(|child| !self.processes.contains_key(child))
            .collect()
    }

    /// Since when a thread sleeps that is found asleep, and how many turns it has had.
    pub(super) fn slept_before(&mut self, folder: &Folder) -> Option<(Ns, u64)> {
        let turns = folder.schedstat()?.count;
        let charged = since::charged(&folder.text("sched").unwrap_or_default());
        let stat = folder.text("stat").as_deref().and_then(stat)?;
        // It has not run between the two: all is of one and the same sleep.
        if sleeps(stat.state).is_none() || folder.schedstat()?.count != turns {
            return None;
        }
        let since = charged.and_then(|charged| self.cpu_clocks.since(stat.cpu, charged));
        self.since_unknown += u64::from(since.is_none());
        Some((since?, turns))
    }

    /// Threads that slept when they were found, of which it could not be determined since when.
    #[must_use]
    pub fn since_unknown(&self) -> u64 {
        self.since_unknown
    }

    /// Whether a process that nobody asked about had begun before those were adopted that were.
    pub(super) fn was_there(&self, began: Ns) -> bool {
        began.saturating_add(TICK) <= self.not_before
    }

    /// Whether a process is followed.
    #[must_use]
    pub fn follows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// The waits that go on with somebody in the way, of those that were met since this was asked: before they are over, for by then that one
    /// may be gone.
    pub fn met_with_holder(&mut self, at: Ns) -> Vec<Wait> {
        let mut met = std::mem::take(&mut self.with_holder);
        met.sort_unstable();
        met.dedup();
        met.iter().filter_map(|id| self.under_way_of(*id, at)).collect()
    }

    /// Whether each sleeping thread was seen in something.
    #[must_use]
    pub fn has_seen_all(&self) -> bool {
        self.threads.values().all(|thread| !thread.unasked)
    }

    /// The waits that go on, as they are now.
    #[must_use]
    pub fn under_way(&self, at: Ns) -> Vec<Wait> {
        let all = self.threads.keys();
        all.filter_map(|id| self.under_way_of(*id, at)).collect()
    }

    fn under_way_of(&self, id: ThreadId, at: Ns) -> Option<Wait> {
        let thread = self.threads.get(&id)?;
        let (_, open, _) = thread.account.clone().leave(at);
        let (open, seq) = (open?, thread.seq + 1);
        let mut wait = spent::wait(id, seq, &open, Waker::Unknown);
        wait.start = thread.began(&open, seq);
        Some(wait)
    }
}
