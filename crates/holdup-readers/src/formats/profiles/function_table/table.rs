//! Headings and rows of the tables of functions, by the profiler that prints them.

use crate::formats::report::{length, name_of, number, percent};

/// Whose table it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Table {
    Pstats,
    RubyProf,
    Stackprof,
    /// Sorted by the time of a function itself, or with what it calls.
    RprofSelf,
    RprofTotal,
    Gprof,
    Dprof,
    /// `go tool pprof -top`.
    Pprof,
    /// `callgrind_annotate`: instructions.
    Callgrind,
    /// Of zsh's functions: milliseconds.
    Zprof,
}

/// A row: seconds or samples, and per cent.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) own: f64,
    pub(super) own_percent: Option<f64>,
    pub(super) total: Option<f64>,
    pub(super) calls: String,
    pub(super) name: String,
}

/// `6,234,567 ( 4.20%)  sort.c:compare [/srv/sort]`; other events may stand between.
fn callgrind_row(line: &str) -> Option<Row> {
    let (count, rest) = line.split_once('(')?;
    let (share, rest) = rest.split_once("%)")?;
    let name = rest.rsplit("%)").next()?.trim();
    name.split_whitespace().next()?.contains(':').then_some(())?;
    Some(Row {
        own: number(count.trim())?,
        own_percent: Some(number(share.trim())?),
        total: None,
        calls: String::new(),
        name: name_of(name),
    })
}

/// Seconds of `2.08s`, `410ms`, `1.5mins`, `2.10hrs`, or `0`.
fn seconds_of(word: &str) -> Option<f64> {
    match word {
        "0" => Some(0.0),
        word => length(word),
    }
}

impl Table {
    /// The table that a heading begins.
    pub(super) fn of(line: &str) -> Option<Table> {
        let words: Vec<&str> = line.split_whitespace().take(12).collect();
        Some(match words.as_slice() {
            ["ncalls", "tottime", "percall", "cumtime", "percall", ..] => Table::Pstats,
            ["%self", "total", "self", "wait", "child", "calls", "name", ..] => Table::RubyProf,
            ["TOTAL", "(pct)", "SAMPLES", "(pct)", "FRAME"] => Table::Stackprof,
            ["self.time", "self.pct", ..] => Table::RprofSelf,
            ["total.time", "total.pct", ..] => Table::RprofTotal,
            ["time", "seconds", "seconds", .., "name"] => Table::Gprof,
            ["%Time", "ExclSec", "CumulS", ..] => Table::Dprof,
            ["flat", "flat%", "sum%", "cum", "cum%"] => Table::Pprof,
            ["Ir", .., "file:function"] => Table::Callgrind,
            ["num", "calls", "time", "self", "name"] => Table::Zprof,
            _ => return None,
        })
    }

    pub(super) fn row(self, line: &str) -> Option<Row> {
        let words: Vec<&str> = line.split_whitespace().take(40).collect();
        let at = |place: usize| words.get(place).copied();
        let figure = |place: usize| at(place).and_then(number);
        let name_from = |place: usize| {
            let name = words.get(place..)?.join(" ");
            (!name.is_empty()).then(|| name_of(&name))
        };
        match self {
            Table::Pstats => Some(Row {
                own: figure(1)?,
                own_percent: None,
                total: Some(figure(3)?),
                // Of a function that calls itself, all calls and those from outside.
                calls: at(0)
                    .filter(|calls| calls.starts_with(|first: char| first.is_ascii_digit()))?
                    .to_owned(),
                name: name_from(5)?,
            }),
            Table::RubyProf => Some(Row {
                own: figure(2)?,
                own_percent: Some(figure(0)?),
                total: Some(figure(1)?),
                calls: at(5)?.to_owned(),
                name: name_from(6)?.trim_start_matches('*').to_owned(),
            }),
            Table::Stackprof => Some(Row {
                own: figure(2)?,
                own_percent: Some(percent(at(3)?)?),
                total: Some(figure(0)?),
                calls: String::new(),
                name: name_from(4)?,
            }),
            Table::RprofSelf | Table::RprofTotal => {
                let first = words.len().checked_sub(4)?;
                let (one, share, other) = (figure(first)?, figure(first + 1)?, figure(first + 2)?);
                figure(first + 3)?;
                let name = name_of(&words.get(..first)?.join(" "));
                let name = name.trim_matches('"').to_owned();
                let by_self = self == Table::RprofSelf;
                (!name.is_empty()).then_some(Row {
                    own: if by_self { one } else { other },
                    own_percent: by_self.then_some(share),
                    total: Some(if by_self { other } else { one }),
                    calls: String::new(),
                    name,
                })
            }
            Table::Gprof => {
                let numbers = (0..6).take_while(|place| figure(*place).is_some()).count();
                let calls = if numbers >= 4 { at(3)? } else { "" };
                let (own_percent, own) = (figure(0)?, figure(2)?);
                (numbers >= 3).then_some(())?;
                Some(Row {
                    own,
                    own_percent: Some(own_percent),
                    total: None,
                    calls: calls.to_owned(),
                    name: name_from(numbers)?,
                })
            }
            Table::Pprof => Some(Row {
                own: seconds_of(at(0)?)?,
                own_percent: Some(percent(at(1)?)?),
                total: Some(seconds_of(at(3)?)?),
                calls: String::new(),
                name: name_from(5)?,
            }),
            Table::Callgrind => callgrind_row(line),
            Table::Zprof => {
                // ` 1)    2         123.45    61.73   45.12%    100.02    50.01   36.55%  compinit`.
                at(0)?.strip_suffix(')')?.parse::<u32>().ok()?;
                Some(Row {
                    own: figure(5)? / 1e3,
                    own_percent: Some(percent(at(7)?)?),
                    total: Some(figure(2)? / 1e3),
                    calls: at(1)?.to_owned(),
                    name: name_from(8)?,
                })
            }
            Table::Dprof => Some(Row {
                own: figure(1)?,
                own_percent: Some(figure(0)?),
                total: Some(figure(2)?),
                calls: at(3)?.to_owned(),
                name: name_from(6)?,
            }),
        }
    }

    /// The whole that a line names.
    pub(super) fn whole(line: &str) -> Option<f64> {
        // `197 function calls (192 primitive calls) in 0.002 seconds`, `Total: 25.0`, `  Samples: 29 (0.00% miss rate)`.
        if line.contains(" function calls") {
            let (_, seconds) = line.rsplit_once(" in ")?;
            let seconds = seconds.strip_suffix(" seconds")?;
            return number(seconds.strip_suffix(" CPU").unwrap_or(seconds));
        }
        if let Some(totals) = line.strip_suffix("PROGRAM TOTALS") {
            return number(totals.split_whitespace().next()?);
        }
        // `Duration: 30.10s, Total samples = 7.90s (26.25%)`, `Showing nodes accounting for 5.40s, 68.35% of 7.90s total`.
        let of_pprof = line
            .split_once("Total samples = ")
            .map(|(_, rest)| rest)
            .or_else(|| {
                line.strip_prefix("Showing nodes accounting for ")?
                    .split_once(" of ")
                    .map(|(_, rest)| rest)
            });
        if let Some(rest) = of_pprof {
            let word = rest.split_whitespace().next()?;
            return seconds_of(word.trim_end_matches(','));
        }
        let rest = line
            .strip_prefix("Total: ")
            .or_else(|| line.strip_prefix("Samples: "))?;
        number(rest.split_whitespace().next()?)
    }
}
