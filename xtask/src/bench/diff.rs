//! `cargo xtask bench diff`: how fast `holdup diff` compares two large files of collapsed stacks, and in how much memory, beside
//! inferno's `inferno-diff-folded` and async-profiler's converter.
//!
//! In: two profiles made for it, with stacks in order and in none. Out: a table of medians, and of each in terms of inferno's. All are
//! run in turn. Before that `holdup diff` must name the function that was planted, or there is no table: a program that fails is fast.

mod peers;
mod profile;

use super::workload::Counted;
use crate::speed::MB;
use crate::{process, workspace};
use anyhow::{Context, bail};
use peers::Peer;
use profile::{Order, PLANTED};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How large, and beside whom.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Size of each profile, MB
    #[arg(long, default_value_t = 277)]
    megabytes: u64,
    /// How often each is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// async-profiler's converter, 4.4 or later, instead of the one that is fetched
    #[arg(long, value_name = "JAR")]
    converter: Option<PathBuf>,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// The part of a report that is read.
#[derive(Debug, Deserialize)]
struct Output {
    comparison: Comparison,
}

#[derive(Debug, Deserialize)]
struct Comparison {
    amounts: Vec<Amount>,
}

#[derive(Debug, Deserialize)]
struct Amount {
    name: String,
}

/// One that is measured, and what was measured of it.
#[derive(Debug)]
struct Measured {
    name: &'static str,
    command: Vec<String>,
    runs: Vec<Counted>,
}

/// A row of the table: medians.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    elapsed_s: f64,
    cpu_s: f64,
    memory_mb: f64,
}

/// Measures and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let peers = peers::all(args.converter.as_deref())?;
    let folder = workspace::scratch("bench-diff")?;
    println!("{}", workspace::machine()?);
    let mut stacks = profile::stacks(args.megabytes * MB);
    for order in [Order::Sorted, Order::Shuffled] {
        if order == Order::Shuffled {
            profile::shuffle(&mut stacks);
        }
        let (before, after) = (folder.join("before.collapsed"), folder.join("after.collapsed"));
        profile::write(&stacks, &before, &after)?;
        finds_what_is_planted(&holdup, &before, &after)?;
        let size = (before.metadata()?.len() + after.metadata()?.len()) / 2;
        let words = match order {
            Order::Sorted => "in the order of the alphabet",
            Order::Shuffled => "in no order",
        };
        println!(
            "\n2 profiles of {} MB and some {} stacks, {words}; medians of {} in turn",
            size / MB,
            stacks.len(),
            args.rounds
        );
        let measured = measure(&holdup, &peers, &folder, &before, &after, args.rounds)?;
        table(&measured, &peers);
    }
    std::fs::remove_dir_all(&folder).context("remove what was made")
}

/// Whether the comparison is right.
fn finds_what_is_planted(holdup: &Path, before: &Path, after: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(holdup);
    command.args(["diff", "--format", "json"]).args([before, after]);
    let output: Output =
        serde_json::from_str(&process::output(&mut command)?).context("read the comparison")?;
    let first = output
        .comparison
        .amounts
        .first()
        .map_or("nothing", |amount| &amount.name);
    if !first.contains(PLANTED) {
        bail!("holdup diff has {first} as what changed most, and that is {PLANTED}");
    }
    Ok(())
}

/// Each in turn, so many times.
fn measure(
    holdup: &Path,
    peers: &[Peer],
    folder: &Path,
    before: &Path,
    after: &Path,
    rounds: u32,
) -> anyhow::Result<Vec<Measured>> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let files = [text(before), text(after)];
    let page = text(&folder.join("page.html"));
    let ours = |name: &'static str, more: &[&str]| Measured {
        name,
        command: [&[&text(holdup), "diff", "--color", "never"], more]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .chain(files.clone())
            .collect(),
        runs: Vec::new(),
    };
    let mut all = vec![
        ours("holdup diff", &[]),
        ours("holdup diff --html", &["--html", &page]),
    ];
    all.extend(peers.iter().filter_map(|peer| {
        let words = peer.words.as_ref().ok()?;
        let output = peer.writes.then(|| text(&folder.join("peer.html")));
        Some(Measured {
            name: peer.name,
            command: words.iter().cloned().chain(files.clone()).chain(output).collect(),
            runs: Vec::new(),
        })
    }));
    let counts = folder.join("counted.json");
    for _ in 0..rounds {
        for one in &mut all {
            let mut wrapped = workspace::xtask()?;
            wrapped.args(["bench", "workload", "wrap"]).arg(&counts).arg("--");
            wrapped.args(&one.command).stdout(Stdio::null());
            process::run(&mut wrapped)?;
            let counted = std::fs::read_to_string(&counts).context("read what the kernel counted")?;
            one.runs
                .push(serde_json::from_str(&counted).context("understand it")?);
        }
    }
    Ok(all)
}

/// Prints it, everything in terms of the first peer that there is.
fn table(measured: &[Measured], peers: &[Peer]) {
    let base = measured
        .iter()
        .find(|one| peers.iter().any(|peer| peer.name == one.name));
    let base_row = base.map(|one| row(&one.runs));
    println!(
        "{:<22}{:>10}{:>10}{:>10}   {:>10}{:>10}{:>10}",
        "", "elapsed s", "CPU s", "memory MB", "elapsed", "CPU", "memory"
    );
    for one in measured {
        let row = row(&one.runs);
        let ratios = base_row.map_or_else(String::new, |base| {
            format!(
                "   {:>10.2}{:>10.2}{:>10.2}",
                row.elapsed_s / base.elapsed_s,
                row.cpu_s / base.cpu_s,
                row.memory_mb / base.memory_mb
            )
        });
        println!(
            "{:<22}{:>10.2}{:>10.2}{:>10.0}{ratios}",
            one.name, row.elapsed_s, row.cpu_s, row.memory_mb
        );
    }
    for peer in peers {
        if let Err(why) = &peer.words {
            println!("{:<22}not there: {why}", peer.name);
        }
    }
    if let Some(base) = base {
        println!("the last three columns: {} = 1", base.name);
    }
}

/// Medians of the runs, of which there is one at least.
fn row(runs: &[Counted]) -> Row {
    let median = |of: &dyn Fn(&Counted) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0
    };
    Row {
        elapsed_s: median(&|run| run.ended_ns.saturating_sub(run.started_ns) as f64 / 1e9),
        cpu_s: median(&|run| run.cpu_ns as f64 / 1e9),
        memory_mb: median(&|run| run.memory_kib as f64 * 1_024.0 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, row};
    use crate::bench::workload::Counted;

    #[test]
    fn a_row_has_the_medians() {
        let run = |seconds: u64, memory_kib: u64| Counted {
            started_ns: 7,
            ended_ns: 7 + seconds * 1_000_000_000,
            blockings: 0,
            cpu_ns: 2 * seconds * 1_000_000_000,
            memory_kib,
        };
        let median = row(&[run(5, 1_000), run(1, 3_000), run(2, 2_000)]);
        let (elapsed_s, cpu_s, memory_mb) = (2.0, 4.0, 2.048);
        assert_eq!(
            median,
            Row {
                elapsed_s,
                cpu_s,
                memory_mb
            }
        );
    }
}
