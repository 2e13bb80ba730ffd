//! The rows of the tables, found by the words of their names.
//!
//! A name is the same however it is written: `UnderReplicatedPartitions`, `under_replicated_partitions`, `Under replicated partitions`, and
//! in small letters without a border, as exporters have names of Java. What stands before it may be a prefix.

use super::value::{Bad, OfName, named_unit};
use crate::messages::kind_of;
use holdup_evidence::observed::{Known, MessageRole, StatementKind};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::LazyLock;

/// The tables.
pub(super) const TABLES: [&str; 4] = [
    include_str!("kernel.tsv"),
    include_str!("data.tsv"),
    include_str!("runtimes.tsv"),
    include_str!("infra.tsv"),
];

/// Words of a name.
pub(super) const MAX_WORDS: usize = 8;

/// Words behind a name that it may have or not.
const MAX_DROPPED: usize = 2;

/// Such words, beside those of units.
const DROPPED: [&str; 7] = ["total", "count", "current", "now", "avg", "average", "number"];

/// The same of exporters of Java. Of an attribute of a disk it is another figure.
const VALUE: &[u8] = b"value";
const DISKS: &str = "smart";

/// Words before a name that make it another: a limit, a setting, a condition.
const OTHERS: [&str; 54] = [
    "max",
    "maximum",
    "min",
    "minimum",
    "limit",
    "limits",
    "threshold",
    "thresholds",
    "warn",
    "warning",
    "crit",
    "critical",
    "alert",
    "allowed",
    "allow",
    "configured",
    "target",
    "desired",
    "default",
    "no",
    "not",
    "non",
    "without",
    "total",
    "cumulative",
    "peak",
    "ever",
    "highest",
    "lowest",
    "historical",
    "previous",
    "initial",
    "expected",
    "timeout",
    "interval",
    "config",
    "setting",
    "set",
    "if",
    "when",
    "unless",
    "until",
    "than",
    "per",
    "delta",
    "rate",
    "old",
    "avoid",
    "reduce",
    "increase",
    "soft",
    "hard",
    "last",
    "resolved",
];

/// A figure that a program prints.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(super) name: &'static str,
    pub(super) bad: Bad,
    pub(super) kind: StatementKind,
    pub(super) role: MessageRole,
    program: &'static str,
    pub(super) means: &'static str,
    /// How many words its name has.
    words: usize,
}

impl Row {
    /// What is known of it, as evidence.
    pub(super) fn known(&self) -> Known {
        Known {
            role: self.role,
            program: self.program.to_owned(),
            means: self.means.to_owned(),
        }
    }
}

/// The rows of a table; a test holds that each line is one.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = Row> {
    let rows = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.filter_map(row)
}

/// The figure of a row: name, bad, kind, role, program, meaning.
pub(super) fn row(line: &'static str) -> Option<Row> {
    let mut columns = line.split('\t');
    let name = columns.next()?;
    let bad = Bad::of(columns.next()?)?;
    let kind = kind_of(columns.next()?)?;
    let role = match columns.next()? {
        "cause" => MessageRole::Cause,
        "sign" => MessageRole::Sign,
        _ => return None,
    };
    let program = columns.next()?;
    let means = columns.next()?;
    let words = words(name.as_bytes()).len();
    let whole = columns.next().is_none() && (1..=MAX_WORDS).contains(&words);
    whole.then_some(Row {
        name,
        bad,
        kind,
        role,
        program,
        means,
        words,
    })
}

/// Places of the table of last words, bits.
const PLACES: usize = 1 << 16;

struct Figures {
    all: Vec<Row>,
    by_name: HashMap<Box<[u8]>, usize, foldhash::fast::FixedState>,
    /// A bit for each last word of a name, at the place of its hash: nearly every number ends the look here.
    last_words: Vec<u64>,
}

