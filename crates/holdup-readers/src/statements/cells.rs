//! Cells of a table's row, and what each is: words with their units, or what stands between signs or wide blanks.

use super::tables::COLUMNS;
use crate::gather::text_of;

/// Units of sizes and rates behind a number.
const SIZES: [(&str, f64); 17] = [
    ("b", 1.0),
    ("k", 1e3),
    ("kb", 1e3),
    ("kib", 1024.0),
    ("ki", 1024.0),
    ("m", 1e6),
    ("mb", 1e6),
    ("mib", 1_048_576.0),
    ("mi", 1_048_576.0),
    ("g", 1e9),
    ("gb", 1e9),
    ("gib", 1_073_741_824.0),
    ("gi", 1_073_741_824.0),
    ("t", 1e12),
    ("tb", 1e12),
    ("tib", 1_099_511_627_776.0),
    ("ti", 1_099_511_627_776.0),
];

/// A cell as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Share(f64),
    Size(f64),
    Count(f64),
    /// A length of time, in nanoseconds.
    Length(f64),
}

/// Units of lengths behind a number.
const LENGTHS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// Parts of a length of time, longest first, with their nanoseconds.
const PARTS: [(&[&str], f64); 5] = [
    (&["d", "day", "days"], 8.64e13),
    (&["h", "hr", "hrs", "hour", "hours"], 3.6e12),
    (&["m", "min", "mins", "minute", "minutes"], 6e10),
    (&["s", "sec", "secs", "second", "seconds"], 1e9),
    (&["ms"], 1e6),
];

/// A length in several parts, each shorter than the one before: `41m 0s`, `1h2m`, `2 min 3 s`. One part alone may be a size: `12m`.
pub(super) fn parts(cell: &str) -> Option<f64> {
    let mut rest = cell.trim();
    let (mut sum, mut count, mut next) = (0.0, 0, 0);
    while !rest.is_empty() {
        let (number, behind) = number(rest)?;
        let end = behind
            .find(|char: char| !char.is_alphabetic())
            .unwrap_or(behind.len());
        let (unit, more) = behind.split_at_checked(end)?;
        let found = PARTS
            .iter()
            .skip(next)
            .position(|(names, _)| names.contains(&unit))?;
        sum += number * PARTS.get(next + found)?.1;
        (count, next) = (count + 1, next + found + 1);
        rest = more.trim_start_matches([',', ' ']);
    }
    (count >= 2).then_some(sum)
}

/// A line without quoting, with plain blanks, and with names of columns out of the frame that they stand in, in its place.
pub(super) fn plain(line: &[u8]) -> String {
    let mut line = line;
    while let Some(rest) = line.strip_prefix(b"> ") {
        line = rest;
    }
    let text = text_of(line).replace('\u{a0}', " ");
    unframed(&text).unwrap_or(text)
}

/// The names of columns that stand within the upper edge of a frame: `┌─name─┬─elapsed─┐`, `+-name-+-elapsed-+`.
fn unframed(text: &str) -> Option<String> {
    let inner = text.trim();
    let drawn = inner.starts_with(['┌', '┏', '╭']);
    if !drawn && !inner.starts_with("+-") || !inner.contains(char::is_alphabetic) {
        return None;
    }
    let chars: Vec<char> = text.chars().collect();
    let edge = |at: usize| chars.get(at).is_some_and(|char| matches!(char, '-' | '+'));
    let plain = chars.iter().enumerate().map(|(at, char)| match char {
        '┌' | '┐' | '┬' | '┏' | '┓' | '┳' | '╭' | '╮' => '│',
        '─' | '━' => ' ',
        '+' if !drawn => '│',
        // A dash within a name has letters on both sides.
        '-' if !drawn && (at.checked_sub(1).is_none_or(edge) || edge(at + 1)) => ' ',
        char => *char,
    });
    Some(plain.collect())
}

/// Signs that stand between cells.
fn is_rule(char: char) -> bool {
    matches!(char, '|' | '│' | '┃' | '┊' | '║')
}

