//! `cargo xtask scenarios [NAME…]`: stalls made for real, and what holdup says of them.
//!
//! In: the folders of `scenarios/`, each a real stall with a healthy twin that differs in one thing. Out: a
//! table: right cause, resource, asker and holder, holdup's share beside the one that the workload measured of
//! itself, false alarms. Anything wrong is an error.

mod beside;
pub(crate) mod jdk;
mod judging;
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
use stage::{Ordinary, Side, Stage};
use std::path::PathBuf;

/// Share of a stall's time (without what it queued for a CPU) that its trouble must have, by its own measure,
/// to be one: below a third there would be room for another main cause.
const REAL: f64 = 0.33;

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

    /// Run nothing, and make that page of what an earlier run printed, which may be all that `cargo xtask test` said
    #[arg(long, value_name = "FILE", requires = "table")]
    printed: Option<PathBuf>,

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
    if let (Some(printed), Some(page)) = (&args.printed, &args.table) {
        let text = std::fs::read_to_string(printed).with_context(|| format!("read {}", printed.display()))?;
        let made = table::page_of_printed(&text)
            .with_context(|| format!("{} has no whole table of scenarios", printed.display()))?;
        return std::fs::write(page, made).with_context(|| format!("write {}", page.display()));
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
        judging::judge(&stage, &scenarios, args)
    }
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
