//! What readers of reports share: the largest of many named figures, figures with three digits, lengths of time as tools write them.

use crate::gather::text_of;
use crate::numbers::decimal;
use holdup_evidence::Ns;
use holdup_evidence::observed::Quote;

/// Bytes of a line that are looked at.
const LINE_BYTES: usize = 2_000;

/// Characters of a name.
const NAME_CHARS: usize = 140;

/// The greatest number of seconds that is a length of time and no mistake: three thousand years.
const MAX_SECONDS: f64 = 1e11;

/// What a line says, in bounds, without the blanks around it.
pub(super) fn text_in(line: &[u8]) -> String {
    text_of(line.get(..LINE_BYTES).unwrap_or(line)).trim().to_owned()
}

/// A name in bounds, without the blanks around it.
pub(super) fn name_of(text: &str) -> String {
    text.trim().chars().take(NAME_CHARS).collect()
}

/// Whether one of the beginning's lines is what `is` looks for.
pub(super) fn any_line(head: &[u8], is: impl Fn(&str) -> bool) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n');
    lines.any(|line| is(&text_in(line)))
}

/// Whether a text has these bytes.
pub(super) fn holds(text: &[u8], part: &str) -> bool {
    memchr::memmem::find(text, part.as_bytes()).is_some()
}

/// A number that is not negative, with or without commas between its thousands.
pub(super) fn number(word: &str) -> Option<f64> {
    let amount = |word: &str| decimal(word.as_bytes()).filter(|value| (0.0..1e18).contains(value));
    match has_thousands(word) {
        true => amount(&word.replace(',', "")),
        false => amount(word),
    }
}

/// Whether commas stand between thousands, and none of them before a fraction: `90,500`, `1,234,567.8`.
fn has_thousands(word: &str) -> bool {
    let whole = word.split('.').next().unwrap_or_default();
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let begins = (1..=3).contains(&first.len()) && !first.starts_with('0');
    let three = |group: &str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    begins && whole.contains(',') && groups.all(three)
}

/// A number that may have a percent sign, or brackets around it.
pub(super) fn percent(word: &str) -> Option<f64> {
    number(
        word.trim_matches(['(', ')', ',', ';'])
            .strip_suffix('%')?
            .trim_end(),
    )
}

/// Seconds as nanoseconds.
pub(super) fn ns_of(seconds: f64) -> Ns {
    (seconds.clamp(0.0, 1e10) * 1e9) as Ns
}

/// With three digits at most: `4.38`, `60`, `1245`.
pub(super) fn rounded(value: f64) -> String {
    let text = match value.abs() {
        size if size < 0.01 => format!("{value:.4}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The factor of a unit of time, in seconds.
fn unit(word: &str) -> Option<f64> {
    Some(match word.trim_end_matches('.') {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

/// Seconds of `1m23.4s`, `5 mins 3 secs`, `1 min, 2.3 secs`, `812ms`; `None` where it is anything else, or has no unit.
pub(super) fn length(text: &str) -> Option<f64> {
    let mut sum: Option<f64> = None;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (digits, behind) = rest.split_at_checked(digits)?;
        let behind = behind.trim_start();
        let end = behind
            .find(|char: char| !char.is_alphabetic())
            .unwrap_or(behind.len());
        let (word, more) = behind.split_at_checked(end)?;
        sum = Some(sum.unwrap_or(0.0) + number(digits)? * unit(word)?);
        rest = more.trim_start_matches([',', ' ']);
    }
    sum.filter(|seconds| (0.0..MAX_SECONDS).contains(seconds))
}

/// Seconds of `1-02:03:04`, `02:03:04.5`, `03:04`.
pub(super) fn clock(text: &str) -> Option<f64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (number(days)?, rest),
        None => (0.0, text),
    };
    let mut seconds = 0.0;
    let mut parts = 0;
    for part in rest.split(':') {
        seconds = seconds * 60.0 + number(part)?;
        parts += 1;
    }
    let seconds = days * 86_400.0 + seconds;
    ((2..=3).contains(&parts) && seconds < MAX_SECONDS).then_some(seconds)
}

/// The largest of many figures with names, the next one, and all together.
#[derive(Debug, Default)]
pub(super) struct Largest {
    pub(super) first: Option<(f64, String, Quote)>,
    pub(super) next: Option<(f64, String)>,
    pub(super) sum: f64,
    pub(super) count: u64,
}

impl Largest {
    /// Takes one; whether it is the largest so far.
    pub(super) fn take(&mut self, value: f64, name: &str, quote: Quote) -> bool {
        self.sum += value;
        self.count = self.count.saturating_add(1);
        if self.first.as_ref().is_none_or(|(first, ..)| value > *first) {
            let before = self.first.replace((value, name_of(name), quote));
            self.next = before.map(|(value, name, _)| (value, name));
            return true;
        }
        if self.next.as_ref().is_none_or(|(next, _)| value > *next) {
            self.next = Some((value, name_of(name)));
        }
        false
    }

    /// `; next NAME, 3.20 s`, where the next one is more than nothing; `say` puts its figure into words.
    pub(super) fn and_next(&self, say: impl Fn(f64) -> String) -> String {
        let next = self.next.as_ref().filter(|(value, _)| *value > 0.0);
        next.map_or_else(String::new, |(value, name)| {
            format!("; next {name}, {}", say(*value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{clock, length, number, percent, rounded};

    #[test]
    fn lengths_and_clocks_as_tools_write_them() {
        for (text, seconds) in [
            ("1m23.5s", 83.5),
            ("5 mins 3 secs", 303.0),
            ("1 min, 2.5 secs", 62.5),
            ("812ms", 0.812),
            ("1 hour 2 mins", 3_720.0),
        ] {
            assert_eq!(length(text), Some(seconds), "{text}");
        }
        for text in ["", "12", "s", "1.2.3s", "3 apples", "1m x"] {
            assert_eq!(length(text), None, "{text}");
        }
        assert_eq!(clock("1-02:03:04"), Some(93_784.0));
        assert_eq!(clock("03:04"), Some(184.0));
        for text in ["", "3", "1:2:3:4", "a:b", "1-", "-:1"] {
            assert_eq!(clock(text), None, "{text}");
        }
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (4.379, "4.38"),
            (60.007, "60"),
            (1_245.2, "1245"),
            (0.5, "0.5"),
            (0.0, "0"),
        ] {
            assert_eq!(rounded(value), text);
        }
        for (word, value) in [
            ("1,234,567", 1_234_567.0),
            ("90,500", 90_500.0),
            ("0,125", 0.125),
            ("2,5", 2.5),
        ] {
            assert_eq!(number(word), Some(value), "{word}");
        }
        assert_eq!(percent("(65.5%)"), Some(65.5));
        assert_eq!(percent("65.5"), None);
    }
}
