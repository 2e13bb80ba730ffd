//! Slices one after the other: each a leader of its own, watched until it ends.
//!
//! In: a job, a number of workers, how long. Out: what was measured, or one sentence that says why it can't be. A leader has limits of
//! its own for all that can hang; should it not keep them, it is killed.

use super::{Failure, Job, Measured, Outcome, Plan};
use anyhow::{Context, anyhow, bail};
use holdup_comparison::scaling::{Slice, Turn};
use holdup_subject::signals::{Control, Signals};
use holdup_subject::subject::{Command, NotStarted, Subject, User};
use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// What a worker is to have for a slice, alone: CPU time and waiting. A point that is measured six times then rests on a quarter of a
/// second and some thirty turns of the scheduler.
const SLICE: Duration = Duration::from_millis(40);

/// No operation begins after so long: with many workers a slice takes longer, and would not tell more.
const MAX_SLICE: Duration = Duration::from_millis(500);

/// The same of programs: a slice is to have some runs.
const MAX_SLICE_OF_PROGRAMS: Duration = Duration::from_secs(2);

/// Fewest and most operations of a worker in a slice.
const OPERATIONS: (u64, u64) = (20, 10_000_000);

/// Fewest and most runs of a program.
const RUNS: (u64, u64) = (3, 200);

/// How long a leader may take beyond its own limits.
const LEADER: Duration = Duration::from_secs(10);

/// Bytes of an outcome: a list of lengths has at most a thousand numbers.
const MOST_READ: u64 = 1 << 20;

/// The person wants no more.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "interrupted before all points were measured; to save time, reduce --workers or --repeats",
        )
    }
}

impl std::error::Error for Interrupted {}

/// Where slices are measured.
pub(crate) struct Bench<'a> {
    pub(crate) user: Option<User>,
    pub(crate) timeout: Duration,
    pub(crate) signals: &'a mut Signals,
}

/// A leader that waits for its go-ahead.
pub(crate) struct Taken {
    pub(crate) subject: Subject,
    job: Job,
    result: File,
}

/// All slices, by arm.
#[derive(Debug, Default)]
pub(crate) struct Arms {
    pub(crate) subject: Vec<Measured>,
    pub(crate) control: Vec<Measured>,
}

/// Operations for each worker, of the subject and of the control.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operations {
    pub(crate) subject: u64,
    pub(crate) control: u64,
}

impl Bench<'_> {
    /// Makes the leader of a slice.
    pub(crate) fn prepare(&self, job: &Job, workers: u32, operations: u64) -> anyhow::Result<Taken> {
        let result =
            memfd_create(c"holdup-scale", MFdFlags::empty()).context("cannot allocate memory for results")?;
        let plan = Plan {
            job: job.clone(),
            workers,
            operations,
            most_ms: milliseconds(match job.programs() {
                true => MAX_SLICE_OF_PROGRAMS,
                false => MAX_SLICE,
            }),
            timeout_ms: milliseconds(self.timeout),
            result: result.as_raw_fd(),
            parent: nix::unistd::getpid().as_raw(),
        };
        let own = std::env::current_exe().context("cannot find the program file of holdup")?;
        let plan = serde_json::to_string(&plan).context("cannot encode the plan")?;
        let command = Command {
            argv: vec![own.into(), "scale-work".into(), plan.into()],
            user: self.user.clone().map(|user| user.handed(result.as_raw_fd())),
        };
        Ok(Taken {
            subject: Subject::prepare(&command)?,
            job: job.clone(),
            result: result.into(),
        })
    }

    /// Measures a slice.
    pub(crate) fn slice(&mut self, job: &Job, workers: u32, operations: u64) -> anyhow::Result<Measured> {
        let mut taken = self.prepare(job, workers, operations)?;
        taken.subject.go();
        let end = Instant::now() + self.timeout * 2 + LEADER;
        while taken.subject.try_wait()?.is_none() {
            self.signals.wait(&taken.subject, PollTimeout::from(100_u8));
            let interrupted = self.signals.interrupted() == Control::EndObservation;
            if interrupted || Instant::now() >= end {
                taken.subject.signal(libc::SIGKILL);
                taken.subject.wait()?;
                if interrupted {
                    return Err(Interrupted.into());
                }
            }
        }
        taken.measured(workers, self.timeout)
    }

    /// Whether it can be done at all.
    pub(crate) fn try_once(&mut self, job: &Job) -> anyhow::Result<()> {
        let least = if job.programs() { 1 } else { OPERATIONS.0 };
        successful(job, &self.slice(job, 1, least)?)
    }

    /// How many operations make a slice, by trying.
    pub(crate) fn calibrate(&mut self, job: &Job) -> anyhow::Result<u64> {
        let (least, most) = if job.programs() { RUNS } else { OPERATIONS };
        let tried = self.slice(job, 1, least)?;
        successful(job, &tried)?;
        let again = self.slice(job, 1, operations(&tried.slice, least, most).min(least * 50))?;
        Ok(operations(&again.slice, least, most))
    }

    /// Measures all points of both arms in this order; `tell` is told how far it is.
    pub(crate) fn measure(
        &mut self,
        job: &Job,
        control: &Job,
        turns: &[Turn],
        operations: Operations,
        mut tell: impl FnMut(usize, usize),
    ) -> anyhow::Result<Arms> {
        let mut arms = Arms::default();
        for (
            at,
            Turn {
                workers,
                control: of_control,
            },
        ) in turns.iter().enumerate()
        {
            tell(at, turns.len());
            if *of_control {
                arms.control
                    .push(self.slice(control, *workers, operations.control)?);
            } else {
                arms.subject.push(self.slice(job, *workers, operations.subject)?);
            }
        }
        Ok(arms)
    }
}

