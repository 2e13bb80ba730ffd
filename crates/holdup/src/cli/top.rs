//! The part of the command line that is about watching live.

use super::{Backend, process_id};
use crate::cli::budget::BudgetArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = TOP_STATUS)]
pub(crate) struct TopArgs {
    /// Only these processes and their descendants; may be repeated. A thread ID stands for its process
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = process_id)]
    pub(crate) pid: Vec<u32>,
    /// Only the processes of a systemd unit; may be repeated
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Vec<String>,
    /// Show the recordings in DIR, made by `holdup record`, instead of this machine now; Left and Right go from one to the next
    #[arg(long, value_name = "DIR", conflicts_with_all = ["pid", "unit", "budget", "backend"])]
    pub(crate) dir: Option<PathBuf>,
    /// How to observe threads; auto samples /proc, which costs least
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    /// No colours, as with --color never
    #[arg(long)]
    pub(crate) no_color: bool,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}

const TOP_STATUS: &str =
    "Exit status: 0; 125 if holdup itself failed, or the terminal cannot show a screen; 2 for bad usage.";
