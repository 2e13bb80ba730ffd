//! Rows of `vmstat` that lost their heading.
//!
//! In: a row. Out: the columns that it has, where its shape leaves no doubt.

use super::{Columns, instant};
use crate::numbers::{whole, words};

/// Rows that are no chance, without a heading.
const MIN_ROWS: usize = 2;

/// Headings by their number of columns: without the time that was stolen, with it, and with the time of guests.
const HEADINGS: [&str; 3] = [
    "r b swpd free buff cache si so bi bo in cs us sy id wa",
    "r b swpd free buff cache si so bi bo in cs us sy id wa st",
    "r b swpd free buff cache si so bi bo in cs us sy id wa st gu",
];

/// Columns of a heading in front of the shares of CPU time, and what those add up to, each rounded.
const BEFORE_SHARES: usize = 12;
const WHOLE_PERCENT: std::ops::RangeInclusive<u64> = 98..=102;

/// The kernel has no more threads than this (`PID_MAX_LIMIT` on 64 bits), be it that they run or wait for a disk.
const MAX_THREADS: u64 = 4 << 20;

/// Whether a text is rows that lost their heading: one may be chance, and others stand in no other text.
pub(super) fn are_rows(head: &[u8]) -> bool {
    let (mut rows, mut others) = (0, 0);
    for line in head.split(|byte| *byte == b'\n') {
        match line.trim_ascii().first() {
            None => {}
            Some(first) if first.is_ascii_digit() && Columns::of_values(line).is_some() => rows += 1,
            Some(_) => others += 1,
        }
    }
    rows >= MIN_ROWS && rows > others
}

impl Columns {
    /// The columns that a row without a heading has, where its shape leaves no doubt: whole numbers, of which the last ones are shares of
    /// a whole. A day and a time may stand behind them.
    pub(super) fn of_values(line: &[u8]) -> Option<Columns> {
        let mut values = Vec::new();
        let mut rest = words(line);
        let mut behind = rest.clone();
        while let Some(value) = rest.next().and_then(whole) {
            values.push(value);
            behind = rest.clone();
            if values.len() > BEFORE_SHARES + HEADINGS.len() + 3 {
                return None;
            }
        }
        let heading = HEADINGS
            .iter()
            .find(|heading| heading.split(' ').count() == values.len())?;
        let (runs, waits) = (*values.first()?, *values.get(1)?);
        let shares: u64 = values
            .get(BEFORE_SHARES..)?
            .iter()
            .fold(0, |sum, share| sum.saturating_add(*share));
        let fits = WHOLE_PERCENT.contains(&shares) && runs < MAX_THREADS && waits < MAX_THREADS;
        let mut columns = Columns::of(heading.as_bytes()).filter(|_| fits)?;
        match (behind.next(), behind.next(), behind.next()) {
            (None, ..) => {}
            (Some(day), Some(time), None) => {
                instant(day, time, false)?;
                columns.stamped = Some(false);
            }
            _ => return None,
        }
        Some(columns)
    }
}
