//! Reports that `--json` wrote, read again.
//!
//! In: a file, or what comes from one. Out: the report. A file may have been made to do harm: nothing is opened that could block, and what is
//! read is bounded.

use anyhow::{Context, bail};
use holdup_model::report::Report;
use std::fs::OpenOptions;
use std::io::{Error, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a report that is read: those of four thousand threads have some fifty million.
const REPORT: u64 = 128 << 20;

/// Values in it, those of lists too: one takes up to a hundred bytes in memory, and as little as two in the file.
const VALUES: usize = 12_000_000;

/// The one version that there is.
const VERSION: &str = "holdup.report/1";

/// Reads a report from a stream of its text.
///
/// # Errors
/// When it is too large, of another version, or damaged.
pub(crate) fn report(whole: impl Read) -> anyhow::Result<Report> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema: String,
    }
    let mut text = Vec::new();
    whole.take(REPORT + 1).read_to_end(&mut text)?;
    if text.len() as u64 > REPORT {
        bail!("a report of more than {} MiB", REPORT >> 20);
    }
    let values = text.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{'));
    if values.count() > VALUES {
        bail!("a report of more than {VALUES} values");
    }
    let damaged = "it begins like a report of holdup, but is damaged";
    let version: Version = serde_json::from_slice(&text).context(damaged)?;
    if version.schema != VERSION {
        bail!(
            "it is {}, and this holdup reads {VERSION}: use the holdup that wrote it, or a newer one",
            version.schema
        );
    }
    serde_json::from_slice(&text).context(damaged)
}

/// Reads the report in a file.
///
/// # Errors
/// The same; and when there is no such file.
pub(crate) fn report_in(path: &Path) -> anyhow::Result<Report> {
    let open = || {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(Error::other("it is not a file")),
        }
    };
    let file = open().with_context(|| format!("cannot read {path:?}"))?;
    report(file).with_context(|| format!("{path:?} is not a report that --json wrote"))
}
