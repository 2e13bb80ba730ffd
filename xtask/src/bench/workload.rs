//! The programs that are measured, and the wrapper that measures them from inside the observed run.

mod paced;
pub(super) mod planted;

use anyhow::{Context, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A program to measure, or the wrapper around one.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Workload {
    /// Run a command and write what the kernel counted for it
    Wrap {
        /// Where to write
        out: PathBuf,
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Make system calls that never block and print the seconds that they took
    Getppid {
        /// How many
        calls: u64,
    },
    /// Let two threads wake each other by a futex and print the seconds that it took
    Futex {
        /// How many round trips
        round_trips: u64,
    },
    /// Build the project of many files anew and print the seconds that it took
    Build {
        /// Where it is
        folder: PathBuf,
    },
    /// Wait often, and start and end threads
    Volume {
        /// How often
        waits: u64,
        /// How many
        threads: u64,
    },
    /// Keep threads that are idle, and make calls that never block whenever a line comes
    Idle {
        /// How many threads
        threads: usize,
        /// How many calls
        calls: u64,
    },
    /// Let pairs of threads wake each other so many times a second
    PacedPair {
        /// How many threads, two a pair
        threads: u64,
        /// How many waits a second, of all
        per_second: u64,
    },
    /// Let threads sleep so many times a second
    PacedSleepers {
        /// How many threads
        threads: u64,
        /// How many sleeps a second, of all
        per_second: u64,
    },
    /// Keep threads of which some sleep ten times a second, until a line comes
    PartlyIdle {
        /// How many threads
        threads: u64,
        /// How many of them sleep
        busy: u64,
    },
    /// Wait as long as is planted
    Planted {
        /// How many times as long as planned
        pace: f64,
        /// How much of all on top in one place
        more: f64,
        /// The socket at which somebody answers
        answers: PathBuf,
    },
    /// Let many threads sleep and lock
    Threads {
        /// How many
        threads: usize,
        /// For how many seconds
        seconds: u64,
    },
}

/// What the kernel counted for a wrapped command, all its descendants that it waited for included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counted {
    /// Just before the command's start, `CLOCK_MONOTONIC`, nanoseconds.
    pub(super) started_ns: u64,
    /// Just after its end.
    pub(super) ended_ns: u64,
    /// How often its threads blocked.
    pub(super) blockings: u64,
    /// CPU time, nanoseconds. What programs do on a thread's back is in it.
    pub(super) cpu_ns: u64,
    /// The most memory that one of its processes had at a time, KiB.
    pub(super) memory_kib: u64,
}

/// Locks that the threads share: few enough that some wait, enough that they do not all stand in one line.
const LOCKS: usize = 64;

/// How long a thread sleeps between two locks: ten waits a second and thread are many for a server's worker.
const PERIOD: Duration = Duration::from_millis(100);

/// Room for each thread's stack in bytes; the default of 2 MiB would make 8 GB of address space of 4,000.
const THREAD_STACK: usize = 64 << 10;

/// How many round trips a pair makes between two looks at the kernel's count.
const ROUND_TRIPS: u64 = 20_000;

/// Runs it.
pub(super) fn run(workload: Workload) -> anyhow::Result<()> {
    match workload {
        Workload::Wrap { out, command } => wrap(out, &command),
        Workload::Getppid { calls } => {
            println!("{:.6}", getppid(calls).as_secs_f64());
            Ok(())
        }
        Workload::Futex { round_trips } => {
            println!("{:.6}", futex::ping_pong(round_trips)?.as_secs_f64());
            Ok(())
        }
        Workload::Build { folder } => {
            println!("{:.6}", super::project::build(&folder)?.as_secs_f64());
            Ok(())
        }
        Workload::Volume { waits, threads } => volume(waits, threads),
        Workload::Idle { threads, calls } => paced::idle(threads, calls),
        Workload::PacedPair { threads, per_second } => paced::pairs(threads, per_second),
        Workload::PacedSleepers { threads, per_second } => paced::sleepers(threads, per_second),
        Workload::PartlyIdle { threads, busy } => paced::partly_idle(threads, busy),
        Workload::Planted { pace, more, answers } => planted::run(pace, more, &answers),
        Workload::Threads { threads, seconds } => sleep_and_lock(threads, Duration::from_secs(seconds)),
    }
}

/// Now, on `CLOCK_MONOTONIC`, in nanoseconds.
pub(super) fn now_ns() -> anyhow::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("read the monotonic clock")?;
    u64::try_from(Duration::from(now).as_nanos()).context("the machine is up for more than 500 years")
}

fn wrap(out: PathBuf, command: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().context("clap requires a command")?;
    let started_ns = now_ns()?;
    let status = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("start {program}"))?;
    let ended_ns = now_ns()?;
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    let counted = Counted {
        started_ns,
        ended_ns,
        blockings: blockings(UsageWho::RUSAGE_CHILDREN)?,
        cpu_ns: cpu_ns(UsageWho::RUSAGE_CHILDREN)?,
        memory_kib: memory_kib(UsageWho::RUSAGE_CHILDREN)?,
    };
    std::fs::write(&out, serde_json::to_string(&counted)?).with_context(|| format!("write {}", out.display()))
}

