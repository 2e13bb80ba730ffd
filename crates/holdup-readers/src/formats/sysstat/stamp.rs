//! Dates, times and the banner of sysstat's outputs.
//!
//! The date is printed as the locale has it, so `05/01/17` may be of May or of January: a date that can be read two ways
//! is not taken, and only the time of day is reported.

use crate::numbers::words;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Civil, When};

pub(super) const SECOND: Ns = 1_000_000_000;
pub(super) const DAY: Ns = 86_400 * SECOND;

/// The first line: `Linux 6.1.0 (host) 2026-11-22 _x86_64_ (2 CPU)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Banner {
    pub(super) release: String,
    pub(super) host: String,
    /// Days since 1970.
    pub(super) day: Option<i64>,
    pub(super) cpus: Option<u32>,
}

/// The banner, if the line is one.
pub(super) fn banner(line: &[u8]) -> Option<Banner> {
    let line = std::str::from_utf8(line).ok()?;
    let rest = line.trim().strip_prefix("Linux ")?;
    let (release, rest) = rest.split_once(" (")?;
    let (host, rest) = rest.split_once(')')?;
    if release.contains(' ') || !release.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut words = rest.split_whitespace();
    let day = words.next().and_then(|word| date(word.as_bytes()));
    let cpus = rest.rsplit_once('(').and_then(|(_, cpus)| {
        let number = cpus.split_whitespace().next()?;
        number.parse().ok().filter(|_| cpus.contains("CPU"))
    });
    Some(Banner {
        release: release.to_owned(),
        host: host.to_owned(),
        day,
        cpus,
    })
}

/// Days since 1970 of a date that can be read in one way only.
pub(super) fn date(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let separator = text.chars().find(|c| !c.is_ascii_digit())?;
    let parts: Vec<&str> = text.split(separator).collect();
    let [a, b, c] = parts.as_slice() else { return None };
    let number = |text: &str| text.parse::<i16>().ok();
    let (a_number, b_number, c_number) = (number(a)?, number(b)?, number(c)?);
    let year = |text: &str, number: i16| match text.len() {
        4 => Some(number),
        // sysstat began in 1999, and the kernel's figures with it.
        2 => Some(2000 + number),
        _ => None,
    };
    let (year, month, day) = match separator {
        '-' if a.len() == 4 => (a_number, b_number, c_number),
        '.' => (year(c, c_number)?, b_number, a_number),
        '/' if a_number > 12 => (year(c, c_number)?, b_number, a_number),
        '/' if b_number > 12 || a_number == b_number => (year(c, c_number)?, a_number, b_number),
        _ => return None,
    };
    let date = jiff::civil::Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some(i64::from((date - jiff::civil::date(1970, 1, 1)).get_days()))
}

/// Nanoseconds since midnight of `04:02:44`, and of `04:02:44 PM` with the word behind it.
pub(super) fn clock(text: &[u8], half: Option<&[u8]>) -> Option<Ns> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = text else {
        return None;
    };
    let two = |tens: &u8, ones: &u8| {
        let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
        digits.then(|| u64::from(tens - b'0') * 10 + u64::from(ones - b'0'))
    };
    let (hours, minutes, seconds) = (two(h1, h2)?, two(m1, m2)?, two(s1, s2)?);
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let hours = match half {
        Some(b"AM") => hours % 12,
        Some(b"PM") => hours % 12 + 12,
        _ => hours,
    };
    Some((hours * 3600 + minutes * 60 + seconds) * SECOND)
}

/// Whether a word says which half of the day it is.
pub(super) fn is_half(word: &[u8]) -> bool {
    matches!(word, b"AM" | b"PM")
}

/// A line that is nothing but an instant, as `iostat -t` prints one above each report. Its time of day is the second.
pub(super) fn line(text: &[u8]) -> Option<(When, Ns)> {
    let mut words = words(text).filter(|word| *word != b"Time:");
    let first = words.next()?;
    let (second, third, more) = (words.next(), words.next(), words.next());
    if more.is_some() {
        return None;
    }
    if let Some(at) = first.iter().position(|byte| *byte == b'T') {
        return iso(first.get(..at)?, first.get(at + 1..)?).filter(|_| second.is_none());
    }
    let (day, of_day) = match clock(first, second.filter(|word| is_half(word))) {
        Some(of_day) if second.is_none_or(is_half) && third.is_none() => (None, of_day),
        Some(_) => return None,
        None => {
            let dated = first.iter().filter(|byte| b"-./".contains(byte)).count() == 2;
            let starts = first.first().is_some_and(u8::is_ascii_digit);
            if !dated || !starts || third.is_some_and(|word| !is_half(word)) {
                return None;
            }
            (date(first), clock(second?, third)?)
        }
    };
    Some((civil(day, of_day), of_day))
}

