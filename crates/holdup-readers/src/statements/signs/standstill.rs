//! A status that is printed again and again with the same amounts: rclone, `dd status=progress`, `pv`, rsync, restores of databases.
//!
//! In: lines with an amount of something done, and lines that say how long it has been running. Out: which amounts stand still, since when, if all
//! of them do. What is complete does not stand still, and of what has no rate nothing is known: it may have had nothing to do.

use super::{Told, length_ns};
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Reports in a row with the same amounts from which something stands still.
const MIN_REPORTS: u64 = 5;

/// Amounts that are followed.
const MAX_AMOUNTS: usize = 24;

/// Bytes of the words of an amount, and figures of a line that are amounts.
const MAX_KEY_BYTES: usize = 80;
const MAX_FIGURES: usize = 2;

/// Words of lines about amounts of something done.
const DONE: [&str; 10] = [
    "transferred",
    "checks",
    "copied",
    "copying",
    "received",
    "restored",
    "processed",
    "downloaded",
    "uploaded",
    "sent",
];

/// Amounts of one artefact.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    amounts: Vec<Amount>,
    /// The last time for which it has been running.
    elapsed: Option<(f64, String)>,
    /// Whether that has grown.
    goes_on: bool,
}

#[derive(Debug)]
struct Amount {
    key: String,
    /// The figures, and the line as it was last.
    figures: String,
    shown: String,
    has_rate: bool,
    complete: bool,
    reports: u64,
    first: u64,
    last: u64,
    since: Option<(f64, String)>,
}

/// A number in a line: its text, and where it ends.
fn numbers(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at + bytes.get(at..)?.iter().position(u8::is_ascii_digit)?;
        let part = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b':');
        let end = from + bytes.get(from..)?.iter().take_while(part).count();
        at = end;
        Some((text.get(from..end)?, end))
    })
}

/// Whether a number is a rate by what stands behind it: `37.3 kBytes/s`, `0.00kB/s`.
fn is_rate(behind: &str) -> bool {
    let behind = behind.strip_prefix(' ').unwrap_or(behind);
    let unit = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
    unit <= 10 && behind.get(unit..).is_some_and(|rest| rest.starts_with("/s"))
}

/// The amounts of a line, with its words; `None` where it has none.
fn amount(text: &str) -> Option<Amount> {
    let lower = text.to_ascii_lowercase();
    let has_rate = numbers(text).any(|(_, end)| is_rate(text.get(end..).unwrap_or_default()));
    let begins = DONE.iter().any(|word| lower.starts_with(word)) && text.contains(':');
    let counts_bytes = DONE.iter().any(|word| lower.contains(word)) && has_rate;
    let bar = has_rate && text.contains('%');
    if !begins && !counts_bytes && !bar {
        return None;
    }
    let is_length = |number: &str, behind: &str| {
        let unit = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = behind.get(..unit).unwrap_or_default();
        number.contains(':') || matches!(unit, "s" | "m" | "h" | "ms" | "d")
    };
    let mut figures = String::new();
    let mut unit = String::new();
    let mut count = 0;
    for (number, end) in numbers(text) {
        let behind = text.get(end..).unwrap_or_default();
        if is_rate(behind) || is_length(number, behind) || is_length(number, behind.trim_start()) {
            continue;
        }
        figures.push_str(number);
        figures.push(' ');
        let letters = behind
            .trim_start()
            .chars()
            .take_while(|char| char.is_ascii_alphabetic());
        unit.extend(letters.take(8));
        count += 1;
        if count == MAX_FIGURES {
            break;
        }
    }
    let complete = text.contains("100%") || text.contains("100.0%") || lower.contains("100 %");
    let name: String = text
        .chars()
        .take_while(|char| !char.is_ascii_digit())
        .take(MAX_KEY_BYTES)
        .collect();
    let something = figures.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (count > 0 && something).then(|| Amount {
        key: format!("{}|{unit}", name.trim()),
        figures,
        shown: text.split_whitespace().collect::<Vec<_>>().join(" "),
        has_rate,
        complete,
        reports: 1,
        first: 0,
        last: 0,
        since: None,
    })
}

