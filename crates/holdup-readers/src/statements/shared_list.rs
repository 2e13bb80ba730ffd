//! Lists without a heading whose rows end with a length of time and its part of the whole: `Total analysis time  118.1 s  96.45%`, `gc  1.2s (31 %)`.
//!
//! In: lines of a text that no reader knows. Out: of each list the row with the largest part. A row that is all of it is the sum of the others.

use super::tables::Fact;
use crate::gather::text_of;
use crate::numbers::{decimal, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;
use std::collections::HashSet;

/// Rows from which it is a list, and lists that are told.
const MIN_ROWS: u64 = 3;
const MAX_LISTS: usize = 10;

/// Bytes of a line that are looked at, and of a name.
const LINE: usize = 300;
const MAX_NAME_BYTES: usize = 120;

/// The part from which a row is the sum of all, and below which none stands out; per cent.
const ALL: f64 = 99.9;
const STANDS_OUT: f64 = 40.0;

/// The sum of all parts above which they are no parts of one whole; per cent.
const MAX_SUM: f64 = 105.0;

/// Names of one list that are kept.
const MAX_NAMES: usize = 1_000;

/// The longest time that is believed, nanoseconds: ten years.
const MAX_NS: f64 = 3e17;

/// Units behind a number, in nanoseconds.
const UNITS: [(&str, f64); 8] = [
    ("ms", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("secs", 1e9),
    ("seconds", 1e9),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("min", 6e10),
];

#[derive(Debug, Default)]
struct List {
    rows: u64,
    /// The part, the length, the line, the name and the figures of the row with the largest part.
    largest: Option<(f64, f64, u64, String, String)>,
    /// The longest time of all rows: that of the sum, where one is there.
    whole_ns: f64,
    /// The sum of the parts, without rows that are all of it.
    sum: f64,
    names: HashSet<String>,
    /// Whether a name came twice: then it is progress.
    again: bool,
    last: u64,
}

impl List {
    /// Whether its rows are parts of one whole, and neither progress nor counted up from row to row.
    fn is_of_parts(&self) -> bool {
        self.rows >= MIN_ROWS && !self.again && self.sum <= MAX_SUM
    }
}

/// Follows the lists of one artefact.
#[derive(Debug, Default)]
pub(super) struct SharedLists {
    list: Option<List>,
    found: Vec<Fact>,
}

impl SharedLists {
    /// Takes a line.
    pub(super) fn line(&mut self, line: &[u8], number: u64) {
        let line = line.get(..LINE).unwrap_or(line).trim_ascii_end();
        // Nearly every line of a log ends the look here.
        if !matches!(line.last(), Some(b'%' | b')')) {
            return;
        }
        let Some((name, ns, percent, figures)) = row(line) else {
            return;
        };
        // One other line may stand between two rows: a rule, a blank line.
        if self.list.as_ref().is_some_and(|list| list.last + 2 < number) {
            self.close();
        }
        let list = self.list.get_or_insert_default();
        list.last = number;
        list.rows += 1;
        list.whole_ns = list.whole_ns.max(ns);
        let larger = list
            .largest
            .as_ref()
            .is_none_or(|(largest, ..)| percent > *largest);
        if percent < ALL {
            list.sum += percent;
        }
        if list.names.len() < MAX_NAMES {
            list.again |= !list.names.insert(name.clone());
        }
        if percent < ALL && larger {
            list.largest = Some((percent, ns, number, name, figures));
        }
    }

    fn close(&mut self) {
        let Some(list) = self.list.take().filter(List::is_of_parts) else {
            return;
        };
        let Some((percent, ns, line, name, figures)) =
            list.largest.filter(|(percent, ..)| *percent >= STANDS_OUT)
        else {
            return;
        };
        if self.found.len() < MAX_LISTS {
            let of = match list.whole_ns > ns {
                true => format!(" of {}", duration(list.whole_ns as Ns)),
                false => String::new(),
            };
            self.found.push(Fact {
                kind: StatementKind::Took,
                share: Some(percent / 100.0),
                ns: Some(ns as Ns),
                line,
                text: format!(
                    "{name}: {}{of} ({figures}), the largest of {} rows",
                    duration(ns as Ns),
                    list.rows
                ),
            });
        }
    }

    /// What all lists say.
    pub(super) fn end(&mut self) -> Vec<Fact> {
        self.close();
        std::mem::take(&mut self.found)
    }
}

/// The name of a row, its time in nanoseconds, its part in per cent, and both as they stand there.
fn row(line: &[u8]) -> Option<(String, f64, f64, String)> {
    let all: Vec<&[u8]> = words(line).collect();
    let (last, rest) = all.split_last()?;
    // `(31 %)`, `31%`.
    let bare = |word: &[u8]| text_of(word).trim_matches(['(', ')', ',']).to_owned();
    let last_word = bare(last);
    let (part, rest) = match last_word.as_str() {
        "%" => {
            let (part, rest) = rest.split_last()?;
            (bare(part), rest)
        }
        word => (word.strip_suffix('%')?.to_owned(), rest),
    };
    let percent = decimal(part.as_bytes()).filter(|percent| (0.0..=100.0).contains(percent))?;
    let (word, rest) = rest.split_last()?;
    let word = bare(word);
    let (number, unit, rest) = match UNITS.iter().find(|(unit, _)| *unit == word) {
        Some((_, ns)) => {
            let (number, rest) = rest.split_last()?;
            (bare(number), *ns, rest)
        }
        None => {
            let at = word.find(|char: char| char.is_alphabetic())?;
            let (number, unit) = word.split_at_checked(at)?;
            let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit)?;
            (number.to_owned(), *ns, rest)
        }
    };
    let ns = decimal(number.as_bytes())? * unit;
    let name = rest
        .iter()
        .map(|word| text_of(word))
        .collect::<Vec<_>>()
        .join(" ");
    let name = name.trim_matches([':', '|', '-', ' ']);
    let named = name.contains(|char: char| char.is_alphabetic());
    let short: String = name.chars().take(MAX_NAME_BYTES).collect();
    let figures = all.get(rest.len()..)?;
    let figures = figures
        .iter()
        .map(|word| text_of(word))
        .collect::<Vec<_>>()
        .join(" ");
    let figures = figures.replace(['(', ')'], "");
    (named && (0.0..MAX_NS).contains(&ns)).then_some((short, ns, percent, figures))
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> Vec<String> {
        read_text("t", text.as_bytes())
            .texts()
            .iter()
            .map(|text| text.to_string())
            .collect()
    }

    #[test]
    fn the_row_with_most_of_the_whole() {
        let text = "=== PHASES ===\n\nTotal launch time    0.015 s    0.01%\nTotal loading time   91.250 s   93.10%\nTotal finish time    0.250 s    0.26%\n\
            ------------------\nTotal run time       98.010 s  100.00%\n";
        let all = said(text);
        assert!(
            all.iter().any(|one| one
                == "Total loading time: 1 min 31 s of 1 min 38 s (91.250 s 93.10%), the largest of 4 rows"),
            "{all:?}"
        );
        let text = "parse: 12ms (3 %)\ncodegen: 300ms (82 %)\nlink: 55ms (15 %)\n";
        let all = said(text);
        assert!(
            all.iter()
                .any(|one| one == "codegen: 300 ms (300ms 82 %), the largest of 3 rows"),
            "{all:?}"
        );
    }

    #[test]
    fn even_lists_and_progress_say_nothing() {
        for text in [
            "a 1.0 s 30%\nb 1.1 s 35%\nc 1.1 s 35%\n",
            "[ 10%] a\n[ 20%] b\n[ 90%] c\n",
            "a 1.0 s 90%\nb 0.1 s 10%\n",
            "a 1 MB 90%\nb 2 MB 5%\nc 3 MB 5%\n",
            "Copying: elapsed 10s (10%)\nCopying: elapsed 20s (20%)\nCopying: elapsed 60s (60%)\n",
            "within 5 ms 80%\nunder 10 ms 95%\nbelow 20 ms 99%\n",
            "% s %\n1 s %\na s 3%\n",
        ] {
            let all = said(text);
            assert!(
                !all.iter().any(|one| one.contains("the largest of")),
                "{text}: {all:?}"
            );
        }
    }
}
