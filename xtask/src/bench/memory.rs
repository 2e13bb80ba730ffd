//! `cargo xtask bench memory`: what holdup keeps in memory while many threads wait all the time.
//! `cargo xtask bench volume`: and what it loses while there are very many waits and threads.

use crate::report::Report;
use crate::workspace;

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
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

/// How much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct VolumeArgs {
    /// Waits of two threads for each other
    #[arg(long, default_value_t = 10_000_000)]
    waits: u64,
    /// Threads that end as soon as they begin, meanwhile
    #[arg(long, default_value_t = 100_000)]
    threads: u64,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// How often to look at holdup's memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often to print a figure on the way where it is not known how long it takes.
const VOLUME_STAGE: Duration = Duration::from_secs(10);

/// How many figures on the way to print: enough to see whether it grows.
const STAGES: u32 = 5;

/// Measures and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    println!(
        "{} threads, ten waits a second each, {} s",
        args.threads, args.seconds
    );
    let words = [
        "threads".to_owned(),
        args.threads.to_string(),
        args.seconds.to_string(),
    ];
    let stage = Duration::from_secs(args.seconds) / STAGES;
    observe(args.holdup.as_deref(), &words, stage).map(drop)
}

/// Measures and prints.
pub(super) fn volume(args: &VolumeArgs) -> anyhow::Result<()> {
    println!("{} waits and {} threads", args.waits, args.threads);
    let words = [
        "volume".to_owned(),
        args.waits.to_string(),
        args.threads.to_string(),
    ];
    let report = observe(args.holdup.as_deref(), &words, VOLUME_STAGE)?;
    let count = |prefixes: [&str; 2]| -> u64 {
        let causes = report.threads.iter().flat_map(|thread| &thread.causes);
        causes
            .filter(|cause| !prefixes.iter().any(|prefix| cause.cause.starts_with(prefix)))
            .map(|cause| cause.count)
            .sum()
    };
    println!("  seen         {:>8} waits", count(["cpu.", "sched."]));
    println!(
        "  threads      {:>8}",
        report.threads.iter().map(|thread| thread.threads).sum::<u64>()
    );
    for lost in &report.coverage.lost {
        println!("  lost         {:>8} {}, {} ns", lost.count, lost.what, lost.ns);
    }
    if report.coverage.lost.is_empty() {
        println!("  lost         nothing");
    }
    Ok(())
}

/// Runs a workload under holdup, prints its memory on the way and at its peak, and returns the report.
fn observe(holdup: Option<&Path>, workload: &[String], stage: Duration) -> anyhow::Result<Report> {
    let holdup = workspace::holdup(holdup)?;
    let file = workspace::scratch("bench")?.join("memory.json");
    let mut child = Command::new(holdup)
        .arg("run")
        .arg("--json")
        .arg(&file)
        .arg("--")
        .arg(std::env::current_exe().context("the path of this program")?)
        .args(["bench", "workload"])
        .args(workload)
        .stderr(Stdio::null())
        .spawn()
        .context("start holdup")?;
    let status_file = format!("/proc/{}/status", child.id());
    let began = Instant::now();
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
    let text = std::fs::read_to_string(&file).context("read the report")?;
    serde_json::from_str(&text).context("understand the report")
}

/// A line of `/proc/PID/status`, in KiB.
pub(super) fn kib(status: &str, key: &str) -> Option<u64> {
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
