//! Somebody who watches a process for a while: holdup, or another program that people use for that.
//!
//! In: who, and whom. Out: what watching took of the machine while it went on.

use crate::bench::program_counts::Held;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a watcher may take until it watches.
const PATIENCE: Duration = Duration::from_secs(20);

/// From then until a turn is measured: it looks around first (who serves, who is in the way), and that is not what it costs
/// while it goes on.
const SETTLE: Duration = Duration::from_millis(1500);

/// Other programs that say something like it of a running process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// `strace -c -f -p`.
    Strace,
    /// `perf trace -s -p`.
    PerfTrace,
    /// `offcputime -p` of libbpf-tools.
    Offcputime,
}

impl Peer {
    /// All of them.
    pub(super) const ALL: [Peer; 3] = [Peer::Offcputime, Peer::Strace, Peer::PerfTrace];

    /// How a table calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Peer::Strace => "strace -c -f",
            Peer::PerfTrace => "perf trace -s",
            Peer::Offcputime => "offcputime",
        }
    }

    fn command(self, pids: &[u32]) -> Command {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let words: &[&str] = match self {
            Peer::Strace => &["strace", "-c", "-f", "-o", "/dev/null", "-p"],
            Peer::PerfTrace => &["perf", "trace", "-s", "-o", "/dev/null", "-p"],
            Peer::Offcputime => &["offcputime", "-p"],
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(pids.join(","));
        command
    }
}

/// One that watches.
#[derive(Debug)]
pub(super) struct Watcher {
    child: Child,
    held: Held,
}

/// What it took from one instant to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// CPU time of its own threads, nanoseconds.
    pub(super) cpu: u64,
    /// Run time of its BPF programs, nanoseconds; 0 where nobody counts it.
    pub(super) programs: u64,
    /// Its memory at its most, bytes.
    pub(super) memory: u64,
}

impl Watcher {
    /// holdup, which writes its report there.
    pub(super) fn holdup(binary: &Path, pids: &[u32], report: &Path) -> anyhow::Result<Watcher> {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let mut command = Command::new(binary);
        command.args(["attach", "-q", "--pid", &pids.join(","), "--json"]);
        let mut watcher = Watcher::start(command.arg(report))?;
        let began = Instant::now();
        while !watcher.is_attached() {
            if let Some(status) = watcher.child.try_wait().context("wait for holdup")? {
                bail!("holdup ended before it watched: {status}");
            }
            if began.elapsed() > PATIENCE {
                bail!("holdup did not watch within {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(SETTLE);
        watcher.held.look_at(watcher.child.id());
        Ok(watcher)
    }

    /// A peer; `None` where it is not to be had.
    pub(super) fn peer(peer: Peer, pids: &[u32]) -> Option<Watcher> {
        let mut watcher = Watcher::start(&mut peer.command(pids)).ok()?;
        std::thread::sleep(SETTLE);
        let lives = watcher.child.try_wait().is_ok_and(|status| status.is_none());
        lives.then_some(watcher)
    }

    fn start(command: &mut Command) -> anyhow::Result<Watcher> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("start {}", crate::process::words(command)))?;
        Ok(Watcher {
            child,
            held: Held::default(),
        })
    }

    /// Whether a BPF program of its own is attached: a descriptor of a link says so.
    fn is_attached(&self) -> bool {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        let links = entries.into_iter().flatten().flatten();
        links
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|target| {
                let target = target.to_string_lossy();
                target.contains("bpf-link") || target.contains("bpf_link")
            })
    }

    /// What it has taken since it began.
    pub(super) fn taken(&self) -> anyhow::Result<Taken> {
        let programs = self.held.counts()?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        Ok(Taken {
            cpu: cpu_ns(self.child.id()),
            programs: programs.values().map(|(_, ns)| ns).sum(),
            memory: crate::bench::memory::kib(&status, "VmHWM:").unwrap_or_default() * 1024,
        })
    }

    /// Ends it as a person would; whether it ended well. A shell has its background commands ignore SIGINT.
    pub(super) fn end(mut self) -> anyhow::Result<bool> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).context("end the watcher")?;
        Ok(self.child.wait().context("wait for the watcher")?.success())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Neither can fail for a child that has not been waited for, nor matters for one that has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of a process's threads so far, nanoseconds: of those that live.
pub(in crate::bench) fn cpu_ns(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let texts = tasks
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("schedstat")).ok());
    texts
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum()
}
