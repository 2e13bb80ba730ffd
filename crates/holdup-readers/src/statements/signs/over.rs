//! A limit that was passed, by names with values: `elapsed_time=23.28 slow_flush_log_threshold=20.0 plugin_id="object:a14"`.
//!
//! In: lines with a name of a limit. Out: for each thing that the lines name how often its limit was passed, and the largest value.

use super::{Told, length_ns};
use crate::statements::shape;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;

/// Parts of names of a limit.
const LIMITS: [&str; 2] = ["threshold", "limit"];

/// Words of names of what is measured against it, and those with which a time is a length and no time of day.
const MEASURED: [&str; 7] = ["elapsed", "duration", "took", "latency", "lag", "delay", "waited"];
const LENGTHS: [&str; 9] = [
    "response",
    "query",
    "wait",
    "flush",
    "request",
    "processing",
    "total",
    "execution",
    "run",
];

/// Names with values of one line, things with a limit, and bytes of a name.
const MAX_PAIRS: usize = 40;
const MAX_THINGS: usize = 64;
const MAX_NAME_BYTES: usize = 60;

/// How many times its limit a value is at most; what is more is of another unit, or another thing.
const MAX_TIMES: f64 = 1e6;

/// Things whose limit was passed.
#[derive(Debug, Default)]
pub(super) struct Over {
    things: Vec<Thing>,
}

#[derive(Debug)]
struct Thing {
    /// The shape of the lines, and the names and values that are no figures.
    key: u64,
    times: u64,
    largest: f64,
    lines: Vec<u64>,
    line: u64,
    ns: Option<Ns>,
    text: String,
}

/// Lines of one thing that are kept as told.
const MAX_LINES: usize = 100;

/// A value and the limit that it has passed, with their names as the line has them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Passed<'a> {
    measured: (&'a str, &'a str),
    limit: (&'a str, &'a str),
    value: f64,
    ns: Option<Ns>,
}

/// A number, with the length of time that it is where it has a unit.
fn value(text: &str) -> Option<(f64, Option<Ns>)> {
    if let Ok(value) = text.parse::<f64>() {
        return (value.is_finite() && value >= 0.0).then_some((value, None));
    }
    let ns = length_ns(text)?;
    Some((ns, Some(ns as Ns)))
}

/// The length that a number is by the end of its name: `elapsed_ms`.
fn by_name(name: &str, value: f64) -> Option<Ns> {
    const ENDS: [(&str, f64); 7] = [
        ("_us", 1e3),
        ("_ms", 1e6),
        ("_millis", 1e6),
        ("Ms", 1e6),
        ("_s", 1e9),
        ("_secs", 1e9),
        ("_seconds", 1e9),
    ];
    let (_, unit) = ENDS.iter().find(|(end, _)| name.ends_with(end))?;
    Some((value * unit).clamp(0.0, super::MAX_LENGTH_NS) as Ns)
}

/// A word without the quotes around it.
fn strip(word: &str) -> &str {
    word.trim_matches(['"', '\''])
}

/// Names with values: `name=value`, `name: value`, with or without quotes.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    let between = |char: char| char.is_whitespace() || matches!(char, ',' | ';' | '(' | ')' | '{' | '}');
    let mut name: Option<&str> = None;
    for word in text.split(between).filter(|word| !word.is_empty()) {
        if pairs.len() >= MAX_PAIRS {
            break;
        }
        // `longer than write_threshold: elapsed=4`: the colon ends a sentence.
        let is_pair = word
            .split_once('=')
            .is_some_and(|(name, value)| !name.is_empty() && !value.is_empty());
        if let Some(known) = name.take().filter(|_| !is_pair) {
            pairs.push((known, strip(word)));
            continue;
        }
        match word.split_once(['=', ':']) {
            Some((known, "")) => name = Some(strip(known)),
            Some((known, value)) => pairs.push((strip(known), strip(value))),
            None => {}
        }
    }
    pairs
}

/// Whether a name is of a length of time, by its words.
fn is_measured(name: &str) -> bool {
    let words: Vec<String> = name
        .split(|char: char| !char.is_alphanumeric())
        .map(str::to_ascii_lowercase)
        .collect();
    let has = |word: &str| words.iter().any(|one| one == word);
    name.len() <= MAX_NAME_BYTES
        && (MEASURED.iter().any(|word| has(word)) || has("time") && LENGTHS.iter().any(|word| has(word)))
}

