//! The part of the command line that is about recordings.

use super::{BudgetArgs, GateArgs, ReportArgs, buffer_size};
use crate::commands::record::Condition;
use clap::Args;
use holdup_times::lengths;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct RecordingArgs {
    /// Also write a recording to FILE, in Parquet, for `holdup show` and any Parquet engine
    ///
    /// Only its owner can read it (mode 0600). FILE is written whole or not at all. Passwords, tokens and keys in arguments are masked.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also remove all arguments, paths below home directories and the host name from the recording
    #[arg(long, requires = "output")]
    pub(crate) redact: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_STATUS)]
pub(crate) struct ShowArgs {
    /// A recording, or a directory of them
    #[arg(value_name = "DIR|FILE", default_value = holdup_recording::DIRECTORY)]
    pub(crate) path: PathBuf,
    /// Report on TIME: 13:05, '2026-11-22 13:05', or RFC 3339 with a time zone; without a date, the latest such time
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Only the last part of the recording, or the part before TIME: 10m, 90s, 2h or 1d
    #[arg(long, value_name = "LENGTH", value_parser = lengths::length)]
    pub(crate) last: Option<Duration>,
    /// Only processes with this name or ID
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Option<String>,
    /// Only this cause, such as disk.sync, or this group of causes, such as disk
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
    /// Only the time in which a thread served a request
    #[arg(long, conflicts_with = "process")]
    pub(crate) request: bool,
    /// Find the segments that differ most from the others, and report what they waited for
    #[arg(long)]
    pub(crate) worst: bool,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const SHOW_STATUS: &str = "Exit status: 0 if the recording covers that time; 1 if not; with --fail-on, 1 if a condition holds, 3 if \
                           that cannot be determined or nothing was recorded; 125 if a recording cannot be read, 2 for bad usage.";

#[derive(Debug, Args)]
#[command(after_help = RECORD_STATUS)]
pub(crate) struct RecordArgs {
    /// Directory for the recordings; if missing, it is created, readable by its owner only
    ///
    /// Default: /var/lib/holdup; with --to, /var/lib/holdup/upload, where a segment stays only until the store has it.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Also upload the recordings to object storage: s3://BUCKET/PREFIX or file:///DIRECTORY
    ///
    /// Needs the program holdup-fleet. A segment stays on the disk until the store has confirmed it. If the store does not take segments, at
    /// most --keep-size of them are kept, or 1 GiB; what is removed before it is uploaded is counted. Credentials, region and endpoint
    /// of S3 come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL.
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Length of a segment
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = segment_length)]
    pub(crate) every: Duration,
    /// How long to keep recordings
    ///
    /// The age of a recording of this boot is measured by the time since boot, so setting the clock removes none. Recordings of earlier
    /// boots have only a date. If the clock was set in this boot, they are kept longer rather than shorter.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = lengths::length)]
    pub(crate) keep: Duration,
    /// Total size limit of all recordings; the oldest are removed first
    #[arg(long, value_name = "SIZE", value_parser = lengths::size)]
    pub(crate) keep_size: Option<u64>,
    /// Only the processes of a systemd unit; may be repeated
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Vec<String>,
    /// Only the processes of a cgroup and its descendants, by path
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// Record full detail while a metric of the machine exceeds a limit, as in 'psi.io>20%'; may be repeated
    ///
    /// Metrics: psi.cpu, psi.memory, psi.io (percentage of the last ten seconds in which some thread waited for it), memory.available
    /// (percentage), load, blocked (tasks that wait for a disk). Full detail means each single wait and many stacks, and costs more CPU.
    /// It lasts until a minute after the metric is back. Other segments keep no detailed time line.
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse)]
    pub(crate) on: Vec<Condition>,
    /// Also write the metrics of the last segment to FILE, for the textfile collector of node_exporter
    ///
    /// Each segment replaces FILE atomically. All users can read it. Labels are only names of causes, rules and processes.
    #[arg(long, value_name = "FILE.prom")]
    pub(crate) prometheus: Option<PathBuf>,
    /// Also remove all arguments, paths below home directories and the host name from the recordings
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Size of the buffer between the kernel and holdup
    ///
    /// A power of two from 64K to 1G, with an optional suffix K, M or G. While the buffer is full, records are dropped and counted as lost.
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = buffer_size, hide_short_help = true)]
    pub(crate) buffer: u32,
}

impl RecordArgs {
    /// The directory to write to.
    pub(crate) fn directory(&self) -> PathBuf {
        match (&self.dir, &self.to) {
            (Some(dir), _) => dir.clone(),
            (None, None) => holdup_recording::DIRECTORY.into(),
            (None, Some(_)) => Path::new(holdup_recording::DIRECTORY).join(SPOOL),
        }
    }
}

/// Where segments wait for the store where nobody says where they are kept.
const SPOOL: &str = "upload";

const RECORD_STATUS: &str = "Exit status: 0 after Ctrl-C or SIGTERM, when everything observed is written; 125 if holdup itself failed \
                             or another holdup records to that directory, 2 for bad usage.";

/// Reads the length of a segment: shorter ones would cost more to begin than to observe.
fn segment_length(text: &str) -> Result<Duration, String> {
    let length = lengths::length(text)?;
    (Duration::from_secs(5)..=Duration::from_secs(3_600))
        .contains(&length)
        .then_some(length)
        .ok_or_else(|| "a length of time from 5s to 1h".to_owned())
}
