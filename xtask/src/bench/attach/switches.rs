//! Twenty thousand switches a second: what holdup takes of the machine for them.

use super::subject::Subject;
use super::watcher::Watcher;
use super::{Plan, middle};
use crate::bench::program_counts::count_runs;
use std::time::{Duration, Instant};

/// Switches to and from the threads in a second, as `vmstat` counts them.
const SWITCHES: u64 = 20_000;

/// The most that holdup should take: per cent of a core, its programs included, and bytes.
const MOST_CPU: f64 = 2.0;
const MOST_MEMORY: u64 = 60_000_000;

/// Who waits: title, workload, threads, waits a second. Who sleeps is switched to and from the idle CPU, so each sleep is two
/// switches; and what one that hardly waits costs is what the rest of the machine does.
const SHAPES: [(&str, &str, u64, u64); 3] = [
    ("two threads that wake each other", "paced-pair", 2, SWITCHES),
    ("two hundred that sleep", "paced-sleepers", 200, SWITCHES / 2),
    ("one that sleeps once a second", "paced-sleepers", 1, 1),
];

/// Measures and prints.
pub(super) fn measure(plan: &Plan<'_>) -> anyhow::Result<()> {
    let _counting = count_runs()?;
    println!(
        "{SWITCHES} switches a second, {} rounds of {} s, medians; at most {MOST_CPU} % of a core and {} MB",
        plan.args.rounds,
        plan.args.seconds,
        MOST_MEMORY / 1_000_000
    );
    println!(
        "  {:<34} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "", "left CPU/s", "holdup %", "programs %", "together %", "MB"
    );
    for (title, workload, threads, waits) in SHAPES {
        let subject = Subject::start(&[workload, &threads.to_string(), &waits.to_string()])?;
        let mut figures: Vec<[f64; 5]> = Vec::new();
        for _ in 0..plan.args.rounds {
            let watcher = Watcher::holdup(plan.holdup(), &[subject.pid()], &plan.report())?;
            let (before, switches_before) = (watcher.taken()?, switches(subject.pid()));
            let began = Instant::now();
            std::thread::sleep(Duration::from_secs(plan.args.seconds));
            let (after, switches_after) = (watcher.taken()?, switches(subject.pid()));
            let passed = began.elapsed();
            watcher.end()?;
            let share = |ns: u64| ns as f64 / passed.as_nanos() as f64 * 100.0;
            let (own, programs) = (
                share(after.cpu - before.cpu),
                share(after.programs - before.programs),
            );
            let rate = (switches_after - switches_before) as f64 / passed.as_secs_f64();
            figures.push([rate, own, programs, own + programs, after.memory as f64 / 1e6]);
        }
        let of = |index: usize, decimals| middle(figures.iter().map(|row| row[index]), decimals);
        println!(
            "  {title:<34} {:>10} {:>10} {:>10} {:>10} {:>9}",
            of(0, 0),
            of(1, 2),
            of(2, 2),
            of(3, 2),
            of(4, 1)
        );
    }
    Ok(())
}

/// How often its threads have left a CPU, by the kernel's count.
fn switches(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let texts = tasks
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    texts.map(|text| switches_of(&text)).sum()
}

/// The sum of both kinds, of a thread's `status`.
fn switches_of(status: &str) -> u64 {
    let counts = status
        .lines()
        .filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    counts
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::switches_of;

    #[test]
    fn switches_are_of_both_kinds() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t120\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches_of(status), 123);
    }
}
