//! Any table with a heading: which row has most of what its columns measure, and which row is in a bad state.
//!
//! In: lines of a text that no reader knows, before blanks are taken off. A heading has names and no digits; the rows below it have as many
//! cells, some with numbers. Columns are known by their names and by the type of their values: shares in per cent, sizes and rates
//! with a unit, lengths, counts, states. Out: for each table at most two facts: the rows in a bad state, and the row with the
//! largest share, else with the largest part of a column.

use super::cells::{Value, cells, is_of_cpus, number, plain, value, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;

/// Columns of a table, and bytes of a line, that are looked at.
pub(super) const COLUMNS: usize = 24;
const LINE: usize = 1_000;

/// Bytes of a row as it is reported, and of one cell.
const MAX_SENTENCE_BYTES: usize = 260;
const CELL: usize = 60;

/// A share that is smaller is not known before the sizes and rates beside it, per cent.
const MIN_SHARE: f64 = 20.0;

/// The largest share that is believed: of 64 CPUs, per cent.
const MAX_SHARE: f64 = 6_400.0;

/// A column of which one row has so large a part says which row to look at.
const MIN_PART: f64 = 0.25;

/// Names of columns of states.
const STATES: [&str; 8] = [
    "STATUS",
    "STATE",
    "HEALTH",
    "READY",
    "PHASE",
    "REASON",
    "CONDITION",
    "CONNECTION",
];

/// Bad states, and what each is.
const BAD: [(&str, StatementKind); 24] = [
    ("down", StatementKind::Unreachable),
    ("unreachable", StatementKind::Unreachable),
    ("unavailable", StatementKind::Unreachable),
    ("offline", StatementKind::Unreachable),
    ("disconnected", StatementKind::Unreachable),
    ("start failed", StatementKind::Failed),
    ("failed", StatementKind::Failed),
    ("error", StatementKind::Failed),
    ("crashed", StatementKind::Ended),
    ("crashloopbackoff", StatementKind::Stalled),
    ("imagepullbackoff", StatementKind::Stalled),
    ("errimagepull", StatementKind::Failed),
    ("oomkilled", StatementKind::Ended),
    ("evicted", StatementKind::Failed),
    ("pending", StatementKind::Stalled),
    ("notready", StatementKind::Stalled),
    ("not ready", StatementKind::Stalled),
    ("unhealthy", StatementKind::Stalled),
    ("blocked", StatementKind::Stalled),
    ("stuck", StatementKind::Stalled),
    ("degraded", StatementKind::Stalled),
    ("faulted", StatementKind::Unreachable),
    ("hung", StatementKind::Stalled),
    ("terminating", StatementKind::Stalled),
];

/// Names of columns that are numbers of things and no sizes.
const IDENTIFIERS: [&str; 20] = [
    "pid", "tid", "ppid", "uid", "gid", "id", "port", "time", "date", "age", "prio", "pri", "ni", "ip",
    "created", "started", "updated", "uptime", "since", "ports",
];

/// Parts of names of columns of what waits or is lost, and of those that count since the start.
const QUEUES: [&str; 14] = [
    "pending", "waiting", "waiters", "queue", "backlog", "lag", "blocked", "dropped", "unack", "behind",
    "retrans", "failed", "errors", "delayed",
];
const SINCE_START: [&str; 3] = ["all time", "total", "ever"];

/// Shares of which much is good.
const GOOD: [&str; 8] = ["idle", "free", "avail", "hit", "ratio", "ready", "success", "id"];

/// What a table says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fact {
    pub(super) kind: StatementKind,
    /// Of a share.
    pub(super) share: Option<f64>,
    /// Of a length of time.
    pub(super) ns: Option<Ns>,
    /// Which line it stands in.
    pub(super) line: u64,
    pub(super) text: String,
}

/// Follows the tables of one artefact.
#[derive(Debug, Default)]
pub(super) struct Tables {
    table: Option<Table>,
    /// Names that stand above a heading, each over several of its columns.
    above: Vec<Column>,
    facts: Vec<Fact>,
}

/// The longest time that is believed, nanoseconds: ten years.
const MOST_NS: f64 = 3e17;

/// Facts of all tables of an artefact.
const FACTS: usize = 40;

#[derive(Debug)]
struct Table {
    columns: Vec<Column>,
    /// The same where each word is a column, until the first row says which it is.
    words: Vec<Column>,
    /// Whether signs stand between the cells.
    ruled: bool,
    /// Whether the names of the heading stand apart.
    apart: bool,
    rows: u64,
    /// Lines in a row that are none.
    strangers: u32,
    share: Option<(f64, usize, Row)>,
    /// The longest time, in nanoseconds.
    length: Option<(f64, usize, Row)>,
    bad: Option<(StatementKind, usize, Row, u64)>,
}

