//! What well-known figures of well-known programs mean, and when one is bad by itself.
//!
//! In: lines of names with numbers (`UnderReplicatedPartitions: 5`, `name{labels} 5`, `"name": 5`), and tables with such names as headings.
//! Out: a statement for each figure that is bad and each thing that it is of, with the worst value. The tables are beside this file, one
//! row for each figure; docs/read.md says how to add one. The cost is a look at each number of a line: nearly all have no known name.

mod columns;
mod line;
mod subject;
mod table;
mod value;

use crate::gather::text_of;
use crate::statements;
use columns::{Table, Taken};
use holdup_evidence::Ns;
use holdup_evidence::observed::{MessageRole, Quote, Statement, When};
use subject::Subjects;
use table::Row;
use value::{Judged, Measure};

/// Statements of one artefact, and of one figure.
const MAX_STATEMENTS: usize = 20;
const MAX_THINGS: usize = 4;

/// Figures that are bad that are told or counted in one artefact: a longer one repeats them.
const MAX_BAD: u32 = 200_000;

/// Bytes of a name, of a value, and of what a figure is of.
const MAX_NAME_BYTES: usize = 100;
const MAX_VALUE_BYTES: usize = 40;
const MAX_SUBJECT_BYTES: usize = 220;

/// Words of a name of a thing: more are a sentence.
const MAX_NAME_WORDS: usize = 2;

/// Letters beside a figure that make its line more than a name and a value.
const MIN_LETTERS: usize = 4;

/// A figure that is bad.
#[derive(Debug)]
struct Told {
    row: &'static Row,
    /// What it is of, and the shape of that where it is a sentence.
    of: String,
    shape: Option<u64>,
    judged: Judged,
    quote: Quote,
    text: String,
    times: u64,
    first: Option<When>,
    last: Option<When>,
}

/// Follows the figures of one artefact.
#[derive(Debug, Default)]
pub(crate) struct KnownFigures {
    table: Option<Table>,
    subjects: Subjects,
    told: Vec<Told>,
    bad: u32,
}

/// What a line is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whether it has a known figure, or says what the next ones are of: others that differ in numbers alone have to be looked at, too.
    pub(crate) counts: bool,
    /// Whether a figure is bad.
    pub(crate) bad: bool,
    /// Whether it is a known figure alone, which is well: then its name states no trouble, whatever its words are.
    pub(crate) well: bool,
}

/// A line as it stands there and what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Without what copying does to it, and without blanks around it.
    pub(crate) text: &'a [u8],
    /// How far it is set in.
    pub(crate) indent: usize,
    pub(crate) number: u64,
}

impl<'a> Line<'a> {
    pub(crate) fn of(whole: &[u8], text: &'a [u8], number: u64) -> Line<'a> {
        let indent = whole.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        Line { text, indent, number }
    }
}

impl KnownFigures {
    /// Takes a line. `placed` says when it was written, and where its message begins.
    pub(crate) fn line(
        &mut self,
        line: Line<'_>,
        here: impl Fn() -> Quote,
        placed: impl FnOnce(&[u8]) -> (Option<When>, usize),
    ) -> Seen {
        let text = line.text;
        if text.is_empty() {
            return Seen::default();
        }
        if let Some(mut table) = self.table.take() {
            let taken = self.row(&mut table, text, &here);
            if let Some(seen) = taken {
                self.table = Some(table);
                return seen;
            }
        }
        let mut bad = Vec::new();
        let mut well = false;
        let mut counts = line::figures(text, |figure| {
            well = !figure.judged.bad && is_alone(text, &figure);
            if figure.judged.bad && bad.len() < MAX_STATEMENTS {
                bad.push(figure);
            }
        });
        if !counts {
            self.table = Table::begin(text);
            counts = self.subjects.line(line);
            return Seen {
                counts,
                ..Seen::default()
            };
        }
        if bad.is_empty() || says_nothing(text) {
            return Seen {
                counts,
                bad: false,
                well: well && bad.is_empty(),
            };
        }
        let (at, from) = placed(text);
        for figure in bad {
            let name = cut(figure.name, MAX_NAME_BYTES);
            let value = cut(figure.value, MAX_VALUE_BYTES);
            let of = self.of(line, from, &figure);
            let of = cut(of.as_bytes(), MAX_SUBJECT_BYTES);
            self.tell(figure.row, figure.judged, here(), at, [&name, &value, &of, ""]);
        }
        Seen {
            counts,
            bad: true,
            well: false,
        }
    }

    /// What a figure is of: its labels, what its line names beside it, or the headings above.
    fn of(&self, line: Line<'_>, from: usize, figure: &line::Figure<'_>) -> String {
        if !figure.labels.is_empty() {
            return text_of(figure.labels);
        }
        let text = line.text;
        if text.contains(&b'{') || text.starts_with(b"\"") {
            let beside = subject::beside(text, figure.from, figure.end);
            return beside.map_or_else(|| self.subjects.of(line), text_of);
        }
        let message = text.get(from..).unwrap_or_default();
        let beside = letters(text.get(from.min(figure.from)..figure.from)) + letters(text.get(figure.end..));
        match beside >= MIN_LETTERS {
            true => {
                let focus = figure.from.saturating_sub(from);
                statements::shape::sentence(message, focus)
            }
            false => self.subjects.of(line),
        }
    }

