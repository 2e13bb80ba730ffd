//! When something was, as far as an artefact tells.
//!
//! Artefacts count from different zeros, and often leave out the date or the zone. What is left out stays out: two
//! instants have a distance only if what both tell is enough.

use crate::Ns;
use serde::{Deserialize, Serialize};

const NS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// An instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Nanoseconds since the epoch: the artefact tells date and zone, or counts from there.
    Unix(i64),
    /// As a clock on a wall shows it, without a zone.
    Civil(Civil),
    /// Since the machine's boot, `CLOCK_BOOTTIME` or `CLOCK_MONOTONIC`.
    SinceBoot(Ns),
    /// Since the process of the artefact started (a JVM's log), or since the artefact itself begins.
    SinceStart(Ns),
}

/// A date and time without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Civil {
    /// Days since 1970-01-01; `None` where only the time of day is reported.
    pub day: Option<i64>,
    /// Whether the year is reported; if not, `day` is of the year 1972, a leap year.
    pub year_known: bool,
    /// Nanoseconds since midnight.
    pub of_day: Ns,
}

impl When {
    /// How much later this is than another, in nanoseconds; `None` where that cannot be determined.
    #[must_use]
    pub fn since(self, earlier: When) -> Option<i128> {
        match (self, earlier) {
            (When::Unix(a), When::Unix(b)) => Some(i128::from(a) - i128::from(b)),
            (When::SinceBoot(a), When::SinceBoot(b)) | (When::SinceStart(a), When::SinceStart(b)) => {
                Some(i128::from(a) - i128::from(b))
            }
            (When::Civil(a), When::Civil(b)) => a.since(b),
            _ => None,
        }
    }

    /// The instant so much earlier; `None` where it has no place on this clock, as before boot.
    #[must_use]
    pub fn before(self, ns: Ns) -> Option<When> {
        match self {
            When::Unix(at) => Some(When::Unix(at.checked_sub(i64::try_from(ns).ok()?)?)),
            When::SinceBoot(at) => Some(When::SinceBoot(at.checked_sub(ns)?)),
            When::SinceStart(at) => Some(When::SinceStart(at.checked_sub(ns)?)),
            When::Civil(at) => at.before(ns).map(When::Civil),
        }
    }

    /// The instant so much later; `None` where it has no place on this clock.
    #[must_use]
    pub fn after(self, ns: Ns) -> Option<When> {
        match self {
            When::Unix(at) => Some(When::Unix(at.checked_add(i64::try_from(ns).ok()?)?)),
            When::SinceBoot(at) => Some(When::SinceBoot(at.checked_add(ns)?)),
            When::SinceStart(at) => Some(When::SinceStart(at.checked_add(ns)?)),
            When::Civil(at) => at.moved(i128::from(ns)).map(When::Civil),
        }
    }
}

impl Civil {
    fn before(self, ns: Ns) -> Option<Civil> {
        self.moved(-i128::from(ns))
    }

    /// Without a date, midnight is a wall.
    fn moved(self, ns: i128) -> Option<Civil> {
        const NS_PER_DAY: i128 = SECONDS_PER_DAY as i128 * NS_PER_SECOND;
        let at = i128::from(self.of_day) + ns;
        let days = i64::try_from(at.div_euclid(NS_PER_DAY)).ok()?;
        let day = match self.day {
            Some(day) => Some(day.checked_add(days)?),
            None if days == 0 => None,
            None => return None,
        };
        Some(Civil {
            day,
            year_known: self.year_known,
            of_day: Ns::try_from(at.rem_euclid(NS_PER_DAY)).ok()?,
        })
    }

    fn since(self, earlier: Civil) -> Option<i128> {
        let of_day = i128::from(self.of_day) - i128::from(earlier.of_day);
        let days = match (self.day, earlier.day) {
            (Some(a), Some(b)) if self.year_known == earlier.year_known => a - b,
            (None, None) => 0,
            _ => return None,
        };
        Some(i128::from(days * SECONDS_PER_DAY) * NS_PER_SECOND + of_day)
    }
}

#[cfg(test)]
mod tests {
    use super::{Civil, When};

    fn civil(day: Option<i64>, second: u64) -> When {
        When::Civil(Civil {
            day,
            year_known: true,
            of_day: second * 1_000_000_000,
        })
    }

    #[test]
    fn a_distance_needs_what_both_tell() {
        assert_eq!(When::Unix(5).since(When::Unix(7)), Some(-2));
        assert_eq!(When::SinceBoot(5).since(When::SinceStart(1)), None);
        assert_eq!(When::Unix(5).since(civil(Some(0), 0)), None);
        assert_eq!(civil(None, 61).since(civil(None, 60)), Some(1_000_000_000));
        assert_eq!(
            civil(Some(1), 0).since(civil(Some(0), 86_399)),
            Some(1_000_000_000)
        );
        assert_eq!(civil(Some(1), 0).since(civil(None, 0)), None);
    }

    #[test]
    fn earlier_and_later_over_midnight() {
        let five = 5_000_000_000;
        assert_eq!(civil(Some(1), 2).before(five), Some(civil(Some(0), 86_397)));
        assert_eq!(civil(Some(0), 86_397).after(five), Some(civil(Some(1), 2)));
        assert_eq!(civil(None, 2).before(five), None);
        assert_eq!(When::SinceBoot(4).before(5), None);
        assert_eq!(When::Unix(4).before(5), Some(When::Unix(-1)));
    }
}
