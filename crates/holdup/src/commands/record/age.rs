//! How old segments are, whatever somebody does to the clock.
//!
//! The problem: `--keep` is a length of time, and dates are known by a clock that people set. Set forward by a year it would have all that
//! was recorded today swept away; set back, it would make the newest the oldest. The choice: what was written in this boot is as old
//! as the clock says that nobody sets, the time since boot. What was written in an earlier boot of this machine has a date only: it is at least
//! as old as this boot, and else as old as it is by the slowest of the clocks that this boot has had, those of its own segments and
//! the present one. So a clock that was set costs room for a while and no recording. In: what heads say, and the clocks. Out: ages.

use holdup_evidence::Ns;
use holdup_recording::Head;
use std::time::Duration;

/// The clocks at an instant, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clocks {
    /// Unix time, which people set.
    pub(super) unix: i64,
    /// Since boot, suspended time included.
    pub(super) boot: Ns,
    /// Since boot, suspended time left out.
    pub(super) monotonic: Ns,
}

/// Which boot of which machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Boot {
    pub(super) id: Option<String>,
    pub(super) host: Option<String>,
}

/// When a segment ended, as far as it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// In this boot: since boot, suspended time included; and the date that it has.
    Here(Ns, i64),
    /// The same of one that was written before that was reported: suspended time left out.
    HereAwake(Ns, i64),
    /// In another boot of this machine, by its date.
    Before(i64),
    /// Nobody says where: by its date.
    Somewhere(i64),
}

impl Ended {
    /// What a segment's head says, in this boot.
    pub(super) fn of(head: &Head, boot: &Boot) -> Ended {
        let date = head.ended_unix();
        if boot.id.is_some() && head.boot_id == boot.id {
            return match head.ended_boot {
                Some(at) => Ended::Here(at, date),
                None => Ended::HereAwake(head.started.saturating_add(head.length), date),
            };
        }
        match boot.host.is_some() && head.host == boot.host && head.boot_id.is_some() {
            true => Ended::Before(date),
            false => Ended::Somewhere(date),
        }
    }
}

