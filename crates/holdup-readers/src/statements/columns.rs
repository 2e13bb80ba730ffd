//! Tables of which a column is a length of time: `LAT(ms)`, `LATms`, `DELAY(us)`, as tools that trace latencies print them.
//!
//! In: lines. Out: of a row its length. A heading names the column, and the rows below it have a number there; the first line
//! that has none ends the table. What stands above the heading says what was measured.

use holdup_evidence::Ns;

/// Words of a heading that are looked at.
const WORDS: usize = 24;

/// Bytes that are kept of each line above a heading.
const KEPT: usize = 80;

/// Names of columns of lengths that say their unit without brackets.
const NAMED: &[(&[u8], f64)] = &[
    (b"MS", 1e6),
    (b"ms", 1e6),
    (b"US", 1e3),
    (b"LATms", 1e6),
    (b"LATus", 1e3),
    (b"T(ms)", 1e6),
];

/// Units in brackets behind a column's name.
const BRACKETED: &[(&[u8], f64)] = &[
    (b"(ns)", 1.0),
    (b"(us)", 1e3),
    (b"(usec)", 1e3),
    (b"(usecs)", 1e3),
    (b"(ms)", 1e6),
    (b"(msec)", 1e6),
    (b"(msecs)", 1e6),
    (b"(sec)", 1e9),
    (b"(secs)", 1e9),
];

/// Follows the tables of one artefact.
#[derive(Debug, Default)]
pub(super) struct Columns {
    column: Option<Column>,
    /// Whether the last line was a heading.
    heading: bool,
    /// The last two lines that are no rows.
    above: [Vec<u8>; 2],
}

#[derive(Debug)]
struct Column {
    /// Which word of a row.
    index: usize,
    unit: f64,
    name: String,
    title: String,
    /// The names of all columns, where each is one word.
    names: Vec<String>,
}

impl Columns {
    /// The length of a row; `None` where the line is none.
    pub(super) fn length(&mut self, line: &[u8]) -> Option<Ns> {
        self.heading = false;
        if let Some(column) = &self.column {
            if let Some(ns) = column.of(line) {
                return Some(ns);
            }
            if line
                .iter()
                .all(|byte| byte.is_ascii_punctuation() || byte.is_ascii_whitespace())
            {
                return None;
            }
            self.column = None;
        }
        if let Some((index, unit, name)) = heading(line) {
            self.heading = true;
            let [first, second] = &self.above;
            let title = [first, second]
                .map(|line| super::shape::sentence(line, 0))
                .join(" ");
            self.column = Some(Column {
                index,
                unit,
                name,
                title: title.trim().to_owned(),
                names: super::words_of(line, WORDS),
            });
            return None;
        }
        self.above.rotate_left(1);
        let [_, last] = &mut self.above;
        last.clear();
        last.extend_from_slice(line.get(..KEPT).unwrap_or(line));
        None
    }

    /// Whether no table is being read.
    pub(super) fn is_idle(&self) -> bool {
        self.column.is_none() && !self.heading
    }

    /// Passes over a line that is of no table.
    pub(super) fn pass(&mut self, line: &[u8]) {
        self.above.rotate_left(1);
        let [_, last] = &mut self.above;
        last.clear();
        let line = line.trim_ascii();
        last.extend_from_slice(line.get(..KEPT).unwrap_or(line));
    }

    /// Whether the last line was a heading: its words are names.
    pub(super) fn is_heading(&self) -> bool {
        self.heading
    }

    /// A row with the names of its columns, where it has a word for each.
    pub(super) fn row(&self, line: &[u8]) -> Option<String> {
        let names = &self.column.as_ref()?.names;
        let cells = super::words_of(line, WORDS + 1);
        if cells.len() != names.len() {
            return None;
        }
        let pairs = names
            .iter()
            .zip(&cells)
            .map(|(name, cell)| format!("{name} {cell}"));
        Some(pairs.collect::<Vec<_>>().join(", "))
    }

    /// What stands above the table and which column it is of.
    pub(super) fn said(&self) -> Option<(&str, &str)> {
        self.column
            .as_ref()
            .map(|column| (column.title.as_str(), column.name.as_str()))
    }
}

impl Column {
    fn of(&self, line: &[u8]) -> Option<Ns> {
        // A date and a time stand in one column.
        let first = crate::numbers::words(line).next()?;
        let dated = first.contains(&b'-') && first.first().is_some_and(u8::is_ascii_digit);
        let number = crate::numbers::words(line).nth(self.index + usize::from(dated))?;
        let number = crate::numbers::decimal(number)?;
        let ns = number * self.unit;
        (0.0..1e18).contains(&ns).then_some(ns as Ns)
    }
}

/// The column of a heading that is a length: which word, its unit, its name. A heading has no digits.
fn heading(line: &[u8]) -> Option<(usize, f64, String)> {
    if line.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let mut index = 0;
    let mut found = None;
    for word in crate::numbers::words(line).take(WORDS) {
        let alone = word.first() == Some(&b'(');
        let bracketed = BRACKETED.iter().find(|(unit, _)| word.ends_with(unit));
        let named = NAMED.iter().find(|(name, _)| word == *name);
        let unit = bracketed.or(named).map(|(_, unit)| *unit);
        if let Some(unit) = unit.filter(|_| found.is_none()) {
            let index = if alone {
                usize::checked_sub(index, 1)?
            } else {
                index
            };
            found = Some((index, unit, super::shape::sentence(word, 0)));
        }
        index += usize::from(!alone);
    }
    found.filter(|_| index >= 3)
}
