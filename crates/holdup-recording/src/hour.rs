//! Many segments of one host as one file: an object store pays and waits by the object, and a segment a minute is 1,440 of them a day.
//!
//! In: recordings of one segment each. Out: a Parquet file with the same columns, a row group a segment, and behind them the wholes of all
//! as they were, byte by byte; the metadata says which stands where. So engines see one table, no figure changes, and whoever wants ten
//! minutes of it fetches the footer and those ranges. [`extract`] makes a recording of a segment again, without columns: holdup
//! reads none. What is read here may be anybody's: footers are bounded, and ranges are checked before anything is fetched.

use crate::file::{KEY_HEAD, KEY_PIECES, KEY_VERSION, KEY_WHOLE, Opened, Place};
use crate::footer::{self, MAGIC, TAIL};
use crate::table::{self, properties};
use crate::{Error, Head, Segment};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

/// The format's version of such files: an earlier holdup refuses them.
pub(crate) const VERSION_OF_HOURS: u32 = 3;

/// Key of the list of segments, as JSON.
pub(crate) const KEY_SEGMENTS: &str = "holdup.segments";

/// Segments in one file, at most: an hour of the shortest ones is 720.
pub const MAX_SEGMENTS: usize = 2_000;

/// Bytes at a file's end by which the length of its footer is known.
pub const TAIL_BYTES: u64 = TAIL as u64;

/// A segment in such a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it was called when it was a file of its own.
    pub name: String,
    version: u32,
    head: String,
    whole: Place,
    pieces: Place,
}

impl Entry {
    /// Where its contents stand; `None` where that is not within a file of this length.
    #[must_use]
    pub fn ranges(&self, file_length: u64) -> Option<[Range<u64>; 2]> {
        let range = |(offset, length): Place| {
            let end = offset.checked_add(length)?;
            (length <= crate::file::MOST_PACKED && end <= file_length).then_some(offset..end)
        };
        Some([range(self.whole)?, range(self.pieces)?])
    }
}

impl Entry {
    /// The head of the segment.
    ///
    /// # Errors
    /// Why it is none that this version reads.
    pub fn head(&self) -> Result<Head, String> {
        understood(self.version, &self.head)
    }
}

/// The head of a file with one segment, by its footer.
///
/// # Errors
/// Why it is none that this version reads.
pub fn head_of_one(footer: &[u8]) -> Result<Head, String> {
    let listed = footer::key_values(footer).ok_or("its footer is none of Parquet's")?;
    let value = |key: &str| {
        let found = listed.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    };
    let version = value(KEY_VERSION).ok_or("it is no recording")?;
    let version = version.parse().map_err(|_| "its version is no number")?;
    understood(version, value(KEY_HEAD).unwrap_or_default())
}

fn understood(version: u32, head: &str) -> Result<Head, String> {
    match version > crate::VERSION {
        true => Err(format!(
            "it is of version {version} of the format, which this holdup cannot read"
        )),
        false => serde_json::from_str(head).map_err(|error| format!("its head: {error}")),
    }
}

/// How many bytes before the last [`TAIL_BYTES`] of a file are its footer.
#[must_use]
pub fn footer_length(tail: &[u8]) -> Option<u64> {
    let (size, magic) = tail.split_at_checked(TAIL - MAGIC.len())?;
    let size = u32::from_le_bytes(size.try_into().ok()?);
    (magic == MAGIC && size as usize <= footer::LARGEST).then_some(u64::from(size))
}

/// The segments that a footer lists.
///
/// # Errors
/// Why it is none of such a file, in words.
pub fn entries(footer: &[u8]) -> Result<Vec<Entry>, String> {
    let listed = footer::key_values(footer).ok_or("its footer is none of Parquet's")?;
    let found = listed.iter().find(|(key, _)| key == KEY_SEGMENTS);
    let (_, text) = found.ok_or("it does not say which segments it holds")?;
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match entries.len() > MAX_SEGMENTS {
        true => Err(format!(
            "it claims {} segments, at most {MAX_SEGMENTS} are read",
            entries.len()
        )),
        false => Ok(entries),
    }
}