    /// A line below a heading; `None` where the table is over.
    fn row(&mut self, table: &mut Table, text: &[u8], here: &impl Fn() -> Quote) -> Option<Seen> {
        let mut bad = false;
        let taken = table.line(text, |cell| {
            if cell.judged.bad {
                bad = true;
                let name = cut(cell.name, MAX_NAME_BYTES);
                let value = cut(cell.value, MAX_VALUE_BYTES);
                let of = cut(cell.subject, MAX_SUBJECT_BYTES);
                let beside = cut(cell.beside.as_bytes(), MAX_SUBJECT_BYTES);
                self.tell(
                    cell.named.row,
                    cell.judged,
                    here(),
                    None,
                    [&name, &value, &of, &beside],
                );
            }
        });
        (taken != Taken::No).then_some(Seen {
            counts: taken == Taken::Row,
            bad,
            well: false,
        })
    }

    /// Keeps a figure that is bad, where it is the first or the worst of its thing: its name, its value, what it is of, and what stands beside it.
    fn tell(
        &mut self,
        row: &'static Row,
        judged: Judged,
        quote: Quote,
        at: Option<When>,
        [name, value, of, beside]: [&str; 4],
    ) {
        if self.bad >= MAX_BAD {
            return;
        }
        self.bad += 1;
        let same_row = |told: &Told| std::ptr::eq(told.row, row);
        let text = match (of, beside) {
            ("", "") => format!("{name} = {value}"),
            ("", told) | (told, "") => format!("{name} = {value} ({told})"),
            (of, beside) => format!("{name} = {value} ({of}; {beside})"),
        };
        // Of a sentence that comes again with other numbers the worst one is told; names with other numbers are others.
        let is_sentence = of.split(' ').count() > MAX_NAME_WORDS;
        let new = Told {
            row,
            shape: is_sentence.then(|| statements::shape::shape(of.as_bytes(), 0)),
            of: of.to_owned(),
            judged,
            quote,
            text,
            times: 1,
            first: at,
            last: at,
        };
        let same = self.told.iter_mut().find(|told| {
            let alike = new.shape.is_some() && told.shape == new.shape;
            same_row(told) && (told.of == new.of || alike)
        });
        if let Some(told) = same {
            told.times += 1;
            told.last = at.or(told.last);
            if new.judged.badness > told.judged.badness {
                (told.judged, told.quote, told.text) = (new.judged, new.quote, new.text);
            }
            return;
        }
        let things = self.told.iter().filter(|told| same_row(told)).count();
        if things < MAX_THINGS {
            if self.told.len() < MAX_STATEMENTS * MAX_THINGS {
                self.told.push(new);
            }
            return;
        }
        let best = self
            .told
            .iter_mut()
            .filter(|told| same_row(told))
            .min_by(|one, other| one.judged.badness.total_cmp(&other.judged.badness));
        if let Some(best) = best.filter(|best| best.judged.badness < new.judged.badness) {
            *best = new;
        }
    }

    /// Whether no table is being read.
    pub(crate) fn is_idle(&self) -> bool {
        self.table.is_none()
    }

    /// Everything that is bad, gravest first.
    pub(crate) fn end(&mut self) -> Vec<Statement> {
        let mut told = std::mem::take(&mut self.told);
        *self = KnownFigures::default();
        let order = |told: &Told| (told.row.role == MessageRole::Sign, told.row.kind, told.quote.line);
        told.sort_by_key(order);
        told.truncate(MAX_STATEMENTS);
        told.into_iter().map(Told::statement).collect()
    }
}

impl Told {
    fn statement(self) -> Statement {
        let amount = self.judged.amount;
        let ns = (self.judged.measure == Measure::Time).then_some(amount.clamp(0.0, 1e18) as Ns);
        let share = (self.judged.measure == Measure::Share).then_some(amount / 100.0);
        Statement {
            share,
            times: self.times,
            first: self.first,
            last: self.last,
            known: Some(self.row.known()),
            ..statements::one(self.row.kind, ns, self.quote, self.text)
        }
    }
}

/// How many letters a part of a line has.
fn letters(part: Option<&[u8]>) -> usize {
    let letters = part.unwrap_or_default().iter();
    letters.filter(|byte| byte.is_ascii_alphabetic()).count()
}

/// Whether a line has hardly anything beside a figure and its labels.
fn is_alone(text: &[u8], figure: &line::Figure<'_>) -> bool {
    letters(text.get(..figure.from)) + letters(text.get(figure.end..)) < MIN_LETTERS
}

/// Whether a line is no report: a command, a query, a frame of a stack.
fn says_nothing(line: &[u8]) -> bool {
    use crate::statements::shape;
    shape::is_sql(line) || shape::is_command(line) || shape::is_frame(line)
}

fn cut(text: &[u8], most: usize) -> String {
    let text = text_of(text.get(..most).unwrap_or(text));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the lines that the reader of a format takes are names with figures, of which it knows few.
pub(crate) fn reads(format: &str) -> bool {
    matches!(format, "counters" | "prometheus" | "redis-info" | "mysql-status")
}

#[cfg(test)]
mod shapes_tests;
#[cfg(test)]
mod tests;
