//! Rows of `tkprof`: the calls of a statement and the events that it waited for.

use crate::formats::report::number;

/// The heading of a table of calls.
pub(super) fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    ["call", "count", "cpu", "elapsed", "disk", "query"]
        .iter()
        .all(|name| words.next() == Some(name))
}

/// Figures of the row `total`, or of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    pub(super) count: f64,
    pub(super) cpu: f64,
    pub(super) elapsed: f64,
    pub(super) disk: f64,
    pub(super) rows: f64,
}

/// `Fetch      120      1.20      35.20      12345      23456          0          1200`.
pub(super) fn figures(line: &str) -> Option<(&str, Figures)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    if !matches!(name, "Parse" | "Execute" | "Fetch" | "total") {
        return None;
    }
    let mut next = || number(words.next()?);
    let (count, cpu, elapsed, disk) = (next()?, next()?, next()?, next()?);
    let (_query, _current, rows) = (next()?, next()?, next()?);
    Some((
        name,
        Figures {
            count,
            cpu,
            elapsed,
            disk,
            rows,
        },
    ))
}

/// `  db file sequential read      12345        0.30         33.12`: the event, how often, and the seconds of all waits.
pub(super) fn event(line: &str) -> Option<(&str, f64, f64)> {
    let (rest, total) = line.rsplit_once(char::is_whitespace)?;
    let (rest, most) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    let (name, times) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    number(most)?;
    let name = name.trim();
    name.starts_with(char::is_alphabetic)
        .then_some((name, number(times)?, number(total)?))
}
