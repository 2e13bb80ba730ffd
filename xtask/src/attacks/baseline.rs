//! What holdup costs here and now when nobody attacks it.
//!
//! In: the holdup binary. Out: how long `attach` to an innocent process takes, and its CPU time. The limits of all attacks
//! are multiples of these with a floor, so that a slow or busy machine fails no attack that holdup withstood.

use super::cgroup::Mount;
use anyhow::{Context, bail};
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A limit is this plus [`FACTOR`] times the baseline.
const FLOOR: Duration = Duration::from_secs(10);

/// The other half of a limit: other work on a machine of two CPUs makes a run twice as long, seldom three times.
const FACTOR: u32 = 3;

/// What an innocent `attach -d 1` takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Baseline {
    elapsed: Duration,
    cpu: Duration,
}

impl Baseline {
    /// Measures it, once.
    pub(crate) fn measure(holdup: &Path, cgroups: &Mount) -> anyhow::Result<Baseline> {
        let cgroup = cgroups.make("attacks-baseline")?;
        let mut innocent = Command::new("sleep")
            .arg("1000")
            .process_group(0)
            .spawn()
            .context("start an innocent process")?;
        let began = Instant::now();
        let status = Command::new("sh")
            .args(["-c", r#"echo $$ >"$0/cgroup.procs"; exec "$@""#])
            .arg(cgroup.folder())
            .arg(holdup)
            .args(["attach", "-d", "1", "-p", &innocent.id().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let elapsed = began.elapsed();
        innocent.kill().context("end the innocent process")?;
        innocent.wait().context("wait for the innocent process")?;
        let status = status.context("start holdup")?;
        if !status.success() {
            bail!("holdup attach to an innocent process failed: {status}");
        }
        Ok(Baseline {
            elapsed,
            cpu: cgroup.cpu()?,
        })
    }

    /// The longest that an observation of a second may take.
    pub(crate) fn time_limit(self) -> Duration {
        FLOOR + FACTOR * self.elapsed
    }

    /// The most CPU time that it may use, with all its children.
    pub(crate) fn cpu_limit(self) -> Duration {
        FLOOR + FACTOR * self.cpu
    }

    /// How long it takes.
    pub(crate) fn elapsed(self) -> Duration {
        self.elapsed
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an innocent attach of 1 s takes {:.2} s and {:.2} s of CPU; the limits are {:.1} s and {:.1} s of CPU",
            self.elapsed.as_secs_f64(),
            self.cpu.as_secs_f64(),
            self.time_limit().as_secs_f64(),
            self.cpu_limit().as_secs_f64()
        )
    }
}
