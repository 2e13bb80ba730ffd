//! Pipes that a process left behind keeps open.
//!
//! A reader of a pipe sees its end when the last process that could write to it has ended. If that is not the command
//! which was started, but something that it had started in its turn and did not wait for, the reader waits for a
//! process that nobody thinks of. Where looks show no wakings, the one process that had the other end ended it, if it ended as the wait did.
//! In: a wait for a pipe, and who ended it or had the other end. Out: for how much of it the process that
//! kept the pipe open was on its own.

use super::blocker::{Blockers, Scene};
use super::deadlock;
use super::ended_wait::EndedWait;
use super::holders::{Blocker, Who};
use super::thread::Threads;
use holdup_evidence::{Cause, Ns, ThreadId, Waker};
use holdup_knowledge::system_calls::{self, Kind as Does};
use holdup_model::attributed::HowKnown;

/// Two looks that are no further apart are at one moment, nanoseconds: so seldom are looks made where there are a few threads.
const TOGETHER: Ns = 50_000_000;

/// A process was met whose creator had ended.
pub(super) fn orphan(threads: &mut Threads, thread: ThreadId, at: Ns) {
    if let Some(thread) = threads.get_mut(&thread) {
        thread.orphan.get_or_insert(at);
    }
}

impl Blockers {
    /// How long the wait was for the end of a process whose creator had ended already, in nanoseconds; 0 for any other.
    ///
    /// The wait ended as that process closed the pipe, or ended: the kernel wakes a reader then only if nobody else can
    /// write any more, and what had been written before would have ended the wait earlier. A process that a signal
    /// killed ends in whatever call it was in, and is not distinguished from one that writes.
    pub(super) fn held_open(
        &self,
        ended: &EndedWait,
        cause: Cause,
        other_end: Option<Blocker>,
        scene: &Scene<'_>,
    ) -> Ns {
        let wait = ended.wait;
        let writes = system_calls::is(&wait.call, Does::Writes | Does::MovesData);
        if cause != Cause::IpcPipe || writes {
            return 0;
        }
        let closed_by = match &wait.waker {
            Waker::Thread { thread, call, .. } => {
                // Many programs close their output before they end.
                system_calls::is(call, Does::Closes).then_some(*thread)
            }
            Waker::Unknown if !self.source.records_wakers() => ended_with(scene.threads, ended, other_end),
            _ => None,
        };
        let Some((thread, since)) =
            closed_by.and_then(|thread| Some((thread, on_its_own_since(scene, thread)?)))
        else {
            return 0;
        };
        let process_of = |id| scene.threads.get(&id).map(|thread| thread.identity.process);
        let creator = scene.threads.get(&thread).and_then(|thread| thread.creator);
        if creator
            .is_some_and(|creator| process_of(creator).is_some() && process_of(creator) == process_of(thread))
        {
            return 0;
        }
        wait.end.saturating_sub(wait.start.max(since)).min(ended.waited)
    }
}

/// Since when a thread's creator is gone.
fn on_its_own_since(scene: &Scene<'_>, thread: ThreadId) -> Option<Ns> {
    let thread = scene.threads.get(&thread)?;
    let Some(creator) = thread.creator else {
        return thread.orphan;
    };
    match scene.threads.get(&creator) {
        Some(parent) => parent.ended.then_some(parent.at),
        None => scene.gone.contains(creator).then_some(0),
    }
}

/// The one process that had the other end, if it ended as the wait did.
fn ended_with(threads: &Threads, ended: &EndedWait, other_end: Option<Blocker>) -> Option<ThreadId> {
    let found = other_end.filter(|found| found.how == HowKnown::PipePeer && !ended.open)?;
    let Who::Thread(other) = found.who else {
        return None;
    };
    let thread = threads.get(&other)?;
    let together = thread.ended && thread.at.abs_diff(ended.wait.end) <= TOGETHER;
    (together && deadlock::alone(threads, other)).then_some(other)
}
