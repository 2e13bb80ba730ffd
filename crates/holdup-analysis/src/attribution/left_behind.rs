//! Pipes that a process left behind keeps open.
//!
//! A reader of a pipe sees its end when the last process that could write to it has ended. If that is not the command
//! which was started, but something that it had started in its turn and did not wait for, the reader waits for a
//! process that nobody thinks of. In: a wait for a pipe, and who ended it. Out: for how much of it the process that
//! kept the pipe open was on its own, and wrote nothing.

use super::Attribution;
use super::waits::Over;
use holdup_evidence::{Cause, Ns, Waker};

/// Calls in which a task gives up a descriptor: many programs close their output before they end.
const CLOSES: &[&str] = &[
    "close",
    "close_range",
    "dup2",
    "dup3",
    "execve",
    "execveat",
    "exit",
    "exit_group",
];

impl Attribution {
    /// How long the wait was for the end of a process whose creator had ended already, in nanoseconds; 0 for any other.
    ///
    /// The wait ended as that process closed the pipe, or ended: the kernel wakes a reader then only if nobody else can
    /// write any more, and what had been written before would have ended the wait earlier. A process that a signal
    /// killed ends in whatever call it was in, and is not told from one that writes.
    pub(super) fn held_open(&self, over: &Over, cause: Cause) -> Ns {
        let wait = over.wait;
        let Waker::Thread { thread, call, .. } = &wait.waker else {
            return 0;
        };
        let writes = matches!(
            wait.call.name(),
            Some("write" | "writev" | "splice" | "tee" | "vmsplice" | "sendfile")
        );
        if cause != Cause::IpcPipe || writes || !call.name().is_some_and(|name| CLOSES.contains(&name)) {
            return 0;
        }
        let process_of = |id| self.threads.get(&id).map(|thread| thread.identity.process);
        let Some(creator) = self.threads.get(thread).and_then(|thread| thread.creator) else {
            return 0;
        };
        let on_its_own_since = match self.threads.get(&creator) {
            Some(parent) if parent.ended => parent.at,
            Some(_) => return 0,
            None if self.ended.contains(creator) => 0,
            None => return 0,
        };
        if process_of(creator).is_some_and(|parent| process_of(*thread) == Some(parent)) {
            return 0;
        }
        wait.end
            .saturating_sub(wait.start.max(on_its_own_since))
            .min(over.waited)
    }
}
