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

/// A child that is killed when the test fails. What is left running would be in the recordings of a whole machine that later tests make.
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

    /// Waits for its end, and returns what it wrote meanwhile.
    pub(crate) fn output(mut self) -> Output {
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        let (stdout, stderr) = std::thread::scope(|scope| {
            let errors = scope.spawn(|| all(stderr));
            (all(stdout), errors.join().unwrap())
        });
        let status = self.0.wait().unwrap();
        Output {
            status,
            stdout,
            stderr,
        }
    }
}

/// All that comes from a pipe, if there is one.
fn all(from: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes).unwrap();
    }
    bytes
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

/// The next byte; `None` at the end.
pub(crate) fn read_byte(from: &mut (impl Read + AsFd)) -> Option<u8> {
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

/// A report in which time is conserved.
pub(crate) struct Outcome {
    /// What holdup left behind.
    pub(crate) output: Output,
    /// Its JSON.
    pub(crate) report: serde_json::Value,
}

impl Outcome {
    /// Runs `holdup run OPTIONS --json FILE -- …` to its end; `complete` adds the command.
    pub(crate) fn of(options: &[&str], complete: impl FnOnce(&mut Command)) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report.json");
        let mut command = holdup(&[options, &["--json", file.to_str().unwrap()]].concat());
        complete(&mut command);
        let output = command.output().unwrap();
        assert!(file.exists(), "{}", lossy(&output.stderr));
        let report = json(&file);
        conserved(&report);
        Outcome { output, report }
    }

    /// The same, made again where the kernel did not show a waking (ARCHITECTURE.md, "The ledger"): who ended that wait is not known
    /// then. The fifth counts in any case.
    pub(crate) fn with_all_wakings(options: &[&str], complete: impl Fn(&mut Command)) -> Outcome {
        const TRIES: usize = 5;
        let mut outcome = Outcome::of(options, &complete);
        for _ in 1..TRIES {
            if outcome.lost("wakeups not reported by the kernel") == 0 {
                break;
            }
            outcome = Outcome::of(options, &complete);
        }
        outcome
    }

    /// The exit status, which is also in the report.
    pub(crate) fn status(&self) -> i32 {
        let status = self.output.status.code().unwrap();
        assert_eq!(
            self.report["subject"]["exit"],
            status,
            "{}",
            lossy(&self.output.stderr)
        );
        status
    }

    /// The threads of processes of this name.
    pub(crate) fn threads_of(&self, process: &str) -> Vec<&serde_json::Value> {
        list(&self.report, "threads")
            .iter()
            .filter(|thread| thread["process"] == process)
            .collect()
    }

    /// How many threads there were.
    pub(crate) fn threads(&self) -> u64 {
        list(&self.report, "threads")
            .iter()
            .map(|thread| number(thread, "threads"))
            .sum()
    }

    /// Nothing was lost, but for a wait or two that the kernel itself did not show (ARCHITECTURE.md, "The ledger"), or a
    /// stack that it refused to copy.
    pub(crate) fn lost_nothing_of_its_own(&self) {
        for lost in list(&self.report["coverage"], "lost") {
            if lost["what"] == "wakeups not reported by the kernel" {
                continue;
            }
            let allowed = [
                "context switches not reported by the kernel",
                "stack samples dropped",
            ];
            assert!(allowed.iter().any(|what| lost["what"] == *what), "{lost}");
            assert!(number(lost, "count") <= 2, "{lost}");
        }
    }

    /// How many times records of this class were lost.
    pub(crate) fn lost(&self, what: &str) -> u64 {
        lost(&self.report, what)
    }
}

/// How many times records of this class were lost.
pub(crate) fn lost(report: &serde_json::Value, what: &str) -> u64 {
    list(&report["coverage"], "lost")
        .iter()
        .filter(|lost| lost["what"] == what)
        .map(|lost| number(lost, "count"))
        .sum()
}

/// The frame of a wait's stack that asked.
pub(crate) fn asker(wait: &serde_json::Value) -> Option<&serde_json::Value> {
    let asker = &wait["asker"];
    let frames = asker["stack"].as_array()?;
    frames.iter().find(|frame| frame["symbol"] == asker["frame"])
}

/// A list of the report.
pub(crate) fn list<'a>(of: &'a serde_json::Value, name: &str) -> &'a Vec<serde_json::Value> {
    of[name]
        .as_array()
        .unwrap_or_else(|| panic!("no list {name}: {of}"))
}

/// A number of the report.
pub(crate) fn number(of: &serde_json::Value, name: &str) -> u64 {
    of[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no number {name}: {of}"))
}

/// Every nanosecond is in exactly one cause, at each of the report's levels.
pub(crate) fn conserved(report: &serde_json::Value) {
    let sum = |of: &serde_json::Value, name: &str, field: &str| -> u64 {
        list(of, name).iter().map(|entry| number(entry, field)).sum()
    };
    let coverage = &report["coverage"];
    for thread in list(report, "threads") {
        assert_eq!(sum(thread, "causes", "ns"), number(thread, "wall_ns"), "{thread}");
    }
    let observed = number(coverage, "observed_ns");
    assert_eq!(sum(report, "threads", "wall_ns"), observed);
    assert_eq!(sum(report, "waits", "ns"), observed);
    assert_eq!(
        number(coverage, "attributed_ns") + number(coverage, "unknown_ns"),
        observed
    );
    assert_eq!(sum(report, "causes", "ns"), number(&report["subject"], "wall_ns"));
    let shares: f64 = list(report, "causes")
        .iter()
        .map(|cause| cause["share"].as_f64().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
}

/// What `holdup attach` reports of a program that was started by this command and has said that it is ready.
pub(crate) fn attached(program: &mut Command, seconds: &str) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut program = Guarded::spawn(program.stdout(Stdio::piped()));
    read_until(program.0.stdout.as_mut().unwrap(), "ready\n");
    let output = Command::new(HOLDUP)
        .args(["attach", "--backend", "bpf", "-d", seconds, "--json"])
        .arg(&report)
        .args(["-p", &program.0.id().to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    json(&report)
}

/// A function, the line of its file in which it waits, and the wait's cause where that matters.
pub(crate) type Asked = (&'static str, u64, Option<&'static str>);

/// Whether a report has waits that each of these functions asked for, in a language's file.
#[track_caller]
pub(crate) fn has_all(report: &serde_json::Value, language: &str, file: &str, expected: &[Asked]) {
    let waits = list(report, "waits");
    for (function, line, cause) in expected {
        let found = waits.iter().any(|wait| {
            cause.is_none_or(|cause| wait["cause"] == cause)
                && asker(wait).is_some_and(|frame| {
                    frame["symbol"] == *function
                        && frame["line"] == *line
                        && frame["file"] == file
                        && frame["language"] == language
                })
        });
        let askers: Vec<_> = waits.iter().filter_map(asker).collect();
        assert!(found, "{cause:?} of {function}: {askers:#?}");
    }
}
