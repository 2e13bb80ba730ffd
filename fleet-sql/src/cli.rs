//! The command line.

use clap::{Parser, ValueEnum};
use holdup_times::lengths;
use std::time::Duration;

/// Runs an SQL query on the recordings of many hosts in object storage.
///
/// Tables: waits, paths, threads, requests and figures, each of one kind of rows, and recordings with all of them. Columns: `DESCRIBE waits`
/// lists them. day, hour and host_id are those of the store's folders: with a condition on them, only those folders are read.
#[derive(Debug, Parser)]
#[command(name = "holdup fleet sql", version, max_term_width = 100)]
pub(crate) struct Args {
    /// The store: s3://BUCKET/PREFIX or file:///DIRECTORY
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// One query: SELECT, DESCRIBE or EXPLAIN
    #[arg(value_name = "QUERY")]
    pub(crate) query: String,
    /// Use the segments at TIME: 13:05, '2026-11-22 13:05', or RFC 3339 with a time zone; without a date, the latest such time
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Use the part before TIME, or before the newest segment: 10m, 90s, 2h or 1d; without --at and --last, all
    #[arg(long, value_name = "LENGTH", value_parser = lengths::length)]
    pub(crate) last: Option<Duration>,
    /// How rows are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Memory that sorting, grouping and joining may use
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = lengths::size)]
    pub(crate) memory: u64,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// With a line of names; text as it was recorded
    Csv,
    /// One list of objects
    Json,
}
