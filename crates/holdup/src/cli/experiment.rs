//! The command line of experiments: `holdup try`.

use super::{JvmArgs, ReportArgs, UserArgs};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = TRY_STATUS, override_usage = "holdup try --without CAUSE [OPTIONS] -- CMD [ARG]...")]
pub(crate) struct TryArgs {
    /// Wait to remove: disk.sync, timer.sleep, net.dns, random.device; with --memory also disk and lock.file
    #[arg(long, value_name = "CAUSE")]
    pub(crate) without: String,
    /// Directory that CMD writes to; in runs without the wait, these writes stay in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) memory: Option<PathBuf>,
    /// Number of runs with the wait, and of runs without it
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) runs: u32,
    /// Do not ask for confirmation before CMD runs
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Time limit for each run
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Shell command to run before each run, to restore the initial state; not measured
    #[arg(long, value_name = "CMD")]
    pub(crate) prepare: Option<OsString>,
    /// Shell command to run once, before the first run
    #[arg(long, value_name = "CMD")]
    pub(crate) warmup: Option<OsString>,
    /// Shell command to run after each run; not measured
    #[arg(long, value_name = "CMD")]
    pub(crate) cleanup: Option<OsString>,
    #[command(flatten)]
    pub(crate) user: UserArgs,
    /// Also write the report of each run to DIR as JSON, for `holdup diff`
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) jvm: JvmArgs,
    /// Command and its arguments; if stdin is a file, each run reads it from the start, else stdin is empty
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

const TRY_STATUS: &str = "Exit status: 0 with a verdict; 1 without one: too much of the wait remained, CMD failed, or the wait cannot be removed; \
                          127 if CMD was not found, 126 if it could not be executed, 125 if holdup itself failed, 2 for bad usage.";
