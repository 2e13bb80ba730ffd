//! The arguments of `holdup explain`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// ID of a rule or cause, such as crng-not-seeded or disk.sync
    #[arg(value_name = "RULE|CAUSE")]
    pub(crate) name: Option<String>,
    /// Also print the examples
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
