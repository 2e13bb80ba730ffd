//! Totals of statements since the counters began: `pg_stat_statements` of PostgreSQL, `sys.statement_analysis` and
//! `events_statements_summary_by_digest` of MySQL.
//!
//! In: a table in one of the forms of [`table`](super::table), with the columns that a query picked. Out: a statement about the one that took
//! most time in all: its part of what is listed, how often it was run, how long it took each, the rows that it read for those it gave.
//! Source: the manuals of both servers.

use super::printable;
use super::table::{Row, Table, Taken};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, length, ns_of, number};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("statement-totals", Family::Databases, recognise)
    .about("pg_stat_statements, sys.statement_analysis");

/// Rows that are looked at.
const MAX_ROWS: u64 = 100_000;

/// The next one is named too if it took at least so large a part of the longest.
const NEXT_IS_LONG: f64 = 0.25;

/// Columns with the time of all calls, and how many of their units make a second: milliseconds, picoseconds, or a text with its unit.
const TOTALS: [(&str, f64); 5] = [
    ("total_exec_time", 1e3),
    ("total_time", 1e3),
    ("total_time_ms", 1e3),
    ("total_latency", 1e12),
    ("sum_timer_wait", 1e12),
];

/// The same of one call, where no column has the sum.
const MEANS: [(&str, f64); 4] = [
    ("mean_exec_time", 1e3),
    ("mean_time", 1e3),
    ("avg_latency", 1e12),
    ("avg_timer_wait", 1e12),
];

/// The longest of them.
const GREATEST: [(&str, f64); 4] = [
    ("max_exec_time", 1e3),
    ("max_time", 1e3),
    ("max_latency", 1e12),
    ("max_timer_wait", 1e12),
];

const STATEMENTS: [&str; 3] = ["query", "digest_text", "sample_query"];
const CALLS: [&str; 3] = ["calls", "exec_count", "count_star"];

fn is_wanted(names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|one| one == name);
    let timed = TOTALS.iter().chain(&MEANS).any(|(name, _)| has(name));
    STATEMENTS.iter().any(|name| has(name)) && CALLS.iter().any(|name| has(name)) && timed
}

fn recognise(head: &[u8]) -> Sureness {
    let names = |line: &str| -> Vec<String> {
        line.split('|')
            .map(|name| name.trim().to_ascii_lowercase())
            .collect()
    };
    if any_line(head, |line| line.contains('|') && is_wanted(&names(line))) {
        return Sureness::Certain;
    }
    // In the vertical form each name stands on a line of its own.
    let mut table = Table::of(is_wanted);
    for (number, line) in head.split(|byte| *byte == b'\n').enumerate() {
        if let Taken::Row(row) = table.take(line.trim_ascii_end(), number as u64) {
            return Sureness::certain_if(is_of_statement(&row));
        }
    }
    Sureness::certain_if(table.end().is_some_and(|row| is_of_statement(&row)))
}

fn is_of_statement(row: &Row) -> bool {
    let names: Vec<String> = row.cells().map(|(name, _)| name.to_owned()).collect();
    is_wanted(&names)
}

/// What one row tells, times in seconds.
#[derive(Debug, Clone)]
struct Total {
    text: String,
    calls: f64,
    total: f64,
    longest: Option<f64>,
    more: Vec<String>,
    quote: Quote,
}

impl Total {
    fn of(row: &Row, quote: Quote) -> Option<Total> {
        let cell = |name: &str| text_of(row.cell(name)).trim().to_owned();
        let first = |names: &[&str]| names.iter().map(|name| cell(name)).find(|text| !text.is_empty());
        let time = |names: &[(&str, f64)]| {
            names.iter().find_map(|(name, units)| {
                let text = cell(name);
                // `4.11 s`, `12.01 ms` where the server has put it into words.
                number(&text)
                    .map(|value| value / units)
                    .or_else(|| latency(&text))
            })
        };
        let calls = number(&first(&CALLS)?)?;
        let total = time(&TOTALS).or_else(|| Some(time(&MEANS)? * calls))?;
        let mut more = Vec::new();
        let figure = |name: &str| number(&cell(name)).filter(|value| *value > 0.0);
        let any = |names: &[&str]| names.iter().find_map(|name| figure(name));
        if let (Some(read), sent) = (
            any(&["rows_examined", "sum_rows_examined"]),
            any(&["rows_sent", "sum_rows_sent"]),
        ) {
            more.push(format!(
                "{read:.0} rows examined for {:.0} sent",
                sent.unwrap_or(0.0)
            ));
        }
        for (names, what) in [
            (
                &["shared_blks_read"][..],
                "blocks read from outside of the buffers",
            ),
            (&["temp_blks_written"][..], "blocks written to temporary files"),
            (
                &["tmp_disk_tables", "sum_created_tmp_disk_tables"][..],
                "temporary tables on disk",
            ),
            (&["sum_no_index_used"][..], "calls without an index"),
        ] {
            if let Some(count) = any(names) {
                more.push(format!("{count:.0} {what}"));
            }
        }
        if cell("full_scan") == "*" {
            more.push("it reads whole tables".to_owned());
        }
        Some(Total {
            text: printable(first(&STATEMENTS)?.as_bytes()),
            calls,
            total,
            longest: time(&GREATEST),
            more,
            quote,
        })
    }

