//! `cargo xtask scenarios [NAME…]`: stalls made for real, and what holdup says of them.
//!
//! In: the folders of `scenarios/`, each a real stall with a healthy twin that differs in one thing. Out: a
//! table: right cause, resource, asker and holder, holdup's share beside the one that the workload measured of
//! itself, false alarms. Anything wrong is an error.

mod beside;
pub(crate) mod jdk;
pub(crate) mod programs;
pub(crate) mod report;
pub(crate) mod scenario;
pub(crate) mod stage;
mod table;
pub(crate) mod verdict;

use crate::setup::{self, Packages};
use crate::workspace;
use anyhow::{Context, bail};
pub(crate) use scenario::{Scenario, load, packages};
use stage::{Ordinary, Outcome, Side, Stage};
use std::path::{Path, PathBuf};
use table::Line;
use verdict::Observed;

/// Share of a stall's time (without what it queued for a CPU) that its trouble must have, by its own measure,
/// to be one: below a third there would be room for another main cause.
const REAL: f64 = 0.33;

/// There are machines whose kernel now and then shows a waking to no program at all (ARCHITECTURE.md, "The ledger"); holdup
/// counts them. A run that is not right and of which holdup itself says so, or that had no stall, is made again, so often at most.
const TRIES: usize = 3;

/// One that is not right is judged by majority: so often more, and it must be right each time. What else the machine does at that
/// moment may be in the way of one run; the table says below which scenarios needed this, for they want looking at.
const FURTHER: usize = 2;

/// Runs scenarios and judges holdup by them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Scenarios to run; all without any
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// The holdup binary to judge, instead of building one
    #[arg(long, value_name = "FILE")]
    holdup: Option<PathBuf>,

    /// Run the stalls and their twins without holdup, and show only what they measure of themselves
    #[arg(long, conflicts_with = "holdup")]
    unobserved: bool,

    /// Keep each report in this directory, as NAME.stall.json and NAME.healthy.json, and the events that it was made of, for
    /// `cargo xtask replay`; of a run that was not right, as NAME.stall.not-right.json
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,

    /// Write the table as a page to this file too
    #[arg(long, value_name = "FILE", conflicts_with = "unobserved")]
    table: Option<PathBuf>,

    /// List the scenarios with what they show
    #[arg(long)]
    list: bool,

    /// Run holdup and the commands as an ordinary user beside it, with holdup sampling, and compare both
    #[arg(long, value_enum, conflicts_with = "unobserved")]
    backend: Option<beside::Sampled>,

    /// Show holdup's own words, and the scenarios', too
    #[arg(short, long)]
    verbose: bool,
    /// Scenarios about Java on every JDK that they are for, not on one of them in turn
    #[arg(long)]
    every_jdk: bool,
}

/// Runs the scenarios.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = workspace::root().join("scenarios");
    let scenarios = load(&folder, &args.names)?;
    if args.list {
        for scenario in &scenarios {
            println!("{:<32} {}", scenario.name, scenario.about.shows);
        }
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!("scenarios make loop devices, namespaces and cgroups: run them as root");
    }
    install_packages(&scenarios)?;
    let scenarios = jdk::each(scenarios, &jdk::installed(), args.every_jdk)?;
    let programs = workspace::scratch("scenarios")?;
    let stage_folder = folder.join("stage");
    programs::compile(&stage_folder, &scenarios, &programs)?;
    let holdup = if args.unobserved {
        None
    } else {
        Some(workspace::holdup(args.holdup.as_deref())?)
    };
    let stage = Stage {
        folder: stage_folder,
        programs,
        holdup,
        ordinary: Ordinary::Nothing,
        keep_events: args.keep.is_some(),
    };
    if let Some(keep) = &args.keep {
        std::fs::create_dir_all(keep).with_context(|| format!("make {}", keep.display()))?;
    }
    if let Some(backend) = args.backend {
        beside::judge(
            stage,
            &scenarios,
            backend,
            args.keep.as_deref(),
            args.table.as_deref(),
        )
    } else if args.unobserved {
        show_truths(&stage, &scenarios, args.verbose)
    } else {
        judge(&stage, &scenarios, args)
    }
}

/// Runs every scenario under holdup and prints the table.
fn judge(stage: &Stage, scenarios: &[Scenario], args: &Args) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    let mut outvoted = Vec::new();
    for scenario in scenarios {
        eprintln!("scenario {}: {}", scenario.name, scenario.about.shows);
        let mut line = judge_once(stage, scenario, args);
        for _ in 1..TRIES {
            match &line {
                (Line::Judged(row), Some(why)) if !row.right() => eprintln!("  again: {why}"),
                _ => break,
            }
            line = judge_once(stage, scenario, args);
        }
        let (mut line, _) = line;
        if !line.right() {
            eprintln!("  not right: {}; twice more", line.why_not().join("; "));
            put_aside(args.keep.as_deref(), &scenario.name)?;
            let more = [(); FURTHER].map(|()| judge_once(stage, scenario, args).0);
            if more.iter().all(Line::right) {
                outvoted.push((scenario.name.clone(), line.why_not().join("; ")));
                let [.., last] = more;
                line = last;
            }
        }
        lines.push((scenario.name.clone(), line));
    }
    print!("{}", table::render(&lines));
    if !outvoted.is_empty() {
        println!("Right in two of three runs only:");
        for (name, why) in &outvoted {
            println!("  {name}: {why}");
        }
    }
    if let Some(file) = &args.table {
        std::fs::write(file, table::page(&lines, &workspace::kernel()?))
            .with_context(|| format!("write {}", file.display()))?;
    }
    let wrong = lines.iter().filter(|(_, line)| !line.right()).count();
    if wrong > 0 {
        bail!("{wrong} of {} scenarios are not right", lines.len());
    }
    Ok(())
}

