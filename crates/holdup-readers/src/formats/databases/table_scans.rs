//! Plans that name the reading of a whole table: `DBMS_XPLAN` of Oracle as a table of operations, `EXPLAIN ANALYZE` of CockroachDB as a tree.
//!
//! In: rows of operations with what they read and returned, and the predicates of their filters. Out: a statement about the step that reads a
//! whole table: how much, for how many rows, and of which columns an index is missing. Source: Oracle's and Cockroach's manuals of EXPLAIN.

use super::unindexed;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{clock, holds, length, name_of, ns_of, number};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static ORACLE: Format = Format::lines::<Oracle>("oracle-plan", Family::Databases, |head| {
    Sureness::certain_if(holds(head, "| Id ") && holds(head, "Operation") && holds(head, "|   0 |"))
})
.about("DBMS_XPLAN of Oracle");

pub(crate) static COCKROACH: Format =
    Format::lines::<Cockroach>("cockroach-plan", Family::Databases, |head| {
        let steps = holds(head, "• scan") || holds(head, "• filter");
        Sureness::certain_if(steps && (holds(head, "spans:") || holds(head, "row count:")))
    })
    .about("EXPLAIN ANALYZE of CockroachDB");

/// Steps that are kept, and bytes of a line.
const MAX_STEPS: usize = 500;
const LINE_BYTES: usize = 1_000;

/// Seconds of a scan from which it reads many rows, and rows that are few beside those: one reads some hundred thousand in a second.
const LONG_SECONDS: f64 = 1.0;
const FEW_ROWS: f64 = 1_000.0;

/// A step that reads a table.
#[derive(Debug, Clone, Default)]
struct Scan {
    id: String,
    table: String,
    /// Rows that it read, and that were left.
    read: Option<f64>,
    kept: Option<f64>,
    seconds: Option<f64>,
    filter: String,
    quote: Quote,
}

impl Scan {
    fn says(&self) -> Statement {
        let took = self
            .seconds
            .map_or_else(String::new, |seconds| format!(" in {}", duration(ns_of(seconds))));
        let rows = match (self.read, self.kept) {
            (Some(read), Some(kept)) => format!(": {read:.0} rows read to keep {kept:.0}"),
            (None, Some(kept)) => format!(": {kept:.0} rows are kept"),
            (Some(read), None) => format!(": {read:.0} rows"),
            (None, None) => String::new(),
        };
        let columns = unindexed::columns(&self.filter);
        // Without the rows that were read, their time says whether they were many.
        let long = self.seconds.is_some_and(|seconds| seconds >= LONG_SECONDS);
        let few = match (self.read, self.kept) {
            (Some(read), Some(kept)) => unindexed::is_wasted(read - kept, kept),
            (None, Some(kept)) => long && kept <= FEW_ROWS,
            _ => false,
        };
        let index = match columns.as_slice() {
            some if few && !some.is_empty() => {
                format!("; an index on {} is missing or not used", some.join(", "))
            }
            _ => String::new(),
        };
        let text = format!(
            "a full scan reads all of the table {}{took}{rows}{index}",
            self.table
        );
        Statement {
            ns: self.seconds.map(ns_of),
            ..statements::one(StatementKind::Took, None, self.quote.clone(), text)
        }
    }
}

/// The scan that takes longest, or reads most.
fn worst(scans: &[Scan]) -> Option<&Scan> {
    scans.iter().max_by(|one, other| {
        let weight = |scan: &Scan| (scan.seconds.unwrap_or(0.0), scan.read.unwrap_or(0.0));
        let ((one_s, one_r), (other_s, other_r)) = (weight(one), weight(other));
        one_s.total_cmp(&other_s).then(one_r.total_cmp(&other_r))
    })
}

#[derive(Debug, Default)]
pub(super) struct Oracle {
    columns: Vec<String>,
    scans: Vec<Scan>,
    steps: u64,
    /// Whether the predicates are read.
    predicates: bool,
}

