//! The rows of the tables, found by the words of their names.
//!
//! A name is the same however it is written: `UnderReplicatedPartitions`, `under_replicated_partitions`, `Under replicated partitions`, and
//! in small letters without a border, as exporters have names of Java. What stands before it may be a prefix.

use super::value::{Bad, OfName, named_unit, unit_words};
use crate::messages::kind_of;
use holdup_evidence::observed::{Known, MessageRole, StatementKind};
use std::collections::HashMap;
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

/// A bit for each of some words, at the place of its sum.
struct Words {
    bits: Vec<u64>,
}

impl Words {
    fn of<'a>(words: impl Iterator<Item = &'a [u8]>) -> Words {
        let mut bits = vec![0; PLACES / 64];
        for word in words {
            let place = word
                .iter()
                .rev()
                .fold(Sum::default(), |sum, byte| sum.with(*byte))
                .place();
            if let Some(bits) = bits.get_mut(place / 64) {
                *bits |= 1_u64 << (place % 64);
            }
        }
        Words { bits }
    }

    fn has(&self, sum: Sum) -> bool {
        let place = sum.place();
        let bits = self.bits.get(place / 64);
        bits.is_some_and(|bits| bits & 1 << (place % 64) != 0)
    }
}

/// A sum of the letters of a word, from its end backwards.
#[derive(Debug, Clone, Copy)]
struct Sum(u64);

impl Default for Sum {
    fn default() -> Sum {
        Sum(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn with(self, byte: u8) -> Sum {
        Sum((self.0 ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3))
    }

    fn place(self) -> usize {
        ((self.0 >> 32) ^ self.0) as usize % PLACES
    }
}

struct Figures {
    all: Vec<Row>,
    by_name: HashMap<Box<[u8]>, usize, foldhash::fast::FixedState>,
    /// Names, their last words and their last two, and words that may stand behind a name: nearly every number ends the look here.
    wholes: Words,
    lasts: Words,
    pairs: Words,
    behind: Words,
}

static FIGURES: LazyLock<Figures> = LazyLock::new(|| {
    let all: Vec<Row> = TABLES.iter().flat_map(|table| rows(table)).collect();
    let mut by_name = HashMap::default();
    let (mut wholes, mut lasts, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for (at, row) in all.iter().enumerate() {
        let name = row.name.as_bytes();
        let words = words(name);
        let end = |count: usize| {
            let first = words.len().checked_sub(count).and_then(|at| words.get(at));
            first.and_then(|first| name.get(first.start..)).map(key)
        };
        lasts.extend(end(1));
        pairs.extend(end(2));
        wholes.push(key(name));
        by_name.entry(key(name).into_boxed_slice()).or_insert(at);
    }
    let behind = DROPPED.iter().map(|word| (*word).to_owned());
    let behind: Vec<String> = behind.chain(unit_words()).collect();
    Figures {
        all,
        by_name,
        wholes: Words::of(wholes.iter().map(Vec::as_slice)),
        lasts: Words::of(lasts.iter().map(Vec::as_slice)),
        pairs: Words::of(pairs.iter().map(Vec::as_slice)),
        behind: Words::of(behind.iter().map(String::as_bytes).chain([VALUE])),
    }
});

/// All rows, in the order of the tables.
#[cfg(test)]
pub(super) fn all() -> &'static [Row] {
    &FIGURES.all
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

/// Whether a text may end with a known name, by its last two words that are not ones which a name may have or not.
pub(super) fn may_end_name(text: &[u8]) -> bool {
    let figures = &*FIGURES;
    let mut rest = text;
    for _ in 0..=MAX_DROPPED {
        let mut words = Backwards::from(rest, Sum::default());
        let mut drops = false;
        while !drops && words.next_border() {
            let sum = words.sum;
            let mut before = Backwards::from(without_signs(words.rest), sum);
            let mut of_pair = || {
                while before.next_border() {
                    if figures.pairs.has(before.sum) {
                        return true;
                    }
                }
                false
            };
            if figures.wholes.has(sum) || figures.lasts.has(sum) && of_pair() {
                return true;
            }
            drops = figures.behind.has(sum);
        }
        if !drops {
            return false;
        }
        rest = without_signs(words.rest);
    }
    false
}

/// A word of a text, from its end backwards.
struct Backwards<'a> {
    rest: &'a [u8],
    sum: Sum,
    /// The two bytes behind the rest that are of the word.
    later: [u8; 2],
}

impl<'a> Backwards<'a> {
    fn from(rest: &'a [u8], sum: Sum) -> Backwards<'a> {
        Backwards {
            rest,
            sum,
            later: [0; 2],
        }
    }

    /// Goes on to the next border of camel case, or to where the word begins; whether there was more of it.
    fn next_border(&mut self) -> bool {
        let before = self.rest.len();
        while let Some((byte, rest)) = self.rest.split_last() {
            let [later, last] = self.later;
            let rises =
                later.is_ascii_uppercase() && (!byte.is_ascii_uppercase() || last.is_ascii_lowercase());
            if !is_of_word(*byte) || rises && self.rest.len() < before {
                break;
            }
            self.sum = self.sum.with(*byte);
            self.later = [*byte, later];
            self.rest = rest;
        }
        self.rest.len() < before
    }
}

/// A text without the few signs at its end that may stand between two words of a name.
fn without_signs(text: &[u8]) -> &[u8] {
    let signs = text.iter().rev().take(MAX_BETWEEN);
    let signs = signs.take_while(|byte| !is_of_word(**byte)).count();
    text.get(..text.len() - signs).unwrap_or_default()
}

/// Signs between two words of a name.
const MAX_BETWEEN: usize = 3;

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
