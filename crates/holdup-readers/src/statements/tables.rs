//! Any table with a heading: which row has most of what its columns measure, and which row is in a bad state.
//!
//! In: lines of a text that no reader knows, before blanks are taken off. A heading has names and no digits; the rows below it have as many
//! cells, some with numbers. Columns are known by their names and by the type of their values: shares in per cent, sizes and rates
//! with a unit, lengths, counts, states. Out: for each table at most two facts: the rows in a bad state, and the row with the
//! largest share, else with the largest part of a column.

mod blocks;
mod column;
mod facts;
mod headings;
mod json;
mod meant;
mod records;
mod rules;
mod states;
mod top_events;
mod transactions;
mod wait_events;

use super::cells::{
    Value, cells, clock, ends_in_two, is_of_cpus, number, plain, value, without_arrow, words,
};
pub(super) use blocks::Blocks;
use column::Column;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Statement, StatementKind};
use meant::names_counts;
pub(super) use records::Records;
pub(super) use states::of_pairs;
use states::{bad, bad_switch, complaint, explains, is_done, is_of_service, is_somebody, is_switch};
pub(super) use top_events::TopEvents;

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

/// Whether a row is told with the names of its columns: then it is not told once more by its words.
pub(super) fn tells(facts: &[Fact], by_words: &Statement) -> bool {
    let same = |fact: &Fact| fact.line == by_words.quote.line && fact.kind <= by_words.kind;
    // A fact about rows in a bad state counts those that are alike.
    let counted = |fact: &Fact| same(fact) && fact.kind <= StatementKind::Stalled;
    let told = by_words.times < 2 && facts.iter().any(same) || facts.iter().any(counted);
    by_words.blames.is_empty() && told
}

/// Follows the tables of one artefact.
#[derive(Debug, Default)]
pub(super) struct Tables {
    table: Option<Table>,
    /// Names that stand above a heading, each over several of its columns.
    above: Vec<Column>,
    /// The last lines without a number: names of columns may stand in several.
    recent: Vec<String>,
    /// Whether the last line showed the columns of a table.
    by_rule: bool,
    facts: Vec<Fact>,
}

/// Lines over which the names of columns go on.
const HEADINGS: usize = 4;

/// The longest time that is believed, nanoseconds: ten years.
const MOST_NS: f64 = 3e17;

/// Facts of all tables of an artefact.
const FACTS: usize = 40;

/// How much a column of sums of times says.
const SUMS: u8 = 3;

/// Whether a line has a digit that is not of a percentile's name: `p99`.
fn has_number(line: &[u8]) -> bool {
    let mut before = b' ';
    let mut of_name = false;
    line.iter().any(|byte| {
        let digit = byte.is_ascii_digit();
        of_name = matches!(before, b'p' | b'P') || of_name && (before.is_ascii_digit() || before == b'.');
        before = *byte;
        digit && !of_name
    })
}