    fn sentence(&self, sum: f64, count: u64) -> String {
        let mut text = format!(
            "`{}` took {} in {:.0} calls",
            self.text,
            duration(ns_of(self.total)),
            self.calls
        );
        if self.calls > 0.0 {
            text.push_str(&format!(", {} each", duration(ns_of(self.total / self.calls))));
        }
        if let Some(longest) = self.longest {
            text.push_str(&format!(", at most {}", duration(ns_of(longest))));
        }
        if count > 1 && sum > 0.0 {
            text.push_str(&format!(
                "; {:.0} % of the time of the {count} statements listed",
                100.0 * self.total / sum
            ));
        }
        for more in &self.more {
            text.push_str(&format!("; {more}"));
        }
        text
    }
}

/// Seconds of `4.11 s`, `1.24 m`, `12.01 ms`, `1.50 min`, `800.00 ps`, as `sys.format_time` writes them.
fn latency(text: &str) -> Option<f64> {
    match text.strip_suffix(" ps") {
        Some(picoseconds) => Some(number(picoseconds)? / 1e12),
        None => length(text),
    }
}

#[derive(Debug)]
struct Reader {
    table: Table,
    first: Option<Total>,
    next: Option<Total>,
    sum: f64,
    count: u64,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            table: Table::of(is_wanted),
            first: None,
            next: None,
            sum: 0.0,
            count: 0,
        }
    }
}

impl Reader {
    fn keep(&mut self, row: &Row, out: &mut Out<'_>) {
        if self.count >= MAX_ROWS {
            out.account().left_out += 1;
            return;
        }
        let quote = Quote {
            line: row.line,
            ..out.here()
        };
        let Some(total) = Total::of(row, quote) else {
            return;
        };
        self.sum += total.total;
        self.count += 1;
        if self.first.as_ref().is_none_or(|first| total.total > first.total) {
            self.next = self.first.replace(total);
        } else if self.next.as_ref().is_none_or(|next| total.total > next.total) {
            self.next = Some(total);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        match self.table.take(line.trim_ascii_end(), out.here().line) {
            Taken::Row(row) => {
                self.keep(&row, out);
                Understood::Evidence
            }
            Taken::Part => Understood::Evidence,
            Taken::No => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some(row) = self.table.end() {
            self.keep(&row, out);
        }
        let read = std::mem::take(self);
        let Some(first) = read.first else { return };
        let mut text = first.sentence(read.sum, read.count);
        if let Some(next) = read.next.filter(|next| next.total >= NEXT_IS_LONG * first.total) {
            text.push_str(&format!(
                "; next `{}`, {}",
                next.text,
                duration(ns_of(next.total))
            ));
        }
        let share = (read.count > 1 && read.sum > 0.0).then(|| first.total / read.sum);
        out.statement(Statement {
            share,
            ..statements::one(
                StatementKind::Took,
                Some(ns_of(first.total)),
                first.quote.clone(),
                text,
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        let reading = read_text("s", text.as_bytes());
        assert!(
            reading
                .observed
                .sources
                .iter()
                .any(|source| source.format == "statement-totals"),
            "{reading:?}"
        );
        let all = reading.observed.statements.into_iter();
        all.map(|one| one.text).collect()
    }

    #[test]
    fn of_postgresql_aligned_and_expanded() {
        let text = "             query              | calls |  total_exec_time   | mean_exec_time | rows | shared_blks_read \n\
            --------------------------------+-------+--------------------+----------------+------+------------------\n\
            \x20SELECT * FROM big WHERE note = $1 | 1200 | 360000.25 | 300.0002 | 12 | 480000 \n\
            \x20UPDATE stock SET n = n + $1      | 9000 |  40000.50 |   4.4445 | 9000 | 10 \n(2 rows)\n";
        assert_eq!(
            said(text),
            [
                "`SELECT * FROM big WHERE note = $1` took 6 min 0 s in 1200 calls, 300 ms each; 90 % of the time of the 2 statements listed; \
                 480000 blocks read from outside of the buffers"
            ]
        );
        let text = "-[ RECORD 1 ]---+---------------------------\nquery           | SELECT pg_sleep($1)\ncalls           | 4\n\
            total_exec_time | 8001.5\nmax_exec_time   | 2000.9\n";
        assert_eq!(
            said(text),
            ["`SELECT pg_sleep($1)` took 8.00 s in 4 calls, 2.00 s each, at most 2.00 s"]
        );
    }

    #[test]
    fn of_mysql_in_words_and_in_picoseconds() {
        let text = "*************************** 1. row ***************************\n            query: SELECT * FROM `orders` WHERE `note` = ?\n\
            \x20              db: shop\n        full_scan: *\n       exec_count: 120\n    total_latency: 4.00 min\n      max_latency: 5.10 s\n\
            \x20   rows_examined: 118800000\n        rows_sent: 480\n";
        assert_eq!(
            said(text),
            [
                "`SELECT * FROM `orders` WHERE `note` = ?` took 4 min 0 s in 120 calls, 2.00 s each, at most 5.10 s; 118800000 rows examined \
                 for 480 sent; it reads whole tables"
            ]
        );
        let text = "+-------------+------------+----------------+\n| DIGEST_TEXT | COUNT_STAR | SUM_TIMER_WAIT |\n+-------------+------------+----------------+\n\
            | SELECT ?    |         10 |  2000000000000 |\n| COMMIT      |         10 |  1000000000000 |\n+-------------+------------+----------------+\n";
        assert_eq!(
            said(text),
            [
                "`SELECT ?` took 2.00 s in 10 calls, 200 ms each; 67 % of the time of the 2 statements listed; next `COMMIT`, 1.00 s"
            ]
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "query | calls | total_time\n------+---\n a | b | c\n",
            "query | calls | total_time\n------+---\n a | 1 | 1e999\n a | -1 | 1\n",
        ] {
            assert!(
                read_text("s", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
