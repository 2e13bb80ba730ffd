//! What is this slow or stuck program waiting for?
//!
//! In: a command line. Out: a verdict, and an exit status. Each command is a file of [`commands`].

mod cli;
mod commands;
mod experiment;
mod gate;
mod output;
mod progress;
mod recorded;
mod saved;
mod scale;
mod terminal;
mod usage;
mod verdict;

use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = Cli::read().and_then(|cli| match cli.command {
        Command::Run(args) => commands::run::run(&args, cli.color),
        Command::Attach(args) => commands::attach::run(&args, cli.color),
        Command::Read(args) => commands::read::run(&args, cli.color),
        Command::Show(args) => commands::show::run(&args, cli.color),
        Command::Host(args) => commands::host::run(&args, cli.color),
        Command::Boot(args) => commands::boot::run(&args, cli.color),
        Command::Diff(args) => commands::diff::run(&args, cli.color),
        Command::Scale(args) => commands::scale::run(&args, cli.color),
        Command::ScaleWork { plan } => scale::lead(&plan),
        Command::Try(args) => commands::r#try::run(&args, cli.color),
        Command::Record(args) => commands::record::run(&args),
        Command::Fleet { arguments } => commands::fleet::run(&arguments),
        Command::Explain(args) => commands::explain::run(&args, cli.color),
        Command::Doctor(args) => commands::doctor::run(&args, cli.color),
        Command::Mcp(args) => commands::mcp::run(&args),
        Command::Completions(args) => commands::completions::run(args.shell),
        Command::Generate(what) => commands::generate::run(&what),
    });
    ExitCode::from(result.unwrap_or_else(|error| output::say_error(&error)))
}
