//! Downloads that crawl: `Downloaded: http://host/a.pom (4 KB at 0.2 KB/sec)`, of which the size and the rate give the time.
//!
//! In: lines with a size and a rate of something that was fetched. Out: how many were slow, the time of all by that arithmetic, and the slowest with its
//! host. Something small says nothing of a rate by itself: it must have taken seconds.

use super::Told;
use crate::numbers::decimal;
use crate::statements::shape;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Seconds that one download must have taken to be slow, and the rate in bytes a second below which it crawls: a modem's.
const SLOW_SECONDS: f64 = 5.0;
const CRAWLS: f64 = 8_000.0;

/// The longest time that is believed, seconds, and lines that are kept as told.
const MAX_SECONDS: f64 = 1e7;
const MAX_LINES: usize = 500;

/// Units of sizes, in bytes.
const UNITS: [(&str, f64); 8] = [
    ("b", 1.0),
    ("byte", 1.0),
    ("bytes", 1.0),
    ("kb", 1e3),
    ("kib", 1_024.0),
    ("mb", 1e6),
    ("mib", 1_048_576.0),
    ("gb", 1e9),
];

/// The downloads of one artefact.
#[derive(Debug, Default)]
pub(super) struct Speeds {
    all: u64,
    slow: u64,
    seconds: f64,
    /// The slowest: its seconds, its line, its text.
    slowest: Option<(f64, u64, String)>,
    /// The greatest rate of those that were slow, bytes a second.
    fastest: f64,
    lines: Vec<u64>,
}

/// A number with its unit as bytes: `4 KB`, `0.2 KB/sec`.
fn bytes(text: &str, rate: bool) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let unit = unit.trim().to_ascii_lowercase();
    let unit = match rate {
        true => unit.strip_suffix("/sec").or_else(|| unit.strip_suffix("/s"))?,
        false => unit.as_str(),
    };
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some(decimal(number.as_bytes())? * factor)
}

/// The size and the rate of a line: `(4 KB at 0.2 KB/sec)`.
fn fetched(text: &str) -> Option<(f64, f64)> {
    let (_, inner) = text.rsplit_once('(')?;
    let (inner, _) = inner.split_once(')')?;
    let (size, rate) = inner.split_once(" at ")?;
    Some((bytes(size, false)?, bytes(rate, true)?))
}

/// The host of the first address in a line.
fn host(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let host = rest.split(['/', ':', ' ', ')']).next()?;
    (!host.is_empty()).then_some(host)
}

impl Speeds {
    /// Takes a line.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let Some((size, rate)) = fetched(text).filter(|(_, rate)| *rate > 0.0) else {
            return;
        };
        self.all += 1;
        let seconds = size / rate;
        if !(SLOW_SECONDS..MAX_SECONDS).contains(&seconds) || rate >= CRAWLS {
            return;
        }
        self.slow += 1;
        self.seconds += seconds;
        self.fastest = self.fastest.max(rate);
        if self.lines.len() < MAX_LINES {
            self.lines.push(number);
        }
        if self.slowest.as_ref().is_none_or(|(most, ..)| seconds > *most) {
            self.slowest = Some((seconds, number, shape::sentence(text.as_bytes(), 0)));
        }
    }

    /// What they come to.
    pub(super) fn end(&mut self, told: &mut Told) -> Option<Fact> {
        let read = std::mem::take(self);
        let (seconds, line, text) = read.slowest?;
        read.lines.iter().for_each(|line| told.add(*line));
        let ns = |seconds: f64| (seconds.min(MAX_SECONDS) * 1e9) as Ns;
        let from = host(&text).map_or_else(String::new, |host| format!(" from {host}"));
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: Some(ns(read.seconds)),
            line,
            text: format!(
                "downloads{from} are slow: {} of {} came at {:.1} KB/s at most and took {} together by size and rate; the slowest took {}: {text}",
                read.slow,
                read.all,
                read.fastest / 1e3,
                duration(ns(read.seconds)),
                duration(ns(seconds))
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::fetched;
    use crate::read_text;

    #[test]
    fn what_crawls_is_told_with_its_host_and_time() {
        let text = "Downloaded: http://repo.example/a/a-1.pom (4 KB at 0.2 KB/sec)\nDownloaded: http://repo.example/b/b-1.pom (5 KB at 0.5 KB/sec)\n\
            Downloaded: http://repo.example/c/c-1.pom (9 KB at 900.0 KB/sec)\n";
        let all = read_text("m", text.as_bytes()).observed.statements;
        let words = "downloads from repo.example are slow: 2 of 3 came at 0.5 KB/s at most and took 30.00 s together by size and rate; the slowest took 20.00 s";
        assert!(all.iter().any(|one| one.text.starts_with(words)), "{all:?}");
    }

    #[test]
    fn small_or_swift_ones_say_nothing() {
        for text in [
            "Downloaded: http://repo.example/a.pom (4 KB at 17.9 KB/sec)\n",
            "Downloaded: http://repo.example/a.pom (300 B at 0.2 KB/sec)\n",
            "Downloaded: http://repo.example/a.jar (2.5 MB at 450 KB/s)\n",
            "rate limit (4 KB at most 2 KB/s)\n",
        ] {
            let all = read_text("m", text.as_bytes()).observed.statements;
            assert!(!all.iter().any(|one| one.text.contains("are slow")), "{all:?}");
        }
        assert!(fetched("(4 KB at )").is_none() && fetched("( at 1 KB/s)").is_none());
    }
}