#[derive(Debug)]
struct Column {
    name: String,
    /// Where it stands in the heading.
    begin: usize,
    end: usize,
    sum: f64,
    count: u64,
    largest: Option<(f64, Row)>,
    unit: bool,
}

#[derive(Debug, Clone)]
struct Row {
    cells: Vec<String>,
    line: u64,
}

impl Tables {
    /// Takes a line; whether it is of a table.
    pub(super) fn line(&mut self, line: &[u8], number: u64) -> bool {
        let line = line.get(..LINE).unwrap_or(line);
        if let Some(table) = &mut self.table {
            match table.line(line, number) {
                Some(of_table) => return of_table,
                None => self.close(),
            }
        }
        let above = std::mem::take(&mut self.above);
        // Nearly every line of a log ends the look here.
        if line.iter().any(u8::is_ascii_digit) {
            return false;
        }
        self.table = Table::begin(line);
        if let Some(table) = &mut self.table {
            table.name_by(&above);
        }
        self.table.is_some()
    }

    fn close(&mut self) {
        if let Some(table) = self.table.take() {
            if table.rows == 0 {
                self.above = table.columns;
                return;
            }
            let room = FACTS.saturating_sub(self.facts.len());
            self.facts.extend(table.facts().into_iter().take(room));
        }
    }

    /// Whether cells of the table that is being read are lengths: then the longest is reported of it as a whole.
    pub(super) fn tells_lengths(&self) -> bool {
        self.table.as_ref().is_some_and(|table| table.length.is_some())
    }

    /// Whether the last line was a heading whose names stand apart: single words may be any title.
    pub(super) fn heads_apart(&self) -> bool {
        self.table
            .as_ref()
            .is_some_and(|table| table.rows == 0 && table.apart)
    }

    /// How many rows of the table that is being read there were; `None` where none is.
    pub(super) fn rows(&self) -> Option<u64> {
        self.table.as_ref().map(|table| table.rows)
    }

    /// The table that is being read is another reader's.
    pub(super) fn forget(&mut self) {
        self.table = None;
    }

    /// Everything that was said.
    pub(super) fn end(&mut self) -> Vec<Fact> {
        self.close();
        std::mem::take(&mut self.facts)
    }
}

impl Table {
    /// The table that a heading begins.
    fn begin(line: &[u8]) -> Option<Table> {
        let text = plain(line);
        let (mut found, ruled) = cells(&text);
        let apart = ruled || found.len() >= 3;
        if found.len() < 3 && !ruled {
            // Single blanks: only where each word looks like a name of a column.
            found = words(&text);
            let name = |word: &str| {
                word.starts_with(['%', '#'])
                    || !word.contains(|char: char| char.is_lowercase())
                    || word.contains("/s")
            };
            if !found.iter().all(|(_, _, word)| name(word)) {
                return None;
            }
        }
        let named = found
            .iter()
            .filter(|(_, _, name)| name.contains(char::is_alphabetic))
            .count();
        if found.len() < 3 || found.len() > COLUMNS || named + 1 < found.len() {
            return None;
        }
        let column = |(begin, end, name): (usize, usize, String)| Column {
            name: name.chars().take(CELL).collect(),
            begin,
            end,
            sum: 0.0,
            count: 0,
            largest: None,
            unit: false,
        };
        Some(Table {
            columns: found.into_iter().map(column).collect(),
            words: if ruled {
                Vec::new()
            } else {
                words(&text).into_iter().take(COLUMNS).map(column).collect()
            },
            ruled,
            apart,
            rows: 0,
            strangers: 0,
            share: None,
            length: None,
            bad: None,
        })
    }