/// How old each segment is, in their order.
pub(super) fn ages(all: &[Ended], now: Clocks) -> Vec<Duration> {
    // What this boot's clock was ahead of its start, each time that it is known of; the least makes everything youngest.
    let ahead = |unix: i64, since_boot: Ns| i128::from(unix) - i128::from(since_boot);
    let slowest = all
        .iter()
        .filter_map(|ended| match *ended {
            Ended::Here(at, date) => Some(ahead(date, at)),
            // Less whatever it has slept since: that much too young at the most.
            Ended::HereAwake(at, date) => {
                Some(ahead(date, at) - i128::from(now.boot.saturating_sub(now.monotonic)))
            }
            Ended::Before(_) | Ended::Somewhere(_) => None,
        })
        .fold(ahead(now.unix, now.boot), i128::min);
    let by_date = |date: i64| {
        let age = slowest + i128::from(now.boot) - i128::from(date);
        Ns::try_from(age.max(0)).unwrap_or(Ns::MAX)
    };
    let age = |ended: &Ended| match *ended {
        Ended::Here(at, _) => now.boot.saturating_sub(at),
        Ended::HereAwake(at, _) => now.monotonic.saturating_sub(at),
        Ended::Before(date) => by_date(date).max(now.boot),
        Ended::Somewhere(date) => by_date(date),
    };
    all.iter().map(|ended| Duration::from_nanos(age(ended))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Boot, Clocks, Ended, ages};
    use holdup_evidence::Ns;
    use std::time::Duration;

    const HOUR: Ns = 3_600_000_000_000;

    /// Hours as Unix time.
    fn date(hours: u64) -> i64 {
        (hours * HOUR).cast_signed()
    }

    fn hours(all: &[Ended], now: Clocks) -> Vec<u64> {
        let ages = ages(all, now);
        ages.iter().map(|age| age.as_secs() / 3_600).collect()
    }

    /// Up for so many hours, at so late a date.
    fn at(up: u64, unix: u64) -> Clocks {
        Clocks {
            unix: date(unix),
            boot: up * HOUR,
            monotonic: up * HOUR,
        }
    }

    #[test]
    fn an_ordinary_day() {
        let all = [
            Ended::Before(date(985)),
            Ended::Here(HOUR, date(991)),
            Ended::Here(9 * HOUR, date(999)),
        ];
        assert_eq!(hours(&all, at(10, 1_000)), [15, 9, 1]);
    }

    #[test]
    fn a_clock_that_is_set_forward_makes_nothing_older() {
        let all = [
            Ended::Before(date(985)),
            Ended::Here(HOUR, date(991)),
            // Since then it is ten thousand hours ahead.
            Ended::Here(9 * HOUR, date(10_999)),
        ];
        assert_eq!(hours(&all, at(10, 11_000)), [15, 9, 1]);
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_the_order_of_what_happened() {
        let all = [
            Ended::Here(2 * HOUR, date(992)),
            Ended::Here(8 * HOUR, date(498)),
            Ended::Here(9 * HOUR, date(499)),
        ];
        assert_eq!(hours(&all, at(10, 500)), [8, 2, 1]);
        // By the clock as it is now an earlier boot's is of the future; it is as old as this boot at the least.
        assert_eq!(hours(&[Ended::Before(date(985))], at(10, 500)), [10]);
        assert_eq!(hours(&[Ended::Somewhere(date(985))], at(10, 500)), [0]);
    }

    #[test]
    fn a_machine_without_a_clock_of_its_own_ages_what_earlier_boots_left_as_it_runs() {
        // It starts in 1970, and is reported the date later.
        let all = |up: u64| {
            let all = [Ended::Before(date(400_000)), Ended::Here(HOUR, date(1))];
            hours(&all, at(up, 400_000 + up))
        };
        assert_eq!(all(2), [2, 1]);
        assert_eq!(all(25), [25, 24]);
    }

    #[test]
    fn a_night_asleep_counts() {
        let night = 8 * HOUR;
        let now = Clocks {
            monotonic: 10 * HOUR,
            boot: 10 * HOUR + night,
            unix: date(1_018),
        };
        assert_eq!(hours(&[Ended::Here(HOUR, date(1_001))], now), [17]);
        // Where only the clock is told that stood still, it is too young and never too old.
        assert_eq!(hours(&[Ended::HereAwake(HOUR, date(1_001))], now), [9]);
    }

    #[test]
    fn whatever_a_head_says_there_is_an_age() {
        for ended in [
            Ended::Here(Ns::MAX, i64::MIN),
            Ended::HereAwake(Ns::MAX, i64::MAX),
            Ended::Before(i64::MIN),
            Ended::Before(i64::MAX),
            Ended::Somewhere(i64::MIN),
        ] {
            for now in [at(0, 0), at(10, 1_000)] {
                assert!(ages(&[ended, ended], now)[0] <= Duration::from_nanos(Ns::MAX));
            }
        }
    }

    #[test]
    fn only_a_boot_of_this_machine_tells_the_least_age() {
        let boot = |id: &str, host: &str| Boot {
            id: Some(id.to_owned()),
            host: Some(host.to_owned()),
        };
        let head = super::super::folder::tests::head("a", "mail1", None);
        let date = head.ended_unix();
        let awake = head.started + head.length;
        assert_eq!(
            Ended::of(&head, &boot("a", "mail1")),
            Ended::HereAwake(awake, date)
        );
        assert_eq!(Ended::of(&head, &boot("b", "mail1")), Ended::Before(date));
        assert_eq!(Ended::of(&head, &boot("b", "mail2")), Ended::Somewhere(date));
        assert_eq!(Ended::of(&head, &Boot::default()), Ended::Somewhere(date));
        let found = super::super::folder::tests::head("a", "mail1", Some(7));
        assert_eq!(Ended::of(&found, &boot("a", "mail1")), Ended::Here(7, date));
    }
}
