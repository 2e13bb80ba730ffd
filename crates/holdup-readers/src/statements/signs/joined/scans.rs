//! A repair of a pool that starts over: what was scanned falls back, and the log says which disk failed a read then.
//!
//! In: lines of `zpool status` again and again (`1.60T scanned out of 29.9T at 286M/s`, `12.3G resilvered, 41.2% done`), perhaps with a time in
//! front, and lines of the kernel about errors of disks. Out: from how much to how little it fell, and the disk.

use super::{Line, behind, size};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// The part of what was done that is left, from which it began again and did not just count anew.
const FELL_TO: f64 = 0.5;

/// The part of the whole that has to be done before a fall says something.
const MIN_DONE: f64 = 0.001;

/// The part of the whole from which the scan had come to its end, and what follows is the next one.
const MAX_DONE: f64 = 0.9;

/// Seconds of a day, and within which an error of a disk is of the fall.
const DAY: i64 = 86_400;
const NEAR: i64 = 120;

/// Errors that are kept, and bytes of words.
const MAX_ERRORS: usize = 200;
const MAX_CHARS: usize = 60;

/// How far a scan was in one report.
#[derive(Debug, Clone)]
struct Report {
    done: f64,
    told: String,
    all: String,
    clock: Option<i64>,
    number: u64,
}

#[derive(Debug)]
struct Trouble {
    disk: String,
    words: String,
    clock: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Scans {
    pool: String,
    last: Option<Report>,
    /// The first fall: before and after, and how often.
    fall: Option<(Report, Report)>,
    /// The pool of that fall.
    fallen: String,
    falls: u64,
    errors: Vec<Trouble>,
}

/// Seconds since midnight of the first time of day in a text, and its words.
fn clock(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let digit = |at: usize| {
        bytes
            .get(at)
            .filter(|byte| byte.is_ascii_digit())
            .map(|byte| i64::from(byte - b'0'))
    };
    (0..bytes.len().saturating_sub(7)).take(60).find_map(|at| {
        let two = |at: usize| Some(digit(at)? * 10 + digit(at + 1)?);
        let colons = bytes.get(at + 2) == Some(&b':') && bytes.get(at + 5) == Some(&b':');
        let (hours, minutes, seconds) = (two(at)?, two(at + 3)?, two(at + 6)?);
        (colons && hours < 24 && minutes < 60 && seconds < 61)
            .then_some(hours * 3_600 + minutes * 60 + seconds)
    })
}

fn shown(clock: Option<i64>) -> String {
    clock.map_or_else(String::new, |clock| {
        format!(
            " at {:02}:{:02}:{:02}",
            clock / 3_600,
            clock / 60 % 60,
            clock % 60
        )
    })
}

/// `1.60T scanned out of 29.9T`: how much, and of how much.
fn report(line: Line<'_>) -> Option<Report> {
    let (before, rest) = line.text.split_once(" scanned out of ")?;
    let told = before.split_whitespace().next_back()?;
    let all = rest.split_whitespace().next()?;
    let done = size(told)? / size(all).filter(|all| *all > 0.0)?;
    Some(Report {
        done,
        told: told.to_owned(),
        all: all.to_owned(),
        clock: clock(line.text),
        number: line.number,
    })
}

/// The disk in `sd 0:0:57:0: [sdbc] …`, `I/O error, dev sdbc, sector …`.
fn disk(text: &str) -> Option<String> {
    if let Some((before, rest)) = text.split_once(": [sd") {
        let name = rest.split(']').next()?;
        let address = before.rsplit(' ').next()?;
        return Some(format!("sd{name} ({address})"));
    }
    let rest = behind(text, "error, dev ").or_else(|| behind(text, "error on dev "))?;
    let name = rest.split([',', ' ']).next()?;
    (!name.is_empty() && name.len() < 32).then(|| name.to_owned())
}

impl Scans {
    pub(super) fn line(&mut self, line: Line<'_>) {
        if let Some(rest) = behind(line.text, "zpool status ") {
            let name = rest
                .split([' ', '|', ';', ')'])
                .find(|word| !word.is_empty() && !word.starts_with('-'));
            let name: String = name.unwrap_or_default().chars().take(MAX_CHARS).collect();
            if name != self.pool {
                self.last = None;
            }
            self.pool = name;
            return;
        }
        if let Some(now) = report(line) {
            // Of another pool the whole is another.
            let last = self.last.replace(now.clone()).filter(|last| last.all == now.all);
            let fell =
                |last: &Report| (MIN_DONE..MAX_DONE).contains(&last.done) && now.done < last.done * FELL_TO;
            if let Some(last) = last.filter(fell) {
                self.falls += 1;
                if self.fall.is_none() {
                    self.pool.clone_into(&mut self.fallen);
                    self.fall = Some((last, now));
                }
            }
            return;
        }
        let lower = line.text.to_ascii_lowercase();
        let words = [
            "unrecovered read error",
            "medium error",
            "i/o error",
            "failed command",
        ];
        let Some(words) = words.iter().find(|words| lower.contains(**words)) else {
            return;
        };
        if let Some(disk) = disk(line.text)
            && self.errors.len() < MAX_ERRORS
        {
            self.errors.push(Trouble {
                disk,
                words: (*words).to_owned(),
                clock: clock(line.text),
            });
        }
    }

    pub(super) fn end(self, told: &mut Told) -> Option<Fact> {
        let (before, after) = self.fall?;
        told.add(after.number);
        let near = |trouble: &&Trouble| {
            let (Some(at), Some(from), Some(to)) = (trouble.clock, before.clock, after.clock) else {
                return false;
            };
            let (from, to) = (from - NEAR, if to < from { to + DAY } else { to });
            (from..=to).contains(&at) || (from..=to).contains(&(at + DAY))
        };
        let trouble = self.errors.iter().find(near).map_or_else(String::new, |trouble| {
            format!(
                "; {} reported {}{}, just when it fell back: a failing disk makes it start over",
                trouble.disk,
                trouble.words,
                shown(trouble.clock)
            )
        });
        let pool = match self.fallen.as_str() {
            "" => String::new(),
            pool => format!(" of {pool}"),
        };
        let again = match self.falls {
            1 => String::new(),
            falls => format!(", {falls} times"),
        };
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: None,
            line: after.number,
            text: format!(
                "the scan{pool} (resilver or scrub) started over{again} and lost its progress: {} of {} were scanned{}, and {}{}{trouble}",
                before.told,
                before.all,
                shown(before.clock),
                after.told,
                shown(after.clock)
            ),
        })
    }
}
