//! Amounts of memory and sizes of disks, as tools shorten them.

use crate::numbers::decimal;

/// Powers of 1024 by the letter that stands for them.
const UNITS: &[u8] = b"bkmgtpe";

/// An amount with a unit (`1.3g`, `896M`, `1,5Gi`, `512B`, `7956.5MiB`), bytes; `None` without a unit.
pub(crate) fn with_unit(text: &[u8]) -> Option<f64> {
    let digits = text
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
        .count();
    let (number, unit) = text.split_at_checked(digits)?;
    let (letter, rest) = unit.split_first()?;
    let power = UNITS
        .iter()
        .position(|unit| *unit == letter.to_ascii_lowercase())?;
    matches!(rest, b"" | b"i" | b"iB" | b"B")
        .then(|| decimal(number).map(|number| number * 1024_f64.powi(power as i32)))
        .flatten()
}

/// An amount in KiB, where a number without a unit is one of KiB.
pub(crate) fn kib(text: &[u8]) -> Option<f64> {
    decimal(text)
        .filter(|number| *number >= 0.0)
        .or_else(|| with_unit(text).map(|bytes| bytes / 1024.0))
}

#[cfg(test)]
mod tests {
    use super::{kib, with_unit};

    #[test]
    fn units_as_tools_write_them() {
        assert_eq!(with_unit(b"896M"), Some(896.0 * 1_048_576.0));
        assert_eq!(with_unit(b"1,5Gi"), Some(1.5 * 1_073_741_824.0));
        assert_eq!(with_unit(b"0B"), Some(0.0));
        assert_eq!(kib(b"2956m"), Some(2956.0 * 1024.0));
        assert_eq!(kib(b"3984"), Some(3984.0));
        for wrong in [&b""[..], b"M", b"12", b"12x", b"1.2.3G", b"12Mbit", b"\xff"] {
            assert_eq!(with_unit(wrong), None, "{wrong:?}");
        }
        assert_eq!(kib(b"-3"), None);
    }
}
