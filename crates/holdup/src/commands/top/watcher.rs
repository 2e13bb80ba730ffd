//! The process that observes, and the observations that it makes one after the other.
//!
//! The problem: an observation reads what can block and grows with what it has seen; the screen must stay quick and end at once. The choice:
//! a process of its own starts a further one for each observation, as `record` does for its segments. Within an observation, what is known so
//! far is told again and again; at its end the stacks are named, and that is told as well. The dearer an observation is to begin and to end,
//! the longer it lasts, so that all of it keeps to its part of one CPU.
//!
//! In: what to observe. Out: [`Message`]s in a pipe. When the screen's process ends, both of these are killed.

use super::messages::{Inbox, Message, send};
use crate::cli::{Backend, TopArgs};
use crate::progress::Progress;
use crate::verdict;
use anyhow::Context;
use holdup_bpf::Loaded;
use holdup_collect as collect;
use holdup_collect::Pulse;
use holdup_collect::budget::Ceiling;
use holdup_collect::privileges::Part;
use holdup_collect::selection::Selection;
use holdup_model::report::Backend as HowObserved;
use holdup_subject::signals::{Control, Signals};
use holdup_views::Look;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::PollTimeout;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, pipe2};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Part of one CPU that all of it may take where nobody has said otherwise: 1 %.
const BUDGET: f64 = 0.01;

/// Of that, what looking at threads may take, and putting together what is known so far. The rest is for beginning and ending observations.
const PART_OF_LOOKS: f64 = 0.5;
const PART_OF_WORDS: f64 = 0.25;

/// Between two looks, at least: a person reads no faster.
const INTERVAL: Duration = Duration::from_secs(2);

/// When the first one is due.
const FIRST: Duration = Duration::from_millis(500);

/// How long the first observation lasts: it is there to have stacks soon.
const FIRST_OBSERVATION: Duration = Duration::from_secs(6);

/// How long others last.
const MIN_OBSERVATION: Duration = Duration::from_secs(10);
const MAX_OBSERVATION: Duration = Duration::from_secs(600);

/// How much longer than that one may take to begin and to end before it is killed.
const GRACE: Duration = Duration::from_secs(60);

/// Between two looks at whether it has ended, milliseconds.
const LOOK_EVERY_MS: u8 = 100;

/// Size of the ring between the kernel's programs and holdup, bytes: as a recorder's.
const BUFFER: u32 = 4 << 20;

/// Bytes that are read from the pipe at once.
const READ_AT_ONCE: usize = 64 << 10;

/// The process that observes, as the screen has it.
#[derive(Debug)]
pub(super) struct Watcher {
    pid: Pid,
    pipe: Option<File>,
    inbox: Inbox,
    last: Option<Instant>,
}

/// Starts it.
///
/// # Errors
/// When what was named is not there, or no process can be made.
pub(super) fn start(args: &TopArgs) -> anyhow::Result<Watcher> {
    let selection = match args.pid.is_empty() {
        true => Selection::of_record(&args.unit, &[])?,
        false => Selection::new(&args.pid, false, &[], &args.unit, &[])?,
    };
    anyhow::ensure!(
        holdup_subject::subject::proc_is_ours(),
        holdup_subject::subject::NotShown
    );
    selection.resolve()?;
    let (from, to) = pipe2(OFlag::O_CLOEXEC).context("cannot make a pipe")?;
    fcntl(&from, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).context("cannot make a pipe")?;
    let screen = getpid();
    // SAFETY: this process has one thread only, so its copy may do whatever a program does.
    match unsafe { fork() }.context("cannot start the process that observes")? {
        ForkResult::Child => {
            drop(from);
            let status = match Rounds::begin(args, selection, screen, to) {
                Ok(mut rounds) => rounds.go(),
                Err(_) => 1,
            };
            std::process::exit(status);
        }
        ForkResult::Parent { child } => Ok(Watcher {
            pid: child,
            pipe: Some(File::from(from)),
            inbox: Inbox::default(),
            last: None,
        }),
    }
}

