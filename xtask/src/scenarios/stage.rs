//! Runs one side of a scenario (the stall or its twin) on the stage, and leaves nothing behind.
//!
//! In: a scenario and the holdup binary. Out: holdup's report and the workload's truth. The stage itself is
//! `scenarios/stage/stage.sh`, with a mount and a network namespace of its own; what it can't clean up
//! because it was killed (processes of its group, its cgroup) is cleaned up here.

use super::report::{Report, Truth};
use super::scenario::Scenario;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seconds after which a run is ended: a run takes up to four, and holdup may need some for its start on a
/// busy machine.
const DEADLINE_SECONDS: &str = "60";

/// Where things are.
#[derive(Debug)]
pub(crate) struct Stage {
    /// `scenarios/stage`.
    pub(crate) folder: PathBuf,
    /// The compiled programs.
    pub(crate) programs: PathBuf,
    /// The holdup binary; `None` to run unobserved.
    pub(crate) holdup: Option<PathBuf>,
    /// Whose all this is.
    pub(crate) ordinary: Ordinary,
    /// Whether holdup is to write the events that enter attribution, too.
    pub(crate) keep_events: bool,
}

/// What is an ordinary user's, and not root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordinary {
    /// Nothing.
    Nothing,
    /// holdup and CMD: holdup samples.
    Command,
    /// The whole stage: what runs already and is attached to, too.
    Everything,
}

impl Ordinary {
    /// What the stage calls it.
    fn word(self) -> &'static str {
        match self {
            Ordinary::Nothing => "",
            Ordinary::Command => "command",
            Ordinary::Everything => "everything",
        }
    }
}

/// Which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The stall.
    Stall,
    /// Its healthy twin.
    Healthy,
}

impl Side {
    /// The function of `scenario.sh`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Side::Stall => "stall",
            Side::Healthy => "healthy",
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// holdup's report; `None` when run unobserved.
    pub(crate) report: Option<Report>,
    /// What the workload measured.
    pub(crate) truth: Truth,
    /// For how long some thread of this machine was ready and had no CPU meanwhile, in nanoseconds.
    pub(crate) machine_queued_ns: u64,
    /// What was said on stderr: holdup's words for people among it.
    pub(crate) stderr: String,
    /// The report as it was written.
    pub(crate) json: String,
    /// The events that entered attribution, where they were to be kept and the command keeps them.
    pub(crate) events: Option<Vec<u8>>,
}

impl Outcome {
    /// Writes the report, and the events if there are any, into a folder.
    pub(crate) fn keep(
        &self,
        folder: &Path,
        scenario: &Scenario,
        side: Side,
        source: &str,
    ) -> anyhow::Result<()> {
        let write = |file: PathBuf, bytes: &[u8]| {
            std::fs::write(&file, bytes).with_context(|| format!("write {}", file.display()))
        };
        let name = format!("{}.{}", scenario.name, side.word());
        write(folder.join(format!("{name}.json")), self.json.as_bytes())?;
        match &self.events {
            Some(events) => write(folder.join(format!("{name}.{source}.events.gz")), events),
            None => Ok(()),
        }
    }
}

impl Stage {
    /// Runs one side.
    pub(crate) fn run(&self, scenario: &Scenario, side: Side) -> anyhow::Result<Outcome> {
        self.run_with(scenario, side, &[])
    }

    /// The same with more in its environment.
    pub(crate) fn run_with(
        &self,
        scenario: &Scenario,
        side: Side,
        environment: &[(&str, &OsStr)],
    ) -> anyhow::Result<Outcome> {
        let work = tempfile::Builder::new()
            .prefix("holdup-scenario-")
            .tempdir()
            .context("make a directory to work in")?;
        let (report, truth, stderr) = (
            work.path().join("report.json"),
            work.path().join("truth"),
            work.path().join("stderr"),
        );
        let events = work.path().join("events.gz");
        let queued_before = machine_queued_ns();
        let log = std::fs::File::create(&stderr).context("make a file for stderr")?;
        let mut command = Command::new("timeout");
        if let Some(jdk) = &scenario.jdk {
            command
                .env("JAVA_HOME", &jdk.home)
                .env("JAVA_VERSION", jdk.version.to_string());
        }
        let mut child = command
            .args(["--kill-after=5", DEADLINE_SECONDS, "bash"])
            .arg(self.folder.join("stage.sh"))
            .arg(&scenario.folder)
            .arg(side.word())
            .env("HOLDUP", self.holdup.as_deref().unwrap_or(Path::new("")))
            .env("UNPRIVILEGED", self.ordinary.word())
            .env("PROGRAMS", &self.programs)
            .env("STAGE", work.path())
            .env("HOLDUP_REPORT", &report)
            .env("HOLDUP_TRUTH", &truth)
            .envs(self.keep_events.then_some(("HOLDUP_EVENTS", &events)))
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start the stage")?;
        let group = i32::try_from(child.id()).context("a process id is positive")?;
        let status = child.wait();
        let machine_queued_ns = machine_queued_ns().saturating_sub(queued_before);
        clean_up(Pid::from_raw(group), work.path());
        let status = status.context("wait for the stage")?;
        let said = std::fs::read_to_string(&stderr).unwrap_or_default();
        if !status.success() {
            bail!("the run ended with {status}:\n{said}");
        }
        let json = match &self.holdup {
            Some(_) => std::fs::read_to_string(&report).context("read the report; holdup wrote none")?,
            None => String::new(),
        };
        let report = match &self.holdup {
            Some(_) => Some(serde_json::from_str(&json).context("understand the report")?),
            None => None,
        };
        let truth = std::fs::read_to_string(&truth).context("read the truth; the workload wrote none")?;
        let truth = Truth::parse(&truth).with_context(|| format!("understand the truth:\n{truth}"))?;
        Ok(Outcome {
            report,
            truth,
            machine_queued_ns,
            stderr: said,
            json,
            events: std::fs::read(&events).ok(),
        })
    }
}

/// For how long some thread of this machine was ready and had no CPU since boot, in nanoseconds, by the kernel's
/// own account of pressure; 0 where it keeps none, which excuses nothing.
fn machine_queued_ns() -> u64 {
    const MICROSECOND: u64 = 1_000;
    let text = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = text.lines().find(|line| line.starts_with("some "));
    some.and_then(|line| line.split("total=").nth(1)?.trim().parse::<u64>().ok())
        .map_or(0, |total| total * MICROSECOND)
}

/// Ends what is left of the stage's process group (timeout(1) leads one), and removes its cgroups.
fn clean_up(group: Pid, work: &Path) {
    // An error means that nobody is left, as it should be.
    let _ = killpg(group, Signal::SIGKILL);
    let cgroups = std::fs::read_to_string(work.join("cgroup")).unwrap_or_default();
    for cgroup in cgroups.lines() {
        // What has just been killed is still in there for a moment.
        while std::fs::remove_dir(cgroup).is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
        {
            std::thread::yield_now();
        }
    }
}
