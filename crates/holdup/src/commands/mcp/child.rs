//! A call as a process of holdup's own: it may block, the server may not.
//!
//! In: arguments and a deadline. Out: the report, or why there is none. The process has a group of its own, which is killed when the deadline
//! is over or the client gives up. Its output is bounded.

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of a report.
const REPORT: u64 = 32 << 20;

/// Bytes of what a process says on stderr that are kept: a sentence.
const SAID: u64 = 16 << 10;

/// This program, whatever its file is called by now.
const ITSELF: &str = "/proc/self/exe";

/// Where a process writes its report.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// To stdout.
    Stdout,
    /// To a file, because stdout is CMD's.
    File,
}

/// What to run.
#[derive(Debug)]
pub(super) struct Job {
    /// Arguments before those that say where the report goes.
    pub(super) command: &'static str,
    /// All others.
    pub(super) arguments: Vec<OsString>,
    /// Where the report goes.
    pub(super) place: Place,
    /// When it is given up.
    pub(super) deadline: Duration,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Its process has written all that it will.
    Ended,
    /// The client gave it up.
    Cancelled,
}

/// Ended before its report was there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GivenUp;

impl std::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the call was cancelled")
    }
}

impl std::error::Error for GivenUp {}

/// Runs it until it has ended or was cancelled: `events` says which, and `ended` is its other end. The report with its number of bytes.
///
/// # Errors
/// What holdup said instead; [`GivenUp`].
pub(super) fn run(
    job: &Job,
    events: &Receiver<Event>,
    ended: Sender<Event>,
) -> anyhow::Result<(Value, usize)> {
    let folder = tempfile::tempdir().context("cannot make a folder for the report")?;
    let file = folder.path().join("report.json");
    let mut command = Command::new(ITSELF);
    command.arg(job.command);
    match job.place {
        Place::Stdout => command.args(["--json", "-"]),
        Place::File => command.arg("--json").arg(&file),
    };
    command.args(&job.arguments).process_group(0);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().context("cannot start holdup")?;
    let group = Pid::from_raw(child.id().cast_signed());
    let output = collect(child, ended);
    match events.recv_timeout(job.deadline) {
        Ok(Event::Ended) => {}
        event => {
            // Nobody waits for it: it may be stuck in the kernel. The thread that reads from it takes leave of it when it ends.
            killpg(group, Signal::SIGKILL).ok();
            if event == Ok(Event::Cancelled) {
                bail!(GivenUp);
            }
            bail!("there was no answer within {} s", job.deadline.as_secs());
        }
    }
    let (stdout, stderr, status) = output.join().unwrap_or_default();
    let text = match job.place {
        Place::Stdout => stdout,
        Place::File => read(&file)?,
    };
    if text.len() as u64 > REPORT {
        bail!("the report has more than {} MiB: ask for less", REPORT >> 20);
    }
    match serde_json::from_slice(&text) {
        Ok(report) => Ok((report, text.len())),
        Err(_) => bail!("{}", said(&stderr, status)),
    }
}

/// Both streams, and the exit status where there is one.
type Output = (Vec<u8>, Vec<u8>, Option<i32>);

/// Reads both streams to their ends, waits for the process, and says when that is done. What is more than is kept is read and thrown away, so
/// that the process never waits for us.
fn collect(mut child: Child, ended: Sender<Event>) -> JoinHandle<Output> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::spawn(move || {
        let errors = std::thread::spawn(move || stderr.map(|from| bounded(from, SAID)).unwrap_or_default());
        let stdout = stdout.map(|from| bounded(from, REPORT + 1)).unwrap_or_default();
        let stderr = errors.join().unwrap_or_default();
        let status = child.wait().ok().and_then(|status| status.code());
        ended.send(Event::Ended).ok();
        (stdout, stderr, status)
    })
}

fn bounded(mut from: impl Read, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.by_ref().take(most).read_to_end(&mut bytes).ok();
    std::io::copy(&mut from, &mut std::io::sink()).ok();
    bytes
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    match std::fs::File::open(file) {
        Ok(file) => file.take(REPORT + 1).read_to_end(&mut text)?,
        Err(_) => 0,
    };
    Ok(text)
}

/// The last sentence of holdup's own on stderr.
fn said(stderr: &[u8], status: Option<i32>) -> String {
    let text = String::from_utf8_lossy(stderr);
    let sentence = text.lines().rev().find_map(|line| line.strip_prefix("holdup: "));
    match (sentence, status) {
        (Some(sentence), _) => sentence.to_owned(),
        (None, Some(status)) => format!("holdup ended with status {status} and without a report"),
        (None, None) => "holdup was killed".to_owned(),
    }
}