static FIGURES: LazyLock<Figures> = LazyLock::new(|| {
    let all: Vec<Row> = TABLES.iter().flat_map(|table| rows(table)).collect();
    let mut by_name = HashMap::default();
    let mut last_words = vec![0; PLACES / 64];
    let mut keep = |word: &[u8]| {
        let place = hash(word) as usize % PLACES;
        if let Some(bits) = last_words.get_mut(place / 64) {
            *bits |= 1 << (place % 64);
        }
    };
    for (at, row) in all.iter().enumerate() {
        let key = key(row.name.as_bytes());
        let last = words(row.name.as_bytes()).pop().unwrap_or_default();
        keep(&key);
        keep(&self::key(row.name.as_bytes().get(last).unwrap_or_default()));
        by_name.entry(key.into_boxed_slice()).or_insert(at);
    }
    Figures {
        all,
        by_name,
        last_words,
    }
});

/// All rows, in the order of the tables.
#[cfg(test)]
pub(super) fn all() -> &'static [Row] {
    &FIGURES.all
}

fn hash(word: &[u8]) -> u64 {
    foldhash::fast::FixedState::default().hash_one(word)
}

/// Letters and digits of a text, small: what is the same in all ways to write a name.
pub(super) fn key(text: &[u8]) -> Vec<u8> {
    let of_word = text.iter().filter(|byte| is_of_word(**byte));
    of_word.map(u8::to_ascii_lowercase).collect()
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// The places of the words of a text: other signs and the borders of camel case separate them, and capitals in a row are one word.
pub(super) fn words(text: &[u8]) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut begin = None;
    for at in 0..=text.len() {
        let byte = text.get(at).copied().filter(|byte| is_of_word(*byte));
        let before = at.checked_sub(1).and_then(|before| text.get(before)).copied();
        let next = text.get(at + 1).copied().unwrap_or_default();
        let border = byte.is_some_and(|byte| {
            let before = before.unwrap_or_default();
            let rises = before.is_ascii_lowercase() || before.is_ascii_digit();
            byte.is_ascii_uppercase() && (rises || before.is_ascii_uppercase() && next.is_ascii_lowercase())
        });
        match (byte, begin) {
            (Some(_), None) => begin = Some(at),
            (Some(_), Some(from)) if border => {
                words.push(from..at);
                begin = Some(at);
            }
            (None, Some(from)) => {
                words.push(from..at);
                begin = None;
            }
            _ => {}
        }
    }
    words
}

/// Bytes of a last word.
const MAX_WORD_BYTES: usize = 48;

/// Whether a text may end with a known name, by its last word that is not one which a name may have or not.
pub(super) fn may_end_name(text: &[u8]) -> bool {
    let mut text = text;
    for _ in 0..=MAX_DROPPED {
        let mut small = [0_u8; MAX_WORD_BYTES];
        let mut from = MAX_WORD_BYTES;
        let mut later = 0_u8;
        // From the end backwards, up to the border of the word.
        for byte in text.iter().rev().copied() {
            if !is_of_word(byte) || from == 0 {
                break;
            }
            let begins = later.is_ascii_uppercase() && !byte.is_ascii_uppercase();
            let word = small.get(from..).unwrap_or_default();
            if begins && (is_last(word) || drops(word)) {
                break;
            }
            from -= 1;
            if let Some(place) = small.get_mut(from) {
                *place = byte.to_ascii_lowercase();
            }
            later = byte;
        }
        let word = small.get(from..).unwrap_or_default();
        if word.is_empty() || is_last(word) {
            return !word.is_empty();
        }
        if !drops(word) {
            return false;
        }
        let rest = text.get(..text.len() - word.len()).unwrap_or_default();
        let behind = rest
            .iter()
            .rev()
            .take(MAX_BETWEEN)
            .take_while(|byte| !is_of_word(**byte));
        text = rest.get(..rest.len() - behind.count()).unwrap_or_default();
    }
    false
}

/// Signs between two words of a name.
const MAX_BETWEEN: usize = 3;

