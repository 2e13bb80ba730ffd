//! `cargo xtask bench memory`: what holdup keeps in memory while many threads wait all the time.

use crate::workspace;

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Threads of the observed program
    #[arg(long, default_value_t = 4_000)]
    threads: usize,
    /// How long it runs; the figure to keep is for 600
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// How often to look at holdup's memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How many figures on the way to print: enough to see whether it grows.
const STAGES: u32 = 5;

/// Measures and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let mut child = Command::new(holdup)
        .arg("run")
        .arg("--json")
        .arg(workspace::scratch("bench")?.join("memory.json"))
        .arg("--")
        .arg(std::env::current_exe().context("the path of this program")?)
        .args([
            "bench",
            "workload",
            "threads",
            &args.threads.to_string(),
            &args.seconds.to_string(),
        ])
        .stderr(Stdio::null())
        .spawn()
        .context("start holdup")?;

    println!(
        "{} threads, ten waits a second each, {} s",
        args.threads, args.seconds
    );
    let status_file = format!("/proc/{}/status", child.id());
    let began = Instant::now();
    let stage = Duration::from_secs(args.seconds) / STAGES;
    let mut next = stage;
    let mut peak = None;
    let status = loop {
        if let Some(status) = child.try_wait().context("wait for holdup")? {
            break status;
        }
        // A process that has just ended has no such lines, or no such file.
        let text = std::fs::read_to_string(&status_file).unwrap_or_default();
        peak = kib(&text, "VmHWM:").or(peak);
        if began.elapsed() >= next
            && let Some(now) = kib(&text, "VmRSS:")
        {
            println!(
                "  after {:>4.0} s {:>8.1} MB",
                began.elapsed().as_secs_f64(),
                megabytes(now)
            );
            next += stage;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if !status.success() {
        bail!("holdup failed: {status}");
    }
    let peak = peak.context("holdup ended before its memory could be read")?;
    println!("  peak         {:>8.1} MB", megabytes(peak));
    Ok(())
}

/// A line of `/proc/PID/status`, in KiB.
fn kib(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::kib;

    #[test]
    fn reads_proc_status() {
        let status = "Name:\tholdup\nVmHWM:\t   12345 kB\nVmRSS:\t     678 kB\n";
        assert_eq!(kib(status, "VmHWM:"), Some(12_345));
        assert_eq!(kib(status, "VmRSS:"), Some(678));
        assert_eq!(kib("Name:\tholdup\n", "VmRSS:"), None);
    }
}
