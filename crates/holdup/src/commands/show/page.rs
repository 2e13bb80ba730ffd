//! `holdup show report.html`: the report that a page holds, reported again.
//!
//! In: a file. Out: its report, where it is a page that holdup wrote. The page may come from anybody; how much of it is read, and how
//! what stands in it is taken, is `holdup_views::html`'s.

use anyhow::Context;
use holdup_model::report::Report;
use holdup_views::html;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes by which a page is known.
const HEAD: usize = 4_096;

/// The report of a page; `None` of what is none. What can't be opened is for those to say who read recordings.
///
/// # Errors
/// When it is a page and can't be read.
pub(crate) fn report(path: &Path) -> anyhow::Result<Option<Report>> {
    let Some(mut file) = regular(path) else {
        return Ok(None);
    };
    let mut page = Vec::new();
    let failed = || format!("cannot read {path:?}");
    file.by_ref()
        .take(HEAD as u64)
        .read_to_end(&mut page)
        .with_context(failed)?;
    if !html::is_page(&page) {
        return Ok(None);
    }
    // One byte more than there may be, so that what is too large is known to be.
    file.take(html::MOST_READ as u64 + 1 - page.len() as u64)
        .read_to_end(&mut page)
        .with_context(failed)?;
    let json = html::report_of(&page).with_context(failed)?;
    let report = serde_json::from_slice(json.as_bytes());
    report.map(Some).with_context(failed)
}

/// A file that is one: a FIFO without a writer would be waited for.
fn regular(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .ok()?;
    file.metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map(|_| file)
}
