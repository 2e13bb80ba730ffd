//! Rows as text.
//!
//! In: batches of rows. Out: a table for people, CSV or JSON. Names in recordings are chosen by programs that were observed: the table has nothing
//! that a terminal would act upon. CSV and JSON have the text as it was recorded.

use crate::cli::Format;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{JsonArray, Writer, WriterBuilder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::sync::Arc;

/// Rows of a table: more are nothing that anybody reads, and all of them are needed at once.
const MAX_TABLE_ROWS: usize = 10_000;

/// Writes rows into a file without a name: what turns out damaged half way must not have been printed.
pub(crate) enum Output {
    Table {
        schema: SchemaRef,
        rows: Vec<RecordBatch>,
        cut: bool,
    },
    Csv(csv::Writer<BufWriter<File>>),
    Json(Writer<BufWriter<File>, JsonArray>),
}

impl Output {
    /// Begins one, for rows with these columns.
    pub(crate) fn new(format: Format, schema: &SchemaRef) -> anyhow::Result<Output> {
        let file = || tempfile::tempfile().map(BufWriter::new);
        Ok(match format {
            Format::Table => Output::Table {
                schema: texts_of(schema, |_| true),
                rows: Vec::new(),
                cut: false,
            },
            Format::Csv => {
                let mut writer = csv::WriterBuilder::new().with_header(true).build(file()?);
                // A result without rows has names all the same.
                writer.write(&RecordBatch::new_empty(texts_of(schema, DataType::is_nested)))?;
                Output::Csv(writer)
            }
            Format::Json => Output::Json(WriterBuilder::new().with_explicit_nulls(true).build(file()?)),
        })
    }

    /// Adds rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Output::Table { schema, rows, cut } => {
                let have: usize = rows.iter().map(RecordBatch::num_rows).sum();
                let take = batch.num_rows().min(MAX_TABLE_ROWS.saturating_sub(have));
                *cut |= take < batch.num_rows();
                if take > 0 {
                    rows.push(texts(&batch.slice(0, take), schema, |_| true, printable)?);
                }
                Ok(())
            }
            Output::Csv(writer) => {
                let schema = texts_of(&batch.schema(), DataType::is_nested);
                writer.write(&texts(batch, &schema, DataType::is_nested, str::to_owned)?)
            }
            Output::Json(writer) => writer.write(batch),
        }
    }

    /// Prints all of it; whether rows were left out.
    pub(crate) fn print(self) -> anyhow::Result<bool> {
        let mut stdout = std::io::stdout().lock();
        let buffered = match self {
            Output::Table { schema, rows, cut } => {
                writeln!(stdout, "{}", pretty_format_batches_with_schema(schema, &rows)?)?;
                return Ok(cut);
            }
            Output::Csv(writer) => writer.into_inner(),
            Output::Json(mut writer) => {
                writer.finish()?;
                let mut file = writer.into_inner();
                file.write_all(b"\n")?;
                file
            }
        };
        let mut file = buffered
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.rewind()?;
        std::io::copy(&mut file, &mut stdout)?;
        stdout.flush()?;
        Ok(false)
    }
}

/// The most rows of a table, for whoever is told that there are more.
pub(crate) fn most() -> usize {
    MAX_TABLE_ROWS
}

/// The same columns, some of them as text.
fn texts_of(schema: &Schema, which: impl Fn(&DataType) -> bool) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|field| match which(field.data_type()) {
            true => Field::new(printable(field.name()), DataType::Utf8, true),
            false => field.as_ref().clone(),
        });
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// The same rows, with those columns as text.
fn texts(
    batch: &RecordBatch,
    schema: &SchemaRef,
    which: impl Fn(&DataType) -> bool,
    said: impl Fn(&str) -> String,
) -> Result<RecordBatch, ArrowError> {
    let options = FormatOptions::default();
    let text = |column: &ArrayRef| -> Result<ArrayRef, ArrowError> {
        if !which(column.data_type()) {
            return Ok(column.clone());
        }
        let formatter = ArrayFormatter::try_new(column, &options)?;
        let cell = |row: usize| match column.is_null(row) {
            true => Ok(None),
            false => formatter.value(row).try_to_string().map(|text| Some(said(&text))),
        };
        let cells: Result<StringArray, ArrowError> = (0..column.len()).map(cell).collect();
        Ok(Arc::new(cells?))
    };
    let columns: Result<Vec<ArrayRef>, ArrowError> = batch.columns().iter().map(text).collect();
    RecordBatch::try_new(schema.clone(), columns?)
}

/// The text with nothing in it that a terminal would act upon.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut out, letter| {
            match letter {
                '"' | '\'' | '\\' => out.push(letter),
                letter => out.extend(letter.escape_debug()),
            }
            out
        })
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn nothing_is_printed_that_a_terminal_acts_upon() {
        assert_eq!(
            printable("a\u{1b}[2J\n'b' \u{202e}ü"),
            "a\\u{1b}[2J\\n'b' \\u{202e}ü"
        );
    }
}
