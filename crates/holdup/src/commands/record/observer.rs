//! The process that observes a segment, as its recorder sees it.
//!
//! The problem: it works on what hostile programs have written, and one that does not end would keep the recorder from all further
//! segments. The choice: after it is told to end it has some seconds to write; then it is killed. In: a process. Out: how it ended, when
//! that is known, and never later than its time is up.

use holdup_evidence::Ns;
use holdup_proc::{Root, root};
use holdup_subject::signals::{Control, Signals};
use nix::poll::PollTimeout;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// How long it may take to write, from when it is told to end. It takes a second or two; names are looked up for 6 s at most.
const TIME_TO_WRITE: Duration = Duration::from_secs(12);

/// The same when the recorder itself has been told to end.
const TIME_TO_WRITE_LAST: Duration = Duration::from_secs(8);

/// Time for which it was runnable, and others had the CPUs, is not its own: a machine that is short of CPUs is what a recording is for. It may have so
/// many times as long in all; the unit that is installed gives a recorder 30 s to end.
const MAX_TIMES_THE_LIMIT: u32 = 3;

/// How long a killed one is waited for. It has ended by then unless it is stuck in the kernel.
const GRACE: Duration = Duration::from_millis(500);

/// Between two looks at whether it has ended, milliseconds.
const LOOK_EVERY_MS: u8 = 20;

/// Status of one that has written its segment, where the kernel did not show everything.
pub(super) const HIDDEN: i32 = 2;

/// Whether one that may take this long has had that time, or several times that long in all. `queued`: for how long of it others had the
/// CPUs; read only where it matters.
fn is_late(elapsed: Duration, limit: Duration, queued: impl FnOnce() -> Duration) -> bool {
    elapsed > limit && (elapsed > limit * MAX_TIMES_THE_LIMIT || elapsed.saturating_sub(queued()) > limit)
}

/// A process that observes a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observer {
    pub(super) pid: Pid,
    /// When it began to watch, `CLOCK_MONOTONIC`.
    pub(super) began: Ns,
    /// When its segment is to end.
    pub(super) due: Instant,
}

/// How a segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was written.
    Written,
    /// It was written, and the kernel had not shown everything.
    Hidden,
    /// The observer has said why not.
    Failed,
    /// Something else has ended it.
    Killed(Signal),
    /// It was late, and was killed for it.
    Late,
}

impl Observer {
    /// Whether it is there no more, or waits to be taken note of.
    pub(super) fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT | WaitPidFlag::WEXITED;
        !matches!(waitid(Id::Pid(self.pid), flags), Ok(WaitStatus::StillAlive))
    }

    /// Tells it to end and waits until it has, or until it is late. `ending`: whether the recorder is told to end, before or meanwhile; told
    /// so once more it waits for nobody.
    pub(super) fn end(&self, signals: &mut Signals, ending: &mut bool) -> Outcome {
        kill(self.pid, Signal::SIGTERM).ok();
        self.wait(signals, ending)
    }

    /// Waits until it has ended by itself, or until it is late.
    pub(super) fn wait(&self, signals: &mut Signals, ending: &mut bool) -> Outcome {
        let began = Instant::now();
        let queued_before = self.queued();
        let mut hurry = false;
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            let limit = if *ending {
                TIME_TO_WRITE_LAST
            } else {
                TIME_TO_WRITE
            };
            let queued = || self.queued().saturating_sub(queued_before);
            if hurry || is_late(began.elapsed(), limit, queued) {
                self.kill();
                return Outcome::Late;
            }
            signals.sleep(PollTimeout::from(LOOK_EVERY_MS));
            if signals.interrupted() == Control::EndObservation {
                hurry = *ending;
                *ending = true;
            }
        }
    }

    /// How long it has been runnable while others had the CPUs, since it began.
    fn queued(&self) -> Duration {
        let file = Root::system().proc.join(format!("{}/schedstat", self.pid));
        let text = root::text_if_there(&file);
        let ns = text.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok());
        Duration::from_nanos(ns.unwrap_or_default())
    }

    /// Kills it, and waits for its end for a moment: one that is stuck in the kernel can't be waited for.
    pub(super) fn kill(&self) {
        kill(self.pid, Signal::SIGKILL).ok();
        let until = Instant::now() + GRACE;
        while self.outcome().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(LOOK_EVERY_MS.into()));
        }
    }

    /// Takes note of its end, if it has ended.
    pub(super) fn is_reaped(&self) -> bool {
        self.outcome().is_some()
    }

    /// How it has ended, if it has; takes note of that.
    fn outcome(&self) -> Option<Outcome> {
        Some(match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::EINTR) => return None,
            Ok(WaitStatus::Exited(_, 0)) => Outcome::Written,
            Ok(WaitStatus::Exited(_, HIDDEN)) => Outcome::Hidden,
            Ok(WaitStatus::Signaled(_, signal, _)) => Outcome::Killed(signal),
            _ => Outcome::Failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_late;
    use std::time::Duration;

    #[test]
    fn who_stands_in_a_queue_for_the_cpus_is_not_late_until_it_has_stood_there_for_long() {
        let s = Duration::from_secs;
        let late = |elapsed, queued| is_late(s(elapsed), s(12), || s(queued));
        assert!(!late(11, 0) && !late(13, 2) && !late(30, 20));
        // It works too much, or is stuck: nothing of that is the queue.
        assert!(late(13, 0) && late(30, 17));
        assert!(late(37, 36));
    }
}
