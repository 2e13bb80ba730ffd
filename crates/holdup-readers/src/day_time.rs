//! Times of day and lengths of time, as `top`, `uptime` and `ps` print them.

use crate::formats::Stamps;
use crate::numbers::{decimal, whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Civil, When};

const SECOND: u64 = 1_000_000_000;

/// `11:45:12` or `11:45`: no date and no zone is reported.
pub(crate) fn time_of_day(text: &[u8]) -> Option<When> {
    let mut parts = text.split(|byte| *byte == b':');
    let (hours, minutes) = (two(parts.next()?)?, two(parts.next()?)?);
    let seconds = parts.next().map_or(Some(0), two)?;
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(When::Civil(Civil {
        day: None,
        year_known: false,
        of_day: (hours * 3600 + minutes * 60 + seconds) * SECOND,
    }))
}

fn two(text: &[u8]) -> Option<u64> {
    (text.len() == 2).then(|| whole(text)).flatten()
}

/// The longest line that is only a date, bytes and words: `=== Sun 22 Nov 2026 07:00:23 AM UTC ===`.
const DATE_BYTES: usize = 64;
const DATE_WORDS: usize = 9;

/// When a line is that is a date and nothing else, as loops have it from `date` between outputs, with or without a frame
/// of `=` or `-`.
pub(crate) fn date_line(line: &[u8]) -> Option<When> {
    if line.len() > DATE_BYTES || !line.contains(&b':') {
        return None;
    }
    let frame = |byte: u8| matches!(byte, b'=' | b'-' | b'#' | b'*' | b' ' | b'\t');
    let from = line.iter().position(|byte| !frame(*byte))?;
    let to = line.iter().rposition(|byte| !frame(*byte))?;
    let line = line.get(from..=to)?;
    // `07:00:23 up 3 days` and rows of tables have words that no date has.
    let part_of_date = |word: &[u8]| {
        let name = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
        let (letters, others) = (word.iter().filter(|byte| name(byte)).count(), word.len());
        let digits = |byte: &u8| {
            byte.is_ascii_digit() || matches!(byte, b':' | b'-' | b'+' | b'.' | b',' | b'T' | b'Z' | b'/')
        };
        word.iter().all(digits) || (letters <= 5 && others - letters <= 1 && word != b"up")
    };
    let mut count = 0;
    for word in words(line) {
        count += 1;
        if !part_of_date(word) {
            return None;
        }
    }
    (count <= DATE_WORDS).then_some(())?;
    Stamps::default().of(line)?.when()
}

/// `490:35.59`, `00:01:07`, `2-03:04:05`, `3h5m` are CPU or elapsed times; `None` for what is none of the first three.
pub(crate) fn length(text: &[u8]) -> Option<Ns> {
    let mut halves = text.splitn(2, |byte| *byte == b'-');
    let first = halves.next()?;
    let (days, clock) = match halves.next() {
        Some(clock) => (whole(first)?, clock),
        None => (0, first),
    };
    let parts = clock.split(|byte| *byte == b':');
    let mut seconds = 0.0;
    let mut count = 0;
    for part in parts {
        seconds = seconds * 60.0 + decimal(part).filter(|part| *part >= 0.0)?;
        count += 1;
    }
    (2..=3).contains(&count).then_some(())?;
    let all = days as f64 * 86_400.0 + seconds;
    (all < 1e9).then_some((all * SECOND as f64) as Ns)
}

#[cfg(test)]
mod tests {
    use super::{date_line, length, time_of_day};
    use holdup_evidence::observed::{Civil, When};

    #[test]
    fn dates_on_their_own() {
        let unix = Some(When::Unix(1_795_330_823_000_000_000));
        for line in [
            "Sun Nov 22 07:00:23 UTC 2026",
            "2026-11-22T07:00:23+00:00",
            "2026-11-22 07:00:23 +0000",
            "==== Sun Nov 22 07:00:23 UTC 2026 ====",
        ] {
            assert_eq!(date_line(line.as_bytes()), unix, "{line}");
        }
        for line in [
            "07:00:23",
            "Sun Nov 22 07:00:23 EET 2026",
            "Sun 22 Nov 2026 07:00:23 AM EET",
        ] {
            assert!(
                matches!(date_line(line.as_bytes()), Some(When::Civil(_))),
                "{line}"
            );
        }
        for line in [
            "",
            "12:00",
            "07:00:23 up 3 days",
            "root 1 0 0 07:00:01 ? 00:00:01 /sbin/init",
            "  101 pts/0    00:00:01 bash",
            "Sun",
        ] {
            assert_eq!(date_line(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn times_and_lengths() {
        let noon = When::Civil(Civil {
            day: None,
            year_known: false,
            of_day: 43_201_000_000_000,
        });
        assert_eq!(time_of_day(b"12:00:01"), Some(noon));
        assert_eq!(time_of_day(b"25:00:01"), None);
        assert_eq!(time_of_day(b"12"), None);
        assert_eq!(length(b"490:35.59"), Some(29_435_590_000_000));
        assert_eq!(length(b"1-00:00:01"), Some(86_401_000_000_000));
        assert_eq!(length(b"07:03"), Some(423_000_000_000));
        for wrong in [&b""[..], b"5", b":", b"1:2:3:4", b"-1:00", b"99999999999-00:00"] {
            assert_eq!(length(wrong), None, "{wrong:?}");
        }
    }
}
