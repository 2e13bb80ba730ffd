//! What is this slow or stuck program waiting for?
//!
//! In: a command line. Out: a verdict, and an exit status. Each command is a file of [`commands`].

mod cli;
mod collect;
mod commands;
mod inherited;
mod output;
mod signals;
mod subject;
mod terminal;
mod usage;
mod verdict;

use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = Cli::read().and_then(|cli| match cli.command {
        Command::Run(args) => commands::run::run(&args, cli.color),
        Command::Read(args) => commands::read::run(&args, cli.color),
        Command::Explain(args) => commands::explain::run(&args, cli.color),
        Command::Doctor => commands::doctor::run(),
        Command::Generate(what) => commands::generate::run(&what),
    });
    ExitCode::from(result.unwrap_or_else(|error| output::say_error(&error)))
}
