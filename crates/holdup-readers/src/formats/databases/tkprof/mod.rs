//! Oracle's `tkprof`: which statement took longest, and what it waited for.
//!
//! In: for each statement its `SQL ID`, its text, a table `call count cpu elapsed disk query current rows` with a row `total`, and perhaps the
//! list `Event waited on / Times Waited / Max. Wait / Total Waited`. Out: a statement about the one with the longest elapsed time: how much of
//! it was CPU, and for which event it waited most. Source: Oracle's SQL tuning guide, "Understanding SQL Trace and TKPROF".

mod rows;

use self::rows::{Figures, event, figures, is_heading};
use super::{main_table::main_table, printable, seconds};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, ns_of, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("tkprof", Family::Databases, recognise).about("tkprof of Oracle");

/// Bytes of a statement's text that are kept.
const STATEMENT_BYTES: usize = 2_000;

/// In the place of an id: the sum of all statements, which is none.
const OVERALL: &str = "OVERALL";

/// Events in which a session waits for its client: nobody but the client is slow.
const IDLE: [&str; 2] = ["SQL*Net message from client", "SQL*Net message to client"];

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(holds(head, "elapsed") && any_line(head, is_heading))
}

#[derive(Debug, Default)]
struct Statement {
    id: String,
    text: String,
    figures: Option<Figures>,
    quote: Option<Quote>,
    events: Largest,
    times: f64,
}

#[derive(Debug, Default, PartialEq)]
enum Part {
    #[default]
    Between,
    Text,
    Calls,
    Events,
}

#[derive(Debug, Default)]
struct Reader {
    part: Part,
    current: Statement,
    /// The statement with the longest elapsed time.
    longest: Option<(f64, Statement)>,
    all: u64,
    sum: f64,
}

