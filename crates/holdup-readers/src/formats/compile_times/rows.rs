//! Headings, titles and rows of time reports.

use super::{MAX_SECONDS, NAME_BYTES};
use crate::numbers::decimal;

/// Times that a row may have: user, system, both, wall, and memory.
const MAX_COLUMNS: usize = 8;

/// `Time variable    usr   sys   wall   GGC`, `Execution times (seconds)`, `---User Time---  … ---Wall Time---  --- Name ---`.
pub(super) fn is_heading(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Time variable") && line.contains("wall")
        || line.starts_with("Execution times (seconds)")
        || line.contains("---Wall Time---") && line.contains("Name ---")
}

/// How titles of LLVM's reports end, and one that stands there without points too.
const TITLES: [&str; 2] = ["timing report", "time report"];
const PASSES: &str = "Pass execution timing report";

/// The title of a group of timers: `... Pass execution timing report ...`, `... Register Allocation ...`.
pub(super) fn title(line: &str) -> Option<&str> {
    let line = line.trim();
    let title = line.trim_matches(['.', ' ']);
    let dotted = line.starts_with("... ") && line.ends_with(" ...") && !title.is_empty();
    (dotted || title == PASSES).then_some(title)
}

/// Whether it is a title that stands at the beginning of such a report.
pub(super) fn is_report(title: &str) -> bool {
    TITLES.iter().any(|known| title.ends_with(known))
}

/// Which of the times of a row is the wall time: its place in the heading.
pub(super) fn wall_of(heading: &str) -> Option<usize> {
    if let Some(columns) = heading.trim_start().strip_prefix("Time variable") {
        return columns.split_whitespace().position(|name| name == "wall");
    }
    let names = heading.split("--").map(|name| name.trim_matches(['-', ' ']));
    names
        .filter(|name| !name.is_empty())
        .position(|name| name == "Wall Time")
}

/// A row: its name, the wall time, how many of its times have a share, and what share that one has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) seconds: f64,
    pub(super) shares: usize,
    pub(super) percent: Option<f64>,
}

/// A time, its share, and the time as it is written.
type Time<'t> = (f64, Option<f64>, &'t str);

/// Times and their shares: `0.19 ( 86%)   0.24 ( 77%)`. How many bytes they are.
fn times(text: &str) -> (Vec<Time<'_>>, usize) {
    let mut found: Vec<Time<'_>> = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|_| found.len() < MAX_COLUMNS) {
        let blanks = rest.len() - rest.trim_start().len();
        let word = rest.trim_start();
        if let Some(inner) = word.strip_prefix('(') {
            let Some((share, _)) = inner.split_once(')') else {
                break;
            };
            let percent = share.trim().strip_suffix('%').map(str::trim);
            let Some(percent) = percent.and_then(|percent| decimal(percent.as_bytes())) else {
                break;
            };
            if let Some((_, share, _)) = found.last_mut() {
                *share = Some(percent);
            }
            at += blanks + 1 + share.len() + 1;
            continue;
        }
        let end = word.find([' ', '\t', '(']).unwrap_or(word.len());
        let (number, _) = word.split_at_checked(end).unwrap_or((word, ""));
        match decimal(number.as_bytes()) {
            Some(value) if (0.0..MAX_SECONDS).contains(&value) => found.push((value, None, number)),
            _ => break,
        }
        at += blanks + end;
    }
    (found, at)
}

impl Row {
    /// ` phase parsing  :   0.19 ( 86%)   0.24 ( 77%)   0.48 ( 81%)   25530 kB ( 83%)`; before GCC 8 with `usr`, `sys`, `wall` behind each.
    pub(super) fn of_gcc(line: &str, wall: Option<usize>) -> Option<Row> {
        let (name, rest) = line.split_once(" :")?;
        let name = name.trim();
        let named =
            name.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '|' | '`' | '-'));
        if !named || name.len() > NAME_BYTES {
            return None;
        }
        let old = rest
            .split_once(" wall")
            .map(|(before, _)| before.replace(" usr", " ").replace(" sys", " "));
        let (found, _) = times(old.as_deref().unwrap_or(rest));
        // Memory is a whole number, with its unit behind it.
        let is_time = |(_, _, word): &&Time<'_>| word.contains(['.', ',']);
        let seconds: Vec<_> = found.iter().take_while(is_time).collect();
        let (value, percent, _) = match wall {
            Some(wall) => seconds.get(wall).or(seconds.last())?,
            None => seconds.last()?,
        };
        let shares = seconds.iter().filter(|(_, share, _)| share.is_some()).count();
        // The sum alone has none.
        (shares > 0 || name.eq_ignore_ascii_case("total")).then(|| Row {
            name: name.to_owned(),
            seconds: *value,
            shares,
            percent: *percent,
        })
    }

    /// `   8.9703 ( 46.4%)   0.1522 (  4.4%)   9.1226 ( 39.9%)   9.1070 ( 39.9%)  Global Variable Optimizer #3`.
    pub(super) fn of_llvm(line: &str, wall: Option<usize>) -> Option<Row> {
        let (found, length) = times(line);
        let name = line.get(length..)?.trim();
        let wall = match wall {
            Some(wall) => found.get(wall),
            None => found.iter().rev().find(|(_, share, _)| share.is_some()),
        };
        let (value, percent, word) = wall?;
        let named = !name.is_empty() && name.len() <= NAME_BYTES && !name.starts_with(['(', ':', '%']);
        (named && percent.is_some() && word.contains('.')).then(|| Row {
            name: name.to_owned(),
            seconds: *value,
            shares: found.iter().filter(|(_, share, _)| share.is_some()).count(),
            percent: *percent,
        })
    }
}
