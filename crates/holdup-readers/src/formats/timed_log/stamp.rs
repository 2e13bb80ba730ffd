//! The time at which a line was logged: found once by search, then looked for where it was.
//!
//! In: a line. Out: a [`Stamp`]. What is reported of date, year and zone is kept apart from what is not: `01/10` may be in
//! January or in October, so of such dates only "the same" and "another" are used.

use holdup_evidence::Ns;
use holdup_evidence::observed::{Civil, When};

const NS: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * NS;

/// How far into a line its time is looked for: beyond an access log's address and user.
const WITHIN: usize = 96;

/// A time as a line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// What it counts from.
    pub zero: Zero,
    /// Nanoseconds since that.
    pub ns: i64,
    /// Where in the line it ends.
    pub end: usize,
}

/// What a time counts from: two times have a distance if this is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    /// The epoch.
    Unix,
    /// A date without a zone; whether the year is reported.
    Civil(bool),
    /// Midnight of a date that cannot be determined, which has this text.
    Midnight(u64),
    /// Midnight; there is no date.
    TimeOfDay,
    /// The beginning of the log or its program.
    Start,
}

impl Stamp {
    /// As evidence.
    pub(crate) fn when(&self) -> Option<When> {
        let unsigned = Ns::try_from(self.ns).ok()?;
        let civil = |day: Option<i64>, year_known| {
            When::Civil(Civil {
                day,
                year_known,
                of_day: unsigned % (DAY as Ns),
            })
        };
        Some(match self.zero {
            Zero::Unix => When::Unix(self.ns),
            Zero::Civil(year_known) => civil(Some(self.ns.div_euclid(DAY)), year_known),
            Zero::Midnight(_) | Zero::TimeOfDay => civil(None, false),
            Zero::Start => When::SinceStart(unsigned),
        })
    }
}

/// Finds times in the lines of one log.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// Where the last clock time began.
    at: usize,
    /// The text before the last clock time, and what date it is.
    before: Vec<u8>,
    date: Date,
}

/// A date as far as it can be reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Date {
    /// Days since the epoch, and whether the year is reported.
    Day(i64, bool),
    /// A date that may be of two days; a hash of its text.
    Ambiguous(u64),
    #[default]
    None,
}

impl Stamps {
    /// The time of a line.
    #[inline]
    pub(crate) fn of(&mut self, line: &[u8]) -> Option<Stamp> {
        if let Some(of_day) = clock(line, self.at) {
            return self.with_date(line, self.at, of_day);
        }
        if let Some(at) = find_clock(line) {
            let of_day = clock(line, at)?;
            self.at = at;
            return self.with_date(line, at, of_day);
        }
        bracketed(line).or_else(|| epoch(line))
    }

    #[inline]
    fn with_date(&mut self, line: &[u8], at: usize, of_day: i64) -> Option<Stamp> {
        let before = line.get(..at)?;
        if before != self.before.as_slice() {
            self.date = date_before(before)?;
            self.before.clear();
            self.before.extend_from_slice(before);
        }
        let mut end = at + 8;
        let (fraction, length) = fraction(line.get(end..)?);
        end += length;
        let mut of_day = of_day + fraction;
        let rest = line.get(end..)?;
        if let Some(noon) = half_of_day(rest) {
            of_day = of_day % (DAY / 2) + noon;
            end += 3;
        }
        let date = match self.date {
            Date::Day(day, false) => match year_after(rest) {
                Some(year) => Date::Day(day_of(year, month_day(day))?, true),
                None => self.date,
            },
            other => other,
        };
        Some(match date {
            Date::Day(day, year_known) => {
                let ns = day.checked_mul(DAY)?.checked_add(of_day)?;
                match zone(rest) {
                    Some((offset, length)) if year_known => Stamp {
                        zero: Zero::Unix,
                        ns: ns.checked_sub(offset)?,
                        end: end + length,
                    },
                    _ => Stamp {
                        zero: Zero::Civil(year_known),
                        ns,
                        end,
                    },
                }
            }
            Date::Ambiguous(text) => Stamp {
                zero: Zero::Midnight(text),
                ns: of_day,
                end,
            },
            Date::None => Stamp {
                zero: Zero::TimeOfDay,
                ns: of_day,
                end,
            },
        })
    }
}

