//! The columns of a segment, for the engines that people have.
//!
//! In: a segment. Out: a Parquet file with one row group, and behind it the whole that holdup itself reads. A row is one of four kinds
//! ([`Kind`]): the same time is known by each of them in its own way, so a query takes one. Numbers are signed, because that is
//! what every engine has; a time longer than 292 years becomes that.

mod columns;
mod rows;

pub use columns::{COLUMNS, Column};

use crate::file::{KEY_HEAD, KEY_PIECES, KEY_VERSION, KEY_WHOLE};
use crate::{Segment, whole};
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
    let rows = rows::of(segment);
    let packed = whole::pack(segment)?;
    let pieces = whole::pack_pieces(&segment.attributed.timeline)?;
    let head = serde_json::to_string(&segment.head)?;
    columns(segment, &rows, [&packed, &pieces], head, out).map_err(|error| match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(error) => std::io::Error::other(error),
        },
        error => std::io::Error::other(error),
    })
}

fn columns<W: Write + Send>(
    segment: &Segment,
    rows: &[Row<'_>],
    [packed, pieces]: [&[u8]; 2],
    head: String,
    out: W,
) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("holdup {}", segment.head.holdup))
        .build();
    let schema = Arc::new(parse_message_type(&schema())?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in COLUMNS {
        let writer = group
            .next_column()?
            .expect("the schema is made of the same columns");
        write_column(column, segment, rows, writer)?;
    }
    group.close()?;
    let at = file.bytes_written();
    file.write_all(packed)?;
    let pieces_at = file.bytes_written();
    file.write_all(pieces)?;
    for (key, value) in [
        (KEY_VERSION, segment.version().to_string()),
        (KEY_HEAD, head),
        (KEY_WHOLE, format!("{at} {}", packed.len())),
        (KEY_PIECES, format!("{pieces_at} {}", pieces.len())),
    ] {
        file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
    file.close()?;
    Ok(())
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