/// Cells between signs or two blanks, with their places in characters; `ruled` says whether signs stand between them.
pub(super) fn cells(text: &str) -> (Vec<(usize, usize, String)>, bool) {
    let ruled = text.chars().filter(|char| is_rule(*char)).count() >= 2;
    let chars: Vec<char> = text.chars().collect();
    let mut cells = Vec::new();
    let mut at = 0;
    while at < chars.len() && cells.len() <= COLUMNS {
        let between = |at: usize| match (chars.get(at), ruled) {
            (Some(char), true) => is_rule(*char),
            (Some('\t'), false) => true,
            (Some(' '), false) => matches!(chars.get(at + 1), None | Some(' ' | '\t')) || at == 0,
            _ => false,
        };
        let end = (at..chars.len()).find(|at| between(*at)).unwrap_or(chars.len());
        let cell: String = chars.get(at..end).unwrap_or_default().iter().collect();
        let lead = cell.chars().take_while(|char| char.is_whitespace()).count();
        let cell = cell.trim().to_owned();
        let first_or_last = cells.is_empty() && at == 0 || end == chars.len();
        if !cell.is_empty() || ruled && !first_or_last {
            let begin = at + lead;
            cells.push((begin, begin + cell.chars().count(), cell));
        }
        at = end + 1;
    }
    (cells, ruled)
}

/// Whether what stands last in a row is two cells by their types, a number and a place in a program: `0.004 /path:7(name)`.
pub(super) fn ends_in_two(text: &str) -> bool {
    let (cells, _) = cells(text);
    let two = cells.last().and_then(|(_, _, cell)| cell.split_once(' '));
    // `app.py:7(name)`: a path need not begin at the root.
    let place = |cell: &str| {
        let line = cell.split_once(':').map_or("", |(_, line)| line);
        line.starts_with(|first: char| first.is_ascii_digit()) && line.contains('(')
    };
    two.is_some_and(|(first, second)| {
        let (alone, second) = (
            number(first).is_some_and(|(_, unit)| unit.is_empty()),
            second.trim_start(),
        );
        alone && (second.starts_with(['/', '<', '{']) || place(second))
    })
}

/// Words, with a number and its unit as one, and two of them with a stroke between too.
pub(super) fn words(text: &str) -> Vec<(usize, usize, String)> {
    let mut words: Vec<(usize, usize, String)> = Vec::new();
    let mut begin = None;
    let chars: Vec<char> = text.chars().chain([' ']).collect();
    for (at, char) in chars.iter().enumerate() {
        match (char.is_whitespace(), begin) {
            (false, None) => begin = Some(at),
            (true, Some(from)) => {
                let word: String = chars.get(from..at).unwrap_or_default().iter().collect();
                begin = None;
                let joins = words.last().is_some_and(|(_, _, last)| {
                    let number = last
                        .rsplit(' ')
                        .next()
                        .is_some_and(|part| part.ends_with(|last: char| last.is_ascii_digit()));
                    number && is_unit(&word) && !last.ends_with('/')
                        || word == "/" && last.starts_with(|first: char| first.is_ascii_digit())
                        || last.ends_with(" /")
                });
                match words.last_mut().filter(|_| joins) {
                    Some(last) => {
                        last.1 = at;
                        last.2.push(' ');
                        last.2.push_str(&word);
                    }
                    None => words.push((from, at, word)),
                }
            }
            _ => {}
        }
    }
    words
}

/// `%`, `MiB`, `K/s`.
fn is_unit(word: &str) -> bool {
    // A small letter alone is a name.
    let letter = word.len() == 1 && word.starts_with(|first: char| first.is_ascii_lowercase());
    let lower = word.to_ascii_lowercase();
    let size = lower.strip_suffix("/s").unwrap_or(&lower);
    let length = !letter && LENGTHS.iter().any(|(unit, _)| *unit == word);
    word == "%" || length || !letter && SIZES.iter().any(|(unit, _)| *unit == size)
}

/// The number that a cell begins with, and what stands behind it.
pub(super) fn number(cell: &str) -> Option<(f64, &str)> {
    let end = cell
        .find(|char: char| !(char.is_ascii_digit() || matches!(char, '.' | ',')))
        .unwrap_or(cell.len());
    let (digits, unit) = cell.split_at_checked(end)?;
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    Some((crate::numbers::decimal(digits.as_bytes())?, unit.trim()))
}

