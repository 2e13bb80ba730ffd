//! `cargo xtask VERB`: the developer's chores, one file per verb.
//!
//! Depends on pure Rust crates only, never on holdup's own: it must build on a machine that has nothing but a
//! Rust toolchain, because it is what installs the rest. Results go to stdout, what it does to stderr.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program for people"
)]

mod artefacts;
mod attacks;
mod bench;
mod blind;
mod check;
mod demo;
mod dist;
mod field_report;
mod fleet_engines;
mod fuzz;
mod generate;
mod guest;
mod incidents;
mod new;
mod pages;
mod predictions;
mod process;
mod queries;
mod replay;
mod report;
mod scenarios;
mod setup;
mod speed;
mod tally;
mod test;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "The developer's chores",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install what is missing, build holdup, make a real stall and print its verdict
    Demo,
    /// Install what is missing and run every test, the scenarios and the guest
    Test(test::Args),
    /// What needs no privilege: formatting, lints, generated files, the shape of the workspace
    Check,
    /// Make what is released: a static binary, packages, an image, checksums
    Dist(dist::Args),
    /// Write the generated files: man pages, JSON schema, list of rules, index of pages
    Gen(generate::Args),
    /// Scaffold a rule
    New(new::Args),
    /// Record a server before and after its HTTP client was changed, find both again, and compare them
    FieldReport(field_report::Args),
    /// Make real stalls and judge holdup by them
    Scenarios(scenarios::Args),
    /// Read the sample artefacts of every format and judge holdup by them
    Artefacts(artefacts::Args),
    /// Judge `holdup read` by artefacts that strangers published; prints, never fails on a verdict
    Blind(blind::Args),
    /// Attack holdup as an ordinary user and check from outside that nothing was reached
    Attacks(attacks::Args),
    /// Make incidents that others had and judge the first sentence that holdup says of each
    Incidents(incidents::Args),
    /// Boot a guest without randomness and judge holdup by it
    Guest(guest::Args),
    /// Open pages that holdup wrote in a browser and use everything in them
    Pages(pages::Args),
    /// Judge recorded events again and say what changed: needs no privilege
    Replay(replay::Args),
    /// Run the queries of the page about recordings in the engines that they are for
    Queries(queries::Args),
    /// Ask Spark, ClickHouse and DuckDB for what `holdup fleet sql` says of a store, and compare to the nanosecond
    FleetEngines(fleet_engines::Args),
    /// Hold what `run --predict` says against the same programs really without the wait
    Predictions(predictions::Args),
    /// Break the readers with hostile input, led by coverage
    Fuzz(fuzz::Args),
    /// Measure what holdup costs; prints, never fails on a clock
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Demo => demo::run(),
        Verb::Test(args) => test::run(&args),
        Verb::Check => check::run(),
        Verb::Dist(args) => dist::run(&args),
        Verb::Gen(args) => generate::run(&args),
        Verb::New(args) => new::run(&args),
        Verb::FieldReport(args) => field_report::run(&args),
        Verb::Scenarios(args) => scenarios::run(&args),
        Verb::Artefacts(args) => artefacts::run(&args),
        Verb::Blind(args) => blind::run(&args),
        Verb::Attacks(args) => attacks::run(&args),
        Verb::Incidents(args) => incidents::run(&args),
        Verb::Guest(args) => guest::run(&args),
        Verb::Pages(args) => pages::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Queries(args) => queries::run(&args),
        Verb::FleetEngines(args) => fleet_engines::run(&args),
        Verb::Predictions(args) => predictions::run(&args),
        Verb::Fuzz(args) => fuzz::run(&args),
        Verb::Bench(args) => bench::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
