//! Errors that a platform writes with a code and its words: `heroku[router]: Error H12 (Request timeout) -> …`.
//!
//! In: lines. Out: where there are several codes, one fact with all of them, how often each came, and the largest figure that its lines have.
//! A process that is beyond what it may have of memory says how far in a line before its code.

use super::Told;
use crate::statements::kinds;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// Codes that are kept, those that are told, and lines of each that are kept as told.
const MAX_CODES: usize = 64;
const MAX_CODES_TOLD: usize = 5;
const MAX_LINES: usize = 200;

/// Bytes of a code, of its words, and of who writes it.
const MAX_CODE_BYTES: usize = 10;
const MAX_WORDS_BYTES: usize = 60;
const MAX_WRITER_BYTES: usize = 40;

/// The codes of one artefact.
#[derive(Debug, Default)]
pub(super) struct Coded {
    codes: Vec<Code>,
    /// Who used more than it may have, and the figure.
    used: Option<(String, String, f64)>,
}

#[derive(Debug)]
struct Code {
    code: String,
    words: String,
    kind: StatementKind,
    writer: String,
    times: u64,
    /// The longest time of its lines, milliseconds, and how much was used of what may be, as the line has it, with that share.
    longest_ms: Option<f64>,
    used: Option<(String, f64)>,
    lines: Vec<u64>,
}

/// A code with its words: `H12`, `Request timeout`.
fn code(text: &str) -> Option<(&str, &str)> {
    let at = text.find("rror ")?;
    let rest = text.get(at + 5..)?;
    let (code, rest) = rest.split_once(" (")?;
    let (words, _) = rest.split_once(')')?;
    let letters = code.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = code.get(letters..)?.trim_start_matches('-');
    let is_code = (1..=4).contains(&letters)
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && code.len() <= MAX_CODE_BYTES;
    let says = words.len() <= MAX_WORDS_BYTES && words.contains(|char: char| char.is_ascii_alphabetic());
    (is_code && says).then_some((code, words))
}

/// Who writes a line, before the colon behind its time: `heroku[web.1]`.
fn writer(text: &str) -> &str {
    let before = text.split_once(": ").map_or("", |(before, _)| before);
    let name = before.rsplit(' ').next().unwrap_or_default();
    match name.len() <= MAX_WRITER_BYTES {
        true => name,
        false => "",
    }
}

/// `mem=869M(169.8%)`: an amount with its part of what may be, more than all.
fn beyond(text: &str) -> Option<(&str, f64)> {
    text.split_whitespace().find_map(|word| {
        let (_, value) = word.split_once('=')?;
        let (amount, part) = value.strip_suffix("%)")?.split_once('(')?;
        let percent: f64 = part.parse().ok()?;
        let fits = amount.starts_with(|char: char| char.is_ascii_digit()) && word.len() < 40;
        (fits && percent > 100.0 && percent < 1e6).then_some((word, percent / 100.0))
    })
}

/// The largest value in milliseconds: `service=30000ms`.
fn longest_ms(text: &str) -> Option<f64> {
    let values = text.split_whitespace().filter_map(|word| {
        let (_, value) = word.split_once('=')?;
        value.strip_suffix("ms")?.parse::<f64>().ok()
    });
    values
        .filter(|ms| (0.0..1e12).contains(ms))
        .max_by(f64::total_cmp)
}

impl Coded {
    /// Takes a line.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let writer = writer(text);
        if let Some((shown, share)) = beyond(text) {
            self.used = Some((writer.to_owned(), shown.to_owned(), share));
        }
        let Some((code, words)) = code(text) else { return };
        let known = self
            .codes
            .iter()
            .position(|one| one.code == code && one.writer == writer);
        let place = match known {
            Some(place) => place,
            None if self.codes.len() < MAX_CODES => {
                let kind = kinds::of(words.as_bytes()).map_or(StatementKind::Failed, |found| found.kind);
                self.codes.push(Code {
                    code: code.to_owned(),
                    words: words.to_owned(),
                    kind,
                    writer: writer.to_owned(),
                    times: 0,
                    longest_ms: None,
                    used: None,
                    lines: Vec::new(),
                });
                self.codes.len() - 1
            }
            None => return,
        };
        let Some(one) = self.codes.get_mut(place) else {
            return;
        };
        one.times += 1;
        let ms = longest_ms(text);
        if ms > one.longest_ms {
            one.longest_ms = ms;
        }
        if one.lines.len() < MAX_LINES {
            one.lines.push(number);
        }
        if one.kind == StatementKind::Exhausted
            && let Some((of, shown, share)) = &self.used
            && *of == one.writer
            && one.used.as_ref().is_none_or(|(_, known)| share > known)
        {
            one.used = Some((shown.clone(), *share));
        }
    }

    /// All codes, gravest first, where there are several.
    pub(super) fn end(&mut self, told: &mut Told) -> Option<Fact> {
        let mut codes = std::mem::take(&mut self.codes);
        if codes.len() < 2 {
            return None;
        }
        codes.sort_by(|one, other| one.kind.cmp(&other.kind).then(other.times.cmp(&one.times)));
        let first = codes.first()?;
        let (kind, line) = (first.kind, *first.lines.first()?);
        let share = first.used.as_ref().map(|(_, share)| *share);
        for line in codes.iter().flat_map(|one| &one.lines) {
            told.add(*line);
        }
        let more = codes.len().saturating_sub(MAX_CODES_TOLD);
        let parts: Vec<String> = codes.iter().take(MAX_CODES_TOLD).map(Code::sentence).collect();
        let more = match more {
            0 => String::new(),
            more => format!("; {more} other codes"),
        };
        Some(Fact {
            kind,
            share,
            ns: None,
            line,
            text: format!("{}{more}", parts.join("; ")),
        })
    }
}

impl Code {
    /// `heroku[router]: error H12 (Request timeout), 3 times, longest 30000 ms`.
    fn sentence(&self) -> String {
        let mut said = match self.writer.as_str() {
            "" => format!("error {} ({})", self.code, self.words),
            writer => format!("{writer}: error {} ({})", self.code, self.words),
        };
        if self.times > 1 {
            said.push_str(&format!(", {} times", self.times));
        }
        if let Some((shown, _)) = &self.used {
            said.push_str(&format!(", {shown}"));
        }
        if let Some(ms) = self.longest_ms {
            said.push_str(&format!(", longest {ms:.0} ms"));
        }
        said
    }
}
