//! What stands in a heading, and what does not: groups of columns, names that go on in the next line, columns without a name.

use super::{COLUMNS, Column, Table};
use crate::statements::cells::{number, words};

impl Table {
    /// Gives columns of the same name the name that stands above them: `read` and `write` below `total_wait`, and below `disk_wait`.
    pub(super) fn name_by(&mut self, above: &[Column]) {
        if above.is_empty() || above.len() >= self.columns.len() {
            return;
        }
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let of_several = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
        for column in self.columns.iter_mut().filter(|column| of_several(&column.name)) {
            // A name stands in the middle above its columns.
            let middle = column.begin + column.end;
            let nearest = above
                .iter()
                .min_by_key(|group| (group.begin + group.end).abs_diff(middle));
            if let Some(group) = nearest {
                column.name = format!("{} {}", group.name, column.name);
            }
        }
    }

    /// Takes a column that has no name where the first row begins before the heading, and a word of it stands there: the names of the rows.
    pub(super) fn take_nameless(&mut self, text: &str) {
        let first = words(text).into_iter().next();
        let Some((begin, end, _)) = first.filter(|(_, _, word)| number(word).is_none()) else {
            return;
        };
        for columns in [&mut self.columns, &mut self.words] {
            let Some(from) = columns
                .first()
                .map(|column| column.begin)
                .filter(|from| end < *from)
            else {
                continue;
            };
            if columns.len() < COLUMNS {
                columns.insert(0, Column::nameless(begin, from.saturating_sub(1)));
            }
        }
    }

    /// The same behind the heading: each of its words has a figure below it, and what follows those is the names of the rows, as profilers
    /// print them (`flat  flat%  sum%  cum  cum%`).
    pub(super) fn take_nameless_last(&mut self, text: &str) {
        let row = words(text);
        let figures = row
            .iter()
            .take_while(|(_, _, word)| number(word).is_some())
            .count();
        let (Some((begin, _, _)), Some((_, end, _))) = (row.get(figures), row.last()) else {
            return;
        };
        for columns in [&mut self.columns, &mut self.words] {
            let behind = columns.last().is_some_and(|last| last.end <= *begin);
            if behind && columns.len() == figures && (3..COLUMNS).contains(&figures) {
                columns.push(Column::nameless(*begin, *end));
            }
        }
    }

    /// Takes the line below a heading in which names of its columns go on, each below its beginning: `Avg-` and `Latency`.
    pub(super) fn goes_on(&mut self, text: &str) -> bool {
        let rest = words(text);
        let names = |word: &str| {
            word.chars()
                .all(|char| char.is_alphabetic() || matches!(char, '(' | ')' | '/'))
        };
        if self.continued || rest.len() >= self.columns.len() || !rest.iter().all(|(_, _, word)| names(word))
        {
            return false;
        }
        let below = |(begin, end, _): &(usize, usize, String)| {
            let mut columns = self.columns.iter();
            columns.position(|column| *begin < column.end && column.begin < *end)
        };
        let Some(places) = rest.iter().map(below).collect::<Option<Vec<usize>>>() else {
            return false;
        };
        if places.windows(2).any(|two| two[0] >= two[1]) {
            return false;
        }
        for (at, (begin, end, word)) in places.into_iter().zip(rest) {
            let Some(column) = self.columns.get_mut(at) else {
                continue;
            };
            if !column.name.ends_with('-') {
                column.name.push(' ');
            }
            column.name.push_str(&word);
            (column.begin, column.end) = (column.begin.min(begin), column.end.max(end));
        }
        self.words.clear();
        self.continued = true;
        true
    }
}
