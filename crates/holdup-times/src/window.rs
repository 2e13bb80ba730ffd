//! Which time is asked for.
//!
//! In: `--at` and `--last`, and when the newest segment ends. Out: a window. A time without a date is the last one before that
//! end; in the zone of who reads, because that is the clock that the reader has.

use jiff::civil::{DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};
use std::time::Duration;

/// A window, Unix time, nanoseconds, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its begin.
    pub from: i64,
    /// Its end.
    pub to: i64,
}

impl Window {
    /// What the command line asks for: all of it, where nothing is.
    ///
    /// # Errors
    /// When a time is none, or was twice.
    pub fn asked(
        at: Option<&str>,
        last: Option<Duration>,
        newest: i64,
        zone: &TimeZone,
    ) -> Result<Window, String> {
        let at = at.map(|text| instant(text, newest, zone)).transpose()?;
        let length = last.map(|last| i64::try_from(last.as_nanos()).unwrap_or(i64::MAX));
        Ok(match (at, length) {
            (None, None) => Window {
                from: i64::MIN,
                to: i64::MAX,
            },
            (Some(at), None) => Window { from: at, to: at },
            (at, Some(length)) => {
                let to = at.unwrap_or(newest);
                Window {
                    from: to.saturating_sub(length),
                    to,
                }
            }
        })
    }

    /// Whether what lasted from and to these instants tells of some of it. What only touches it does not.
    #[must_use]
    pub fn holds(self, from: i64, to: i64) -> bool {
        match self.from == self.to {
            true => from <= self.to && self.to < to.max(from.saturating_add(1)),
            false => from < self.to && to > self.from,
        }
    }
}

const TIMES: &str =
    "TIME is 13:05, '2026-11-22 13:05', or RFC 3339 with a time zone, such as 2026-11-22T13:05:00+01:00";

/// Reads a time.
fn instant(text: &str, newest: i64, zone: &TimeZone) -> Result<i64, String> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return nanoseconds(instant);
    }
    // The library reads a time out of a date with one, too.
    if !text.contains('-')
        && let Ok(time) = text.parse::<Time>()
    {
        let newest = Timestamp::from_nanosecond(i128::from(newest)).unwrap_or_default();
        let today = zone.to_datetime(newest).date();
        let then = local(today.to_datetime(time), zone)?;
        return match then <= newest {
            true => nanoseconds(then),
            false => nanoseconds(local(today.saturating_sub(1.day()).to_datetime(time), zone)?),
        };
    }
    match text.parse::<DateTime>() {
        Ok(civil) => nanoseconds(local(civil, zone)?),
        Err(_) => Err(format!("--at {text:?}: {TIMES}")),
    }
}

fn nanoseconds(instant: Timestamp) -> Result<i64, String> {
    match i64::try_from(instant.as_nanosecond()) {
        Ok(nanoseconds) => Ok(nanoseconds),
        Err(_) => Err(format!("--at {instant}: the time is out of range")),
    }
}

/// A reading of the clock on the wall as an instant. Twice a year there are two, or none.
fn local(civil: DateTime, zone: &TimeZone) -> Result<Timestamp, String> {
    let found = zone.to_ambiguous_timestamp(civil);
    if let AmbiguousOffset::Fold { before, after } = found.offset() {
        let as_told = |offset: jiff::tz::Offset| {
            let instant = offset.to_timestamp(civil).unwrap_or_default();
            instant.display_with_offset(offset).to_string()
        };
        return Err(format!(
            "--at {civil}: the clock showed this time twice; use {} or {}",
            as_told(before),
            as_told(after)
        ));
    }
    found.compatible().map_err(|_| format!("--at {civil}: {TIMES}"))
}

#[cfg(test)]
mod tests {
    use super::{Window, instant};
    use jiff::Timestamp;
    use jiff::tz::TimeZone;
    use std::time::Duration;

    fn unix(text: &str) -> i64 {
        let instant: Timestamp = text.parse().unwrap();
        i64::try_from(instant.as_nanosecond()).unwrap()
    }

    fn zurich() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn a_time_without_a_date_is_the_last_one_that_there_was() {
        let newest = unix("2026-11-22T12:00:00Z");
        let at = |text: &str| instant(text, newest, &zurich()).ok();
        assert_eq!(at("12:30"), Some(unix("2026-11-22T11:30:00Z")));
        assert_eq!(at("13:05"), Some(unix("2026-11-21T12:05:00Z")));
        assert_eq!(at("2026-11-20 13:05"), Some(unix("2026-11-20T12:05:00Z")));
        assert_eq!(at("2026-07-01T13:05:30"), Some(unix("2026-07-01T11:05:30Z")));
        assert_eq!(
            at("2026-11-22T13:05:00+05:00"),
            Some(unix("2026-11-22T08:05:00Z"))
        );
        assert_eq!(at("2026-11-22"), Some(unix("2026-11-21T23:00:00Z")));
        assert_eq!(at("13"), Some(unix("2026-11-22T12:00:00Z")), "an hour");
        for wrong in ["", "25:00", "yesterday", "2026-13-22"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_that_was_twice_is_not_guessed() {
        let newest = unix("2026-10-25T12:00:00Z");
        let error = instant("02:30", newest, &zurich()).unwrap_err();
        assert_eq!(
            error,
            "--at 2026-10-25T02:30:00: the clock showed this time twice; use 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"
        );
    }

    #[test]
    fn the_last_minutes_are_those_before_the_time_or_the_end() {
        let newest = unix("2026-11-22T12:00:00Z");
        let last = Some(Duration::from_secs(600));
        let window = Window::asked(None, last, newest, &zurich()).unwrap();
        assert_eq!((window.from, window.to), (unix("2026-11-22T11:50:00Z"), newest));
        let window = Window::asked(Some("12:30"), last, newest, &zurich()).unwrap();
        assert_eq!(
            (window.from, window.to),
            (unix("2026-11-22T11:20:00Z"), unix("2026-11-22T11:30:00Z"))
        );
    }
}
