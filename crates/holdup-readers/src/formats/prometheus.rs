//! Histograms and summaries as Prometheus' clients print them: `etcd_disk_wal_fsync_duration_seconds_bucket{le="0.512"} 124594`.
//!
//! In: lines of a name, labels and a number. Out: of the series of times whose slowest hundredth is the longest a statement: how many there were,
//! their mean, and within which bound 99 of 100 were. Norms are those that a program's own documentation has.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("prometheus", Family::Times, recognise).about("histograms of Prometheus");

/// Series that are kept, buckets of one, and bytes of a line and of a name.
const MAX_SERIES: usize = 2_000;
const MAX_BUCKETS: usize = 64;
const LINE: usize = 1_000;
const NAME: usize = 160;

/// The part of all that may be slower: the slowest hundredth, as programs' own norms have it.
const SLOWEST_PART: f64 = 0.01;

/// Bounds within which 99 of 100 should be, nanoseconds: etcd's hardware guide and its questions and answers.
const NORMS: [(&str, Ns, &str); 2] = [
    (
        "wal_fsync",
        10_000_000,
        "the disk is slow: it does not sync the log of changes in time",
    ),
    (
        "backend_commit",
        25_000_000,
        "the disk is slow: it does not write the database in time",
    ),
];

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let lines = || text.lines().filter_map(|line| Sample::of(line.trim()));
    let buckets = lines().filter(|sample| sample.le.is_some()).take(2).count();
    let quantile = lines().any(|sample| sample.quantile.is_some() && unit(sample.family).is_some());
    Sureness::certain_if(buckets >= 2 || quantile)
}

/// A line: `name{labels} value`.
#[derive(Debug, Clone, Copy)]
struct Sample<'a> {
    /// The name without its ending.
    family: &'a str,
    ending: &'a str,
    labels: &'a str,
    le: Option<f64>,
    quantile: Option<f64>,
    value: f64,
}

/// The value of a label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let (before, rest) = labels.split_once(&format!("{name}=\""))?;
    let begins = before.is_empty() || before.ends_with([',', ' ']);
    rest.split('"').next().filter(|_| begins)
}

/// `0.512`, `+Inf`, `5.6e+07`.
fn number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    (value >= 0.0).then_some(value)
}

