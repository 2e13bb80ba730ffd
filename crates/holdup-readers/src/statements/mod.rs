//! What lines of any text state in words: failures, waits that were given up, lengths of time.
//!
//! In: lines, of a text that no format knows or that a known reader ignores. Out: one [`Statement`] for all lines that differ in
//! numbers alone, with a count, the longest length, and the first and last time. Each line is scanned once. Memory is bounded:
//! each kind of statement has room for so many, so that a flood of warnings does not push out a deadlock.

mod blame;
mod cells;
mod columns;
mod counted;
mod counters;
mod durations;
mod errno;
mod examined;
mod flows;
mod incomplete;
pub(crate) mod kinds;
mod limits;
mod lines;
mod lock_holder;
pub(crate) mod matcher;
mod packets;
mod plain;
mod progress;
mod repeated;
pub(crate) mod shape;
mod shared_list;
mod signs;
mod sorted_rows;
mod stated;
pub(crate) mod structured;
mod tables;
mod timed_list;
mod together;
pub(crate) mod words;
mod words_of_none;

use crate::format::{Family, Format, Understood};
use crate::formats::{LOG, Stamps};
use crate::gather::Out;
use crate::inert::Inert;
use crate::known_figures::KnownFigures;
use crate::prompt;
use columns::Columns;
use counters::Counters;
use holdup_evidence::Ns;
use holdup_evidence::observed::{How, Known, Quote, Statement, StatementKind};
use incomplete::{HALF, Incomplete, MAX_MESSAGE_BYTES, incomplete_after};
use plain::Plain;
use std::collections::HashMap;
use tables::{Records, Tables, TopEvents};
use together::Together;

/// Statements of one kind that are kept of one artefact.
const ROOM: usize = 200;

/// Statements whose message names somebody: past that many of them others would have no room.
const NAMED: u64 = 50;

/// Kinds of statements.
const KINDS: usize = StatementKind::WithinNorm as usize + 1;

/// Bytes of a line that are scanned: messages stand at the beginning of a line, and what comes behind is data.
const SCANNED: usize = 4 << 10;

/// Bytes of a command that are kept.
const COMMAND: usize = 120;

/// Lines of an item of a list.
const ITEM: u64 = 30;

/// Gathers the statements of one artefact.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    plain: Plain,
    columns: Columns,
    tables: Tables,
    records: Records,
    top_events: TopEvents,
    counters: Counters,
    known: KnownFigures,
    /// Whether the line is a known figure that is well.
    well: bool,
    together: Together,
    /// The heading of the tree whose lines are read, and whether the last line was one of them.
    tree: (String, bool),
    /// Lines that state nothing, by shape.
    inert: Inert,
    stamps: Stamps,
    /// Places in `all`, by kind and shape.
    places: HashMap<u64, usize, foldhash::fast::FixedState>,
    all: Vec<Statement>,
    /// How many there are of each kind.
    counts: [usize; KINDS],
    /// The statement whose message the next lines complete.
    incomplete: Option<Incomplete>,
    /// The last statement of a line that has a time, and which line that was.
    timed: Option<(usize, u64)>,
    /// The name of the item of a list that is being read, and where it began and was last.
    item: String,
    item_lines: (u64, u64),
    /// The statement of the last line, where that may be the heading of a table.
    of_heading: Option<usize>,
    /// The statement of the last line.
    of_last_line: Option<usize>,
    /// The last line, if it ends with a colon.
    heading: String,
    /// A statement about a lock, below which may stand who has it, and lines that are still looked at.
    locked: Option<(usize, u32)>,
    /// The last command that stands in the text: what took so long.
    command: String,
    left_out: u64,
    /// Statements whose message names somebody.
    named: u64,
}

/// Whether a line that a reader of this format took is to be read for statements too.
pub(crate) fn reads(format: &Format, understood: Understood) -> bool {
    // The reader of any log uses the times of its lines, and not their words.
    let times_alone = format.id == LOG.id;
    match (format.family, understood) {
        _ if times_alone => true,
        (_, Understood::No) => true,
        (Family::Logs | Family::Databases | Family::Runtime, Understood::Ignorable) => true,
        _ => false,
    }
}

/// What the reader of a known format states of a thing, in a sentence of its own.
pub(crate) fn one(kind: StatementKind, ns: Option<Ns>, quote: Quote, text: String) -> Statement {
    Statement {
        blames: Vec::new(),
        kind,
        ns,
        share: None,
        times: 1,
        first: None,
        last: None,
        of_reader: true,
        known: None,
        quote,
        text,
    }
}

