//! `-ftime-report` of GCC and Clang, `-time-passes` of LLVM, and `-mlir-timing`: where a compiler's time goes.
//!
//! In: rows of a name and the times it took, each with its share in brackets; of GCC the name is in front, of LLVM behind. Out: a
//! statement for the compilation that took longest: its largest phase or pass by wall time, and the largest within it. Sources: GCC's
//! manual, "Developer Options", and LLVM's `Timer`.

mod rows;

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{duration, whole_percent};
use rows::{Row, is_heading, is_report, title, wall_of};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("compiler-times", Family::Times, recognise)
    .about("-ftime-report, -time-passes")
    .openings(&["Time variable   "]);

/// Bytes of a line, of a name and of a title.
const LINE_BYTES: usize = 300;
const NAME_BYTES: usize = 80;

/// Rows that are no chance, without a heading.
const MIN_ROWS: usize = 3;

/// Seconds that are believed.
const MAX_SECONDS: f64 = 1e8;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut rows = 0;
    for line in text.lines() {
        if is_heading(line) || title(line).is_some_and(is_report) {
            return Sureness::Certain;
        }
        let row = Row::of_gcc(line, None).or_else(|| Row::of_llvm(line, None));
        rows += usize::from(row.is_some_and(|row| row.shares > 1));
        if rows >= MIN_ROWS {
            return Sureness::Certain;
        }
    }
    Sureness::No
}

/// Whose report it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Compiler {
    #[default]
    Unknown,
    Gcc,
    Llvm,
}

/// One report: of GCC a compilation, of LLVM one group of its timers.
#[derive(Debug, Clone, Default)]
struct Report {
    compiler: Compiler,
    title: String,
    /// Seconds of the whole.
    total: f64,
    rows: u64,
    /// Of GCC, the largest phase; of phases and passes, each is a part of the whole.
    phase: Option<(Row, Quote)>,
    pass: Option<(Row, Quote)>,
}

#[derive(Debug, Default)]
struct Reader {
    current: Report,
    wall: Option<usize>,
    /// The longest report with several rows, or else the longest, and how many there were.
    longest: Option<Report>,
    reports: u64,
}

impl Reader {
    fn close(&mut self) {
        let report = std::mem::take(&mut self.current);
        if report.rows == 0 {
            return;
        }
        self.reports += 1;
        // A timer of everything has one row, and says nothing of where the time goes.
        let order = |report: &Report| (report.rows > 1, report.total);
        let longer = self
            .longest
            .as_ref()
            .is_none_or(|known| order(&report) > order(known));
        if longer {
            self.longest = Some(report);
        }
    }

    fn take(&mut self, row: Row, compiler: Compiler, out: &Out<'_>) {
        let report = &mut self.current;
        report.compiler = compiler;
        if row.name.eq_ignore_ascii_case("total") {
            report.total = row.seconds;
            // It is the last row.
            self.close();
            return;
        }
        report.rows += 1;
        // Rows with these signs are parts of others.
        if row.name.starts_with(['|', '`', '-']) {
            return;
        }
        let place = match row.name.starts_with("phase ") {
            true => &mut report.phase,
            false => &mut report.pass,
        };
        if place
            .as_ref()
            .is_none_or(|(known, _)| row.seconds > known.seconds)
        {
            *place = Some((row, out.here()));
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text: String = text.chars().take(LINE_BYTES).collect();
        if let Some(title) = title(&text) {
            self.close();
            self.current.title = title.chars().take(NAME_BYTES).collect();
            return Understood::Evidence;
        }
        if is_heading(&text) {
            if text.starts_with("Time variable") || text.starts_with("Execution times") {
                self.close();
            }
            self.wall = wall_of(&text);
            return Understood::Evidence;
        }
        if let Some(rest) = text.strip_prefix("Total Execution Time:") {
            let mut seconds = rest.split(['(', ' ']).filter_map(|word| decimal(word.as_bytes()));
            let user = seconds.next().unwrap_or(0.0);
            self.current.total = seconds.next().unwrap_or(user).clamp(0.0, MAX_SECONDS);
            return Understood::Evidence;
        }
        let gcc = match self.current.compiler {
            Compiler::Llvm => None,
            _ => Row::of_gcc(&text, self.wall).map(|row| (row, Compiler::Gcc)),
        };
        let row = gcc.or_else(|| Row::of_llvm(&text, self.wall).map(|row| (row, Compiler::Llvm)));
        match row {
            Some((row, compiler)) => {
                self.take(row, compiler, out);
                Understood::Evidence
            }
            None if text.starts_with("===") || text.starts_with("---") => Understood::Ignorable,
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let reports = std::mem::take(&mut self.reports);
        let Some(report) = self.longest.take() else { return };
        let largest = report.phase.clone().or(report.pass.clone());
        let Some((row, quote)) = largest else { return };
        let ns = |seconds: f64| (seconds.clamp(0.0, MAX_SECONDS) * 1e9) as Ns;
        let whole = ns(report.total);
        let share = |row: &Row| match row.percent {
            _ if whole > 0 => format!(", {}", whole_percent(ns(row.seconds), whole)),
            Some(percent) => format!(", {percent:.0} %"),
            None => String::new(),
        };
        let of = match whole {
            0 => String::new(),
            whole => format!(" of {}", duration(whole)),
        };
        let mut text = format!(
            "{} takes {}{of} of wall time{}",
            row.name,
            duration(ns(row.seconds)),
            share(&row)
        );
        if let Some((pass, _)) = report.pass.as_ref().filter(|(pass, _)| pass.name != row.name) {
            text.push_str(&format!(
                "; the largest pass is {} with {}{}",
                pass.name,
                duration(ns(pass.seconds)),
                share(pass)
            ));
        }
        if !report.title.is_empty() {
            text.push_str(&format!(" ({})", report.title));
        }
        if report.compiler == Compiler::Gcc && reports > 1 {
            text.push_str(&format!(", in the longest of {reports} compilations"));
        }
        out.statement(Statement {
            share: (report.total > 0.0).then(|| (row.seconds / report.total).clamp(0.0, 1.0)),
            ..statements::one(StatementKind::Took, Some(ns(row.seconds)), quote, text)
        });
    }
}

#[cfg(test)]
mod tests;
