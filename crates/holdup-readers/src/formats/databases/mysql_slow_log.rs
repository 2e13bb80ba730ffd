//! The slow log of MySQL and MariaDB.
//!
//! In: records of comments (`# Query_time: 4.35  Lock_time: 0.00 …`) with a statement below. Out: for each kind of statement how long the
//! longest took, which table it is of, how often it is there, for how long it waited for locks, and how many rows it looked at. Values are data and stay as they
//! stand in the first one.

use super::main_table::main_table;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("mysql-slow-log", Family::Databases, recognise)
    .about("the slow log of MySQL")
    .openings(&["# User@Host:"]);

/// Kinds of statements that are kept, bytes of one as it is reported, and bytes in which its table is looked for.
const KINDS: usize = 1_000;
const STATEMENT: usize = 160;
const SEARCHED: usize = 16 << 10;

/// The part of its time from which waiting for locks is why a statement is slow.
const MIN_LOCK_SHARE: f64 = 0.5;

fn recognise(head: &[u8]) -> Sureness {
    let line = |line: &[u8]| {
        line.starts_with(b"# Query_time:") && memchr::memmem::find(line, b"Lock_time:").is_some()
    };
    match head
        .split(|byte| *byte == b'\n')
        .any(|text| line(text.trim_ascii()))
    {
        true => Sureness::Certain,
        false => Sureness::No,
    }
}

/// The record that is being read.
#[derive(Debug, Default)]
struct Record {
    seconds: f64,
    locked: f64,
    examined: String,
    text: String,
    table: String,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    record: Option<Record>,
    kinds: BTreeMap<String, (Record, u64)>,
}

/// The value of `Query_time: 4.35`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    rest.split_whitespace().next()
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..SEARCHED).unwrap_or(line));
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("# ") {
            let number = |name: &str| value(rest, name).and_then(|value| decimal(value.as_bytes()));
            if let Some(seconds) = number("Query_time:") {
                self.close(out);
                self.record = Some(Record {
                    seconds,
                    locked: number("Lock_time:").unwrap_or(0.0),
                    examined: value(rest, "Rows_examined:")
                        .unwrap_or_default()
                        .chars()
                        .take(20)
                        .collect(),
                    quote: out.here(),
                    ..Record::default()
                });
                return Understood::Evidence;
            }
            let begins = rest.starts_with("Time:") || rest.starts_with("User@Host:");
            if begins {
                self.close(out);
            }
            return Understood::Ignorable;
        }
        let lower = text.to_ascii_lowercase();
        let aside = text.is_empty() || lower.starts_with("set timestamp=") || lower.starts_with("use ");
        let Some(record) = self.record.as_mut().filter(|_| !aside) else {
            return Understood::Ignorable;
        };
        if record.text.len() < SEARCHED {
            if !record.text.is_empty() {
                record.text.push(' ');
            }
            record.text.push_str(text);
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        for (_, (record, times)) in std::mem::take(&mut self.kinds) {
            let ns = (record.seconds.clamp(0.0, 1e9) * 1e9) as Ns;
            let rows = match record.examined.as_str() {
                "" => String::new(),
                rows => format!(", {rows} rows examined"),
            };
            let locked = (record.locked.clamp(0.0, 1e9) * 1e9) as Ns;
            let waits = record.locked >= MIN_LOCK_SHARE * record.seconds && locked > 0;
            let locked = match locked {
                0 => String::new(),
                locked => format!(", {} of it waiting for locks", duration(locked)),
            };
            let kind = if waits {
                StatementKind::Stalled
            } else {
                StatementKind::Took
            };
            // What is cut may not name its table.
            let of = match record.table.as_str() {
                "" => String::new(),
                table if record.text.contains(table) => String::new(),
                table => format!(" of {table}"),
            };
            let text = format!("`{}`{of} took {}{locked}{rows}", record.text, duration(ns));
            out.statement(Statement {
                times,
                ..statements::one(kind, Some(ns), record.quote, text)
            });
        }
    }
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(mut record) = self.record.take() else {
            return;
        };
        record.table = main_table(&record.text).unwrap_or_default();
        record.text = record
            .text
            .trim_end_matches(';')
            .chars()
            .take(STATEMENT)
            .collect();
        // Statements that differ in numbers alone are of one kind.
        let kind = record
            .text
            .chars()
            .filter(|char| !char.is_ascii_digit())
            .collect::<String>()
            .to_ascii_lowercase();
        if self.kinds.len() >= KINDS && !self.kinds.contains_key(&kind) {
            out.account().left_out += 1;
            return;
        }
        match self.kinds.get_mut(&kind) {
            Some((longest, times)) => {
                *times += 1;
                if record.seconds > longest.seconds {
                    *longest = record;
                }
            }
            None => {
                self.kinds.insert(kind, (record, 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_longest_of_each_kind_with_its_locks_and_rows() {
        let text = "# User@Host: root[root] @ localhost []\n# Query_time: 4.352063  Lock_time: 0.000000  Rows_sent: 249  Rows_examined: 249\nuse mysql;\n\
            SET timestamp=1241453102;\nshow status;\n# Time: 090504  9:07:24\n# User@Host: app[app] @ db [10.0.0.9]\n\
            # Query_time: 2.156031  Lock_time: 2.100000  Rows_sent: 0  Rows_examined: 7\nUPDATE stock SET n = 1\nWHERE id = 7;\n\
            # Query_time: 1.0  Lock_time: 0.9  Rows_sent: 0  Rows_examined: 7\nUPDATE stock SET n = 2\nWHERE id = 8;\n";
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mysql-slow-log");
        let listed: Vec<_> = reading
            .observed
            .statements
            .iter()
            .map(|one| (one.kind, one.text.as_str(), one.times))
            .collect();
        assert_eq!(
            listed,
            [
                (
                    StatementKind::Took,
                    "`show status` took 4.35 s, 249 rows examined",
                    1
                ),
                (
                    StatementKind::Stalled,
                    "`UPDATE stock SET n = 1 WHERE id = 7` took 2.16 s, 2.10 s of it waiting for locks, 7 rows examined",
                    2
                ),
            ]
        );
    }

    #[test]
    fn a_statement_that_is_cut_before_its_table_is_of_it_all_the_same() {
        let columns: Vec<String> = (0..40)
            .map(|at| format!("li0_.COLUMN_{at} as COL{at}_154_"))
            .collect();
        let text = format!(
            "# Query_time: 2183.1  Lock_time: 0.0  Rows_sent: 0  Rows_examined: 7\nselect {}, (select max(x) from other) from TBL_ERRORS li0_ where li0_.ID = 7;\n",
            columns.join(", ")
        );
        let reading = read_text("s", text.as_bytes());
        let text = &reading.observed.statements[0].text;
        assert!(text.contains("` of TBL_ERRORS took 36 min 23 s"), "{text}");
    }

    #[test]
    fn rubbish_is_survived() {
        let text = "# Query_time: x  Lock_time: \n# Query_time: 1e999 Lock_time: -1\n#\n# \n;\n";
        let _ = read_text("s", text.as_bytes());
    }
}
