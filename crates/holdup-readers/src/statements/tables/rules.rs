//! Tables whose columns a line of dashes shows, with their names above it.

use super::{CELL, Column, Table};
use crate::statements::cells::words;

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
            return Table::of_one_heading(columns, last);
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
            words: Vec::new(),
            ruled: false,
            apart: true,
            exact: false,
            of_records: false,
            rows: 0,
            strangers: 0,
            share: None,
            length: None,
            bad: None,
            blocked: None,
        })
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
                words: Vec::new(),
                ruled: false,
                apart: true,
                exact: true,
                of_records: false,
                rows: 0,
                strangers: 0,
                share: None,
                length: None,
                bad: None,
                blocked: None,
            })
    }
}
