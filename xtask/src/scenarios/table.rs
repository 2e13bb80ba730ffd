//! The table of rows, for people.

use super::scenario::TOLERANCE;
use super::verdict::{Check, Headline, Row};
use crate::tally::Tally;
use std::fmt::Write as _;

/// Characters of a cell that is wrong; the whole of it is below the table.
const CELL: usize = 34;

/// The headings, in order.
const HEADINGS: [&str; 11] = [
    "scenario",
    "cause",
    "resource",
    "asker",
    "holder",
    "share / truth",
    "finding",
    "first line",
    "false alarms",
    "tolerance",
    "allowed",
];

/// What stands before an allowed finding that is there.
const FOUND: char = '+';

/// One scenario's outcome.
pub(crate) enum Line {
    /// It was judged.
    Judged(Box<Row>),
    /// A run failed.
    Failed(String),
}

impl Line {
    /// Whether all was right.
    pub(crate) fn right(&self) -> bool {
        matches!(self, Line::Judged(row) if row.right())
    }

    /// Whether it was right by a wide tolerance, by allowing a finding, or further down the page.
    fn loose(&self) -> bool {
        matches!(self, Line::Judged(row) if row.loose())
    }

    /// What was not, in full.
    pub(crate) fn why_not(&self) -> Vec<String> {
        match self {
            Line::Judged(row) => {
                let cells = row.cells();
                let wrong = cells.iter().filter(|(_, check)| !check.right);
                wrong
                    .map(|(heading, check)| format!("{heading}: {}", check.seen))
                    .collect()
            }
            Line::Failed(why) => vec![why.clone()],
        }
    }
}

/// How many are right, and how many of them loosely; then the counts.
fn sums(lines: &[(String, Line)]) -> String {
    let count = |is: fn(&Line) -> bool| lines.iter().filter(|(_, line)| is(line)).count();
    let tally: Tally = lines.iter().map(|(_, line)| Tally::one(line.right())).sum();
    format!(
        "{} right, of them {} loose: their share is more than {TOLERANCE} points off, or another finding ({FOUND}) is there or leads\n{tally}",
        count(Line::right),
        count(Line::loose)
    )
}

/// Renders the table, then what is wrong in full, then the sums.
pub(crate) fn render(lines: &[(String, Line)]) -> String {
    let mut rows: Vec<Vec<String>> = vec![HEADINGS.iter().map(|heading| (*heading).to_owned()).collect()];
    let mut wrong = String::new();
    for (name, line) in lines {
        match line {
            Line::Judged(row) => {
                rows.push(cells(name, row));
            }
            Line::Failed(_) => rows.push(vec![name.clone(), "failed".to_owned()]),
        }
        for why in line.why_not() {
            let _ = writeln!(wrong, "{name}: {why}");
        }
    }
    let mut text = columns(&rows);
    if !wrong.is_empty() {
        let _ = write!(text, "\nNot right:\n{wrong}");
    }
    let _ = writeln!(text, "\n{}", sums(lines));
    text
}

/// What stands before the kernel in what is printed.
const KERNEL: &str = "scenarios: on Linux ";

/// What is printed: the kernel and the table.
pub(crate) fn printed(lines: &[(String, Line)], kernel: &str) -> String {
    format!("{KERNEL}{kernel}\n{}", render(lines))
}

/// The table as a page to keep, with the kernel that it was made on.
pub(crate) fn page(lines: &[(String, Line)], kernel: &str) -> String {
    let rows = lines.iter().map(|(name, line)| match line {
        Line::Judged(judged) => cells(name, judged),
        Line::Failed(_) => vec![name.clone(), "failed".to_owned()],
    });
    page_of(rows, &sums(lines), kernel)
}

fn page_of(rows: impl Iterator<Item = Vec<String>>, sums: &str, kernel: &str) -> String {
    let mut text = format!(
        "# Accuracy\n\nWhat holdup says of stalls made for real, each beside a healthy twin, against what the stalled \
         program measured itself.\nMade by `cargo xtask scenarios --table docs/accuracy.md` on Linux {kernel}. A cause \
         followed by an arrow is what the waiter\nwaited for, and what the time on the critical path then went to; \
         \"false alarms\" are of the stall and of its twin.\n\"Tolerance\" is how many percentage points the share may be off; the \
         scenario says why where it is more than ten. \"Allowed\" are\nfindings that may stand beside the expected ones; {FOUND} marks one that \
         did. \"First line\" is the finding whose sentence a person reads first.\n\n"
    );
    let mut row = |cells: &[String]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    row(&HEADINGS.map(str::to_owned));
    row(&HEADINGS.map(|_| "---".to_owned()));
    for cells in rows {
        row(&cells);
    }
    let _ = writeln!(text, "\n{sums}");
    text
}

