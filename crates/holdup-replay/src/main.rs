//! Judges a corpus of recorded events again and says what changed.
//!
//! In: a folder of `NAME.events.gz`, each beside the report that was made of it (`NAME.report.json.gz`). Out: for each case what is
//! different now: findings first, then figures, then words; a count of cases at the end; status 1 where something changed. It is
//! run by `cargo xtask replay`, as any user, without BPF and without clang.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program for people"
)]

mod corpus;
mod difference;
mod take;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Judges recorded events again and says what changed
#[derive(Parser)]
pub(crate) struct Args {
    /// The folder of the corpus
    corpus: PathBuf,
    /// Only cases whose name contains one of these
    names: Vec<String>,
    /// Keep what is said now as what is expected
    #[arg(long)]
    bless: bool,
    /// Lines of each kind of change that are printed for a case
    #[arg(long, default_value_t = 6)]
    lines: usize,
    /// Print the report of each case too, as a terminal shows it
    #[arg(long)]
    show: bool,
    /// Take the cases of this folder into the corpus first
    #[arg(long, value_name = "FOLDER", requires = "bless")]
    take: Option<PathBuf>,
    /// A word that the taken cases are to have another for
    #[arg(long = "rename", value_name = "FROM=TO")]
    renamed: Vec<take::Renamed>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("replay: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<bool> {
    if let Some(from) = &args.take {
        let (taken, too_large) = take::take(from, &args.corpus, &args.renamed)?;
        println!("{taken} cases taken, {too_large} too large");
    }
    corpus::replay(args)
}