impl Watcher {
    /// Becomes readable when a message came.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// All messages that have come.
    ///
    /// # Errors
    /// When these are none.
    pub(super) fn messages(&mut self) -> anyhow::Result<Vec<Message>> {
        use std::io::Read;
        let mut found = Vec::new();
        let mut buffer = vec![0; READ_AT_ONCE];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer) {
                Ok(0) => {
                    self.pipe = None;
                    found.push(Message::Failed("the process that observes has ended".to_owned()));
                }
                Ok(count) => found.extend(self.inbox.take(buffer.get(..count).unwrap_or_default())?),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        Ok(found)
    }

    /// How long ago the look before this one was.
    pub(super) fn interval(&mut self, now: Instant) -> Option<Duration> {
        let before = self.last.replace(now)?;
        Some(now.saturating_duration_since(before))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Its own child is told by the kernel. Nobody waits for either: one that is stuck would hold the screen.
        kill(self.pid, Signal::SIGKILL).ok();
    }
}

/// In the process that observes.
struct Rounds<'a> {
    args: &'a TopArgs,
    selection: Selection,
    signals: Signals,
    screen: Pid,
    to: File,
    share: f64,
    /// Programs that are loaded, and whether an observation has had them.
    loaded: Option<(Loaded, bool)>,
}

impl<'a> Rounds<'a> {
    fn begin(
        args: &'a TopArgs,
        selection: Selection,
        screen: Pid,
        to: OwnedFd,
    ) -> anyhow::Result<Rounds<'a>> {
        dies_with_its_parent(screen)?;
        silence()?;
        Ok(Rounds {
            args,
            selection,
            signals: Signals::watch()?,
            screen,
            to: File::from(to),
            share: args.budget.budget.unwrap_or(BUDGET),
            loaded: None,
        })
    }

    /// One after the other, until nobody reads any more.
    fn go(&mut self) -> i32 {
        let mut lasts = FIRST_OBSERVATION;
        loop {
            let before = cost_of_children();
            if let Err(error) = self.one(lasts)
                && send(&Message::Failed(format!("{error:#}")), &mut self.to).is_err()
            {
                return 1;
            }
            let cost = cost_of_children().saturating_sub(before);
            lasts = length(cost, self.share);
            if self.signals.asked_to_end() {
                return 0;
            }
        }
    }

    /// One, in a process of its own, which is killed when it is late.
    fn one(&mut self, lasts: Duration) -> anyhow::Result<()> {
        if self.args.backend == Backend::Bpf && self.loaded.is_none() {
            collect::allowed_to_trace()?;
            self.loaded = Some((Loaded::load(self.tracing())?, false));
        }
        let watcher = getpid();
        // SAFETY: this process has one thread only, so its copy may do whatever a program does.
        let child = match unsafe { fork() }.context("cannot start a process")? {
            ForkResult::Child => {
                let observed = dies_with_its_parent(watcher).and_then(|()| self.observe(lasts));
                let status = match observed {
                    Ok(()) => 0,
                    Err(error) => {
                        send(&Message::Failed(format!("{error:#}")), &mut self.to).ok();
                        1
                    }
                };
                std::process::exit(status);
            }
            ForkResult::Parent { child } => child,
        };
        if let Some((_, used)) = &mut self.loaded {
            *used = true;
        }
        let late = Instant::now() + lasts + GRACE;
        loop {
            match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
                Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::EINTR) => {}
                _ => {
                    // It has said why. What fails at once would fail again and again.
                    self.signals.sleep(PollTimeout::from(INTERVAL_AFTER_FAILURE_MS));
                    return Ok(());
                }
            }
            if Instant::now() >= late || self.signals.interrupted() == Control::EndObservation {
                kill(child, Signal::SIGKILL).ok();
                anyhow::bail!("an observation did not end in time and was ended");
            }
            self.signals.sleep(PollTimeout::from(LOOK_EVERY_MS));
        }
    }

    fn tracing(&self) -> holdup_bpf::Options {
        holdup_bpf::Options {
            buffer: BUFFER,
            pace: holdup_bpf::Pace::Record,
        }
    }

    /// In the process of an observation.
    fn observe(&mut self, lasts: Duration) -> anyhow::Result<()> {
        let others = [self.screen, getppid()].map(|pid| pid.as_raw().unsigned_abs());
        let selection = self.selection.without(&others);
        let asked = vec![match self.args.pid.is_empty() {
            true => self.selection.said().to_owned(),
            false => format!(
                "process {}",
                self.args
                    .pid
                    .iter()
                    .map(u32::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }];
        let pulse = Some(Pulse {
            interval: INTERVAL,
            share: self.share * PART_OF_WORDS,
            first: FIRST,
        });
        let budget = Some(Ceiling {
            share: self.share * PART_OF_LOOKS,
            firm: false,
        });
        let tracing = self.tracing();
        let to = &mut self.to;
        let mut unread = None;
        let mut tell = |collected: &collect::Collected, is_whole: bool| {
            let subject = verdict::subject_of_attach(asked.clone(), collected);
            let mut look = Look::of(&verdict::of(subject, collected));
            // What a thread has done since it was last looked at is known at the end: until then attribution has it run.
            if !is_whole && collected.backend == HowObserved::Proc {
                look.running.clear();
            }
            if let Err(error) = send(&Message::Look(Box::new(look)), to) {
                unread = Some(error);
            }
        };
        let mut notice = |notice: collect::Notice<'_>| {
            if let collect::Notice::SoFar(so_far) = notice {
                tell(so_far, false);
            }
        };
        let mut silent = Progress::begin(true);
        let collected = match self.args.backend {
            Backend::Auto | Backend::Proc => collect::sample_attached(
                &selection,
                Some(lasts),
                &mut self.signals,
                collect::SampledHow {
                    why: None,
                    follow: true,
                    logs: false,
                    budget,
                    pulse,
                },
                None,
                &mut silent,
                &mut notice,
            ),
            Backend::Bpf => {
                let loaded = match self.loaded.take() {
                    Some((mut loaded, true)) => {
                        loaded.blank()?;
                        Some(loaded)
                    }
                    fresh => fresh.map(|(loaded, _)| loaded),
                };
                let how = collect::How {
                    tracing,
                    keep: Some(Part::Trace),
                    jvm_attach: collect::Ask::Never,
                    follow: true,
                    logs: false,
                    predict: None,
                    budget,
                };
                let kept = collect::Kept {
                    loaded,
                    pulse,
                    ..collect::Kept::default()
                };
                collect::attach(
                    &selection,
                    Some(lasts),
                    &mut self.signals,
                    how,
                    kept,
                    &mut silent,
                    &mut notice,
                )
            }
        }?;
        tell(&collected, true);
        unread.map_or(Ok(()), Err)
    }
}

