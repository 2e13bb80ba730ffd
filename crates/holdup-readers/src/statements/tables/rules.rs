//! Tables whose columns a line of dashes shows, with their names above it.

use super::{CELL, Column, Table};
use crate::statements::cells::{number, words};

impl Table {
    /// The table with columns as wide as these dashes, whose names stand above them in several lines.
    pub(super) fn of_rules(rules: &[(usize, usize, String)], headings: &[String]) -> Option<Table> {
        let mut columns: Vec<Column> = rules
            .iter()
            .map(|(begin, end, _)| Column {
                name: String::new(),
                begin: *begin,
                end: *end,
                sum: 0.0,
                count: 0,
                largest: None,
                unit: false,
            })
            .collect();
        let (last, upper) = headings.split_last()?;
        if upper.is_empty() {
            return Table::without_blanks(rules, last).or_else(|| Table::of_one_heading(columns, last));
        }
        // What stands above the names leaves the first column free: else it is a title.
        let second = columns.get(1)?.begin;
        let is_upper = |heading: &&String| {
            words(heading)
                .first()
                .is_some_and(|(begin, _, _)| *begin >= second)
        };
        let upper: Vec<&String> = upper.iter().filter(is_upper).collect();
        if upper.is_empty() {
            return None;
        }
        for heading in upper.into_iter().chain([last]) {
            let names = words(heading);
            let placed = names.iter().map(|(begin, end, word)| {
                // The one over which most of it stands.
                let over =
                    |column: &Column| (*end).min(column.end).saturating_sub((*begin).max(column.begin));
                let all = columns.iter().enumerate().map(|(at, column)| (over(column), at));
                let most = all
                    .filter(|(over, _)| *over > 0)
                    .max_by_key(|(over, at)| (*over, usize::MAX - at));
                most.map(|(_, at)| (at, word))
            });
            // A title above the names is wider than its columns, or stands beside them.
            let Some(placed) = placed.collect::<Option<Vec<_>>>() else {
                continue;
            };
            for (at, word) in placed {
                let Some(column) = columns.get_mut(at) else {
                    continue;
                };
                if !column.name.is_empty() {
                    column.name.push(' ');
                }
                column.name.extend(word.chars().take(CELL));
            }
        }
        let named = columns.iter().filter(|column| !column.name.is_empty()).count();
        (named + 1 >= columns.len()).then(|| Table {
            columns,
            apart: true,
            ..Table::default()
        })
    }

    /// The same where a copy took away the blanks between names, and between cells: the dashes alone say how wide each column was.
    fn without_blanks(rules: &[(usize, usize, String)], heading: &str) -> Option<Table> {
        let names = words(heading);
        let single = names
            .windows(2)
            .all(|two| matches!(two, [(_, end, _), (begin, _, _)] if *begin == end + 1));
        let moved = names
            .iter()
            .zip(rules)
            .any(|(name, rule)| name.0 != rule.0 && name.1 != rule.1);
        if !single || !moved || names.len() != rules.len() {
            return None;
        }
        let columns = names.into_iter().map(|(begin, end, name)| Column {
            name: name.chars().take(CELL).collect(),
            begin,
            end,
            sum: 0.0,
            count: 0,
            largest: None,
            unit: false,
        });
        Some(Table {
            columns: columns.collect(),
            apart: true,
            widths: rules.iter().map(|(begin, end, _)| end - begin).collect(),
            ..Table::default()
        })
    }

    /// The cells of a row without its blanks: the widest column is the one with a text of several words. A row with fewer words than columns
    /// has empty cells, and nothing tells which.
    pub(super) fn row_by_widths(&self, text: &str) -> Option<Vec<String>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let more = words.len().checked_sub(self.columns.len())?;
        let (widest, _) = self
            .widths
            .iter()
            .enumerate()
            .max_by_key(|(at, width)| (**width, usize::MAX - at))?;
        let mut words = words.into_iter();
        let cells = (0..self.columns.len()).map(|at| {
            let of_cell = if at == widest { 1 + more } else { 1 };
            let cell: Vec<&str> = words.by_ref().take(of_cell).collect();
            cell.join(" ").chars().take(CELL).collect()
        });
        let cells: Vec<String> = cells.collect();
        cells.iter().any(|cell| number(cell).is_some()).then_some(cells)
    }

    /// The same with names that stand in one line, as clients of databases print them: each begins or ends where its dashes do.
    fn of_one_heading(mut columns: Vec<Column>, heading: &str) -> Option<Table> {
        let aligned = |column: &Column, (begin, end, _): &(usize, usize, String)| {
            *begin >= column.begin && *end <= column.end || *begin == column.begin
        };
        for word in words(heading) {
            let column = columns.iter_mut().find(|column| aligned(column, &word))?;
            if !column.name.is_empty() {
                column.name.push(' ');
            }
            column.name.extend(word.2.chars().take(CELL));
        }
        columns
            .iter()
            .all(|column| !column.name.is_empty())
            .then(|| Table {
                columns,
                apart: true,
                exact: true,
                ..Table::default()
            })
    }
}

impl Table {
    /// Takes a line below the heading that has units in brackets and nothing else: they belong to the names above them.
    pub(super) fn take_units(&mut self, text: &str) -> bool {
        let units = words(text);
        let bracketed = |(_, _, word): &(usize, usize, String)| word.starts_with('(') && word.ends_with(')');
        if units.is_empty() || !units.iter().all(bracketed) {
            return false;
        }
        for (begin, end, unit) in units {
            let nearest = |column: &&mut Column| (column.begin + column.end).abs_diff(begin + end);
            if let Some(column) = self.columns.iter_mut().min_by_key(nearest) {
                column.name = format!("{} {unit}", column.name);
            }
        }
        true
    }
}
