//! The part of the command line that is about agents.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Let the tool observe also run commands, unchanged or without a wait, as `run` and `try` do
    ///
    /// The commands have the rights of the server. Leave it off unless the client asks a person before each call.
    #[arg(long)]
    pub(crate) allow_try: bool,
}
