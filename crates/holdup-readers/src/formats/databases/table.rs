//! Tables as the clients of databases print them.
//!
//! In: lines of psql's aligned and expanded forms and its CSV, of the tables of MySQL's client and of its `\G`. Out: rows, each
//! with the line that it began on. A cell that goes on in further lines is kept as far as its first one.

use crate::gather::text_of;

/// The most columns of a table.
const COLUMNS: usize = 64;

/// One row: the names of its columns and what stands in them.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) line: u64,
    cells: Vec<(String, Vec<u8>)>,
}

impl Row {
    /// What stands in a column; empty where there is no such column, or nothing in it.
    pub(super) fn cell(&self, name: &str) -> &[u8] {
        let cell = self.cells.iter().find(|(column, _)| column == name);
        let cell = cell.map_or(&b""[..], |(_, cell)| cell);
        if cell == b"NULL" { b"" } else { cell }
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, name: &str) -> bool {
        self.cells.iter().any(|(column, _)| column == name)
    }

    /// All columns, by name, with what stands in them.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.cells
            .iter()
            .map(|(name, cell)| (name.as_str(), cell.as_slice()))
    }
}

/// How lines are rows.
#[derive(Debug, Default)]
enum Form {
    #[default]
    Unknown,
    /// `a | b`, below a head and a line of dashes; with a frame (`| a | b |`) or without.
    Columns(Vec<String>),
    /// A line for each cell.
    Records(Row),
    /// Values with commas, below a head.
    Commas(Vec<String>),
}

/// What became of a line.
#[derive(Debug)]
pub(super) enum Taken {
    /// It ended a row.
    Row(Row),
    /// It is part of the table.
    Part,
    No,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    form: Form,
    /// Whether the names of columns begin a table that is wanted; without it those of sessions do.
    wanted: Option<fn(&[String]) -> bool>,
    /// Columns that the line above a table shows: `+----+----+`.
    framed: usize,
    /// The beginning of a row that has fewer cells than that: a cell has a line break, or a copy is wrapped.
    begun: Vec<u8>,
    /// Whether lines have a bar before them and none behind.
    open: bool,
}

/// Bytes of a row that is put together of several lines.
const ROW: usize = 16 << 10;

impl Table {
    /// Of other columns than those of sessions.
    pub(super) fn of(wanted: fn(&[String]) -> bool) -> Table {
        Table {
            wanted: Some(wanted),
            ..Table::default()
        }
    }

    /// The names of the columns, if the line is the head of a table that is wanted.
    fn head_of(&self, line: &[u8]) -> Option<Vec<String>> {
        match self.wanted {
            None => head(line),
            Some(wanted) => {
                let names = names_of(line)?;
                wanted(&names).then_some(names)
            }
        }
    }

    /// Takes a line.
    pub(super) fn take(&mut self, line: &[u8], number: u64) -> Taken {
        match self.joined(line) {
            Some(whole) => self.take_whole(&whole, number),
            None if self.begun.is_empty() => self.take_whole(line, number),
            None => Taken::Part,
        }
    }

    /// Whether the names of the columns are known.
    pub(super) fn is_headed(&self) -> bool {
        matches!(self.form, Form::Columns(_) | Form::Commas(_))
    }

    /// A row of a table with a frame that several lines make together; `None` while it is not whole, or where a line is.
    fn joined(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let trimmed = line.trim_ascii();
        if trimmed.starts_with(b"+-") && is_frame(trimmed) {
            let columns = memchr::memchr_iter(b'+', trimmed).count().saturating_sub(1);
            // Without a sign at its end the lines have none either.
            self.framed = if trimmed.ends_with(b"+") { columns } else { 0 };
            self.begun.clear();
            return None;
        }
        // A copy whose lines have lost the bar behind them.
        let cut = !trimmed.ends_with(b"|") && memchr::memchr_iter(b'|', trimmed).count() == self.framed;
        if matches!(self.form, Form::Unknown)
            && self.begun.is_empty()
            && cut
            && self.head_of(trimmed).is_some()
        {
            self.framed = 0;
        }
        let whole = |row: &[u8]| memchr::memchr_iter(b'|', row).count() > self.framed && row.ends_with(b"|");
        if self.framed < 2 || self.begun.is_empty() && (!trimmed.starts_with(b"|") || whole(trimmed)) {
            return None;
        }
        if !self.begun.is_empty() {
            self.begun.push(b' ');
        }
        self.begun.extend_from_slice(trimmed);
        if whole(&self.begun) || self.begun.len() > ROW {
            return Some(std::mem::take(&mut self.begun));
        }
        None
    }

