//! `cargo xtask bench programs`: what each of holdup's BPF programs takes a run.
//!
//! In: the kernel's own statistics, which are off until somebody asks for them. Out: a table. To be timed costs each run
//! some ten nanoseconds, so the ratios of `cargo xtask bench overhead` are taken without.

use super::observer::CORE;
use super::overhead::{Program, chosen, programs};
use super::program_counts::{Counts, Held, count_runs};
use super::samples::median;
use crate::workspace;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only under these: pipe, futex, make, hackbench
    programs: Vec<String>,
    /// How often each is run
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Round trips of the programs that switch all the time
    #[arg(long, default_value_t = 200_000)]
    round_trips: u64,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// How often to look for programs while holdup loads them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Measures and prints one table a workload.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let all = programs(args.round_trips, 1, &workspace::scratch("bench")?)?;
    // What never blocks runs hardly any program.
    let switching = all.into_iter().filter(|one| one.name != "getppid").collect();
    let _counting = count_runs()?;
    for workload in chosen(switching, &args.programs)? {
        let rounds: Vec<Counts> = (0..args.rounds)
            .map(|_| measure(&holdup, &workload))
            .collect::<anyhow::Result<_>>()?;
        println!("{}, {} rounds, medians", workload.title, args.rounds);
        print(&rounds);
        println!();
    }
    Ok(())
}

fn print(rounds: &[Counts]) {
    println!("  {:<18} {:>10} {:>8}", "", "runs", "ns a run");
    let mut names: Vec<&String> = rounds.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    for name in names {
        let of = |figure: fn(u64, u64) -> f64| {
            let counts = rounds.iter().filter_map(|counts| counts.get(name));
            median(counts.map(|(runs, ns)| figure(*runs, *ns))).unwrap_or_default()
        };
        let runs = of(|runs, _| runs as f64);
        println!(
            "  {name:<18} {runs:>10.0} {:>8.0}",
            of(|runs, ns| ns as f64 / runs as f64)
        );
    }
}

/// One run under holdup.
fn measure(holdup: &Path, workload: &Program) -> anyhow::Result<Counts> {
    let mut command = Command::new(holdup);
    command.args(["run", "-q", "--json", "/dev/null", "--"]);
    if workload.pinned {
        command.args(["taskset", "-c", CORE]);
    }
    let mut child = command
        .args(&workload.command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("start holdup")?;
    let mut held = Held::default();
    let status = loop {
        if let Some(status) = child.try_wait().context("wait for holdup")? {
            break status;
        }
        held.look_at(child.id());
        std::thread::sleep(LOOK_EVERY);
    };
    if !status.success() {
        bail!("holdup failed: {status}");
    }
    held.counts()
}
