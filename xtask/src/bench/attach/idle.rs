//! Ten thousand idle threads: what watching them takes, and what the one thread beside them that works notices of it.

use super::subject::Subject;
use super::watcher::Watcher;
use super::{Plan, middle, ratios};
use crate::bench::program_counts::count_runs;
use std::time::{Duration, Instant};

/// Threads that wait for something that never comes.
const THREADS: usize = 10_000;

/// What the thread that works does in a turn: calls that never block.
const CALLS: u64 = 3_000_000;

/// Measures and prints.
pub(super) fn measure(plan: &Plan<'_>) -> anyhow::Result<()> {
    let mut subject = Subject::start(&["idle", &THREADS.to_string(), &CALLS.to_string()])?;
    let (mut elapsed, mut of_cpu, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let (mut meanwhile, mut programs, mut once, mut memory) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let _counting = count_runs()?;
    subject.turn()?;
    for _ in 0..plan.args.rounds {
        let first = subject.turn()?;
        let watcher = Watcher::holdup(plan.holdup(), &[subject.pid()], &plan.report())?;
        let before = watcher.taken()?;
        let with = [subject.turn()?, subject.turn()?];
        let began = Instant::now();
        let quiet = watcher.taken()?;
        std::thread::sleep(Duration::from_secs(plan.args.seconds));
        let after = watcher.taken()?;
        let passed = began.elapsed().as_nanos() as f64;
        meanwhile.push((after.cpu - quiet.cpu) as f64 / passed * 100.0);
        programs.push((after.programs - quiet.programs) as f64 / passed * 100.0);
        once.push(before.cpu as f64 / 1e6);
        memory.push(after.memory as f64 / 1e6);
        watcher.end()?;
        let last = subject.turn()?;
        let base = f64::midpoint(first.seconds, last.seconds);
        elapsed.push(f64::midpoint(with[0].seconds, with[1].seconds) / base);
        of_cpu.push(f64::midpoint(with[0].cpu, with[1].cpu) / f64::midpoint(first.cpu, last.cpu));
        again.push(last.seconds / first.seconds);
    }
    println!(
        "{THREADS} idle threads and one that makes {CALLS} calls, {} rounds (A B B A), medians; no cost that can be measured",
        plan.args.rounds
    );
    println!("  untraced, again               {}", ratios(&again));
    println!("  holdup attach, elapsed        {}", ratios(&elapsed));
    println!("  holdup attach, of CPU         {}", ratios(&of_cpu));
    println!(
        "  holdup while all are idle     {} % of a core, its programs {} %",
        middle(meanwhile, 2),
        middle(programs, 3)
    );
    println!(
        "  to attach                     {} ms of CPU, {} MB at most",
        middle(once, 0),
        middle(memory, 0)
    );
    Ok(())
}