    fn take_whole(&mut self, line: &[u8], number: u64) -> Taken {
        if begins_record(line) {
            let ended = self.end();
            self.form = Form::Records(Row {
                line: number,
                cells: Vec::new(),
            });
            return ended.map_or(Taken::Part, Taken::Row);
        }
        if let Some(names) = self.head_of(line) {
            self.form = Form::Columns(names);
            let bare = line.trim_ascii();
            self.open = bare.starts_with(b"|") && !bare.ends_with(b"|");
            return Taken::Part;
        }
        if let Some(names) = comma_head(line).filter(|_| self.wanted.is_none()) {
            self.form = Form::Commas(names);
            return Taken::Part;
        }
        if is_frame(line) || is_foot(line) {
            return Taken::Part;
        }
        match &mut self.form {
            Form::Unknown => Taken::No,
            Form::Records(row) => match record_cell(line) {
                Some((name, cell)) if row.cells.len() < COLUMNS => {
                    row.cells.push((name, cell.to_vec()));
                    Taken::Part
                }
                // A cell goes on; a blank line is behind the last record.
                _ => Taken::Part,
            },
            Form::Columns(names) => match aligned(names, line, self.open) {
                Some(cells) => row(names, cells, number),
                None => Taken::No,
            },
            Form::Commas(names) => match commas(line) {
                cells if cells.len() == names.len() => row(names, cells, number),
                // A statement has commas and quotation marks of its own, and may go on in further lines.
                cells => match before_statement(names, &cells) {
                    Some(cells) => row(names, cells, number),
                    None => Taken::No,
                },
            },
        }
    }

    /// The row that is still open.
    pub(super) fn end(&mut self) -> Option<Row> {
        match std::mem::take(&mut self.form) {
            Form::Records(row) if !row.cells.is_empty() => Some(row),
            _ => None,
        }
    }
}

fn row(names: &[String], cells: Vec<Vec<u8>>, number: u64) -> Taken {
    // The rest of a cell that goes on in a second line: nothing stands in the first column.
    if cells.first().is_none_or(Vec::is_empty) {
        return Taken::Part;
    }
    Taken::Row(Row {
        line: number,
        cells: names.iter().cloned().zip(cells).collect(),
    })
}

/// `-[ RECORD 1 ]----+----` of psql, `****** 1. row ******` of MySQL's client.
pub(super) fn begins_record(line: &[u8]) -> bool {
    let stars = || {
        let inner = line.strip_prefix(b"***")?;
        Some(memchr::memmem::find(inner, b". row *").is_some())
    };
    line.starts_with(b"-[ RECORD ") || stars().unwrap_or(false)
}

/// `----+----` or `+----+----+`.
fn is_frame(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.contains(&b'-') && line.iter().all(|byte| matches!(byte, b'-' | b'+'))
}

/// `(6 rows)`, `5 rows in set (0.000 sec)`, or nothing.
fn is_foot(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty()
        || line.starts_with(b"(") && line.ends_with(b")") && memchr::memmem::find(line, b" row").is_some()
        || memchr::memmem::find(line, b" in set (").is_some()
}

/// The names of the columns, if the line is the head of a list of sessions: the session's id, and what it does.
pub(super) fn head(line: &[u8]) -> Option<Vec<String>> {
    names_of(line).filter(|names| of_sessions(names))
}

/// What stands between the bars of a line.
fn names_of(line: &[u8]) -> Option<Vec<String>> {
    line.contains(&b'|').then(|| {
        open_framed(line, true)
            .split(|byte| *byte == b'|')
            .take(COLUMNS)
            .map(name)
            .collect()
    })
}

/// The same of a file with commas.
pub(super) fn comma_head(line: &[u8]) -> Option<Vec<String>> {
    let names: Vec<String> = line.split(|byte| *byte == b',').take(COLUMNS).map(name).collect();
    of_sessions(&names).then_some(names)
}

