//! `holdup fleet …`: another program, found as cargo finds its subcommands.
//!
//! In: arguments, which are not looked at. Out: `holdup-fleet` in the place of this process; it learns which holdup started it, because it has
//! each host judged by that one.

use anyhow::bail;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The program's name.
const NAME: &str = "holdup-fleet";

/// The variable by which it learns which holdup started it.
const ITSELF: &str = "HOLDUP";

/// Becomes that program.
///
/// # Errors
/// When there is none, or it can't be started.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<u8> {
    let program = program()?;
    let error = command(&program).args(arguments).exec();
    bail!("cannot start {program:?}: {error}")
}

/// The program: beside this one, else in PATH.
///
/// # Errors
/// When there is none: how to get it.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let itself = std::env::current_exe().ok();
    let beside = itself.iter().map(|itself| itself.with_file_name(NAME));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An empty entry is the current directory, which anybody may have chosen.
    let in_path = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(NAME));
    match beside.chain(in_path).find(|program| program.is_file()) {
        Some(program) => Ok(program),
        None => bail!(
            "this command needs the program {NAME}, which is not installed: build it with `cargo build --release -p {NAME}` and copy \
             it to the directory of holdup or to a directory in PATH"
        ),
    }
}

/// How it is started.
pub(crate) fn command(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    if let Ok(itself) = std::env::current_exe() {
        command.env(ITSELF, itself);
    }
    command
}