/// `2026-11-22`, `04:02:28+0100`.
fn iso(day: &[u8], rest: &[u8]) -> Option<(When, Ns)> {
    let day = date(day)?;
    let (time, zone) = rest.split_at_checked(8)?;
    let of_day = clock(time, None)?;
    let offset = match zone {
        b"" => return Some((civil(Some(day), of_day), of_day)),
        b"Z" => 0,
        [sign @ (b'+' | b'-'), digits @ ..] => {
            let digits: Vec<u8> = digits.iter().copied().filter(|byte| *byte != b':').collect();
            let number: i64 = std::str::from_utf8(&digits).ok()?.parse().ok()?;
            let seconds = number / 100 * 3600 + number % 100 * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let seconds = day.checked_mul(86_400)?.checked_sub(offset)?;
    let at = seconds
        .checked_mul(1_000_000_000)?
        .checked_add(i64::try_from(of_day).ok()?)?;
    Some((When::Unix(at), of_day))
}

/// An instant without a zone.
pub(super) fn civil(day: Option<i64>, of_day: Ns) -> When {
    When::Civil(Civil {
        day,
        year_known: day.is_some(),
        of_day,
    })
}

/// The time from one time of day to a later one, over midnight where need be. A step back by less than half a day is a
/// clock that was set, or another log.
pub(super) fn from_to(from: Ns, to: Ns) -> Option<Ns> {
    match to.checked_sub(from) {
        Some(0) => None,
        Some(later) => Some(later),
        None => (to + DAY).checked_sub(from).filter(|ns| *ns < DAY / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::{SECOND, banner, civil, clock, date, from_to, line};
    use holdup_evidence::observed::When;

    #[test]
    fn a_banner_of_any_version() {
        let text = b"Linux 2.6.32-131.el6.x86_64 (web-1) \t05/01/17 \t_x86_64_\t(1 CPU)";
        let read = banner(text).unwrap();
        assert_eq!(
            (read.release.as_str(), read.host.as_str()),
            ("2.6.32-131.el6.x86_64", "web-1")
        );
        // Of May or of January: not told.
        assert_eq!((read.day, read.cpus), (None, Some(1)));
        assert_eq!(banner(b"Linux 2.6.9 (db) 22.11.2026").unwrap().day, Some(20_779));
        for wrong in [
            &b"Linux version 6.1 (gcc)"[..],
            b"Linux host 6.1",
            b"Linux (",
            b"\xff",
        ] {
            assert_eq!(banner(wrong), None);
        }
    }

    #[test]
    fn a_date_is_taken_where_it_can_be_read_in_one_way() {
        for (text, day) in [
            ("2026-11-22", Some(20_779)),
            ("22.11.2026", Some(20_779)),
            ("11/22/26", Some(20_779)),
            ("22/11/2026", Some(20_779)),
            ("05/05/26", Some(20_578)),
            ("05/01/17", None),
            ("11/22", None),
            ("31.02.2026", None),
            ("", None),
            ("99999.1.1", None),
        ] {
            assert_eq!(date(text.as_bytes()), day, "{text}");
        }
    }

    #[test]
    fn instants_of_any_locale() {
        let at = |text: &str| line(text.as_bytes()).map(|(at, _)| at);
        let of_day = (4 * 3600 + 2 * 60 + 28) * SECOND;
        assert_eq!(at("Time: 04:02:28 AM"), Some(civil(None, of_day)));
        assert_eq!(
            at("Time: 16:02:28"),
            Some(civil(None, of_day + 12 * 3600 * SECOND))
        );
        assert_eq!(at("11/22/26 04:02:28"), Some(civil(Some(20_779), of_day)));
        assert_eq!(at("22.11.2026 04:02:28"), Some(civil(Some(20_779), of_day)));
        assert_eq!(
            at("05/01/17 04:02:28 PM"),
            Some(civil(None, of_day + 12 * 3600 * SECOND))
        );
        let unix = (20_779 * 86_400 + 3 * 3600 + 2 * 60 + 28) * 1_000_000_000;
        assert_eq!(at("2026-11-22T04:02:28+0100"), Some(When::Unix(unix)));
        for wrong in [
            "",
            "Time:",
            "04:02:28 AM all 1.0",
            "sda 1.0 2.0",
            "T",
            "04:02:28+",
            "99:99:99",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn midnight_is_passed_and_a_step_back_is_no_interval() {
        assert_eq!(clock(b"12:00:00", Some(b"AM")), Some(0));
        assert_eq!(from_to(86_395 * SECOND, 5 * SECOND), Some(10 * SECOND));
        assert_eq!(from_to(10 * SECOND, 5 * SECOND), None);
        assert_eq!(from_to(5 * SECOND, 5 * SECOND), None);
    }
}
