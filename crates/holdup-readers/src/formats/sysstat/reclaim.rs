//! What `sar -B` tells of the search for memory that can be freed.
//!
//! In: the names of a heading and the values of its rows. Out: a statement where little of what was looked at could be freed, or tasks that
//! wanted memory had to look for it themselves. Source: the manual sar(1), by which an efficiency below 30 % means difficulty.

use super::tables::figure_of;
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

/// The part of the pages looked at below which memory is freed with difficulty, percent.
const MIN_EFFICIENCY_PERCENT: f64 = 30.0;

/// Pages a second from which on an efficiency can be told: the kernel judges its own by this many (`vmpressure_win`).
const MIN_PAGES: f64 = 512.0;

/// Pages a second, at most: a counter that went backwards prints astronomic ones.
const MAX_PAGES: f64 = 1e12;

/// Where the columns are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    by_kernel: usize,
    by_tasks: usize,
    freed: usize,
}

impl Columns {
    /// Of a heading's names.
    pub(super) fn of(names: &[u8]) -> Option<Columns> {
        let place = |name: &[u8]| names.split(|byte| *byte == b' ').position(|known| known == name);
        Some(Columns {
            by_kernel: place(b"pgscank/s")?,
            by_tasks: place(b"pgscand/s")?,
            freed: place(b"pgsteal/s")?,
        })
    }
}

/// A row's pages a second.
#[derive(Debug, Clone)]
struct Row {
    by_kernel: f64,
    by_tasks: f64,
    freed: f64,
    quote: Quote,
}

impl Row {
    fn all(&self) -> f64 {
        self.by_kernel + self.by_tasks
    }

    fn percent(&self) -> f64 {
        (self.freed / self.all().max(1.0) * 100.0).min(100.0)
    }

    /// In difficulty first, then by what tasks looked at themselves, then by all.
    fn order(&self) -> (bool, f64, f64) {
        (
            self.percent() < MIN_EFFICIENCY_PERCENT,
            self.by_tasks,
            self.by_kernel,
        )
    }
}

/// The worst row of an artefact.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    worst: Option<Row>,
}

impl Reclaim {
    /// Takes a row.
    pub(super) fn row<'a>(&mut self, columns: Columns, value: impl Fn(usize) -> &'a [u8], out: &Out<'_>) {
        let of = |at: usize| figure_of(value(at)).filter(|pages| (0.0..MAX_PAGES).contains(pages));
        let (Some(by_kernel), Some(by_tasks), Some(freed)) =
            (of(columns.by_kernel), of(columns.by_tasks), of(columns.freed))
        else {
            return;
        };
        let row = Row {
            by_kernel,
            by_tasks,
            freed,
            quote: out.here(),
        };
        if row.all() >= MIN_PAGES
            && self
                .worst
                .as_ref()
                .is_none_or(|worst| row.order() > worst.order())
        {
            self.worst = Some(row);
        }
    }

    /// The artefact has ended.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        let Some(row) = self.worst.take() else { return };
        let difficult = row.percent() < MIN_EFFICIENCY_PERCENT;
        // The kernel's own thread frees memory on every machine.
        if !difficult && row.by_tasks < MIN_PAGES {
            return;
        }
        let by_tasks = match row.by_tasks > 0.0 {
            true => format!(
                ", {:.0} of them by tasks that wanted memory and waited for it (pgscand/s)",
                row.by_tasks
            ),
            false => ", all of them by the kernel's own thread".to_owned(),
        };
        let text = format!(
            "memory: {:.0} pages a second were scanned to be freed{by_tasks}; {:.0} % of them could be (below {MIN_EFFICIENCY_PERCENT:.0} % is \
             difficulty)",
            row.all(),
            row.percent()
        );
        let kind = match (difficult, row.by_tasks > 0.0) {
            (true, true) => StatementKind::Stalled,
            // Nobody waited for it.
            (true, false) => StatementKind::Warned,
            (false, _) => StatementKind::Took,
        };
        out.statement(statements::one(kind, None, row.quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const TEXT: &str = "11:00:01     pgpgin/s pgpgout/s   fault/s  majflt/s  pgfree/s pgscank/s pgscand/s pgsteal/s    %vmeff\n\
        11:10:01       100.00    200.00   9000.00      3.00  70000.00   4000.00      0.00   3900.00     97.50\n\
        11:20:01       100.00    200.00   9000.00    300.00  70000.00   4000.00  90000.00   9400.00     10.00\n";

    #[test]
    fn memory_that_is_freed_with_difficulty() {
        let reading = read_text("s", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "sar");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!((one.kind, one.quote.line), (StatementKind::Stalled, 3));
        assert_eq!(
            one.text,
            "memory: 94000 pages a second were scanned to be freed, 90000 of them by tasks that wanted memory and waited for it (pgscand/s); \
             10 % of them could be (below 30 % is difficulty)"
        );
    }

    #[test]
    fn the_kernels_own_thread_is_no_trouble() {
        let first: Vec<&str> = TEXT.lines().take(2).collect();
        let well = first.join("\n");
        // Few pages tell no efficiency.
        let few = well.replace("4000.00", "9.00").replace("3900.00", "0.00");
        for text in [well, few] {
            assert_eq!(read_text("s", text.as_bytes()).observed.statements, [], "{text}");
        }
    }
}
