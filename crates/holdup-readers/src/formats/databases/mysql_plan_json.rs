//! `EXPLAIN FORMAT=JSON` of MySQL and MariaDB, and MariaDB's `ANALYZE FORMAT=JSON`: which table a query reads whole, and which took longest.
//!
//! In: a document of names and values, line by line, whole or cut. Out: a statement about the table that took longest where that was
//! measured, else about the one of which most rows are read. Source: the manuals of both servers.

use super::current_op::Pairs;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{holds, name_of, ns_of, number, rounded};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mysql-explain-json", Family::Databases, recognise)
        .about("EXPLAIN FORMAT=JSON of MySQL");

/// Tables of a plan, bytes of a line that are looked at, and pairs of it.
const MAX_TABLES: usize = 500;
const LINE_BYTES: usize = 256 << 10;
const MAX_PAIRS: usize = 20_000;

/// Milliseconds of a second.
const MS_OF_SECOND: f64 = 1e3;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &str| holds(head, name);
    Sureness::certain_if(has("\"query_block\"") && has("\"access_type\"") && has("\"table_name\""))
}

/// How one table is read.
#[derive(Debug, Default)]
struct Access {
    table: String,
    how: String,
    key: String,
    rows: f64,
    /// What was measured: milliseconds, loops, rows of a loop.
    took_ms: Option<f64>,
    loops: Option<f64>,
    real_rows: Option<f64>,
    quote: Quote,
}

impl Access {
    fn is_whole(&self) -> bool {
        self.how == "ALL"
    }

    fn sentence(&self) -> String {
        let mut text = match (self.how.as_str(), self.key.as_str()) {
            ("ALL", _) => format!("{} is read whole (access_type ALL, no index)", self.table),
            (how, "") => format!("{} is read with access_type {how}", self.table),
            (how, key) => format!("{} is read by its index {key} (access_type {how})", self.table),
        };
        if let Some(ms) = self.took_ms {
            text.push_str(&format!(", which took {}", duration(ns_of(ms / MS_OF_SECOND))));
        }
        match (self.real_rows, self.loops) {
            (Some(rows), Some(loops)) if loops > 1.0 => {
                text.push_str(&format!(
                    ": {} rows in each of {loops:.0} loops, {:.0} expected",
                    rounded(rows),
                    self.rows
                ));
            }
            (Some(rows), _) => text.push_str(&format!(": {} rows, {:.0} expected", rounded(rows), self.rows)),
            (None, _) => text.push_str(&format!(": {:.0} rows by estimate", self.rows)),
        }
        text
    }
}

#[derive(Debug, Default)]
struct Reader {
    all: Vec<Access>,
    costly: Vec<&'static str>,
}