fn is_last(word: &[u8]) -> bool {
    if word.is_empty() {
        return false;
    }
    let place = hash(word) as usize % PLACES;
    let known = FIGURES.last_words.get(place / 64);
    known.is_some_and(|bits| bits & 1 << (place % 64) != 0)
}

/// Whether a name may have a word behind it or not.
fn drops(word: &[u8]) -> bool {
    word == VALUE || DROPPED.iter().any(|drop| drop.as_bytes() == word) || is_unit(word)
}

fn is_unit(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| named_unit(word).is_some())
}

/// A known name in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    pub(super) row: &'static Row,
    /// Where the name begins, with what belongs to it.
    pub(super) from: usize,
    pub(super) of_name: OfName,
}

/// The known name that a text ends with: the longest one, else the longest without the words behind it that a name may have.
pub(super) fn find(text: &[u8]) -> Option<Named> {
    let places = words(text);
    let first = places.len().saturating_sub(MAX_WORDS + MAX_DROPPED);
    let places = places.get(first..)?;
    // The letters of all words, and where each begins among them.
    let begin = places.first()?.start;
    let letters = key(text.get(begin..)?);
    let mut starts = vec![0];
    starts.extend(places.iter().scan(0, |sum, word| {
        *sum += word.len();
        Some(*sum)
    }));
    let names = Names {
        text,
        places,
        letters: &letters,
        starts: &starts,
    };
    let mut unit = None;
    let mut value = false;
    for dropped in 0..=MAX_DROPPED {
        let end = places.len().checked_sub(dropped).filter(|end| *end > 0)?;
        let last = names.letters(end - 1, end);
        let own_unit = named_unit(std::str::from_utf8(last).ok()?);
        for from in end.saturating_sub(MAX_WORDS)..end {
            let known = FIGURES.by_name.get(names.letters(from, end));
            let Some(row) = known.and_then(|at| FIGURES.all.get(*at)) else {
                continue;
            };
            if value && row.program.starts_with(DISKS) {
                return None;
            }
            return Some(Named {
                row,
                from: names.begins(from, row)?,
                of_name: OfName {
                    unit: unit.or(own_unit),
                    of_row: unit.is_none(),
                },
            });
        }
        // How many times something took how long is neither.
        if !drops(last) || own_unit.is_some() && dropped > 0 {
            return None;
        }
        value |= last == VALUE;
        unit = unit.or(own_unit);
    }
    None
}

/// The words of a text.
struct Names<'a> {
    text: &'a [u8],
    places: &'a [Range<usize>],
    letters: &'a [u8],
    starts: &'a [usize],
}

impl Names<'_> {
    /// The letters of the words from one to before another.
    fn letters(&self, from: usize, to: usize) -> &[u8] {
        let at = |word: usize| self.starts.get(word).copied().unwrap_or_default();
        self.letters.get(at(from)..at(to)).unwrap_or_default()
    }

    /// Whether a word makes a name behind it another.
    fn is_other(&self, at: usize) -> bool {
        let word = self.letters(at, at + 1);
        OTHERS.iter().any(|other| other.as_bytes() == word)
    }

    /// Whether a word goes on with the one before it.
    fn goes_on(&self, at: usize) -> bool {
        let begin = self.places.get(at).map_or(0, |word| word.start);
        let before = begin.checked_sub(1).and_then(|before| self.text.get(before));
        before.is_some_and(|byte| is_of_word(*byte) || matches!(byte, b'_' | b'-'))
    }

    /// Where the whole name begins of which a row's name is the end; `None` where what stands before it makes it another.
    fn begins(&self, from: usize, row: &Row) -> Option<usize> {
        if self.goes_on(from) && row.words < 2 {
            return None;
        }
        let mut begin = from;
        while begin > 0 && self.goes_on(begin) {
            begin -= 1;
            if self.is_other(begin) {
                return None;
            }
        }
        if begin.checked_sub(1).is_some_and(|before| self.is_other(before)) {
            return None;
        }
        self.places.get(begin).map(|word| word.start)
    }
}
