//! Who asked: user stacks, given to the waits that they belong to.
//!
//! In: samples, which may come before their wait is reported, or after its thread is gone. Out: who asked, of each site; and the
//! stacks of those in whose way somebody was.

use super::Attribution;
use super::chain::KeptWaiting;
use super::holders::Meanwhile;
use super::thread::{Thread, Threads};
use holdup_evidence::{AskerSample, Ns, UserStackId};

/// User stacks kept for a wait whose memory has not arrived.
const MAX_EARLY_ASKERS: usize = 4;

impl Attribution {
    pub(super) fn asker(&mut self, sample: &AskerSample) {
        let mut length = Ns::MAX;
        let found = match self.threads.get_mut(&sample.thread) {
            Some(thread) => match thread.ledger.asked_by(sample) {
                Some((start, end)) => {
                    length = end.saturating_sub(start);
                    thread.stacks.push(sample.stack, start, end);
                    let kept_waiting = thread.kept_waiting.take_during(start, end);
                    learn_stack(&mut self.threads, &kept_waiting, sample.stack);
                    true
                }
                None => early(thread, sample),
            },
            None => self.ended.asked_by(sample),
        };
        self.book.pieces.asked_by(sample, length);
        self.faults.late_askers += u64::from(!found);
    }
}

/// The stack of one who was in the way of these waits is known now.
fn learn_stack(threads: &mut Threads, kept_waiting: &[(KeptWaiting, Ns)], stack: UserStackId) {
    for (kept, ns) in kept_waiting {
        if let Some(waiter) = threads.get_mut(&kept.waiter) {
            let meanwhile = Meanwhile {
                doing: None,
                stack: Some((stack, *ns)),
                others_busy: 0,
            };
            waiter.ledger.sites[kept.site]
                .holders
                .learn(kept.blocker, meanwhile);
        }
    }
}

/// A stack of a wait that is still pending is kept with it; so is one of a wait that is not known yet, because it is
/// open.
fn early(thread: &mut Thread, sample: &AskerSample) -> bool {
    if sample.on_cpu {
        return false;
    }
    match thread.pending.last_mut() {
        Some(pending) if pending.wait.seq == sample.seq => {
            let kept = pending.askers.len() < MAX_EARLY_ASKERS;
            if kept {
                thread
                    .stacks
                    .push(sample.stack, pending.wait.start, pending.wait.end);
                pending.askers.push((sample.stack, sample.weight));
            }
            kept
        }
        _ if sample.seq > thread.last_seq && thread.early.len() < MAX_EARLY_ASKERS => {
            thread.early.push(*sample);
            true
        }
        _ => false,
    }
}
