//! Numbers as tools print them in any locale.

/// A decimal number with a point or a comma (`0,87`); `None` for anything else.
pub(crate) fn decimal(text: &[u8]) -> Option<f64> {
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
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
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
        assert_eq!(whole(b"77"), Some(77));
        assert_eq!(whole(b"7.7"), None);
        assert_eq!(words(b"  a  b ").count(), 2);
    }
}
