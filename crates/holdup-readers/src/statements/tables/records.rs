//! Rows that are printed as records, one value a line: objects of JSON, psql's expanded rows, `\G` of MySQL's client.
//!
//! In: lines. Out: what tables say; records with the same names are rows of one table.

use super::json::{self, Json, Pair};
use super::{CELL, COLUMNS, Column, FACTS, Fact, Row, Table};
use crate::find::find;
use crate::gather::text_of;
use crate::statements::structured;

/// Tables of one artefact.
const TABLES: usize = 16;

/// Documents that are one line: of a log that is written so its own reader says more.
const SINGLE_LINES: usize = 16;

/// Bytes of a line that is looked at.
const LINE: usize = 64 << 10;

/// Follows the records of one artefact.
#[derive(Debug, Default)]
pub(in crate::statements) struct Records {
    form: Form,
    tables: Vec<Table>,
    single_lines: usize,
}

#[derive(Debug, Default)]
enum Form {
    #[default]
    None,
    Json(Json),
    /// A record of a client of a database, with the line that it began on.
    Row(Vec<Pair>, u64),
}

impl Records {
    /// Whether no record is being read.
    pub(in crate::statements) fn is_idle(&self) -> bool {
        matches!(self.form, Form::None)
    }

    /// Takes a line; whether it is of a record.
    pub(in crate::statements) fn line(&mut self, line: &[u8], number: u64) -> bool {
        match std::mem::take(&mut self.form) {
            Form::Json(json) => self.of_json(json, line, number),
            Form::Row(pairs, begun) => self.of_row(pairs, begun, line, number),
            Form::None => self.begins(line, number),
        }
    }

    fn begins(&mut self, line: &[u8], number: u64) -> bool {
        if begins_record(line) {
            self.form = Form::Row(Vec::new(), number);
            return true;
        }
        if !json::begins(line) {
            return false;
        }
        let whole = line.len() > 2 && matches!(line.last(), Some(b'}' | b']'));
        if whole {
            // A line of a structured log says it in its message.
            if self.single_lines >= SINGLE_LINES || structured::message_of(line).is_some() {
                return false;
            }
            self.single_lines += 1;
        }
        self.of_json(Json::default(), line, number)
    }

    fn of_json(&mut self, mut json: Json, line: &[u8], number: u64) -> bool {
        let line = line.get(..LINE).unwrap_or(line);
        if json.line(line).is_none() {
            return false;
        }
        let rows = json.rows();
        // A document on one line that has no row says nothing as one.
        let is_one = !json.is_whole() || !rows.is_empty() || line.len() < 3;
        for row in rows.into_iter().filter(|row| row.len() > 1) {
            self.add(row, number);
        }
        if !json.is_whole() {
            self.form = Form::Json(json);
        }
        is_one
    }

    fn of_row(&mut self, mut pairs: Vec<Pair>, begun: u64, line: &[u8], number: u64) -> bool {
        if begins_record(line) {
            self.add(pairs, begun);
            self.form = Form::Row(Vec::new(), number);
            return true;
        }
        // A rule between the heading of a record and its first pair.
        if pairs.is_empty() && !text_of(line).contains(char::is_alphanumeric) {
            self.form = Form::Row(pairs, begun);
            return true;
        }
        let Some(pair) = cell(line) else {
            self.add(pairs, begun);
            return false;
        };
        if pairs.len() < COLUMNS {
            pairs.push(pair);
        }
        self.form = Form::Row(pairs, begun);
        true
    }

    /// Adds a record to the table that has its names.
    fn add(&mut self, pairs: Vec<Pair>, line: u64) {
        let known = self.tables.iter().position(|table| {
            table.columns.len() == pairs.len().min(COLUMNS)
                && table
                    .columns
                    .iter()
                    .zip(&pairs)
                    .all(|(column, (name, _))| column.name == *name)
        });
        let at = match known {
            Some(at) => at,
            None if self.tables.len() < TABLES => {
                let names = pairs.iter().take(COLUMNS).map(|(name, _)| name.as_str());
                self.tables.push(Table::of_names(names));
                self.tables.len() - 1
            }
            None => return,
        };
        if let Some(table) = self.tables.get_mut(at) {
            let cells = pairs.into_iter().take(COLUMNS).map(|(_, cell)| cell).collect();
            table.rows += 1;
            table.take(Row { cells, line });
        }
    }

    /// Everything that was said.
    pub(in crate::statements) fn end(&mut self) -> Vec<Fact> {
        if let Form::Row(pairs, begun) = std::mem::take(&mut self.form) {
            self.add(pairs, begun);
        }
        let facts = self.tables.drain(..).flat_map(Table::facts);
        facts.take(FACTS).collect()
    }
}

