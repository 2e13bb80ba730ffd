//! The command line.

use clap::{Args, Parser, Subcommand};
use holdup_times::lengths;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Reports on the recordings of many hosts in object storage.
///
/// URL is s3://BUCKET/PREFIX or file:///DIRECTORY. Credentials, region and endpoint of S3 come from the environment: AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL.
#[derive(Debug, Parser)]
#[command(
    name = "holdup fleet",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Report on all hosts: which of them waited, and for what
    Show(ShowArgs),
    /// Replace the segments of an hour by one object, without any change of what they contain
    ///
    /// Several may run at once. It may be interrupted at any time.
    Compact(CompactArgs),
    /// Upload the segments of a directory; `holdup record --to URL` starts this
    Upload(UploadArgs),
    /// Compare two times of the same hosts, or two groups of hosts: what got slower, where, and whether that is more than chance
    Diff(DiffArgs),
    /// Run an SQL query on the recordings, by the program holdup-fleet-sql
    #[command(disable_help_flag = true)]
    Sql(Rest),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The store: s3://BUCKET/PREFIX or file:///DIRECTORY
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Report on TIME: 13:05, '2026-11-22 13:05', or RFC 3339 with a time zone; without a date, the latest such time
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// The part before TIME, or before the newest segment: 10m, 90s, 2h or 1d; without --at and --last, 10m
    #[arg(long, value_name = "LENGTH", value_parser = lengths::length)]
    pub(crate) last: Option<Duration>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The store: s3://BUCKET/PREFIX or file:///DIRECTORY
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// One time: 13:05, '2026-11-22 13:05', or RFC 3339 with a time zone; without a date, the latest such time
    #[arg(long, value_name = "TIME")]
    pub(crate) before: Option<String>,
    /// The time that is compared with it; the two must not overlap
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// Compare groups of hosts at one time: the first group, by names with * and ?, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "with", conflicts_with_all = ["before", "after"])]
    pub(crate) hosts: Vec<String>,
    /// The group that is compared with it
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "hosts")]
    pub(crate) with: Vec<String>,
    /// When the groups are compared; without it, the newest recordings
    #[arg(long, value_name = "TIME", requires = "hosts")]
    pub(crate) at: Option<String>,
    /// The part before each TIME: 10m, 90s, 2h or 1d; without it, 10m
    #[arg(long, value_name = "LENGTH", value_parser = lengths::length)]
    pub(crate) last: Option<Duration>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where a report goes, and how much of it.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Also write the report as JSON to FILE; - is stdout, in place of the text
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print only the first lines
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print everything
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The store: s3://BUCKET/PREFIX or file:///DIRECTORY
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Only hours that ended at least this long ago; what arrives later is compacted by the next run
    #[arg(long, value_name = "LENGTH", default_value = "10m", value_parser = lengths::length)]
    pub(crate) after: Duration,
    /// Only the last part of the store: 2d looks at two days
    #[arg(long, value_name = "LENGTH", default_value = "2d", value_parser = lengths::length)]
    pub(crate) last: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct UploadArgs {
    /// The directory that `holdup record` writes to
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The store: s3://BUCKET/PREFIX or file:///DIRECTORY
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Continue until stdin is closed; without it, upload once what is there
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rest {
    #[arg(
        value_name = "ARG",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        hide = true
    )]
    pub(crate) rest: Vec<OsString>,
}
