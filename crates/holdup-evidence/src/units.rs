//! Durations, amounts, shares and counts in words: the only place that makes them, for rules, reports and views alike.
//!
//! In: integers, so that two views can't round differently. Out: text. A thing that is there never reads as nothing, nor one that is not all
//! as all.

use crate::Ns;

/// One microsecond in nanoseconds.
const MICROSECOND: Ns = 1_000;
/// One millisecond in nanoseconds.
const MILLISECOND: Ns = 1_000_000;
/// One second in nanoseconds.
const SECOND: Ns = 1_000_000_000;

/// Half of the last digit of seconds with two decimals: what is less would read `0.00 s`.
const LEAST_IN_HUNDREDTHS: Ns = 5 * MILLISECOND;

/// A duration with about three digits: `45 µs`, `12.3 ms`, `1.01 s`, `1 min 42 s`.
#[must_use]
pub fn duration(ns: Ns) -> String {
    match ns {
        0 => "0 s".to_owned(),
        1..=999 => format!("{ns} ns"),
        1_000..9_950 => decimal(ns, MICROSECOND, 1, "µs"),
        9_950..999_500 => decimal(ns, MICROSECOND, 0, "µs"),
        999_500..99_950_000 => decimal(ns, MILLISECOND, 1, "ms"),
        99_950_000..999_500_000 => decimal(ns, MILLISECOND, 0, "ms"),
        999_500_000..59_995_000_000 => decimal(ns, SECOND, 2, "s"),
        _ => long(rounded(ns, SECOND)),
    }
}

/// A duration that stands beside a longer one: in hundredths of seconds where both can be, so that
/// they compare at a glance.
#[must_use]
pub fn duration_beside(ns: Ns, other: Ns) -> String {
    let seconds = SECOND..60 * SECOND;
    if seconds.contains(&other) && (LEAST_IN_HUNDREDTHS..SECOND).contains(&ns) {
        decimal(ns, SECOND, 2, "s")
    } else {
        duration(ns)
    }
}

/// An instant as seconds, with the places that a person compares: `6686.648 s`, as in the kernel's log.
#[must_use]
pub fn seconds(ns: Ns) -> String {
    let milliseconds = ns / MILLISECOND;
    format!("{}.{:03} s", milliseconds / 1_000, milliseconds % 1_000)
}

/// An RFC 3339 date without the digits after milliseconds.
#[must_use]
pub fn to_milliseconds(date: &str) -> String {
    let Some((whole, rest)) = date.split_once('.') else {
        return date.to_owned();
    };
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let zone = &rest[digits..];
    format!("{whole}.{:0<3}{zone}", &rest[..digits.min(3)])
}