/// Why a program ended, in the words of its runtime, with whom they blame.
pub(crate) fn ended(line: &[u8], quote: Quote) -> Statement {
    let mut statement = one(StatementKind::Ended, None, quote, shape::sentence(line, 0));
    statement.of_reader = false;
    blame::count(&mut statement.blames, blame::of(line, StatementKind::Ended));
    statement
}

impl Statements {
    fn look(&mut self, line: &[u8], out: &Out<'_>) -> bool {
        let mut plain = std::mem::take(&mut self.plain);
        let of_record = self.records.line(plain.of(line), out.here().line);
        let of_events = self.top_events.line(plain.of(line), out.here().line);
        self.plain = plain;
        // Names with values of one word are told as a row.
        if of_events || of_record && !structured::is_sentence(line) {
            return true;
        }
        let of_table = self.tables.line(line, out.here().line);
        if self.tables.began_by_rule() {
            self.columns = Columns::default();
            self.of_heading = self.of_last_line.take();
            self.take_back();
        }
        match self.tables.rows().filter(|_| of_table) {
            // Names of columns state nothing, once a row below shows that they are that.
            Some(1) => self.take_back(),
            Some(_) => {}
            None => self.of_heading = None,
        }
        let before = self.all.len();
        let mut plain = std::mem::take(&mut self.plain);
        let text = plain.of(line.get(..SCANNED).unwrap_or(line));
        let states = self.take(text, of_table && self.tables.tells_lengths(), out);
        let stamps = &mut self.stamps;
        let message = |line: &[u8]| {
            let from = shape::message(line, stamps.of(line).map_or(0, |stamp| stamp.end));
            from + shape::words(line.get(from..).unwrap_or_default())
        };
        let number = out.here().line;
        let counts = !states && !of_table && self.counters.line(text, number, message);
        let goes_on = self.together.line(line, text, number, of_table, &mut self.stamps);
        self.plain = plain;
        self.of_last_line = Some(before).filter(|before| self.all.len() > *before);
        if self.tables.heads_apart() && self.of_last_line.is_some() {
            self.of_heading = Some(before);
        }
        // Of a table with a column of lengths the longest row is stated already.
        if self.columns.said().is_some() {
            self.tables.forget();
        }
        states || of_table || counts || goes_on
    }

    /// Forgets what the heading of a table was taken to state.
    fn take_back(&mut self) {
        let Some(place) = self.of_heading.take().filter(|place| place + 1 == self.all.len()) else {
            return;
        };
        // A deadlock's heading is no name of a column, whatever stands below it.
        let Some(statement) = self.all.pop_if(|one| one.kind >= StatementKind::Stalled) else {
            return;
        };
        if let Some(count) = self.counts.get_mut(statement.kind as usize) {
            *count = count.saturating_sub(1);
        }
        self.places.retain(|_, known| *known != place);
        self.incomplete = self.incomplete.filter(|one| one.place != place);
    }

