//! Who ended a wait that nobody was seen to end: the only one who can have.
//!
//! The problem: a look shows that a thread was woken and not by whom. The choice: a private futex, an eventfd, or a pipe within one process,
//! waited for without a time limit, is ended by a thread and by nothing else, and who slept all the while did not end it. So if of those that
//! can have done it only one has run between the two looks, it was that one. Of those that were themselves woken so meanwhile none
//! was the first. Where there are several, or none, nobody is named.
//!
//! In: what a round found. Out: by thread, whom it woke.

use super::account::Look;
use super::sampler::{Found, Sampler};
use super::waiting::{Reach, Waiting};
use holdup_evidence::{Ns, ThreadId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By who woke them: those that were woken, in the order in which that was.
pub(super) type Woken = BTreeMap<ThreadId, Vec<(Ns, ThreadId)>>;

impl Sampler {
    /// Those that have run since the round before, can have ended a wait of this thread's, and did not wait for others themselves.
    pub(super) fn roots(&self, waiter: ThreadId, reach: Reach) -> impl Iterator<Item = ThreadId> {
        let pid = self.threads.get(&waiter).map(|thread| thread.pid);
        let within = move |id: &ThreadId| {
            let thread = self.threads.get(id)?;
            let there = reach == Reach::Run || Some(thread.pid) == pid;
            (*id != waiter && there && thread.reach().is_none()).then_some(*id)
        };
        self.found.keys().filter_map(within)
    }

    /// Who woke whom, of those that this round found.
    pub(super) fn woken(&self) -> Woken {
        let mut woken = Woken::new();
        // Of those that were not looked at any can have done it, in this round or in the one before.
        if self.passed_over.contains(&true) {
            return woken;
        }
        for (id, found) in &self.found {
            let Some(thread) = self.threads.get(id) else {
                continue;
            };
            let (Some(reach), Some(look)) = (thread.reach(), self.last_look(found)) else {
                continue;
            };
            let mut roots = self.roots(*id, reach);
            // Who was born meanwhile can have done it, too, and is not known yet.
            let newborn = self
                .newborn
                .iter()
                .any(|newborn| newborn.pid == thread.pid || reach == Reach::Run);
            if let (Some(root), None, false) = (roots.next(), roots.next(), newborn)
                && let Some(end) = thread.account.ended_by(look)
            {
                woken.entry(root).or_default().push((end, *id));
            }
        }
        for those in woken.values_mut() {
            those.sort_unstable();
        }
        woken
    }

    /// What was seen last of a thread that lives, or that has ended since.
    pub(super) fn last_look(&self, found: &Found) -> Option<Look<Arc<Waiting>>> {
        match found {
            Found::Looked(look, _) => Some(look.clone()),
            Found::Ended(Some((counted, _))) => Some(Look {
                at: self.all_looked_at,
                counted: *counted,
                asleep: None,
            }),
            Found::Ended(None) => None,
        }
    }
}
