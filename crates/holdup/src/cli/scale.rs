//! The part of the command line that is about many workers.

use super::{Backend, ReportArgs, UserArgs};
use crate::commands::scale::{timeout, worker_number};
use crate::lengths;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = SCALE_STATUS, override_usage = SCALE_USAGE)]
#[command(group = clap::ArgGroup::new("job").required(true).args(["read", "getrandom", "sync", "lock", "dns", "command"]))]
pub(crate) struct ScaleArgs {
    /// Numbers of workers; 1 is always measured, for all is told from there
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8,16", value_parser = worker_number)]
    pub(crate) workers: Vec<u32>,
    /// Workers read PATH, a file or a device such as /dev/urandom
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Option<PathBuf>,
    /// Workers call getrandom
    #[arg(long)]
    pub(crate) getrandom: bool,
    /// Workers write to a file of their own in DIR and wait until it is safe (fsync)
    #[arg(long, value_name = "DIR")]
    pub(crate) sync: Option<PathBuf>,
    /// Workers lock PATH (flock), read it, and unlock it
    #[arg(long, value_name = "PATH")]
    pub(crate) lock: Option<PathBuf>,
    /// Workers ask this name server, an address with or without a port
    #[arg(long, value_name = "SERVER")]
    pub(crate) dns: Option<String>,
    /// What name they ask for
    #[arg(long, value_name = "HOST", default_value = "localhost", requires = "dns")]
    pub(crate) name: String,
    /// Bytes of each read or write, with K or M; 4096 if not said, and 64K for --lock
    #[arg(long, value_name = "SIZE", value_parser = operation_size)]
    size: Option<u64>,
    /// Compare with readers of this file or device; else of a file of each worker's own in memory, and a command with a computation
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// How often each point is measured
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeats: u32,
    /// Operations of each worker in a measurement; else as many as take a moment
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) operations: Option<u64>,
    /// The longest that one operation, or one run of CMD, may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = timeout)]
    pub(crate) timeout: Duration,
    /// What the order of measuring is drawn with; a report has it
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) user: UserArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Where the names of what is waited for come from: bpf; proc names nothing and takes the kernel's counters alone
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    /// The command that each worker runs again and again, and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

impl ScaleArgs {
    /// Bytes of an operation.
    pub(crate) fn size(&self) -> usize {
        let usual = if self.lock.is_some() { LOCKED } else { PAGE };
        usize::try_from(self.size.unwrap_or(usual)).unwrap_or(usize::MAX)
    }
}

const SCALE_USAGE: &str = "holdup scale [OPTIONS] (--read PATH | --getrandom | --sync DIR | --lock PATH | --dns SERVER | -- CMD [ARG]...)";

const SCALE_STATUS: &str = "Exit status: 0 if all was measured, whatever came of it; 125 if it could not be, 127 if CMD was not found, \
                            126 if it could not be executed, 130 after Ctrl-C, 2 for bad usage.";

/// Bytes of a read, as report tools and libraries read devices: a page.
const PAGE: u64 = 4_096;

/// Bytes that are read under a lock: reading them takes several times what locking does, so that most of the time somebody has it.
const LOCKED: u64 = 64 << 10;

/// Bytes of an operation at most: what is larger tells of memory, and of nothing else.
const LARGEST: u64 = 64 << 20;

/// Reads a number of bytes.
fn operation_size(text: &str) -> Result<u64, String> {
    lengths::size(text)
        .ok()
        .filter(|bytes| *bytes <= LARGEST)
        .ok_or_else(|| "a number of bytes from 1 to 64M".to_owned())
}
