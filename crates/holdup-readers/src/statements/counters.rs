//! Lines that count what waits: `pending tasks: 858255`.
//!
//! In: lines of a text that no reader knows, without what a logger puts before them. Out: the line with the largest number.

use super::cells::number;
use super::shape;
use super::tables::Fact;
use crate::find::find;
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
    /// The largest share of something that is in use.
    fullest: Option<Fact>,
}

impl Counters {
    /// Takes a line; whether it counts what waits.
    pub(super) fn line(&mut self, text: &[u8], line: u64, message: impl FnOnce(&[u8]) -> usize) -> bool {
        if let Some((share, text)) = in_use(text) {
            if self
                .fullest
                .as_ref()
                .is_none_or(|known| known.share < Some(share))
            {
                self.fullest = Some(Fact {
                    kind: StatementKind::Took,
                    share: Some(share),
                    ns: None,
                    line,
                    text,
                });
            }
            return true;
        }
        let Some((count, text)) = counted(text).or_else(|| told(text, message)) else {
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

    /// The largest of them, if anything waits, and the largest share that is in use.
    pub(super) fn end(&mut self) -> impl Iterator<Item = Fact> + use<> {
        let waits = self.largest.take().filter(|(count, _)| *count > 0.0);
        waits.map(|(_, fact)| fact).into_iter().chain(self.fullest.take())
    }
}

/// Words of names of a share that is in use.
const IN_USE: [&str; 12] = [
    "allocated",
    "used",
    "usage",
    "use",
    "utilization",
    "utilisation",
    "full",
    "busy",
    "consumed",
    "occupancy",
    "capacity",
    "load",
];

/// Words of such a name that say the opposite, or that the share is allowed.
const NOT_IN_USE: [&str; 8] = [
    "free",
    "idle",
    "available",
    "avail",
    "limit",
    "max",
    "threshold",
    "min",
];

/// A share that is smaller leaves room, of one.
const MIN_IN_USE: f64 = 0.2;

/// A name with the share of something that is in use, as lists of names and values have it: `Allocated pool data    99.87%`.
fn in_use(text: &[u8]) -> Option<(f64, String)> {
    // Nearly every line of a log ends the look here.
    let digits = text.strip_suffix(b"%")?.trim_ascii_end();
    let text = std::str::from_utf8(text).ok()?.trim();
    let gap = || text.rfind("  ").map(|at| text.split_at(at));
    let (name, value) = text
        .split_once(':')
        .or_else(|| text.split_once('='))
        .or_else(gap)?;
    let value = value.trim();
    let share = crate::numbers::decimal(value.strip_suffix('%')?.trim().as_bytes())? / 100.0;
    let has = |list: &[&str]| {
        let mut words = name.split(|sign: char| !sign.is_ascii_alphabetic());
        words.any(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    let fits = !digits.is_empty() && name.len() <= MAX_NAME_BYTES && has(&IN_USE) && !has(&NOT_IN_USE);
    let told = format!("{} {value}", name.trim_end_matches([' ', '\t', '.']).trim());
    (fits && (MIN_IN_USE..=1.0).contains(&share)).then_some((share, told))
}

/// Bytes of a line in which a message may count what waits.
const SCANNED: usize = 400;

/// Counts within a message: `waiting 17, queue 49`, `Pool stats (total=10, active=10, idle=0, waiting=25)`. The largest of them, and the
/// line as it is reported.
fn told(whole: &[u8], message: impl FnOnce(&[u8]) -> usize) -> Option<(f64, String)> {
    let text = whole.get(..SCANNED).unwrap_or(whole);
    // Nearly every line of a log ends the look here.
    let some =
        find(text, b"wait").is_some() || find(text, b"queue").is_some() || find(text, b"pending").is_some();
    if !some {
        return None;
    }
    let mut most: Option<u64> = None;
    let mut waits = false;
    let mut queues = false;
    let between = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'.';
    let mut words = text.split(between).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let known = WAITING
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        // `waiting 5s` and `waiting: 5 ms` are lengths, `waiting 0` is nothing.
        let length = |next: &&[u8]| LENGTHS.contains(next);
        if let Some(count) = crate::numbers::whole(word).filter(|count| waits && *count > 0)
            && !words.peek().is_some_and(length)
        {
            most = most.max(Some(count));
        }
        // `message_queue_len`: how long a queue is, and not how long it may be.
        let length_of_queue = queues && LONG.iter().any(|known| word.eq_ignore_ascii_case(known));
        queues = word.eq_ignore_ascii_case(b"queue");
        waits = known || length_of_queue;
    }
    let count = most.filter(|count| *count < LARGEST)?;
    let told = whole.get(message(whole)..).unwrap_or(whole);
    Some((count as f64, shape::sentence(told, 0)))
}

/// Words behind `queue` of names that say how long it is.
const LONG: [&[u8]; 3] = [b"len", b"length", b"depth"];

/// Units of lengths behind a number.
const LENGTHS: [&[u8]; 10] = [
    b"ns", b"us", b"ms", b"s", b"sec", b"secs", b"seconds", b"min", b"minutes", b"msec",
];

/// A larger number is an identifier.
const LARGEST: u64 = 1_000_000_000;

/// A name with a number far behind it, as lists of counters have it: `ThreadPool Queue Length                1,843`.
pub(super) fn set_apart(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.rsplit_once("  ")?;
    let figure = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
    let fits = !name.trim().is_empty() && !value.trim().is_empty() && value.trim().bytes().all(figure);
    fits.then_some((name.trim(), value.trim()))
}

/// Whether a line is a name with nothing of it: `Exception Count (Count / 1 sec)                 0`.
pub(super) fn counts_nothing(line: &[u8]) -> bool {
    // Nearly every line of a log ends the look here.
    if line.last() != Some(&b'0') || find(line, b"  ").is_none() {
        return false;
    }
    std::str::from_utf8(line)
        .ok()
        .and_then(set_apart)
        .is_some_and(|(name, value)| {
            !name.bytes().any(|byte| matches!(byte, b':' | b'='))
                && crate::numbers::decimal(value.as_bytes()) == Some(0.0)
        })
}

/// How many wait, and the line as it is reported.
fn counted(text: &[u8]) -> Option<(f64, String)> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim().trim_start_matches(['-', '*', ' ']);
    let (name, value) = text.split_once(':').or_else(|| set_apart(text))?;
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
    let long: Vec<&str> = LONG
        .iter()
        .filter_map(|word| std::str::from_utf8(word).ok())
        .collect();
    let queue = has(&["queue"]) && has(&long);
    if !(has(&WAITING) || queue) || has(&NOT_NOW) {
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
        assert!(counters.line(b"pending tasks: 858255", 2, |_| 0));
        assert!(counters.line(b"  - Blocked threads: 12", 3, |_| 0));
        let fact = counters.end().next().unwrap();
        assert_eq!((fact.text.as_str(), fact.line), ("pending tasks: 858255", 2));
    }

    #[test]
    fn a_message_counts_what_waits_in_its_middle() {
        let mut counters = Counters::default();
        let line = b"pool-1 - Add elided, waiting 17, queue 49";
        assert!(counters.line(line, 1, |_| 0));
        assert!(counters.line(b"Pool stats (total=10, active=10, idle=0, waiting=25)", 2, |_| 0));
        for other in [
            "waiting 5s for it",
            "waiting=0",
            "waiting for 12 workers",
            "no queue 7",
        ] {
            assert!(!counters.line(other.as_bytes(), 3, |_| 0), "{other}");
        }
        assert!(counters.end().next().unwrap().text.contains("waiting=25"));
    }

    #[test]
    fn a_number_far_behind_its_name() {
        let mut counters = Counters::default();
        assert!(counters.line(b"ThreadPool Queue Length                1,843", 1, |_| 0));
        assert!(!counters.line(b"ThreadPool Thread Count                57", 2, |_| 0));
        assert!(counters.end().next().unwrap().text.contains("1,843"));
        assert!(super::counts_nothing(b"Exception Count (Count / 1 sec)        0"));
        for line in [&b"errors  10"[..], b"error 0", b"failed: 3  0"] {
            assert!(!super::counts_nothing(line));
        }
    }

    #[test]
    fn a_share_that_is_in_use() {
        let mut counters = Counters::default();
        assert!(counters.line(b"Allocated pool data    99.87%", 1, |_| 0));
        assert!(counters.line(b"Allocated metadata     48.30%", 2, |_| 0));
        assert!(counters.line(b"Heap usage: 61 %", 3, |_| 0));
        for other in [
            "free: 97%",
            "max usage: 90%",
            "used 3 of 4, 75%",
            "%",
            "cpu usage limit = 80%",
        ] {
            assert!(!counters.line(other.as_bytes(), 4, |_| 0), "{other}");
        }
        let fact = counters.end().next().unwrap();
        assert_eq!((fact.text.as_str(), fact.line), ("Allocated pool data 99.87%", 1));
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
            assert!(!counters.line(line.as_bytes(), 1, |_| 0), "{line}");
        }
        assert!(counters.line(b"pending tasks: 0", 1, |_| 0));
        assert!(counters.end().next().is_none());
    }
}
