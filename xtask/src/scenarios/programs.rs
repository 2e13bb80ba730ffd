//! Compiles the C programs of the stage and of the scenarios.
//!
//! In: `scenarios/stage/*.c` and `scenarios/NAME/*.c`. Out: one program each in a folder under the target
//! directory, named after its file; `truth.c` becomes the library `truth.so`. What is newer than its source
//! and than the stage's headers is left as it is.

use super::scenario::Scenario;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The library that measures programs that are not ours.
const TRUTH_LIBRARY: &str = "truth";

/// The stage's FUSE file system, and the library that it needs: compiled for scenarios that need that too.
const FUSE: (&str, &str) = ("slowfs", "fuse3");

/// Compiles what the scenarios need into `into`.
pub(crate) fn compile(stage: &Path, scenarios: &[Scenario], into: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("make {}", into.display()))?;
    let headers = newest(&sources(stage, "h")?)?;
    let fuse = scenarios
        .iter()
        .any(|scenario| scenario.about.link.iter().any(|library| library == FUSE.1));
    for source in sources(stage, "c")? {
        let (program, arguments) = match stem(&source) {
            name if name == TRUTH_LIBRARY => (format!("{name}.so"), words("-shared -fPIC")),
            name if name == FUSE.0 && !fuse => continue,
            name if name == FUSE.0 => (name, flags(&[FUSE.1.to_owned()])?),
            name => (name, Vec::new()),
        };
        cc(&source, &into.join(program), stage, headers, &arguments)?;
    }
    for scenario in scenarios {
        for source in sources(&scenario.folder, "c")? {
            let flags = flags(&scenario.about.link)?;
            cc(&source, &into.join(stem(&source)), stage, headers, &flags)?;
        }
    }
    Ok(())
}

/// Compiles the C programs of one folder, whose headers are in another.
pub(crate) fn compile_into(folder: &Path, headers: &Path, into: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("make {}", into.display()))?;
    let newest = newest(&sources(headers, "h")?)?;
    for source in sources(folder, "c")? {
        cc(&source, &into.join(stem(&source)), headers, newest, &[])?;
    }
    Ok(())
}

/// Compiles one program, unless it is there and newer than what it is made of. `-O2` and no frame pointers,
/// as distributions build theirs.
fn cc(
    source: &Path,
    program: &Path,
    stage: &Path,
    headers: SystemTime,
    more: &[OsString],
) -> anyhow::Result<()> {
    let made_of = newest(&[source.to_owned()])?.max(headers);
    if newest(&[program.to_owned()]).is_ok_and(|made| made > made_of) {
        return Ok(());
    }
    let status = Command::new("cc")
        .args([
            "-std=gnu11",
            "-O2",
            "-fomit-frame-pointer",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-I",
        ])
        .arg(stage)
        .arg("-o")
        .arg(program)
        .arg(source)
        .args(more)
        .status()
        .context("start cc; the package gcc has it")?;
    if !status.success() {
        bail!("cc does not compile {}", source.display());
    }
    Ok(())
}

/// The options with which a compiler uses these libraries, by pkg-config's names for them.
fn flags(libraries: &[String]) -> anyhow::Result<Vec<OsString>> {
    if libraries.is_empty() {
        return Ok(Vec::new());
    }
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs"])
        .args(libraries)
        .output()
        .context("start pkg-config; the package of that name has it")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(words(&String::from_utf8_lossy(&output.stdout)))
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn sources(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("read {}", folder.display()))?
            .path();
        if path.extension().is_some_and(|one| one == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// When the newest of these files was written; the beginning of time for none.
fn newest(files: &[PathBuf]) -> anyhow::Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for file in files {
        let written = std::fs::metadata(file).and_then(|meta| meta.modified());
        newest = newest.max(written.with_context(|| format!("look at {}", file.display()))?);
    }
    Ok(newest)
}
