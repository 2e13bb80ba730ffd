//! Many hosts: their recordings in object storage, and one report of them.
//!
//! A program of its own, found by `holdup fleet`, so that what talks to stores (TLS, signatures, an async runtime) is no part of the agent,
//! which may be root. In: a store's URL. Out: segments brought there ([`upload`]), hours made of minutes ([`compact`]), and a report
//! ([`show`]), for which each host is judged by `holdup show` itself; two times of the same hosts ([`diff`]). Queries are run by yet another
//! program ([`sql`]).

mod cli;
mod combine;
mod compact;
mod diff;
mod fetch;
mod hosts;
mod joins;
mod judge;
mod machine;
mod show;
mod sql;
#[cfg(test)]
mod testing;
mod upload;

use clap::Parser;
use cli::{Cli, Command};
use holdup_store::{Usage, layout, listing, store};
use std::io::Write;
use std::process::ExitCode;

/// Exit status when this program itself failed, as holdup's own.
const OWN_FAILURE: u8 = 125;

/// Exit status of bad usage.
const BAD_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            error.print().unwrap_or_default();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(BAD_USAGE));
        }
    };
    let result = match cli.command {
        Command::Upload(args) => upload::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Compact(args) => compact::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Sql(arguments) => sql::run(&arguments),
    };
    ExitCode::from(result.unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        match error.is::<Usage>() {
            true => BAD_USAGE,
            false => OWN_FAILURE,
        }
    }))
}

/// One line on stderr. Nobody who reads it: then nobody does.
fn say(text: &str) {
    let line = format!("holdup fleet: {}\n", holdup_views::text::printable(text, true));
    std::io::stderr().write_all(line.as_bytes()).unwrap_or_default();
}
