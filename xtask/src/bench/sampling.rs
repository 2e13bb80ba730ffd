//! `cargo xtask bench sampling`: what `holdup run --backend proc` takes of a core, by how many threads there are and how many of
//! them go on, beside the budget that it has promised to keep.
//!
//! In: how many threads. Out: a line each: per cent of a core while it goes on and of the whole run, its beginning and its report
//! included; and how far apart its looks were, which is what the budget is paid with.

use super::attach::{Subject, cpu_ns};
use crate::report::Report;
use crate::workspace;
use anyhow::Context;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The budget, per cent of a core.
const BUDGET: f64 = 2.0;

/// From the last thread's start until what goes on is measured: it has met all of them by then.
const SETTLE: Duration = Duration::from_secs(2);

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Threads of the observed program
    #[arg(default_values_t = [1, 100, 1_000, 4_000])]
    threads: Vec<u64>,
    /// How long each is measured, seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<std::path::PathBuf>,
}

/// What a run took.
struct Took {
    /// Per cent of a core while it went on.
    meanwhile: f64,
    /// The same of the whole.
    in_all: f64,
    /// Of all its own CPU time, milliseconds.
    milliseconds: f64,
    /// How often it looked, in its own words.
    looks: String,
}

/// Measures and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let report = workspace::scratch("bench")?.join("sampling.json");
    println!(
        "{}, {} s each; of a core in per cent, budget {BUDGET} while it goes on",
        workspace::machine()?,
        args.seconds
    );
    println!(
        "{:>7} {:>9} {:>10} {:>7} {:>9}  looks",
        "threads", "go on", "meanwhile", "in all", "CPU ms"
    );
    for threads in &args.threads {
        let mut before = None;
        for busy in [0, threads.div_ceil(10), *threads] {
            if before.replace(busy) == Some(busy) {
                continue;
            }
            let took = measure(&holdup, &report, (*threads, busy), args.seconds)?;
            println!(
                "{threads:>7} {busy:>9} {:>10.2} {:>7.2} {:>9.0}  {}",
                took.meanwhile, took.in_all, took.milliseconds, took.looks
            );
        }
    }
    Ok(())
}

fn measure(holdup: &Path, report: &Path, (threads, busy): (u64, u64), seconds: u64) -> anyhow::Result<Took> {
    let mut command = Command::new(holdup);
    command
        .args(["run", "-q", "--backend", "proc", "--json"])
        .arg(report);
    command
        .arg("--")
        .arg(std::env::current_exe().context("the path of this program")?)
        .args(["bench", "workload", "partly-idle"])
        .args([threads, busy].map(|count| count.to_string()))
        .stderr(Stdio::null());
    let subject = Subject::spawn(&mut command)?;
    std::thread::sleep(SETTLE);
    let (began, before) = (Instant::now(), cpu_ns(subject.pid()));
    std::thread::sleep(Duration::from_secs(seconds));
    let meanwhile = (cpu_ns(subject.pid()) - before) as f64 / began.elapsed().as_nanos() as f64;
    subject.end()?;
    let text = std::fs::read_to_string(report).context("read the report")?;
    let report: Report = serde_json::from_str(&text).context("understand the report")?;
    let cost = report.coverage.own_cost_ns as f64;
    let looks = report.coverage.not_measured.iter();
    let looks = looks.filter_map(|line| line.what.strip_prefix("waits that ended between two samples, "));
    Ok(Took {
        meanwhile: meanwhile * 100.0,
        in_all: cost / report.subject.wall_ns.max(1) as f64 * 100.0,
        milliseconds: cost / 1e6,
        looks: looks.collect::<Vec<_>>().join("; "),
    })
}
