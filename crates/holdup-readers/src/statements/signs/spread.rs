//! A time whose largest value is far from its mean: `mean: 3826.39 ns` and, in the next line, `max: 2073993 ns`; `min/avg/max = 9 us / 12 us /
//! 3 ms`.
//!
//! In: lines with a mean or a maximum. Out: the maximum beside the mean where it is a stall, and not the usual spread.

use super::{Told, length_ns, unit_ns};
use crate::statements::shape;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// How many times the mean a maximum is at least. The 99.99th percentile of times that are spread exponentially is at nine means, and the
/// largest of a million at fourteen: a hundred means are another cause.
const MIN_TIMES_MEAN: f64 = 100.0;

/// The shortest maximum that somebody notices: a millisecond is as long as a thread waits in a queue of its CPU, nanoseconds.
const MIN_MAX_NS: f64 = 1e6;

/// Lines between a mean and its maximum.
const MAX_LINES_BETWEEN: u64 = 3;

/// Facts that are kept.
const MAX_FACTS: usize = 8;

/// Follows the statistics of one artefact.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// The last mean, nanoseconds, with its line and who says it.
    mean: Option<(f64, u64, String)>,
    facts: Vec<Fact>,
    lines: Vec<u64>,
}

/// What a figure is of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Mean,
    Max,
    Other,
}

fn of(word: &str) -> Of {
    match word.to_ascii_lowercase().as_str() {
        "mean" | "avg" | "average" => Of::Mean,
        "max" | "maximum" => Of::Max,
        _ => Of::Other,
    }
}

/// Means and maxima of a list between strokes: `min/avg/max/mdev = 9.6 us / 12 us / 3 ms / 1 us`, `= 1/2/3/4 ms`.
fn between_strokes(text: &str) -> Option<(f64, f64)> {
    let (names, values) = text.split_once(" = ")?;
    let names: Vec<Of> = names.rsplit(' ').next()?.split('/').take(8).map(of).collect();
    let values: Vec<&str> = values.split('/').map(str::trim).take(8).collect();
    let unit = values
        .last()?
        .split(' ')
        .nth(1)
        .and_then(|unit| unit_ns(unit.trim_end_matches(',')));
    let value = |wanted: Of| {
        let shown = *values.get(names.iter().position(|name| *name == wanted)?)?;
        length_ns(shown).or_else(|| Some(shown.split(' ').next()?.parse::<f64>().ok()? * unit?))
    };
    Some((value(Of::Mean)?, value(Of::Max)?))
}

/// Words between the name of a figure and the figure.
const BESIDE: [&str; 9] = [
    "latency",
    "latencies",
    "delay",
    "time",
    "jitter",
    "response",
    "rtt",
    "is",
    "of",
];

/// Figures with their names: `mean: 3826.39 ns`, `max=12ms`, `Max latency 12 us`.
fn named(text: &str) -> Vec<(Of, f64)> {
    let mut found = Vec::new();
    let mut pending = Of::Other;
    let between = |char: char| char.is_whitespace() || matches!(char, ':' | '=' | ',' | ';' | '(' | ')');
    let words: Vec<&str> = text
        .split(between)
        .filter(|word| !word.is_empty())
        .take(80)
        .collect();
    for (at, word) in words.iter().enumerate() {
        if of(word) != Of::Other {
            pending = of(word);
            continue;
        }
        if !word.starts_with(|char: char| char.is_ascii_digit()) {
            // `max allowed 5s` is no maximum of what was.
            if !BESIDE.contains(&word.to_ascii_lowercase().as_str()) {
                pending = Of::Other;
            }
            continue;
        }
        let next = words.get(at + 1).copied().unwrap_or_default();
        let ns = length_ns(word).or_else(|| Some(word.parse::<f64>().ok()? * unit_ns(next)?));
        if let Some(ns) = ns.filter(|_| pending != Of::Other) {
            found.push((pending, ns));
        }
        pending = Of::Other;
    }
    found
}

/// Who writes a line, and of what it is: what stands before its first figure's name.
fn writer(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let at = ["mean", "avg", "average", "min", "max"]
        .iter()
        .filter_map(|name| lower.find(name))
        .min();
    let before = text.get(..at.unwrap_or(0)).unwrap_or_default();
    shape::sentence(before.trim().trim_end_matches(':').as_bytes(), 0)
}

impl Spread {
    /// Takes a line.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        if let Some((mean, max)) = between_strokes(text) {
            self.judge(mean, max, &writer(text), number, number);
            return;
        }
        let figures = named(text);
        let first = |wanted: Of| figures.iter().find(|(of, _)| *of == wanted).map(|(_, ns)| *ns);
        match (first(Of::Mean), first(Of::Max)) {
            (Some(mean), Some(max)) => {
                self.mean = None;
                self.judge(mean, max, &writer(text), number, number);
            }
            (Some(mean), None) => self.mean = Some((mean, number, writer(text))),
            (None, Some(max)) => {
                let writer = writer(text);
                let near = self
                    .mean
                    .take()
                    .filter(|(_, line, of)| number - line.min(&number) <= MAX_LINES_BETWEEN && *of == writer);
                if let Some((mean, line, _)) = near {
                    self.judge(mean, max, &writer, line, number);
                }
            }
            (None, None) => {}
        }
    }

    fn judge(&mut self, mean: f64, max: f64, writer: &str, first: u64, line: u64) {
        let far = mean > 0.0 && max >= MIN_MAX_NS && max / mean >= MIN_TIMES_MEAN;
        if !far || self.facts.len() >= MAX_FACTS {
            return;
        }
        self.lines.extend([first, line]);
        let (mean_ns, max_ns) = (mean as Ns, max as Ns);
        let of = match writer {
            "" => String::new(),
            writer => format!("{writer}: "),
        };
        self.facts.push(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: Some(max_ns),
            line,
            text: format!(
                "{of}the largest delay is {}, {:.0} times the mean of {}",
                duration(max_ns),
                max / mean,
                duration(mean_ns)
            ),
        });
    }

    /// The maxima that are far from their means.
    pub(super) fn end(&mut self, told: &mut Told) -> Vec<Fact> {
        for line in self.lines.drain(..) {
            told.add(line);
        }
        std::mem::take(&mut self.facts)
    }
}