impl Reader {
    fn close(&mut self) {
        self.part = Part::Between;
        let read = std::mem::take(&mut self.current);
        let Some(figures) = read.figures.filter(|_| read.id != OVERALL) else {
            return;
        };
        self.all = self.all.saturating_add(1);
        self.sum += figures.elapsed;
        if self
            .longest
            .as_ref()
            .is_none_or(|(longest, _)| figures.elapsed > *longest)
        {
            self.longest = Some((figures.elapsed, read));
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if text.starts_with("****") {
            self.close();
            return Understood::Evidence;
        }
        if text.starts_with("OVERALL TOTALS") {
            self.close();
            self.current.id = OVERALL.to_owned();
            return Understood::Evidence;
        }
        let id = text
            .strip_prefix("SQL ID")
            .and_then(|rest| rest.trim_start().strip_prefix(':'));
        if let Some(id) = id {
            self.close();
            self.current.id = name_of(id.split_whitespace().next().unwrap_or_default());
            self.part = Part::Text;
            return Understood::Evidence;
        }
        if is_heading(&text) {
            if self.current.figures.is_some() {
                self.close();
            }
            self.part = Part::Calls;
            return Understood::Evidence;
        }
        if let Some((name, figures)) = figures(&text).filter(|_| self.part == Part::Calls) {
            // An excerpt may end before the sum.
            if name == "total"
                || self
                    .current
                    .figures
                    .is_none_or(|known| figures.elapsed > known.elapsed)
            {
                self.current.figures = Some(figures);
                self.current.quote = Some(out.here());
            }
            return Understood::Evidence;
        }
        if text.starts_with("Elapsed times include") {
            return Understood::Evidence;
        }
        if text.starts_with("Event waited on") {
            self.part = Part::Events;
            return Understood::Evidence;
        }
        match self.part {
            Part::Events => {
                if let Some((name, times, total)) = event(&text).filter(|(name, ..)| !IDLE.contains(name)) {
                    if self.current.events.take(total, name, out.here()) {
                        self.current.times = times;
                    }
                    return Understood::Evidence;
                }
                Understood::Evidence
            }
            Part::Text | Part::Between if self.current.figures.is_none() => {
                if text.starts_with("Plan Hash:") {
                    return Understood::Evidence;
                }
                let of_sql = text.to_ascii_lowercase();
                let begins = [
                    "select", "insert", "update", "delete", "merge", "with", "begin", "alter", "create",
                ];
                self.part = match begins.iter().any(|word| of_sql.starts_with(word)) {
                    true => Part::Text,
                    false if self.part == Part::Text => Part::Text,
                    false => return Understood::Ignorable,
                };
                if self.current.text.len() + text.len() < STATEMENT_BYTES {
                    self.current.text.push_str(&text);
                    self.current.text.push(' ');
                }
                Understood::Evidence
            }
            _ => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let read = std::mem::take(self);
        let Some((elapsed, longest)) = read.longest else {
            return;
        };
        let Some((figures, quote)) = longest.figures.zip(longest.quote) else {
            return;
        };
        let told = |seconds: f64| duration(ns_of(seconds));
        let text = printable(longest.text.as_bytes());
        let table = main_table(&longest.text).map_or_else(String::new, |table| format!(" on {table}"));
        let name = match (longest.id.as_str(), text.as_str()) {
            ("", "") => "a statement".to_owned(),
            ("", text) => format!("the statement{table} `{text}`"),
            (id, "") => format!("SQL ID {id}"),
            (id, text) => format!("SQL ID {id}{table} (`{text}`)"),
        };
        let mut said = format!(
            "{name} took {} in {:.0} calls, of which {} on the CPU; {:.0} blocks from disk, {:.0} rows",
            told(elapsed),
            figures.count,
            told(figures.cpu),
            figures.disk,
            figures.rows
        );
        if let Some((waited, event, _)) = longest.events.first.as_ref().filter(|(waited, ..)| *waited > 0.0) {
            said.push_str(&format!(
                "; it waited most for {event}: {} in {} waits, {}",
                told(*waited),
                rounded(longest.times),
                whole_percent(ns_of(*waited), ns_of(elapsed))
            ));
        }
        if read.all > 1 {
            said.push_str(&format!("; all {} statements took {}", read.all, told(read.sum)));
        }
        out.statement(statements::one(
            StatementKind::Took,
            seconds(elapsed),
            quote,
            said,
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const REPORT: &str = "SQL ID: 4abc9xyz01 Plan Hash: 77\n\nselect sum(price)\nfrom orders where shop = :b1\n\n\
        call     count       cpu    elapsed       disk      query    current        rows\n\
        ------- ------  -------- ---------- ---------- ---------- ----------  ----------\n\
        Parse        1      0.00       0.00          0          0          0           0\n\
        Fetch       20      0.80      16.00       9000      12000          0         200\n\
        ------- ------  -------- ---------- ---------- ---------- ----------  ----------\n\
        total       21      0.80      16.00       9000      12000          0         200\n\n\
        Elapsed times include waiting on following events:\n\
        \x20 Event waited on                             Times   Max. Wait  Total Waited\n\
        \x20 ----------------------------------------   Waited  ----------  ------------\n\
        \x20 db file sequential read                      8800        0.20         15.20\n\
        \x20 SQL*Net message from client                    20       60.00        200.00\n\
        ********************************************************************************\n";

    #[test]
    fn the_longest_statement_and_what_it_waited_for() {
        let reading = read_text("t", REPORT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "tkprof");
        assert_eq!(
            reading.texts(),
            [
                "SQL ID 4abc9xyz01 on orders (`select sum(price) from orders where shop = :b1`) took 16.00 s in 21 calls, of which 800 ms on \
                 the CPU; 9000 blocks from disk, 200 rows; it waited most for db file sequential read: 15.20 s in 8800 waits, 95 %"
            ]
        );
    }

    #[test]
    fn the_sum_of_all_is_no_statement() {
        let overall = "OVERALL TOTALS FOR ALL NON-RECURSIVE STATEMENTS\n\n\
            call     count       cpu    elapsed       disk      query    current        rows\n\
            total      900     50.00     700.00       9000      12000          0         200\n";
        let reading = read_text("t", format!("{REPORT}\n{overall}").as_bytes());
        assert_eq!(reading.observed.statements.len(), 1);
        assert!(reading.texts()[0].starts_with("SQL ID 4abc9xyz01"), "{reading:?}");
    }

    #[test]
    fn other_tables_are_none() {
        let text = "call count elapsed\ntotal 3 4.5\n";
        assert_ne!(
            read_text("t", text.as_bytes()).observed.sources[0].format,
            "tkprof"
        );
    }
}
