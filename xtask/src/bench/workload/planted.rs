//! A program whose work is waits of planted length: how long it takes, and how much more than others, is known beforehand.
//!
//! In: its pace, how much more it waits in one place, and where somebody outside of it answers when told to. Out: nothing but the time that
//! it takes.

use anyhow::Context;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Rounds of waits. Many short waits would be as long as the machine's timers are late, few would be none of a program's.
const ROUNDS: u32 = 8;

/// How long each round sleeps, and waits for an answer, in microseconds; 80 ms in all.
const SLEEPS_US: f64 = 6_000.0;
const ASKS_US: f64 = 4_000.0;

/// Waits `pace` times as long as planned, and for answers `more` of all on top: 0.1 is a tenth of the whole.
pub(super) fn run(pace: f64, more: f64, answers: &Path) -> anyhow::Result<()> {
    let whole = SLEEPS_US + ASKS_US;
    let mut asked = UnixStream::connect(answers).with_context(|| format!("ask {}", answers.display()))?;
    let mut answered = BufReader::new(asked.try_clone().context("listen to it")?);
    let mut answer = String::new();
    for _ in 0..ROUNDS {
        std::thread::sleep(Duration::from_secs_f64(SLEEPS_US * pace / 1e6));
        let us = ASKS_US * pace + more * whole;
        writeln!(asked, "{us:.0}").context("ask for an answer")?;
        answered.read_line(&mut answer).context("wait for the answer")?;
    }
    Ok(())
}

/// Answers whoever asks, as late as he says, in a thread of its own for each.
pub(crate) fn answer(at: PathBuf) -> anyhow::Result<()> {
    let listener = UnixListener::bind(&at).with_context(|| format!("listen at {}", at.display()))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || late(&stream));
        }
    });
    Ok(())
}

/// Until nobody asks any more.
fn late(stream: &UnixStream) {
    let mut answers = stream;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let us: u64 = line.parse().unwrap_or(0);
        std::thread::sleep(Duration::from_micros(us));
        if answers.write_all(b"now\n").is_err() {
            return;
        }
    }
}
