//! Which holdup the steps after the tests judge: what the tests were built with, or what is released.
//!
//! In: which. Out: the builds that make it, and steps that judge it. What they judge is a copy without debug information: it goes into the memory of guests,
//! and is read anew at each of some thousand starts.

use super::{Step, TESTS, verb};
use crate::{process, workspace};
use anyhow::Context;
use std::path::PathBuf;
use std::process::Command;

/// Both in one command: alone, the replay would get other features of its dependencies, and all would be compiled twice.
const RELEASED: [&str; 6] = [
    "build",
    "--release",
    "--package",
    "holdup",
    "--package",
    "holdup-replay",
];

/// The same as the tests have it: with a test among what is built, dependencies have the features that they have in tests.
const AS_TESTED: [&str; 8] = [
    "build",
    "--workspace",
    "--bin",
    "holdup",
    "--bin",
    "holdup-replay",
    "--test",
    "tidy",
];

/// A build of holdup.
#[derive(Debug)]
pub(super) struct Judged {
    released: bool,
    /// What cargo makes.
    built: PathBuf,
    /// The copy of it that is judged.
    holdup: PathBuf,
    /// The program of the replay.
    pub(super) replay: PathBuf,
}

impl Judged {
    /// A build that is to be made.
    pub(super) fn new(released: bool) -> anyhow::Result<Judged> {
        let folder = workspace::target()?.join(if released { "release" } else { "debug" });
        Ok(Judged {
            released,
            built: folder.join("holdup"),
            holdup: workspace::scratch("test")?.join("holdup"),
            replay: folder.join("holdup-replay"),
        })
    }

    /// The steps that make it, and the tests with it.
    pub(super) fn builds(&self) -> Vec<Step> {
        let mut tests = workspace::cargo();
        tests.args(TESTS).arg("--no-run");
        let mut programs = workspace::cargo();
        match self.released {
            true => programs.args(RELEASED),
            false => programs.args(AS_TESTED),
        };
        vec![("build tests", tests), ("build", programs)]
    }

    /// Makes the copy that is judged.
    pub(super) fn prepare(&self) -> anyhow::Result<()> {
        let mut strip = Command::new("strip");
        strip
            .arg("--strip-debug")
            .arg("-o")
            .arg(&self.holdup)
            .arg(&self.built);
        process::run(&mut strip).context("copy holdup without its debug information")
    }

    /// A step that judges it.
    pub(super) fn by(&self, name: &'static str) -> anyhow::Result<Step> {
        let mut step = verb(name)?;
        step.1.arg("--holdup").arg(&self.holdup);
        Ok(step)
    }
}
