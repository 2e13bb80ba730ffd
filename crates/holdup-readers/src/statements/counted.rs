//! Lists of what was counted, without a heading: a number and what there is so many of, as `sort | uniq -c` prints it (`2387
//! pthread_cond_wait,open_table`), and rows of several numbers behind a name, as `/proc/interrupts` has them.
//!
//! In: lines of a text that no reader knows. Out: for the longest list, the row that has most of all.

use super::shape;
use super::tables::Fact;
use crate::find::find;
use crate::numbers::{whole, words};
use holdup_evidence::observed::StatementKind;
use std::collections::HashSet;

/// Rows from which it is a list.
const MIN_ROWS: u64 = 3;

/// Words of a row that are looked at.
const WORDS: usize = 300;

/// The part of all from which a row stands out.
const MIN_PART: f64 = 0.3;

/// Digits of a count; a longer number is an identifier.
const DIGITS: usize = 12;

/// Names of a list that are remembered.
const MAX_KNOWN: usize = 1_000;

/// Follows the lists of one artefact.
#[derive(Debug, Default)]
pub(super) struct Counted {
    list: List,
    longest: List,
    /// Whether the line above the list is a command that counts.
    titled: bool,
}

#[derive(Debug, Default)]
struct List {
    rows: u64,
    /// Numbers of a row.
    columns: usize,
    sum: u64,
    last: u64,
    /// Whether each count is at most the one before, or at least.
    falls: bool,
    rises: bool,
    /// What was counted, by hash; and whether something stands there twice: then the numbers are its names, and no counts.
    known: HashSet<u64, foldhash::fast::FixedState>,
    repeats: bool,
    largest: Option<(u64, u64, String)>,
}

impl Counted {
    /// Takes a line.
    pub(super) fn line(&mut self, line: &[u8], number: u64) {
        let line = line.trim_ascii();
        let row = row(line);
        if row.is_none() && self.list.rows == 0 {
            self.titled = find(line, b"uniq -c").is_some();
            return;
        }
        let Some((count, columns, at)) = row else {
            self.close();
            return;
        };
        if columns != self.list.columns && self.list.rows > 0 {
            self.close();
        }
        self.list
            .take(count, columns, number, line.get(at..).unwrap_or_default());
    }

    fn close(&mut self) {
        let list = std::mem::take(&mut self.list);
        let titled = std::mem::take(&mut self.titled);
        if list.rows > self.longest.rows && (titled || list.is_one()) {
            self.longest = list;
        }
    }

    /// What there is most of.
    pub(super) fn end(&mut self) -> Option<Fact> {
        self.close();
        let list = std::mem::take(&mut self.longest);
        let (count, line, text) = list.largest?;
        let share = count as f64 / list.sum.max(1) as f64;
        (list.rows >= MIN_ROWS && share >= MIN_PART).then(|| Fact {
            kind: StatementKind::Took,
            share: Some(share),
            ns: None,
            line,
            text: format!("{count} of {}: {text}; the most of {} rows", list.sum, list.rows),
        })
    }
}

impl List {
    fn take(&mut self, count: u64, columns: usize, number: u64, text: &[u8]) {
        let first = self.rows == 0;
        self.falls = first || self.falls && count <= self.last;
        self.rises = first || self.rises && count >= self.last;
        self.rows += 1;
        self.columns = columns;
        self.last = count;
        if self.known.len() < MAX_KNOWN {
            self.repeats |= !self.known.insert(shape::shape(text, 0));
        }
        self.sum = self.sum.saturating_add(count);
        if self.largest.as_ref().is_none_or(|(most, ..)| count > *most) {
            self.largest = Some((count, number, shape::sentence(text, 0)));
        }
    }

    /// Whether its rows are counted: in order, or of several columns. A log may have a number before each line as well.
    fn is_one(&self) -> bool {
        self.columns > 1 || self.falls != self.rises && !self.repeats
    }
}

