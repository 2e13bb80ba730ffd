//! `holdup fleet sql`: another program, found as cargo finds its subcommands.
//!
//! In: arguments, which are not looked at. Out: `holdup-fleet-sql` in the place of this process. The engine of queries takes minutes to build, so it is a
//! program that is built by those who want it.

use crate::Usage;
use crate::cli::Rest;
use anyhow::bail;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The program's name.
const NAME: &str = "holdup-fleet-sql";

/// How it is built.
const BUILD: &str =
    "cargo build --release --locked --manifest-path fleet-sql/Cargo.toml --target-dir target/fleet-sql";

/// Becomes that program.
///
/// # Errors
/// When there is none, or it can't be started.
pub(crate) fn run(arguments: &Rest) -> anyhow::Result<u8> {
    let program = program()?;
    let error = Command::new(&program).args(&arguments.rest).exec();
    bail!("cannot start {program:?}: {error}")
}

/// The program: beside this one, else in PATH.
fn program() -> anyhow::Result<PathBuf> {
    let itself = std::env::current_exe().ok();
    let beside = itself.iter().map(|itself| itself.with_file_name(NAME));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An empty entry is the current directory, which anybody may have chosen.
    let in_path = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(NAME));
    match beside.chain(in_path).find(|program| program.is_file()) {
        Some(program) => Ok(program),
        None => bail!(Usage(format!(
            "this command needs the program {NAME}, which is not installed; build it in holdup's sources with `{BUILD}` and put it into a directory \
             of PATH; docs/fleet.md says how DuckDB, ClickHouse, Spark and Trino query the same files"
        ))),
    }
}