/// `-[ RECORD 1 ]----+----` of psql, `****** 1. row ******` of MySQL's client.
fn begins_record(line: &[u8]) -> bool {
    let of_mysql = line.starts_with(b"***") && find(line, b". row *").is_some();
    line.starts_with(b"-[ RECORD ") || of_mysql || begins_numbered(line)
}

/// `Row 12:` of ClickHouse's client.
fn begins_numbered(line: &[u8]) -> bool {
    let number = line
        .strip_prefix(b"Row ")
        .and_then(|rest| rest.strip_suffix(b":"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// A name with its value: `waiting | 4`, `Seconds_Behind_Master: 4`.
fn cell(line: &[u8]) -> Option<Pair> {
    let at = line.iter().position(|byte| matches!(byte, b'|' | b':'))?;
    let (name, value) = line.split_at_checked(at)?;
    let name = name.trim_ascii();
    let fits = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ' | b'-' | b'.' | b'(' | b')' | b'%')
    };
    if name.is_empty() || name.len() > CELL || !name.iter().all(fits) {
        return None;
    }
    let value = value.get(1..)?.trim_ascii();
    let value: String = text_of(value).chars().take(CELL).collect();
    let value = if value == "NULL" { String::new() } else { value };
    Some((text_of(name), value))
}

impl Table {
    /// The table of records with these names.
    fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Table {
        let column = |name: &str| Column {
            name: name.to_owned(),
            begin: 0,
            end: 0,
            sum: 0.0,
            count: 0,
            largest: None,
            unit: false,
        };
        Table {
            columns: names.map(column).collect(),
            apart: true,
            of_records: true,
            ..Table::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        let all = read_text("t", text.as_bytes()).observed.statements;
        all.into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn an_object_of_a_list_is_a_row_with_the_names_of_what_it_is_in() {
        let text = "{\n \"error\": false,\n \"data\": {\n  \"group\": \"bills\",\n  \"members\": [\n   {\"topic\": \"paid\",\n    \"status\": \"STALL\",\n    \"end\": {\n     \"offset\": 7\n    },\n    \"current_lag\": 9120\n   },\n   {\"topic\": \"sent\",\n    \"status\": \"OK\",\n    \"end\": {\n     \"offset\": 9\n    },\n    \"current_lag\": 0\n   }\n  ]\n }\n}\n";
        let said = said(text);
        assert!(
            said[0].contains("bills") && said[0].contains("status STALL"),
            "{said:?}"
        );
        assert!(
            said[0].starts_with("paid: ") && said[0].contains("current_lag 9120"),
            "{said:?}"
        );
    }

    #[test]
    fn expanded_rows_are_rows() {
        let text = "-[ RECORD 1 ]--+-------\nslot_name | a\nlag_bytes | 12\n-[ RECORD 2 ]--+-------\nslot_name | b\nlag_bytes | 99000\n";
        assert!(
            said(text)[0].starts_with("b: lag_bytes 99000"),
            "{:?}",
            said(text)
        );
        let text = "*************************** 1. row ***************************\n  Shard: s3\n  Pending_jobs: 4410\n";
        assert!(
            said(text)[0].starts_with("s3: Pending_jobs 4410"),
            "{:?}",
            said(text)
        );
    }

    #[test]
    fn numbered_rows_below_a_rule_are_rows() {
        let text =
            "Row 1:\n──────\ndatabase:   shop\ntable:      events\nelapsed:    61254.201\nnum_parts:  1\n\n";
        assert!(
            said(text)[0].starts_with("events: elapsed 61254.201, database shop"),
            "{:?}",
            said(text)
        );
    }

    #[test]
    fn large_numbers_of_a_document_say_nothing_and_a_state_does() {
        let text = "{\n \"cluster_name\": \"shop\",\n \"status\": \"green\",\n \"active_shards\": 210,\n \"task_max_waiting_in_queue_millis\": 0\n}\n";
        assert_eq!(said(text), Vec::<String>::new());
        let said = said(
            &text
                .replace("green", "red")
                .replace("_millis\": 0", "_millis\": 93000"),
        );
        assert!(
            said.iter().any(|one| one.starts_with("shop: status red")),
            "{said:?}"
        );
        assert!(
            said.iter()
                .any(|one| one.starts_with("shop: task_max_waiting_in_queue_millis 93000")),
            "{said:?}"
        );
    }

    #[test]
    fn a_healthy_or_broken_document_says_nothing_grave() {
        for text in [
            "{\n \"status\": \"OK\",\n \"lag\": 0,\n \"topic\": \"a\"\n}\n",
            "{\n \"a\": [[[[\n",
            "{\"a\"\n",
            "}}}}\n{\n]\n",
        ] {
            let all = read_text("t", text.as_bytes()).observed.statements;
            assert!(
                all.iter()
                    .all(|one| one.kind == holdup_evidence::observed::StatementKind::Took),
                "{all:?}"
            );
        }
    }
}
