//! `cargo xtask VERB`: the developer's chores.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program for people"
)]

mod scenarios;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The developer's chores")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make real stalls and judge holdup by them
    Scenarios(scenarios::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().verb {
        Verb::Scenarios(args) => scenarios::run(args),
    }
}
