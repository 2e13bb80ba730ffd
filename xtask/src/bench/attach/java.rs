//! A JVM: what watching a thousand and four thousand of its threads takes while they are idle, beside async-profiler's wall
//! clock, which asks each of them; and what a busy one notices of being watched.
//!
//! In: `Threads.java`, on every JDK of this machine. Out: a table for each. async-profiler is loaded into a JVM of its own as
//! it starts, and what that takes more than one without is its cost.

use super::subject::Subject;
use super::watcher::{Watcher, cpu_ns};
use super::{Plan, middle, ratios};
use crate::bench::program_counts::count_runs;
use crate::scenarios::jdk::{self, Jdk};
use anyhow::bail;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What is watched.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/attach/Threads.java");

/// Idle threads.
const THREADS: [usize; 2] = [1000, 4000];

/// The most that holdup should take while they are idle, per cent of a core; and that a busy one's throughput may fall.
const MOST_CPU: f64 = 1.0;
const LEAST_THROUGHPUT: f64 = 0.97;

/// How often async-profiler asks each thread.
const INTERVAL: &str = "10ms";

/// Measures and prints.
pub(super) fn measure(plan: &Plan<'_>) -> anyhow::Result<()> {
    let jdks = jdk::installed();
    if jdks.is_empty() {
        bail!("there is no JDK on this machine");
    }
    println!(
        "idle threads of a JVM, {} rounds of {} s, medians of per cent of a core; at most {MOST_CPU} %",
        plan.args.rounds, plan.args.seconds
    );
    println!(
        "  {:<24} {:>10} {:>10} {:>12} {:>12} {:>26}",
        "", "the JVM", "holdup", "its programs", "together", "async-profiler wall"
    );
    for jdk in &jdks {
        for threads in THREADS {
            idle(plan, jdk, threads)?;
        }
    }
    println!();
    println!(
        "a JVM that works, {} rounds (A B B A), medians of a turn's time; at most {:.2}",
        plan.args.rounds,
        1.0 / LEAST_THROUGHPUT
    );
    for jdk in &jdks {
        busy(plan, jdk)?;
    }
    Ok(())
}

/// `java Threads.java IDLE`, with another library loaded where one is given.
fn start(jdk: &Jdk, threads: usize, agent: Option<&Path>) -> anyhow::Result<Subject> {
    let mut command = Command::new(jdk.home.join("bin/java"));
    if let Some(library) = agent {
        command.arg(format!(
            "-agentpath:{}=start,event=wall,interval={INTERVAL},file=/dev/null",
            library.display()
        ));
    }
    Subject::spawn(command.arg(PROGRAM).arg(threads.to_string()))
}

fn idle(plan: &Plan<'_>, jdk: &Jdk, threads: usize) -> anyhow::Result<()> {
    let _counting = count_runs()?;
    let pause = Duration::from_secs(plan.args.seconds);
    let alone = start(jdk, threads, None)?;
    let asked = plan
        .args
        .async_profiler
        .as_deref()
        .map(|library| start(jdk, threads, Some(library)))
        .transpose()?;
    // What a JVM does after its start is not what it costs to watch it.
    std::thread::sleep(pause);
    let (mut base, mut own, mut programs, mut theirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.args.rounds {
        base.push(share(&[alone.pid()], pause));
        let watcher = Watcher::holdup(plan.holdup(), &[alone.pid()], &plan.report())?;
        let (before, began) = (watcher.taken()?, Instant::now());
        std::thread::sleep(pause);
        let (after, passed) = (watcher.taken()?, began.elapsed().as_nanos() as f64);
        watcher.end()?;
        own.push((after.cpu - before.cpu) as f64 / passed * 100.0);
        programs.push((after.programs - before.programs) as f64 / passed * 100.0);
        if let Some(asked) = &asked {
            theirs.push(share(&[asked.pid()], pause));
        }
    }
    let together = own.iter().zip(&programs).map(|(own, programs)| own + programs);
    let theirs = theirs.iter().zip(&base).map(|(with, without)| with - without);
    println!(
        "  {:<24} {:>10} {:>10} {:>12} {:>12} {:>26}",
        format!("JDK {}, {threads} threads", jdk.version),
        middle(base.iter().copied(), 2),
        middle(own.iter().copied(), 2),
        middle(programs.iter().copied(), 3),
        middle(together, 2),
        if asked.is_some() {
            middle(theirs, 2)
        } else {
            "not given".to_owned()
        }
    );
    Ok(())
}

/// CPU time of these processes while nobody does anything, per cent of a core.
fn share(pids: &[u32], pause: Duration) -> f64 {
    let of_all = || pids.iter().map(|pid| cpu_ns(*pid)).sum::<u64>();
    let (before, began) = (of_all(), Instant::now());
    std::thread::sleep(pause);
    let used = of_all().saturating_sub(before);
    used as f64 / began.elapsed().as_nanos() as f64 * 100.0
}

fn busy(plan: &Plan<'_>, jdk: &Jdk) -> anyhow::Result<()> {
    /// Turns until its code is compiled.
    const WARM: usize = 4;
    let mut subject = start(jdk, 0, None)?;
    for _ in 0..WARM {
        subject.turn()?;
    }
    let (mut elapsed, mut of_cpu, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.args.rounds {
        let first = subject.turn()?;
        let watcher = Watcher::holdup(plan.holdup(), &[subject.pid()], &plan.report())?;
        let with = [subject.turn()?, subject.turn()?];
        watcher.end()?;
        let last = subject.turn()?;
        let base = f64::midpoint(first.seconds, last.seconds);
        elapsed.push(f64::midpoint(with[0].seconds, with[1].seconds) / base);
        of_cpu.push(f64::midpoint(with[0].cpu, with[1].cpu) / f64::midpoint(first.cpu, last.cpu));
        again.push(last.seconds / first.seconds);
    }
    println!(
        "  JDK {:<3} untraced, again           {}",
        jdk.version,
        ratios(&again)
    );
    println!("          holdup attach, elapsed    {}", ratios(&elapsed));
    println!("          holdup attach, of CPU     {}", ratios(&of_cpu));
    Ok(())
}
