//! Makes an incident, asks holdup, and leaves nothing behind.
//!
//! In: an incident and the holdup binary. Out: the report. All that an incident starts is in one process group, which is ended; what it
//! writes is in a directory of its own.

use super::incident::Incident;
use crate::process;
use crate::report::Report;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// What `start.sh` prints when the trouble goes on.
const READY: &str = "READY";

/// A service of many processes starts in ten seconds; beside others on two CPUs it may take several times as long.
const LONGEST_START: Duration = Duration::from_secs(90);

/// Between the first sign of the trouble and the question: who is asked at once sees how it began, and not that it goes on.
const UNTIL_ASKED: Duration = Duration::from_secs(1);

/// holdup with its start and its report, beside others.
const LONGEST_ANSWER_SECONDS: &str = "120";

/// From the polite end of an incident to the other one.
const UNTIL_KILLED: Duration = Duration::from_secs(3);

/// Where things are.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The holdup binary.
    pub(crate) holdup: PathBuf,
    /// Where incidents are built, a folder each.
    pub(crate) scratch: PathBuf,
}

/// A running incident; ended when it is dropped.
struct Running {
    child: Child,
}

impl Stage {
    /// Builds what an incident runs, unless that is newer than its folder.
    pub(crate) fn build(&self, incident: &Incident) -> anyhow::Result<()> {
        let Some(command) = &incident.about.build else {
            return Ok(());
        };
        let built = self.built(incident);
        let stamp = built.join("built");
        if newest(&incident.folder)? < modified(&stamp).unwrap_or(std::time::SystemTime::UNIX_EPOCH) {
            return Ok(());
        }
        std::fs::create_dir_all(&built).with_context(|| format!("make {}", built.display()))?;
        let mut build = Command::new("bash");
        build
            .args(["-euc", command])
            .current_dir(&incident.folder)
            .env("BUILT", &built)
            .stdout(Stdio::null());
        process::run(&mut build).with_context(|| format!("build {}", incident.name))?;
        File::create(&stamp).with_context(|| format!("write {}", stamp.display()))?;
        Ok(())
    }

    /// Makes it and asks.
    pub(crate) fn run(&self, incident: &Incident) -> anyhow::Result<Report> {
        let work = tempfile::Builder::new()
            .prefix("incident-")
            .tempdir()
            .context("make a directory to work in")?;
        // Services have users of their own.
        std::fs::set_permissions(work.path(), Permissions::from_mode(0o755))
            .context("open that directory")?;
        let log = File::create(work.path().join("start.log")).context("make a log")?;
        let mut child = Command::new("bash")
            .arg(incident.folder.join("start.sh"))
            .current_dir(&incident.folder)
            .env("RUN", work.path())
            .env("BUILT", self.built(incident))
            .env("STAGE", incident.folder.with_file_name("stage.sh"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .context("start it")?;
        let output = child.stdout.take().expect("stdout is piped");
        let running = Running { child };
        if !is_ready(output) {
            let log = std::fs::read_to_string(work.path().join("start.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            bail!("it did not begin: {}", last.join("; "));
        }
        std::thread::sleep(UNTIL_ASKED);
        let report = self.ask(incident, work.path());
        drop(running);
        report
    }

    fn ask(&self, incident: &Incident, work: &Path) -> anyhow::Result<Report> {
        let pid = std::fs::read_to_string(work.join("pid")).context("read whom to ask about")?;
        let report = work.join("report.json");
        let mut holdup = Command::new("timeout");
        holdup
            .args(["--kill-after=5", LONGEST_ANSWER_SECONDS])
            .arg(&self.holdup)
            .args(
                incident
                    .about
                    .ask
                    .iter()
                    .map(|word| word.replace("{pid}", pid.trim())),
            )
            .arg("--json")
            .arg(&report);
        let output = holdup.stdin(Stdio::null()).output().context("start holdup")?;
        if !output.status.success() {
            bail!(
                "{} failed: {}: {}",
                process::words(&holdup),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let text = std::fs::read(&report).context("read the report")?;
        serde_json::from_slice(&text).context("understand the report")
    }

    fn built(&self, incident: &Incident) -> PathBuf {
        self.scratch.join(&incident.name)
    }
}

/// Whether the line comes in time. What follows it is read away: nobody may wait for us.
fn is_ready(output: impl Read + Send + 'static) -> bool {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if line == READY.as_bytes() {
                // Whoever waited may have given up.
                let _ = send.send(());
            }
        }
    });
    receive.recv_timeout(LONGEST_START).is_ok()
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.child.id().cast_signed());
        let began = Instant::now();
        // Whoever has ended already is no error.
        let _ = killpg(group, Signal::SIGTERM);
        while began.elapsed() < UNTIL_KILLED && killpg(group, None).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
            // The leader must be reaped for its group to be empty.
            let _ = self.child.try_wait();
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// When the newest file of a folder was written.
fn newest(folder: &Path) -> anyhow::Result<std::time::SystemTime> {
    let mut newest = std::time::SystemTime::UNIX_EPOCH;
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("read {}", folder.display()))?
            .path();
        newest = newest.max(modified(&path)?);
    }
    Ok(newest)
}

fn modified(file: &Path) -> anyhow::Result<std::time::SystemTime> {
    std::fs::metadata(file)
        .and_then(|meta| meta.modified())
        .with_context(|| format!("look at {}", file.display()))
}
