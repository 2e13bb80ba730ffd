//! Lists of things with the time that each took, under a title or none: `47123 ms: bf/volume.o`, `20.94 seconds ./spec/i18n_spec.rb:14` below
//! the name of what took it.
//!
//! In: lines of a text that no reader knows. Out: of the list with the longest time, what took it. A line of such a list states nothing else:
//! the name of a test or a file may have any word in it.

use super::shape;
use super::tables::Fact;
use crate::gather::text_of;
use crate::numbers::{decimal, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;
use std::ops::RangeInclusive;

/// Rows from which it is a list.
const MIN_ROWS: u64 = 3;

/// Bytes of a line that are looked at.
const LINE: usize = 300;

/// The longest time that is believed, nanoseconds: ten years.
const MAX_NS: f64 = 3e17;

/// Lists of one artefact whose lines are kept.
const MAX_LISTS: usize = 40;

/// Units behind a number, in nanoseconds.
const UNITS: [(&str, f64); 10] = [
    ("ms", 1e6),
    ("s", 1e9),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("msec", 1e6),
    ("sec", 1e9),
    ("secs", 1e9),
    ("seconds", 1e9),
    ("milliseconds", 1e6),
    ("min", 6e10),
];

/// First words of names of rows that add up the others.
const SUMS: [&str; 6] = ["total", "sum", "overall", "all", "elapsed", "finished"];

/// Where the name of a row stands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Named {
    /// Behind the time.
    Behind,
    /// In the line above, which is further out.
    Above,
}

#[derive(Debug)]
struct List {
    named: Named,
    first: u64,
    last: u64,
    rows: u64,
    sum: f64,
    longest: Option<(f64, u64, String)>,
    title: String,
}

/// Follows the lists of one artefact.
#[derive(Debug, Default)]
pub(super) struct TimedLists {
    list: Option<List>,
    longest: Option<List>,
    /// Which lines are of lists, and whether all that they state is told by the list.
    lines: Vec<(RangeInclusive<u64>, Named)>,
    /// The last line that is no row: which it was, how far in it begins, and its text.
    above: (u64, usize, Vec<u8>),
    /// The last line with a colon at its end, and which it was.
    title: (u64, String),
}

impl TimedLists {
    /// Takes a line; whether it is a row.
    pub(super) fn line(&mut self, line: &[u8], number: u64) -> bool {
        let line = line.get(..LINE).unwrap_or(line);
        let Some((ns, at)) = time(line) else {
            self.pass(line, number);
            return false;
        };
        let inward = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let (above, outward, name) = &self.above;
        let named_above = above + 1 == number && *outward < inward && !name.is_empty();
        let (named, name, first) = match named_above {
            true => (
                Named::Above,
                shape::sentence(&std::mem::take(&mut self.above.2), 0),
                number - 1,
            ),
            false => (
                Named::Behind,
                shape::sentence(line.get(at..).unwrap_or_default(), 0),
                number,
            ),
        };
        if !name.starts_with(|first: char| {
            first.is_alphanumeric() || matches!(first, '/' | '.' | '_' | '<' | '@')
        }) {
            self.close();
            return false;
        }
        let next = self
            .list
            .as_ref()
            .is_some_and(|list| list.named == named && list.last + 1 == first);
        if !next {
            self.close();
        }
        let (titled, title) = std::mem::take(&mut self.title);
        let list = self.list.get_or_insert(List {
            named,
            // What the title states is told with the list.
            first: if titled + 1 == first { titled } else { first },
            last: first,
            rows: 0,
            sum: 0.0,
            longest: None,
            title,
        });
        list.take(ns, number, name);
        true
    }

    /// Passes over a line that is no row.
    pub(super) fn pass(&mut self, line: &[u8], number: u64) {
        let text = line.get(..LINE).unwrap_or(line).trim_ascii();
        if self.list.is_some()
            && (text.is_empty() || self.list.as_ref().is_some_and(|list| list.named == Named::Behind))
        {
            self.close();
        }
        if text.ends_with(b":") && text.first().is_some_and(|first| !first.is_ascii_digit()) {
            self.title = (number, text_of(text.strip_suffix(b":").unwrap_or(text)));
            self.above.0 = number;
            self.above.2.clear();
            return;
        }
        let outward = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.above.0 = number;
        self.above.1 = outward;
        self.above.2.clear();
        if text.first().is_some_and(u8::is_ascii_alphabetic) {
            self.above.2.extend_from_slice(text);
        }
    }