impl Reader {
    fn pair(&mut self, name: &str, value: &str, out: &mut Out<'_>) {
        let costly = match (name, value) {
            ("using_filesort" | "filesort", "true" | "") => Some("it sorts (filesort)"),
            ("using_temporary_table" | "temporary_table", "true" | "") => Some("it makes a temporary table"),
            ("using_join_buffer", _) => Some("it joins without an index (join buffer)"),
            _ => None,
        };
        if let Some(costly) = costly.filter(|costly| !self.costly.contains(costly)) {
            self.costly.push(costly);
        }
        if name == "table_name" {
            match self.all.len() < MAX_TABLES {
                true => self.all.push(Access {
                    table: name_of(value),
                    quote: out.here(),
                    ..Access::default()
                }),
                false => out.account().left_out += 1,
            }
            return;
        }
        let Some(access) = self.all.last_mut() else { return };
        match name {
            "access_type" => access.how = name_of(value),
            "key" => access.key = name_of(value),
            "rows_examined_per_scan" | "rows" if access.rows <= 0.0 => {
                access.rows = number(value).unwrap_or(0.0)
            }
            "r_table_time_ms" => access.took_ms = number(value),
            "r_total_time_ms" if access.took_ms.is_none() => access.took_ms = number(value),
            "r_loops" => access.loops = number(value),
            "r_rows" => access.real_rows = number(value),
            _ => {}
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        for (name, value) in Pairs(&text).take(MAX_PAIRS) {
            self.pair(name, value, out);
        }
        let bare = text.trim();
        let is_part = bare.ends_with(['{', '}', '[', ']', ',', '"']) || bare.starts_with(['"', '}', ']']);
        match is_part || bare.starts_with("EXPLAIN") || bare.starts_with("***") {
            true => Understood::Evidence,
            false if bare.is_empty() => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let measured = read
            .all
            .iter()
            .filter(|access| access.took_ms.is_some())
            .max_by(|one, other| {
                one.took_ms
                    .unwrap_or(0.0)
                    .total_cmp(&other.took_ms.unwrap_or(0.0))
            });
        let read_most = read.all.iter().max_by(|one, other| {
            one.is_whole()
                .cmp(&other.is_whole())
                .then(one.rows.total_cmp(&other.rows))
        });
        let Some(worst) = measured.or(read_most) else {
            return;
        };
        let mut text = worst.sentence();
        for costly in &read.costly {
            text.push_str(&format!("; {costly}"));
        }
        if measured.is_none() {
            text.push_str("; the query was not run, so nothing is measured");
        }
        let well = measured.is_none() && !worst.is_whole() && read.costly.is_empty();
        let kind = if well {
            StatementKind::WithinNorm
        } else {
            StatementKind::Took
        };
        let ns = worst.took_ms.map(|ms| ns_of(ms / MS_OF_SECOND));
        out.statement(statements::one(kind, ns, worst.quote.clone(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const MYSQL: &str = "{\n  \"query_block\": {\n    \"select_id\": 1,\n    \"cost_info\": {\n      \"query_cost\": \"201533.40\"\n    },\n\
        \x20   \"ordering_operation\": {\n      \"using_filesort\": true,\n      \"table\": {\n        \"table_name\": \"o\",\n\
        \x20       \"access_type\": \"ALL\",\n        \"rows_examined_per_scan\": 987654,\n        \"rows_produced_per_join\": 98765,\n\
        \x20       \"filtered\": \"10.00\"\n      }\n    }\n  }\n}\n";

    #[test]
    fn a_table_that_is_read_whole_and_one_with_an_index() {
        let reading = read_text("e", MYSQL.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mysql-explain-json");
        assert_eq!(
            reading.texts(),
            [
                "o is read whole (access_type ALL, no index): 987654 rows by estimate; it sorts (filesort); the query was not run, so \
                 nothing is measured"
            ]
        );
        let well = MYSQL
            .replace("\"ALL\",", "\"ref\",\n        \"key\": \"day\",")
            .replace("      \"using_filesort\": true,\n", "");
        assert_eq!(
            read_text("e", well.as_bytes()).observed.statements[0].kind,
            K::WithinNorm
        );
    }

    #[test]
    fn what_mariadb_measured() {
        let text = "{\n  \"query_block\": {\n    \"select_id\": 1,\n    \"r_loops\": 1,\n    \"r_total_time_ms\": 912.5,\n    \"nested_loop\": [\n\
            {\"table\": {\n        \"table_name\": \"c\",\n        \"access_type\": \"ALL\",\n        \"r_loops\": 1,\n        \"rows\": 400,\n\
            \"r_rows\": 400,\n        \"r_table_time_ms\": 2.5\n}},\n{\"table\": {\n\"table_name\": \"o\",\n\"access_type\": \"ALL\",\n\"r_loops\": 400,\n\
            \"rows\": 9000,\n\"r_rows\": 9100,\n\"r_table_time_ms\": 900\n}}\n]\n}\n}\n";
        assert_eq!(
            read_text("e", text.as_bytes()).texts(),
            [
                "o is read whole (access_type ALL, no index), which took 900 ms: 9100 rows in each of 400 loops, 9000 expected"
            ]
        );
    }

    #[test]
    fn rubbish_is_none() {
        let text =
            "\"query_block\" \"access_type\" \"table_name\"\n\"access_type\": \"ALL\"\n\"rows\": 1e999\n";
        assert!(read_text("e", text.as_bytes()).observed.statements.is_empty());
    }
}
