//! `cargo xtask bench stacks`: holdup's stacks of blocked threads beside gdb's.
//!
//! Each program is started under `holdup run` and blocks. When all its threads sleep, the command that holdup
//! observes ends and leaves them asleep, so holdup reads the stacks of the waits that are still open, and
//! prints. Then gdb attaches to the same threads, in the same waits. gdb is the judge, not the model: where it
//! has lost its way (no code is mapped where it says), the comparison of that thread ends.

mod compare;
mod programs;
mod stand;

use crate::guest::package;
use crate::process;
use crate::setup;
use crate::workspace;
use anyhow::{Context, bail};
use compare::{Agreement, GdbThread, OurFrame, compare};
use programs::{PACKAGES, PROGRAMS, Program, UNPACKED};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stand::Stand;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What gdb runs.
const FRAMES: &str = include_str!("stacks/frames.py");

/// Which programs to compare.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these
    #[arg(value_name = "PROGRAM")]
    names: Vec<String>,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
    /// Keep reports and gdb's frames in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// The part of a report that is compared.
#[derive(Debug, Deserialize)]
struct Report {
    waits: Vec<Wait>,
}

#[derive(Debug, Deserialize)]
struct Wait {
    open: bool,
    asker: Asker,
}

#[derive(Debug, Deserialize)]
struct Asker {
    pid: u32,
    tid: u32,
    stack: Vec<OurFrame>,
}

/// A program's threads, added up.
#[derive(Debug, Default)]
struct Row {
    threads: usize,
    sum: Agreement,
}

/// Compares and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    setup::install(&[PACKAGES])?;
    if Command::new("go")
        .arg("version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        setup::install(&[setup::Packages {
            purpose: "compile a Go program",
            names: &["golang-go"],
        }])?;
    }
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let root = workspace::scratch("stacks")?;
    for unpacked in UNPACKED {
        package::Lists::of_this_machine().unpack(unpacked, &root)?;
    }
    if let Some(unknown) = args
        .names
        .iter()
        .find(|name| !PROGRAMS.iter().any(|one| one.name == **name))
    {
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        bail!("no program {unknown:?}; there are: {}", known.join(", "));
    }
    let chosen =
        |program: &&Program| args.names.is_empty() || args.names.iter().any(|name| name == program.name);
    println!(
        "{:<22}{:>8}{:>8}{:>8}{:>8}  first disagreement",
        "program", "threads", "frames", "agree", "named"
    );
    let mut total = Row::default();
    for program in PROGRAMS.iter().filter(chosen) {
        match one(&holdup, &root, program, args.keep.as_deref()) {
            Ok(row) => {
                print_row(program.name, &row);
                total.add(row.sum, row.threads);
            }
            Err(error) => println!("{:<22}failed: {error:#}", program.name),
        }
    }
    total.sum.first = None;
    print_row("all", &total);
    Ok(())
}

impl Row {
    fn add(&mut self, agreement: Agreement, threads: usize) {
        self.threads += threads;
        self.sum.frames += agreement.frames;
        self.sum.agree += agreement.agree;
        self.sum.named += agreement.named;
        if self.sum.first.is_none() {
            self.sum.first = agreement.first;
        }
    }
}

fn print_row(name: &str, row: &Row) {
    let share = |part: usize| format!("{:.1} %", 100.0 * part as f64 / row.sum.frames.max(1) as f64);
    println!(
        "{name:<22}{:>8}{:>8}{:>8}{:>8}  {}",
        row.threads,
        row.sum.frames,
        share(row.sum.agree),
        share(row.sum.named),
        row.sum.first.as_deref().unwrap_or("")
    );
}

/// Starts, observes and compares one program.
fn one(holdup: &Path, root: &Path, program: &Program, keep: Option<&Path>) -> anyhow::Result<Row> {
    let stand = Stand::new(root, program)?;
    let (report, pids) = stand.observe(holdup, program)?;
    let frames = stand.folder().join("gdb.json");
    gdb(&pids.iter().copied().collect::<Vec<_>>(), &frames)?;
    if let Some(keep) = keep {
        std::fs::create_dir_all(keep).with_context(|| format!("make {}", keep.display()))?;
        for (from, what) in [(&report, "holdup"), (&frames, "gdb")] {
            let to = keep.join(format!("{}.{what}.json", program.name.replace([' ', ','], "-")));
            std::fs::copy(from, &to).with_context(|| format!("write {}", to.display()))?;
        }
    }
    let report: Report = read(&report)?;
    let threads: Vec<GdbThread> = read(&frames)?;
    let mut ours: BTreeMap<(u32, u32), Vec<OurFrame>> = BTreeMap::new();
    for wait in report.waits.into_iter().filter(|wait| wait.open) {
        let stack = ours.entry((wait.asker.pid, wait.asker.tid)).or_default();
        // A row without a stack stands for waits of the same kind that were not looked at.
        if stack.is_empty() {
            *stack = wait.asker.stack;
        }
    }
    let mut row = Row::default();
    for thread in &threads {
        let stack = ours.remove(&(thread.pid, thread.tid)).unwrap_or_default();
        row.add(compare(&thread.frames, &stack), 1);
    }
    Ok(row)
}

fn gdb(pids: &[u32], out: &Path) -> anyhow::Result<()> {
    let script = out.with_extension("py");
    std::fs::write(
        &script,
        format!("PIDS = {pids:?}\nOUT = {:?}\n{FRAMES}", out.display().to_string()),
    )
    .with_context(|| format!("write {}", script.display()))?;
    let mut command = Command::new("gdb");
    command
        .args(["-nx", "-q", "-batch"])
        .args(["-iex", "set debuginfod enabled off", "-iex", "set auto-load off"])
        .args([
            "-ex",
            "set pagination off",
            "-ex",
            "set backtrace past-main on",
            "-x",
        ])
        .arg(script)
        .stdin(Stdio::null());
    let output = command.output().context("start gdb")?;
    if !output.status.success() || !out.exists() {
        bail!(
            "{} failed: {}",
            process::words(&command),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(())
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("understand {}", path.display()))
}
