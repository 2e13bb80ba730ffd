//! The figures that a JVM keeps of itself in memory that others may read (`hsperfdata`), as `jstat` does.
//!
//! In: a copy of that memory. Out: an [`Index`] of its entries by name, by which numbers and texts are read from this and
//! later copies. The JVM only ever adds entries, so an index stays right until their number grows.
//!
//! The memory is hostile: whoever owns the process may write what it likes there. Lengths and offsets count from checked
//! places, entries only go forward, and everything has a limit; texts are cut and left to the views to make printable.

use std::collections::HashMap;

/// `0xcafec0c0`, in this order of bytes on every machine.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
/// Length of what comes before the entries, bytes.
const PROLOGUE: usize = 32;
/// Length of the fixed part of an entry, bytes.
const HEAD: usize = 20;
/// What all JVMs since 1.5 write.
const MAJOR: u8 = 2;
/// The most that is read of it, bytes. `-XX:PerfDataMemorySize` is 32 KiB; a hundred times that has never been asked for.
pub const MAX_BYTES: usize = 4 << 20;
/// Entries kept; JDK 17 and 25 have some 230.
const MOST_ENTRIES: usize = 8_192;
/// Bytes of a name that are looked at; the longest of JDK 25 has 64.
const LONGEST_NAME: usize = 256;
/// Bytes of a text that are kept: a command line may have any length, and nobody reads more.
const LONGEST_TEXT: usize = 4_096;

/// Why it can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Another magic number: not written by a JVM, or not yet.
    #[error("it is not the performance data of a JVM")]
    NotPerfData,
    /// A version or order of bytes that is not known.
    #[error("it is of a format that is not known")]
    OtherFormat,
    /// The JVM has not yet written all that it has when it begins to run Java.
    #[error("the JVM has not filled it yet")]
    NotFilled,
}

/// Where the entries are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    entries: HashMap<String, Place>,
    /// Entries that the JVM counts, those that are not understood included.
    count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    at: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text { length: usize },
}

impl Index {
    /// Finds the entries.
    ///
    /// # Errors
    /// When this is no such memory, or not yet.
    pub fn parse(bytes: &[u8]) -> Result<Index, Unreadable> {
        let count = count(bytes)?;
        let mut entries = HashMap::new();
        let mut at = offset(bytes, 24).unwrap_or(0);
        for _ in 0..(count as usize).min(MOST_ENTRIES) {
            let Some((length, entry)) = entry(bytes, at) else {
                break;
            };
            if let Some((name, place)) = entry {
                entries.insert(name, place);
            }
            at += length;
        }
        Ok(Index { entries, count })
    }

    /// Whether the JVM has added entries since.
    #[must_use]
    pub fn is_outgrown_by(&self, bytes: &[u8]) -> bool {
        count(bytes).is_ok_and(|count| count != self.count)
    }

    /// How many entries were understood.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A number, by its full name.
    #[must_use]
    pub fn number(&self, bytes: &[u8], name: &str) -> Option<i64> {
        let place = self
            .entries
            .get(name)
            .filter(|place| place.kind == Kind::Number)?;
        let bytes = bytes.get(place.at..place.at.checked_add(8)?)?;
        bytes.try_into().ok().map(i64::from_le_bytes)
    }

    /// A number that can't be less than nothing.
    #[must_use]
    pub fn count(&self, bytes: &[u8], name: &str) -> Option<u64> {
        u64::try_from(self.number(bytes, name)?).ok()
    }

    /// A text, by its full name. Hostile.
    #[must_use]
    pub fn text(&self, bytes: &[u8], name: &str) -> Option<String> {
        let place = self.entries.get(name)?;
        let Kind::Text { length } = place.kind else {
            return None;
        };
        let bytes = bytes.get(place.at..place.at.checked_add(length.min(LONGEST_TEXT))?)?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// The number of entries, from the prologue.
fn count(bytes: &[u8]) -> Result<u32, Unreadable> {
    let prologue = bytes.first_chunk::<PROLOGUE>().ok_or(Unreadable::NotPerfData)?;
    if prologue[..4] != MAGIC {
        return Err(Unreadable::NotPerfData);
    }
    // Of another order of bytes there are only other machines' files.
    let [order, major, _minor, accessible] = [prologue[4], prologue[5], prologue[6], prologue[7]];
    if order != 1 || major != MAJOR {
        return Err(Unreadable::OtherFormat);
    }
    if accessible != 1 {
        return Err(Unreadable::NotFilled);
    }
    offset(bytes, 28)
        .and_then(|count| u32::try_from(count).ok())
        .ok_or(Unreadable::OtherFormat)
}

/// The length of the entry at `at`, and what it is if that is understood; `None` where no entry can be.
fn entry(bytes: &[u8], at: usize) -> Option<(usize, Option<(String, Place)>)> {
    if at < PROLOGUE {
        return None;
    }
    let length = offset(bytes, at)?;
    if length < HEAD {
        return None;
    }
    // The last one may be cut by the end of what was read.
    let entry = bytes.get(at..at.checked_add(length)?)?;
    Some((length, understood(entry, at)))
}

fn understood(entry: &[u8], at: usize) -> Option<(String, Place)> {
    let (name_at, elements, data_at) = (offset(entry, 4)?, offset(entry, 8)?, offset(entry, 16)?);
    let name = entry.get(name_at..)?;
    let name = &name[..name.len().min(LONGEST_NAME)];
    let name = name.split(|byte| *byte == 0).next()?;
    if name.is_empty() || name.len() == LONGEST_NAME {
        return None;
    }
    let kind = match (entry[12], elements) {
        (b'J', 0) => Kind::Number,
        (b'B', length @ 1..) => Kind::Text { length },
        _ => return None,
    };
    let needs = match kind {
        Kind::Number => 8,
        Kind::Text { length } => length,
    };
    let ends = data_at.checked_add(needs)?;
    if data_at < HEAD || ends > entry.len() {
        return None;
    }
    let place = Place {
        at: at + data_at,
        kind,
    };
    Some((String::from_utf8_lossy(name).into_owned(), place))
}

/// A length or offset; `None` if it is negative.
fn offset(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(i32::from_le_bytes(word)).ok()
}

#[cfg(test)]
mod tests;
