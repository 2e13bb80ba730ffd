//! `cargo xtask predictions`: what `holdup run --predict` says a program takes without a wait, beside what it takes when that wait
//! is really taken away.
//!
//! In: the programs of `predictions/`, and holdup. Out: a table of medians, and how many are within the bar. In each round a program runs as
//! it is with nobody watching, as it is under holdup, and without the wait with nobody watching, in turn.

mod judge;

use crate::scenarios::programs::compile_into;
use crate::{setup, workspace};
use anyhow::{Context, bail};
use judge::{Judged, Round, judge};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often each program runs each way
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
    /// Write the reports to this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Only these programs
    programs: Vec<String>,
}

/// `predictions/truth.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Truth {
    program: Vec<Program>,
}

/// A program, and the cause that is taken away.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    cause: String,
    /// Whether anything is gained.
    #[serde(default = "yes")]
    gains: bool,
}

fn yes() -> bool {
    true
}

/// The part of a report that counts here.
#[derive(Debug, Deserialize)]
struct Report {
    subject: Subject,
    #[serde(default)]
    prediction: Vec<Prediction>,
}

#[derive(Debug, Deserialize)]
struct Subject {
    wall_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Prediction {
    without: String,
    factor: f64,
    elapsed_ns: u64,
}

/// Stands in holdup's place where nobody watches: it runs the command and writes how long that took, as a report would. Bash's clock
/// costs no process.
const CLOCK: &str = r#"#!/bin/bash
report=$3
while [ "$1" != -- ]; do shift; done
shift
before=${EPOCHREALTIME/[^0-9]/}
"$@"
status=$?
after=${EPOCHREALTIME/[^0-9]/}
printf '{"subject": {"wall_ns": %s000}}' $((after - before)) >"$report"
exit $status
"#;

/// Seconds after which a run is ended.
const DEADLINE_SECONDS: &str = "60";

/// Measures and prints the table.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "predictions are held against real disks and CPUs: run this as root (sudo -E cargo xtask predictions)"
        );
    }
    setup::install(&[setup::BUILD, setup::TEST])?;
    let folder = workspace::root().join("predictions");
    let text = std::fs::read_to_string(folder.join("truth.toml")).context("read predictions/truth.toml")?;
    let truth: Truth = toml::from_str(&text).context("understand predictions/truth.toml")?;
    let wanted = |one: &&Program| args.programs.is_empty() || args.programs.contains(&one.name);
    let programs: Vec<&Program> = truth.program.iter().filter(wanted).collect();
    let scratch = workspace::scratch("predictions")?;
    let stage = Stage {
        programs: scratch.join("programs"),
        clock: script(&scratch.join("clock"), CLOCK)?,
        holdup: script(
            &scratch.join("holdup"),
            &format!(
                "#!/bin/sh\nshift\nexec {} run --predict \"$@\"\n",
                workspace::holdup(args.holdup.as_deref())?.display()
            ),
        )?,
        folder,
    };
    for one in &programs {
        compile_into(&stage.folder.join(&one.name), &stage.folder, &stage.programs)?;
    }
    println!(
        "{:<24} {:<15} {:>8} {:>9} {:>9} {:>9} {:>6}",
        "program", "without", "took", "predicted", "measured", "off by", ""
    );
    let mut all = Vec::new();
    for one in programs {
        let mut rounds = Vec::new();
        for round in 0..args.rounds {
            let kept = args
                .keep
                .as_ref()
                .map(|keep| keep.join(format!("{}-{round}.json", one.name)));
            rounds.push(stage.round(one, kept.as_deref())?);
        }
        let judged = judge(&rounds, one.gains);
        println!("{}", row(one, &judged));
        all.push((one.gains, judged));
    }
    println!("\n{}", sum(&all));
    Ok(())
}

fn row(program: &Program, judged: &Judged) -> String {
    let seconds = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.3} s", ns as f64 / 1e9));
    format!(
        "{:<24} {:<15} {:>8} {:>9} {:>9} {:>9} {:>6}",
        program.name,
        program.cause,
        seconds(Some(judged.took)),
        seconds(judged.predicted),
        seconds(Some(judged.measured)),
        judged
            .off
            .map_or("-".to_owned(), |off| format!("{:.1} %", 100.0 * off)),
        if judged.right { "" } else { "WRONG" }
    )
}

fn sum(all: &[(bool, Judged)]) -> String {
    let right = |gains: bool| {
        let of = all.iter().filter(|(one, _)| *one == gains);
        let right = of.clone().filter(|(_, judged)| judged.right).count();
        format!("{right} of {}", of.count())
    };
    format!(
        "off by: |predicted - measured| as a share of the measured saving, at most {:.0} %: {}.\n\
         Where nothing is to be gained: the predicted saving as a share of the elapsed time, at most {:.0} %: {}.",
        100.0 * judge::AT_MOST,
        right(true),
        100.0 * judge::NOTHING,
        right(false)
    )
}

/// A script of this name.
fn script(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("make {} a program", path.display()))?;
    Ok(path.to_owned())
}

/// Where things are.
struct Stage {
    folder: PathBuf,
    programs: PathBuf,
    clock: PathBuf,
    holdup: PathBuf,
}

impl Stage {
    fn round(&self, program: &Program, keep: Option<&Path>) -> anyhow::Result<Round> {
        let plain = self.once(program, "stall", &self.clock, None)?;
        let observed = self.once(program, "stall", &self.holdup, keep)?;
        let without = self.once(program, "healthy", &self.clock, None)?;
        let predicted = observed
            .prediction
            .iter()
            .find(|one| one.without == program.cause && one.factor == 0.0);
        Ok(Round {
            took: plain.subject.wall_ns,
            observed: observed.subject.wall_ns,
            predicted: predicted.map(|one| one.elapsed_ns),
            measured: without.subject.wall_ns,
        })
    }

    /// One run on the stage of the scenarios.
    fn once(&self, program: &Program, side: &str, by: &Path, keep: Option<&Path>) -> anyhow::Result<Report> {
        let work = tempfile::Builder::new()
            .prefix("holdup-prediction-")
            .tempdir()
            .context("make a directory to work in")?;
        let report = work.path().join("report.json");
        let stderr = work.path().join("stderr");
        let log = std::fs::File::create(&stderr).context("make a file for stderr")?;
        let status = Command::new("timeout")
            .args(["--kill-after=5", DEADLINE_SECONDS, "bash"])
            .arg(workspace::root().join("scenarios/stage/stage.sh"))
            .arg(self.folder.join(&program.name))
            .arg(side)
            .env("HOLDUP", by)
            .env("PROGRAMS", &self.programs)
            .env("STAGE", work.path())
            .env("HOLDUP_REPORT", &report)
            .env("HOLDUP_TRUTH", work.path().join("truth"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .status()
            .context("start the stage")?;
        if !status.success() {
            let said = std::fs::read_to_string(&stderr).unwrap_or_default();
            bail!("{} ended with {status}:\n{said}", program.name);
        }
        let json = std::fs::read_to_string(&report).context("read the report; none was written")?;
        if let Some(keep) = keep {
            std::fs::write(keep, &json).with_context(|| format!("write {}", keep.display()))?;
        }
        serde_json::from_str(&json).context("understand the report")
    }
}
