//! `cargo xtask replay [NAME…]`: judges recorded events again and says what changed.
//!
//! In: the corpus in `replay/`, each case the events of a real observation, and the report that was made of them. Out: what is different
//! now, findings first, then figures, then words; an error where anything is. It needs no root, no BPF, no clang: what does the work is
//! a program that knows nothing of collection (`crates/holdup-replay`).

use crate::{process, workspace};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::Command;

/// What to judge.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only cases whose name contains one of these
    names: Vec<String>,
    /// Another folder than the checkout's, such as one that `cargo xtask scenarios --keep` has filled
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Keep what is said now as what is expected
    #[arg(long)]
    bless: bool,
    /// Take the cases that `cargo xtask scenarios --keep FOLDER` has kept there into the corpus first
    #[arg(long, value_name = "FOLDER", requires = "bless")]
    take: Option<PathBuf>,
    /// Print the report of each case too, as a terminal shows it
    #[arg(long)]
    show: bool,
    /// The program that judges, instead of building it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Builds the program and runs it.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut command = match &args.program {
        Some(program) => Command::new(program),
        None => {
            let mut cargo = workspace::cargo();
            cargo.args(["run", "--quiet", "--release", "--package", "holdup-replay", "--"]);
            cargo
        }
    };
    let corpus = args
        .corpus
        .clone()
        .unwrap_or_else(|| workspace::root().join("replay"));
    command.arg(std::path::absolute(corpus)?).args(&args.names);
    if let Some(from) = &args.take {
        command.arg("--take").arg(std::path::absolute(from)?);
        for (from, to) in of_this_machine() {
            command.arg(format!("--rename={from}={to}"));
        }
    }
    command.args(args.bless.then_some("--bless"));
    command.args(args.show.then_some("--show"));
    let status = command
        .status()
        .with_context(|| format!("start {}", process::words(&command)))?;
    if !status.success() {
        bail!("the replay is not as expected; if that is wanted: cargo xtask replay --bless");
    }
    Ok(())
}

/// What is another one on each machine, with what stands for it in the corpus.
fn of_this_machine() -> Vec<(String, &'static str)> {
    let mut words = vec![(workspace::root().display().to_string(), "/src/holdup")];
    // The build's name, which follows the version: 6.18.44-NAME.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if let Some((_, build)) = release.trim().split_once('-') {
        words.push((format!("-{build}"), ""));
    }
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let paths = cgroups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut paths: Vec<String> = paths.filter(|path| path.len() > 1).map(str::to_owned).collect();
    // Longer ones first: they may begin with a shorter one.
    paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
    words.extend(paths.into_iter().map(|path| (path, "/session.scope")));
    words
}
