//! How soon a person at a terminal reads the first word about a process that is stuck.

use super::{Plan, middle};
use crate::bench::samples::range;
use anyhow::{Context, bail};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// By then the first word should be there.
const BAR: Duration = Duration::from_secs(1);

/// What the first word ends with.
const SAID: &str = "still watching";

/// How long the process has been stuck before anybody asks.
const STUCK_BEFORE: Duration = Duration::from_millis(1500);

/// Measures and prints.
pub(super) fn measure(plan: &Plan<'_>) -> anyhow::Result<()> {
    let lock = plan.folder.join("lock");
    let _holder = Ended::start(&lock, &["sleep", "100000"])?;
    std::thread::sleep(STUCK_BEFORE);
    let waiter = Ended::start(&lock, &["true"])?;
    std::thread::sleep(STUCK_BEFORE);
    let mut took = Vec::new();
    for _ in 0..plan.args.rounds {
        took.push(first_word(plan.holdup(), waiter.0.id())?.as_secs_f64());
    }
    let spread = range(took.iter().copied()).map(|(least, greatest)| format!("{least:.2} to {greatest:.2}"));
    println!(
        "stuck on a file lock, {} rounds; first word within {} s",
        plan.args.rounds,
        BAR.as_secs()
    );
    println!("  after {} s ({})", middle(took, 2), spread.unwrap_or_default());
    Ok(())
}

/// From holdup's start until the word stands on a terminal.
fn first_word(holdup: &Path, pid: u32) -> anyhow::Result<Duration> {
    let terminal = openpty(None, None).context("make a terminal")?;
    let end = || {
        terminal
            .slave
            .try_clone()
            .map(Stdio::from)
            .context("a terminal's end")
    };
    let began = Instant::now();
    let mut child = Command::new(holdup)
        .args(["attach", "--pid", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(end()?)
        .stderr(end()?)
        .spawn()
        .context("start holdup")?;
    drop(terminal.slave);
    let mut screen = File::from(terminal.master);
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.contains(SAID) {
        // The last writer's end shows as an error on a terminal.
        let Ok(read @ 1..) = screen.read(&mut buffer) else {
            child.kill().context("end holdup")?;
            child.wait().context("wait for holdup")?;
            bail!("holdup said no first word, but:\n{text}");
        };
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    let took = began.elapsed();
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).context("end holdup")?;
    // What it still says would fill the terminal.
    while matches!(screen.read(&mut buffer), Ok(1..)) {}
    child.wait().context("wait for holdup")?;
    Ok(took)
}

/// A child that is ended when dropped.
#[derive(Debug)]
struct Ended(Child);

impl Ended {
    /// `flock` on a file, with a command.
    fn start(lock: &Path, words: &[&str]) -> anyhow::Result<Ended> {
        let child = Command::new("flock")
            .arg("--no-fork")
            .arg(lock)
            .args(words)
            .spawn();
        Ok(Ended(child.context("start flock")?))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // Neither can fail for a child that has not been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
