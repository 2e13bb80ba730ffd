//! Numbers as tools print them in any locale.

/// A decimal number with a point or a comma (`0,87`); `None` for anything else.
pub(crate) fn decimal(text: &[u8]) -> Option<f64> {
    plain(text).or_else(|| any(text))
}

/// Digits with at most one point or comma, as nearly all figures are: a third of the time of [`any`].
fn plain(text: &[u8]) -> Option<f64> {
    /// Digits that a 64 bit float has exactly.
    const EXACT: usize = 15;
    const POWERS: [f64; EXACT + 1] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ];
    if text.len() > EXACT {
        return None;
    }
    let (mut digits, mut count, mut behind) = (0_u64, 0, None);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                digits = digits * 10 + u64::from(byte - b'0');
                count += 1;
            }
            b'.' | b',' if behind.is_none() => behind = Some(count),
            _ => return None,
        }
    }
    let places = behind.map_or(0, |behind| count - behind);
    if count == 0 || behind.is_some_and(|_| places == 0 || places == count) {
        return None;
    }
    // Both are exact, so that the quotient is the nearest float, as `parse` gives it.
    POWERS.get(places).map(|power| digits as f64 / power)
}

fn any(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(value) = text.parse::<f64>() {
        return value.is_finite().then_some(value);
    }
    let mut halves = text.split(',');
    let (whole, part, more) = (halves.next()?, halves.next()?, halves.next());
    let digits = |half: &str| !half.is_empty() && half.bytes().all(|byte| byte.is_ascii_digit());
    if more.is_some() || !digits(part) || !digits(whole.strip_prefix('-').unwrap_or(whole)) {
        return None;
    }
    format!("{whole}.{part}").parse().ok()
}

/// A whole number; `None` for anything else.
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    /// Digits that are fewer than those of the largest number.
    const FEWER: usize = 19;
    if text.is_empty() || text.len() > FEWER {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    text.iter().try_fold(0, |number: u64, byte| match byte {
        b'0'..=b'9' => Some(number * 10 + u64::from(byte - b'0')),
        _ => None,
    })
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> Words<'_> {
    Words { rest: line }
}

/// What [`words`] gives out.
#[derive(Debug, Clone)]
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let word = self.rest.get(start..)?;
        let end = word
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(word.len());
        let (word, rest) = word.split_at_checked(end)?;
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::{decimal, whole, words};

    #[test]
    fn decimals_of_any_locale() {
        assert_eq!(decimal(b"0.87"), Some(0.87));
        assert_eq!(decimal(b"0,87"), Some(0.87));
        assert_eq!(decimal(b"-1,5"), Some(-1.5));
        assert_eq!(decimal(b"12"), Some(12.0));
        for wrong in [&b""[..], b",", b"1,2,3", b"nan", b"inf", b"x", b"1,-5", b"\xff"] {
            assert_eq!(decimal(wrong), None, "{wrong:?}");
        }
        for text in ["0.01", "1985358.35", "99.96", "3", "0.1", "123456789.1234"] {
            assert_eq!(decimal(text.as_bytes()), text.parse().ok());
        }
        assert_eq!(whole(b"77"), Some(77));
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        for wrong in [
            &b""[..],
            b"7.7",
            b"-1",
            b"18446744073709551616",
            b"99999999999999999999",
        ] {
            assert_eq!(whole(wrong), None, "{wrong:?}");
        }
        assert_eq!(words(b"  a \t bc ").collect::<Vec<_>>(), [&b"a"[..], b"bc"]);
        assert_eq!(words(b" \r\n").count(), 0);
    }
}
