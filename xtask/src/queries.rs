//! `cargo xtask queries`: the queries of `docs/recordings.md` in the engines that they are for, on a recording made now.
//!
//! In: the page and holdup. Out: a line a query, and how many agreed with what `holdup show` says of the same recording. DuckDB
//! and pandas (with pyarrow) come from PyPI into a folder under the target directory, at the versions named here, because Debian 12
//! has no engine that reads Parquet. So this is a chore of its own, and `cargo xtask test` does without the network's help.

use crate::{process, setup, workspace};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The engines.
const ENGINES: &[&str] = &[
    "duckdb==2.0.0",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "pytz==2026.6",
];

/// Which holdup.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// This binary instead of the checkout's own release build
    #[arg(long, value_name = "BIN")]
    holdup: Option<PathBuf>,
}

/// Something to record: waits of three kinds, in two programs.
const SCRIPT: &str = "sleep 0.1; dd if=/dev/zero of=\"$0\" bs=4k count=4 oflag=dsync 2>&1; sleep 0.05";

/// Runs them.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let python = setup::python("engines", ENGINES)?;
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let folder = workspace::scratch("queries")?;
    let recordings = folder.join("recordings");
    std::fs::create_dir_all(&recordings).context("make a folder for the recording")?;
    let file = recordings.join("run.parquet");
    process::run(
        Command::new(&holdup)
            .args(["run", "-q", "-o"])
            .arg(&file)
            .args(["--", "sh", "-c", SCRIPT])
            .arg(folder.join("written"))
            .stdout(Stdio::null()),
    )?;
    let report = folder.join("report.json");
    process::run(
        Command::new(&holdup)
            .args(["show", "-q", "--json"])
            .arg(&report)
            .arg(&file)
            .stdout(Stdio::null()),
    )?;
    let status = Command::new(python)
        .args(["-c", include_str!("queries/run.py")])
        .arg(workspace::root().join("docs/recordings.md"))
        .arg(&recordings)
        .arg(&report)
        .status()
        .context("start python3")?;
    match status.success() {
        true => Ok(()),
        false => bail!("a query does not agree with `holdup show`"),
    }
}
