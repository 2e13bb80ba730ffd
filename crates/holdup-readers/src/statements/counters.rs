//! Lines that count what waits: `pending tasks: 858255`.
//!
//! In: lines of a text that no reader knows, without what a logger puts before them. Out: the line with the largest number.

use super::cells::number;
use super::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// Words of names that count what waits at this moment. Failures and losses are counted since the start, and say nothing by their size.
const WAITING: [&str; 12] = [
    "pending",
    "waiting",
    "waiters",
    "queued",
    "backlog",
    "lag",
    "blocked",
    "unacked",
    "unacknowledged",
    "behind",
    "delayed",
    "stuck",
];

/// Words of names that state a limit or a sum since the start.
const NOT_NOW: [&str; 8] = [
    "max", "maximum", "limit", "size", "total", "ever", "peak", "timeout",
];

/// Bytes of a name.
const MAX_NAME_BYTES: usize = 60;

/// Follows the lines of one artefact.
#[derive(Debug, Default)]
pub(super) struct Counters {
    largest: Option<(f64, Fact)>,
}

impl Counters {
    /// Takes a line; whether it counts what waits.
    pub(super) fn line(&mut self, text: &[u8], line: u64) -> bool {
        let Some((count, text)) = counted(text) else {
            return false;
        };
        if self.largest.as_ref().is_none_or(|(most, _)| count > *most) {
            let fact = Fact {
                kind: StatementKind::Took,
                share: None,
                ns: None,
                line,
                text,
            };
            self.largest = Some((count, fact));
        }
        true
    }

    /// The largest of them, if anything waits.
    pub(super) fn end(&mut self) -> Option<Fact> {
        let (_, fact) = self.largest.take().filter(|(count, _)| *count > 0.0)?;
        Some(fact)
    }
}

/// How many wait, and the line as it is reported.
fn counted(text: &[u8]) -> Option<(f64, String)> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim().trim_start_matches(['-', '*', ' ']);
    let (name, value) = text.split_once(':')?;
    if name.len() > MAX_NAME_BYTES || !name.is_ascii() {
        return None;
    }
    // Most lines with a colon end here, at no cost.
    if !value
        .trim_start()
        .starts_with(|first: char| first.is_ascii_digit())
    {
        return None;
    }
    let has = |list: &[&str]| {
        let mut words = name.split(|sign: char| !sign.is_ascii_alphanumeric());
        words.any(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    if !has(&WAITING) || has(&NOT_NOW) {
        return None;
    }
    let (count, unit) = number(value.trim())?;
    // A length of time is a statement of its own.
    unit.is_empty().then(|| (count, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::Counters;

    #[test]
    fn the_largest_number_of_what_waits() {
        let mut counters = Counters::default();
        assert!(counters.line(b"pending tasks: 858255", 2));
        assert!(counters.line(b"  - Blocked threads: 12", 3));
        let fact = counters.end().unwrap();
        assert_eq!((fact.text.as_str(), fact.line), ("pending tasks: 858255", 2));
    }

    #[test]
    fn limits_sums_settings_and_nothing_are_none() {
        let mut counters = Counters::default();
        for line in [
            "max pending tasks: 100",
            "total blocked: 7",
            "backlog = 128",
            "waiting for lock: yes",
            "queued: 5 ms",
            "lagoon: 3",
        ] {
            assert!(!counters.line(line.as_bytes(), 1), "{line}");
        }
        assert!(counters.line(b"pending tasks: 0", 1));
        assert!(counters.end().is_none());
    }
}