impl<'a> Sample<'a> {
    fn of(line: &'a str) -> Option<Sample<'a>> {
        let line = line.strip_prefix("> ").unwrap_or(line);
        let (name, labels, rest) = match line.split_once('{') {
            Some((name, rest)) => {
                let (labels, rest) = rest.rsplit_once('}')?;
                (name, labels, rest)
            }
            None => {
                let (name, rest) = line.split_once(' ')?;
                (name, "", rest)
            }
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
        if name.is_empty() || name.len() > NAME || !name.bytes().all(fits) {
            return None;
        }
        let value = number(rest.split_whitespace().next()?)?;
        let endings = ["_bucket", "_sum", "_count"];
        let ending = endings.into_iter().find(|ending| name.ends_with(ending));
        let ending = ending.unwrap_or_default();
        Some(Sample {
            family: name.strip_suffix(ending).unwrap_or(name),
            ending,
            labels,
            le: label(labels, "le")
                .and_then(number)
                .filter(|_| ending == "_bucket"),
            quantile: label(labels, "quantile").and_then(number),
            value,
        })
    }

    /// Which series it is of: the name with all labels but those that name a bound.
    fn series(&self) -> String {
        let kept = self.labels.split(',').map(str::trim);
        let kept = kept
            .filter(|part| !part.is_empty() && !part.starts_with("le=") && !part.starts_with("quantile="));
        let labels: Vec<&str> = kept.collect();
        let all = match labels.is_empty() {
            true => self.family.to_owned(),
            false => format!("{}{{{}}}", self.family, labels.join(",")),
        };
        all.chars().take(NAME).collect()
    }
}

/// Nanoseconds of the unit in which a family of times counts, by its name: the last word, as Prometheus' conventions want it.
fn unit(family: &str) -> Option<f64> {
    let of = |word: &str| {
        Some(match word {
            "seconds" | "secs" | "s" => 1e9,
            "milliseconds" | "ms" | "millis" => 1e6,
            "microseconds" | "us" | "micros" => 1e3,
            "nanoseconds" | "ns" => 1.0,
            _ => return None,
        })
    };
    family.rsplit('_').take(2).find_map(of)
}

/// One histogram or summary of times.
#[derive(Debug, Default)]
struct Series {
    /// Bounds with how many were within them, in nanoseconds.
    buckets: Vec<(f64, f64)>,
    sum: Option<f64>,
    count: Option<f64>,
    /// The largest quantile with its value in nanoseconds.
    quantile: Option<(f64, f64)>,
    quote: Quote,
}

/// What a series says.
struct Told {
    slowest: Ns,
    text: String,
    norm: Option<(Ns, &'static str)>,
}

impl Series {
    fn says(&mut self, name: &str) -> Option<Told> {
        self.buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let within_all = self.buckets.last().map(|(_, count)| *count);
        let count = self.count.or(within_all).filter(|count| *count >= 1.0);
        let mut listed = Vec::new();
        if let Some(count) = count {
            listed.push(format!("{count:.0} observations"));
        }
        if let Some(mean) = self.sum.zip(count).map(|(sum, count)| sum / count) {
            listed.push(format!("{} at the mean", duration(whole(mean))));
        }
        let slowest = match (count.filter(|_| !self.buckets.is_empty()), self.quantile) {
            (Some(count), _) => self.of_buckets(count, &mut listed)?,
            (None, Some((part, ns))) => {
                listed.push(format!("{} % within {}", part * 100.0, duration(whole(ns))));
                whole(ns)
            }
            (None, None) => return None,
        };
        let norm = NORMS.iter().find(|(part, ..)| name.contains(part));
        Some(Told {
            slowest,
            text: format!("{name}: {}", listed.join(", ")),
            norm: norm.map(|(_, norm, means)| (*norm, *means)),
        })
    }

    /// The bound within which 99 of 100 were, and how many were beyond the last that is known.
    fn of_buckets(&self, count: f64, listed: &mut Vec<String>) -> Option<Ns> {
        let bounds = || self.buckets.iter().filter(|(bound, _)| bound.is_finite());
        let enough = count * (1.0 - SLOWEST_PART);
        let (last, within_last) = *bounds().next_back()?;
        let slowest = match bounds().find(|(_, within)| *within >= enough) {
            Some((bound, _)) => {
                listed.push(format!("99 % within {}", duration(whole(*bound))));
                *bound
            }
            None => {
                let part = 100.0 * (count - within_last) / count;
                listed.push(format!("{part:.1} % longer than {}", duration(whole(last))));
                last
            }
        };
        // The slowest of all: above which bound how many were.
        let mut longer = bounds().rev().filter(|(_, within)| *within < count);
        if let Some((bound, within)) = longer.next().filter(|(bound, _)| *bound > slowest) {
            listed.push(format!(
                "{:.0} longer than {}",
                count - within,
                duration(whole(*bound))
            ));
        }
        Some(whole(slowest))
    }
}

/// Nanoseconds as they are reported.
fn whole(ns: f64) -> Ns {
    ns.clamp(0.0, 1e18) as Ns
}

#[derive(Debug, Default)]
struct Reader {
    series: BTreeMap<String, Series>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE).unwrap_or(line));
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Understood::Ignorable;
        }
        let Some(sample) = Sample::of(text) else {
            return Understood::No;
        };
        let Some(unit) = unit(sample.family) else {
            return Understood::Ignorable;
        };
        let of_times = sample.le.is_some() || sample.quantile.is_some() || !sample.ending.is_empty();
        if !of_times {
            return Understood::Ignorable;
        }
        let name = sample.series();
        if self.series.len() >= MAX_SERIES && !self.series.contains_key(&name) {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        let series = self.series.entry(name).or_insert_with(|| Series {
            quote: out.here(),
            ..Series::default()
        });
        match (sample.ending, sample.le, sample.quantile) {
            (_, Some(bound), _) if series.buckets.len() < MAX_BUCKETS => {
                series.buckets.push((bound * unit, sample.value));
            }
            (_, _, Some(part)) => {
                let larger = series.quantile.is_none_or(|(known, _)| part > known);
                if larger {
                    series.quantile = Some((part, sample.value * unit));
                }
            }
            ("_sum", ..) => series.sum = Some(sample.value * unit),
            ("_count", ..) => series.count = Some(sample.value),
            _ => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let mut longest: Option<(Told, Quote)> = None;
        for (name, mut series) in std::mem::take(&mut self.series) {
            let Some(told) = series.says(&name) else { continue };
            // How many times its norm comes before how long.
            let beyond = |told: &Told| told.norm.is_some_and(|(norm, _)| told.slowest > norm);
            let key = |told: &Told| (beyond(told), told.slowest);
            if longest.as_ref().is_none_or(|(other, _)| key(&told) > key(other)) {
                longest = Some((told, series.quote));
            }
        }
        let Some((told, quote)) = longest else { return };
        let (kind, norm) = match told.norm {
            Some((norm, means)) if told.slowest > norm => (
                StatementKind::Stalled,
                format!("; 99 % should be within {}: {means}", duration(norm)),
            ),
            Some((norm, _)) => (
                StatementKind::WithinNorm,
                format!("; 99 % should be within {}", duration(norm)),
            ),
            None => (StatementKind::Took, String::new()),
        };
        out.statement(Statement {
            ns: Some(told.slowest),
            ..statements::one(kind, None, quote, format!("{}{norm}", told.text))
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "prometheus");
        let one = reading.observed.statements.into_iter().next().unwrap();
        (one.kind, one.text)
    }

    #[test]
    fn the_bound_of_99_of_100_and_what_is_beyond() {
        let text = "# TYPE disk_wal_fsync_duration_seconds histogram\ndisk_wal_fsync_duration_seconds_bucket{le=\"0.001\"} 900\n\
            disk_wal_fsync_duration_seconds_bucket{le=\"0.512\"} 995\ndisk_wal_fsync_duration_seconds_bucket{le=\"8.192\"} 998\n\
            disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 1e+03\ndisk_wal_fsync_duration_seconds_sum 41\n\
            disk_wal_fsync_duration_seconds_count 1000\n";
        let (kind, told) = said(text);
        assert_eq!(kind, StatementKind::Stalled);
        assert_eq!(
            told,
            "disk_wal_fsync_duration_seconds: 1000 observations, 41.0 ms at the mean, 99 % within 512 ms, 2 longer than 8.19 s; \
             99 % should be within 10.0 ms: the disk is slow: it does not sync the log of changes in time"
        );
        let well = text.replace("le=\"0.512\"} 995", "le=\"0.008\"} 999");
        assert_eq!(said(&well).0, StatementKind::WithinNorm);
    }

    #[test]
    fn the_slowest_of_several_series_and_summaries() {
        let text = "http_request_duration_seconds{handler=\"/a\",quantile=\"0.99\"} 0.2\n\
            http_request_duration_seconds{handler=\"/find\",quantile=\"0.5\"} 1.5\nhttp_request_duration_seconds{handler=\"/find\",quantile=\"0.99\"} 31\n\
            http_request_duration_seconds_sum{handler=\"/find\"} 400\nhttp_request_duration_seconds_count{handler=\"/find\"} 100\nup 1\n";
        assert_eq!(
            said(text),
            (
                StatementKind::Took,
                "http_request_duration_seconds{handler=\"/find\"}: 100 observations, 4.00 s at the mean, 99 % within 31.00 s"
                    .to_owned()
            )
        );
    }

    #[test]
    fn what_is_cut_anywhere_is_survived() {
        let text = "a_seconds_bucket{le=\"1\"} 7\na_seconds_bucket{le=\"NaN\"} -1\na_seconds_bucket{le=\"+Inf\"} 1e999\n}{ 1\n";
        for end in 0..text.len() {
            let _ = read_text("m", text.as_bytes().get(..end).unwrap_or_default());
        }
    }
}