/// Keeps the reports of a run that was not right from being written over by the next.
fn put_aside(keep: Option<&Path>, name: &str) -> anyhow::Result<()> {
    for side in [Side::Stall, Side::Healthy] {
        let Some(file) = keep.map(|keep| keep.join(format!("{name}.{}.json", side.word()))) else {
            continue;
        };
        if file.exists() {
            std::fs::rename(&file, file.with_extension("not-right.json"))
                .with_context(|| format!("put {} aside", file.display()))?;
        }
    }
    Ok(())
}

/// Runs a scenario and judges it; also why it may be no test of holdup after all: the kernel hid something from it, or
/// there was no stall by the workload's own measure.
fn judge_once(stage: &Stage, scenario: &Scenario, args: &Args) -> (Line, Option<String>) {
    match both(stage, scenario, args) {
        Ok((stall, twin)) => {
            let row = verdict::judge(&scenario.about.expect, &stall, &twin);
            let hidden = stall.report.hidden() + twin.report.hidden();
            let why = if hidden > 0 {
                Some(format!("the kernel hid {hidden} of its wakings and waits"))
            } else if stall.truth.trouble() < REAL {
                Some("there was no stall by the workload's own measure".to_owned())
            } else {
                None
            };
            (Line::Judged(Box::new(row)), why)
        }
        Err(error) => (Line::Failed(format!("{error:#}")), None),
    }
}

/// Runs a scenario's two sides under holdup.
fn both(stage: &Stage, scenario: &Scenario, args: &Args) -> anyhow::Result<(Observed, Observed)> {
    let mut sides = Vec::new();
    for side in [Side::Stall, Side::Healthy] {
        let outcome = stage
            .run(scenario, side)
            .with_context(|| format!("run the {} side", side.word()))?;
        if let Some(keep) = &args.keep {
            outcome.keep(keep, scenario, side, "traced")?;
        }
        let Outcome {
            report,
            truth,
            machine_queued_ns,
            stderr,
            ..
        } = outcome;
        if args.verbose {
            eprint!("{stderr}");
        }
        sides.push(Observed {
            report: report.context("holdup wrote no report")?,
            truth,
            machine_queued_ns,
        });
    }
    let twin = sides.pop().expect("two sides were pushed");
    let stall = sides.pop().expect("two sides were pushed");
    Ok((stall, twin))
}

/// Runs every scenario without holdup: whether its trouble is real by its own measure, and its twin free of it.
fn show_truths(stage: &Stage, scenarios: &[Scenario], verbose: bool) -> anyhow::Result<()> {
    let mut unreal = Vec::new();
    println!(
        "{:<32} {:>10} {:>7} {:>10} {:>7}",
        "scenario", "stall ms", "share", "twin ms", "share"
    );
    for scenario in scenarios {
        let mut truths = Vec::new();
        for side in [Side::Stall, Side::Healthy] {
            let outcome = stage.run(scenario, side).with_context(|| scenario.name.clone())?;
            if verbose {
                eprint!("{} of {}: {}", side.word(), scenario.name, outcome.stderr);
            }
            truths.push(outcome.truth);
        }
        let (stall, twin) = (truths[0], truths[1]);
        let ms = |ns: u64| ns / 1_000_000;
        println!(
            "{:<32} {:>10} {:>6.1}% {:>10} {:>6.1}%",
            scenario.name,
            ms(stall.waited_ns),
            100.0 * stall.share(),
            ms(twin.waited_ns),
            100.0 * twin.share()
        );
        if stall.trouble() < REAL || twin.waited_ns > stall.waited_ns / 2 {
            unreal.push(scenario.name.as_str());
        }
    }
    if !unreal.is_empty() {
        bail!("no real stall beside a healthy twin: {}", unreal.join(", "));
    }
    Ok(())
}

/// Installs what the scenarios need and what is missing of it.
pub(crate) fn install_packages(scenarios: &[Scenario]) -> anyhow::Result<()> {
    // Leaked: lists of packages are otherwise constants, and this happens once.
    let names: Vec<&'static str> = packages(scenarios)
        .into_iter()
        .map(|name| &*name.leak())
        .collect();
    setup::install(&[Packages {
        purpose: "make stalls",
        names: names.leak(),
    }])
}
