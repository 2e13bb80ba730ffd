//! Queries in SQL over the recordings of many hosts in object storage.
//!
//! A program and a workspace of its own, found by `holdup-fleet`, because the query engine takes minutes to build. In: a
//! store's URL, a query and a time. Out: rows on stdout, and on stderr what was read and what could not be. Which segments there are,
//! each once, says the same crate that `holdup fleet show` asks; the engine reads their columns through the same store.

mod cli;
mod condition;
mod output;
mod part;
mod query;
mod reader;
mod recordings;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Exit status when this program itself failed, as holdup's own.
const OWN_FAILURE: u8 = 125;

/// Exit status of bad usage, and of a query that makes no sense.
const BAD_USAGE: u8 = 2;

/// Bytes of stack of the thread that plans: queries are trees, and long ones are deep.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let args = match cli::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            error.print().unwrap_or_default();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(BAD_USAGE));
        }
    };
    // A panic of the engine over somebody's object is a damaged object, and is said as one.
    std::panic::set_hook(Box::new(|_| {}));
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let result = thread
        .spawn(move || query::run(&args))
        .map(|thread| thread.join());
    let failed = match result {
        Ok(Ok(Ok(()))) => return ExitCode::SUCCESS,
        Ok(Ok(Err(failed))) => failed,
        Ok(Err(_)) => anyhow::anyhow!("the query engine failed on this query"),
        Err(error) => anyhow::anyhow!("cannot start a thread: {error}"),
    };
    say(&format!("{failed:#}"));
    ExitCode::from(match failed.is::<holdup_store::Usage>() {
        true => BAD_USAGE,
        false => OWN_FAILURE,
    })
}

/// One line on stderr. Where nobody reads it, nobody does.
fn say(text: &str) {
    let line = format!("holdup fleet: {}\n", output::printable(text));
    std::io::stderr().write_all(line.as_bytes()).unwrap_or_default();
}