/// A part of a whole: `97.3 %`. What is not nothing is never `0.0 %`, what is not all never `100.0 %`.
#[must_use]
pub fn percent(part: Ns, whole: Ns) -> String {
    if whole == 0 {
        return "0.0 %".to_owned();
    }
    let tenths = (u128::from(part) * 2_000 + u128::from(whole)) / (2 * u128::from(whole));
    match tenths {
        0 if part > 0 => "<0.1 %".to_owned(),
        1_000 if part < whole => ">99.9 %".to_owned(),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// A factor with about three digits.
#[must_use]
pub fn factor(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A share that is an estimate, without a decimal: `20 %`.
#[must_use]
pub fn whole_percent(part: Ns, whole: Ns) -> String {
    match (u128::from(part) * 200 + u128::from(whole)).checked_div(2 * u128::from(whole)) {
        None => "0 %".to_owned(),
        Some(0) if part > 0 => "<1 %".to_owned(),
        Some(percent) => format!("{percent} %"),
    }
}

/// `1 wait`, `2 waits`: a count with its noun.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A number of bytes, in the units that kernels count and limit memory in: `512 bytes`, `64.0 KiB`, `277 MiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1 << 10, "KiB"),
        (1 << 20, "MiB"),
        (1 << 30, "GiB"),
        (1 << 40, "TiB"),
    ];
    let Some((unit, name)) = UNITS.iter().rev().find(|(unit, _)| bytes >= *unit) else {
        return counted(bytes, "byte", "bytes");
    };
    let amount = bytes as f64 / *unit as f64;
    match amount {
        ..99.95 => format!("{amount:.1} {name}"),
        _ => format!("{amount:.0} {name}"),
    }
}

/// A share of 0..1: `97.3 %`.
#[must_use]
pub fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `ns` in `unit`s with `places` decimals (0, 1 or 2), rounded.
fn decimal(ns: Ns, unit: Ns, places: u32, name: &str) -> String {
    let scale = 10_u64.pow(places);
    let value = rounded(ns, unit / scale);
    if places == 0 {
        format!("{value} {name}")
    } else {
        let width = places as usize;
        format!("{}.{:0width$} {name}", value / scale, value % scale)
    }
}

/// Minutes and more, from whole seconds.
fn long(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if minutes < 120 {
        format!("{minutes} min {} s", seconds % 60)
    } else if hours < 72 {
        format!("{hours} h {} min", minutes % 60)
    } else {
        format!("{days} d {} h", hours % 24)
    }
}

/// `ns` divided by `unit`, rounded to the nearest.
fn rounded(ns: Ns, unit: Ns) -> u64 {
    ns / unit + u64::from(ns % unit >= unit.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::{MILLISECOND, SECOND, bytes, duration, duration_beside, percent, seconds, to_milliseconds};
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn durations_read_as_people_write_them() {
        for (ns, text) in [
            (0, "0 s"),
            (1, "1 ns"),
            (999, "999 ns"),
            (1_000, "1.0 µs"),
            (9_949, "9.9 µs"),
            (9_950, "10 µs"),
            (45_300, "45 µs"),
            (999_499, "999 µs"),
            (999_500, "1.0 ms"),
            (12_345_678, "12.3 ms"),
            (99_949_999, "99.9 ms"),
            (99_950_000, "100 ms"),
            (999_499_999, "999 ms"),
            (999_500_000, "1.00 s"),
            (1_014_000_000, "1.01 s"),
            (59_994_999_999, "59.99 s"),
            (59_995_000_000, "1 min 0 s"),
            (101_700_000_000, "1 min 42 s"),
            (7_199 * SECOND, "119 min 59 s"),
            (7_200 * SECOND, "2 h 0 min"),
            (259_200 * SECOND, "3 d 0 h"),
        ] {
            assert_eq!(duration(ns), text, "{ns} ns");
        }
        assert!(duration(u64::MAX).ends_with('h'));
    }

    #[test]
    fn a_part_is_set_in_the_unit_of_its_whole_unless_nothing_would_be_left() {
        assert_eq!(duration_beside(20 * MILLISECOND, 1_040 * MILLISECOND), "0.02 s");
        assert_eq!(duration_beside(5 * MILLISECOND, SECOND), "0.01 s");
        assert_eq!(duration_beside(4_999_999, SECOND), "5.0 ms");
        assert_eq!(duration_beside(20 * MILLISECOND, 900 * MILLISECOND), "20.0 ms");
        assert_eq!(duration_beside(20 * MILLISECOND, 101 * SECOND), "20.0 ms");
    }

    #[test]
    fn bytes_are_in_the_units_of_limits() {
        for (count, text) in [
            (1, "1 byte"),
            (1_023, "1023 bytes"),
            (1 << 10, "1.0 KiB"),
            (3 << 19, "1.5 MiB"),
            (277 << 20, "277 MiB"),
            (5_000 << 40, "5000 TiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn instants_end_at_milliseconds() {
        assert_eq!(seconds(6_686_648_425_296), "6686.648 s");
        for (date, short) in [
            ("2026-11-21T21:44:17.109416028Z", "2026-11-21T21:44:17.109Z"),
            ("2026-11-21T21:44:17.1+02:00", "2026-11-21T21:44:17.100+02:00"),
            ("2026-11-21T21:44:17Z", "2026-11-21T21:44:17Z"),
        ] {
            assert_eq!(to_milliseconds(date), short);
        }
    }

    #[test]
    fn shares_never_claim_nothing_or_all_falsely() {
        assert_eq!(percent(0, 10), "0.0 %");
        assert_eq!(percent(1, 10_000_000), "<0.1 %");
        assert_eq!(percent(973, 1_000), "97.3 %");
        assert_eq!(percent(9_999_999, 10_000_000), ">99.9 %");
        assert_eq!(percent(7, 7), "100.0 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
        assert_eq!(percent(5, 0), "0.0 %");
    }

    proptest! {
        #[test]
        fn what_is_there_never_reads_as_nothing(ns in 1_u64.., other in 0_u64..) {
            for text in [duration(ns), duration_beside(ns, other)] {
                prop_assert!(text.chars().any(|digit| ('1'..='9').contains(&digit)), "{text}");
            }
        }
    }
}
