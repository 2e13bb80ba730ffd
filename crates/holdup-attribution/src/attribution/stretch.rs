//! What a thread does without a wait: running, queueing, as pieces for the time line.
//!
//! The problem: whenever a thread wakes another its clock is read, so that its time comes in crumbs. The choice: what goes on from one
//! crumb to the next is one stretch, told when something else begins. Interrupts that hit a running thread are part of its
//! stretch. Between two waits it is
//! known how long a thread queued and ran, and not in which order: queueing is put first where that is short or little; else
//! all of it is spread evenly, and shown by windows alone.
//!
//! In: a thread's time as it is booked, and its CPU samples. Out: pieces.

use super::ledger::{Book, Ledger};
use super::pieces::{By, Piece};
use super::thread::Thread;
use holdup_evidence::{Cause, Ns, OpenState, Role};

/// Classes of CPU time distinguished in one stretch: what most samples show comes early.
const MAX_CLASSES: usize = 16;

/// From this length on it matters to a picture in which order a thread ran and queued, in nanoseconds: some turns on a busy CPU.
const MIXED: Ns = 20_000_000;

/// What is less than this part of a stretch may stand at its begin all the same.
const MAINLY: u64 = 16;

/// A stretch.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    site: usize,
    start: Ns,
    end: Ns,
}

/// What a thread does, and what CPU samples showed meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct Doing {
    stretch: Option<Stretch>,
    samples: Vec<(usize, u32)>,
}

impl Doing {
    /// A CPU sample of a class, by the place of its site.
    pub(super) fn sampled(&mut self, site: usize) {
        if let Some(seen) = self.samples.iter_mut().find(|seen| seen.0 == site) {
            seen.1 += 1;
        } else if self.samples.len() < MAX_CLASSES {
            self.samples.push((site, 1));
        }
    }
}

impl Thread {
    /// It does this from `start` to `end`.
    pub(super) fn continue_stretch(&mut self, site: usize, start: Ns, end: Ns, book: &mut Book) {
        match &mut self.doing.stretch {
            Some(stretch) if stretch.site == site && stretch.end == start => stretch.end = end,
            _ => {
                self.end_stretch(None, book);
                self.doing.stretch = Some(Stretch { site, start, end });
            }
        }
    }

    /// Whether time between two instants is a mixture of kinds: how long a thread ran and how long it queued meanwhile is known, and not
    /// in which order. Then this books it, evenly, and no piece shows it. `kinds`: site, cause, nanoseconds.
    pub(super) fn is_mixed(
        &mut self,
        from: Ns,
        kinds: &[(Option<usize>, Cause, Ns)],
        book: &mut Book,
    ) -> bool {
        let total = kinds
            .iter()
            .fold(0u64, |total, kind| total.saturating_add(kind.2));
        if total < MIXED {
            return false;
        }
        let on_cpu = |cause: Cause| cause.on_cpu();
        let running: Ns = kinds
            .iter()
            .filter(|kind| on_cpu(kind.1))
            .map(|kind| kind.2)
            .sum();
        let others = kinds.iter().filter(|kind| !on_cpu(kind.1)).map(|kind| kind.2);
        let most = others.fold(running, Ns::max);
        if total - most <= total / MAINLY {
            return false;
        }
        self.end_stretch(None, book);
        self.doing.samples.clear();
        let kinds: Vec<(usize, Ns)> = kinds.iter().filter_map(|kind| Some((kind.0?, kind.2))).collect();
        for (site, from, until) in book.axis.mixed(from, &kinds) {
            self.ledger.sites[site].spend(&mut book.axis, from, until);
        }
        if self.ledger.role != Role::Neighbour {
            book.pieces.counts(total);
        }
        true
    }

    /// What it did is over, or, in this state, goes on as observation ends.
    pub(super) fn end_stretch(&mut self, state: Option<&OpenState>, book: &mut Book) {
        let Some(stretch) = self.doing.stretch.take() else {
            return;
        };
        let on_cpu = stretch.site == Ledger::CPU;
        let most = self.doing.samples.iter().max_by_key(|seen| seen.1);
        let site = most.filter(|_| on_cpu).map_or(stretch.site, |seen| seen.0);
        if on_cpu {
            self.doing.samples.clear();
        }
        let length = stretch.end - stretch.start;
        if self.ledger.role == Role::Neighbour || !book.pieces.counts(length) {
            return;
        }
        book.pieces.keep(Piece {
            thread: self.id,
            identity: self.identity,
            what: self.ledger.sites[site].what,
            seq: 0,
            start: stretch.start,
            end: stretch.end,
            before: 0,
            by: By::Nobody,
            open: match state {
                Some(OpenState::Running) => on_cpu,
                Some(OpenState::Runnable) => stretch.site == Ledger::QUEUE,
                Some(OpenState::Blocked(_)) | None => false,
            },
        });
    }
}
