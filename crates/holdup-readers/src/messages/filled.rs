//! What a known message means, with the parts that its program filled in: who, how long, past which limit.
//!
//! In: the meaning of a row, with `{1}` for what stands in the first gap between its fixed words (behind the last of them: the word there),
//! `{0}` for the word before them, and `{1:ms}` for a length in that unit, `{1:t}` for one with its own. Out: the sentence. What stands in
//! square brackets is left out where a part of it is not there; a meaning that lacks a part outside of them is told without the part's name.

use crate::gather::text_of;
use holdup_evidence::Ns;
use holdup_evidence::units::duration;

/// Bytes of a part that is told: a longer one is no name and no figure.
const MAX_PART_BYTES: usize = 60;

/// Bytes of a gap that are looked at.
const MAX_GAP_BYTES: usize = 400;

/// What a name is told as where it is not known, and a length.
const UNKNOWN: &str = "it";
const UNKNOWN_LENGTH: &str = "a long time";

/// The longest time that is believed, seconds: three hundred years.
const MAX_SECONDS: f64 = 1e10;

/// Units of a length, in seconds.
const UNITS: [(&[&str], f64); 7] = [
    (&["ns", "nanoseconds"], 1e-9),
    (
        &["us", "\u{b5}s", "\u{3bc}s", "usec", "usecs", "microseconds"],
        1e-6,
    ),
    (&["ms", "msec", "msecs", "millis", "milliseconds"], 1e-3),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600.0),
    (&["d", "day", "days"], 86_400.0),
];

/// Where the fixed words of a message stand in its line: what is between them the program filled in.
pub(super) struct Gaps<'a> {
    pub(super) before: &'a [u8],
    pub(super) between: Vec<&'a [u8]>,
    pub(super) behind: &'a [u8],
}

