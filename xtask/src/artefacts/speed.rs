//! How fast each format is read: the MB/s of the table.
//!
//! In: the largest sample of each format. Out: MB for each second of CPU time of the whole command, from its start to its
//! report, on one CPU, the median of some runs. What has lines is repeated to one large file; a document can't be, so the
//! command is given the same file many times.

use super::report;
use crate::speed::{self, MB, repeat};
use crate::workspace;
use anyhow::Context;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The size of what is read, bytes: the command's own start and end are a few milliseconds.
const SIZE: u64 = 40 * MB;

/// Runs whose median counts.
const RUNS: usize = 5;

/// Files that are named at most: a command line has an end.
const FILES: u64 = 10_000;

/// Bytes by which a document is known from lines.
const HEAD: u64 = 64 << 10;

/// Of a file that was repeated so much may be misunderstood, per cent; else it is a document.
const MISUNDERSTOOD: u64 = 20;

/// The largest sample of each format.
#[derive(Debug, Default)]
pub(super) struct Largest(BTreeMap<String, (u64, PathBuf)>);

impl Largest {
    /// One more sample.
    pub(super) fn add(&mut self, format: &str, path: &Path) {
        let size = path.metadata().map_or(0, |about| about.len());
        let largest = self.0.entry(format.to_owned()).or_default();
        if size > largest.0 {
            *largest = (size, path.to_owned());
        }
    }

    /// MB/s of each format.
    pub(super) fn measure(&self, holdup: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
        let folder = workspace::scratch("artefacts-speed")?;
        let mut speeds = BTreeMap::new();
        for (format, (size, sample)) in &self.0 {
            eprintln!("speed of {format}");
            let mut command = command(holdup, &folder, format, sample, *size)?;
            let mut runs = speed::on_one_cpu(|| {
                let run = |_| speed::of(&mut command.0, command.1)?.context("holdup is gone");
                (0..RUNS).map(run).collect::<anyhow::Result<Vec<f64>>>()
            })
            .with_context(|| format!("the speed of {format}"))?;
            runs.sort_by(f64::total_cmp);
            speeds.insert(format.clone(), runs[RUNS / 2]);
        }
        std::fs::remove_dir_all(&folder).context("remove what was made")?;
        Ok(speeds)
    }
}

/// What is run to measure a format, and the bytes that it reads.
fn command(
    holdup: &Path,
    folder: &Path,
    format: &str,
    sample: &Path,
    size: u64,
) -> anyhow::Result<(Command, u64)> {
    let large = folder.join("large");
    repeat(sample, &large, SIZE)?;
    let mut command = Command::new(holdup);
    command.arg("read").current_dir(folder).stdin(Stdio::null());
    // A document of which there are many in one file is none, and need not come to a report.
    let of_lines = !is_document(&large)?
        && report(holdup, std::slice::from_ref(&large)).is_ok_and(|report| {
            let own = report.artefacts.iter().find(|one| one.lines > 0);
            own.is_some_and(|one| {
                one.format.as_deref() == Some(format)
                && one.not_understood * 100 <= one.lines * MISUNDERSTOOD
                // Each repetition has a line at least; where not, it was not read to its end.
                && one.lines >= SIZE / size.max(1)
            })
        });
    if of_lines {
        let bytes = large.metadata().context("look at what was made")?.len();
        command.arg("large");
        return Ok((command, bytes));
    }
    std::fs::copy(sample, folder.join("one")).context("copy the sample")?;
    let times = (SIZE / size.max(1)).clamp(1, FILES);
    for _ in 0..times {
        command.arg("one");
    }
    Ok((command, times * size))
}

/// Whether it is a document of JSON over several lines: repeated, it is cut off at its end, and no reader takes it to there.
fn is_document(large: &Path) -> anyhow::Result<bool> {
    let mut head = Vec::new();
    std::fs::File::open(large)
        .context("open what was made")?
        .take(HEAD)
        .read_to_end(&mut head)
        .context("read what was made")?;
    let text = head.trim_ascii_start();
    let Some((b'{' | b'[', inner)) = text.split_first() else {
        return Ok(false);
    };
    // `[Mon Nov 24 …]` is a log's; a line that is a whole value is one of many, as loggers print them.
    let is_json = matches!(inner.trim_ascii_start().first(), Some(b'"' | b'{' | b'['));
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let whole = first.len() > 2 && matches!(first.trim_ascii_end().last(), Some(b'}' | b']'));
    Ok(is_json && !whole)
}