/// Two digits.
#[inline]
fn two(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

/// `HH:MM:SS` at this place, ns since midnight.
#[inline]
fn clock(line: &[u8], at: usize) -> Option<i64> {
    let [h0, h1, b':', m0, m1, b':', s0, s1] = line.get(at..at + 8)? else {
        return None;
    };
    let (hour, minute, second) = (two(*h0, *h1)?, two(*m0, *m1)?, two(*s0, *s1)?);
    // 60 is a leap second.
    (hour < 24 && minute < 60 && second <= 60).then_some(((hour * 60 + minute) * 60 + second) * NS)
}

fn find_clock(line: &[u8]) -> Option<usize> {
    let head = line.get(..WITHIN).unwrap_or(line);
    memchr::memchr_iter(b':', head).find_map(|colon| {
        let at = colon.checked_sub(2)?;
        // Not the end of a longer number; `:` is between date and time of access logs.
        let free = at == 0 || head.get(at - 1).is_some_and(|byte| !byte.is_ascii_digit());
        (free && clock(line, at).is_some()).then_some(at)
    })
}

/// `.123` or `,123456`: nanoseconds and how long it is.
#[inline]
fn fraction(rest: &[u8]) -> (i64, usize) {
    let [b'.' | b',', digits @ ..] = rest else {
        return (0, 0);
    };
    let (mut ns, mut unit, mut length) = (0, NS / 10, 0);
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()).take(12) {
        ns += i64::from(digit - b'0') * unit;
        unit /= 10;
        length += 1;
    }
    if length == 0 { (0, 0) } else { (ns, length + 1) }
}

/// ` AM` or ` PM`: what is added to the first half of the day.
#[inline]
fn half_of_day(rest: &[u8]) -> Option<i64> {
    match rest.get(..3)? {
        b" AM" => Some(0),
        b" PM" => Some(DAY / 2),
        _ => None,
    }
}

/// A zone after a time, and how long it is written: `Z`, `+0100`, ` +01:00`, ` UTC`.
#[inline]
fn zone(rest: &[u8]) -> Option<(i64, usize)> {
    let (space, text) = match rest {
        [b' ', text @ ..] => (1, text),
        text => (0, text),
    };
    let (sign, digits) = match text {
        [b'Z', next, ..] if next.is_ascii_alphanumeric() => return None,
        [b'Z', ..] => return Some((0, space + 1)),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ if text.starts_with(b"UTC") || text.starts_with(b"GMT") => return Some((0, space + 3)),
        _ => return None,
    };
    let (hour, minute, length) = match digits {
        [h0, h1, b':', m0, m1, ..] => (two(*h0, *h1)?, two(*m0, *m1)?, 6),
        [h0, h1, m0, m1, ..] => (two(*h0, *h1)?, two(*m0, *m1)?, 5),
        _ => return None,
    };
    let ended = digits.get(length - 1).is_none_or(|next| !next.is_ascii_digit());
    // Zones reach from -12 to +14 hours.
    (ended && hour <= 14 && minute < 60).then_some((sign * (hour * 60 + minute) * 60 * NS, space + length))
}

