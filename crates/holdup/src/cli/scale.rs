//! The part of the command line that is about many workers.

use super::{Backend, ReportArgs, UserArgs};
use crate::commands::scale::{timeout, worker_number};
use clap::Args;
use holdup_times::lengths;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = SCALE_STATUS, override_usage = SCALE_USAGE)]
#[command(group = clap::ArgGroup::new("job").required(true).args(["read", "getrandom", "sync", "lock", "dns", "command"]))]
pub(crate) struct ScaleArgs {
    /// Numbers of workers; 1 is always measured, as the baseline
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8,16", value_parser = worker_number)]
    pub(crate) workers: Vec<u32>,
    /// Workers read PATH, a file or a device such as /dev/urandom
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Option<PathBuf>,
    /// Workers call getrandom
    #[arg(long)]
    pub(crate) getrandom: bool,
    /// Each worker writes to its own file in DIR and calls fsync
    #[arg(long, value_name = "DIR")]
    pub(crate) sync: Option<PathBuf>,
    /// Workers lock PATH (flock), read it, and unlock it
    #[arg(long, value_name = "PATH")]
    pub(crate) lock: Option<PathBuf>,
    /// Workers query this name server, an address with or without a port
    #[arg(long, value_name = "SERVER")]
    pub(crate) dns: Option<String>,
    /// Name that the workers query
    #[arg(long, value_name = "HOST", default_value = "localhost", requires = "dns")]
    pub(crate) name: String,
    /// Bytes per read or write, with K or M; default: 4096, and 64K for --lock
    #[arg(long, value_name = "SIZE", value_parser = operation_size)]
    size: Option<u64>,
    /// File or device that the control reads; default: a file in memory for each worker, and for CMD a computation
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Number of measurements at each point
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeats: u32,
    /// Operations of each worker in a measurement; default: chosen so that a measurement is short
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) operations: Option<u64>,
    /// Time limit for one operation or one run of CMD
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = timeout)]
    pub(crate) timeout: Duration,
    /// Seed for the random order of measurements; the report contains it
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) user: UserArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// How to observe waits: bpf names the resources; proc uses only the kernel's counters and names none
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    /// Command that each worker runs repeatedly, and its arguments
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

const SCALE_STATUS: &str = "Exit status: 0 if everything was measured, whatever the result; 125 if not, 127 if CMD was not found, \
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