/// How often threads blocked, by the kernel's count.
fn blockings(whose: UsageWho) -> anyhow::Result<u64> {
    let usage = getrusage(whose).context("getrusage")?;
    u64::try_from(usage.voluntary_context_switches()).context("a count is not negative")
}

/// The most memory of a process, KiB.
fn memory_kib(whose: UsageWho) -> anyhow::Result<u64> {
    let usage = getrusage(whose).context("getrusage")?;
    u64::try_from(usage.max_rss()).context("an amount is not negative")
}

/// CPU time, user and system, nanoseconds.
fn cpu_ns(whose: UsageWho) -> anyhow::Result<u64> {
    let usage = getrusage(whose).context("getrusage")?;
    let times = [usage.user_time(), usage.system_time()];
    let us: i64 = times
        .iter()
        .map(|time| time.tv_sec() * 1_000_000 + time.tv_usec())
        .sum();
    Ok(u64::try_from(us).context("a time is not negative")? * 1_000)
}

/// A plain loop, so that it costs nothing beside the calls even without optimisation.
fn getppid(calls: u64) -> Duration {
    let began = Instant::now();
    let mut left = calls;
    while left > 0 {
        nix::unistd::getppid();
        left -= 1;
    }
    began.elapsed()
}

/// Both at once: a pair of threads that wait for each other, and one thread after another.
fn volume(waits: u64, threads: u64) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        // On two CPUs not every turn is waited for, so the kernel's count decides.
        let pair = scope.spawn(move || -> anyhow::Result<()> {
            while blockings(UsageWho::RUSAGE_SELF)? < waits {
                futex::ping_pong(ROUND_TRIPS)?;
            }
            Ok(())
        });
        for number in 0..threads {
            std::thread::Builder::new()
                .stack_size(THREAD_STACK)
                .spawn(|| {})
                .with_context(|| format!("start thread {number}"))?
                .join()
                .expect("it does nothing");
        }
        pair.join().expect("the pair does not panic")
    })
}

/// Two threads and a word in memory, without a library between them and the kernel.
mod futex {
    use anyhow::Context;
    use nix::libc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    /// So many times each of the two waits for the other.
    pub(super) fn ping_pong(round_trips: u64) -> anyhow::Result<Duration> {
        let turn = AtomicU32::new(0);
        let began = Instant::now();
        std::thread::scope(|scope| {
            let turn = &turn;
            let other = std::thread::Builder::new()
                .spawn_scoped(scope, move || play(turn, 1, round_trips))
                .context("start a thread")?;
            play(turn, 0, round_trips);
            other.join().expect("it does not panic");
            Ok(began.elapsed())
        })
    }

    /// So many round trips in each beat, for good.
    pub(super) fn paced(round_trips: u64, beat: Duration) {
        let turn = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let turn = &turn;
            // It waits through the pauses too, so it is one thread for good.
            scope.spawn(move || play(turn, 1, u64::MAX));
            let began = Instant::now();
            for number in 1.. {
                play(turn, 0, round_trips);
                std::thread::sleep((began + beat * number).saturating_duration_since(Instant::now()));
            }
        });
    }

    /// One side: waits for its turn and gives it to the other.
    fn play(turn: &AtomicU32, own: u32, round_trips: u64) {
        for _ in 0..round_trips {
            while turn.load(Ordering::Acquire) != own {
                call(turn, libc::FUTEX_WAIT, 1 - own);
            }
            turn.store(1 - own, Ordering::Release);
            call(turn, libc::FUTEX_WAKE, 1);
        }
    }

    fn call(word: &AtomicU32, operation: libc::c_int, value: u32) {
        // SAFETY: the word outlives the call; without a time-out the kernel reads nothing else.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                operation | libc::FUTEX_PRIVATE_FLAG,
                value,
                std::ptr::null::<libc::timespec>(),
            );
        }
    }
}

fn sleep_and_lock(threads: usize, duration: Duration) -> anyhow::Result<()> {
    let locks: Vec<Mutex<u64>> = (0..LOCKS).map(|_| Mutex::new(0)).collect();
    let until = Instant::now() + duration;
    std::thread::scope(|scope| {
        for number in 0..threads {
            let lock = &locks[number % LOCKS];
            let work = move || {
                // Not all in step.
                std::thread::sleep(PERIOD.mul_f64(number as f64 / threads as f64));
                while Instant::now() < until {
                    std::thread::sleep(PERIOD);
                    *lock.lock().expect("no thread panics with a lock") += 1;
                }
            };
            std::thread::Builder::new()
                .stack_size(THREAD_STACK)
                .spawn_scoped(scope, work)
                .with_context(|| format!("start thread {number}"))?;
        }
        Ok(())
    })
}
