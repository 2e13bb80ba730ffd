//! Programs that are watched from outside while they run: idle threads, and waits at a rate that is known.
//!
//! Each says "ready" when its threads are there, and goes on until it is ended.

use super::{PERIOD, THREAD_STACK, cpu_ns, futex, getppid};
use anyhow::Context;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::UsageWho;
use nix::unistd::Pid;
use std::io::BufRead;
use std::time::{Duration, Instant};

/// How often a pair has its turns: each time as many as the rate wants.
const BEAT: Duration = Duration::from_millis(5);

/// Threads that wait for what never comes; a turn of calls for each line.
pub(super) fn idle(threads: usize, calls: u64) -> anyhow::Result<()> {
    for _ in 0..threads {
        spawn(|| {
            loop {
                std::thread::park();
            }
        })?;
    }
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        line.context("read an order")?;
        let before = cpu_ns(UsageWho::RUSAGE_SELF)?;
        let elapsed = getppid(calls).as_secs_f64();
        let cpu = (cpu_ns(UsageWho::RUSAGE_SELF)? - before) as f64 / 1e9;
        println!("{elapsed:.6} {cpu:.6}");
    }
    Ok(())
}

/// Pairs that wait for each other, on one CPU: on two, not every turn is waited for.
pub(super) fn pairs(threads: u64, per_second: u64) -> anyhow::Result<()> {
    let mut one = CpuSet::new();
    one.set(0).context("choose a CPU")?;
    sched_setaffinity(Pid::from_raw(0), &one).context("stay on a CPU")?;
    let beats = 1_000_000_000 / u64::try_from(BEAT.as_nanos())?;
    // A round trip is a wait of either.
    let trips = (per_second / beats / threads.max(1)).max(1);
    for _ in 0..threads / 2 {
        spawn(move || {
            futex::paced(trips, BEAT);
        })?;
    }
    ready_for_good()
}

/// Threads that sleep.
pub(super) fn sleepers(threads: u64, per_second: u64) -> anyhow::Result<()> {
    let period = Duration::from_secs(1) * u32::try_from(threads)? / u32::try_from(per_second)?;
    for number in 0..threads {
        spawn(move || {
            // Not all in step; and a sleep that ends late does not make the next one late.
            let began = Instant::now() + period.mul_f64(number as f64 / threads as f64);
            for turn in 0.. {
                std::thread::sleep((began + period * turn).saturating_duration_since(Instant::now()));
            }
        })?;
    }
    ready_for_good()
}

/// Threads of which some sleep ten times a second and the others wait for what never comes, until a line comes.
pub(super) fn partly_idle(threads: u64, busy: u64) -> anyhow::Result<()> {
    for _ in busy..threads {
        spawn(|| {
            loop {
                std::thread::park();
            }
        })?;
    }
    for number in 0..busy {
        spawn(move || {
            // Not all in step.
            std::thread::sleep(PERIOD.mul_f64(number as f64 / busy as f64));
            loop {
                std::thread::sleep(PERIOD);
            }
        })?;
    }
    println!("ready");
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .context("read the order to end")
        .map(drop)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let thread = std::thread::Builder::new().stack_size(THREAD_STACK);
    thread.spawn(work).context("start a thread").map(drop)
}

fn ready_for_good() -> anyhow::Result<()> {
    println!("ready");
    loop {
        std::thread::park();
    }
}