/// The page of a table that was printed, by `cargo xtask scenarios` or among all that `cargo xtask test` prints; `None` without a whole one.
pub(crate) fn page_of_printed(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let kernel = lines.find_map(|line| line.split_once(KERNEL))?.1;
    let (quoted, headings) = lines.find_map(|line| {
        let at = line.find(HEADINGS[0])?;
        let (quoted, line) = line.split_at(at);
        line.contains(HEADINGS[9]).then_some((quoted, line))
    })?;
    let begin = |heading: &str| headings.find(heading);
    let columns: Vec<usize> = HEADINGS
        .iter()
        .map(|heading| begin(heading))
        .collect::<Option<_>>()?;
    let mut lines = lines.map(|line| line.strip_prefix(quoted).unwrap_or(line));
    let rows: Vec<Vec<String>> = lines
        .by_ref()
        .take_while(|line| !line.trim().is_empty())
        .map(|line| at_columns(line, &columns))
        .collect();
    let right = lines.find(|line| line.contains(" right, of them "))?;
    let sums = format!("{right}\n{}", lines.next()?);
    Some(page_of(rows.into_iter(), &sums, kernel.trim()))
}

/// The cells of a row that begin at these characters; one that ended before has fewer.
fn at_columns(line: &str, columns: &[usize]) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let ends = columns.iter().skip(1).copied().chain([letters.len()]);
    let cells = columns.iter().zip(ends).filter_map(|(begin, end)| {
        let cell = letters.get(*begin..end.max(*begin).min(letters.len()))?;
        Some(cell.iter().collect::<String>().trim().to_owned())
    });
    cells.filter(|cell| !cell.is_empty()).collect()
}

/// The tolerance, and the allowed findings with a mark at those that are there.
pub(super) fn leeway(row: &Row) -> [String; 2] {
    let allowed: Vec<String> = row
        .allowed
        .iter()
        .map(|allowed| match allowed.found {
            true => format!("{FOUND}{}", allowed.rule),
            false => allowed.rule.clone(),
        })
        .collect();
    let tolerance = row
        .off
        .map_or_else(|| "-".to_owned(), |_| row.tolerance.to_string());
    let none = allowed.is_empty();
    [tolerance, if none { "-".to_owned() } else { allowed.join(", ") }]
}

fn cells(name: &str, row: &Row) -> Vec<String> {
    let plain = |check: &Check| {
        if check.right {
            "right".to_owned()
        } else {
            marked(&check.seen)
        }
    };
    let shown = |check: &Check| {
        if check.right {
            check.seen.clone()
        } else {
            marked(&check.seen)
        }
    };
    let [tolerance, allowed] = leeway(row);
    vec![
        name.to_owned(),
        shown(&row.cause),
        plain(&row.resource),
        plain(&row.asker),
        row.holder.as_ref().map_or_else(|| "-".to_owned(), plain),
        shown(&row.share),
        shown(&row.finding),
        match &row.headline {
            Headline::Expected => "right".to_owned(),
            Headline::Other(rule) => format!("{FOUND}{rule}"),
        },
        shown(&row.alarms),
        tolerance,
        allowed,
    ]
}

/// A cell that is wrong.
fn marked(seen: &str) -> String {
    let mut cell = String::from("NO: ");
    // Names come from observed programs; nothing in them may move the cursor.
    cell.extend(
        seen.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(CELL),
    );
    if seen.chars().count() > CELL {
        cell.push('…');
    }
    cell
}

fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(line, "{cell:<width$}  ", width = width(column).unwrap_or(0));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Line, page, render};
    use crate::scenarios::verdict::{Allowed, Check, Headline, Row};
    use crate::tally::Tally;

    fn check(right: bool, seen: &str) -> Check {
        Check {
            right,
            seen: seen.to_owned(),
        }
    }

    fn row(finding: Check) -> Line {
        Line::Judged(Box::new(judged(finding)))
    }

    fn judged(finding: Check) -> Row {
        Row {
            cause: check(true, "lock.file"),
            resource: check(true, "/job.lock"),
            asker: check(true, "flock"),
            holder: None,
            says_unseen: false,
            share: check(true, "97.0 / 96.0 %"),
            finding,
            alarms: check(true, "none"),
            off: Some(1.0),
            tolerance: 15.0,
            allowed: vec![Allowed {
                rule: "waits-for-child".to_owned(),
                found: false,
            }],
            headline: Headline::Expected,
        }
    }

    #[test]
    fn what_leads_before_the_expected_finding_is_named_and_makes_a_row_loose() {
        let mut buried = judged(check(true, "waits-for-lock-holder"));
        buried.headline = Headline::Other("sleeps-on-purpose".to_owned());
        let text = render(&[("one".to_owned(), Line::Judged(Box::new(buried)))]);
        assert!(text.contains("+sleeps-on-purpose"), "{text}");
        assert!(text.contains("1 right, of them 1 loose"), "{text}");
    }

    #[test]
    fn a_row_that_needs_its_leeway_is_right_and_loose() {
        let of = |off: f64, found: bool, right: bool| {
            let mut row = judged(check(right, "waits-for-lock-holder"));
            row.off = Some(off);
            row.allowed[0].found = found;
            ("one".to_owned(), Line::Judged(Box::new(row)))
        };
        let lines = [
            of(1.0, false, true),
            of(5.1, false, true),
            of(1.0, true, true),
            of(9.0, true, false),
        ];
        for text in [render(&lines), page(&lines, "6.18")] {
            assert!(text.contains("3 right, of them 2 loose: "), "{text}");
            assert!(text.contains("15"), "{text}");
            assert_eq!(text.matches("+waits-for-child").count(), 2, "{text}");
            // `cargo xtask test` adds up what it reads: the counts must be read once.
            let read: Vec<Tally> = text.lines().filter_map(Tally::from_line).collect();
            assert_eq!(read, [Tally { passed: 3, failed: 1 }], "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_marked_and_told_in_full() {
        let long = "no \u{1b}[2Jwaits-for-lock-holder but something else altogether";
        let lines = [
            ("good".to_owned(), row(check(true, "waits-for-lock-holder"))),
            ("bad".to_owned(), row(check(false, long))),
            (
                "broken".to_owned(),
                Line::Failed("the run ended with exit status: 1".to_owned()),
            ),
        ];
        let text = render(&lines);
        assert!(text.contains("1 passed, 2 failed"), "{text}");
        assert!(text.contains("NO: no  [2Jwaits"), "{text}");
        assert!(
            text.contains("broken: the run ended with exit status: 1"),
            "{text}"
        );
        assert!(
            !text.lines().take(3).any(|line| line.contains('\u{1b}')),
            "{text}"
        );
    }

    #[test]
    fn a_page_is_made_of_what_was_printed() {
        let lines = [
            ("good".to_owned(), row(check(true, "waits-for-lock-holder"))),
            (
                "arrow-in-its-cells".to_owned(),
                row(check(true, "lock.file → cpu.user")),
            ),
            ("failed-to-run".to_owned(), Line::Failed("no".to_owned())),
        ];
        let printed = super::printed(&lines, "6.18");
        let among = format!("ring 4\n{printed}ring 5: 3 passed, 0 failed\n");
        assert_eq!(super::page_of_printed(&among), Some(page(&lines, "6.18")));
        let quoted: String = among.lines().map(|line| format!("> {line}\n")).collect();
        assert_eq!(super::page_of_printed(&quoted), Some(page(&lines, "6.18")));
        let cut: String = printed.lines().take(3).map(|line| format!("{line}\n")).collect();
        assert_eq!(super::page_of_printed(&cut), None);
    }

    #[test]
    fn the_page_has_a_row_for_each_scenario_and_the_sum() {
        let lines = [
            ("good".to_owned(), row(check(true, "waits-for-lock-holder"))),
            ("bad".to_owned(), row(check(false, "nothing"))),
        ];
        let text = page(&lines, "6.18");
        assert!(text.contains("| good | lock.file | right |"), "{text}");
        assert!(text.contains("| NO: nothing |"), "{text}");
        assert!(text.ends_with("1 passed, 1 failed\n"), "{text}");
    }
}
