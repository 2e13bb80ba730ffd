//! The time at which a reading of counters was taken, where a line in front of it tells: `/proc/uptime`, `date`,
//! `date +%s.%N`.
//!
//! In: lines. Out: the instant, and how long after the reading before it this one is. Nothing is assumed where no line tells.

use crate::numbers::{decimal, words};
use crate::stamp;
use holdup_evidence::Ns;
use holdup_evidence::observed::When;

const SECOND: f64 = 1e9;

/// Seconds since boot that are plausible: a century.
const LONGEST_UPTIME: f64 = 3.2e9;

/// Seconds since the epoch of 2001 and 2286, between which such a number is a date and not an uptime.
const DATES: std::ops::Range<f64> = 1e9..1e10;

/// The clock of one artefact.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    now: Option<When>,
    before: Option<When>,
}

impl Clock {
    /// Whether a line tells the time and nothing else; the clock then shows it.
    pub(super) fn line(&mut self, line: &[u8]) -> bool {
        let listed = clock_reading(line);
        if listed.is_some() {
            self.now = listed;
        }
        listed.is_some()
    }

    /// A reading begins: when, and how long after the one before.
    pub(super) fn reading(&mut self) -> (Option<When>, Option<Ns>) {
        let over = self
            .now
            .zip(self.before)
            .and_then(|(now, before)| now.since(before))
            .and_then(|ns| Ns::try_from(ns).ok())
            .filter(|ns| *ns > 0);
        self.before = self.now;
        // Of a reading without a time of its own nothing is known by the one before.
        (self.now.take(), over)
    }
}

/// The time that a whole line is.
fn clock_reading(line: &[u8]) -> Option<When> {
    let line = line.trim_ascii();
    let first = line.first()?;
    if first.is_ascii_digit() {
        let mut words = words(line);
        let (one, two, more) = (words.next()?, words.next(), words.next());
        let seconds = decimal(one).filter(|seconds| *seconds >= 0.0);
        match (seconds, two, more) {
            (Some(seconds), None, None) if DATES.contains(&seconds) => {
                return Some(When::Unix((seconds * SECOND) as i64));
            }
            // Uptime, and the idle time of all CPUs.
            (Some(seconds), Some(idle), None)
                if seconds < LONGEST_UPTIME && one.contains(&b'.') && idle.contains(&b'.') =>
            {
                decimal(idle)?;
                return Some(When::SinceBoot((seconds * SECOND) as Ns));
            }
            _ => {}
        }
    }
    if let Some(at) = stamp::date_command(line) {
        return Some(at);
    }
    let (stamp, rest) = stamp::leading(line)?;
    rest.trim_ascii().is_empty().then_some(stamp.at).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Clock, clock_reading};
    use holdup_evidence::observed::When;

    #[test]
    fn lines_that_are_times() {
        assert_eq!(
            clock_reading(b"37.50 70.10"),
            Some(When::SinceBoot(37_500_000_000))
        );
        assert_eq!(
            clock_reading(b"1700000000.5"),
            Some(When::Unix(1_700_000_000_500_000_000))
        );
        assert_eq!(
            clock_reading(b"Sun Nov 22 07:04:14 UTC 2026"),
            Some(When::Unix(1_795_331_054_000_000_000))
        );
        assert!(matches!(
            clock_reading(b"Sun Nov 22 07:04:14 CET 2026"),
            Some(When::Civil(_))
        ));
        for no in [
            &b""[..],
            b"12",
            b"12 13",
            b"cpu 1 2",
            b"nan 1.0",
            b"1e300 1.0",
            b"0.00 0.00 0.00 1/2 3",
        ] {
            assert_eq!(clock_reading(no), None, "{}", String::from_utf8_lossy(no));
        }
    }

    #[test]
    fn without_a_time_nothing_is_said_of_an_interval() {
        let mut clock = Clock::default();
        assert!(clock.line(b"10.00 10.00"));
        assert_eq!(clock.reading().1, None);
        assert!(clock.line(b"12.00 12.00"));
        assert_eq!(clock.reading().1, Some(2_000_000_000));
        assert_eq!(clock.reading(), (None, None));
        assert!(clock.line(b"11.00 10.00"));
        assert_eq!(clock.reading().1, None, "backwards");
    }
}
