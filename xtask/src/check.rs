//! `cargo xtask check`: what needs no privilege to run, quickest first.

use crate::process::minutes;
use crate::{generate, process, setup, workspace};
use std::time::Instant;

/// The steps, as arguments to cargo. The tests are those of this package: `tidy` is the shape of the workspace, `links` its pages, the unit
/// tests read every scenario's file. `dialect`, `words` and `vocabulary` hold the rules for texts, for decisions on texts and for tables of
/// the kernel's names. Each step names the whole workspace, as `cargo test --workspace` does: one package alone would get other features
/// of its dependencies, and all would be compiled once more.
const STEPS: &[&[&str]] = &[
    &["fmt", "--all", "--check"],
    &[
        "test",
        "--quiet",
        "--workspace",
        "--bin",
        "xtask",
        "--test",
        "tidy",
        "--test",
        "links",
        "--test",
        "security",
        "--test",
        "threads",
        "--test",
        "dialect",
        "--test",
        "words",
        "--test",
        "vocabulary",
    ],
    &[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ],
];

/// Runs every step and stops at the first that fails.
pub(crate) fn run() -> anyhow::Result<()> {
    let began = Instant::now();
    setup::install(&[setup::BUILD])?;
    for step in STEPS {
        let mut command = workspace::cargo();
        command.args(*step);
        eprintln!("== {}", process::words(&command));
        let began = Instant::now();
        process::run(&mut command)?;
        eprintln!("   {}", minutes(began.elapsed()));
    }
    eprintln!("== generated files");
    generate::check()?;
    println!("check: all is well, in {}", minutes(began.elapsed()));
    Ok(())
}