/// The date that ends right before a clock time; `None` where what is there makes it no time at all.
fn date_before(before: &[u8]) -> Option<Date> {
    let Some((&last, text)) = before.split_last() else {
        return Some(Date::None);
    };
    if last.is_ascii_alphanumeric() && last != b'T' {
        return None;
    }
    let tail = |length: usize| text.len().checked_sub(length).and_then(|from| text.get(from..));
    if let Some([y0, y1, y2, y3, a @ (b'-' | b'/' | b'.'), m0, m1, b, d0, d1]) = tail(10)
        && a == b
        && let (Some(y), Some(yy), Some(m), Some(d)) =
            (two(*y0, *y1), two(*y2, *y3), two(*m0, *m1), two(*d0, *d1))
    {
        return Some(day_of(y * 100 + yy, (m, d)).map_or(Date::None, |day| Date::Day(day, true)));
    }
    if let Some([d0, d1, a @ (b'-' | b'/' | b' '), m @ .., b, y0, y1, y2, y3]) = tail(11)
        && a == b
        && let (Some(d), Some(m), Some(y), Some(yy)) = (two(*d0, *d1), month(m), two(*y0, *y1), two(*y2, *y3))
    {
        return Some(day_of(y * 100 + yy, (m, d)).map_or(Date::None, |day| Date::Day(day, true)));
    }
    if let Some([d0, d1, b'.', m0, m1, b'.', y0, y1, y2, y3]) = tail(10)
        && let (Some(d), Some(m), Some(y), Some(yy)) =
            (two(*d0, *d1), two(*m0, *m1), two(*y0, *y1), two(*y2, *y3))
    {
        return Some(day_of(y * 100 + yy, (m, d)).map_or(Date::None, |day| Date::Day(day, true)));
    }
    // A leap year stands for the year that is not known.
    let without_year = |m, d| day_of(1972, (m, d)).map_or(Date::None, |day| Date::Day(day, false));
    if let Some([name @ .., b' ', d0, d1]) = tail(6)
        && let Some(m) = month(name)
        && let Some(d) = two(if *d0 == b' ' { b'0' } else { *d0 }, *d1)
    {
        return Some(without_year(m, d));
    }
    if let Some([b'I' | b'W' | b'E' | b'F', m0, m1, d0, d1]) = tail(5)
        && let (Some(m), Some(d)) = (two(*m0, *m1), two(*d0, *d1))
    {
        return Some(without_year(m, d));
    }
    let word = text
        .rsplit(|byte| matches!(byte, b' ' | b'[' | b'(' | b'"'))
        .next()
        .unwrap_or_default();
    let looks_like_date = word.len() >= 5
        && word
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'/' | b'-' | b'.'))
        && word.iter().any(|byte| !byte.is_ascii_digit());
    Some(match looks_like_date {
        true => Date::Ambiguous(super::hash(word)),
        false => Date::None,
    })
}

/// ` 2026` after a time, as `ctime` and Apache's error log have it.
fn year_after(rest: &[u8]) -> Option<i64> {
    let rest = after_zone_name(after_zone_name(rest));
    let [b' ', y0, y1, y2, y3, more @ ..] = rest else {
        return None;
    };
    let year = two(*y0, *y1)? * 100 + two(*y2, *y3)?;
    let ended = more.first().is_none_or(|next| !next.is_ascii_alphanumeric());
    (ended && (1970..2100).contains(&year)).then_some(year)
}

/// Passes over the name of a zone or half of a day between time and year, as `date` has them.
fn after_zone_name(rest: &[u8]) -> &[u8] {
    const MAX_BYTES: usize = 5;
    let Some(name) = rest.strip_prefix(b" ") else {
        return rest;
    };
    let length = name.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    match name.get(length..) {
        Some(behind) if (2..=MAX_BYTES).contains(&length) && behind.starts_with(b" ") => behind,
        _ => rest,
    }
}

fn month(name: &[u8]) -> Option<i64> {
    const NAMES: [&[u8]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
    ];
    let place = NAMES.iter().position(|known| *known == name)?;
    Some(place as i64 + 1)
}

/// Days since the epoch of a date; `None` where there is no such day.
fn day_of(year: i64, (month, day): (i64, i64)) -> Option<i64> {
    let date = jiff::civil::Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    );
    let epoch = jiff::civil::Date::constant(1970, 1, 1);
    let days = date.ok()?.since((jiff::Unit::Day, epoch)).ok()?.get_days();
    Some(i64::from(days))
}

/// Month and day of a day of 1972.
fn month_day(day: i64) -> (i64, i64) {
    let epoch = jiff::civil::Date::constant(1970, 1, 1);
    let date = epoch.saturating_add(jiff::Span::new().days(day.clamp(0, 100_000)));
    (i64::from(date.month()), i64::from(date.day()))
}

/// `[   12.345678]`, `[12,345s]`: seconds since something began.
fn bracketed(line: &[u8]) -> Option<Stamp> {
    let inner = line.strip_prefix(b"[")?;
    let close = inner.iter().take(24).position(|byte| *byte == b']')?;
    let text = inner.get(..close)?.trim_ascii_start();
    let text = text.strip_suffix(b"s").unwrap_or(text);
    let point = text.iter().position(|byte| matches!(byte, b'.' | b','))?;
    let seconds: i64 = std::str::from_utf8(text.get(..point)?).ok()?.parse().ok()?;
    let (part, length) = fraction(text.get(point..)?);
    let whole = point + length == text.len() && length > 0;
    (whole && seconds >= 0).then_some(Stamp {
        zero: Zero::Start,
        ns: seconds.checked_mul(NS)?.checked_add(part)?,
        end: close + 2,
    })
}

