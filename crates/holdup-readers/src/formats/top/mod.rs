//! `top -b`, also of threads (`-H`), of procps old and new and of busybox.
//!
//! In: reports, each a summary and a table of processes; also a part of one. Out: load, CPU and memory as series, what the
//! largest processes use, and a snapshot of those tasks that do not just sleep. The CPU line of the first of several reports
//! is of the time since boot (procps 3) or of the instant before (procps 4): of an interval only from the second on.

mod summary;
mod table;

use crate::day_time::time_of_day;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::words;
use crate::tasks::{Listed, Tasks};
use holdup_evidence::observed::Metric;
use memchr::memmem;
use table::Columns;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("top", Family::Host, recognise)
    .about("top -b")
    .openings(&["top - ", "%Cpu(s):", "Cpu(s):"]);

/// Figures of an interval, which the first report does not have.
const OF_INTERVALS: &[Metric] = &[
    Metric::CpuUserPercent,
    Metric::CpuSystemPercent,
    Metric::CpuNicePercent,
    Metric::CpuIdlePercent,
    Metric::CpuIowaitPercent,
    Metric::CpuIrqPercent,
    Metric::CpuSoftirqPercent,
    Metric::CpuStealPercent,
    Metric::ProcessCpuPercent,
];

/// Rows are processes, or with `-H` threads: the table does not tell.
const LISTED: Listed = Listed {
    of_threads: None,
    states: true,
};

fn recognise(head: &[u8]) -> Sureness {
    let mut best = Sureness::No;
    for line in head.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii_start();
        let sure =
            if line.starts_with(b"top - ") || line.starts_with(b"%Cpu") || summary::is_busybox_cpu(line) {
                Sureness::Certain
            } else if line.starts_with(b"Cpu(s):") || Columns::of(line).is_some() {
                Sureness::Likely
            } else {
                Sureness::No
            };
        best = best.max(sure);
    }
    best
}

#[derive(Debug, Default)]
struct Reader {
    reports: u32,
    /// Busybox waits for a tenth of a second before its first report, and has no average since boot.
    busybox: bool,
    /// Whether the summary of the current report has begun: its table, or its end, ends it.
    in_summary: bool,
    columns: Option<Columns>,
    tasks: Tasks,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if !self.in_summary
            && let Some(columns) = &self.columns
        {
            match columns.row(line, &mut self.tasks, out) {
                Understood::No => {}
                understood => return understood,
            }
        }
        self.other(line.trim_ascii(), out)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.tasks.flush(out);
        if self.reports == 1 && !self.busybox {
            out.only_may_be_since_boot(OF_INTERVALS);
        }
    }
}

impl Reader {
    /// A line that is no row of the table.
    fn other(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if summary::is_blank(line) {
            return Understood::Ignorable;
        }
        if let Some(columns) = Columns::of(line) {
            if !self.in_summary {
                self.report(None, out);
            }
            self.in_summary = false;
            self.columns = Some(columns);
            self.tasks.begin(None, LISTED, out);
            return Understood::Evidence;
        }
        if let Some(rest) = line.strip_prefix(b"top - ") {
            self.report(words(rest).next(), out);
            self.in_summary = true;
            // A copy may have joined the lines of the summary.
            let mut parts = summary::parts(rest).into_iter();
            if let Some(banner) = parts.next() {
                summary::loads(banner, out);
            }
            for part in parts {
                summary::line(part, out);
            }
            return Understood::Evidence;
        }
        self.busybox |= summary::is_busybox_cpu(line);
        let begins = summary::begins_without_banner(line);
        if begins && !self.in_summary {
            self.report(None, out);
            self.in_summary = true;
        }
        summary::line(line, out)
    }

    fn report(&mut self, time: Option<&[u8]>, out: &mut Out<'_>) {
        self.tasks.flush(out);
        self.reports = self.reports.saturating_add(1);
        if self.reports == 2 {
            out.first_was_since_boot(OF_INTERVALS);
        }
        out.report(time.and_then(time_of_day), None, false);
    }
}

/// Whether a text is in a line.
fn has(line: &[u8], text: &str) -> bool {
    memmem::find(line, text.as_bytes()).is_some()
}

#[cfg(test)]
mod tests;