fn of_sessions(names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|one| one == name);
    let words = |name: &String| {
        // Columns that somebody left out of the copy are points.
        let left_out = matches!(name.as_str(), "..." | "\u{2026}");
        let of_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'?');
        left_out || !name.is_empty() && name.bytes().all(of_word)
    };
    let postgresql = has("pid") && (has("state") || has("wait_event_type"));
    let mysql = has("id") && has("time") && has("state") && (has("command") || has("db") && has("info"));
    (postgresql || mysql || is_of_locks(has)) && names.iter().all(words)
}

/// Whether columns are those of `pg_locks`: which kind of lock, and whether it was given; of a session, or of how many.
pub(super) fn is_of_locks(has: impl Fn(&str) -> bool) -> bool {
    has("mode") && has("granted")
}

fn name(text: &[u8]) -> String {
    text_of(text.trim_ascii()).to_ascii_lowercase()
}

/// A line without the bars around it.
fn framed(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    let inner = line.strip_prefix(b"|").and_then(|rest| rest.strip_suffix(b"|"));
    inner.unwrap_or(line)
}

/// The same of a table whose lines have a bar before them and none behind: a copy may be cut at the right.
fn open_framed(line: &[u8], open: bool) -> &[u8] {
    let line = line.trim_ascii();
    match line.strip_prefix(b"|") {
        Some(inner) if open => inner.strip_suffix(b"|").unwrap_or(inner),
        _ => framed(line),
    }
}

/// The cells of a row. A statement may have bars of its own: what is too much belongs to the column that has the statement.
fn aligned(names: &[String], line: &[u8], open: bool) -> Option<Vec<Vec<u8>>> {
    let cells: Vec<&[u8]> = open_framed(line, open).split(|byte| *byte == b'|').collect();
    let more = cells.len().checked_sub(names.len())?;
    let statement = names
        .iter()
        .position(|name| matches!(name.as_str(), "query" | "info"))
        .unwrap_or(names.len().saturating_sub(1));
    let (before, rest) = cells.split_at_checked(statement)?;
    let (own, after) = rest.split_at_checked(more + 1)?;
    let own = own.join(&b'|');
    let all = before
        .iter()
        .copied()
        .chain([own.as_slice()])
        .chain(after.iter().copied());
    Some(all.map(|cell| cell.trim_ascii().to_vec()).collect())
}

/// A cell of a record: `pid | 15914`, or `Id: 5`.
fn record_cell(line: &[u8]) -> Option<(String, &[u8])> {
    let bar = memchr::memchr(b'|', line);
    let colon = memchr::memchr(b':', line);
    let at = match (bar, colon) {
        (Some(bar), Some(colon)) => bar.min(colon),
        (bar, colon) => bar.or(colon)?,
    };
    let name = name(line.get(..at)?);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let cell = line.get(at + 1..)?.trim_ascii();
    (!name.is_empty() && name.bytes().all(plain)).then_some((name, cell))
}

/// The values of a line with commas; a quoted one may have commas of its own.
fn commas(line: &[u8]) -> Vec<Vec<u8>> {
    let mut cells = vec![Vec::new()];
    // A mark opens a cell's text at its beginning; within, it is the text's own.
    let mut mark: Option<u8> = None;
    for byte in line {
        let cell = cells.last_mut().expect("there is a first one");
        let begins = cell.iter().all(|byte: &u8| *byte == b' ');
        match (byte, mark) {
            (b'"', _) if mark.is_none_or(|mark| mark == b'"') => {
                mark = if mark.is_some() { None } else { Some(b'"') };
            }
            (b'\'', None) if begins => mark = Some(b'\''),
            (b'\'', Some(b'\'')) => mark = None,
            (b',', None) => cells.push(Vec::new()),
            _ => cell.push(*byte),
        }
    }
    for cell in &mut cells {
        *cell = cell.trim_ascii().to_vec();
    }
    cells
}

/// The cells of a row whose statement has other marks than the row, or is cut: all before the statement, that, and nothing behind.
fn before_statement(names: &[String], cells: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let statement = names
        .iter()
        .position(|name| matches!(name.as_str(), "query" | "info"))?;
    let (before, rest) = cells.split_at_checked(statement)?;
    let mut all = before.to_vec();
    all.push(rest.first()?.clone());
    all.resize(names.len(), Vec::new());
    Some(all)
}