/// The sum of a row's numbers, how many there are, and where its words begin; the row has no blanks at its ends.
fn row(line: &[u8]) -> Option<(u64, usize, usize)> {
    // Nearly every line of a log ends the look here.
    if !line.first()?.is_ascii_digit() {
        return None;
    }
    let offset = |word: &[u8]| word.as_ptr() as usize - line.as_ptr() as usize;
    let mut all = words(line).take(WORDS).peekable();
    let named = all.next_if(|word| word.ends_with(b":") && word.len() < DIGITS);
    let mut sum: u64 = 0;
    let mut columns = 0;
    while let Some(word) = all.next_if(|word| word.len() <= DIGITS && whole(word).is_some()) {
        sum = sum.saturating_add(whole(word)?);
        columns += 1;
    }
    let text = all.next()?;
    let begins = text
        .first()
        .is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, b'_' | b'/'));
    // `47123 ms: parser.o`: a length of time is no count.
    let unit = text.strip_suffix(b":").unwrap_or(text);
    let timed = [&b"s"[..], b"ms", b"us", b"sec", b"seconds"].contains(&unit);
    let fits = begins
        && !timed
        && if named.is_some() {
            columns > 1
        } else {
            columns == 1
        };
    fits.then(|| (sum, columns, offset(text)))
}

#[cfg(test)]
mod tests {
    use super::Counted;

    fn said(lines: &[&str]) -> Option<String> {
        let mut counted = Counted::default();
        for (number, line) in (1..).zip(lines) {
            counted.line(line.as_bytes(), number);
        }
        counted.end().map(|fact| fact.text)
    }

    #[test]
    fn what_was_counted_most_often() {
        let stacks = [
            "   2387 pthread_cond_wait,open_table",
            "      5 select,main",
            "      1 read,my_real_read",
        ];
        assert_eq!(
            said(&stacks).as_deref(),
            Some("2387 of 2393: pthread_cond_wait,open_table; the most of 3 rows")
        );
        let states = [
            "# netstat -nat | awk '{print $6}' | sort | uniq -c | sort -r",
            "8959 CLOSE_WAIT",
            "887 FIN_WAIT2",
            "5597 TIME_WAIT",
            "1 SYN_SENT",
        ];
        assert!(said(&states).is_some_and(|said| said.contains("8959 of") && said.contains("CLOSE_WAIT")));
        let interrupts = [
            " 57:          1          0    1866672   PCI-MSI-edge   eth2-TxRx-4",
            " 58:          0          1      19414   PCI-MSI-edge   eth2-TxRx-5",
            " 59:          0   10098005          0   PCI-MSI-edge   eth2-TxRx-6",
        ];
        assert!(
            said(&interrupts)
                .is_some_and(|said| said.contains("10098005 of") && said.contains("eth2-TxRx-6"))
        );
    }

    #[test]
    fn logs_and_even_lists_say_nothing() {
        assert_eq!(
            said(&["1201 open a", "1187 read b", "1201 close a"]),
            None,
            "numbers of processes"
        );
        assert_eq!(said(&["9 a", "9 b", "9 c", "9 d"]), None);
        assert_eq!(said(&["9 a", "8 b", "8 c", "7 d"]), None, "none stands out");
        assert_eq!(said(&["12 monkeys"]), None);
        assert_eq!(
            said(&["4612 ms: a.o", "512 ms: b.o", "311 ms: c.o"]),
            None,
            "times"
        );
        assert_eq!(said(&["", "99999999999999999999 x", "1:"]), None);
    }

    #[test]
    fn numbers_before_names_that_come_twice_are_no_counts() {
        let tasks = [
            "2770 D cv_wait [z_wr]",
            "2771 D cv_wait [z_rd]",
            "19513 D fsync [nfsd]",
            "19514 D fsync [nfsd]",
        ];
        assert_eq!(said(&tasks), None);
    }
}
