//! A recorder that is measured: `holdup record`, with the processes that it starts and the programs that they load.

use crate::bench::program_counts::Held;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often to look at memory and for programs that are new.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Segments may come so many times later than they are due before it is given up.
const PATIENCE: u32 = 3;

/// One that runs.
#[derive(Debug)]
pub(super) struct Recorder {
    child: Child,
    folder: PathBuf,
    every: Duration,
    held: Held,
    memory: u64,
}

/// What it has taken since it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// CPU time of its processes, nanoseconds.
    pub(super) cpu: u64,
    /// Run time of its BPF programs, nanoseconds.
    pub(super) programs: u64,
    /// Memory of its processes at its most, what they share counted once, bytes.
    pub(super) memory: u64,
}

impl Recorder {
    pub(super) fn start(holdup: &Path, folder: &Path, every: Duration) -> anyhow::Result<Recorder> {
        let child = Command::new(holdup)
            .args(["record", "--every", &format!("{}s", every.as_secs()), "--dir"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("start holdup record")?;
        Ok(Recorder {
            child,
            folder: folder.to_owned(),
            every,
            held: Held::default(),
            memory: 0,
        })
    }

    /// Waits until so many segments are there.
    pub(super) fn until(&mut self, count: usize) -> anyhow::Result<()> {
        let began = Instant::now();
        let most = self.every * PATIENCE * u32::try_from(count)?;
        while self.segments()?.len() < count {
            if let Some(status) = self.child.try_wait().context("wait for the recorder")? {
                bail!("the recorder ended: {status}");
            }
            if began.elapsed() > most {
                bail!("no {count} segments within {} s", most.as_secs());
            }
            self.look();
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn look(&mut self) {
        let mut memory = 0;
        for pid in self.processes() {
            self.held.look_at(pid);
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            memory += crate::bench::memory::kib(&text, "Pss:").unwrap_or_default() * 1024;
        }
        self.memory = self.memory.max(memory);
    }

    pub(super) fn taken(&mut self) -> anyhow::Result<Taken> {
        self.look();
        // What a process has waited for is in its own account, so that nobody is counted twice and nobody is missed.
        let cpu = self.processes().into_iter().filter_map(cpu_ns).sum();
        let programs = self.held.counts()?.values().map(|(_, ns)| ns).sum();
        Ok(Taken {
            cpu,
            programs,
            memory: self.memory,
        })
    }

    /// Itself, and those that it has started and they have.
    fn processes(&self) -> Vec<u32> {
        let mut known: BTreeSet<u32> = BTreeSet::from([self.child.id()]);
        let mut open = vec![self.child.id()];
        while let Some(pid) = open.pop() {
            let text =
                std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            for child in text.split_whitespace().filter_map(|word| word.parse().ok()) {
                if known.insert(child) {
                    open.push(child);
                }
            }
        }
        known.into_iter().collect()
    }

    /// Ends it as a person would.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).context("end the recorder")?;
        let status = self.child.wait().context("wait for the recorder")?;
        match status.success() {
            true => Ok(()),
            false => bail!("the recorder failed: {status}"),
        }
    }

    fn segments(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return Ok(Vec::new());
        };
        let mut segments: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
            .collect();
        segments.sort();
        Ok(segments)
    }

    /// Bytes of each segment, oldest first.
    pub(super) fn sizes(&self) -> anyhow::Result<Vec<u64>> {
        let segments = self.segments()?;
        let size = |path: &PathBuf| Ok(std::fs::metadata(path).context("look at a segment")?.len());
        segments.iter().map(size).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Neither can fail for a child that has not been waited for, nor matters for one that has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of a process and of those that it has waited for, nanoseconds.
fn cpu_ns(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    ticks(&stat).map(|ticks| ticks * 10_000_000)
}

/// User and system time of both, in the hundredths of a second of proc_pid_stat(5).
fn ticks(stat: &str) -> Option<u64> {
    // A name may have a parenthesis in it.
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    fields
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn time_is_a_process_own_and_its_childrens() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1 0 5";
        assert_eq!(ticks(stat), Some(127));
        assert_eq!(ticks("12 (a) S 1 2"), Some(0));
    }
}
