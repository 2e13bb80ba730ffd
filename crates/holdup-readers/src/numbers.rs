//! Numbers as tools print them in any locale.

/// Digits that fit into the 53 bits of a mantissa, whatever they are.
const EXACT_DIGITS: usize = 15;

/// Powers of ten that are exact.
const TENS: [f64; EXACT_DIGITS + 1] = [
    1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// A decimal number with a point or a comma (`0,87`); `None` for anything else.
pub(crate) fn decimal(text: &[u8]) -> Option<f64> {
    // Nearly all are short and plain: the quotient of two exact numbers is the nearest one, as parsing would give.
    if let Some(value) = plain(text) {
        return Some(value);
    }
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

/// A number of a few digits, with or without a point or comma among them.
fn plain(text: &[u8]) -> Option<f64> {
    if text.len() > EXACT_DIGITS {
        return None;
    }
    let mut sum = 0_u64;
    let mut point = None;
    for (place, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => sum = sum * 10 + u64::from(byte - b'0'),
            // With digits on both sides.
            b'.' | b',' if point.is_none() && place > 0 && place + 1 < text.len() => point = Some(place),
            _ => return None,
        }
    }
    let behind = point.map_or(0, |point| text.len() - point - 1);
    (!text.is_empty()).then(|| sum as f64 / TENS[behind])
}

/// A whole number; `None` for anything else.
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
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
        for exact in [
            "0.1",
            "99.96",
            "123456789.12345",
            "0.00000000000001",
            "1234567890123456.5",
            "7e3",
        ] {
            assert_eq!(decimal(exact.as_bytes()), exact.parse().ok(), "{exact}");
            assert_eq!(
                decimal(exact.replace('.', ",").as_bytes()),
                exact.parse().ok(),
                "{exact}"
            );
        }
        for wrong in [&b""[..], b",", b"1,2,3", b"nan", b"inf", b"x", b"1,-5", b"\xff"] {
            assert_eq!(decimal(wrong), None, "{wrong:?}");
        }
        assert_eq!(whole(b"77"), Some(77));
        assert_eq!(whole(b"7.7"), None);
        assert_eq!(words(b"  a  b ").count(), 2);
    }
}
