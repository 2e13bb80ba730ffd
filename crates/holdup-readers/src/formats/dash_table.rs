//! Tables whose columns a line of dashes shows, or tabs or bars separate, as `sacct`, `sqlcmd` and their kin print them.
//!
//! In: the heading, the line of dashes, rows. Out: the cells of a row, by the names of the heading.

/// Columns of a table.
const MAX_COLUMNS: usize = 120;

/// The names of the columns, and how rows are cut.
#[derive(Debug, Default, Clone)]
pub(super) struct DashTable {
    names: Vec<String>,
    /// What stands between cells; without one they are cut by place.
    between: Option<char>,
    /// Where each column begins and ends, in characters, by the line of dashes.
    places: Vec<(usize, usize)>,
}

impl DashTable {
    /// The table that a heading begins: whatever line it is, who reads it knows whether the names are its own.
    pub(super) fn of(heading: &str) -> DashTable {
        let between = ['\t', '|'].into_iter().find(|sign| heading.contains(*sign));
        let names = match between {
            Some(sign) => heading
                .split(sign)
                .take(MAX_COLUMNS)
                .map(|name| name.trim().to_owned())
                .collect(),
            None => heading
                .split_whitespace()
                .take(MAX_COLUMNS)
                .map(str::to_owned)
                .collect(),
        };
        DashTable {
            names,
            between,
            places: Vec::new(),
        }
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Takes the line of dashes below the names; whether it is one.
    pub(super) fn dashes(&mut self, line: &str) -> bool {
        let sign = self.between.unwrap_or(' ');
        let is = line.len() >= 4
            && line.contains("--")
            && line.chars().all(|char| matches!(char, '-' | ' ') || char == sign);
        if !is {
            return false;
        }
        let mut from = None;
        self.places.clear();
        for (at, char) in line.chars().chain([' ']).enumerate() {
            match (char, from) {
                ('-', None) => from = Some(at),
                (char, Some(begin)) if char != '-' => {
                    self.places.push((begin, at));
                    from = None;
                }
                _ => {}
            }
        }
        true
    }

    /// The cells of a row; `None` where they do not fit. The line has the blanks at its beginning.
    pub(super) fn row(&self, line: &str) -> Option<Vec<String>> {
        if let Some(sign) = self.between {
            let cells: Vec<String> = line
                .split(sign)
                .take(MAX_COLUMNS + 1)
                .map(|cell| cell.trim().to_owned())
                .collect();
            return (cells.len() >= self.names.len()).then_some(cells);
        }
        let words: Vec<&str> = line.split_whitespace().take(MAX_COLUMNS + 1).collect();
        // A copy that has lost its blanks has no columns, but a word for each name.
        if words.len() == self.names.len() {
            return Some(words.into_iter().map(str::to_owned).collect());
        }
        // Nor is there a line of dashes in every copy: then wide blanks part the cells.
        if self.places.is_empty() {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            let cells: Vec<String> = cells.take(MAX_COLUMNS + 1).map(str::to_owned).collect();
            return (cells.len() == self.names.len()).then_some(cells);
        }
        let cut = |(from, to): &(usize, usize)| -> String {
            let cell: String = line.chars().skip(*from).take(to - from).collect();
            cell.trim().to_owned()
        };
        (self.places.len() == self.names.len()).then(|| self.places.iter().map(cut).collect())
    }

    /// What stands in a column of a row; empty where there is no such column.
    pub(super) fn cell<'a>(&self, row: &'a [String], name: &str) -> &'a str {
        let at = self
            .names
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name));
        at.and_then(|at| row.get(at)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::DashTable;

    #[test]
    fn cells_by_place_by_word_and_between_signs() {
        let mut table = DashTable::of("Id     Name    State");
        assert!(table.dashes("------ ------- ------"));
        let row = table.row("     1 a b     up    ").unwrap();
        assert_eq!(
            (
                table.cell(&row, "id"),
                table.cell(&row, "Name"),
                table.cell(&row, "State")
            ),
            ("1", "a b", "up")
        );
        assert_eq!(table.row("2 c down").unwrap(), ["2", "c", "down"]);
        let table = DashTable::of("Id  Name  State");
        assert_eq!(table.row("1   a b   up").unwrap(), ["1", "a b", "up"]);
        assert!(table.row("1 a b up").is_none());
        let table = DashTable::of("Id\tName");
        assert_eq!(table.row("1\ta b").unwrap(), ["1", "a b"]);
        assert!(table.row("1").is_none());
        assert_eq!(table.cell(&[], "Name"), "");
    }
}
