//! The process that observes a segment, as its recorder sees it.
//!
//! The problem: it works on what hostile programs have written, and one that does not end would keep the recorder from all further
//! segments. The choice: after it is told to end it has some seconds to write; then it is killed. In: a process. Out: how it ended, when
//! that is known, and never later than its time is up.

use holdup_evidence::Ns;
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

/// How long a killed one is waited for. It has ended by then unless it is stuck in the kernel.
const GRACE: Duration = Duration::from_millis(500);

/// Between two looks at whether it has ended, milliseconds.
const LOOK_EVERY_MS: u8 = 20;

/// Status of one that has written its segment, where the kernel did not show everything.
pub(super) const HIDDEN: i32 = 2;

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
            if hurry || began.elapsed() > limit {
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
