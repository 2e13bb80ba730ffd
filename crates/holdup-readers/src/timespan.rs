//! Lengths of time as systemd prints them: `1min 45.121s`, `288ms`, `2h 3min 4s`.

use crate::numbers::words;
use holdup_evidence::Ns;

/// The length that all of the text is; `None` where it is anything else.
pub(crate) fn parse(text: &[u8]) -> Option<Ns> {
    let mut all: Option<Ns> = None;
    for word in words(text) {
        // A copy may have lost the blanks between its parts.
        let mut rest = word;
        while !rest.is_empty() {
            let number = rest.iter().take_while(|byte| is_of_number(byte)).count();
            let behind = rest.get(number..)?;
            let unit = behind.iter().take_while(|byte| !byte.is_ascii_digit()).count();
            let (one, more) = rest.split_at_checked(number + unit)?;
            all = Some(all.unwrap_or(0).checked_add(part(one)?)?);
            rest = more;
        }
    }
    all
}

fn is_of_number(byte: &u8) -> bool {
    byte.is_ascii_digit() || *byte == b'.'
}

/// One number with its unit.
fn part(word: &[u8]) -> Option<Ns> {
    let digits = word.iter().take_while(|byte| is_of_number(byte)).count();
    let (number, unit) = word.split_at(digits);
    let unit_ns: Ns = match unit {
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"min" => 60 * 1_000_000_000,
        b"h" => 3_600 * 1_000_000_000,
        b"d" => 86_400 * 1_000_000_000,
        b"w" => 7 * 86_400 * 1_000_000_000,
        b"month" => 2_629_800 * 1_000_000_000,
        b"y" => 31_557_600 * 1_000_000_000,
        _ => return None,
    };
    let number = crate::numbers::decimal(number).filter(|number| *number >= 0.0)?;
    let ns = (number * unit_ns as f64).round();
    (ns < Ns::MAX as f64).then_some(ns as Ns)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lengths() {
        assert_eq!(parse(b"1min 45.121s"), Some(105_121_000_000));
        assert_eq!(parse(b"1min45.121s"), Some(105_121_000_000));
        assert_eq!(parse(b"288ms"), Some(288_000_000));
        assert_eq!(parse(b"512us"), Some(512_000));
        assert_eq!(parse(b"2h 3min"), Some(7_380_000_000_000));
        for wrong in [
            &b""[..],
            b" ",
            b"5",
            b"s",
            b"1.2.3s",
            b"1min x",
            b"-1s",
            b"99999999999999999999y",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
