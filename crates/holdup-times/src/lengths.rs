//! Lengths of time and sizes as people write them on a command line: `60s`, `10m`, `24h`, `7d`; `500M`, `2G`.

use std::time::Duration;

/// Reads a length such as `10m`; a number alone is of seconds.
///
/// # Errors
/// A sentence that says what would be right.
pub fn length(text: &str) -> Result<Duration, String> {
    let (digits, second) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3_600),
        Some(b'd') => (&text[..text.len() - 1], 86_400),
        _ => (text, 1),
    };
    let seconds = digits
        .parse::<u32>()
        .ok()
        .and_then(|number| number.checked_mul(second));
    seconds
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(u64::from(seconds)))
        .ok_or_else(|| "a number with s, m, h or d, such as 10m".to_owned())
}

/// Reads a number of bytes with K, M, G or T, powers of 1,024.
///
/// # Errors
/// A sentence that says what would be right.
pub fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        Some(b'T' | b't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size such as 500M or 2G".to_owned())
}

/// A length in words, in the greatest unit that leaves no rest: `60 s` is `minute` to a person, but what was asked for is said as
/// it was asked.
#[must_use]
pub fn said(length: Duration) -> String {
    let seconds = length.as_secs();
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "min")] {
        if seconds >= unit && seconds.is_multiple_of(unit) && length.subsec_nanos() == 0 {
            return format!("{} {name}", seconds / unit);
        }
    }
    format!("{} s", length.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{length, said, size};
    use std::time::Duration;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("60s", 60),
            ("10m", 600),
            ("24h", 86_400),
            ("7d", 604_800),
            ("90", 90),
        ] {
            assert_eq!(length(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "m", "0s", "-1m", "1.5h", "99999999d", "1w", "é"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("500M"), Ok(500 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        assert_eq!(size("17"), Ok(17));
        for wrong in ["", "G", "0", "-1M", "1.5G", "99999999999T", "1é"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_length_is_said_in_the_unit_that_fits() {
        assert_eq!(said(Duration::from_secs(60)), "1 min");
        assert_eq!(said(Duration::from_secs(86_400)), "1 d");
        assert_eq!(said(Duration::from_secs(90)), "90 s");
        assert_eq!(said(Duration::from_millis(1_500)), "1.5 s");
    }
}
