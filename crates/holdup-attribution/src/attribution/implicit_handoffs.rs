//! What one thread learns of another without being woken by it, so that no record tells of it: the path is handed on all the same.
//!
//! In: a wait that a thread ended. Out: from when on the path of a third, or of that thread itself, is another's
//! ([`super::thread::Thread::taken_over`]).

use super::Attribution;
use super::life::process_name;
use super::path::Path;
use super::run_path::Scope;
use super::thread::{Spent, Threads};
use holdup_evidence::{Cause, Ns, ThreadId, Wait, Waker};

impl Attribution {
    /// Whether the thread that ended a wait had been woken by the clock, and had not run, when the wait began: what it did for
    /// the other it learned afterwards, by memory, which no record tells of. So does a thread that is told to stop while it is
    /// about to run. Only of threads of one process.
    pub(super) fn waker_knew_only_the_time(&mut self, wait: &Wait) -> bool {
        let Waker::Thread {
            thread: waker, clock, ..
        } = &wait.waker
        else {
            return false;
        };
        if self.run_path.scope != Scope::Run || *waker == wait.thread || wait.call.name() != Some("futex") {
            return false;
        }
        self.settle(*waker);
        let (Some(own), Some(theirs)) = (self.threads.get(&wait.thread), self.threads.get(waker)) else {
            return false;
        };
        let got_cpu = theirs
            .at
            .saturating_add(clock.queued.saturating_sub(theirs.clock.queued));
        let slept = theirs.recent.last_wait_ended_at(theirs.at) == Some(Cause::TimerSleep);
        own.identity.process == theirs.identity.process
            && theirs.taken_over.is_none()
            && slept
            && (theirs.at..=got_cpu).contains(&wait.start)
    }

    /// A thread keeps its own path until it begins to wait, and who ends the wait goes on from there.
    pub(super) fn keeps_its_path(&mut self, wait: &Wait) -> Option<Spent> {
        let process = process_name(&self.threads, &mut self.tasks, wait.thread);
        let thread = self
            .threads
            .get_mut(&wait.thread)
            .filter(|thread| !thread.ended)?;
        let span = Some((wait.start, wait.end));
        let spent = thread.advance(&wait.clock, wait.end, span, true, process, &mut self.book);
        let path = thread.path.clone();
        if let Waker::Thread { thread: waker, .. } = &wait.waker
            && let Some(waker) = self.threads.get_mut(waker)
        {
            waker.taken_over = Some((wait.start, path));
        }
        Some(spent)
    }
}

/// A thread that ends its process wakes the others of it that sleep, so that they end. Those that do not sleep then end, too, and
/// are told nothing: of a JVM's many threads one may well be about to run because of a timer, and be the last to end. What
/// all of them do from that instant on is for the end that `who` has begun.
pub(super) fn process_ends(threads: &mut Threads, (who, woken): (ThreadId, ThreadId), at: Ns, path: &Path) {
    let of = |id| threads.get(&id).map(|thread| thread.identity.process);
    let process = of(who);
    if process.is_none() || process != of(woken) {
        return;
    }
    if let Some(thread) = threads.get_mut(&who)
        && std::mem::replace(&mut thread.ends_process, true)
    {
        return;
    }
    for (id, thread) in threads {
        let lives = *id != who && !thread.ended && thread.at <= at;
        if lives && Some(thread.identity.process) == process {
            thread.taken_over = Some((at, path.clone()));
        }
    }
}
