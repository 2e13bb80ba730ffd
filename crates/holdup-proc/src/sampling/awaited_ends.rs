//! Who waited for whose end.
//!
//! In: who was found to have ended, and what the others were seen waiting in. Out: for each that has ended the one that waited for that, as far
//! as that one has run since; else its end is put off.

use super::sampler::{Found, Sampler};
use super::waiters::Waiters;
use super::waiting::Awaited;
use holdup_evidence::ThreadId;
use std::collections::BTreeMap;

/// Whether somebody sleeps on, or has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sleeps {
    On,
    Over,
}

impl Sampler {
    /// A thread may end just before it is looked at, and just after the one was that waits for that. So its end is reported when that one
    /// has run, or some rounds later.
    pub(super) fn put_off_ends(&mut self) {
        /// Rounds after which who waits is taken to be held up by something else.
        const ROUNDS: u32 = 16;
        let before = std::mem::take(&mut self.unnoticed);
        let rounds: BTreeMap<ThreadId, u32> = before.iter().map(|(id, (_, rounds))| (*id, *rounds)).collect();
        let again = before.into_iter().map(|(id, (found, _))| (id, found));
        self.found.extend(again);
        let ended = self.ended();
        if ended.is_empty() {
            return;
        }
        let waiters = self.waiters();
        for id in ended {
            let so_far = rounds.get(&id).copied().unwrap_or(0);
            if so_far < ROUNDS
                && self.who_waits_for(id, &waiters, Sleeps::On).is_some()
                && let Some(found) = self.found.remove(&id)
            {
                self.unnoticed.insert(id, (found, so_far + 1));
            }
        }
    }

    /// Those that were found to have ended.
    pub(super) fn ended(&self) -> Vec<ThreadId> {
        let ended = self
            .found
            .iter()
            .filter(|(_, found)| matches!(found, Found::Ended(_)));
        ended.map(|(id, _)| *id).collect()
    }

    /// Whether a thread was seen asleep when it was looked at before, or has blocked since that and gone on.
    fn has_waited(&self, id: ThreadId) -> bool {
        let (Some(thread), Some(found)) = (self.threads.get(&id), self.found.get(&id)) else {
            return false;
        };
        let Some((_, before)) = thread.account.ran_after() else {
            return thread.account.asleep().is_some();
        };
        let look = self.last_look(found);
        let now = look.as_ref().and_then(|look| look.counted.blockings);
        // It sleeps, or it has given its CPU up for good.
        let other = look.is_some_and(|look| look.asleep.is_some()) || matches!(found, Found::Ended(_));
        before
            .zip(now)
            .is_some_and(|(before, now)| now > before + u64::from(other))
    }

    /// Those that were seen waiting for the end of somebody when they were seen asleep last. Who is woken for something else goes on
    /// waiting: a parent is told that its child stops and goes on.
    pub(super) fn waiters(&self) -> Waiters {
        let mut waiters = Waiters::default();
        for (id, thread) in &self.threads {
            let asleep = thread.account.asleep().map(|(waiting, _)| waiting);
            let ran_after = || thread.account.ran_after().map(|(waiting, _)| waiting);
            let Some(waiting) = asleep.or_else(ran_after) else {
                continue;
            };
            let call = waiting.site.call.and_then(|call| call.name());
            let said = self.joins.get(id).filter(|_| call == Some("futex"));
            if let Some(awaited) = said
                .map(|tid| Awaited::Thread(*tid))
                .or_else(|| waiting.awaits_end())
            {
                waiters.add(*id, thread.pid, awaited);
            }
        }
        waiters
    }

    /// Who was seen waiting for the end of a thread, of those who were found (or were not, because they sleep on).
    pub(super) fn who_waits_for(
        &self,
        ended: ThreadId,
        waiters: &Waiters,
        sleeps: Sleeps,
    ) -> Option<ThreadId> {
        let thread = self.threads.get(&ended)?;
        let parent = self.processes.get(&thread.pid)?.parent;
        // Nobody has taken notice of a process whose status can still be had.
        let unnoticed =
            thread.tid == thread.pid && matches!(self.found.get(&ended), Some(Found::Ended(Some(_))));
        let of = |id: &ThreadId| self.threads.get(id).map(|waiter| waiter.pid);
        let fits = |id: &ThreadId| {
            let on = match self.found.get(id) {
                None => true,
                Some(Found::Looked(look, _)) => unnoticed && look.asleep.is_some(),
                Some(Found::Ended(_)) => false,
            };
            *id != ended && on == (sleeps == Sleeps::On) && (on || self.has_waited(*id))
        };
        let candidates = waiters
            .of(thread.pid, thread.tid, parent)
            .filter(fits)
            .filter(|id| of(id).is_some_and(|pid| pid == parent || pid == thread.pid));
        candidates.min_by_key(|id| (of(id) != Some(parent), *id))
    }
}
