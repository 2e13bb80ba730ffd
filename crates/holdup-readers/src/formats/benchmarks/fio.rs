//! `fio`.
//!
//! In: for each job and direction a line of rates, lines of latencies with their unit, percentiles; lines of disks. Out: the direction with
//! the longest completion: its rate, its mean, the slowest hundredth and the longest; and how busy the disk was.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("fio", Family::Times, recognise).about("fio");

/// Nanoseconds from which a caller that hands a request over is held up.
const MIN_HELD_UP: Ns = 100_000_000;

const NAME: usize = 80;
const RATES: usize = 120;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let found = |name: &str| text.lines().any(|line| line.trim_start().starts_with(name));
    let job = text.contains(": (groupid=") && text.contains("jobs=");
    let latency = found("clat (") || found("lat (") || found("slat (");
    Sureness::certain_if((job || text.contains("IOPS=")) && latency)
}

/// One direction of a job.
#[derive(Debug, Default, Clone)]
struct Direction {
    job: String,
    name: String,
    rates: String,
    mean: Ns,
    longest: Ns,
    hundredth: Option<Ns>,
    /// The mean and the longest until a request was handed over, and the longest from there on.
    submission: Option<(Ns, Ns)>,
    completion: Ns,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    job: String,
    now: Option<Direction>,
    worst: Option<Direction>,
    /// The unit of the percentiles that come, in nanoseconds.
    unit: Option<f64>,
    disk: String,
}

/// `clat (usec): min=…`: the unit, in nanoseconds.
fn unit(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once('(')?;
    Some(match rest.split(')').next()? {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    })
}

/// The value of `name=` up to a comma.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    Some(rest.split([',', ' ', ')', ';']).next()?.trim())
}

fn ns(text: &str, name: &str, unit: f64) -> Option<Ns> {
    let text = value(text, name)?;
    let thousand = text.strip_suffix(['k', 'K']).map(|number| (number, 1e3));
    let million = text.strip_suffix(['m', 'M']).map(|number| (number, 1e6));
    let (number, factor) = thousand.or(million).unwrap_or((text, 1.0));
    let ns = decimal(number.as_bytes())? * factor * unit;
    (0.0..1e18).contains(&ns).then_some(ns as Ns)
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..1_000).unwrap_or(line));
        let text = text.trim();
        if text.is_empty() {
            return Understood::Ignorable;
        }
        if let Some((job, _)) = text.split_once(": (groupid=") {
            self.job = job.chars().take(NAME).collect();
            return Understood::Evidence;
        }
        if let Some((name, rest)) = text.split_once(':')
            && matches!(name.trim(), "read" | "write" | "trim")
        {
            self.close();
            self.now = Some(Direction {
                job: self.job.clone(),
                name: name.trim().to_owned(),
                rates: rest.trim().chars().take(RATES).collect(),
                quote: out.here(),
                ..Direction::default()
            });
            return Understood::Evidence;
        }
        if let Some(now) = &mut self.now {
            // A flush is asked for on its own, and is what a database waits for: it is a direction beside the writes.
            if text.starts_with("sync (") {
                let rates = now.rates.clone();
                self.close();
                self.now = Some(Direction {
                    job: self.job.clone(),
                    name: "flush (fsync)".to_owned(),
                    rates,
                    quote: out.here(),
                    ..Direction::default()
                });
                self.take_lengths(text, out);
                return Understood::Evidence;
            }
            if text.starts_with("slat (") {
                if let Some(unit) = unit(text) {
                    now.submission = ns(text, "avg=", unit).zip(ns(text, "max=", unit));
                }
                return Understood::Evidence;
            }
            if text.starts_with("clat (")
                && let Some(longest) = unit(text).and_then(|unit| ns(text, "max=", unit))
            {
                now.completion = longest;
            }
            // The whole, or where there is no line of it the completion.
            if text.starts_with("clat (") || text.starts_with("lat (") {
                self.take_lengths(text, out);
                return Understood::Evidence;
            }
            let percentiles = ["clat percentiles", "lat percentiles", "sync percentiles"];
            if percentiles.iter().any(|begin| text.starts_with(begin)) {
                self.unit = unit(text);
                return Understood::Evidence;
            }
            if let Some((_, rest)) = text.split_once("99.00th=[") {
                let number = rest
                    .split(']')
                    .next()
                    .and_then(|number| decimal(number.trim().as_bytes()));
                now.hundredth = number
                    .zip(self.unit)
                    .map(|(number, unit)| (number * unit).clamp(0.0, 1e18) as Ns);
                return Understood::Evidence;
            }
        }
        if let Some((disk, rest)) = text.split_once(": ios=")
            && let Some(busy) = value(rest, "util=")
        {
            if self.disk.is_empty() {
                let disk: String = disk.chars().take(NAME).collect();
                self.disk = format!("; {disk} was busy {busy} of the time");
            }
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let Some(worst) = self.worst.take() else { return };
        let hundredth = worst
            .hundredth
            .map(|ns| format!(", 99 % within {}", duration(ns)))
            .unwrap_or_default();
        let job = match worst.job.as_str() {
            "" => String::new(),
            job => format!("{job}: "),
        };
        let text = format!(
            "{job}a {} took {} at the mean{hundredth}, {} at most ({}){}{}",
            worst.name,
            duration(worst.mean),
            duration(worst.longest),
            worst.rates,
            worst.held_up().unwrap_or_default(),
            self.disk
        );
        out.statement(Statement {
            ns: Some(worst.longest),
            ..statements::one(StatementKind::Took, None, worst.quote, text)
        });
    }
}

