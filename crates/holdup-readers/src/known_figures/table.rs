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
const DROPPED: [&str; 8] = [
    "total", "count", "current", "now", "value", "avg", "average", "number",
];

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
    for word in DROPPED {
        keep(word.as_bytes());
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

/// Whether the last word of a text is that of a known name.
pub(super) fn may_end_name(text: &[u8]) -> bool {
    let mut small = [0_u8; MAX_WORD_BYTES];
    let mut from = MAX_WORD_BYTES;
    let mut later = 0_u8;
    // From the end backwards, up to the border of the word.
    for byte in text.iter().rev().copied() {
        if !is_of_word(byte) || from == 0 {
            break;
        }
        let begins = later.is_ascii_uppercase() && (byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if begins && is_last(small.get(from..).unwrap_or_default()) {
            return true;
        }
        from -= 1;
        if let Some(place) = small.get_mut(from) {
            *place = byte.to_ascii_lowercase();
        }
        later = byte;
    }
    is_last(small.get(from..).unwrap_or_default())
}

fn is_last(word: &[u8]) -> bool {
    if word.is_empty() {
        return false;
    }
    let place = hash(word) as usize % PLACES;
    let known = FIGURES.last_words.get(place / 64);
    known.is_some_and(|bits| bits & 1 << (place % 64) != 0) || is_unit(word)
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
    let small = |word: &Range<usize>| key(text.get(word.clone()).unwrap_or_default());
    let words: Vec<Vec<u8>> = places.iter().map(small).collect();
    let mut unit = None;
    for dropped in 0..=MAX_DROPPED {
        let end = words.len().checked_sub(dropped).filter(|end| *end > 0)?;
        let own_unit = words
            .get(end - 1)
            .and_then(|word| named_unit(std::str::from_utf8(word).ok()?));
        for from in end.saturating_sub(MAX_WORDS)..end {
            let key = words.get(from..end)?.concat();
            let Some(row) = FIGURES
                .by_name
                .get(key.as_slice())
                .and_then(|at| FIGURES.all.get(*at))
            else {
                continue;
            };
            let begin = begins(text, places, &words, from, row)?;
            return Some(Named {
                row,
                from: begin,
                of_name: OfName {
                    unit: unit.or(own_unit),
                    of_row: unit.is_none(),
                },
            });
        }
        let last = words.get(end - 1)?;
        let drops = DROPPED.iter().any(|word| word.as_bytes() == last.as_slice());
        // How many times something took how long is neither.
        if !(drops || own_unit.is_some() && dropped == 0) {
            return None;
        }
        unit = unit.or(own_unit);
    }
    None
}

/// Where the whole name begins of which a row's name is the end; `None` where what stands before it makes it another.
fn begins(text: &[u8], places: &[Range<usize>], words: &[Vec<u8>], from: usize, row: &Row) -> Option<usize> {
    let other = |at: usize| {
        words
            .get(at)
            .is_some_and(|word| OTHERS.iter().any(|other| other.as_bytes() == word.as_slice()))
    };
    let within = |at: usize| {
        let begin = places.get(at).map_or(0, |word| word.start);
        let before = begin.checked_sub(1).and_then(|before| text.get(before));
        before.is_some_and(|byte| is_of_word(*byte) || matches!(byte, b'_' | b'-'))
    };
    if within(from) && row.words < 2 {
        return None;
    }
    let mut begin = from;
    while begin > 0 && within(begin) {
        begin -= 1;
        if other(begin) {
            return None;
        }
    }
    if begin.checked_sub(1).is_some_and(other) {
        return None;
    }
    places.get(begin).map(|word| word.start)
}