impl Taken {
    /// What the leader wrote.
    pub(crate) fn measured(mut self, workers: u32, timeout: Duration) -> anyhow::Result<Measured> {
        let mut text = Vec::new();
        self.result.rewind().context("cannot read results")?;
        self.result
            .take(MOST_READ)
            .read_to_end(&mut text)
            .context("cannot read results")?;
        let outcome: Outcome = serde_json::from_slice(&text).map_err(|_| {
            anyhow!(
                "the measurement of {} was killed by another process",
                self.job.words()
            )
        })?;
        match outcome {
            Outcome::Measured(measured) => Ok(Measured {
                slice: Slice {
                    workers,
                    ..measured.slice
                },
                ..measured
            }),
            Outcome::Failed(failure) => Err(words(&self.job, &failure, workers, timeout)),
        }
    }
}

/// A program that never succeeds has nothing to measure.
fn successful(job: &Job, tried: &Measured) -> anyhow::Result<()> {
    if tried.unsuccessful == tried.slice.operations && tried.unsuccessful > 0 {
        bail!(
            "{} end with status {} even with one worker; CMD must succeed before it can be measured",
            job.words(),
            tried.status
        );
    }
    Ok(())
}

/// As many as take [`SLICE`] alone, by what one took of CPU and waiting.
fn operations(tried: &Slice, least: u64, most: u64) -> u64 {
    let each = (tried.cpu + tried.blocked) / tried.operations.max(1);
    let slice = u64::try_from(SLICE.as_nanos()).unwrap_or(u64::MAX);
    (slice / each.max(1)).clamp(least, most)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Why it can't be measured, in a sentence that says what would be right.
fn words(job: &Job, failure: &Failure, workers: u32, timeout: Duration) -> anyhow::Error {
    let because = |errno: &i32| Errno::from_raw(*errno).desc();
    let what = match job {
        Job::Read { path, .. } | Job::Lock { path, .. } => format!("{path:?}"),
        Job::Sync { directory, .. } => format!("{directory:?}"),
        Job::Dns { server, .. } => server.to_string(),
        Job::Program { argv } => format!("{:?}", argv.first().cloned().unwrap_or_default()),
        other => other.words(),
    };
    let seconds = timeout.as_secs_f64();
    match failure {
        Failure::Workers { started, errno } => anyhow!(
            "only {started} of {workers} workers could be started: {}; reduce --workers, or raise the limit (ulimit -u, pids.max of the cgroup)",
            because(errno)
        ),
        Failure::Open { errno } if matches!(job, Job::Sync { .. }) => {
            anyhow!(
                "cannot write a file to {what}: {}; --sync needs a writable directory",
                because(errno)
            )
        }
        Failure::Open { errno } => anyhow!("cannot open {what}: {}", because(errno)),
        Failure::Kind { what: kind } if kind == "a directory" => {
            anyhow!(
                "{what} is a directory; --read and --lock need a file or device, --sync measures a directory"
            )
        }
        Failure::Kind { what: kind } => {
            anyhow!(
                "{what} is {kind}, and its reader waits for a writer; --read and --lock need a file or device"
            )
        }
        Failure::OpenHangs => {
            anyhow!(
                "{what} could not be opened and read within {seconds} s; to give it more time, use --timeout"
            )
        }
        Failure::Operation { errno } if job.programs() => {
            let Job::Program { argv } = job else {
                return anyhow!("cannot run it");
            };
            NotStarted::of_program(*errno, argv.first().cloned().unwrap_or_default()).into()
        }
        Failure::Operation {
            errno: libc::ETIMEDOUT,
        } if matches!(job, Job::Dns { .. }) => {
            anyhow!("{what} does not answer; --dns needs the address of a name server")
        }
        Failure::Operation { errno } => anyhow!("cannot measure {}: {}", job.words(), because(errno)),
        Failure::Hangs { workers: hang } => anyhow!(
            "{hang} of {workers} workers did not complete one of the {} within {seconds} s; to give them more time, use --timeout",
            job.words()
        ),
        Failure::Own { what, errno } => anyhow!("cannot measure: {what}: {}", because(errno)),
    }
}

/// Notes on what of it is to be kept in mind.
pub(crate) fn notes(arms: &Arms, job: &Job) -> Vec<String> {
    let mut notes = Vec::new();
    let failed: u64 = arms.subject.iter().map(|one| one.unsuccessful).sum();
    let all: u64 = arms.subject.iter().map(|one| one.slice.operations).sum();
    if failed > 0 {
        let status = arms.subject.iter().map(|one| one.status).max().unwrap_or(0);
        notes.push(format!(
            "{failed} of {all} runs ended with status {status}; they count as runs"
        ));
    }
    if arms.subject.iter().any(|one| one.queue_untold > 0) {
        notes.push("this kernel does not report run queue time (no schedstat), so a shortage of CPUs looks like waiting".to_owned());
    }
    if job.programs() {
        notes.push("the output of the programs is discarded, and their stdin is empty".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::{OPERATIONS, operations};
    use holdup_comparison::scaling::Slice;

    #[test]
    fn a_slice_has_as_many_operations_as_it_takes_and_never_none() {
        let of = |cpu, blocked| {
            let tried = Slice {
                operations: 100,
                cpu,
                blocked,
                ..Slice::default()
            };
            operations(&tried, OPERATIONS.0, OPERATIONS.1)
        };
        assert_eq!(of(100 * 4_000, 0), 10_000);
        assert_eq!(of(100 * 1_000, 100 * 3_000), 10_000);
        assert_eq!(of(100 * 1_000_000_000, 0), OPERATIONS.0);
        assert_eq!(of(0, 0), OPERATIONS.1);
    }
}
