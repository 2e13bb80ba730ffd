//! Connections of a command that nobody has accepted yet, and who has the listeners at which they stand.
//!
//! The problem: the kernel completes a connection before its server takes it, so that a client which waits for an answer may stand in a queue;
//! when the command is over, neither its connection nor the queue is there any more. In: processes, as they wait. Out: what was seen last.

use super::following::LOOK_SPARSELY;
use super::moment::Moment;
use super::own_cpu_time::own_cpu_time;
use super::{connected, owed, programs};
use holdup_evidence::SystemFacts;
use holdup_evidence::facts::{Listener, OwedAnswers, Taken};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// From when a connection was found in a queue until it is looked whether it is still there: none that is accepted as fast as usual is.
const STILL_THERE_AFTER: Duration = Duration::from_millis(1600);

/// What was seen last.
#[derive(Debug, Default)]
pub(super) struct Queued {
    /// Processes that had such connections, and when they are looked at.
    due: Option<(BTreeSet<u32>, Instant)>,
    owed: Vec<OwedAnswers>,
    listeners: Vec<Listener>,
}

impl Queued {
    /// These have such connections.
    pub(super) fn await_acceptance(&mut self, pids: &BTreeSet<u32>) {
        let at = Instant::now() + STILL_THERE_AFTER;
        let (due, _) = self.due.get_or_insert_with(|| (BTreeSet::new(), at));
        due.extend(pids);
    }

    /// Looks at them, if it is time for that.
    pub(super) fn look_when_due(&mut self) {
        let Some((pids, _)) = self.due.take_if(|(_, at)| Instant::now() >= *at) else {
            return;
        };
        let before = own_cpu_time();
        let still = self.look(&pids);
        let took = Duration::from_nanos(own_cpu_time().saturating_sub(before));
        if still {
            let at = Instant::now() + (took * LOOK_SPARSELY).max(STILL_THERE_AFTER);
            self.due = Some((pids, at));
        }
    }

    /// Whether any of them still stands there.
    fn look(&mut self, pids: &BTreeSet<u32>) -> bool {
        let mut moment = Moment::now();
        let mut owed = owed::look(pids, &mut moment);
        owed.retain(|one| one.taken == Taken::NotAccepted);
        if owed.is_empty() {
            return false;
        }
        self.owed = owed;
        let listeners = connected::look(pids, &mut moment).unwrap_or_default();
        self.listeners = listeners.into_iter().filter(|one| one.waiting > 0).collect();
        true
    }

    /// Adds it to what is known of the machine.
    pub(super) fn tell(self, facts: &mut SystemFacts) {
        if self.owed.is_empty() {
            return;
        }
        facts.owed_answers.get_or_insert_default().extend(self.owed);
        let clients = self.listeners.iter().flat_map(|one| &one.clients);
        let pids: BTreeSet<u32> = clients.flat_map(|one| &one.pids).copied().collect();
        facts.programs.extend(programs::look(pids.iter()));
        let seen: BTreeSet<_> = self.listeners.iter().map(|one| one.address).collect();
        facts.listeners.retain(|one| !seen.contains(&one.address));
        facts.listeners.extend(self.listeners);
    }
}
