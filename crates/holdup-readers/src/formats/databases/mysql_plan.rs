//! `EXPLAIN` of MySQL and MariaDB as a table: which table a query reads whole.
//!
//! In: a table in one of the forms of [`table`](super::table), or its vertical form. Out: a statement about the table of which most rows are
//! read, how it is read, and what else the server does. Nothing in it is measured.
//! Source: "EXPLAIN Output Format" of MySQL's manual, which has the product of the rows as the measure of a join.

use super::table::{Row, Table, Taken};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, number};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mysql-explain", Family::Databases, recognise).about("EXPLAIN of MySQL");

/// Rows of a plan.
const MAX_ROWS: usize = 500;

/// What the server does beside that costs time, as its column `Extra` has it.
const COSTLY: [&str; 4] = [
    "Using temporary",
    "Using filesort",
    "Using join buffer",
    "Range checked for each record",
];

fn is_plan(names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|one| one == name);
    has("select_type") && has("table") && has("type") && has("key") && has("rows")
}

fn recognise(head: &[u8]) -> Sureness {
    if !holds(head, "select_type") {
        return Sureness::No;
    }
    let framed = any_line(head, |line| {
        let names: Vec<String> = line
            .split('|')
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        is_plan(&names)
    });
    let vertical = holds(head, ". row *") && holds(head, "possible_keys:");
    Sureness::certain_if(framed || vertical)
}

/// Whether a line is the client's own: its prompt, or the count below a table.
fn is_around(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let asks = [b"mysql>".as_slice(), b"MariaDB [", b"EXPLAIN ", b"explain "];
    asks.iter().any(|begin| line.starts_with(begin)) || holds(line, " in set, ")
}

/// One table of the plan.
#[derive(Debug, Clone)]
struct Access {
    table: String,
    /// How it is read: `ALL`, `index`, `ref`, …
    how: String,
    key: String,
    rows: f64,
    extra: Vec<&'static str>,
    quote: Quote,
}

impl Access {
    fn of(row: &Row, quote: Quote) -> Option<Access> {
        let text = |name: &str| name_of(&text_of(row.cell(name)));
        let rows = number(text("rows").trim()).unwrap_or(0.0);
        let how = text("type");
        if !row.has("select_type") || how.is_empty() {
            return None;
        }
        let extra = text_of(row.cell("extra"));
        Some(Access {
            table: text("table"),
            how,
            key: text("key"),
            rows,
            extra: COSTLY
                .iter()
                .copied()
                .filter(|costly| extra.contains(costly))
                .collect(),
            quote,
        })
    }

    /// Whether the whole table, or the whole of an index, is read.
    fn is_whole(&self) -> bool {
        matches!(self.how.as_str(), "ALL" | "index")
    }

    fn sentence(&self) -> String {
        match self.how.as_str() {
            "ALL" => format!("{} is read whole (type ALL, no index)", self.table),
            "index" => format!(
                "{} is read by the whole of its index {} (type index)",
                self.table, self.key
            ),
            how => match self.key.as_str() {
                "" => format!("{} is read with type {how}", self.table),
                key => format!("{} is read by its index {key} (type {how})", self.table),
            },
        }
    }
}

#[derive(Debug)]
struct Reader {
    table: Table,
    all: Vec<Access>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            table: Table::of(is_plan),
            all: Vec::new(),
        }
    }
}

impl Reader {
    fn keep(&mut self, row: &Row, out: &mut Out<'_>) {
        let quote = Quote {
            line: row.line,
            ..out.here()
        };
        match Access::of(row, quote) {
            Some(access) if self.all.len() < MAX_ROWS => self.all.push(access),
            Some(_) => out.account().left_out += 1,
            None => {}
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
            // What was asked, and how many rows came with a warning.
            Taken::No if is_around(line) => Understood::Evidence,
            Taken::No => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some(row) = self.table.end() {
            self.keep(&row, out);
        }
        let all = std::mem::take(&mut self.all);
        // A table that is read whole comes before one of which an index gives as many rows.
        let worst = all.iter().max_by(|one, other| {
            (one.is_whole(), one.rows)
                .partial_cmp(&(other.is_whole(), other.rows))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let Some(worst) = worst else { return };
        let mut text = format!("{}: {:.0} rows by estimate", worst.sentence(), worst.rows);
        let product = all.iter().map(|access| access.rows.max(1.0)).product::<f64>();
        if all.len() > 1 && product.is_finite() {
            text.push_str(&format!("; the {} tables together {product:.0} rows", all.len()));
        }
        let mut costly: Vec<&str> = all
            .iter()
            .flat_map(|access| access.extra.iter().copied())
            .collect();
        costly.sort_unstable();
        costly.dedup();
        if !costly.is_empty() {
            text.push_str(&format!("; {}", costly.join(", ")));
        }
        let kind = match worst.is_whole() || !costly.is_empty() {
            true => StatementKind::Took,
            false => StatementKind::WithinNorm,
        };
        text.push_str("; the query was not run, so nothing is measured");
        out.statement(statements::one(kind, None, worst.quote.clone(), text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const PLAN: &str = "mysql> EXPLAIN SELECT * FROM orders o JOIN item i ON i.id = o.item ORDER BY o.day;\n\
        +----+-------------+-------+------------+--------+---------------+---------+---------+-------------+--------+----------+----------------+\n\
        | id | select_type | table | partitions | type   | possible_keys | key     | key_len | ref         | rows   | filtered | Extra          |\n\
        +----+-------------+-------+------------+--------+---------------+---------+---------+-------------+--------+----------+----------------+\n\
        |  1 | SIMPLE      | o     | NULL       | ALL    | NULL          | NULL    | NULL    | NULL        | 987654 |   100.00 | Using where; Using filesort |\n\
        |  1 | SIMPLE      | i     | NULL       | eq_ref | PRIMARY       | PRIMARY | 4       | shop.o.item |      1 |   100.00 | NULL           |\n\
        +----+-------------+-------+------------+--------+---------------+---------+---------+-------------+--------+----------+----------------+\n\
        2 rows in set, 1 warning (0.00 sec)\n";

    #[test]
    fn a_table_that_is_read_whole() {
        let reading = read_text("e", PLAN.as_bytes());
        assert!(
            reading
                .observed
                .sources
                .iter()
                .any(|source| source.format == "mysql-explain")
        );
        assert_eq!(
            reading.texts(),
            [
                "o is read whole (type ALL, no index): 987654 rows by estimate; the 2 tables together 987654 rows; Using filesort; the query \
                 was not run, so nothing is measured"
            ]
        );
        let well = PLAN
            .replace(
                "| ALL    | NULL          | NULL    |",
                "| ref    | day           | day     |",
            )
            .replace("; Using filesort", "");
        assert_eq!(
            read_text("e", well.as_bytes()).observed.statements[0].kind,
            K::WithinNorm
        );
    }

    #[test]
    fn the_vertical_form() {
        let text = "*************************** 1. row ***************************\n           id: 1\n  select_type: SIMPLE\n        table: o\n\
            \x20        type: ALL\npossible_keys: NULL\n          key: NULL\n      key_len: NULL\n          ref: NULL\n         rows: 42\n        Extra: Using where; Using temporary\n";
        assert_eq!(
            read_text("e", text.as_bytes()).texts(),
            [
                "o is read whole (type ALL, no index): 42 rows by estimate; Using temporary; the query was not run, so nothing is measured"
            ]
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "| select_type | table | type | key | rows |\n| a |\n",
            "select_type|table|type|key|rows\n\n||||\n",
        ] {
            assert!(
                read_text("e", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