/// A length as clocks have it, in nanoseconds: `00:04:12.31`, `2-03:10:22`, `1 day 02:03:04`.
pub(super) fn clock(cell: &str) -> Option<f64> {
    let (days, rest) = match cell.split_once(" days ").or_else(|| cell.split_once(" day ")) {
        Some((days, rest)) => (days.parse::<f64>().ok()?, rest),
        None => match cell.split_once('-') {
            Some((days, rest)) => (days.parse::<f64>().ok()?, rest),
            None => (0.0, cell),
        },
    };
    let mut parts = rest.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = |part: &str| part.parse::<u32>().ok().map(f64::from);
    let seconds = crate::numbers::decimal(seconds.as_bytes()).filter(|seconds| *seconds < 60.0)?;
    let sum = days * 86_400.0 + whole(hours)? * 3_600.0 + whole(minutes)? * 60.0 + seconds;
    parts.next().is_none().then_some(sum * 1e9)
}

/// What a cell of a column measures.
pub(super) fn value(column: &str, cell: &str) -> Option<Value> {
    let (first, unit) = number(cell)?;
    // How old something is is no time that it took.
    let of_age = ["age", "uptime", "created", "status"]
        .iter()
        .any(|name| column.eq_ignore_ascii_case(name));
    if let Some(ns) = parts(cell).filter(|_| !of_age) {
        return Some(Value::Length(ns));
    }
    let size = |number: f64, unit: &str| {
        let unit = unit.to_ascii_lowercase();
        let unit = unit.strip_suffix("/s").unwrap_or(&unit);
        let (_, factor) = SIZES.iter().find(|(name, _)| *name == unit)?;
        Some(number * factor)
    };
    let pair = cell.split_once('/').filter(|(_, limit)| {
        limit
            .trim_start()
            .starts_with(|first: char| first.is_ascii_digit())
    });
    if let Some((used, limit)) = pair {
        // `914 MiB / 1 GiB`: the second is a limit, where the column says so.
        let (used_unit, (limit, limit_unit)) = (number(used)?.1, number(limit.trim())?);
        let (used, limit) = (size(first, used_unit)?, size(limit, limit_unit)?);
        let limited = column.to_ascii_lowercase().contains("limit") && limit > 0.0;
        return Some(match limited {
            true => Value::Share(100.0 * used / limit),
            false => Value::Size(used),
        });
    }
    let share = unit == "%" || unit.is_empty() && column.contains('%');
    match unit {
        _ if share => Some(Value::Share(first)),
        "" => Some(Value::Count(first)),
        // Thousandths of a CPU.
        "m" if column.to_ascii_lowercase().contains("cpu") => Some(Value::Size(first / 1e3)),
        unit => {
            let length = LENGTHS.iter().find(|(name, _)| *name == unit);
            let length = length.map(|(_, factor)| Value::Length(first * factor));
            length.or_else(|| size(first, unit).map(Value::Size))
        }
    }
}

/// What a copy has behind a row to point at it: `<----- not online`, `<== here`.
pub(super) fn without_arrow(text: &str) -> &str {
    let arrow = [" <--", " <==", "\t<--", " \u{2190}"]
        .iter()
        .filter_map(|arrow| text.find(arrow))
        .min();
    arrow.and_then(|at| text.get(..at)).map_or(text, str::trim_end)
}

/// Names of columns that together make a table of where CPUs spend their time: its figures are per cent without the sign.
const IDLE: [&str; 4] = ["idle", "%idle", "idl", "id"];
const IN_PROGRAMS: [&str; 5] = ["user", "%user", "usr", "%usr", "us"];
const IN_KERNEL: [&str; 6] = ["sys", "%sys", "system", "%system", "sy", "kernel"];

/// Whether columns are of that.
pub(super) fn is_of_cpus<'a>(names: impl Iterator<Item = &'a str> + Clone) -> bool {
    let has = |known: &[&str]| {
        names
            .clone()
            .any(|name| known.iter().any(|one| name.eq_ignore_ascii_case(one)))
    };
    has(&IDLE) && has(&IN_PROGRAMS) && has(&IN_KERNEL)
}