impl Oracle {
    fn row(&mut self, cells: &[&str], out: &Out<'_>) {
        let cell = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            cells.get(at).map(|cell| cell.trim())
        };
        self.steps += 1;
        let Some(operation) = cell("Operation").filter(|operation| operation.contains("ACCESS FULL")) else {
            return;
        };
        // `TABLE ACCESS STORAGE FULL` reads a whole table, too; a scan of an index does not.
        let (Some(id), Some(table)) = (cell("Id"), cell("Name")) else {
            return;
        };
        if self.scans.len() >= MAX_STEPS || !operation.starts_with("TABLE") {
            return;
        }
        let seconds = cell("A-Time").and_then(clock);
        let scan = Scan {
            id: id.trim_matches(['*', '-', ' ']).to_owned(),
            table: name_of(table),
            read: None,
            kept: cell("A-Rows").and_then(number),
            seconds,
            filter: String::new(),
            quote: out.here(),
        };
        self.scans.push(scan);
    }
}

impl LineReader for Oracle {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let text = text.trim();
        if text.starts_with("Predicate Information") {
            self.predicates = true;
            return Understood::Evidence;
        }
        if self.predicates
            && let Some((id, filter)) = text.split_once(" - filter(")
        {
            let known = self.scans.iter_mut().find(|scan| scan.id == id.trim());
            if let Some(scan) = known {
                scan.filter = name_of(filter);
            }
            return Understood::Evidence;
        }
        let Some(inner) = text.strip_prefix('|') else {
            return Understood::Ignorable;
        };
        let cells: Vec<&str> = inner.split('|').collect();
        if cells.first().is_some_and(|first| first.trim() == "Id") {
            self.columns = cells.iter().map(|cell| cell.trim().to_owned()).collect();
            self.predicates = false;
        } else {
            self.row(&cells, out);
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        tell(&read.scans, read.steps, out);
    }
}

/// What a plan of so many steps comes to.
fn tell(scans: &[Scan], steps: u64, out: &mut Out<'_>) {
    match worst(scans) {
        Some(scan) => out.statement(scan.says()),
        None if steps > 0 => {
            let text = format!("none of {steps} steps of the plan reads a whole table");
            out.statement(statements::one(StatementKind::WithinNorm, None, out.here(), text));
        }
        None => {}
    }
}

/// What a step is called that filters what the one below it reads.
const FILTER: &str = "filter";

#[derive(Debug, Default)]
pub(super) struct Cockroach {
    scans: Vec<Scan>,
    /// What the step that is read is called; the filter above the scan, with the rows that it left.
    step: String,
    filter: String,
    left: Option<f64>,
    scan: Scan,
    full: bool,
    steps: u64,
}

impl Cockroach {
    /// The step is over.
    fn close(&mut self) {
        let scan = std::mem::take(&mut self.scan);
        let full = std::mem::take(&mut self.full);
        // A filter is of the step right below it.
        if self.step == FILTER {
            return;
        }
        let (filter, left) = (std::mem::take(&mut self.filter), self.left.take());
        if full && self.scans.len() < MAX_STEPS {
            self.scans.push(Scan {
                kept: left.or(scan.kept),
                filter,
                ..scan
            });
        }
    }
}