    fn take(&mut self, line: &[u8], told_by_table: bool, out: &Out<'_>) -> bool {
        if line.is_empty() {
            return false;
        }
        let number = out.here().line;
        let (begun, last) = self.item_lines;
        // An empty line ends it.
        if number > last + 1 || number > begun + ITEM {
            self.item.clear();
        }
        self.item_lines.1 = number;
        // The first line that is not of a tree, below one that is, heads the next.
        let of_tree = shape::is_of_tree(line);
        if !of_tree && (self.tree.1 || self.tree.0.is_empty()) {
            self.tree.0 = shape::sentence(line.get(..COMMAND).unwrap_or(line), 0);
        }
        self.tree.1 = of_tree;
        let item = shape::item(line);
        let begins_record = self.item.is_empty() && shape::names_record(line);
        if let Some(item) = item.or(begins_record.then_some(line)) {
            self.item = shape::sentence(item, 0);
            self.item_lines = (number, number);
        }
        if let Some((place, left)) = self.locked.take()
            && let Some(statement) = self.all.get_mut(place)
        {
            if let Some(told) = lock_holder::of(line) {
                statement.text.push_str(" | ");
                statement.text.push_str(&told);
                if let Some(holder) =
                    lock_holder::named(&told).filter(|_| statement.kind != StatementKind::Deadlock)
                {
                    blame::count(&mut statement.blames, Some((holder, How::HasLock)));
                }
                self.locked = Some((place, left.saturating_sub(1))).filter(|(_, left)| *left > 0);
                return true;
            }
            self.locked = Some((place, left.saturating_sub(1))).filter(|(_, left)| *left > 0);
        }
        let incomplete = self.incomplete.take();
        let heading = std::mem::take(&mut self.heading);
        let of_row = self.columns.length(line);
        let command = shape::is_command(line);
        if command {
            let typed = prompt::behind(line);
            self.command = shape::sentence(typed.get(..COMMAND).unwrap_or(typed), 0);
        }
        if shape::is_report(line) {
            self.incomplete = incomplete;
            return false;
        }
        if command || shape::is_frame(line) || self.columns.is_heading() {
            self.complete(incomplete, line, 0);
            return false;
        }
        if let Some(table) = shape::selected(line).filter(|_| self.command.is_empty()) {
            self.command = shape::sentence(table, 0);
        }
        let stated::Stated {
            found,
            known,
            names,
            usual,
        } = match self.well {
            true => stated::Stated::default(),
            false => stated::of(line),
        };
        // A lock that another one has stops the work, whatever words tell of it.
        let of_lock = blame::locks::found(line)
            .filter(|lock| !usual && !self.well && found.is_none_or(|found| lock.kind < found.kind));
        let found = of_lock.or(found);
        let timed_out = found.is_some_and(|found| found.kind == StatementKind::TimedOut);
        let length = durations::longest(line, timed_out).filter(|_| !usual);
        let repeated = repeated::of(line);
        let slow = |length: durations::Length| length.ns >= SLOW_NS && shape::says_slow(line);
        let (kind, focus) = match (found, length, of_row) {
            // Whoever warns of a length says that it is too long.
            (Some(found), Some(length), _) if found.kind == StatementKind::Warned && slow(length) => {
                (StatementKind::Stalled, length.at)
            }
            (Some(found), _, _) => (found.kind, found.at),
            (None, _, Some(_)) => (StatementKind::Took, length.map_or(0, |length| length.at)),
            // Of a table the row with the longest is reported, with the names of its columns.
            (None, Some(length), None) if !told_by_table => (StatementKind::Took, length.at),
            (None, ..) => {
                let stamp = incomplete.and_then(|_| self.stamps.of(line));
                let from = shape::message(line, stamp.map_or(0, |stamp| stamp.end));
                self.complete(
                    incomplete.filter(|one| one.goes_on || stamp.is_none()),
                    line,
                    from,
                );
                self.may_head(line);
                return false;
            }
        };
        let stamp = self.stamps.of(line);
        if stamp.is_none() && self.goes_on_within(incomplete, (kind, known.as_ref()), line) {
            return true;
        }
        let at = stamp.and_then(|stamp| stamp.when());
        let from = shape::message(line, stamp.map_or(0, |stamp| stamp.end));
        let message = line.get(from..).unwrap_or_default();
        if stamp.is_none() || incomplete.is_some_and(|one| one.with_times) {
            self.complete(incomplete, line, from);
        }
        let times = repeated.map_or(1, |repeated| repeated.times);
        let ns = match repeated {
            Some(repeated) => Some(repeated.over),
            None => length.map(|length| length.ns).max(of_row),
        };
        self.may_head(line);
        let blamed = found.and_then(|found| blame::of(line, found.kind));
        // The words of a known message are no label before it: `nf_conntrack: table full`.
        let labels = known.as_ref().map_or(usize::MAX, |_| focus.saturating_sub(from));
        let bare = stamp.is_none() && ns.is_none() && blamed.is_none() && known.is_none();
        if bare && self.is_more_of(kind, line, out.here().line) {
            return true;
        }
        let table = of_row.and_then(|_| self.columns.said());
        let key = match table {
            Some((title, column)) => {
                shape::shape(&[title.as_bytes(), column.as_bytes()].concat(), kind as u64)
            }
            None => shape::shape(message, kind as u64 ^ names),
        };
        let place = match self.places.get(&key) {
            Some(place) => {
                self.timed = stamp.map(|_| (*place, out.here().line));
                let Some(one) = self.all.get_mut(*place) else {
                    return true;
                };
                one.times += times;
                blame::count(&mut one.blames, blamed);
                one.last = at.or(one.last);
                if ns <= one.ns {
                    return true;
                }
                one.ns = ns;
                one.quote = out.here();
                // What it means has the length of its line.
                one.known = known.or(one.known.take());
                *place
            }
            None if names != 0 && self.named >= NAMED => {
                self.left_out += 1;
                return true;
            }
            None => {
                self.named += u64::from(names != 0);
                let Some(count) = self.counts.get_mut(kind as usize).filter(|count| **count < ROOM) else {
                    self.left_out += 1;
                    return true;
                };
                *count += 1;
                let place = self.all.len();
                self.places.insert(key, place);
                let mut blames = Vec::new();
                blame::count(&mut blames, blamed);
                self.all.push(Statement {
                    blames,
                    kind,
                    ns,
                    share: None,
                    times,
                    first: at,
                    last: at,
                    of_reader: false,
                    known,
                    quote: out.here(),
                    text: String::new(),
                });
                place
            }
        };
        self.timed = stamp.map(|_| (place, out.here().line));
        // Of a warning that says no more than that, the level is what it says.
        let words = match kind {
            StatementKind::Warned | StatementKind::Failed if stamp.is_none() => 0,
            _ => shape::words(message).min(labels),
        };
        let (told, from) = (message.get(words..).unwrap_or_default(), from + words);
        let length_at = length.map(|length| length.at.saturating_sub(from));
        let mut text = structured::message_of(line)
            .unwrap_or_else(|| shape::sentence_with(told, focus.saturating_sub(from), length_at));
        if let Some((title, column)) = table {
            let title = if title.is_empty() {
                String::new()
            } else {
                format!("{title}: ")
            };
            text = match self.columns.row(line) {
                Some(row) => format!("{title}{row}"),
                None => format!("{title}{text} ({column})"),
            };
        } else if message.len() - shape::behind_container(message) < HALF
            && stamp.is_none()
            && !heading.is_empty()
        {
            text = format!("{heading} {text}");
        } else if of_tree && !self.tree.0.is_empty() {
            text = format!("{}: {text}", self.tree.0);
        } else if stamp.is_none() && item.is_none() && !self.item.is_empty() && message.len() < 2 * HALF {
            text = format!("{}: {text}", self.item);
        } else if kind == StatementKind::Took && stamp.is_none() && !self.command.is_empty() {
            text = format!("{} | {text}", self.command);
        }
        // What is at its limit stands behind a long name, or behind a request.
        if let Some(at) = limits::figures(kind, told).filter(|at| *at > 0) {
            text.push_str(" ... ");
            text.push_str(&shape::sentence(told.get(at..).unwrap_or_default(), 0));
        }
        if lock_holder::may_follow(&text) {
            self.locked = Some((place, lock_holder::LINES));
        }
        if let Some(statement) = self.all.get_mut(place) {
            statement.text = text;
        }
        if table.is_none() && self.incomplete.is_none_or(|one| !one.with_times) {
            self.incomplete = incomplete_after(kind, message, place);
        }
        true
    }

