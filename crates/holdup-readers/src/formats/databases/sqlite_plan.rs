//! `EXPLAIN QUERY PLAN` of SQLite: which table a query reads as a whole.
//!
//! In: a tree or a list of steps (`SCAN TABLE events`, `SEARCH t USING INDEX i (a=?)`, `USE TEMP B-TREE FOR ORDER BY`). Out: a statement about the
//! tables that are read row by row without an index, and what is sorted beside; how long it took where the shell's timer says so.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("sqlite-plan", Family::Databases, recognise)
    .about("EXPLAIN QUERY PLAN of SQLite");

/// Tables that are named, and bytes of a name.
const MAX_TABLES: usize = 8;
const NAME: usize = 80;

#[derive(Debug, PartialEq)]
enum Step<'a> {
    /// Every row of a table, without an index.
    Scan(&'a str),
    /// Rows by an index, in its order, or by their key.
    Indexed,
    /// An index that SQLite makes for this query alone: no index of the table fits.
    Automatic(&'a str),
    /// `ORDER BY`, `GROUP BY`, `DISTINCT`.
    Sorted(&'a str),
    Other,
}

/// A step, behind the branches of a tree or the numbers of a list.
fn step(line: &str) -> Option<Step<'_>> {
    let from = line.find(|char: char| {
        !matches!(
            char,
            '|' | '`' | '-' | ' ' | '0'..='9' | '─' | '├' | '└' | '│' | '\t' | '[' | ']'
        )
    })?;
    let text = line.get(from..)?.trim_end_matches('`').trim_end();
    let text = text.trim_start_matches('`');
    if let Some(rest) = text.strip_prefix("USE TEMP B-TREE FOR ") {
        return Some(Step::Sorted(rest));
    }
    let (scans, rest) = match (text.strip_prefix("SCAN "), text.strip_prefix("SEARCH ")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => {
            let known = [
                "COMPOUND ",
                "MATERIALIZE ",
                "CO-ROUTINE ",
                "MULTI-INDEX OR",
                "EXECUTE ",
                "CORRELATED ",
            ];
            return known
                .iter()
                .any(|begin| text.starts_with(begin))
                .then_some(Step::Other);
        }
    };
    let rest = rest.strip_prefix("TABLE ").unwrap_or(rest);
    let name = rest.split([' ', '(']).next()?;
    if rest.contains("AUTOMATIC ") {
        return Some(Step::Automatic(name));
    }
    let aside =
        ["CONSTANT", "SUBQUERY", ""].contains(&name) || name.starts_with("subquery") || rest.starts_with('(');
    Some(
        match scans && !rest.contains(" USING ") && !aside && !rest.contains("VIRTUAL TABLE") {
            true => Step::Scan(name),
            false => Step::Indexed,
        },
    )
}

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let steps = text.lines().filter_map(step).take(3).count();
    let heading = text.lines().any(|line| {
        let upper = line.trim().to_ascii_uppercase();
        upper == "QUERY PLAN" || upper.contains("EXPLAIN QUERY PLAN")
    });
    match (heading, steps) {
        (true, 1..) => Sureness::Certain,
        (false, 2..) => Sureness::Likely,
        _ => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Reader {
    scanned: Vec<String>,
    automatic: Vec<String>,
    sorted: Vec<String>,
    indexed: u64,
    quote: Option<Quote>,
    took: Option<Ns>,
}

fn add(list: &mut Vec<String>, name: &str) {
    let name: String = name.chars().take(NAME).collect();
    if list.len() < MAX_TABLES && !list.contains(&name) {
        list.push(name);
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..600).unwrap_or(line));
        if let Some(rest) = text.trim().strip_prefix("Run Time: real ") {
            let seconds = rest.split(' ').next().and_then(|word| word.parse::<f64>().ok());
            let seconds = seconds.filter(|seconds| (0.0..1e8).contains(seconds));
            self.took = self.took.max(seconds.map(|seconds| (seconds * 1e9) as Ns));
            return Understood::Evidence;
        }
        let Some(step) = step(&text) else {
            return Understood::Ignorable;
        };
        match step {
            Step::Scan(name) => {
                if self.scanned.is_empty() {
                    self.quote = Some(out.here());
                }
                add(&mut self.scanned, name);
            }
            Step::Automatic(name) => add(&mut self.automatic, name),
            Step::Sorted(what) => add(&mut self.sorted, what),
            Step::Indexed => self.indexed += 1,
            Step::Other => {}
        }
        self.quote.get_or_insert_with(|| out.here());
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some(quote) = read.quote else { return };
        let mut listed = Vec::new();
        if !read.scanned.is_empty() {
            listed.push(format!(
                "the query reads every row of {} (full scan without an index)",
                read.scanned.join(", then every row of ")
            ));
        }
        if !read.automatic.is_empty() {
            listed.push(format!(
                "SQLite makes an index of {} for this query alone (AUTOMATIC INDEX)",
                read.automatic.join(", ")
            ));
        }
        if !read.sorted.is_empty() {
            listed.push(format!(
                "it sorts in a temporary B-tree for {}",
                read.sorted.join(", ")
            ));
        }
        if let Some(ns) = read.took {
            listed.push(format!("it took {}", duration(ns)));
        }
        let well = read.scanned.is_empty() && read.automatic.is_empty() && read.sorted.is_empty();
        let (kind, text) = match well && read.took.is_none() {
            true => (
                StatementKind::WithinNorm,
                format!("all {} steps of the query use an index", read.indexed),
            ),
            false => (StatementKind::Took, listed.join("; ")),
        };
        out.statement(statements::one(kind, read.took, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn which_table_is_read_as_a_whole_in_all_forms() {
        for (text, told) in [
            (
                "QUERY PLAN\n|--SCAN TABLE songs\n|--SEARCH TABLE path USING INTEGER PRIMARY KEY (rowid=?)\n`--USE TEMP B-TREE FOR ORDER BY\n",
                "the query reads every row of songs (full scan without an index); it sorts in a temporary B-tree for ORDER BY",
            ),
            (
                "sqlite> EXPLAIN QUERY PLAN SELECT 1;\n0|0|0|SEARCH TABLE a AS t0 USING INDEX i (x=?)\n0|1|1|SCAN TABLE events (~1000000 rows)\nRun Time: real 18.342 user 11.2 sys 6.9\n",
                "the query reads every row of events (full scan without an index); it took 18.34 s",
            ),
            (
                "QUERY PLAN\n├── [9] `SCAN t1`\n└── [4] `SEARCH b USING AUTOMATIC COVERING INDEX (c=?)`\n",
                "the query reads every row of t1 (full scan without an index); SQLite makes an index of b for this query alone (AUTOMATIC INDEX)",
            ),
        ] {
            let reading = read_text("p", text.as_bytes());
            assert_eq!(reading.observed.sources[0].format, "sqlite-plan");
            assert_eq!(reading.texts(), [told]);
        }
    }

    #[test]
    fn a_plan_with_indexes_is_well() {
        let text =
            "QUERY PLAN\n|--SEARCH files USING INDEX ix (path=?)\n`--SCAN path USING COVERING INDEX iy\n";
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
    }
}