/// Seconds or milliseconds since the epoch, as the first number of a line: ten or thirteen digits.
fn epoch(line: &[u8]) -> Option<Stamp> {
    let head = line.get(..WITHIN).unwrap_or(line);
    let from = head.iter().position(u8::is_ascii_digit)?;
    if from > 0
        && head
            .get(from - 1)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
    {
        return None;
    }
    let digits = head.get(from..)?;
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value: i64 = std::str::from_utf8(digits.get(..length)?).ok()?.parse().ok()?;
    let rest = digits.get(length..)?;
    let (ns, more) = match length {
        10 => {
            let (part, length) = fraction(rest);
            (value.checked_mul(NS)?.checked_add(part)?, length)
        }
        13 => (value.checked_mul(1_000_000)?, 0),
        _ => return None,
    };
    let ended = rest.get(more).is_none_or(|next| !next.is_ascii_alphanumeric());
    // From 2001 to 2033: other numbers of ten digits are mostly not.
    let sensible = (1_000_000_000 * NS..2_000_000_000 * NS).contains(&ns);
    (ended && sensible).then_some(Stamp {
        zero: Zero::Unix,
        ns,
        end: from + length + more,
    })
}

#[cfg(test)]
mod tests {
    use super::{Stamps, Zero};

    const SECOND: i64 = 1_000_000_000;

    fn of(line: &str) -> Option<(Zero, i64)> {
        Stamps::default()
            .of(line.as_bytes())
            .map(|stamp| (stamp.zero, stamp.ns))
    }

    #[test]
    fn times_of_the_common_kinds() {
        let utc = |ns| Some((Zero::Unix, 1_795_320_197 * SECOND + ns));
        for line in [
            "2026-11-22T04:03:17Z x",
            "2026-11-22T04:03:17+0000 x",
            "2026-11-22 05:03:17+01:00 x",
            "[22/Nov/2026:04:03:17 +0000] \"GET /\"",
            "127.0.0.1 - - [22/Nov/2026:04:03:17 +0000] \"GET /\"",
            "1795320197 x",
            "{\"ts\":1795320197,\"msg\":1}",
        ] {
            assert_eq!(of(line), utc(0), "{line}");
        }
        assert_eq!(of("2026-11-22T04:03:17.250Z x"), utc(SECOND / 4));
        assert_eq!(of("1795320197250 x"), utc(SECOND / 4));
        let civil = |year| Some((Zero::Civil(year), 1_795_320_197 * SECOND));
        for line in [
            "2026-11-22 04:03:17 x",
            "2026/11/22 04:03:17 x",
            "22-Nov-2026 04:03:17 x",
            "22.11.2026 04:03:17 x",
            "[Sun Nov 22 04:03:17 2026] x",
            "2026-11-22 04:03:17 CET x",
        ] {
            assert_eq!(of(line), civil(true), "{line}");
        }
        assert_eq!(
            of("[Sun Nov 22 04:03:17.500000 2026] x").map(|s| s.1 % SECOND),
            Some(SECOND / 2)
        );
        for line in ["Nov 22 04:03:17 host x", "I1122 04:03:17.000 1 x.go:1] x"] {
            assert_eq!(of(line).map(|s| s.0), Some(Zero::Civil(false)), "{line}");
        }
        assert!(matches!(
            of("01/10 13:03:28 x"),
            Some((Zero::Midnight(_), 47_008_000_000_000))
        ));
        assert_eq!(of("04:03:17,123 x"), Some((Zero::TimeOfDay, 14_597_123_000_000)));
        assert_eq!(of("11/22/26 04:03:17 PM x").map(|s| s.1), Some(57_797 * SECOND));
        assert_eq!(of("[    5.020000] x"), Some((Zero::Start, 5_020_000_000)));
        assert_eq!(of("[30,994s] x"), Some((Zero::Start, 30_994_000_000)));
    }

    #[test]
    fn what_is_no_time() {
        for line in [
            "",
            "x",
            "24:00:00",
            "12:60:00",
            "1:2:3",
            "a12:00:00",
            "12345678901 x",
            "[abc] x",
            "[5] x",
            "[-1.5] x",
            "0000000001 x",
            "\u{e9}\u{e9}",
            "12:00:0",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(of("2026-02-30 00:00:00 x"), Some((Zero::TimeOfDay, 0)));
    }
}
