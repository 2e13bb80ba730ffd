//! Runs one attack on the stage, and leaves nothing behind.
//!
//! In: an attack and the holdup binary. Out: what it reached and what it did not. The stage itself is `attacks/stage/stage.sh`,
//! with a mount and a network namespace of its own; every process of it is in a cgroup, which is killed at the end.

use super::attack::Attack;
use super::baseline::Baseline;
use super::cgroup::Mount;
use super::fuse;
use crate::process;
use anyhow::{Context, bail};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Where the uids of the hostile programs begin: beyond those of people and services, below nobody's (65534).
const FIRST_UID: u32 = 64_100;

/// How long to wait before the next look at a stage.
const PAUSE: Duration = Duration::from_millis(50);

/// Where things are.
#[derive(Debug)]
pub(crate) struct Stage {
    /// `attacks/stage`.
    pub(crate) folder: PathBuf,
    /// The compiled programs.
    pub(crate) programs: PathBuf,
    /// The holdup binary.
    pub(crate) holdup: PathBuf,
    /// Where cgroups are made.
    pub(crate) cgroups: Mount,
    /// What holdup takes without an attack.
    pub(crate) baseline: Baseline,
}

/// What an attack reached (`lost`) and what it did not (`held`), a sentence each.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    held: Vec<String>,
    lost: Vec<String>,
    /// What was written on the way, for people.
    pub(crate) said: String,
}

impl Outcome {
    /// Nothing was reached, and that was looked at.
    pub(crate) fn held(&self) -> bool {
        self.lost.is_empty() && !self.held.is_empty()
    }

    /// What was reached.
    pub(crate) fn lost(&self) -> Vec<String> {
        if self.lost.is_empty() && self.held.is_empty() {
            return vec!["nothing was checked".to_owned()];
        }
        self.lost.clone()
    }

    pub(crate) fn hold(&mut self, what: String) {
        self.held.push(what);
    }

    pub(crate) fn lose(&mut self, what: String) {
        self.lost.push(what);
    }

    /// Adds another's.
    pub(crate) fn append(&mut self, other: Outcome) {
        self.held.extend(other.held);
        self.lost.extend(other.lost);
    }

    /// Reads the lines `held: …` and `lost: …` that the stage wrote.
    fn read(&mut self, lines: &str) {
        for line in lines.lines() {
            match line.split_once(": ") {
                Some(("held", what)) => self.hold(what.to_owned()),
                Some(("lost", what)) => self.lose(what.to_owned()),
                _ => self.lose(format!("the stage wrote a line that is no result: {line}")),
            }
        }
    }
}

impl Stage {
    /// Runs one attack. Whatever goes wrong on the way is a failure of holdup until it is looked at.
    pub(crate) fn run(&self, attack: &Attack) -> Outcome {
        self.try_run(attack).unwrap_or_else(|error| Outcome {
            lost: vec![format!("the attack could not be made: {error:#}")],
            ..Outcome::default()
        })
    }

    fn try_run(&self, attack: &Attack) -> anyhow::Result<Outcome> {
        static NEXT_UID: AtomicU32 = AtomicU32::new(FIRST_UID);
        let uid = NEXT_UID.fetch_add(1, Ordering::Relaxed);
        let work = tempfile::Builder::new()
            .prefix("holdup-attack-")
            .tempdir()
            .context("make a directory to work in")?;
        std::fs::set_permissions(work.path(), std::fs::Permissions::from_mode(0o755))
            .context("open the directory to the hostile user")?;
        let cgroup = self.cgroups.make(&format!("attack-{}", attack.name))?;
        let log = std::fs::File::create(work.path().join("log")).context("make a log")?;
        let results = work.path().join("results");
        let mut child = Command::new("bash")
            .arg(self.folder.join("stage.sh"))
            .arg(&attack.folder)
            .env("HOLDUP", &self.holdup)
            .env("PROGRAMS", &self.programs)
            .env("STAGE", work.path())
            .env("CGROUP", cgroup.folder())
            .env("RESULTS", &results)
            .env("ATTACKER", uid.to_string())
            .env("TIME_LIMIT", self.baseline.time_limit().as_secs().to_string())
            .env("CPU_LIMIT", self.baseline.cpu_limit().as_secs().to_string())
            .env("BASELINE_MS", self.baseline.elapsed().as_millis().to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("share the log")?)
            .stderr(log)
            .spawn()
            .context("start the stage")?;
        let mut outcome = Outcome::default();
        let limit = Duration::from_secs(attack.about.limit_seconds);
        let began = Instant::now();
        let status = loop {
            match child.try_wait().context("wait for the stage")? {
                Some(status) => break Some(status),
                None if began.elapsed() > limit => break None,
                None => std::thread::sleep(PAUSE),
            }
        };
        // Kills all that is left, the stage itself where it did not end.
        cgroup.kill()?;
        fuse::abort(uid)?;
        drop(cgroup);
        child.wait().context("wait for the stage")?;
        outcome.read(&std::fs::read_to_string(&results).unwrap_or_default());
        match status {
            None => outcome.lose(format!("it was not over after {} s", limit.as_secs())),
            Some(status) if !status.success() => outcome.lose(format!("the stage ended with {status}")),
            Some(_) => {}
        }
        outcome.said = said(work.path());
        Ok(outcome)
    }

    /// BPF programs' links that no process holds any more: those would trace for ever.
    pub(crate) fn left_in_kernel(&self) -> Outcome {
        let mut outcome = Outcome::default();
        let script = self.folder.join("bpf_links_left.py");
        match process::output(Command::new("python3").arg(script)) {
            Ok(left) if left.trim().is_empty() => {
                outcome.hold("every BPF link has a process".to_owned());
            }
            Ok(left) => outcome.lose(format!("BPF links without a process: {}", left.trim())),
            Err(error) => outcome.lose(format!("BPF links can't be counted: {error:#}")),
        }
        outcome
    }
}

/// What was written on the stage, the end of each file.
fn said(work: &Path) -> String {
    let mut all = String::new();
    for name in ["log", "results"] {
        all.push_str(&format!(
            "--- {name}\n{}",
            tail(&work.join(name)).unwrap_or_default()
        ));
    }
    let outputs = std::fs::read_dir(work.join("out"))
        .into_iter()
        .flatten()
        .flatten();
    for entry in outputs {
        let text = tail(&entry.path()).unwrap_or_default();
        all.push_str(&format!("--- {}\n{text}", entry.file_name().display()));
    }
    all
}

/// The end of a file, escapes shown.
fn tail(file: &Path) -> anyhow::Result<String> {
    /// Bytes of each file that are worth showing.
    const SHOWN: usize = 4_000;
    let bytes = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
    if bytes.is_empty() {
        bail!("nothing in it");
    }
    let end = &bytes[bytes.len().saturating_sub(SHOWN)..];
    let text = String::from_utf8_lossy(end);
    Ok(text.replace('\u{1b}', "␛") + "\n")
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn an_attack_of_which_nothing_was_checked_has_not_been_withstood() {
        let mut outcome = Outcome::default();
        assert!(!outcome.held());
        assert_eq!(outcome.lost().len(), 1);
        outcome.read("held: it ended\n");
        assert!(outcome.held());
        outcome.read("lost: a file is another\nrubbish\n");
        assert!(!outcome.held());
        assert_eq!(outcome.lost().len(), 2);
    }
}
