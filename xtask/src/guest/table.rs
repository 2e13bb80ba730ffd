//! The table of the guests: a row for each thing that ran, a column for each kernel.

use crate::tally::Tally;
use std::fmt::Write as _;

/// What was made of one thing on one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    /// All of it was right; a word about it.
    Right(String),
    /// What was not.
    Wrong(Vec<String>),
    /// It can't be shown there, and why.
    NotApplicable(String),
}

/// One kernel.
#[derive(Debug)]
pub(super) struct Column {
    /// Its name.
    pub(super) kernel: String,
    /// What ran and what was made of it. What did not run there is left out.
    pub(super) cells: Vec<(String, Cell)>,
}

/// Renders the table, then in full what is wrong and what does not apply, then the sum.
pub(super) fn render(columns: &[Column]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in columns.iter().flat_map(|column| &column.cells) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut rows = vec![vec!["scenario".to_owned()]];
    rows[0].extend(columns.iter().map(|column| column.kernel.clone()));
    let (mut notes, mut tally) = (String::new(), Tally::default());
    for name in &names {
        let mut row = vec![(*name).to_owned()];
        for column in columns {
            let Some((_, cell)) = column.cells.iter().find(|(one, _)| one == name) else {
                row.push(String::new());
                continue;
            };
            let mut note = |text: &str| {
                let text: String = text
                    .chars()
                    // Names come from observed programs; nothing in them may move the cursor.
                    .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
                    .collect();
                let _ = writeln!(notes, "{} on {}: {text}", name, column.kernel);
            };
            row.push(match cell {
                Cell::Right(word) => format!("right {word}"),
                Cell::Wrong(what) => {
                    what.iter().for_each(|what| note(what));
                    "WRONG".to_owned()
                }
                Cell::NotApplicable(why) => {
                    note(&format!("not applicable: {why}"));
                    "-".to_owned()
                }
            });
            match cell {
                Cell::Right(_) => tally += Tally::one(true),
                Cell::Wrong(_) => tally += Tally::one(false),
                Cell::NotApplicable(_) => {}
            }
        }
        rows.push(row);
    }
    let mut text = aligned(&rows);
    if !notes.is_empty() {
        let _ = write!(text, "\n{notes}");
    }
    let _ = writeln!(text, "\n{tally}");
    text
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::from("\n");
    for row in rows {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Cell, Column, render};
    use crate::tally::Tally;

    #[test]
    fn every_kernel_has_its_column_and_what_is_wrong_is_said() {
        let column = |kernel: &str, cell: Cell| Column {
            kernel: kernel.to_owned(),
            cells: vec![
                ("sleep".to_owned(), Cell::Right("97 / 98 %".to_owned())),
                ("pipe".to_owned(), cell),
            ],
        };
        let text = render(&[
            column("5.10", Cell::Wrong(vec!["cause: un\x1bknown".to_owned()])),
            column("6.1", Cell::NotApplicable("no pipes there".to_owned())),
        ]);
        assert!(text.contains("scenario  5.10             6.1\n"), "{text}");
        assert!(text.contains("pipe      WRONG            -\n"), "{text}");
        assert!(text.contains("pipe on 5.10: cause: un known"), "{text}");
        assert!(
            text.contains("pipe on 6.1: not applicable: no pipes there"),
            "{text}"
        );
        let alone = Column {
            kernel: "6.12".to_owned(),
            cells: vec![("boot".to_owned(), Cell::Right("so".to_owned()))],
        };
        let with = render(&[column("6.1", Cell::Right("so".to_owned())), alone]);
        assert!(with.contains("boot                       right so\n"), "{with}");
        let sum = text.lines().last().and_then(Tally::from_line);
        assert_eq!(sum, Some(Tally { passed: 2, failed: 1 }));
    }
}
