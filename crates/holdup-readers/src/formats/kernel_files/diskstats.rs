//! `/proc/diskstats`: counters of block devices since boot. Of several readings the differences are taken.
//!
//! In: lines of 14, 18 or 20 fields, by the kernel's age. Out: what `iostat -x` has; how busy a disk was and what it did a
//! second only where the readings' times are reported.

use super::clock::Clock;
use super::vmstat_counters::SINCE_BOOT;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::Metric;
use std::collections::HashMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("diskstats", Family::Host, recognise).about("/proc/diskstats");

/// Fields of a line, numbers and name of the device included: since Linux 2.6, 4.18 and 5.5; before 2.6.25 a partition had
/// only seven.
const FIELDS: [usize; 4] = [7, 14, 18, 20];

/// Counters that are looked at.
const COUNTERS: usize = 17;

/// Disks that are remembered.
const DISKS: usize = 10_000;

/// KiB of a sector, as the kernel counts them.
const SECTOR: f64 = 0.5;

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.by_ref().take(20).any(|line| row(line).is_some());
    if first { Sureness::Certain } else { Sureness::No }
}

/// A device's name and its counters; missing ones are 0.
fn row(line: &[u8]) -> Option<(&[u8], [u64; COUNTERS])> {
    let mut fields = words(line);
    let (major, minor, name) = (fields.next()?, fields.next()?, fields.next()?);
    let is_number = |word: &[u8], most| whole(word).is_some_and(|number| number <= most);
    // Twelve bits and twenty.
    if !is_number(major, 4095) || !is_number(minor, 0xf_ffff) || name.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut counters = [0; COUNTERS];
    let mut count = 3;
    for field in fields {
        let number = whole(field)?;
        if let Some(counter) = counters.get_mut(count - 3) {
            *counter = number;
        }
        count += 1;
    }
    (FIELDS.contains(&count) && count > 7).then_some((name, counters))
}

#[derive(Debug, Default)]
struct Reader {
    clock: Clock,
    last: HashMap<Box<[u8]>, (u64, [u64; COUNTERS])>,
    /// Readings that began.
    readings: u64,
    over: Option<Ns>,
    timed: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() || self.clock.line(line) {
            return Understood::Ignorable;
        }
        let Some((name, now)) = row(line) else {
            let fields = words(line).count();
            return if fields == 7 && words(line).all(|word| whole(word).is_some()) {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        let readings = self.readings;
        let known = self
            .last
            .get(name)
            .map(|(reading, counters)| (*reading, *counters));
        // A disk that was in this reading begins the next one.
        if readings == 0 || known.is_some_and(|(reading, _)| reading == readings) {
            self.readings += 1;
            let (at, over) = self.clock.reading();
            self.over = over;
            self.timed |= over.is_some();
            out.report(at, over, self.readings == 1);
        }
        if known.is_some() || self.last.len() < DISKS {
            match self.last.get_mut(name) {
                Some(last) => *last = (self.readings, now),
                None => {
                    self.last.insert(name.into(), (self.readings, now));
                }
            }
        } else {
            out.account().left_out += 1;
        }
        let text = String::from_utf8_lossy(name);
        match known {
            Some((_, before)) => figures(&text, &before, &now, self.over, out),
            // Of the first reading: averages since boot.
            None if self.readings == 1 => figures(&text, &[0; COUNTERS], &now, None, out),
            None => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if self.readings > 0 && !self.timed {
            out.problem(SINCE_BOOT);
        }
    }
}

/// What a disk did between two readings.
fn figures(disk: &str, before: &[u64; COUNTERS], now: &[u64; COUNTERS], over: Option<Ns>, out: &mut Out<'_>) {
    let grown = |at: usize| {
        let (now, before) = (now.get(at)?, before.get(at)?);
        // Times are of 32 bits in old kernels and begin again; a disk that was replaced begins again, too.
        now.checked_sub(*before).map(|grown| grown as f64)
    };
    let mut put = |metric, value: Option<f64>| {
        if let Some(value) = value {
            out.figure(metric, disk, value);
        }
    };
    let each = |sum: usize, count: usize| {
        let count = grown(count)?;
        Some(if count > 0.0 { grown(sum)? / count } else { 0.0 })
    };
    put(Metric::DiskReadWaitMs, each(3, 0));
    put(Metric::DiskWriteWaitMs, each(7, 4));
    put(
        Metric::DiskReadRequestKib,
        each(2, 0).map(|sectors| sectors * SECTOR),
    );
    put(
        Metric::DiskWriteRequestKib,
        each(6, 4).map(|sectors| sectors * SECTOR),
    );
    put(Metric::DiskFlushWaitMs, each(16, 15));
    let Some(over) = over else { return };
    let seconds = over as f64 / 1e9;
    let a_second = |at| grown(at).map(|grown| grown / seconds);
    put(Metric::DiskReadsPerSecond, a_second(0));
    put(Metric::DiskReadsMergedPerSecond, a_second(1));
    put(
        Metric::DiskReadKibPerSecond,
        a_second(2).map(|sectors| sectors * SECTOR),
    );
    put(Metric::DiskWritesPerSecond, a_second(4));
    put(Metric::DiskWritesMergedPerSecond, a_second(5));
    put(
        Metric::DiskWriteKibPerSecond,
        a_second(6).map(|sectors| sectors * SECTOR),
    );
    put(Metric::DiskFlushesPerSecond, a_second(15));
    // Milliseconds a second, and of all requests together.
    put(
        Metric::DiskUtilPercent,
        a_second(9).map(|busy| (busy / 10.0).min(100.0)),
    );
    put(Metric::DiskQueueLength, a_second(10).map(|waiting| waiting / 1e3));
}
