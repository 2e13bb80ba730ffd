//! Who watches a measured program: nobody, holdup, or the peer that holdup is compared with.

use super::overhead::Program;
use super::validity;
use super::workload::{Counted, now_ns};
use crate::process;
use crate::report::Report;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Observer {
    /// Nobody.
    None,
    /// Nobody a second time: what differs from the first is the machine's own unrest, and no difference below it counts.
    Again,
    /// `holdup run`, default options.
    Holdup,
    /// The same, on the same core as the program.
    HoldupSameCore,
    /// `offcputime` of libbpf-tools, watching the whole machine.
    Offcputime,
}

/// One measured run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// What the program itself printed.
    pub(super) seconds: f64,
    /// CPU time of the program, which a busy machine changes less.
    pub(super) cpu: f64,
    /// From starting the observer to the program's start.
    pub(super) start_delay: f64,
    /// From the program's end to the observer's.
    pub(super) report_delay: f64,
}

/// The core that measured programs are pinned to; where the scheduler decides, the figures are bimodal.
pub(super) const CORE: &str = "0";

/// How long offcputime may take to attach: it loads in a few tenths of a second.
const ATTACH_PATIENCE: Duration = Duration::from_secs(10);

/// Runs measured programs under observers.
#[derive(Debug)]
pub(super) struct Bench {
    /// holdup's binary.
    pub(super) holdup: PathBuf,
    /// Where reports and counts are written.
    pub(super) folder: PathBuf,
}

impl Observer {
    /// How the table calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Observer::None => "untraced",
            Observer::Again => "untraced, again",
            Observer::Holdup => "holdup",
            Observer::HoldupSameCore => "holdup, same core",
            Observer::Offcputime => "offcputime",
        }
    }

    /// Those that can be had here, in the order of the table.
    pub(super) fn available() -> Vec<Observer> {
        let mut observers = vec![
            Observer::None,
            Observer::Again,
            Observer::Holdup,
            Observer::HoldupSameCore,
        ];
        let there = Command::new("offcputime")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if there.is_ok_and(|status| status.success()) {
            observers.push(Observer::Offcputime);
        }
        observers
    }
}

impl Bench {
    /// Runs the program once. `Ok(Err(why))` is a run that does not count.
    pub(super) fn measure(
        &self,
        observer: Observer,
        program: &Program,
    ) -> anyhow::Result<Result<Sample, String>> {
        let counts = self.folder.join("counted.json");
        let report = self.folder.join("report.json");
        let peer = match observer {
            Observer::Offcputime => Some(Offcputime::attached()?),
            _ => None,
        };
        let mut words: Vec<PathBuf> = Vec::new();
        match observer {
            Observer::None | Observer::Again | Observer::Offcputime | Observer::Holdup => {}
            Observer::HoldupSameCore => words.extend(["taskset", "-c", CORE].map(PathBuf::from)),
        }
        if matches!(observer, Observer::Holdup | Observer::HoldupSameCore) {
            words.push(self.holdup.clone());
            words.extend(["run", "--json"].map(PathBuf::from));
            words.extend([report.clone(), "--".into()]);
        }
        words.push(std::env::current_exe().context("the path of this program")?);
        words.extend(["bench", "workload", "wrap"].map(PathBuf::from));
        words.extend([counts.clone(), "--".into()]);
        if program.pinned {
            words.extend(["taskset", "-c", CORE].map(PathBuf::from));
        }
        words.extend(program.command.iter().map(PathBuf::from));

        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let began = now_ns()?;
        let output = command
            .output()
            .with_context(|| format!("start {}", process::words(&command)))?;
        let ended = now_ns()?;
        drop(peer);

        let seconds = printed_seconds(&command, &output)?;
        let counted: Counted = read_json(&counts)?;
        if matches!(observer, Observer::Holdup | Observer::HoldupSameCore) {
            let report: Report = read_json(&report)?;
            if let Err(why) = validity::check(&report, counted.blockings) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(Sample {
            seconds,
            cpu: counted.cpu_ns as f64 / 1e9,
            start_delay: counted.started_ns.saturating_sub(began) as f64 / 1e9,
            report_delay: ended.saturating_sub(counted.ended_ns) as f64 / 1e9,
        }))
    }
}

/// Every measured program prints its seconds and nothing else.
fn printed_seconds(command: &Command, output: &Output) -> anyhow::Result<f64> {
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "{} failed: {}\n{}",
            process::words(command),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    text.trim()
        .parse()
        .with_context(|| format!("{} printed {text:?} and not its seconds", process::words(command)))
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("understand {}", path.display()))
}

/// A running offcputime; ended when dropped.
struct Offcputime(Child);

impl Offcputime {
    /// Starts it and waits until its programs are attached.
    fn attached() -> anyhow::Result<Offcputime> {
        let child = Command::new("offcputime")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut peer = Offcputime(child.context("start offcputime")?);
        let began = Instant::now();
        while !peer.holds_a_link()? {
            if let Some(status) = peer.0.try_wait().context("wait for offcputime")? {
                bail!("offcputime ended before it was attached: {status}");
            }
            if began.elapsed() > ATTACH_PATIENCE {
                bail!("offcputime did not attach within {} s", ATTACH_PATIENCE.as_secs());
            }
            std::thread::yield_now();
        }
        Ok(peer)
    }

    /// Whether it has attached a BPF program: a descriptor of a link says so.
    fn holds_a_link(&self) -> anyhow::Result<bool> {
        let folder = format!("/proc/{}/fd", self.0.id());
        let descriptors = std::fs::read_dir(&folder).with_context(|| format!("read {folder}"))?;
        Ok(descriptors
            .filter_map(Result::ok)
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|target| {
                target.to_string_lossy().contains("bpf-link") || target.to_string_lossy().contains("bpf_link")
            }))
    }
}

impl Drop for Offcputime {
    fn drop(&mut self) {
        // It prints and ends on SIGINT. Neither can fail for a child that has not been waited for.
        let pid = Pid::from_raw(self.0.id().cast_signed());
        let _ = kill(pid, Signal::SIGINT);
        let _ = self.0.wait();
    }
}