impl Direction {
    /// Where the time went before a request was handed over: what the caller itself waits for, beside what the disk took.
    fn held_up(&self) -> Option<String> {
        let (mean, longest) = self.submission?;
        let of_longest = longest >= MIN_HELD_UP && longest / 2 >= self.completion;
        let of_mean = mean >= MIN_HELD_UP / 100 && mean * 2 >= self.mean;
        (of_longest || of_mean).then(|| {
            format!(
                "; its submission (slat) took {} at the mean and {} at most, its completion (clat) {} at most: the caller was held up before the disk \
                 had the request (too many dirty pages, a journal, a full queue)",
                duration(mean),
                duration(longest),
                duration(self.completion)
            )
        })
    }
}

impl Reader {
    /// The mean and the longest of a line of latencies.
    fn take_lengths(&mut self, text: &str, out: &Out<'_>) {
        if let Some(now) = &mut self.now
            && let Some(unit) = unit(text)
            && let (Some(longest), Some(mean)) = (ns(text, "max=", unit), ns(text, "avg=", unit))
        {
            (now.longest, now.mean) = (longest, mean);
            now.quote = out.here();
        }
    }

    fn close(&mut self) {
        self.unit = None;
        let Some(now) = self.now.take().filter(|now| now.longest > 0) else {
            return;
        };
        if self.worst.as_ref().is_none_or(|worst| now.mean > worst.mean) {
            self.worst = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TEXT: &str = "small: (groupid=0, jobs=1): err= 0: pid=48: Fri Jan  8 10:00:01 2021\n  write: IOPS=112, BW=449KiB/s (460kB/s)(26.4MiB/60142msec)\n    \
        slat (usec): min=4, max=18, avg= 6.22, stdev=1.0\n    clat (msec): min=2, max=1938, avg=141.92, stdev=201.10\n     lat (msec): min=2, max=1938, avg=141.94, stdev=201.11\n    \
        clat percentiles (msec):\n     |  1.00th=[    5], 50.00th=[   72],\n     | 99.00th=[  995], 99.50th=[ 1200]\nDisk stats (read/write):\n  sdb: ios=0/6760, merge=0/12, ticks=0/957112, util=99.91%\n";

    #[test]
    fn the_slowest_direction_with_its_rate_and_disk() {
        let reading = read_text("f", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "fio");
        assert_eq!(
            reading.observed.statements[0].text,
            "small: a write took 142 ms at the mean, 99 % within 995 ms, 1.94 s at most (IOPS=112, BW=449KiB/s \
             (460kB/s)(26.4MiB/60142msec)); sdb was busy 99.91% of the time"
        );
        assert_eq!(reading.observed.statements.len(), 1);
    }

    #[test]
    fn a_flush_that_takes_longer_than_the_write_is_named() {
        let text = "wal: (groupid=0, jobs=1): err= 0: pid=9: Thu Apr  2 10:00:12 2020\n  write: IOPS=31, BW=71.2KiB/s\n    clat (usec): min=4, max=19823, avg=41.12, stdev=101.2\n  \
            fsync/fdatasync/sync_file_range:\n    sync (msec): min=2, max=1211, avg=31.72, stdev=41.22\n    sync percentiles (msec):\n     | 95.00th=[   80], 99.00th=[  201]\n";
        assert_eq!(
            read_text("f", text.as_bytes()).texts(),
            [
                "wal: a flush (fsync) took 31.7 ms at the mean, 99 % within 201 ms, 1.21 s at most (IOPS=31, BW=71.2KiB/s)"
            ]
        );
    }

    #[test]
    fn a_caller_that_is_held_up_before_the_disk() {
        let text = "buffered: (groupid=0, jobs=1): err= 0: pid=7: Thu Apr  2 10:00:12 2020\n  write: io=812.1MB, bw=81210KB/s, iops=20302, runt= 10001msec\n    \
            slat (usec): min=2, max=1640.2K, avg=31.02, stdev=4042.1\n    clat (usec): min=1, max=21012, avg= 2.91, stdev=104.1\n     \
            lat (usec): min=4, max=1640.3K, avg=33.93, stdev=4043.2\n";
        let reading = read_text("f", text.as_bytes());
        let told = reading.texts();
        assert!(
            told[0].contains("its submission (slat) took 31 µs at the mean and 1.64 s at most, its completion (clat) 21.0 ms at most"),
            "{told:?}"
        );
        // At the mean, in milliseconds of newer versions.
        let slow = "a: (groupid=0, jobs=1): err= 0: pid=7\n  write: IOPS=19, BW=78.1KiB/s\n    slat (msec): min=3, max=90, avg=51.02, stdev=4.1\n    \
            clat (usec): min=1, max=210, avg= 2.91, stdev=10.1\n     lat (msec): min=3, max=90, avg=51.03, stdev=4.1\n";
        assert!(read_text("f", slow.as_bytes()).texts()[0].contains("held up"));
        // The disk itself takes the time.
        assert!(!read_text("f", TEXT.as_bytes()).texts()[0].contains("slat"));
    }

    #[test]
    fn what_is_cut_anywhere_is_survived() {
        for end in 0..TEXT.len() {
            let _ = read_text("f", TEXT.as_bytes().get(..end).unwrap_or_default());
        }
    }
}
