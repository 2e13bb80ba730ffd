//! This boot, as the machine itself tells it: the kernel's log, the journal, what systemd says of its units.
//!
//! In: the machine. Out: each as an artefact to the readers, dated by both clocks, as the collecting script dates them. Each
//! command has a limit of time and of size; what it says after that is not read. Of a journal the oldest comes first, and
//! a boot is at its beginning, so what is cut off is not of the boot.

use holdup_evidence::observed::Taken;
use holdup_proc::{Root, clocks, kernel_log};
use holdup_readers::Readers;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{Error, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take: `journalctl` on a slow disk reads some MB a second.
const LIMIT: Duration = Duration::from_secs(15);

/// Bytes of a journal that are read: some fifty thousand entries with the fields that are asked for.
const JOURNAL: u64 = 48 << 20;

/// Bytes of what `systemd-analyze` says that are read: it has a line for each unit.
const ANALYSED: u64 = 4 << 20;

/// What systemd has made there tells that it is the init, as its own `sd_booted` has it.
const SYSTEMD: &str = "/run/systemd/system";

/// The fields of the journal that its reader takes. Without this, an entry has three times as many bytes.
const FIELDS: &str = "--output-fields=MESSAGE,_TRANSPORT,SYSLOG_IDENTIFIER,UNIT,_SOURCE_MONOTONIC_TIMESTAMP,_BOOT_ID,_HOSTNAME";

/// What is asked of systemd.
const ANALYSES: [&[&str]; 3] = [
    &["systemd-analyze", "--no-pager", "time"],
    &["systemd-analyze", "--no-pager", "critical-chain"],
    &["systemd-analyze", "--no-pager", "blame"],
];

/// Reads all there is; what could not be, each in a sentence.
pub(super) fn this_boot(root: &Root, readers: &mut Readers) -> Vec<String> {
    let mut missing = Vec::new();
    match kernel_log::text(root) {
        Ok(log) if log.is_empty() => missing.push("the kernel log is empty".to_owned()),
        Ok(log) => readers.read_taken("/dev/kmsg", &mut log.as_bytes(), now()),
        Err(error) => {
            missing.push(format!(
                "the kernel log cannot be read: {error}; run holdup as root or with CAP_SYSLOG"
            ));
        }
    }
    if !Path::new(SYSTEMD).exists() {
        missing.push("the waits of services: systemd is not the init system here".to_owned());
        return missing;
    }
    let journal: [&[&str]; 2] = [
        &["journalctl", "--no-pager", "-q", "-b", "-o", "json", FIELDS],
        // Before 236 it can't choose.
        &["journalctl", "--no-pager", "-q", "-b", "-o", "json"],
    ];
    if !journal.iter().any(|command| output(command, JOURNAL, readers)) {
        missing.push("journalctl printed nothing about this boot".to_owned());
    }
    for command in ANALYSES {
        if !output(command, ANALYSED, readers) {
            missing.push(format!("{} printed nothing", command.join(" ")));
        }
    }
    missing
}

/// What this machine can feed its generator with, and the rest that rules ask for.
pub(super) fn facts(root: &Root) -> holdup_evidence::SystemFacts {
    holdup_proc::facts::collect(root, &holdup_proc::facts::Question::default(), &mut Vec::new())
}

fn now() -> Taken {
    let monotonic = clocks::monotonic();
    Taken {
        unix: clocks::unix_minus_monotonic()
            .and_then(|offset| offset.checked_add(i64::try_from(monotonic).ok()?)),
        since_boot: clocks::boot_minus_monotonic().map(|offset| monotonic + offset),
    }
}

/// Hands what a command says to the readers; whether it said anything.
fn output(command: &[&str], bytes: u64, readers: &mut Readers) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    let child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env("SYSTEMD_COLORS", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    let Some(stdout) = child.stdout.take() else {
        return false;
    };
    let mut said = Said {
        child,
        stdout,
        until: Instant::now() + LIMIT,
        first: Vec::new(),
    };
    // Nothing said, nothing to account for.
    if !said.anything() {
        return false;
    }
    let name = format!(
        "{program} {}",
        arguments
            .iter()
            .filter(|word| !word.starts_with("--"))
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    );
    readers.read_taken(&name, &mut said.by_ref().take(bytes), now());
    true
}

/// What a command says, until it ends or its time is over.
#[derive(Debug)]
struct Said {
    child: Child,
    stdout: ChildStdout,
    until: Instant,
    /// What was read to see whether it says anything.
    first: Vec<u8>,
}

impl Said {
    fn anything(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let length = self.read(&mut buffer).unwrap_or(0);
        self.first = buffer.get(..length).unwrap_or_default().to_vec();
        length > 0
    }
}

impl Read for Said {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if !self.first.is_empty() {
            let length = self.first.as_slice().read(buffer)?;
            self.first.drain(..length);
            return Ok(length);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        let wait = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut waiting = [PollFd::new(self.stdout.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, wait) {
            Ok(0) => Err(Error::new(ErrorKind::TimedOut, "it timed out")),
            Ok(_) => self.stdout.read(buffer),
            Err(nix::errno::Errno::EINTR) => Err(ErrorKind::Interrupted.into()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Said {
    /// It has nobody to write to now.
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
