//! Who else compares two files of collapsed stacks, got by their own package managers into a folder under the target directory.
//!
//! In: nothing, or a path that the user has. Out: how each is started, or why it is not there.

use crate::{process, workspace};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// inferno's version, and its program.
const INFERNO: &str = "0.12.8";
const DIFF_FOLDED: &str = "inferno-diff-folded";

/// The converter of async-profiler: 4.4 is the first that compares.
const CONVERTER: &str = "tools.profiler:jfr-converter:4.4";
const JAR: &str = "jfr-converter-4.4.jar";

/// A peer: its name and how it is started, without the files; or why it is not there.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) words: Result<Vec<String>, String>,
    /// Whether it takes a file to write behind the two that it reads.
    pub(super) writes: bool,
}

/// All of them. `converter`: one that is here already.
pub(super) fn all(converter: Option<&Path>) -> anyhow::Result<Vec<Peer>> {
    let folder = workspace::scratch("peers")?;
    let converter = match converter {
        Some(path) => Ok(path.to_owned()),
        None => fetched(&folder),
    };
    let java = |jar: PathBuf| {
        let jar = jar.to_string_lossy().into_owned();
        ["java".to_owned(), "-jar".to_owned(), jar, "--diff".to_owned()].to_vec()
    };
    Ok(vec![
        Peer {
            name: DIFF_FOLDED,
            words: built(&folder).map(|program| vec![program.to_string_lossy().into_owned()]),
            writes: false,
        },
        Peer {
            name: "jfrconv --diff",
            words: converter.map(java),
            writes: true,
        },
    ])
}

/// inferno's program, built once.
fn built(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("bin").join(DIFF_FOLDED);
    if program.exists() {
        return Ok(program);
    }
    let mut cargo = workspace::cargo();
    cargo
        .args(["install", "--quiet", "--locked", "inferno", "--version", INFERNO])
        .args(["--bin", DIFF_FOLDED, "--root"])
        .arg(folder);
    match process::run(&mut cargo) {
        Ok(()) => Ok(program),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// async-profiler's converter, fetched once.
fn fetched(folder: &Path) -> Result<PathBuf, String> {
    let jar = folder.join(JAR);
    if jar.exists() {
        return Ok(jar);
    }
    // What it says of a failure are twenty lines on stdout.
    let mut maven = Command::new("mvn");
    maven
        .args(["-q", "-B", "dependency:copy"])
        .arg(format!("-Dartifact={CONVERTER}"))
        .arg(format!("-DoutputDirectory={}", folder.display()))
        .stdout(Stdio::null());
    let tried =
        process::run(&mut maven).and_then(|()| jar.metadata().map(drop).context("it fetched nothing"));
    tried
        .map(|()| jar)
        .map_err(|error| format!("{error:#}; --converter JAR names one"))
}
