//! A cache that never hits, by its counters: ccache, sccache, and whatever else lists hits and misses with their names.
//!
//! In: lines of names with counts, one below the other. Out: hits against all lookups where nearly none hit, and the largest other count beside
//! them, which is the reason for which something was not even looked up.

use super::Told;
use crate::statements::shape;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// Lookups from which a cache without hits is more than a cold one.
const MIN_LOOKUPS: f64 = 100.0;

/// The part of hits of all lookups below which the cache is of no use.
const MAX_HIT_SHARE: f64 = 0.01;

/// Lines between two counters of one list.
const MAX_LINES_BETWEEN: u64 = 4;

/// Bytes of a name, and lines of a list.
const MAX_NAME_BYTES: usize = 60;
const MAX_LINES: usize = 200;

/// Parts of names that are no counts of lookups: sizes, settings, ratios, sums.
const NO_COUNTS: [&str; 16] = [
    "rate",
    "ratio",
    "size",
    "files",
    "config",
    "directory",
    "total",
    "request",
    "calls",
    "lookups",
    "max",
    "time",
    "cleanups",
    "performed",
    "cached",
    "bytes",
];

/// The counters of one artefact.
#[derive(Debug, Default)]
pub(super) struct Hits {
    list: List,
    last: u64,
    worst: Option<List>,
}

/// One list of counters.
#[derive(Debug, Default, Clone)]
struct List {
    hits: Option<f64>,
    misses: Option<f64>,
    /// The largest of the other counts, with its name.
    other: Option<(f64, String)>,
    line: u64,
    lines: Vec<u64>,
}

/// A name with a count: `cache hit (direct)      0`, `Hits:  0 / 6459 (0.00%)`, `keyspace_hits:12`.
fn counter(text: &str) -> Option<(&str, f64)> {
    let named = text.starts_with(|char: char| char.is_ascii_alphabetic());
    let at = text
        .find(|char: char| char.is_ascii_digit())
        .filter(|at| named && *at <= MAX_NAME_BYTES)?;
    let (name, rest) = text.split_at_checked(at)?;
    let between = name.ends_with([' ', '\t', ':', '=']);
    let digits = rest
        .find(|char: char| !char.is_ascii_digit() && char != ',')
        .unwrap_or(rest.len());
    let (number, behind) = rest.split_at_checked(digits)?;
    // A number with a unit, a version, a time are no counts.
    let alone =
        behind.is_empty() || behind.starts_with(" /") || behind.starts_with("  ") || behind.starts_with('\t');
    let name = name.trim_end_matches([' ', '\t', ':', '=']);
    let value: f64 = number.replace(',', "").parse().ok()?;
    (between && alone && !name.is_empty()).then_some((name, value))
}

impl Hits {
    /// Whether a line may belong to the list that is being read.
    pub(super) fn is_within(&self, number: u64) -> bool {
        (self.list.hits.is_some() || self.list.misses.is_some()) && number <= self.last + MAX_LINES_BETWEEN
    }

    /// Takes a line, which has a word for hits or misses or stands below one that has.
    pub(super) fn line(&mut self, text: &str, number: u64, has_word: bool) {
        if !has_word && !self.is_within(number) {
            return;
        }
        let Some((name, value)) = counter(text) else {
            return;
        };
        if number > self.last + MAX_LINES_BETWEEN {
            self.close();
        }
        self.last = number;
        let lower = name.to_ascii_lowercase();
        let list = &mut self.list;
        if list.lines.len() < MAX_LINES {
            list.lines.push(number);
        }
        let counts = !NO_COUNTS.iter().any(|part| lower.contains(part));
        if !counts {
            return;
        }
        let word = |wanted: &[&str]| {
            let mut words = lower.split(|char: char| !char.is_ascii_alphabetic());
            words.any(|word| wanted.contains(&word))
        };
        if word(&["hit", "hits"]) {
            *list.hits.get_or_insert(0.0) += value;
            list.line = number;
        } else if word(&["miss", "misses"]) {
            *list.misses.get_or_insert(0.0) += value;
        } else if list.other.as_ref().is_none_or(|(most, _)| value >= *most) {
            list.other = Some((value, shape::sentence(name.as_bytes(), 0)));
        }
    }

    fn close(&mut self) {
        let list = std::mem::take(&mut self.list);
        let lookups = list.hits.unwrap_or(0.0) + list.misses.unwrap_or(0.0);
        let known = list.hits.is_some() && list.misses.is_some();
        let useless = lookups >= MIN_LOOKUPS && list.hits.unwrap_or(0.0) < MAX_HIT_SHARE * lookups;
        let more = self
            .worst
            .as_ref()
            .is_none_or(|worst| lookups > worst.misses.unwrap_or(0.0));
        if known && useless && more {
            self.worst = Some(list);
        }
    }

    /// The list with most misses.
    pub(super) fn end(&mut self, told: &mut Told) -> Option<Fact> {
        self.close();
        let list = self.worst.take()?;
        for line in &list.lines {
            told.add(*line);
        }
        let (hits, misses) = (list.hits?, list.misses?);
        let other = match list.other {
            Some((count, name)) if count > 0.0 => format!("; beside them {name}: {count:.0}"),
            _ => String::new(),
        };
        Some(Fact {
            kind: StatementKind::Took,
            share: Some(misses / (hits + misses)),
            ns: None,
            line: list.line,
            text: format!(
                "the cache never hits, or nearly so: {hits:.0} hits and {misses:.0} misses ({:.2} % hits){other}",
                100.0 * hits / (hits + misses)
            ),
        })
    }
}