/// How long it has been running: `Elapsed time:  6h32m22.5s`, or what stands behind an amount: `copied, 12.1 s, 1.2 MB/s`, `0:10:22`.
fn running(text: &str) -> Option<(f64, String)> {
    if text.to_ascii_lowercase().starts_with("elapsed") {
        let (_, shown) = text.split_once(':')?;
        return Some((length_ns(shown)?, shown.trim().to_owned()));
    }
    let of_part = |part: &str| {
        let part = part.trim();
        length_ns(part).map(|ns| (ns, part.to_owned()))
    };
    if text.contains("copied") {
        return text.split(',').find_map(of_part);
    }
    let clock = numbers(text)
        .map(|(number, _)| number)
        .find(|number| number.matches(':').count() == 2)?;
    let mut seconds = 0.0;
    for part in clock.split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().ok()?;
    }
    Some((seconds * 1e9, clock.to_owned()))
}

/// Words at the beginning of a line among which its time may be.
const STAMP_WORDS: usize = 3;

/// A line without the time at its beginning: its figures are no amounts.
fn unstamped(text: &str) -> &str {
    let is_clock = |word: &str| {
        let word = word.rsplit('T').next().unwrap_or_default();
        let word = word.trim_matches(['[', ']', ',']).as_bytes();
        let digit = |at: usize| word.get(at).is_some_and(u8::is_ascii_digit);
        word.get(2) == Some(&b':') && word.get(5) == Some(&b':') && [0, 1, 3, 4, 6, 7].into_iter().all(digit)
    };
    let mut rest = text;
    for _ in 0..STAMP_WORDS {
        let Some((word, behind)) = rest.split_once(' ') else {
            break;
        };
        rest = behind.trim_start();
        if is_clock(word) {
            return rest;
        }
    }
    text
}

impl Standstill {
    /// Takes a line.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let text = unstamped(text);
        let amount = amount(text);
        let is_status = amount.is_some() || text.to_ascii_lowercase().starts_with("elapsed");
        if let Some(elapsed) = running(text).filter(|_| is_status) {
            let grows = |before: &(f64, String)| elapsed.0 > before.0;
            match self.elapsed.as_ref().is_none_or(grows) {
                true => self.goes_on |= self.elapsed.is_some(),
                // Another run has begun, which may do as much as the one before.
                false => {
                    self.goes_on = false;
                    self.amounts.clear();
                }
            }
            for one in self.amounts.iter_mut().filter(|one| one.since.is_none()) {
                one.since = Some(elapsed.clone());
            }
            self.elapsed = Some(elapsed);
        }
        let Some(mut amount) = amount else { return };
        (amount.first, amount.last) = (number, number);
        // A line with both has the time of its own.
        amount.since = running(text);
        let place = self.amounts.iter().position(|one| one.key == amount.key);
        let has_room = self.amounts.len() < MAX_AMOUNTS;
        let known = place.and_then(|place| self.amounts.get_mut(place));
        match known {
            Some(one) if one.figures == amount.figures => {
                one.reports += 1;
                one.last = number;
                one.has_rate |= amount.has_rate;
                one.shown = amount.shown;
            }
            Some(one) => *one = amount,
            None if has_room => self.amounts.push(amount),
            None => {}
        }
    }

    /// What stands still at the end, if nothing moves.
    pub(super) fn end(&mut self, told: &mut Told) -> Option<Fact> {
        let all = std::mem::take(self);
        let last = all.amounts.iter().map(|one| one.last).max()?;
        let first = all.amounts.iter().map(|one| one.first).min()?;
        // Of amounts that are no longer reported nothing is known.
        let reports = all.amounts.iter().map(|one| one.reports).max()?;
        let spacing = (last - first) / reports.max(1) + 1;
        let current: Vec<&Amount> = all
            .amounts
            .iter()
            .filter(|one| one.last + 2 * spacing >= last)
            .collect();
        let stands = current
            .iter()
            .all(|one| one.reports >= MIN_REPORTS && !one.complete);
        let has_rate = current.iter().any(|one| one.has_rate);
        if !stands || !has_rate || !all.goes_on {
            return None;
        }
        let latest = current.iter().max_by_key(|one| one.first)?;
        let reports = current.iter().map(|one| one.reports).min()?;
        let (now, shown) = all.elapsed?;
        let (since, shown_since) = latest.since.clone()?;
        let ns = (now - since).clamp(0.0, super::MAX_LENGTH_NS) as Ns;
        for line in current.iter().flat_map(|one| [one.first, one.last]) {
            told.add(line);
        }
        let amounts: Vec<&str> = current.iter().take(4).map(|one| one.shown.as_str()).collect();
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: Some(ns),
            line: latest.first,
            text: format!(
                "no progress in {}: {reports} reports with the same amounts, from {shown_since} to {shown}: {}",
                duration(ns),
                amounts.join(" | ")
            ),
        })
    }
}