/// Makes a recording of a segment of such a file, from the bytes of its [`ranges`](Entry::ranges).
///
/// # Errors
/// When the file system does not take it.
pub fn extract(entry: &Entry, [whole, pieces]: [&[u8]; 2], out: &Path) -> std::io::Result<()> {
    let empty = |file: File| -> Result<(), ParquetError> {
        let mut file = table::writer(file, properties(""))?;
        let places = [put(&mut file, whole)?, put(&mut file, pieces)?];
        for (key, value) in single(entry.version, &entry.head, places) {
            file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        file.close().map(drop)
    };
    empty(File::create_new(out)?).map_err(table::as_io)
}

/// What the metadata of a file with one segment has.
pub(crate) fn single(version: u32, head: &str, [whole, pieces]: [Place; 2]) -> [(&'static str, String); 4] {
    let place = |(offset, length): Place| format!("{offset} {length}");
    [
        (KEY_VERSION, version.to_string()),
        (KEY_HEAD, head.to_owned()),
        (KEY_WHOLE, place(whole)),
        (KEY_PIECES, place(pieces)),
    ]
}

/// Writes bytes between columns and footer; where they stand.
pub(crate) fn put<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    bytes: &[u8],
) -> Result<Place, ParquetError> {
    let at = file.bytes_written() as u64;
    file.write_all(bytes)?;
    Ok((at, bytes.len() as u64))
}

/// Such a file on its way: takes segments one by one, so that it needs the memory of one.
pub struct Joining<W: Write + Send> {
    file: SerializedFileWriter<W>,
    entries: Vec<Entry>,
    /// The packed parts of each, which stand behind all columns.
    parts: Vec<[Vec<u8>; 2]>,
}

impl<W: Write + Send> Joining<W> {
    /// Begins one.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn new(out: W) -> std::io::Result<Joining<W>> {
        let by = env!("CARGO_PKG_VERSION");
        Ok(Joining {
            file: table::writer(out, properties(by)).map_err(table::as_io)?,
            entries: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// Adds a recording of one segment, which was called `name`; its head.
    ///
    /// # Errors
    /// When it is none that can be read, which leaves this one as it was; or when `out` does not take it.
    pub fn push(&mut self, name: &str, path: &Path) -> Result<Head, Error> {
        let opened = Opened::of(path)?;
        let segment: Segment = opened.sums(path)?;
        let parts = [
            opened.part(path, opened.whole)?,
            opened.part(path, opened.pieces)?,
        ];
        crate::whole::unpack_pieces(&parts[1]).map_err(|wrong| crate::file::refused(path, wrong))?;
        table::row_group(&mut self.file, &segment).map_err(|error| Error::Io {
            what: "join",
            path: path.to_owned(),
            error: table::as_io(error),
        })?;
        self.parts.push(parts);
        self.entries.push(Entry {
            name: name.to_owned(),
            version: opened.version,
            head: opened.head_text,
            whole: (0, 0),
            pieces: (0, 0),
        });
        Ok(segment.head)
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn finish(self) -> std::io::Result<()> {
        let Joining {
            mut file,
            mut entries,
            parts,
        } = self;
        let finish = || -> Result<(), ParquetError> {
            for (entry, [whole, pieces]) in entries.iter_mut().zip(&parts) {
                entry.whole = put(&mut file, whole)?;
                entry.pieces = put(&mut file, pieces)?;
            }
            let listed =
                serde_json::to_string(&entries).map_err(|error| ParquetError::External(error.into()))?;
            for (key, value) in [
                (KEY_VERSION, VERSION_OF_HOURS.to_string()),
                (KEY_SEGMENTS, listed),
            ] {
                file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
            }
            file.close().map(drop)
        };
        finish().map_err(table::as_io)
    }
}
