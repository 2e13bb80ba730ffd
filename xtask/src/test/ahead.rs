//! What later steps need, made while the first one runs: holdup and the replay as released, and the guests' kernels.
//!
//! The first step is `cargo test`, which mostly waits for programs that it observes. All this runs in the scheduler's idle class, so
//! that it gets only what the tests leave. In: nothing. Out: files under the target directory, and whether holdup was built.

use super::{Done, Tally};
use crate::{process, workspace};
use anyhow::Context;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name of the step.
const NAME: &str = "build";

/// Both in one command: alone, the replay would get other features of its dependencies, and all would be compiled twice.
const BUILD: [&str; 6] = [
    "build",
    "--release",
    "--package",
    "holdup",
    "--package",
    "holdup-replay",
];

/// It, under way.
pub(super) struct Ahead {
    log: PathBuf,
    thread: JoinHandle<anyhow::Result<Duration>>,
}

impl Ahead {
    /// Starts it.
    pub(super) fn start() -> anyhow::Result<Ahead> {
        let log = workspace::scratch("test")?.join("ahead.log");
        let output = File::create(&log).with_context(|| format!("write {}", log.display()))?;
        let mut build = workspace::cargo();
        build.args(BUILD);
        let mut fetch = workspace::xtask()?;
        fetch.args(["guest", "--fetch"]);
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            process::run(&mut when_idle(&build, &output)?)?;
            let built = began.elapsed();
            // The step itself says what is wrong, if it still is.
            if let Err(error) = process::run(&mut when_idle(&fetch, &output)?) {
                eprintln!("xtask: the guests' kernels are not here yet: {error:#}");
            }
            Ok(built)
        });
        Ok(Ahead { log, thread })
    }

    /// Waits for the end; a failure is counted, and what was said is shown.
    pub(super) fn finish(self) -> Done {
        let result = self.thread.join().expect("a build that panics has a defect");
        if let Err(error) = &result {
            println!("\n== {NAME}: {error:#}");
            print!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
        Done {
            name: NAME,
            tally: Tally::one(result.is_ok()),
            took: result.unwrap_or_default(),
        }
    }

    /// The program of the replay that was built.
    pub(super) fn replay() -> anyhow::Result<PathBuf> {
        Ok(workspace::target()?.join("release/holdup-replay"))
    }
}

/// The command in the scheduler's idle class, with its output in a file.
fn when_idle(command: &Command, output: &File) -> anyhow::Result<Command> {
    let mut idle = Command::new("chrt");
    idle.args(["--idle", "0"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(workspace::root())
        .stdout(output.try_clone().context("share the log")?)
        .stderr(output.try_clone().context("share the log")?);
    Ok(idle)
}
