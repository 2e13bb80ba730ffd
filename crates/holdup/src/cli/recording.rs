//! The part of the command line that is about recordings.

use super::{ReportArgs, buffer_size};
use crate::commands::record::Condition;
use crate::lengths;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct RecordingArgs {
    /// Write a recording to FILE too: Parquet, for `holdup show` and any engine that reads that
    ///
    /// For its owner alone (mode 0600), all of it or nothing. Passwords, tokens and the like are masked in arguments.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Take more out of the recording: all arguments, what is below home directories, the host's name
    #[arg(long, requires = "output")]
    pub(crate) redact: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_STATUS)]
pub(crate) struct ShowArgs {
    /// A recording, or a directory of them
    #[arg(value_name = "DIR|FILE", default_value = holdup_recording::DIRECTORY)]
    pub(crate) path: PathBuf,
    /// What was at TIME: 13:05, '2026-11-22 13:05', or RFC 3339 with its zone; without a date the last time it was that late
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Only the last 10m, 90s, 2h, 1d: of the recording, or before TIME
    #[arg(long, value_name = "LENGTH", value_parser = lengths::length)]
    pub(crate) last: Option<Duration>,
    /// Only processes of this name, or with this id
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Option<String>,
    /// Only this cause, such as disk.sync, or all of an area, such as disk
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
    /// Only the time in which a thread had a request to answer
    #[arg(long, conflicts_with = "process")]
    pub(crate) request: bool,
    /// Find the segments that were unlike the others, and say what they waited for
    #[arg(long)]
    pub(crate) worst: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const SHOW_STATUS: &str = "Exit status: 0 if something was recorded then; 1 if nothing was; 125 if a recording can't be read, 2 \
                           for bad usage.";

#[derive(Debug, Args)]
#[command(after_help = RECORD_STATUS)]
pub(crate) struct RecordArgs {
    /// Folder for the recordings; made for its owner alone where it is not there
    #[arg(long, value_name = "DIR", default_value = holdup_recording::DIRECTORY)]
    pub(crate) dir: PathBuf,
    /// Length of a segment
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = segment_length)]
    pub(crate) every: Duration,
    /// How long to keep recordings
    ///
    /// By the time since boot, where they are of this boot: a clock that is set, forward or back, has none of them removed. Those of earlier
    /// boots have a date only, and are kept longer rather than shorter where this boot has had several clocks.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = lengths::length)]
    pub(crate) keep: Duration,
    /// How much room all recordings may take; the oldest go first
    #[arg(long, value_name = "SIZE", value_parser = lengths::size)]
    pub(crate) keep_size: Option<u64>,
    /// Only the processes of a systemd unit; may be given several times
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Vec<String>,
    /// Only the processes of a cgroup and of those below it, by its path
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// Keep full detail around moments at which a figure of the machine passes a limit: 'psi.io>20%'; may be given several times
    ///
    /// Figures: psi.cpu, psi.memory, psi.io (per cent of the last ten seconds that some thread waited for it), memory.available (per
    /// cent), load, blocked (tasks that wait for a disk). From then until a minute after, each wait is told and stacks are many, which
    /// costs more CPU; of segments that are not near such a moment the single pieces of the time line are not kept.
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse)]
    pub(crate) on: Vec<Condition>,
    /// Write the last segment's figures to FILE too, for node_exporter's textfile collector
    ///
    /// It is replaced whole, and readable for all: labels are names of causes, rules and processes, and nothing else.
    #[arg(long, value_name = "FILE.prom")]
    pub(crate) prometheus: Option<PathBuf>,
    /// Take more out of the recordings: all arguments, what is below home directories, the host's name
    #[arg(long)]
    pub(crate) redact: bool,
    /// Size of the buffer between the kernel and holdup
    ///
    /// A power of two, with K, M or G: 64K to 1G. Records that find it full are dropped and counted as lost.
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = buffer_size, hide_short_help = true)]
    pub(crate) buffer: u32,
}

const RECORD_STATUS: &str = "Exit status: 0 after Ctrl-C or SIGTERM, when all that was observed is written; 125 if holdup itself failed \
                             or another one records to that folder, 2 for bad usage.";

/// Reads the length of a segment: shorter ones would cost more to begin than to observe.
fn segment_length(text: &str) -> Result<Duration, String> {
    let length = lengths::length(text)?;
    (Duration::from_secs(5)..=Duration::from_secs(3_600))
        .contains(&length)
        .then_some(length)
        .ok_or_else(|| "a length of time from 5s to 1h".to_owned())
}
