//! The file of what is usual, in the folder of the segments.
//!
//! In: a folder. Out: what is usual, read within a bound; what cannot be read is nothing, and begins anew. Two observers may write at the
//! same time, of which the later wins: that costs a minute of many days.

use super::{Loads, Usual, When};
use crate::Segment;
use holdup_files::{Last, NewFile};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Its name.
pub const FILE: &str = "usual.json";

/// The largest that is read, bytes.
const MAX_BYTES: u64 = 16 << 20;

/// What is known in a folder; `None` where there is none, or it is not understood.
#[must_use]
pub fn read(folder: &Path) -> Option<Usual> {
    let mut text = String::new();
    let file = File::open(folder.join(FILE)).ok()?;
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Adds a segment to what is known in its folder. Nobody waits for this file, so what the disk does not take is left out.
pub fn learn(folder: &Path, segment: &Segment) {
    let mut usual = read(folder).unwrap_or_default();
    let middle = segment.head.started_unix + i64::try_from(segment.head.length / 2).unwrap_or(0);
    usual.learn(When::of(middle, segment.head.zone.offset), &Loads::of(segment));
    let Ok(mut file) = NewFile::open(&folder.join(FILE), Last::RegularOnly) else {
        return;
    };
    let text = serde_json::to_string(&usual).unwrap_or_default();
    if file.file().write_all(text.as_bytes()).is_ok() {
        file.finish().ok();
    }
}
