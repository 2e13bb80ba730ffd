//! Lines of the summaries of JMeter, Gatling, k6 and Locust.

use super::phases;
use crate::formats::report::{length, name_of, number, percent, rounded};

/// What was measured of one kind of request, or of all.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) requests: Option<f64>,
    pub(super) failed: f64,
    /// Seconds.
    pub(super) mean: Option<f64>,
    pub(super) high: Option<(String, f64)>,
    pub(super) longest: Option<f64>,
    pub(super) rate: String,
    /// Of k6: the mean of each phase of a request, in seconds, in the order of [`phases::K6`](super::phases).
    pub(super) phases: [Option<f64>; 6],
}

/// `summary =   2000 in 00:00:30 =   66.7/s Avg:   120 Min:     2 Max:  5012 Err:    15 (0.75%)`; whether it is of the whole test.
pub(super) fn jmeter(line: &str) -> Option<(bool, Measured)> {
    let (_, rest) = line.split_once("summary ")?;
    let (sign, rest) = rest.trim_start().split_at_checked(1)?;
    let whole = match sign {
        "=" => true,
        "+" => false,
        _ => return None,
    };
    let words: Vec<&str> = rest.split_whitespace().take(30).collect();
    let behind = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        number(words.get(at + 1)?)
    };
    let of_ms = |name: &str| behind(name).map(|ms| ms / 1e3);
    let rate = words
        .iter()
        .find(|word| word.ends_with("/s"))
        .copied()
        .unwrap_or_default();
    Some((
        whole,
        Measured {
            requests: Some(number(words.first()?)?),
            mean: Some(of_ms("Avg:")?),
            longest: of_ms("Max:"),
            failed: behind("Err:").unwrap_or(0.0),
            rate: name_of(rate.trim_end_matches("/s")),
            ..Measured::default()
        },
    ))
}

/// `http_req_failed................: 12.50% 25 out of 200`: the name and what is behind it.
pub(super) fn k6(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(':')?;
    let dotted = name.trim_end_matches('.');
    let name = dotted.trim_start_matches(|char: char| !char.is_ascii_alphanumeric());
    (dotted.len() + 2 < line.len() && name.starts_with("http_req")).then_some((name.trim(), rest.trim()))
}

/// A row of Locust's table: left of the bar the name and how many, right of it mean, least, greatest and median in milliseconds.
pub(super) fn locust(line: &str) -> Option<Measured> {
    let mut parts = line.split('|');
    let (left, times, rates) = (parts.next()?, parts.next()?, parts.next()?);
    let (left, failed) = left.trim_end().rsplit_once(' ')?;
    let (name, requests) = left.trim_end().rsplit_once(' ')?;
    let failed = number(failed.split('(').next()?)?;
    let mut times = times.split_whitespace().map(number);
    let (mean, _least, longest) = (times.next()??, times.next()??, times.next()??);
    let name: Vec<&str> = name.split_whitespace().take(12).collect();
    Some(Measured {
        name: name_of(&name.join(" ")),
        requests: Some(number(requests)?),
        failed,
        mean: Some(mean / 1e3),
        high: None,
        longest: Some(longest / 1e3),
        rate: name_of(rates.split_whitespace().next().unwrap_or_default()),
        ..Measured::default()
    })
}

impl Measured {
    /// Takes what a line of Gatling or k6 says; `None` where it says nothing.
    pub(super) fn take(&mut self, line: &str) -> Option<()> {
        // Its own sign is lost where a quotation's signs are taken away.
        if self.gatling(line.strip_prefix("> ").unwrap_or(line)).is_some() {
            return Some(());
        }
        let (name, rest) = k6(line)?;
        let behind = |name: &str| {
            let word = rest.split_whitespace().find_map(|word| word.strip_prefix(name))?;
            length(word)
        };
        if let Some(phase) = phases::place(name) {
            *self.phases.get_mut(phase)? = Some(behind("avg=")?);
            return Some(());
        }
        match name {
            "http_req_duration" => {
                self.mean = Some(behind("avg=")?);
                self.longest = behind("max=");
                let high = ["p(99)=", "p(95)=", "p(90)="]
                    .iter()
                    .find_map(|name| Some((*name, behind(name)?)));
                self.high =
                    high.map(|(name, seconds)| (name.trim_matches(['p', '(', ')', '=']).to_owned(), seconds));
            }
            "http_reqs" => {
                let mut words = rest.split_whitespace();
                self.requests = Some(number(words.next()?)?);
                self.rate = name_of(words.next().unwrap_or_default().trim_end_matches("/s"));
            }
            // Its share is of those that are in `http_reqs`, which may come behind it.
            "http_req_failed" => self.failed = -percent(rest.split_whitespace().next()?)? / 100.0,
            _ => return None,
        }
        Some(())
    }

    pub(super) fn gatling(&mut self, rest: &str) -> Option<()> {
        // The name may have a figure in it: `response time 95th percentile`.
        let (name, figures) = rest.split_once('|').or_else(|| rest.split_once("  "))?;
        let mut words = figures.split(|char: char| char.is_whitespace() || matches!(char, '|' | '(' | ')'));
        let value = words.find_map(number)?;
        match name.trim() {
            "request count" => {
                self.requests = Some(value);
                let ko = figures.split_once("KO=").map(|(_, ko)| ko.trim_start());
                let ko = ko.and_then(|ko| number(ko.split([' ', ')']).next()?));
                self.failed = ko.or_else(|| words.filter_map(number).nth(1)).unwrap_or(0.0);
            }
            "mean response time" | "mean response time (ms)" => self.mean = Some(value / 1e3),
            "max response time" | "max response time (ms)" => self.longest = Some(value / 1e3),
            "mean requests/sec" | "mean throughput (rps)" => self.rate = rounded(value),
            name => {
                let (_, place) = name.split_once("response time ")?;
                let place = place
                    .split("th percentile")
                    .next()
                    .filter(|place| number(place).is_some())?;
                self.high = Some((place.to_owned(), value / 1e3));
            }
        }
        Some(())
    }
}
