//! `cargo xtask fleet-engines`: the tables and queries of `docs/fleet.md` in the engines that they are for, over one store.
//!
//! In: the page, and a store of hosts that never were (an example of `holdup-fleet`). Out: a line an engine, and whether its sums are, to the
//! nanosecond, those of `holdup fleet sql`. The engines come from PyPI into a folder below the target directory, at the versions named here: Spark with a
//! master and two workers as processes of their own, DuckDB, ClickHouse as a library, and moto as the S3 server, because it is one package
//! and speaks all that these engines ask of S3 (listing, ranges, multipart). Spark's own reader of S3 is a jar of 690 MB that Spark fetches the
//! first time. So this is a chore of its own, and `cargo xtask test` does without.

use crate::{process, setup, workspace};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engines and the server.
const ENGINES: &[&str] = &[
    "chdb==4.4.0",
    "duckdb==2.0.1",
    "moto[server]==5.2.5",
    "pyspark==4.3.0",
];

/// What Spark reads S3 with; of the Hadoop version that the package has.
const SPARK_PACKAGES: &str = "org.apache.hadoop:hadoop-aws:3.5.0";

/// What they need.
const PACKAGES: setup::Packages = setup::Packages {
    purpose: "run the engines",
    names: &["python3", "python3-venv", "openjdk-17-jre-headless"],
};

/// How large the store is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Hosts
    #[arg(long, value_name = "N", default_value_t = 30)]
    hosts: u32,
    /// Minutes of each, an object a minute
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u32,
    /// Waits in each object; a busy machine's recorder writes about 400
    #[arg(long, value_name = "N", default_value_t = 400)]
    rows: u32,
    /// This program instead of the checkout's own release build
    #[arg(long, value_name = "BIN")]
    fleet_sql: Option<PathBuf>,
}

/// Makes the store and asks every engine.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    setup::install(&[PACKAGES])?;
    let python = setup::python("fleet-engines", ENGINES)?;
    let fleet_sql = fleet_sql(args.fleet_sql.as_deref())?;
    let (store, sum) = fill(args)?;
    let status = Command::new(python)
        .args(["-c", include_str!("fleet_engines/run.py")])
        .arg(workspace::root().join("docs/fleet.md"))
        .arg(&store)
        .arg(sum)
        .arg(fleet_sql)
        .arg(workspace::scratch("fleet-engines-work")?)
        .env("SPARK_PACKAGES", SPARK_PACKAGES)
        .status()
        .context("start python3")?;
    match status.success() {
        true => Ok(()),
        false => bail!("an engine does not agree with `holdup fleet sql`"),
    }
}

/// The program of `holdup fleet sql`, of a workspace of its own.
fn fleet_sql(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(program) = given {
        return std::path::absolute(program).with_context(|| format!("find {}", program.display()));
    }
    let target = workspace::scratch("fleet-sql")?;
    let mut build = workspace::cargo();
    build.args([
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "fleet-sql/Cargo.toml",
        "--target-dir",
    ]);
    process::run(build.arg(&target))?;
    Ok(target.join("release/holdup-fleet-sql"))
}

/// The store, made anew, and what its waits add up to, nanoseconds.
fn fill(args: &Args) -> anyhow::Result<(PathBuf, String)> {
    let store = workspace::scratch("fleet-store")?;
    std::fs::remove_dir_all(&store).with_context(|| format!("empty {}", store.display()))?;
    let mut example = workspace::cargo();
    example.args([
        "run",
        "--quiet",
        "--package",
        "holdup-fleet",
        "--example",
        "synthetic_store",
        "--",
    ]);
    let numbers = [args.hosts, args.minutes, args.rows].map(|number| number.to_string());
    let sum = process::output(example.arg(&store).args(numbers))?;
    Ok((store, sum.trim().to_owned()))
}
