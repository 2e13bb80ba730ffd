//! A part of a query: an object, and which of its groups of rows count.
//!
//! In: a listing. Out: parts, each of one object. What an object says of itself is held against what it is called, as `holdup fleet show`
//! does: whoever can write to the store can write anything there, and a row that lies about its host or its time is worse than none.

use datafusion::parquet::basic::Type;
use datafusion::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use datafusion::parquet::file::statistics::Statistics;
use holdup_recording::hour::{self, Entry};
use holdup_recording::{COLUMNS, Head, Values};
use holdup_store::layout::{self, Name};
use holdup_store::listing::{self, Found, Source, Unreadable};
use holdup_store::store::{Listed, Store};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes at the end of an object that are read at once: the footer of one segment is some 20 KB.
const FOOTER_GUESS_BYTES: u64 = 32 << 10;

/// Unpacked bytes of a segment's columns: a recorder's are a hundredth of this.
const MAX_UNPACKED_BYTES: i64 = 512 << 20;

/// A segment in an object.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// Which group of rows it is.
    pub(crate) number: usize,
    /// What the listing calls it.
    pub(crate) name: Name,
    /// Of an object with many segments what that says of it.
    entry: Option<Arc<Entry>>,
}

/// An object, and which of its segments count.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) host: String,
    pub(crate) day: String,
    pub(crate) hour: String,
    pub(crate) object: Listed,
    /// What counts.
    pub(crate) groups: Vec<Group>,
    /// How many groups of rows the object has.
    pub(crate) of: usize,
}

/// The parts of a host; `None` for a segment that is known to be damaged.
pub(crate) fn parts(host: &str, found: &Found, damaged: impl Fn(&str, usize) -> bool) -> Vec<Part> {
    let mut parts: BTreeMap<&str, Part> = BTreeMap::new();
    for (name, source) in &found.segments {
        let (object, number, of, entry) = match source {
            Source::Object(object) => (object, 0, 1, None),
            Source::Hour(object, entry, among) => (object, among.number, among.of, Some(entry.clone())),
        };
        if damaged(&object.place, number) {
            continue;
        }
        let part = parts.entry(&object.place).or_insert_with(|| {
            let (day, hour) = folders(&object.place);
            Part {
                host: host.to_owned(),
                day,
                hour,
                object: object.clone(),
                groups: Vec::new(),
                of,
            }
        });
        part.groups.push(Group {
            number,
            name: name.clone(),
            entry,
        });
    }
    parts.into_values().collect()
}

/// Day and hour of an object's place, as engines read them from the path.
fn folders(place: &str) -> (String, String) {
    let value = |key: &str| {
        let mut folders = place.split('/');
        folders
            .find_map(|folder| folder.strip_prefix(key))
            .unwrap_or_default()
            .to_owned()
    };
    (value("day="), value("hour="))
}

/// Why something of a part can't be used.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// All of the object, and why.
    Object(Unreadable),
    /// Some of its groups, each with why.
    Groups(Vec<(usize, String)>),
}

impl Part {
    /// What the object says of its columns, once that fits to what it is called.
    pub(crate) async fn metadata(&self, store: &Store) -> Result<ParquetMetaData, Trouble> {
        let footer = listing::footer(store, &self.object, FOOTER_GUESS_BYTES).await;
        let footer = footer.map_err(Trouble::Object)?;
        let damaged = |why: String| Trouble::Object(Unreadable::Damaged(why));
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            ParquetMetaDataReader::decode_metadata(&footer)
        }));
        let metadata = match decoded {
            Ok(Ok(metadata)) => metadata,
            Ok(Err(error)) => return Err(damaged(format!("its footer: {error}"))),
            Err(_) => return Err(damaged("its footer cannot be read".to_owned())),
        };
        if metadata.num_row_groups() != self.of {
            return Err(damaged(
                "it has another number of segments than it says".to_owned(),
            ));
        }
        columns(&metadata).map_err(damaged)?;
        let wrong: Vec<(usize, String)> = self
            .groups
            .iter()
            .filter_map(|group| {
                let checked = self.checked(group, &footer, metadata.row_group(group.number));
                Some((group.number, checked.err()?))
            })
            .collect();
        match wrong.is_empty() {
            true => Ok(metadata),
            false => Err(Trouble::Groups(wrong)),
        }
    }

    /// Whether a segment is of whom and of when its place says.
    fn checked(&self, group: &Group, footer: &[u8], rows: &RowGroupMetaData) -> Result<(), String> {
        let head = match &group.entry {
            Some(entry) => entry.head()?,
            None => hour::head_of_one(footer)?,
        };
        if Name::of(&head) != group.name {
            return Err("it is called by another segment's name".to_owned());
        }
        if !layout::is_of(&self.host, head.host.as_deref()) {
            return Err("it is in another host's folder".to_owned());
        }
        let unpacked = rows.columns().iter().map(|column| column.uncompressed_size());
        let unpacked = unpacked.fold(0_i64, i64::saturating_add);
        if !(0..=MAX_UNPACKED_BYTES).contains(&unpacked) {
            return Err(format!("more than {MAX_UNPACKED_BYTES} bytes unpacked"));
        }
        match rows.num_rows() == 0 || says_the_same(rows, &head) {
            true => Ok(()),
            false => Err("its rows are of another segment".to_owned()),
        }
    }
}

/// Whether all rows are of the segment that the head tells of.
fn says_the_same(rows: &RowGroupMetaData, head: &Head) -> bool {
    let statistics = |name: &str| {
        let mut columns = rows.columns().iter();
        columns
            .find(|column| column.column_path().parts() == [name])
            .and_then(|column| column.statistics())
    };
    let number = |name: &str, expected: i64| match statistics(name) {
        Some(Statistics::Int64(of)) => of.min_opt() == Some(&expected) && of.max_opt() == Some(&expected),
        _ => false,
    };
    let host = match (&head.host, statistics("host")) {
        (Some(host), Some(of)) if of.min_is_exact() && of.max_is_exact() => {
            let host = Some(host.as_bytes());
            of.min_bytes_opt() == host && of.max_bytes_opt() == host
        }
        (_, of) => of.is_some(),
    };
    let length = i64::try_from(head.length).unwrap_or(i64::MAX);
    host && number("segment_start", head.started_unix.div_euclid(1_000)) && number("segment_ns", length)
}

/// Whether the columns are a recording's.
fn columns(metadata: &ParquetMetaData) -> Result<(), String> {
    let ours: HashMap<&str, Type> = COLUMNS
        .iter()
        .map(|column| {
            let stored = match column.values() {
                Values::Integer | Values::Timestamp => Type::INT64,
                Values::Number => Type::DOUBLE,
                Values::Boolean => Type::BOOLEAN,
                Values::Text | Values::Texts => Type::BYTE_ARRAY,
            };
            (column.name, stored)
        })
        .collect();
    for column in metadata.file_metadata().schema_descr().columns() {
        let name = column
            .path()
            .parts()
            .first()
            .map(String::as_str)
            .unwrap_or_default();
        if ours
            .get(name)
            .is_some_and(|stored| *stored != column.physical_type())
        {
            return Err(format!("its column {name} is none of a recording's"));
        }
    }
    Ok(())
}