/// After an observation that failed, milliseconds.
const INTERVAL_AFTER_FAILURE_MS: u16 = 2_000;

/// How long an observation lasts, if one that was to cost no more than its share has cost this.
fn length(cost: Duration, share: f64) -> Duration {
    let spread = cost.as_secs_f64() / share.max(f64::MIN_POSITIVE);
    Duration::try_from_secs_f64(spread)
        .unwrap_or(MAX_OBSERVATION)
        .clamp(MIN_OBSERVATION, MAX_OBSERVATION)
}

/// CPU time of observations so far.
fn cost_of_children() -> Duration {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |usage| {
        let used = usage.user_time() + usage.system_time();
        Duration::from_micros(u64::try_from(used.num_microseconds()).unwrap_or(0))
    })
}

/// The kernel kills this process when its parent ends.
fn dies_with_its_parent(parent: Pid) -> anyhow::Result<()> {
    // SAFETY: sets a property of this process alone.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    anyhow::ensure!(getppid() == parent, "whoever wanted to know has ended");
    Ok(())
}

/// Words on stderr would stand in the middle of the screen.
fn silence() -> anyhow::Result<()> {
    let nothing = File::options()
        .write(true)
        .open("/dev/null")
        .context("cannot open /dev/null")?;
    nix::unistd::dup2_stderr(&nothing).context("cannot close stderr")?;
    nix::unistd::dup2_stdout(&nothing).context("cannot close stdout")
}

#[cfg(test)]
mod tests {
    use super::{MAX_OBSERVATION, MIN_OBSERVATION, length};
    use std::time::Duration;

    #[test]
    fn the_dearer_an_observation_is_the_longer_it_lasts() {
        assert_eq!(length(Duration::from_millis(10), 0.01), MIN_OBSERVATION);
        assert_eq!(length(Duration::from_millis(500), 0.01), Duration::from_secs(50));
        assert_eq!(length(Duration::from_secs(60), 0.01), MAX_OBSERVATION);
        assert_eq!(length(Duration::from_secs(1), 0.0), MAX_OBSERVATION);
    }
}
