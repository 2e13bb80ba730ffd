//! Cgroups (version 2) of the attacks: what counts the CPU time of holdup with all its children, and what ends every
//! process of an attack however it forked.
//!
//! In: a name. Out: a folder of the cgroup file system; it is emptied and removed when dropped. No controller is needed.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long killed processes may take to be gone: one that waits for a FUSE daemon goes when the daemon has gone.
const EMPTY_WITHIN: Duration = Duration::from_secs(20);

/// How long to wait before the next look at what is being ended.
const PAUSE: Duration = Duration::from_millis(20);

/// Where the cgroup file system is.
#[derive(Debug, Clone)]
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Finds it in the list of mounts.
    pub(crate) fn find() -> anyhow::Result<Mount> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").context("read the list of mounts")?;
        let found = mounts.lines().find_map(|line| {
            let mut words = line.split(' ');
            let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(place))
        });
        match found {
            Some(place) => Ok(Mount(place)),
            None => bail!("no cgroup2 is mounted here, and the attacks count CPU time with it"),
        }
    }

    /// Makes a cgroup.
    pub(crate) fn make(&self, name: &str) -> anyhow::Result<Cgroup> {
        let folder = self.0.join(format!("holdup-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| format!("make the cgroup {}", folder.display()))?;
        Ok(Cgroup(folder))
    }
}

/// A cgroup and those below it.
#[derive(Debug)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// The CPU time of all that ever ran in it.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let text = std::fs::read_to_string(self.0.join("cpu.stat")).context("read cpu.stat")?;
        let used = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let used = used.context("cpu.stat has no usage_usec")?;
        Ok(Duration::from_micros(
            used.parse().context("understand cpu.stat")?,
        ))
    }

    /// Sends SIGKILL to all that runs in it.
    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        std::fs::write(self.0.join("cgroup.kill"), "1").context("kill a cgroup")
    }

    /// Kills all that runs in it, and removes it.
    fn remove(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            self.kill()?;
            let events = std::fs::read_to_string(self.0.join("cgroup.events")).unwrap_or_default();
            if events.contains("populated 0") {
                break;
            }
            if began.elapsed() > EMPTY_WITHIN {
                bail!("processes of {} can't be ended", self.0.display());
            }
            std::thread::sleep(PAUSE);
        }
        remove_tree(&self.0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("xtask: {error:#}");
        }
    }
}

/// Removes the folders of a cgroup from the innermost outwards; their files go with them.
fn remove_tree(folder: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry.context("read a cgroup")?.path();
        if path.is_dir() {
            remove_tree(&path)?;
        }
    }
    std::fs::remove_dir(folder).with_context(|| format!("remove {}", folder.display()))
}
