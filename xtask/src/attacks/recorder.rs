//! A recorder of the whole machine beside an attack, and whether it wrote every segment.
//!
//! In: the holdup binary. Out: what is missing between the first segment and the end, from the names and times of the files
//! in the recorder's folder; whether it ended when it was asked to.

use super::baseline::Baseline;
use super::cgroup::{Cgroup, Mount};
use super::stage::Outcome;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The shortest segment that `record` takes.
const SEGMENT: Duration = Duration::from_secs(5);

/// Segments' times that may pass from one file to the next: one that is late is ended after another segment's time, and its successor
/// needs its own. What a busy machine adds is measured ([`Baseline`]).
const SEGMENTS_BETWEEN: u32 = 3;

/// How long a recorder may take to end, and to begin.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// How long to wait before the next look.
const PAUSE: Duration = Duration::from_millis(50);

/// A recorder that runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    child: Child,
    folder: tempfile::TempDir,
    _cgroup: Cgroup,
    ready: SystemTime,
    longest_gap: Duration,
}

impl Recorder {
    /// Starts it, and waits until it observes.
    pub(crate) fn start(holdup: &Path, cgroups: &Mount, baseline: Baseline) -> anyhow::Result<Recorder> {
        let cgroup = cgroups.make("attacks-recorder")?;
        let folder = tempfile::Builder::new()
            .prefix("holdup-attacks-record-")
            .tempdir()
            .context("make a folder for recordings")?;
        let child = Command::new("sh")
            .args(["-c", r#"echo $$ >"$0/cgroup.procs"; exec "$@""#])
            .arg(cgroup.folder())
            .arg(holdup)
            .args(["record", "--every", &format!("{}s", SEGMENT.as_secs()), "--dir"])
            .arg(folder.path().join("recordings"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start the recorder")?;
        let mut recorder = Recorder {
            child,
            folder,
            _cgroup: cgroup,
            ready: SystemTime::now(),
            longest_gap: SEGMENTS_BETWEEN * SEGMENT + baseline.time_limit(),
        };
        let began = Instant::now();
        // The first file is there when the first segment is over; its lock when it has begun.
        while !recorder.folder.path().join("recordings/.recorder").exists() {
            if recorder
                .child
                .try_wait()
                .context("look at the recorder")?
                .is_some()
                || began.elapsed() > ENDS_WITHIN
            {
                bail!("the recorder did not start");
            }
            std::thread::sleep(PAUSE);
        }
        recorder.ready = SystemTime::now();
        Ok(recorder)
    }

    /// Ends it with SIGTERM and says what is missing.
    pub(crate) fn judge(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        if let Err(error) = self.look(&mut outcome) {
            outcome.lose(format!("the recorder can't be judged: {error:#}"));
        }
        outcome
    }

    fn look(&mut self, outcome: &mut Outcome) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait().context("look at the recorder")? {
            outcome.lose(format!("the recorder ended by itself: {status}"));
            return Ok(());
        }
        let over = SystemTime::now();
        let pid = i32::try_from(self.child.id()).context("a process id is positive")?;
        kill(Pid::from_raw(pid), Signal::SIGTERM).context("end the recorder")?;
        let asked = Instant::now();
        let status = loop {
            match self.child.try_wait().context("wait for the recorder")? {
                Some(status) => break Some(status),
                None if asked.elapsed() > ENDS_WITHIN => break None,
                None => std::thread::sleep(PAUSE),
            }
        };
        match status {
            None => outcome.lose("the recorder did not end at SIGTERM".to_owned()),
            Some(status) if !status.success() => {
                outcome.lose(format!("the recorder ended with {status}"));
            }
            Some(_) => {}
        }
        let written = self.written()?;
        let gap = longest_gap(self.ready, &written, over);
        if gap > self.longest_gap {
            outcome.lose(format!(
                "the recorder beside it wrote no segment for {:.0} s",
                gap.as_secs_f64()
            ));
        } else {
            outcome.hold(format!("{} segments beside it", written.len()));
        }
        Ok(())
    }

    /// When each segment was written.
    fn written(&self) -> anyhow::Result<Vec<SystemTime>> {
        let mut times = Vec::new();
        let folder = self.folder.path().join("recordings");
        for entry in std::fs::read_dir(&folder).context("read the recorder's folder")? {
            let entry = entry.context("read the recorder's folder")?;
            if entry.path().extension().is_some_and(|one| one == "parquet") {
                times.push(
                    entry
                        .metadata()
                        .and_then(|meta| meta.modified())
                        .context("look at a segment")?,
                );
            }
        }
        times.sort();
        Ok(times)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // One that has ended can't be killed again, as it should be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The longest time in which no segment was written between two instants.
fn longest_gap(from: SystemTime, written: &[SystemTime], to: SystemTime) -> Duration {
    let mut longest = Duration::ZERO;
    let mut last = from;
    for &time in written.iter().filter(|time| **time <= to).chain([&to]) {
        longest = longest.max(time.duration_since(last).unwrap_or_default());
        last = time;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::longest_gap;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_gap_is_found_at_either_end_and_between() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let gap = |written: &[u64]| {
            let written: Vec<SystemTime> = written.iter().map(|&seconds| at(seconds)).collect();
            longest_gap(at(100), &written, at(130)).as_secs()
        };
        assert_eq!(gap(&[]), 30);
        assert_eq!(gap(&[105, 110, 115, 120, 125]), 5);
        assert_eq!(gap(&[105, 125, 131]), 20);
        assert_eq!(gap(&[112]), 18);
    }
}
