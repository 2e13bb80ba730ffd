//! The part of the command line that is about a boot.

use super::ReportArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = BOOT_STATUS)]
pub(crate) struct BootArgs {
    /// Kernel log, from dmesg or journalctl -k; - is stdin; may be repeated, as the other options
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel_log: Vec<PathBuf>,
    /// Journal, from journalctl -b, in any of its output formats
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Vec<PathBuf>,
    /// Output of systemd-analyze critical-chain, time, blame, dump or plot
    #[arg(long, value_name = "FILE")]
    pub(crate) critical_chain: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const BOOT_STATUS: &str = "Exit status: 0 if any input was recognised, with or without findings; 1 if none was; 125 if \
                           holdup itself failed, 2 for bad usage.";