    /// Whether a line without a time is the rest of a message that ends within brackets or a sentence: then that one says it.
    fn goes_on_within(
        &mut self,
        incomplete: Option<Incomplete>,
        (kind, known): (StatementKind, Option<&Known>),
        line: &[u8],
    ) -> bool {
        let Some(begun) = incomplete else {
            return false;
        };
        let Some(statement) = self.all.get_mut(begun.place) else {
            return false;
        };
        let sign = line.iter().find(|byte| b"[({])}".contains(byte));
        let closes = begun.brackets && sign.is_some_and(|sign| b"])}".contains(sign));
        let follows = shape::is_cut(statement.text.as_bytes()) && statement.text.len() < begun.enough;
        if !closes && !follows {
            return false;
        }
        blame::count(&mut statement.blames, blame::of(line, kind));
        statement.known = statement.known.take().or_else(|| known.cloned());
        self.is_graver(begun.place, kind);
        self.complete(incomplete, line, 0);
        true
    }

    /// Whether a line without a time says more of the message right above it, which has one, and names nothing itself: `This range is
    /// likely unavailable.`
    fn is_more_of(&mut self, kind: StatementKind, line: &[u8], number: u64) -> bool {
        let Some((place, _)) = self.timed.filter(|(_, last)| last + 1 == number) else {
            return false;
        };
        let Some(statement) = self.all.get_mut(place) else {
            return false;
        };
        if statement.text.len() + line.len() > MAX_MESSAGE_BYTES {
            return false;
        }
        // Of several that differ in numbers alone the first has it.
        if statement.times < 2 {
            statement.text.push_str(" | ");
            statement.text.push_str(&shape::sentence(line, 0));
        }
        self.is_graver(place, kind);
        true
    }