    fn close(&mut self) {
        let Some(list) = self.list.take().filter(|list| list.rows >= MIN_ROWS) else {
            return;
        };
        if self.lines.len() < MAX_LISTS {
            self.lines.push((list.first..=list.last, list.named));
        }
        let ns = |list: &List| list.longest.as_ref().map_or(0.0, |(ns, ..)| *ns);
        if self.longest.as_ref().is_none_or(|known| ns(&list) > ns(known)) {
            self.longest = Some(list);
        }
    }

    /// Ends the last list.
    pub(super) fn end(&mut self) {
        self.close();
    }

    /// Whether the list says what a line states.
    pub(super) fn tells(&self, line: u64, kind: StatementKind) -> bool {
        let mut lists = self.lines.iter();
        lists.any(|(lines, named)| {
            lines.contains(&line) && (*named == Named::Above || kind == StatementKind::Took)
        })
    }

    /// What took longest.
    pub(super) fn fact(&mut self) -> Option<Fact> {
        let list = self.longest.take()?;
        let (ns, line, name) = list.longest?;
        let title = match list.title.as_str() {
            "" => String::new(),
            title => format!(" ({title})"),
        };
        Some(Fact {
            kind: StatementKind::Took,
            share: Some(ns / list.sum.max(1.0)),
            ns: Some(ns as Ns),
            line,
            text: format!(
                "{name}: {}, the longest of {}{title}",
                duration(ns as Ns),
                list.rows
            ),
        })
    }
}

impl List {
    fn take(&mut self, ns: f64, line: u64, name: String) {
        self.last = line;
        let first = name.split_whitespace().next().unwrap_or_default();
        if SUMS.iter().any(|sum| first.eq_ignore_ascii_case(sum)) {
            return;
        }
        self.rows += 1;
        self.sum += ns;
        if self.longest.as_ref().is_none_or(|(longest, ..)| ns > *longest) {
            self.longest = Some((ns, line, name));
        }
    }
}

/// The time with which a line begins, in nanoseconds, and where what follows it begins.
fn time(line: &[u8]) -> Option<(f64, usize)> {
    // Nearly every line of a log ends the look here, and one that begins with a date at its unit.
    if !line.trim_ascii_start().first()?.is_ascii_digit() {
        return None;
    }
    let mut all = words(line);
    let first = all.next()?;
    let digits = first
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
        .count();
    let (number, glued) = first.split_at(digits);
    let unit = match glued.is_empty() {
        true => all.next()?,
        false => glued,
    };
    let unit = unit.strip_suffix(b":").unwrap_or(unit);
    let (_, of_unit) = UNITS.iter().find(|(name, _)| name.as_bytes() == unit)?;
    let mut rest = all.next()?;
    if matches!(rest, b"|" | b"-" | b":") {
        rest = all.next()?;
    }
    let ns = decimal(number)? * of_unit;
    let at = rest.as_ptr() as usize - line.as_ptr() as usize;
    (0.0..MAX_NS).contains(&ns).then_some((ns, at))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        let statements = read_text("t", text.as_bytes()).observed.statements;
        statements.into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn what_took_longest_with_its_title() {
        let text = "*** Objects that took longest to build:\n  512 ms: a/view.o\n 4612 ms: a/error_log.o\n  311 ms: b/c.o\n\nTotal 9 s\n";
        assert_eq!(
            said(text)[0],
            "a/error_log.o: 4.61 s, the longest of 3 (*** Objects that took longest to build)"
        );
    }

    #[test]
    fn names_in_the_lines_above_state_nothing() {
        let text = "Slowest examples (13 seconds):\n  Cart does not have missing prices\n    2.41 seconds ./spec/a.rb:4\n  Cart fails without stock\n    \
            7.01 seconds ./spec/b.rb:4\n  Login shows an error\n    3.13 seconds ./spec/c.rb:8\n";
        let all = said(text);
        assert_eq!(
            all[0],
            "Cart fails without stock: 7.01 s, the longest of 3 (Slowest examples (13 seconds))"
        );
        assert!(
            !all.iter()
                .any(|one| one.contains("missing") || one.contains("error")),
            "{all:?}"
        );
    }

    #[test]
    fn two_rows_sums_and_dates_are_no_list() {
        for text in [
            "3 s a\n4 s b\n",
            "12:00:01 s a\n12:00:02 s b\n12:00:03 s c\n",
            "3 seconds\n4 seconds\n5 seconds\n",
        ] {
            let all = said(text);
            assert!(!all.iter().any(|one| one.contains("the longest of")), "{all:?}");
        }
        let text = "9.5s total\n3.5s a\n4.0s b\n2.0s c\n";
        assert_eq!(said(text)[0], "b: 4.00 s, the longest of 3");
    }
}
