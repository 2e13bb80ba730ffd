//! The times at the beginning of lines of kernel and system logs.
//!
//! In: a line. Out: its [`Stamp`] and what comes after it. A date without a year, and a time without a zone, stay so: the
//! abbreviation of a zone (`EEST`) is not taken for one, because most stand for several; `UTC` stands for itself.

use holdup_evidence::Ns;
use holdup_evidence::observed::{Civil, When};
use jiff::civil::{Date, date};

const NS_PER_SECOND: u64 = 1_000_000_000;
/// A leap year, so that every day of an unknown year has a place.
const UNKNOWN_YEAR: i16 = 1972;

/// What the beginning of a line tells of its time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stamp {
    /// When, by the most that it tells.
    pub(crate) at: Option<When>,
    /// Since boot, where it tells that.
    pub(crate) since_boot: Option<Ns>,
}

/// The time that a line begins with, and the rest of the line.
pub(crate) fn leading(line: &[u8]) -> Option<(Stamp, &[u8])> {
    match line.first()? {
        b'[' => bracketed(line),
        b'0'..=b'9' => iso(line).or_else(|| unix(line)),
        b'A'..=b'Z' => month_first(line).or_else(|| weekday_first(line)),
        _ => None,
    }
}

/// `[    5.020000] ` since boot, or `[Wed Apr 17 12:05:06 2019] ` on the wall.
pub(crate) fn bracketed(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let inner = line.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', inner)?;
    let (inner, rest) = (inner.get(..end)?.trim_ascii(), inner.get(end + 1..)?);
    let stamp = match inner.first()? {
        b'0'..=b'9' => {
            // `dmesg -d` puts the time since the last line behind it.
            let (ns, more) = seconds(inner)?;
            let delta = more.trim_ascii();
            if !(delta.is_empty() || delta.starts_with(b"<") && delta.ends_with(b">")) {
                return None;
            }
            Stamp {
                at: Some(When::SinceBoot(ns)),
                since_boot: Some(ns),
            }
        }
        _ if is_minute(inner) || is_since_last(inner) => Stamp {
            at: None,
            since_boot: None,
        },
        _ => Stamp {
            at: Some(When::Civil(long_date(inner)?)),
            since_boot: None,
        },
    };
    Some((stamp, after_caller(rest)))
}

/// `Sep11 18:40`, as `dmesg -e` writes a minute in which its first line was: a year is missing.
fn is_minute(text: &[u8]) -> bool {
    let (name, rest) = text.split_at_checked(3).unwrap_or_default();
    let mut words = rest.split(|byte| *byte == b' ');
    let day = words.next().is_some_and(|day| small(day).is_some());
    let clock = words.next().unwrap_or_default();
    let minute = matches!(clock, [b'0'..=b'2', b'0'..=b'9', b':', b'0'..=b'5', b'0'..=b'9']);
    month(name).is_some() && day && minute && words.next().is_none()
}

/// `+0.000015`, as `dmesg -e` writes the time since the line before: always with six digits.
fn is_since_last(text: &[u8]) -> bool {
    let Some((whole, part)) = text.strip_prefix(b"+").and_then(|text| {
        let point = memchr::memchr(b'.', text)?;
        Some((text.get(..point)?, text.get(point + 1..)?))
    }) else {
        return false;
    };
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    !whole.is_empty() && digits(whole) && part.len() == 6 && digits(part)
}

/// Passes over the thread or CPU that some kernels put behind the time: `[  T123]`, `[  C0]`.
pub(crate) fn after_caller(rest: &[u8]) -> &[u8] {
    let trimmed = rest.strip_prefix(b" ").unwrap_or(rest);
    let caller = || {
        let inner = trimmed.strip_prefix(b"[")?;
        let end = memchr::memchr(b']', inner)?;
        let name = inner.get(..end)?.trim_ascii();
        let number = name.strip_prefix(b"T").or_else(|| name.strip_prefix(b"C"))?;
        let digits = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
        digits.then_some(inner.get(end + 1..)?)
    };
    let rest = caller().unwrap_or(rest);
    rest.strip_prefix(b" ").unwrap_or(rest)
}

/// `Wed Apr 17 12:05:06 2019`, as `ctime` writes it.
fn long_date(text: &[u8]) -> Option<Civil> {
    let mut words = crate::numbers::words(text).skip(1);
    let month = month(words.next()?)?;
    let day = small(words.next()?)?;
    let (of_day, _) = time_of_day(words.next()?)?;
    let year = small(words.next()?)?;
    civil(i16::try_from(year).ok()?, true, month, day, of_day)
}

