//! The columns of a segment, for the engines that people have.
//!
//! In: a segment. Out: a Parquet file with one row group, and behind it the whole that holdup itself reads. A row is one of four kinds
//! ([`Kind`]): the same time is known by each of them in its own way, so a query takes one. Numbers are signed, because that is
//! what every engine has; a time longer than 292 years becomes that.

mod columns;
mod rows;

pub use columns::{COLUMNS, Column, Values};

use crate::{Segment, hour, whole};
use columns::Cells;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use rows::Row;
use std::io::Write;
use std::sync::Arc;

/// Of an optional value: it is there.
const THERE: i16 = 1;

/// Of a list: it has an element here.
const ELEMENT: i16 = 2;

/// Writes the file.
pub(crate) fn write<W: Write + Send>(segment: &Segment, out: W) -> std::io::Result<()> {
    let packed = whole::pack(segment)?;
    let pieces = whole::pack_pieces(&segment.attributed.timeline)?;
    let head = serde_json::to_string(&segment.head)?;
    columns(segment, [&packed, &pieces], &head, out).map_err(as_io)
}

/// The error of a writer as it was.
pub(crate) fn as_io(error: ParquetError) -> std::io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(error) => std::io::Error::other(error),
        },
        error => std::io::Error::other(error),
    }
}

fn columns<W: Write + Send>(
    segment: &Segment,
    [packed, pieces]: [&[u8]; 2],
    head: &str,
    out: W,
) -> Result<(), ParquetError> {
    let mut file = writer(out, properties(&segment.head.holdup))?;
    row_group(&mut file, segment)?;
    let places = [hour::put(&mut file, packed)?, hour::put(&mut file, pieces)?];
    for (key, value) in hour::single(segment.version(), head, places) {
        file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
    file.close()?;
    Ok(())
}

/// How files are written, by this version of holdup.
pub(crate) fn properties(by: &str) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("holdup {by}"))
        .build()
}

/// A file without rows yet.
pub(crate) fn writer<W: Write + Send>(
    out: W,
    properties: WriterProperties,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let schema = Arc::new(parse_message_type(&schema())?);
    SerializedFileWriter::new(out, schema, Arc::new(properties))
}

/// The rows of a segment, as one group.
pub(crate) fn row_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    segment: &Segment,
) -> Result<(), ParquetError> {
    let rows = rows::of(segment);
    let mut group = file.next_row_group()?;
    for column in COLUMNS {
        let writer = group
            .next_column()?
            .expect("the schema is made of the same columns");
        write_column(column, segment, &rows, writer)?;
    }
    group.close().map(drop)
}

/// The schema in Parquet's own words.
fn schema() -> String {
    let fields: String = COLUMNS
        .iter()
        .map(|column| {
            let name = column.name;
            match column.cells {
                Cells::Number(_) => format!("optional int64 {name};"),
                Cells::Instant(_) => format!("optional int64 {name} (TIMESTAMP(MICROS,true));"),
                Cells::Real(_) => format!("optional double {name};"),
                Cells::Flag(_) => format!("optional boolean {name};"),
                Cells::Text(_) => format!("optional binary {name} (STRING);"),
                Cells::Texts(_) => format!(
                    "optional group {name} (LIST) {{ repeated group list {{ required binary element (STRING); }} }}"
                ),
            }
        })
        .collect();
    format!("message holdup {{ {fields} }}")
}

fn write_column(
    column: &Column,
    segment: &Segment,
    rows: &[Row<'_>],
    mut writer: SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    match column.cells {
        Cells::Number(cell) | Cells::Instant(cell) => {
            let (levels, values) = optional(rows, |row| cell(segment, row));
            writer
                .typed::<Int64Type>()
                .write_batch(&values, Some(&levels), None)?;
        }
        Cells::Real(cell) => {
            let (levels, values) = optional(rows, |row| cell(segment, row));
            writer
                .typed::<DoubleType>()
                .write_batch(&values, Some(&levels), None)?;
        }
        Cells::Flag(cell) => {
            let (levels, values) = optional(rows, |row| cell(segment, row));
            writer
                .typed::<BoolType>()
                .write_batch(&values, Some(&levels), None)?;
        }
        Cells::Text(cell) => {
            let (levels, values) = optional(rows, |row| cell(segment, row).map(|value| text(&value)));
            writer
                .typed::<ByteArrayType>()
                .write_batch(&values, Some(&levels), None)?;
        }
        Cells::Texts(cell) => {
            let (mut levels, mut repeats, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for row in rows {
                let list = cell(segment, row);
                if list.is_empty() {
                    levels.push(THERE);
                    repeats.push(0);
                }
                for (number, value) in list.iter().enumerate() {
                    levels.push(ELEMENT);
                    repeats.push(i16::from(number > 0));
                    values.push(text(value));
                }
            }
            writer
                .typed::<ByteArrayType>()
                .write_batch(&values, Some(&levels), Some(&repeats))?;
        }
    }
    writer.close()
}

/// Which rows have a value, and the values.
fn optional<T>(rows: &[Row<'_>], cell: impl Fn(&Row<'_>) -> Option<T>) -> (Vec<i16>, Vec<T>) {
    let cells: Vec<Option<T>> = rows.iter().map(cell).collect();
    let levels = cells
        .iter()
        .map(|cell| if cell.is_some() { THERE } else { 0 })
        .collect();
    (levels, cells.into_iter().flatten().collect())
}
