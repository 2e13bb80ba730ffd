//! `cargo xtask check`: what needs no privilege to run, quickest first.

use crate::{generate, process, setup, workspace};

/// The steps, as arguments to cargo. `tidy` is the shape of the workspace: its dependencies, files and pages.
const STEPS: &[&[&str]] = &[
    &["fmt", "--all", "--check"],
    &["test", "--quiet", "--package", "xtask", "--test", "tidy"],
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
    setup::install(&[setup::BUILD])?;
    for step in STEPS {
        let mut command = workspace::cargo();
        command.args(*step);
        eprintln!("== {}", process::words(&command));
        process::run(&mut command)?;
    }
    eprintln!("== generated files");
    generate::check()?;
    println!("check: all is well");
    Ok(())
}
