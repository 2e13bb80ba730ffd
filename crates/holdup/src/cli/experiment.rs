//! The command line of experiments: `holdup try`.

use super::{JvmArgs, ReportArgs, UserArgs};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = TRY_STATUS, override_usage = "holdup try --without CAUSE [OPTIONS] -- CMD [ARG]...")]
pub(crate) struct TryArgs {
    /// What to take away: disk.sync, timer.sleep, net.dns, random.device; with --memory also disk and lock.file
    #[arg(long, value_name = "CAUSE")]
    pub(crate) without: String,
    /// The directory below which CMD writes: without, that stays in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) memory: Option<PathBuf>,
    /// How often CMD runs each way
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) runs: u32,
    /// Do not ask whether CMD may run that often
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// How long a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// A shell command before each run, outside the clock: to set things back
    #[arg(long, value_name = "CMD")]
    pub(crate) prepare: Option<OsString>,
    /// A shell command once, before the first run
    #[arg(long, value_name = "CMD")]
    pub(crate) warmup: Option<OsString>,
    /// A shell command after each run, outside the clock
    #[arg(long, value_name = "CMD")]
    pub(crate) cleanup: Option<OsString>,
    #[command(flatten)]
    pub(crate) user: UserArgs,
    /// Write the report of every run to DIR too, as JSON, for `holdup diff`
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) jvm: JvmArgs,
    /// The command and its arguments; a file on stdin is given to each run from its start, nothing else is
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

const TRY_STATUS: &str = "Exit status: 0 with a verdict; 1 without: too much of the wait was left, CMD failed, or it can't be taken away; 127 \
                          if CMD was not found, 126 if it could not be executed, 125 if holdup itself failed, 2 for bad usage.";