    /// Makes a statement one of a graver kind, as what belongs to it says.
    fn is_graver(&mut self, place: usize, kind: StatementKind) {
        let Some(statement) = self.all.get_mut(place) else {
            return;
        };
        let (before, after) = (statement.kind, statement.kind.min(kind));
        statement.kind = after;
        for (kind, more) in [(before, false), (after, true)] {
            if let Some(count) = self.counts.get_mut(kind as usize) {
                *count = if more { *count + 1 } else { count.saturating_sub(1) };
            }
        }
    }

    /// Keeps a line that ends with a colon: what follows is of it.
    fn may_head(&mut self, line: &[u8]) {
        if line.ends_with(b":") {
            self.heading = shape::sentence(line, 0);
        }
    }

    /// Adds a line, from its message on, to a statement that says only the beginning: the query below its time, the names
    /// below a heading.
    fn complete(&mut self, incomplete: Option<Incomplete>, line: &[u8], from: usize) {
        let Some(mut incomplete) = incomplete else { return };
        let Some(statement) = self.all.get_mut(incomplete.place) else {
            return;
        };
        let message = line.get(from..).unwrap_or_default();
        if message.iter().any(u8::is_ascii_alphanumeric) {
            // A message over several lines that is cut within a sentence or a list.
            let cut = shape::is_cut(statement.text.as_bytes());
            let timed_out = statement.kind == StatementKind::TimedOut;
            let length = durations::longest(message, timed_out).map(|length| length.ns);
            statement.ns = statement.ns.or(length);
            statement.text.push_str(" | ");
            statement.text.push_str(&shape::sentence(message, 0));
            let more = message.ends_with(b":") || shape::is_cut(message) || cut;
            incomplete.lines = match incomplete.lines.saturating_sub(1) {
                0 if more => 1,
                left => left,
            };
            if incomplete.brackets && !shape::is_open(statement.text.as_bytes()) {
                incomplete.lines = 0;
            }
        }
        let more = incomplete.lines > 0 && statement.text.len() < incomplete.enough;
        self.incomplete = Some(incomplete).filter(|_| more);
    }

    /// Puts them into the evidence.
    pub(crate) fn end(&mut self, out: &mut Out<'_>) {
        out.account().left_out += std::mem::take(&mut self.left_out);
        self.places.clear();
        let rows = self.records.end().into_iter().chain(self.top_events.end());
        let mut facts: Vec<tables::Fact> = self.tables.end().into_iter().chain(rows).collect();
        self.all.retain(|one| !tables::tells(&facts, one));
        let others = self.together.end(&mut facts, &mut self.all);
        let mut figures = self.known.end();
        figures.retain(|one| !out.states_at(one.quote.line));
        let of_figure = |line: u64| figures.iter().any(|one| one.quote.line == line);
        let counted = self.counters.end().filter(|fact| !of_figure(fact.line));
        for fact in facts.into_iter().chain(counted).chain(others) {
            let mut quote = out.here();
            quote.line = fact.line;
            let text = match self.command.as_str() {
                "" => fact.text,
                command => format!("{} (of {command})", fact.text),
            };
            out.statement(Statement {
                share: fact.share,
                of_reader: false,
                ..one(fact.kind, fact.ns, quote, text)
            });
        }
        for mut statement in self.all.drain(..) {
            // Of a known figure more is known than its size.
            let told = statement.kind == StatementKind::Took && of_figure(statement.quote.line);
            if !told || statement.known.is_some() {
                limits::tell(&mut statement);
                out.statement(statement);
            }
        }
        figures.into_iter().for_each(|one| out.statement(one));
    }
}

/// The words of a line, at most so many.
fn words_of(line: &[u8], most: usize) -> Vec<String> {
    let words = crate::numbers::words(line).take(most);
    words.map(crate::gather::text_of).collect()
}

/// Nanoseconds from which a length that somebody warns of is a wait that people notice.
const SLOW_NS: Ns = 1_000_000_000;

#[cfg(test)]
mod multiline_tests;
#[cfg(test)]
mod tests;
