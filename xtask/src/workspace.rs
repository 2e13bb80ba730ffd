//! Where things are in this checkout, and building holdup.
//!
//! In: nothing. Out: paths under the workspace and under its target directory, and holdup's release binary.

use crate::{process, setup};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask's manifest is in a folder of the workspace")
        .to_owned()
}

/// The target directory that this very program was built into, so that `CARGO_TARGET_DIR` needs no parsing.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("the path of this program")?;
    let target = program
        .ancestors()
        .nth(2)
        .context("xtask must run from a target directory")?;
    Ok(target.to_owned())
}

/// A folder of this chore's own under the target directory, made if need be.
pub(crate) fn scratch(name: &str) -> anyhow::Result<PathBuf> {
    let folder = target()?.join(name);
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// The cargo that started us, run in the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// This program again, for a chore that runs as a step of another.
pub(crate) fn xtask() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("the path of this program")?);
    command.current_dir(root());
    Ok(command)
}

/// holdup as a user has it: the given binary, or this checkout's, built if need be.
pub(crate) fn holdup(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    match given {
        Some(binary) => std::path::absolute(binary).with_context(|| format!("find {}", binary.display())),
        None => {
            setup::install(&[setup::BUILD])?;
            process::run(cargo().args(["build", "--release", "--package", "holdup"]))?;
            Ok(target()?.join("release/holdup"))
        }
    }
}

/// holdup for a first verdict: this checkout's, compiled as quickly as it can be.
pub(crate) fn quick_holdup() -> anyhow::Result<PathBuf> {
    setup::install(&[setup::BUILD])?;
    process::run(cargo().args(["build", "--profile", "demo", "--package", "holdup"]))?;
    Ok(target()?.join("demo/holdup"))
}

/// The kernel's version and the processor's class, for a page of figures: `Linux 6.18.1, Intel(R) Xeon(R) …`.
pub(crate) fn machine() -> anyhow::Result<String> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").context("read what processor this is")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model
        .and_then(|rest| rest.split_once(": "))
        .map(|(_, model)| model.trim());
    Ok(format!(
        "Linux {}, {}",
        kernel()?,
        model.unwrap_or("unknown processor")
    ))
}

/// The kernel's version, without what its builder adds to it.
pub(crate) fn kernel() -> anyhow::Result<String> {
    let release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").context("read the kernel's release")?;
    Ok(release.trim().split('-').next().unwrap_or_default().to_owned())
}