/// `Wed Apr 17 12:05:06 EEST 2019`, as `date` prints it without a locale; `UTC` is the only zone that is taken for one.
pub(crate) fn date_command(line: &[u8]) -> Option<When> {
    let words: Vec<&[u8]> = crate::numbers::words(line).take(7).collect();
    let [_, name, day, time, zone, year] = words.as_slice() else {
        return None;
    };
    let (of_day, rest) = time_of_day(time)?;
    let year = i16::try_from(small(year)?).ok()?;
    let at = civil(year, true, month(name)?, small(day)?, of_day)?;
    if !rest.is_empty() {
        return None;
    }
    match *zone {
        b"UTC" => {
            let days = at.day?.checked_mul(86_400)?;
            let ns = days.checked_mul(NS_PER_SECOND as i64)?;
            Some(When::Unix(ns.checked_add(i64::try_from(of_day).ok()?)?))
        }
        _ => Some(When::Civil(at)),
    }
}

/// `Apr 17 12:05:06.123456 ` as syslog has it.
fn month_first(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let month = month(line.get(..3)?)?;
    let rest = line.get(3..)?.strip_prefix(b" ")?.trim_ascii_start();
    let (day, rest) = number(rest)?;
    let (of_day, rest) = time_of_day(rest.strip_prefix(b" ")?)?;
    let at = civil(UNKNOWN_YEAR, false, month, day, of_day)?;
    Some((wall(at), rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// `Wed 2019-04-17 12:05:06 EEST ` as `journalctl -o short-full` and systemd's own headers have it.
pub(crate) fn weekday_first(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let rest = line.get(3..)?.strip_prefix(b" ")?;
    let (date, rest) = day_of(rest)?;
    let (of_day, rest) = time_of_day(rest.strip_prefix(b" ")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let (zone, rest) = (rest.get(..end)?, rest.get(end..)?);
    let stamp = match zone {
        b"UTC" => unix_at(date, of_day, 0)?,
        _ => wall(Civil {
            day: Some(days(date)),
            year_known: true,
            of_day,
        }),
    };
    Some((stamp, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// `2019-04-17T12:05:06.123456+03:00 `, with a point or a comma, with or without a zone.
pub(crate) fn iso(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let (date, rest) = day_of(line)?;
    let rest = rest.strip_prefix(b"T").or_else(|| rest.strip_prefix(b" "))?;
    let (of_day, rest) = time_of_day(rest)?;
    let (stamp, rest) = match zone(rest) {
        Some((offset, rest)) => (unix_at(date, of_day, offset)?, rest),
        None => {
            let at = Civil {
                day: Some(days(date)),
                year_known: true,
                of_day,
            };
            (wall(at), rest)
        }
    };
    Some((stamp, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// `1555491906.123456 `, as `journalctl -o short-unix` has it.
fn unix(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let whole = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Nine digits and more: since 1973, and no number of seconds since boot.
    if whole < 9 || line.get(whole) != Some(&b'.') {
        return None;
    }
    let (ns, rest) = seconds(line)?;
    let stamp = Stamp {
        at: Some(When::Unix(i64::try_from(ns).ok()?)),
        since_boot: None,
    };
    Some((stamp, rest.strip_prefix(b" ")?))
}

fn wall(at: Civil) -> Stamp {
    Stamp {
        at: Some(When::Civil(at)),
        since_boot: None,
    }
}

fn unix_at(date: Date, of_day: Ns, offset_seconds: i64) -> Option<Stamp> {
    let seconds = days(date).checked_mul(86_400)?.checked_sub(offset_seconds)?;
    let ns = seconds.checked_mul(NS_PER_SECOND as i64)?;
    Some(Stamp {
        at: Some(When::Unix(ns.checked_add(i64::try_from(of_day).ok()?)?)),
        since_boot: None,
    })
}

/// `Z`, `+03:00`, `+0300`: seconds east of Greenwich.
fn zone(text: &[u8]) -> Option<(i64, &[u8])> {
    if let Some(rest) = text.strip_prefix(b"Z") {
        return Some((0, rest));
    }
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = small(text.get(1..3)?)?;
    let rest = text.get(3..)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let minutes = small(rest.get(..2)?)?;
    let offset = i64::try_from(hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?).ok()?;
    (hours < 24 && minutes < 60).then_some((sign * offset, rest.get(2..)?))
}

/// `2019-04-17`.
fn day_of(text: &[u8]) -> Option<(Date, &[u8])> {
    let dashes = text.get(4) == Some(&b'-') && text.get(7) == Some(&b'-');
    if !dashes {
        return None;
    }
    let year = i16::try_from(small(text.get(..4)?)?).ok()?;
    let month = i8::try_from(small(text.get(5..7)?)?).ok()?;
    let day = i8::try_from(small(text.get(8..10)?)?).ok()?;
    Some((Date::new(year, month, day).ok()?, text.get(10..)?))
}

/// `12:05:06`, `12:05:06.123456` or `12:05:06,123`: nanoseconds since midnight.
pub(crate) fn time_of_day(text: &[u8]) -> Option<(Ns, &[u8])> {
    if text.get(2) != Some(&b':') || text.get(5) != Some(&b':') {
        return None;
    }
    let (hour, minute, second) = (
        small(text.get(..2)?)?,
        small(text.get(3..5)?)?,
        small(text.get(6..8)?)?,
    );
    // 60 is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let whole = (hour * 3600 + minute * 60 + second) * NS_PER_SECOND;
    let rest = text.get(8..)?;
    let fraction = rest
        .strip_prefix(b".")
        .or_else(|| rest.strip_prefix(b","))
        .map(part_of_second);
    match fraction {
        Some((ns, after)) if after.len() + 1 < rest.len() => Some((whole + ns, after)),
        _ => Some((whole, rest)),
    }
}

/// `5.020000`: nanoseconds, and what comes after.
fn seconds(text: &[u8]) -> Option<(Ns, &[u8])> {
    let (whole, rest) = number(text)?;
    let (part, rest) = part_of_second(rest.strip_prefix(b".")?);
    Some((whole.checked_mul(NS_PER_SECOND)?.checked_add(part)?, rest))
}

/// Digits behind the point, as nanoseconds; what is smaller is cut.
fn part_of_second(text: &[u8]) -> (Ns, &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(count);
    let mut ns = 0;
    for place in 0..9 {
        ns = ns * 10 + digits.get(place).map_or(0, |digit| u64::from(digit - b'0'));
    }
    (ns, rest)
}

fn civil(year: i16, year_known: bool, month: i8, day: u64, of_day: Ns) -> Option<Civil> {
    let date = Date::new(year, month, i8::try_from(day).ok()?).ok()?;
    Some(Civil {
        day: Some(days(date)),
        year_known,
        of_day,
    })
}

/// Days since 1970-01-01.
fn days(of: Date) -> i64 {
    let span = of.since(date(1970, 1, 1));
    span.map_or(0, |span| i64::from(span.get_days()))
}

fn month(name: &[u8]) -> Option<i8> {
    const NAMES: [&[u8]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
    ];
    let place = NAMES.iter().position(|month| *month == name)?;
    i8::try_from(place + 1).ok()
}

/// A number of digits only.
fn small(text: &[u8]) -> Option<u64> {
    match number(text)? {
        (value, []) => Some(value),
        _ => None,
    }
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Nineteen digits are in any case fewer than 2^64.
    if count == 0 || count > 19 {
        return None;
    }
    let (digits, rest) = text.split_at(count);
    let value = digits.iter().fold(0u64, |value, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::{Stamp, leading};
    use holdup_evidence::observed::{Civil, When};

    fn at(line: &str) -> (Option<When>, &str) {
        let (stamp, rest) = leading(line.as_bytes()).unwrap_or_else(|| panic!("no time in {line}"));
        (stamp.at, std::str::from_utf8(rest).unwrap())
    }

    fn civil(day: i64, year_known: bool, second: u64) -> Option<When> {
        Some(When::Civil(Civil {
            day: Some(day),
            year_known,
            of_day: second * 1_000_000_000,
        }))
    }

    const NOON: u64 = 12 * 3600 + 5 * 60 + 6;

    #[test]
    fn since_boot_in_its_forms() {
        for line in [
            "[    5.020000] random: x",
            "[    5.020000] [  T123] random: x",
            "[    5.020000][    C0] random: x",
            "[    5.020000 <    0.000012>] random: x",
        ] {
            assert_eq!(
                at(line),
                (Some(When::SinceBoot(5_020_000_000)), "random: x"),
                "{line}"
            );
        }
        assert_eq!(at("[  5.0]  indented").1, " indented");
    }

    #[test]
    fn on_the_wall_with_and_without_a_year() {
        assert_eq!(
            at("[Wed Apr 17 12:05:06 2019] x"),
            (civil(18_003, true, NOON), "x")
        );
        assert_eq!(at("Apr 17 12:05:06 host x"), (civil(837, false, NOON), "host x"));
        assert_eq!(at("Apr  7 12:05:06 host x").0, civil(827, false, NOON));
        assert_eq!(
            at("Wed 2019-04-17 12:05:06 EEST host x"),
            (civil(18_003, true, NOON), "host x")
        );
        assert_eq!(at("2019-04-17T12:05:06 host x").0, civil(18_003, true, NOON));
    }

    #[test]
    fn with_a_zone_since_the_epoch() {
        let unix = Some(When::Unix(1_555_491_906_000_000_000));
        for line in [
            "2019-04-17T12:05:06+0300 host x",
            "2019-04-17T12:05:06+03:00 host x",
            "2019-04-17T09:05:06Z host x",
            "2019-04-17T05:05:06,000000-04:00 host x",
            "Wed 2019-04-17 09:05:06 UTC host x",
            "1555491906.000000 host x",
        ] {
            assert_eq!(at(line), (unix, "host x"), "{line}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for line in [
            "",
            "[",
            "[]",
            "[x] y",
            "[5.02s][info] jvm",
            "[12] y",
            "Apr 31 12:05:06 x",
            "Foo 17 12:05:06 x",
            "Apr 17 25:05:06 x",
            "2019-13-17T12:05:06 x",
            "2019",
            "99999999999999999999999.1 x",
            "[99999999999999999999.5] x",
            "\u{ff}",
        ] {
            assert_eq!(leading(line.as_bytes()), None::<(Stamp, &[u8])>, "{line}");
        }
    }
}
