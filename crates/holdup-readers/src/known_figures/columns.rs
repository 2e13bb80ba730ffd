//! Known figures as columns of a table: a heading that has one of their names, and rows with as many cells below it.

use super::table::{Named, find, may_end_name};
use super::value::{Judged, OfName, is_number, unit_of_name, value};
use std::ops::Range;

/// Columns of a table, and bytes of a line of it.
const MAX_COLUMNS: usize = 64;
const MAX_LINE_BYTES: usize = 4 << 10;

/// How the cells of a table are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Strokes,
    Tabs,
    Commas,
    /// Two blanks or more.
    Gaps,
    Blanks,
}

/// A table whose heading has a known name.
#[derive(Debug)]
pub(super) struct Table {
    /// Ways to read the heading, the surest first, each with its columns.
    ways: Vec<(Between, Vec<Column>)>,
    rows: u64,
}

#[derive(Debug)]
struct Column {
    name: Vec<u8>,
    named: Option<Named>,
}

/// A figure in a row of a table.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) named: Named,
    pub(super) judged: Judged,
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// The first cell of the row that is no number.
    pub(super) subject: &'a [u8],
}

/// What a line is to a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Row,
    /// A line between rows.
    Rule,
    /// The table is over.
    No,
}

/// The cells of a line.
fn cells(line: &[u8], between: Between) -> Vec<Range<usize>> {
    let stroke = "│".as_bytes();
    let mut cells = Vec::new();
    let mut begin = 0;
    let mut at = 0;
    let mut push = |from: usize, to: usize| {
        let cell = line.get(from..to).unwrap_or_default();
        let lead = cell.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let length = cell.trim_ascii().len();
        cells.push(from + lead..from + lead + length);
    };
    while at < line.len() {
        let rest = line.get(at..).unwrap_or_default();
        let width = match (between, rest) {
            (Between::Strokes, [b'|', ..]) | (Between::Tabs, [b'\t', ..]) | (Between::Commas, [b',', ..]) => {
                1
            }
            (Between::Strokes, rest) if rest.starts_with(stroke) => stroke.len(),
            (Between::Gaps, [b' ', b' ', ..] | [b'\t', ..]) | (Between::Blanks, [b' ' | b'\t', ..]) => {
                rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
            }
            _ => 0,
        };
        if width == 0 {
            at += 1;
            continue;
        }
        push(begin, at);
        at += width;
        begin = at;
    }
    push(begin, line.len());
    // Strokes stand around a row, or between its cells only.
    let around = line.starts_with(b"|") || line.starts_with(stroke);
    if between == Between::Strokes && around {
        cells.remove(0);
        if cells.last().is_some_and(Range::is_empty) {
            cells.pop();
        }
    }
    cells
}

fn ways(line: &[u8]) -> &'static [Between] {
    let has = |byte: u8| memchr::memchr(byte, line).is_some();
    if has(b'|') || crate::find::find(line, "│".as_bytes()).is_some() {
        &[Between::Strokes]
    } else if has(b'\t') {
        &[Between::Tabs, Between::Blanks]
    } else if has(b',') && !has(b' ') {
        &[Between::Commas]
    } else {
        &[Between::Gaps, Between::Blanks]
    }
}

/// Whether a line may be a heading: no cell begins with a digit, and one ends with the last word of a known name.
fn may_head(line: &[u8]) -> bool {
    let separates = |byte: u8| matches!(byte, b' ' | b'\t' | b'|' | b',');
    let mut before = b' ';
    let mut known = false;
    for (at, byte) in line.iter().copied().chain([b' ']).enumerate() {
        if byte.is_ascii_digit() && separates(before) {
            return false;
        }
        if separates(byte) && !separates(before) {
            let (_, name) = unit_of_name(line.get(..at).unwrap_or_default());
            known = known || may_end_name(name);
        }
        before = byte;
    }
    known
}

/// Whether a line only separates rows.
fn is_rule(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line.get(..MAX_LINE_BYTES).unwrap_or(line));
    let drawn = |char: char| {
        matches!(char, '-' | '+' | '=' | '|' | ':' | ' ' | '\t') || ('\u{2500}'..='\u{257f}').contains(&char)
    };
    line.len() > 2 && text.chars().all(drawn)
}

impl Table {
    /// The table that a line begins, where that is a heading with a known name.
    pub(super) fn begin(line: &[u8]) -> Option<Table> {
        if line.len() > MAX_LINE_BYTES || line.first() == Some(&b'#') || !may_head(line) {
            return None;
        }
        // A sentence, a heading of something else, code.
        if line.ends_with(b".") || line.ends_with(b":") || line.ends_with(b"{") || line.ends_with(b";") {
            return None;
        }
        let mut all = Vec::new();
        for between in ways(line) {
            let cells = cells(line, *between);
            if !(2..=MAX_COLUMNS).contains(&cells.len()) {
                continue;
            }
            let columns: Vec<Column> = cells
                .into_iter()
                .map(|cell| Column::of(line.get(cell).unwrap_or_default()))
                .collect();
            if columns.iter().any(|column| column.named.is_some()) {
                all.push((*between, columns));
            }
        }
        (!all.is_empty()).then_some(Table { ways: all, rows: 0 })
    }

    /// Takes a line below the heading, and calls `found` for each of its figures.
    pub(super) fn line(&mut self, line: &[u8], mut found: impl FnMut(Cell<'_>)) -> Taken {
        if is_rule(line) {
            return Taken::Rule;
        }
        if line.len() > MAX_LINE_BYTES {
            return Taken::No;
        }
        let fits = self.ways.iter().find_map(|(between, columns)| {
            let cells = cells(line, *between);
            (cells.len() == columns.len()).then_some((columns, cells))
        });
        let Some((columns, cells)) = fits else {
            return Taken::No;
        };
        let text = |cell: &Range<usize>| unquoted(line.get(cell.clone()).unwrap_or_default());
        let numbers = cells.iter().filter(|cell| is_number(text(cell))).count();
        if numbers == 0 {
            return Taken::No;
        }
        self.rows += 1;
        let subject = cells
            .iter()
            .map(text)
            .find(|cell| !is_number(cell) && cell.iter().any(u8::is_ascii_alphanumeric));
        for (column, cell) in columns.iter().zip(&cells) {
            let cell = text(cell);
            let Some(named) = column.named else { continue };
            let Some((read, end)) = value(cell, 0) else {
                continue;
            };
            let Some(judged) = named.row.bad.judge(read, named.of_name) else {
                continue;
            };
            if end == cell.len() {
                found(Cell {
                    named,
                    judged,
                    name: &column.name,
                    value: cell,
                    subject: subject.unwrap_or_default(),
                });
            }
        }
        Taken::Row
    }
}

impl Column {
    fn of(cell: &[u8]) -> Column {
        let cell = unquoted(cell);
        let (unit, name) = unit_of_name(cell);
        // A column has one name, and not words of a sentence before it.
        let mut named = find(name).filter(|named| named.from == 0);
        if let Some(named) = named.as_mut().filter(|_| unit.is_some()) {
            named.of_name = OfName { unit, of_row: false };
        }
        Column {
            name: cell.to_vec(),
            named,
        }
    }
}

fn unquoted(cell: &[u8]) -> &[u8] {
    let inner = cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\""));
    inner.unwrap_or(cell)
}
