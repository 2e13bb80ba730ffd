//! Pauses of one machine, from the waits of its threads.
//!
//! In: its threads' waits, in the order of their ends. Out: [`ObservedPause`] pauses, of which it is not yet known what they were for.

use super::operations::NEAR;
use holdup_evidence::{JvmPause, Ns, PauseWork, ThreadId, Wait};
use holdup_knowledge::system_calls::{self, Kind as Does};

/// What kind of thread of a machine it is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The one that executes the machine's operations.
    VmThread,
    /// It collects garbage.
    Collects,
    /// Another of the machine's own.
    Own,
    /// It runs Java, or the program's own code.
    Java,
}

/// Between two short sleeps of a VM thread that waits for others to stop, nanoseconds: it sleeps for up to a millisecond each
/// time, and may have to queue for its CPU.
const ONE_WAIT: Ns = 5_000_000;

/// Operations on a futex, without the flag for a clock.
const WAIT_PRIVATE: u64 = 0x80;
const WITHOUT_CLOCK: u64 = 0xff;

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedPause {
    pid: u32,
    by: ThreadId,
    from: Ns,
    reached: Option<Ns>,
    to: Ns,
    /// Who came last before it was reached, and when.
    late: Option<(Ns, ThreadId)>,
    /// Whether threads that collect were set to work while it lasted.
    worked: bool,
}

impl ObservedPause {
    fn length(&self) -> Ns {
        self.to.saturating_sub(self.from)
    }

    /// The thread that came last, if the machine went on as soon as it had come: one that went into native code instead
    /// stops nowhere, and is not seen.
    fn late_one(&self) -> Option<ThreadId> {
        let ((came, thread), reached) = (self.late?, self.reached?);
        (reached.saturating_sub(came) < ONE_WAIT).then_some(thread)
    }

    /// Whether something that the machine did from the one instant to the other can have been what it was for.
    pub(super) fn overlaps(&self, from: Ns, to: Ns) -> bool {
        from <= self.to.saturating_add(NEAR) && self.from <= to.saturating_add(NEAR)
    }

    /// Whether threads that collect were set to work while it lasted.
    pub(super) fn worked(&self) -> bool {
        self.worked
    }

    /// As it is reported, when it is known what it was for.
    pub(super) fn into_pause(self, work: PauseWork) -> JvmPause {
        JvmPause {
            pid: self.pid,
            by: self.by,
            from: self.from,
            reached: self.reached,
            to: self.to,
            late: self.late_one(),
            work,
        }
    }
}

/// Whether a wait is of the kind by which threads are stopped.
fn stops(wait: &Wait) -> bool {
    let [_, operation, ..] = wait.call.args;
    operation & WITHOUT_CLOCK == WAIT_PRIVATE
}

/// The pauses of a machine.
#[derive(Debug)]
pub(super) struct Pauses {
    pid: u32,
    /// When its VM thread began to sleep for moments, and when it last did.
    naps: Option<(Ns, Ns)>,
    /// When a collecting thread was last set to work by another of them or by the VM thread.
    worked: Ns,
    begun: Vec<ObservedPause>,
    /// The end of the last one: what began before belongs to it.
    last_to: Ns,
}

impl Pauses {
    pub(super) fn new(pid: u32) -> Pauses {
        Pauses {
            pid,
            naps: None,
            worked: 0,
            begun: Vec::new(),
            last_to: 0,
        }
    }

    /// Takes the next wait of one of its threads.
    /// `by`: the VM thread, if that ended it.
    pub(super) fn wait(&mut self, wait: &Wait, kind: Kind, by: Option<ThreadId>) {
        let call = wait.call.name();
        let by = by.filter(|_| call == Some("futex"));
        match (kind, by) {
            (Kind::VmThread, _) if system_calls::is_named(call, Does::Sleeps) => {
                self.naps = Some(match self.naps {
                    Some((from, to)) if wait.start.saturating_sub(to) < ONE_WAIT => (from, wait.end),
                    _ => (wait.start, wait.end),
                });
            }
            (Kind::Collects, _) if call == Some("futex") => self.worked = self.worked.max(wait.end),
            (Kind::Java, Some(by)) => self.let_go(wait, by),
            // Its compilers are stopped as Java threads are; given work, they wait otherwise.
            (Kind::Own, Some(by)) if stops(wait) => self.let_go(wait, by),
            (Kind::VmThread | Kind::Collects | Kind::Own | Kind::Java, _) => {}
        }
    }

    fn let_go(&mut self, wait: &Wait, by: ThreadId) {
        if wait.start >= self.last_to {
            self.last_to = wait.end;
            self.begun.push(ObservedPause {
                pid: self.pid,
                by,
                from: wait.start,
                reached: None,
                to: wait.end,
                late: None,
                worked: false,
            });
        }
        let (naps, worked) = (self.naps, self.worked);
        let Some(pause) = self.begun.last_mut() else {
            return;
        };
        pause.from = pause.from.min(wait.start);
        if let Some((from, to)) = naps.filter(|(from, to)| *to > pause.from && *from < pause.to) {
            pause.reached = Some(to.min(pause.to));
            pause.from = pause.from.min(from);
        }
        pause.worked |= worked > pause.from && worked < pause.to;
        // Who comes back from elsewhere later is stopped too, and was waited for by nobody.
        if stops(wait) && pause.reached.is_some_and(|reached| wait.start <= reached) {
            pause.late = pause.late.max(Some((wait.start, wait.thread)));
        }
    }

    /// Those that have ended since the last time.
    pub(super) fn take(&mut self) -> Vec<ObservedPause> {
        std::mem::take(&mut self.begun)
    }
}

/// In which of these so many collections were made that took so long together, by their place: in the longest. None where even
/// these are far too short: then the collection's own pause has not been seen yet.
pub(super) fn of_collections(pauses: &[ObservedPause], count: u64, took: Ns) -> Vec<usize> {
    let mut places: Vec<usize> = (0..pauses.len()).collect();
    places.sort_by_key(|at| std::cmp::Reverse(pauses[*at].length()));
    places.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    let together: Ns = places.iter().map(|at| pauses[*at].length()).sum();
    match together.saturating_mul(2) < took {
        true => Vec::new(),
        false => places,
    }
}

#[cfg(test)]
pub(super) mod tests;