/// Whether a limit without a unit is one of time by its name: rows and bytes have limits, too.
fn is_of_time(name: &str) -> bool {
    has(
        name,
        &["threshold", "time", "_ms", "latency", "duration", "elapsed"],
    )
}

/// Whether all of a name is that of a field, and no part of an address.
fn is_field(name: &str) -> bool {
    name.chars()
        .all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.'))
}

fn has(name: &str, parts: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    name.len() <= MAX_NAME_BYTES && parts.iter().any(|part| name.contains(part))
}

/// The value of a line that has passed its limit, of several the first.
fn passed<'a>(pairs: &[(&'a str, &'a str)]) -> Option<Passed<'a>> {
    let limit = pairs
        .iter()
        .find(|(name, shown)| has(name, &LIMITS) && value(shown).is_some())?;
    let (allowed, unit) = value(limit.1).filter(|(allowed, _)| *allowed > 0.0)?;
    let unit = unit.or_else(|| by_name(limit.0, allowed));
    if !is_field(limit.0) || unit.is_none() && !is_of_time(limit.0) {
        return None;
    }
    pairs.iter().find_map(|(name, shown)| {
        if !is_measured(name) || has(name, &LIMITS) {
            return None;
        }
        let (measured, ns) = value(shown)?;
        let ns = ns.or_else(|| by_name(name, measured));
        let (of, most) = match (ns, unit) {
            (Some(ns), Some(unit)) => (ns as f64, unit as f64),
            (None, None) => (measured, allowed),
            // Of different units nothing is known.
            _ => return None,
        };
        (of > most && of / most < MAX_TIMES).then_some(Passed {
            measured: (*name, *shown),
            limit: *limit,
            value: measured,
            ns,
        })
    })
}

impl Over {
    /// Takes a line.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let pairs = pairs(text);
        let Some(passed) = passed(&pairs) else { return };
        let mut names = String::new();
        for (name, shown) in &pairs {
            if value(shown).is_none() && has(name, &["id", "name", "query", "task", "job", "pool"]) {
                names.push_str(shown);
                names.push(' ');
            }
        }
        let key = shape::shape(text.as_bytes(), 0) ^ hash(&names);
        let known = self.things.iter().position(|thing| thing.key == key);
        let place = match known {
            Some(place) => place,
            None if self.things.len() < MAX_THINGS => {
                self.things.push(Thing {
                    key,
                    times: 0,
                    largest: 0.0,
                    lines: Vec::new(),
                    line: number,
                    ns: None,
                    text: String::new(),
                });
                self.things.len() - 1
            }
            None => return,
        };
        let Some(thing) = self.things.get_mut(place) else {
            return;
        };
        thing.times += 1;
        if thing.lines.len() < MAX_LINES {
            thing.lines.push(number);
        }
        if passed.value > thing.largest {
            thing.largest = passed.value;
            thing.line = number;
            thing.ns = passed.ns;
            thing.text = format!(
                "{} {} is over {} {}: {}",
                passed.measured.0,
                passed.measured.1,
                passed.limit.0,
                passed.limit.1,
                shape::sentence(message(text), 0)
            );
        }
    }

    /// For each thing how often, and the largest.
    pub(super) fn end(&mut self, told: &mut Told) -> Vec<Fact> {
        let things = std::mem::take(&mut self.things);
        let fact = |thing: Thing| {
            for line in &thing.lines {
                told.add(*line);
            }
            let often = match thing.times {
                1 => String::new(),
                times => format!("{times} times, at most: "),
            };
            Fact {
                kind: StatementKind::Stalled,
                share: None,
                ns: thing.ns,
                line: thing.line,
                text: format!("{often}{}", thing.text),
            }
        };
        things.into_iter().map(fact).collect()
    }
}

/// The words behind the time of a line: a time has signs and digits first in each of its words.
fn message(text: &str) -> &[u8] {
    let mut rest = text;
    while let Some((word, behind)) = rest.split_once(' ')
        && word.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '+' | '-'))
    {
        rest = behind.trim_start();
    }
    rest.as_bytes()
}

fn hash(text: &str) -> u64 {
    use std::hash::BuildHasher;
    foldhash::fast::FixedState::default().hash_one(text)
}
