//! The part of the command line that is about a whole machine.

use super::{BudgetArgs, GateArgs, RecordingArgs, ReportArgs, seconds};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = HOST_STATUS)]
pub(crate) struct HostArgs {
    /// How long to observe; Ctrl-C ends it earlier
    #[arg(short, long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub(crate) duration: f64,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
}

const HOST_STATUS: &str = "Exit status: 0, with or without findings; with --fail-on, 1 if a condition holds, 3 if that cannot be \
     determined; 125 if holdup itself failed, 2 for bad usage.";
