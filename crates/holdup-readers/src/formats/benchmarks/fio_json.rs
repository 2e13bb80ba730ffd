//! `fio --output-format=json`: the same figures as in its text, in nanoseconds.
//!
//! In: the document, perhaps with warnings in front of it. Out: the direction of the job with the longest mean, as of the text.

use crate::format::{Family, Format, Shape, Sureness};
use crate::formats::report::{holds, ns_of};
use crate::gather::Out;
use crate::json;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;
use serde_json::Value;

pub(crate) static FORMAT: Format =
    Format::new("fio-json", Family::Times, recognise, Shape::Document(read)).about("fio in JSON");

/// Names of directions, and of a flush.
const DIRECTIONS: &str = "read write trim sync";

/// What a flush is told as.
const FLUSH: (&str, &str) = ("sync", "flush (fsync)");

/// Nanoseconds from which a caller that hands a request over is held up.
const MIN_HELD_UP: f64 = 1e8;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(holds(head, "\"fio version\"") && holds(head, "\"jobs\""))
}

/// Figures of one kind of latency, nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Latency {
    mean: f64,
    most: f64,
    hundredth: Option<f64>,
}

/// `"clat_ns": {"min": …}`; before fio 3 in microseconds, without the unit in the name.
fn latency(of: &Value, name: &str) -> Option<Latency> {
    let (found, unit) = match of.get(format!("{name}_ns")) {
        Some(found) => (found, 1.0),
        None => (of.get(name)?, 1e3),
    };
    let figure = |value: Option<&Value>| value.and_then(Value::as_f64).map(|value| value * unit);
    Some(Latency {
        mean: figure(found.get("mean"))?,
        most: figure(found.get("max"))?,
        hundredth: figure(found.get("percentile").and_then(|all| all.get("99.000000"))),
    })
    .filter(|latency| latency.most > 0.0 && latency.most < 1e18)
}

#[derive(Debug)]
struct Direction {
    job: String,
    name: &'static str,
    whole: Latency,
    submission: Option<Latency>,
    completion: Option<Latency>,
    iops: f64,
    bandwidth: f64,
}

fn directions(job: &Value) -> impl Iterator<Item = Direction> + '_ {
    let name = job.get("jobname").and_then(Value::as_str).unwrap_or_default();
    DIRECTIONS.split(' ').filter_map(move |key| {
        let of = job.get(key)?;
        let completion = latency(of, "clat");
        let figure = |name: &str| of.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        Some(Direction {
            job: name.chars().take(80).collect(),
            name: if key == FLUSH.0 { FLUSH.1 } else { key },
            whole: latency(of, "lat").or(completion)?,
            submission: latency(of, "slat"),
            completion,
            iops: figure("iops"),
            bandwidth: figure("bw"),
        })
    })
}

fn ns(value: f64) -> Ns {
    ns_of(value / 1e9)
}

impl Direction {
    fn sentence(&self, disk: &str) -> String {
        let high = self
            .whole
            .hundredth
            .or_else(|| self.completion.and_then(|one| one.hundredth));
        let high = high.map_or_else(String::new, |high| {
            format!(", 99 % within {}", duration(ns(high)))
        });
        let rates = match self.iops > 0.0 {
            true => format!(" ({:.1} IOPS, {:.0} KiB/s)", self.iops, self.bandwidth),
            false => String::new(),
        };
        let job = if self.job.is_empty() {
            String::new()
        } else {
            format!("{}: ", self.job)
        };
        format!(
            "{job}a {} took {} at the mean{high}, {} at most{rates}{}{disk}",
            self.name,
            duration(ns(self.whole.mean)),
            duration(ns(self.whole.most)),
            self.held_up().unwrap_or_default()
        )
    }

    fn held_up(&self) -> Option<String> {
        let (before, after) = (self.submission?, self.completion?);
        let long = before.most >= MIN_HELD_UP && before.most >= 2.0 * after.most;
        long.then(|| {
            format!(
                "; its submission (slat) took {} at most, its completion (clat) {}: the caller was held up before the disk had the request",
                duration(ns(before.most)),
                duration(ns(after.most))
            )
        })
    }
}

fn read(document: &[u8], out: &mut Out<'_>) {
    let from = memchr::memchr(b'{', document).unwrap_or(0);
    let to = memchr::memrchr(b'}', document).map_or(document.len(), |at| at + 1);
    let value = match json::value(document.get(from..to).unwrap_or_default()) {
        Ok(value) => value,
        Err(error) => {
            out.problem(format!("could not be read: {error}"));
            return;
        }
    };
    let jobs = value
        .get("jobs")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let all = jobs.iter().flat_map(directions);
    let Some(worst) = all.max_by(|one, other| one.whole.mean.total_cmp(&other.whole.mean)) else {
        return;
    };
    let disk = value.get("disk_util").and_then(|all| all.get(0));
    let disk = disk.and_then(|disk| Some((disk.get("name")?.as_str()?, disk.get("util")?.as_f64()?)));
    let disk = disk.map_or_else(String::new, |(name, util)| {
        format!("; {name:.40} was busy {util:.2}% of the time")
    });
    let mut quote = out.here();
    quote.line = quote.line.max(1);
    out.statement(Statement {
        ns: Some(ns(worst.whole.most)),
        ..statements::one(StatementKind::Took, None, quote, worst.sentence(&disk))
    });
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TEXT: &str = "{\n \"fio version\" : \"fio-3.28\",\n \"jobs\" : [ { \"jobname\" : \"wal\", \"read\" : { \"lat_ns\" : { \"min\" : 0, \"max\" : 0, \"mean\" : 0.0 } },\n \
        \"write\" : { \"bw\" : 682, \"iops\" : 170.6, \"slat_ns\" : { \"max\" : 91000, \"mean\" : 5200.1 }, \"clat_ns\" : { \"max\" : 2401000000, \"mean\" : 5810000.5, \
        \"percentile\" : { \"99.000000\" : 98000000 } }, \"lat_ns\" : { \"max\" : 2401010000, \"mean\" : 5815000.7 } } } ],\n \"disk_util\" : [ { \"name\" : \"sdb\", \"util\" : 99.87 } ]\n}\n";

    #[test]
    fn the_slowest_direction() {
        let reading = read_text("f", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "fio-json");
        assert_eq!(
            reading.texts(),
            [
                "wal: a write took 5.8 ms at the mean, 99 % within 98.0 ms, 2.40 s at most (170.6 IOPS, 682 KiB/s); sdb was busy 99.87% of the time"
            ]
        );
    }

    #[test]
    fn a_flush_and_a_caller_that_is_held_up() {
        let flush = TEXT.replace(
            "} } } ]",
            "} }, \"sync\" : { \"lat_ns\" : { \"max\" : 3100000000, \"mean\" : 42000000.2 } } } ]",
        );
        assert!(
            read_text("f", flush.as_bytes()).texts()[0]
                .starts_with("wal: a flush (fsync) took 42.0 ms at the mean")
        );
        let held = TEXT.replace("\"max\" : 91000", "\"max\" : 9100000000");
        assert!(
            read_text("f", held.as_bytes()).texts()[0].contains("its submission (slat) took 9.10 s at most")
        );
        let old = TEXT.replace("_ns\"", "\"");
        assert!(read_text("f", old.as_bytes()).texts()[0].contains("took 5.82 s at the mean"));
    }

    #[test]
    fn what_is_cut_anywhere_is_survived() {
        for end in (0..TEXT.len()).step_by(7) {
            let _ = read_text("f", TEXT.as_bytes().get(..end).unwrap_or_default());
        }
    }
}