impl LineReader for Cockroach {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let text = text.trim_matches([' ', '│', '└', '├', '─', '|']);
        if let Some(step) = text.strip_prefix("• ") {
            self.close();
            self.steps += 1;
            self.step = name_of(step);
            self.scan.quote = out.here();
            return Understood::Evidence;
        }
        let Some((name, value)) = text.split_once(": ") else {
            return Understood::Ignorable;
        };
        let value = value.trim();
        let of_filter = self.step == FILTER;
        match name {
            "filter" => self.filter = name_of(value),
            "actual row count" if of_filter => self.left = number(value),
            "actual row count" => self.scan.read = number(value),
            "KV time" => self.scan.seconds = length(value),
            "table" => self.scan.table = name_of(value.split('@').next().unwrap_or(value)),
            "spans" => self.full = value.starts_with("FULL SCAN"),
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let read = std::mem::take(self);
        tell(&read.scans, read.steps, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str, format: &str) -> (StatementKind, String) {
        let reading = read_text("p", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, format);
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    const ORACLE: &str = "---------------------------------------------------------------------------------------\n\
        | Id  | Operation          | Name   | Starts | E-Rows | A-Rows |   A-Time   | Buffers |\n\
        ---------------------------------------------------------------------------------------\n\
        |   0 | SELECT STATEMENT   |        |      1 |        |      3 |00:00:41.23 |   81233 |\n\
        |*  1 |  TABLE ACCESS FULL | ORDERS |      1 |     12 |      3 |00:00:41.23 |   81233 |\n\
        ---------------------------------------------------------------------------------------\n\
        Predicate Information (identified by operation id):\n   1 - filter(\"STATE\"='open' AND \"SHOP\"=:B1)\n";

    #[test]
    fn of_oracle_with_what_was_measured_and_without() {
        let told = "a full scan reads all of the table ORDERS in 41.23 s: 3 rows are kept; an index on STATE, SHOP is missing or not used";
        assert_eq!(
            said(ORACLE, "oracle-plan"),
            (StatementKind::Took, told.to_owned())
        );
        let text = "| Id  | Operation          | Name   | Rows  | Bytes | Cost (%CPU)| Time     |\n\
            |   0 | SELECT STATEMENT   |        |     1 |    26 |  9120   (1)| 00:00:01 |\n\
            |   1 |  TABLE ACCESS FULL | ORDERS |     1 |    26 |  9120   (1)| 00:00:01 |\n";
        assert_eq!(
            said(text, "oracle-plan").1,
            "a full scan reads all of the table ORDERS"
        );
        // Of a small table, and of one of which nothing was measured, nobody knows.
        for text in [
            ORACLE.replace("00:00:41.23", "00:00:00.01"),
            format!(
                "{text}Predicate Information (identified by operation id):\n   1 - filter(\"STATE\"='open')\n"
            ),
        ] {
            let told = said(&text, "oracle-plan").1;
            assert!(!told.contains("missing"), "{told}");
        }
        let index = ORACLE.replace("TABLE ACCESS FULL | ORDERS", "INDEX RANGE SCAN  | ORD_IX");
        assert_eq!(said(&index, "oracle-plan").0, StatementKind::WithinNorm);
    }

    #[test]
    fn of_cockroach() {
        let text = "distribution: local\nvectorized: true\n\n• filter\n│ nodes: n1\n│ actual row count: 3\n│ filter: state = 'open'\n│\n└── • scan\n      \
            nodes: n1\n      actual row count: 912,331\n      KV time: 4.1s\n      table: orders@orders_pkey\n      spans: FULL SCAN\n";
        let told = "a full scan reads all of the table orders in 4.10 s: 912331 rows read to keep 3; an index on state is missing or not used";
        assert_eq!(
            said(text, "cockroach-plan"),
            (StatementKind::Took, told.to_owned())
        );
        let wanted = text.replace("actual row count: 3", "actual row count: 900,000");
        assert!(!said(&wanted, "cockroach-plan").1.contains("missing"));
        // The filter of another scan, or of what is between, is not this one's.
        let beside = text
            .replace("spans: FULL SCAN", "spans: [/1 - /9]")
            .replace("912,331", "40");
        let scan = "└── • scan\n      actual row count: 912,331\n      KV time: 900ms\n      table: shops@shops_pkey\n      spans: FULL SCAN\n";
        let told = said(&format!("{beside}\n{scan}"), "cockroach-plan").1;
        assert_eq!(
            told,
            "a full scan reads all of the table shops in 900 ms: 912331 rows"
        );
        let spans = text.replace("FULL SCAN", "[/7 - /7]");
        assert_eq!(said(&spans, "cockroach-plan").0, StatementKind::WithinNorm);
    }

    #[test]
    fn rubbish_does_no_harm() {
        for text in [
            "| Id | Operation |\n|   0 |\n|||\n 1 - filter(",
            "• scan\nspans: \n• \nrow count: x\nspans: FULL SCAN",
        ] {
            let _ = read_text("p", text.as_bytes());
        }
    }
}
