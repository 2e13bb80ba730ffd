//! Writers that are killed at random instants, a thousand by default: what is left must be whole segments and nothing else.
//!
//! In: the example `story`, which writes segment after segment with the recorder's own code, and a recorder of the whole machine. Out:
//! how many were killed, how many segments they had closed, and how many of these `holdup show` could not read.

use crate::{process, workspace};
use anyhow::{Context, bail};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A writer is killed within this: it has started by then and writes.
const WRITER_LIVES: Duration = Duration::from_millis(120);

/// A recorder is killed within this after its first segment: a border of the shortest segments, and all that is done at it.
const RECORDER_LIVES: Duration = Duration::from_secs(6);

/// One recorder to so many writers: each takes seconds.
const WRITERS_TO_A_RECORDER: u32 = 50;

/// Of one kind.
#[derive(Debug, Default)]
struct Outcome {
    killed: u32,
    closed: usize,
    unreadable: usize,
}

/// Kills and prints.
pub(super) fn measure(holdup: &Path, times: u32, folder: &Path) -> anyhow::Result<()> {
    process::run(workspace::cargo().args(["build", "-q", "-p", "holdup-recording", "--example", "story"]))?;
    let writer = workspace::target()?.join("debug/examples/story");
    let recorders = times / WRITERS_TO_A_RECORDER;
    let start = |folder: &Path| Command::new(&writer).arg(folder).args(["100000", "1"]).spawn();
    let writers = kill(times - recorders, WRITER_LIVES, false, holdup, folder, start)?;
    let start = |folder: &Path| {
        Command::new(holdup)
            .args(["record", "--every", "5s", "--dir"])
            .arg(folder)
            .stderr(Stdio::null())
            .spawn()
    };
    let recorders = kill(recorders, RECORDER_LIVES, true, holdup, folder, start)?;
    println!("kill -9 at random instants: every segment that has a name must be readable");
    for (title, outcome) in [("writers", &writers), ("recorders", &recorders)] {
        println!(
            "  {:>4} {title:<10} {:>6} segments closed, {} unreadable",
            outcome.killed, outcome.closed, outcome.unreadable
        );
    }
    match writers.unreadable + recorders.unreadable {
        0 => Ok(()),
        several => bail!("{several} segments that had a name could not be read"),
    }
}

/// `closes_one`: each has closed a segment first.
fn kill(
    times: u32,
    within: Duration,
    closes_one: bool,
    holdup: &Path,
    folder: &Path,
    start: impl Fn(&Path) -> std::io::Result<Child>,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for number in 0..times {
        // Of its own: the child of a recorder that is killed still writes what it has.
        let folder = &folder.join(format!("{}-{number}", within.as_millis()));
        if folder.exists() {
            std::fs::remove_dir_all(folder).context("clear what another bench left")?;
        }
        std::fs::create_dir_all(folder).context("make a folder")?;
        let mut child = start(folder).context("start a writer")?;
        while closes_one && segments(folder)?.is_empty() {
            std::thread::sleep(WRITER_LIVES);
        }
        std::thread::sleep(within.mul_f64(fraction()));
        child.kill().context("kill a writer")?;
        child.wait().context("wait for a writer")?;
        outcome.killed += 1;
        // What a recorder's child still writes is swept by the next; what has a name by now is closed.
        for segment in segments(folder)? {
            outcome.closed += 1;
            let shown = Command::new(holdup)
                .args(["show", "-q"])
                .arg(&segment)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .context("start holdup show")?;
            outcome.unreadable += usize::from(!shown.success());
        }
        // One that is still written to goes with the next bench.
        std::fs::remove_dir_all(folder).ok();
    }
    Ok(outcome)
}

/// By chance, from 0 to 1: hashers are seeded anew.
fn fraction() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

fn segments(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).context("list what was written")?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect())
}
