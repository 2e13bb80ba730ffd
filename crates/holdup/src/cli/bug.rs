//! The part of the command line that is about reporting a bug.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = BUG_STATUS)]
pub(crate) struct BugArgs {
    /// Also include this report: a file that --json or --html wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Where to write; an existing file is not replaced
    #[arg(short, long, value_name = "FILE", default_value = "holdup-bug.md")]
    pub(crate) output: PathBuf,
}

const BUG_STATUS: &str = "Exit status: 0 if the file is written, 125 if not, 2 for bad usage.";