    /// Gives columns of the same name the name that stands above them: `read` and `write` below `total_wait`, and below `disk_wait`.
    fn name_by(&mut self, above: &[Column]) {
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

    /// Takes a line: whether it is a row; `None` where the table is over.
    fn line(&mut self, line: &[u8], number: u64) -> Option<bool> {
        let text = plain(line);
        if !text.contains(|char: char| char.is_alphanumeric()) {
            // A rule between rows; an empty line ends the table once it has rows.
            return (!text.trim().is_empty() || self.rows == 0).then_some(!text.trim().is_empty());
        }
        if self.rows == 0 && !self.ruled {
            let (apart, together) = (cells(&text).0.len(), words(&text));
            let columns = self.columns.len();
            let crowded = self.columns.iter().rev().skip(1).any(|column| {
                let below =
                    |(begin, end, _): &&(usize, usize, String)| *begin < column.end && column.begin < *end;
                together.iter().filter(below).count() > 1
            });
            if apart != columns && crowded && together.len() == self.words.len() {
                self.columns = std::mem::take(&mut self.words);
            }
        }
        let Some(cells) = self.row(&text) else {
            self.strangers += 1;
            return (self.strangers < 2 && self.rows > 0).then_some(false);
        };
        self.strangers = 0;
        self.rows += 1;
        self.take(Row { cells, line: number });
        Some(true)
    }

    /// The cells of a row; `None` where the line is none.
    fn row(&self, text: &str) -> Option<Vec<String>> {
        let columns = self.columns.len();
        if self.ruled {
            let (found, ruled) = cells(text);
            let cut = |(_, _, cell): (usize, usize, String)| cell.chars().take(CELL).collect();
            return (ruled && found.len() == columns).then(|| found.into_iter().map(cut).collect());
        }
        let (apart, _) = cells(text);
        let mut found = if apart.len() == columns {
            apart
        } else {
            words(text)
        };
        if found.len() > columns {
            // The last column is a text of several words.
            let tail = found.split_off(columns);
            if let Some(last) = found.last_mut() {
                if last.2.starts_with(|first: char| first.is_ascii_digit()) {
                    return None;
                }
                for (_, end, word) in tail {
                    last.1 = end;
                    last.2.push(' ');
                    last.2.push_str(&word);
                }
            }
        }
        let mut cells = vec![String::new(); columns];
        if found.len() == columns {
            for (cell, (_, _, word)) in cells.iter_mut().zip(found) {
                *cell = word.chars().take(CELL).collect();
            }
        } else {
            // Cells are empty: each word belongs to the column below which it stands.
            if found.len() < 2 {
                return None;
            }
            for (begin, end, word) in found {
                let column = self
                    .columns
                    .iter()
                    .position(|column| begin < column.end && column.begin < end)?;
                let cell = cells.get_mut(column)?;
                if !cell.is_empty() {
                    cell.push(' ');
                }
                cell.extend(word.chars().take(CELL));
            }
        }
        let measured = cells.iter().skip(1).any(|cell| number(cell).is_some());
        let state = self
            .columns
            .iter()
            .zip(&cells)
            .any(|(column, cell)| column.is_state() && !cell.is_empty());
        (measured || state).then_some(cells)
    }

    fn take(&mut self, row: Row) {
        let of_cpus = is_of_cpus(self.columns.iter().map(|column| column.name.as_str()));
        for (at, cell) in row.cells.iter().enumerate() {
            let Some(column) = self.columns.get_mut(at) else {
                continue;
            };
            if column.is_state()
                && let Some(kind) = bad(cell)
            {
                match &mut self.bad {
                    Some((_, _, _, count)) => *count += 1,
                    None => self.bad = Some((kind, at, row.clone(), 1)),
                }
                continue;
            }
            if column.is_identifier() {
                continue;
            }
            let told = match value(&column.name, cell) {
                // Which of them it is.
                Some(Value::Count(_)) if of_cpus && column.name.eq_ignore_ascii_case("cpu") => None,
                Some(Value::Count(count)) if of_cpus && count <= 100.0 => Some(Value::Share(count)),
                told => told,
            };
            match told {
                Some(Value::Share(share)) if column.is_load() && share <= MAX_SHARE => {
                    if self.share.as_ref().is_none_or(|(largest, _, _)| share > *largest) {
                        self.share = Some((share, at, row.clone()));
                    }
                }
                Some(Value::Length(ns)) => {
                    if self.length.as_ref().is_none_or(|(longest, _, _)| ns > *longest) {
                        self.length = Some((ns, at, row.clone()));
                    }
                }
                Some(Value::Size(size)) => column.add(size, true, &row),
                Some(Value::Count(count)) => column.add(count, false, &row),
                Some(Value::Share(_)) | None => {}
            }
        }
    }

    /// What it says.
    fn facts(self) -> Vec<Fact> {
        let mut facts = Vec::new();
        if self.rows == 0 {
            return facts;
        }
        if let Some((kind, at, row, count)) = &self.bad {
            let like = match count {
                1 => String::new(),
                more => format!("; {more} rows of {} are in a bad state", self.rows),
            };
            facts.push(Fact {
                kind: *kind,
                share: None,
                ns: None,
                line: row.line,
                text: format!("{}{like}", self.sentence(row, *at)),
            });
        }
        let of = |row: &Row, at: usize| match self.rows {
            1 => self.sentence(row, at),
            rows => format!("{}; the largest of {rows} rows", self.sentence(row, at)),
        };
        if let Some((share, at, row)) = self.share.as_ref().filter(|(share, _, _)| *share >= MIN_SHARE) {
            facts.push(Fact {
                kind: StatementKind::Took,
                share: Some(share / 100.0),
                ns: None,
                line: row.line,
                text: of(row, *at),
            });
            return facts;
        }
        // What waits comes before what there is much of.
        if let Some((ns, at, row)) = self.length.as_ref().filter(|(ns, _, _)| *ns < MOST_NS) {
            facts.push(Fact {
                kind: StatementKind::Took,
                share: None,
                ns: Some(*ns as Ns),
                line: row.line,
                text: of(row, *at),
            });
            return facts;
        }
        let queue = self
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.is_queue());
        let queue = queue.filter_map(|(at, column)| Some((at, column.largest.as_ref()?)));
        let longest = queue.max_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other));
        if let Some((at, (_, row))) = longest.filter(|(_, (most, _))| *most > 0.0) {
            facts.push(Fact {
                kind: StatementKind::Took,
                share: None,
                ns: None,
                line: row.line,
                text: of(row, at),
            });
            return facts;
        }
        // Sizes and rates before counts; of those the column that one row has most of. Three of three are less than nearly all
        // of thousands.
        let part = |column: &Column| {
            let (largest, _) = column.largest.as_ref()?;
            let part = if column.sum > 0.0 {
                largest / column.sum
            } else {
                0.0
            };
            (part >= MIN_PART).then_some((column.unit, part * largest.ln_1p()))
        };
        let best = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(at, column)| Some((part(column)?, at, &column.largest.as_ref()?.1)))
            .max_by(|((unit, part), _, _), ((other_unit, other), _, _)| {
                unit.cmp(other_unit).then(part.total_cmp(other))
            });
        if best.is_none()
            && let Some((share, at, row)) = &self.share
        {
            facts.push(Fact {
                kind: StatementKind::Took,
                share: Some(share / 100.0),
                ns: None,
                line: row.line,
                text: of(row, *at),
            });
        }
        if let Some((_, at, row)) = best {
            facts.push(Fact {
                kind: StatementKind::Took,
                share: None,
                ns: None,
                line: row.line,
                text: of(row, at),
            });
        }
        facts
    }

    /// A row with the names of its columns, the column that matters first.
    fn sentence(&self, row: &Row, first: usize) -> String {
        let name = row.cells.first().map_or("", String::as_str);
        let mut found = name.to_owned();
        let pairs = self.columns.iter().zip(&row.cells).enumerate();
        let order = pairs
            .clone()
            .filter(|(at, _)| *at == first)
            .chain(pairs.filter(|(at, _)| *at != first));
        let mut between = ": ";
        for (at, (column, cell)) in order {
            if at == 0 || cell.is_empty() || found.len() > MAX_SENTENCE_BYTES {
                continue;
            }
            found.push_str(&format!("{between}{} {cell}", column.name));
            between = ", ";
        }
        if first == 0
            && let Some(column) = self.columns.first()
        {
            found = format!("{} {found}", column.name);
        }
        found
    }
}

