//! What the tests of the binary share: starting it, and waiting for words rather than for time.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The binary under test.
pub(crate) const HOLDUP: &str = env!("CARGO_BIN_EXE_holdup");

/// A test that waits this long for a word, milliseconds, has failed: without it, it would hang.
const PATIENCE_MS: u16 = 60_000;

/// `holdup run -- WORDS`, to its end, without stdin.
pub(crate) fn run(words: &[&str]) -> Output {
    holdup(&[]).args(words).output().unwrap()
}

/// `holdup run OPTIONS --`, to be completed.
pub(crate) fn holdup(options: &[&str]) -> Command {
    let mut command = Command::new(HOLDUP);
    command.arg("run").args(options).arg("--").stdin(Stdio::null());
    command
}

/// A child that is killed when the test fails.
pub(crate) struct Guarded(pub(crate) Child);

impl Guarded {
    /// Starts it.
    pub(crate) fn spawn(command: &mut Command) -> Guarded {
        Guarded(command.spawn().unwrap())
    }

    /// Sends a signal to this process alone.
    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Reads until the text ends with these words; returns all that came.
pub(crate) fn read_until(from: &mut (impl Read + AsFd), words: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(words.as_bytes()) {
        let byte = read_byte(from).unwrap_or_else(|| panic!("end before {words:?}: {}", lossy(&text)));
        text.push(byte);
    }
    lossy(&text)
}

/// Reads to the end.
pub(crate) fn read_to_end(from: &mut (impl Read + AsFd)) -> String {
    let mut text = Vec::new();
    while let Some(byte) = read_byte(from) {
        text.push(byte);
    }
    lossy(&text)
}

/// Whether something can be read now or soon.
pub(crate) fn something_comes(from: &impl AsFd) -> bool {
    const SOON_MS: u16 = 100;
    poll(
        &mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)],
        PollTimeout::from(SOON_MS),
    )
    .unwrap()
        > 0
}

fn read_byte(from: &mut (impl Read + AsFd)) -> Option<u8> {
    let ready = poll(
        &mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)],
        PollTimeout::from(PATIENCE_MS),
    )
    .unwrap();
    assert_ne!(ready, 0, "nothing came for a minute");
    let mut byte = [0];
    // A pseudo-terminal whose other side is closed says EIO.
    matches!(from.read(&mut byte), Ok(1)).then_some(byte[0])
}

/// Text for comparing and for messages.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The JSON report in a file.
pub(crate) fn json(path: &std::path::Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
