//! `cargo xtask bench attach`: what it costs a service to be watched while it works, and what watching costs beside it.
//!
//! In: nginx under full load, ten thousand idle threads, twenty thousand switches a second, a process that is stuck, and JVMs.
//! Out: a table each, with the figure that should be kept. Turns with and without an observer alternate in one run, the
//! second half of a round in the opposite order, so that what the machine does meanwhile hits both; ratios are taken within
//! a round.

mod idle;
mod java;
mod service;
mod stuck;
mod subject;
mod switches;
mod watcher;

pub(super) use subject::Subject;
pub(super) use watcher::cpu_ns;

use super::samples::{median, range};
use crate::workspace;
use anyhow::bail;
use std::path::{Path, PathBuf};

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these: service, idle, switches, stuck, java
    what: Vec<String>,
    /// Rounds of each
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How long one turn is measured, seconds
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Connections that ask the service at once
    #[arg(long, default_value_t = 32)]
    connections: u32,
    /// async-profiler's library, to be measured beside on JVMs
    #[arg(long, value_name = "LIBRARY")]
    async_profiler: Option<PathBuf>,
    /// Without other programs that watch
    #[arg(long)]
    no_peers: bool,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// What a part of the bench needs to know.
#[derive(Debug)]
struct Plan<'a> {
    args: &'a Args,
    holdup: PathBuf,
    folder: PathBuf,
}

type Part = (&'static str, fn(&Plan<'_>) -> anyhow::Result<()>);

const PARTS: [Part; 5] = [
    ("service", service::measure),
    ("idle", idle::measure),
    ("switches", switches::measure),
    ("stuck", stuck::measure),
    ("java", java::measure),
];

/// Measures and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(unknown) = args
        .what
        .iter()
        .find(|name| !PARTS.iter().any(|(known, _)| known == name))
    {
        let known = PARTS.map(|(name, _)| name).join(", ");
        bail!("there is nothing called {unknown}; there are: {known}");
    }
    let plan = Plan {
        args,
        holdup: workspace::holdup(args.holdup.as_deref())?,
        folder: workspace::scratch("bench")?.join("attach"),
    };
    std::fs::create_dir_all(&plan.folder)?;
    for (name, measure) in PARTS {
        if args.what.is_empty() || args.what.iter().any(|wanted| wanted == name) {
            measure(&plan)?;
            println!();
        }
    }
    Ok(())
}

impl Plan<'_> {
    fn report(&self) -> PathBuf {
        self.folder.join("report.json")
    }

    fn holdup(&self) -> &Path {
        &self.holdup
    }
}

/// Median and spread of ratios, as a table has them.
fn ratios(of: &[f64]) -> String {
    match (median(of.iter().copied()), range(of.iter().copied())) {
        (Some(median), Some((least, greatest))) => format!("{median:.3}  ({least:.3} to {greatest:.3})"),
        _ => "-".to_owned(),
    }
}

/// The median, or a dash.
pub(super) fn middle(of: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    median(of).map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}