impl Column {
    fn is_state(&self) -> bool {
        // `LOCK_STATUS` is one as `STATUS` is.
        let name = self.name.rsplit(['_', ' ']).next().unwrap_or_default();
        STATES.iter().any(|state| name.eq_ignore_ascii_case(state))
    }

    fn is_identifier(&self) -> bool {
        let of_name = self.name.to_ascii_lowercase();
        // `OWNER_THREAD_ID`, and the address of something.
        of_name.ends_with("_id")
            || of_name.ends_with("_begin")
            || IDENTIFIERS.iter().any(|name| of_name == *name)
    }

    /// Whether it counts what waits or is lost now.
    fn is_queue(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let mut words = name.split(|char: char| !char.is_alphanumeric());
        words.any(|word| QUEUES.iter().any(|queue| word.starts_with(queue)))
            && !SINCE_START.iter().any(|start| name.contains(start))
    }

    /// Whether much of it is a load.
    fn is_load(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        !GOOD.iter().any(|good| name.contains(good))
    }

    fn add(&mut self, value: f64, unit: bool, row: &Row) {
        self.sum += value;
        self.count += 1;
        self.unit |= unit;
        if self.largest.as_ref().is_none_or(|(largest, _)| value > *largest) {
            self.largest = Some((value, row.clone()));
        }
    }
}

/// What a state is, where it is a bad one.
fn bad(cell: &str) -> Option<StatementKind> {
    let word = cell.trim().to_ascii_lowercase();
    let found = BAD.iter().find(|(bad, _)| word == *bad);
    // `0/1`: of one, none is ready.
    let ready = || {
        let (some, all) = word.split_once('/')?;
        let (some, all): (u64, u64) = (some.parse().ok()?, all.parse().ok()?);
        (some < all).then_some(StatementKind::Stalled)
    };
    found.map(|(_, kind)| *kind).or_else(ready)
}

#[cfg(test)]
mod tests;
