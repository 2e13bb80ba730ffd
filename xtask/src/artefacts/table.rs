//! The table of formats, for people and as a page to keep.

use crate::speed;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One format.
#[derive(Debug, Default, Clone)]
pub(super) struct Row {
    pub(super) captured: u64,
    pub(super) constructed: u64,
    pub(super) right: u64,
    pub(super) lines: u64,
    pub(super) not_understood: u64,
    /// MB for each second of CPU time; `None` where it was not measured.
    pub(super) speed: Option<f64>,
}

/// The headings, in order.
const HEADINGS: [&str; 7] = [
    "format",
    "captured",
    "constructed",
    "right",
    "lines",
    "not understood",
    "MB/s",
];

fn cells(format: &str, row: &Row) -> [String; HEADINGS.len()] {
    [
        format.to_owned(),
        row.captured.to_string(),
        row.constructed.to_string(),
        row.right.to_string(),
        row.lines.to_string(),
        row.not_understood.to_string(),
        speed::cell(row.speed),
    ]
}

/// The sum of all formats.
fn sum(rows: &BTreeMap<String, Row>) -> Row {
    let mut all = Row::default();
    for row in rows.values() {
        all.captured += row.captured;
        all.constructed += row.constructed;
        all.right += row.right;
        all.lines += row.lines;
        all.not_understood += row.not_understood;
    }
    all
}

/// For a terminal.
pub(super) fn render(rows: &BTreeMap<String, Row>) -> String {
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        let [format, captured, constructed, right, lines, missed, speed] = cells else {
            return;
        };
        let _ = writeln!(
            text,
            "{format:<20} {captured:>8} {constructed:>11} {right:>6} {lines:>8} {missed:>15} {speed:>6}"
        );
    };
    line(&HEADINGS.map(str::to_owned));
    for (format, row) in rows {
        line(&cells(format, row));
    }
    line(&cells("all", &sum(rows)));
    text
}

/// As a page to keep; `seeds` says what became of the seed artefacts.
pub(super) fn page(rows: &BTreeMap<String, Row>, seeds: &str, machine: &str) -> String {
    let mut text = format!(
        "# Artefacts\n\nWhat `holdup read` says of samples of each format, against what was really wrong where they were \
         made (the `.toml` beside\neach in `crates/holdup/tests/samples`). Made by `cargo xtask artefacts --speed --table \
         docs/artefacts.md` on {machine}.\nCaptured samples were written by the tool itself, constructed ones by hand \
         after a description of the format. MB/s is of\nCPU time on one core, for the whole command: the largest sample, \
         repeated with other numbers to 40 MB, or, where\na format is one document, given again and again.\n\n"
    );
    let mut row = |cells: &[String]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    row(&HEADINGS.map(str::to_owned));
    row(&HEADINGS.map(|_| "---".to_owned()));
    for (format, one) in rows {
        row(&cells(format, one));
    }
    row(&cells("all", &sum(rows)));
    let _ = writeln!(text, "\n{seeds}");
    text
}

#[cfg(test)]
mod tests {
    use super::{Row, page, render};

    #[test]
    fn formats_are_rows_and_their_sum_is_the_last() {
        let row = |speed| Row {
            captured: 2,
            constructed: 1,
            right: 3,
            lines: 100,
            not_understood: 1,
            speed,
        };
        let rows = [
            ("iostat".to_owned(), row(Some(312.4))),
            ("top".to_owned(), row(None)),
        ]
        .into();
        let text = render(&rows);
        assert!(text.contains(" 312\n") && text.contains(" -\n"), "{text}");
        assert!(
            text.lines()
                .last()
                .is_some_and(|all| all.starts_with("all") && all.contains(" 200 "))
        );
        let text = page(&rows, "seed artefacts: not run", "Linux 6.18");
        assert!(text.contains("| iostat | 2 | 1 | 3 | 100 | 1 | 312 |"), "{text}");
        assert!(text.ends_with("| all | 4 | 2 | 6 | 200 | 2 | - |\n\nseed artefacts: not run\n"));
    }
}