/// The meaning with its parts; the meaning itself where it has none.
pub(super) fn fill(means: &str, gaps: &Gaps<'_>) -> String {
    let mut told = String::with_capacity(means.len());
    let mut rest = means;
    while let Some(at) = rest.find(['[', '{']) {
        let (plain, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        told.push_str(plain);
        let optional = from.starts_with('[');
        let Some(end) = from.find(if optional { ']' } else { '}' }) else {
            told.push_str(from);
            return told;
        };
        let inner = from.get(1..end).unwrap_or_default();
        if optional {
            told.push_str(&all_of(inner, gaps).unwrap_or_default());
        } else {
            let unknown = match is_length(inner) {
                true => UNKNOWN_LENGTH,
                false => UNKNOWN,
            };
            told.push_str(part(inner, gaps).as_deref().unwrap_or(unknown));
        }
        rest = from.get(end + 1..).unwrap_or_default();
    }
    told.push_str(rest);
    told
}

fn is_length(part: &str) -> bool {
    part.contains(':')
}

/// The names that the meaning has of its line: lines with other names are of something else, however alike they are.
pub(super) fn names(means: &str, gaps: &Gaps<'_>) -> Vec<String> {
    let inside = means.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let names = inside.filter(|name| !is_length(name));
    names.filter_map(|name| part(name, gaps)).collect()
}

/// A text with all of its parts; `None` where one is missing.
fn all_of(text: &str, gaps: &Gaps<'_>) -> Option<String> {
    let mut told = String::new();
    let mut rest = text;
    while let Some((plain, from)) = rest.split_once('{') {
        let (name, more) = from.split_once('}')?;
        told.push_str(plain);
        told.push_str(&part(name, gaps)?);
        rest = more;
    }
    told.push_str(rest);
    Some(told)
}

/// One part: `1`, `1:ms`.
fn part(name: &str, gaps: &Gaps<'_>) -> Option<String> {
    let (place, unit) = name.split_once(':').unwrap_or((name, ""));
    let place: usize = place.parse().ok()?;
    let last = place > gaps.between.len();
    let bytes = match place.checked_sub(1) {
        None => gaps.before,
        Some(_) if last => gaps.behind,
        Some(at) => gaps.between.get(at).copied()?,
    };
    let clip = match place {
        0 => bytes.get(bytes.len().saturating_sub(MAX_GAP_BYTES)..),
        _ => bytes.get(..MAX_GAP_BYTES),
    };
    let text = text_of(clip.unwrap_or(bytes));
    match unit {
        "" if place == 0 => value(text.split_whitespace().next_back()?),
        "" if last => value(word(&text)?),
        "" => value(&text),
        "t" => length(&text, None),
        unit => length(&text, Some(unit)),
    }
}

/// The word that a text begins with, or what stands in quotation marks there.
fn word(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', ':', '=']);
    let quoted = text
        .strip_prefix(['\'', '"', '`'])
        .and_then(|inner| inner.split(['\'', '"', '`']).next());
    quoted.or_else(|| text.split([' ', '\t', ',', ';', ')', ']']).next())
}

/// A name or a figure without the signs around it.
fn value(text: &str) -> Option<String> {
    let sign = |char: char| char.is_whitespace() || "'\"`:;,=<>()[]{}|!*".contains(char);
    let told = text.trim_matches(sign).trim_end_matches('.');
    (!told.is_empty() && told.len() <= MAX_PART_BYTES).then(|| told.to_owned())
}

/// The first length of a text, in the unit that is given or else in its own: `1m30.5s`, `151811 ms`.
fn length(text: &str, unit: Option<&str>) -> Option<String> {
    let at = text.find(|char: char| char.is_ascii_digit())?;
    let mut rest = text.get(at..)?;
    let mut sum: Option<f64> = None;
    while rest.starts_with(|first: char| first.is_ascii_digit()) {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.' && char != ',');
        let (digits, behind) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        let number: f64 = digits
            .trim_end_matches(['.', ','])
            .replace(',', "")
            .parse()
            .ok()?;
        let spaced = behind.trim_start();
        let letters = spaced
            .find(|char: char| !char.is_alphabetic())
            .unwrap_or(spaced.len());
        let own = spaced.get(..letters)?;
        let Some(factor) = factor(unit.unwrap_or(own)) else {
            break;
        };
        sum = Some(sum.unwrap_or(0.0) + number * factor);
        if unit.is_some() {
            break;
        }
        rest = spaced.get(letters..)?;
    }
    let seconds = sum.filter(|seconds| (0.0..MAX_SECONDS).contains(seconds))?;
    Some(duration((seconds * 1e9).round() as Ns))
}

/// A unit in seconds.
fn factor(name: &str) -> Option<f64> {
    let known = UNITS.iter().find(|(names, _)| names.contains(&name));
    known.map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::{Gaps, fill};

    fn filled(means: &str, before: &str, between: &[&str], behind: &str) -> String {
        let gaps = Gaps {
            before: before.as_bytes(),
            between: between.iter().map(|gap| gap.as_bytes()).collect(),
            behind: behind.as_bytes(),
        };
        fill(means, &gaps)
    }

    #[test]
    fn names_and_lengths_stand_where_the_meaning_has_their_places() {
        let means = "{1} was silent for {2:ms}, and {3:ms} is the limit";
        let told = filled(means, "", &[" 7 ", ": 151811 "], " 120000 ms");
        assert_eq!(told, "7 was silent for 2 min 32 s, and 2 min 0 s is the limit");
        let told = filled(
            "{0} waited {1:t} for {2}",
            "at 10:00 pool-a",
            &[" 1m30.5s of "],
            " 'db-1' now",
        );
        assert_eq!(told, "pool-a waited 1 min 31 s for db-1");
        assert_eq!(
            filled("after {1:t}", "", &[], "(2.285637356s) to run"),
            "after 2.29 s"
        );
        assert_eq!(
            filled("after {1:t}", "", &[], "1,500.5 milliseconds"),
            "after 1.50 s"
        );
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let means = "the server is slow[: it took {1:t}][, and {0} waits]";
        assert_eq!(filled(means, "", &[], " long"), "the server is slow");
        assert_eq!(
            filled(means, "app:", &[], " 3s"),
            "the server is slow: it took 3.00 s, and app waits"
        );
        assert_eq!(filled("{1} is full", "", &[], ""), "it is full");
        assert_eq!(
            filled("for {1:t} nobody answered", "", &[], ""),
            "for a long time nobody answered"
        );
        let long = "x".repeat(400);
        assert_eq!(filled("{1} is full", "", &[&long], ""), "it is full");
    }

    #[test]
    fn rubbish_does_no_harm() {
        for means in ["{", "[", "{9}", "{x}", "[{1", "{1:eons}", "[]{}", "}]"] {
            for text in ["", "9e999", "1.2.3s", "\u{b5}", "99999999999999999999999 h"] {
                let _ = filled(means, text, &[text], text);
            }
        }
    }
}
