//! Segments of a store as files.
//!
//! In: where segments are, and a folder. Out: a recording each in that folder. Whoever can write to the store can write anything there:
//! a head that does not say what the object's name and folder say makes it unreadable.

use crate::layout::{self, Name};
use crate::listing::{Source, Unreadable};
use crate::store::Store;
use holdup_recording::hour;
use std::path::{Path, PathBuf};

/// The largest object that is read as a segment, bytes.
const MAX_BYTES: u64 = 192 << 20;

/// Brings a segment of a host into a folder.
///
/// # Errors
/// Why it can't be read.
pub(crate) async fn segment(
    store: &Store,
    host: &str,
    name: &Name,
    source: &Source,
    folder: &Path,
) -> Result<PathBuf, Unreadable> {
    let path = folder.join(format!("holdup-{}", name.text()));
    let io = |error: std::io::Error| Unreadable::Damaged(format!("cannot be kept while it is read: {error}"));
    match source {
        Source::Object(object) if object.size > MAX_BYTES => {
            return Err(Unreadable::Damaged(format!("larger than {MAX_BYTES} bytes")));
        }
        Source::Object(object) => {
            let bytes = store.get(object).await?;
            std::fs::write(&path, bytes).map_err(io)?;
        }
        Source::Hour(object, entry, _) => {
            let ranges = entry.ranges(object.size);
            let outside = || Unreadable::Damaged("its contents lie behind its end".to_owned());
            let [whole, pieces] = ranges.ok_or_else(outside)?;
            let whole = store.range(&object.place, whole).await?;
            let pieces = store.range(&object.place, pieces).await?;
            hour::extract(entry, [&whole, &pieces], &path).map_err(io)?;
        }
    }
    match checked(host, name, &path) {
        Ok(()) => Ok(path),
        Err(why) => {
            std::fs::remove_file(&path).ok();
            Err(Unreadable::Damaged(why))
        }
    }
}

/// Whether a file is of whom and of when it was said to be.
fn checked(host: &str, name: &Name, path: &Path) -> Result<(), String> {
    let head = holdup_recording::peek(path).map_err(|error| said_of(&error.to_string(), path))?;
    if Name::of(&head) != *name {
        return Err("it is called by another segment's name".to_owned());
    }
    match layout::is_of(host, head.host.as_deref()) {
        true => Ok(()),
        false => Err("it is in another host's folder".to_owned()),
    }
}

/// A sentence about a file that is here for a moment only, without where that is.
pub(crate) fn said_of(text: &str, path: &Path) -> String {
    let quoted = format!("{path:?} ");
    text.replace(&quoted, "it ")
}