#[derive(Debug, Default)]
struct Table {
    columns: Vec<Column>,
    /// The same where each word is a column, until the first row says which it is.
    words: Vec<Column>,
    /// Whether signs stand between the cells.
    ruled: bool,
    /// Whether the names of the heading stand apart.
    apart: bool,
    /// Whether a line of dashes shows how wide its columns are: each word belongs to the one below which it stands.
    exact: bool,
    /// Whether its rows are records of any kind: then a number without a unit says nothing by being large.
    of_records: bool,
    /// Whether the names of its columns went on in a second line.
    continued: bool,
    rows: u64,
    /// Lines in a row that are none.
    strangers: u32,
    share: Option<(f64, usize, Row)>,
    /// The longest time, in nanoseconds.
    length: Option<(f64, usize, Row)>,
    bad: Option<(StatementKind, usize, Row, u64)>,
    /// Whether its columns can say that a queue is full or has no consumer.
    may_be_full: bool,
    /// The row with the longest queue that is at its limit, and how many such rows there are.
    full: Option<(f64, Row, u64)>,
    /// The row with most messages that nobody takes.
    unread: Option<(f64, Row)>,
    /// The first row that another is in the way of, by which column, and how many there are.
    blocked: Option<(usize, Row, u64)>,
    /// What it says where it is a list of transactions.
    transactions: Option<transactions::Transactions>,
    /// How wide the columns were before a copy took their blanks away, by the dashes below their names; none where it did not.
    widths: Vec<usize>,
    /// What stands before the first cell of the heading and of each row: `import time:`.
    lead: String,
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
        let below_rule = self.below_rule(line);
        self.by_rule = below_rule.is_some();
        if let Some(table) = below_rule {
            self.close();
            self.table = Some(table);
            return true;
        }
        if let Some(table) = &mut self.table {
            match table.line(line, number) {
                Some(of_table) => return of_table,
                None => self.close(),
            }
        }
        let above = std::mem::take(&mut self.above);
        // Nearly every line of a log ends the look here.
        if has_number(line) {
            return false;
        }
        self.table = Table::begin(line);
        if let Some(table) = &mut self.table {
            table.name_by(&above);
        }
        self.table.is_some()
    }

    /// The table whose columns a line of dashes shows, with their names above it; `None` where no line with as many names does that.
    fn below_rule(&mut self, line: &[u8]) -> Option<Table> {
        if !line.starts_with(b"--") && !line.starts_with(b"==") && !line.starts_with(b" -") {
            let keeps = !line.trim_ascii().is_empty() && !has_number(line);
            match keeps {
                true => {
                    if self.recent.len() >= HEADINGS {
                        self.recent.remove(0);
                    }
                    self.recent.push(plain(line));
                }
                false => self.recent.clear(),
            }
            return None;
        }
        let headings = std::mem::take(&mut self.recent);
        let text = plain(line);
        let rules = words(&text);
        let is_rule =
            |(_, _, word): &(usize, usize, String)| word.bytes().all(|byte| matches!(byte, b'-' | b'='));
        let columns = rules.len();
        if headings.is_empty() || !(3..=COLUMNS).contains(&columns) || !rules.iter().all(is_rule) {
            return None;
        }
        Table::of_rules(&rules, &headings)
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

    /// Whether no table is being read.
    pub(super) fn is_idle(&self) -> bool {
        self.table.is_none() && !self.by_rule
    }

    /// Passes over a line with a number that is of no table.
    pub(super) fn pass(&mut self) {
        self.above.clear();
        self.recent.clear();
    }

    /// Whether the last line began a table whose names stand in several lines: none of them is a heading of its own.
    pub(super) fn began_by_rule(&self) -> bool {
        self.by_rule
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
        let mut apart = ruled || found.len() >= 3;
        if found.len() < 3 && !ruled {
            // Single blanks: only where each word looks like a name of a column.
            found = words(&text);
            let counts = names_counts(&found);
            let name = |word: &str| {
                let rule = word.len() > 2 && !word.contains(char::is_alphanumeric);
                !rule && (word.starts_with(['%', '#']) || !word.contains(|char: char| char.is_lowercase()))
                    || word.contains("/s")
            };
            if !counts && !found.iter().all(|(_, _, word)| name(word)) {
                return None;
            }
            apart |= counts;
        }
        let named = found
            .iter()
            .filter(|(_, _, name)| name.contains(char::is_alphabetic))
            .count();
        let column = |(begin, end, name): (usize, usize, String)| Column {
            name: name.chars().take(CELL).collect(),
            begin,
            end,
            sum: 0.0,
            count: 0,
            largest: None,
            unit: false,
        };
        // Of two columns the second says that it is one.
        let two = |cell: &(usize, usize, String)| {
            let column = column(cell.clone());
            column.is_queue() || column.times().is_some()
        };
        let enough = found.len() >= 3 || found.len() == 2 && found.last().is_some_and(two);
        if !enough || found.len() > COLUMNS || named + 1 < found.len() {
            return None;
        }
        Some(
            Table {
                columns: found.into_iter().map(column).collect(),
                words: if ruled {
                    Vec::new()
                } else {
                    words(&text).into_iter().take(COLUMNS).map(column).collect()
                },
                ruled,
                apart,
                ..Table::default()
            }
            .without_lead(),
        )
    }

    /// The same with what stands before the first name apart, as `import time: self [us] | cumulative` has it.
    fn without_lead(mut self) -> Table {
        if let Some(first) = self.columns.first_mut().filter(|_| self.ruled)
            && let Some((lead, name)) = first.name.split_once(": ")
        {
            self.lead = format!("{lead}:");
            first.name = name.trim().to_owned();
        }
        self
    }

    /// Takes a line: whether it is a row; `None` where the table is over.
    fn line(&mut self, line: &[u8], number: u64) -> Option<bool> {
        let text = plain(line);
        let text = without_arrow(&text);
        if !text.contains(|char: char| char.is_alphanumeric()) {
            // A rule between rows; an empty line ends the table once it has rows.
            return (!text.trim().is_empty() || self.rows == 0).then_some(!text.trim().is_empty());
        }
        if self.rows == 0 && !self.ruled {
            self.take_nameless(text);
            self.take_nameless_last(text);
            let (apart, together) = (cells(text).0.len(), words(text));
            let columns = self.columns.len();
            // The last column may be a text of several words, but then its name is one word.
            let of_one_word = |column: &Column| usize::from(!column.name.contains(' '));
            let skipped = self.columns.last().map_or(0, of_one_word);
            let crowded = self.columns.iter().rev().skip(skipped).any(|column| {
                let below =
                    |(begin, end, _): &&(usize, usize, String)| *begin < column.end && column.begin < *end;
                together.iter().filter(below).count() > 1
            });
            // Capitals, one word above one: each is a name, even where a single blank is between (`STATE NODELIST`).
            let capitals = |column: &Column| {
                !column
                    .name
                    .contains(|char: char| char.is_lowercase() || char == '/')
            };
            let each_named = self.words.iter().all(capitals);
            let of_two_types = ends_in_two(text);
            let as_many =
                together.len() == self.words.len() || of_two_types && together.len() > self.words.len();
            if (apart != columns || each_named || of_two_types) && crowded && as_many {
                self.columns = std::mem::take(&mut self.words);
            }
        }
        if self.rows == 0 && self.take_units(text) {
            return Some(true);
        }
        let Some(cells) = self.row(text) else {
            if self.rows == 0 && self.goes_on(text) {
                return Some(true);
            }
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
            // An empty cell at the end may have lost its blanks.
            let short = found.len() + 1 == columns && text.trim_end().ends_with('|');
            let mut row: Vec<String> = found.into_iter().map(cut).collect();
            row.extend(short.then(String::new));
            // Rows that are numbered before the first sign: `12. │ …`.
            let number = |cell: &String| {
                cell.strip_suffix('.')
                    .is_some_and(|number| number.parse::<u64>().is_ok())
            };
            if row.len() == columns + 1 && row.first().is_some_and(number) {
                row.remove(0);
            }
            if let Some(first) = row.first_mut()
                && let Some(rest) = first.strip_prefix(&self.lead).filter(|_| !self.lead.is_empty())
            {
                *first = rest.trim().to_owned();
            }
            return (ruled && row.len() == columns).then_some(row);
        }
        if !self.widths.is_empty() {
            return self.row_by_widths(text);
        }
        let (apart, _) = cells(text);
        let placed = self.exact
            && self
                .columns
                .get(1)
                .is_some_and(|second| text.chars().count() > second.begin);
        let mut found = if apart.len() == columns && !placed {
            apart
        } else {
            words(text)
        };
        if found.len() > columns && !placed {
            // The last column is a text of several words.
            let tail = found.split_off(columns);
            if let Some(last) = found.last_mut() {
                let noted = tail
                    .iter()
                    .all(|(_, _, word)| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
                if last.2.starts_with(|first: char| first.is_ascii_digit()) && !(self.has_states() && noted) {
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
        if found.len() == columns && !placed {
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
            .any(|(column, cell)| (column.is_state() || is_switch(&column.name)) && !cell.is_empty());
        (measured || state).then_some(cells)
    }

    /// Whether a column has the states of rows: behind the last cell of a bad one may stand why.
    fn has_states(&self) -> bool {
        self.columns.iter().any(Column::is_state)
    }

    /// Which columns say who is in the way of a row.
    fn blockers(&self) -> Vec<bool> {
        let sessions = self.columns.iter().any(|column| column.is_session());
        let waiters = self.columns.iter().any(|column| column.is_waiter());
        let columns = self.columns.iter();
        let blocks = columns.map(|column| {
            column.is_blocker() || sessions && column.may_be_blocker() || waiters && column.is_holder()
        });
        blocks.collect()
    }

    fn take(&mut self, row: Row) {
        self.take_queue(&row);
        self.take_transaction(&row);
        let blockers = self.blockers();
        let is_blocker = |at: usize| blockers.get(at) == Some(&true);
        // Of several columns that say who, the one with the session's number.
        let names = |at: &usize| is_blocker(*at) && row.cells.get(*at).is_some_and(|cell| is_somebody(cell));
        let of_session = |at: &usize| self.columns.get(*at).is_some_and(Column::names_session);
        let mut blocking = (0..row.cells.len()).filter(names);
        let blocked = blocking.clone().find(of_session).or_else(|| blocking.next());
        if let Some(at) = blocked {
            match &mut self.blocked {
                Some((_, _, count)) => *count += 1,
                None => self.blocked = Some((at, row.clone(), 1)),
            }
        }
        let states = self.columns.iter().zip(&row.cells);
        let done = states
            .into_iter()
            .any(|(column, cell)| column.is_state() && is_done(cell));
        let of_cpus = is_of_cpus(self.columns.iter().map(|column| column.name.as_str()));
        let of_service = self.columns.iter().any(|column| is_of_service(&column.name));
        for (at, cell) in row.cells.iter().enumerate() {
            let Some(column) = self.columns.get_mut(at) else {
                continue;
            };
            if is_blocker(at) {
                continue;
            }
            let wrong = match (column.is_state() && !done, column.is_error()) {
                // `latest_fail_reason` is both by its name.
                (_, true) => complaint(cell),
                (true, _) => bad(cell),
                _ if !done => bad_switch(&column.name, cell, of_service),
                _ => None,
            };
            if let Some(kind) = wrong {
                match &mut self.bad {
                    Some((known, place, of, count)) => {
                        *count += 1;
                        // A group is bad because of what is in it: the row that counts or says something explains it.
                        if !explains(of, *place) && explains(&row, at) && kind <= *known {
                            (*known, *place, *of) = (kind, at, row.clone());
                        }
                    }
                    None => self.bad = Some((kind, at, row.clone(), 1)),
                }
                continue;
            }
            if column.is_identifier() {
                continue;
            }
            let timed = column.times().is_some();
            let told = match value(&column.name, cell) {
                _ if timed && clock(cell).is_some() => clock(cell).map(Value::Length),
                Some(Value::Count(count)) if timed && !of_cpus => match column.unit_of_name() {
                    Some(unit) => Some(Value::Length(count * unit)),
                    None => Some(Value::Count(count)),
                },
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
                Some(Value::Length(ns)) if ns > 0.0 => {
                    if self.length.as_ref().is_none_or(|(longest, _, _)| ns > *longest) {
                        self.length = Some((ns, at, row.clone()));
                    }
                }
                Some(Value::Size(size)) => column.add(size, true, &row),
                Some(Value::Count(count)) => column.add(count, false, &row),
                Some(Value::Share(_) | Value::Length(_)) | None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
