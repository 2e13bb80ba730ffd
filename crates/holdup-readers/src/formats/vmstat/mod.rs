//! `vmstat`: run queue, memory, swapping, blocks and CPU; with `-d`, counters of disks.
//!
//! In: its tables of any version, wide or not, with times or without. Out: series. The first row is the average since boot
//! but for what is a state (run queue, memory). The unit that `-S` chooses is not in the output: memory is taken where
//! it can be KiB, and what is swapped in and out is then at least that many KiB, whatever the unit.
//! Of `-d` the differences between two reports are taken: counters since boot say nothing of now.

mod headless;

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, SeriesAt};
use crate::numbers::{decimal, whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Civil, Metric, When};
use std::collections::HashMap;

pub(super) static FORMAT: Format = Format::lines::<Reader>("vmstat", Family::Host, recognise)
    .about("vmstat")
    .openings(&["procs -", "procs  ", "--procs--", "disk- -"]);

/// KiB of memory below which a machine of today can't be: less than that is another unit than KiB.
const LEAST_MEMORY_KIB: f64 = 131_072.0;

/// Disks that are remembered.
const DISKS: usize = 10_000;

const SECOND: Ns = 1_000_000_000;

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let found = lines.any(|line| is_disk_heading(line) || Columns::of(line).is_some());
    Sureness::certain_if(found || headless::are_rows(head))
}

#[derive(Debug, Default)]
struct Reader {
    columns: Option<Columns>,
    /// Whether the table is that of `-d`.
    disks: bool,
    /// Rows that were read.
    rows: u64,
    before: Option<When>,
    /// Whether the command was pasted with it and has `-y`: no average since boot.
    without_first: bool,
    last: HashMap<Box<[u8]>, Counters>,
    /// Disks of the current report of `-d`.
    seen: u64,
}

/// The columns of the table.
#[derive(Debug, Clone, PartialEq)]
struct Columns {
    /// For each column what it is.
    metrics: Vec<Option<Metric>>,
    /// Their series, once there is one.
    at: Vec<Option<SeriesAt>>,
    /// Whether a date and a time stand behind them, and whether they are of UTC.
    stamped: Option<bool>,
    /// The first of the four columns of memory.
    swpd: Option<usize>,
}

impl Columns {
    fn of(line: &[u8]) -> Option<Columns> {
        let names: Vec<&[u8]> = words(line).collect();
        let place = |name: &[u8]| names.iter().position(|other| *other == name);
        let is_it = names.first() == Some(&&b"r"[..]) && place(b"so").is_some() && place(b"us").is_some();
        if !is_it {
            return None;
        }
        let known = names
            .iter()
            .rposition(|name| matches!(*name, b"us" | b"sy" | b"id" | b"wa" | b"st" | b"gu"))?;
        let stamped = names.get(known + 1).map(|zone| matches!(*zone, b"UTC" | b"GMT"));
        let names = names.get(..=known)?;
        let metrics: Vec<Option<Metric>> = names
            .iter()
            .enumerate()
            // The columns of memory have names in the locale's language; the second of the four is free memory.
            .map(|(at, name)| match place(b"swpd") {
                Some(swpd) if at == swpd + 1 => Some(Metric::MemoryFreeKib),
                _ => metric(name),
            })
            .collect();
        Some(Columns {
            at: vec![None; metrics.len()],
            swpd: metrics
                .iter()
                .position(|metric| *metric == Some(Metric::SwapUsedKib)),
            metrics,
            stamped,
        })
    }
}

fn metric(name: &[u8]) -> Option<Metric> {
    Some(match name {
        b"r" => Metric::ProcessesRunnable,
        b"b" => Metric::ProcessesBlocked,
        b"swpd" => Metric::SwapUsedKib,
        b"cache" | b"Cache" => Metric::MemoryCachedKib,
        b"si" => Metric::SwapInKibPerSecond,
        b"so" => Metric::SwapOutKibPerSecond,
        b"bi" => Metric::BlocksInPerSecond,
        b"bo" => Metric::BlocksOutPerSecond,
        b"in" => Metric::InterruptsPerSecond,
        b"cs" => Metric::ContextSwitchesPerSecond,
        b"us" => Metric::CpuUserPercent,
        b"sy" => Metric::CpuSystemPercent,
        b"id" => Metric::CpuIdlePercent,
        b"wa" => Metric::CpuIowaitPercent,
        b"st" => Metric::CpuStealPercent,
        _ => return None,
    })
}

fn is_memory(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::SwapUsedKib | Metric::MemoryFreeKib | Metric::MemoryCachedKib
    )
}

/// The two lines above a table.
fn is_group_line(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    // With its own column of times in front.
    if line.starts_with(b"--") && memchr::memmem::find(line, b"procs").is_some() {
        return true;
    }
    let dashes = || line.windows(2).any(|two| two == b"--") || line.windows(3).any(|blanks| blanks == b"   ");
    (line.starts_with(b"procs") || line.starts_with(b"--procs") || line.starts_with(b"disk-")) && dashes()
}

fn is_disk_heading(line: &[u8]) -> bool {
    let names: [&[u8]; 10] = [
        b"total", b"merged", b"sectors", b"ms", b"total", b"merged", b"sectors", b"ms", b"cur", b"sec",
    ];
    words(line).take(names.len()).eq(names)
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let blank = line.iter().all(u8::is_ascii_whitespace);
        if blank || is_group_line(line) {
            return Understood::Ignorable;
        }
        if line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) && !self.disks {
            return self.row(line, out);
        }
        if let Some(columns) = Columns::of(line) {
            self.disks = false;
            // The heading comes again with every screenful; the series stay.
            let same = self
                .columns
                .as_ref()
                .is_some_and(|old| old.metrics == columns.metrics && old.stamped == columns.stamped);
            if !same {
                self.columns = Some(columns);
            }
            return Understood::Evidence;
        }
        if is_disk_heading(line) {
            self.disks = true;
            return Understood::Evidence;
        }
        if self.disks
            && let Some(understood) = self.disk(line, out)
        {
            return understood;
        }
        self.command(line)
    }
}

impl Reader {
    /// The command itself, where it was pasted with its prompt.
    fn command(&mut self, line: &[u8]) -> Understood {
        let mut words = words(line).skip_while(|word| *word != b"vmstat");
        if words.next().is_none() {
            return Understood::No;
        }
        self.without_first = words.any(|word| word.starts_with(b"-") && word.contains(&b'y'));
        Understood::Ignorable
    }

    fn row(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        /// Columns that a version may have.
        const MAX_COLUMNS: usize = 24;
        if self.columns.is_none() {
            // Where the heading was left out, the row of the time since boot was too.
            self.columns = Columns::of_values(line);
            self.without_first |= self.columns.is_some();
        }
        let Some(columns) = &mut self.columns else {
            return Understood::No;
        };
        let mut values = [0.0; MAX_COLUMNS];
        let mut fields = words(line);
        // Some collectors put the time in front of each row.
        if words(line).next().is_some_and(|first| first.contains(&b':')) {
            fields.next();
        }
        let width = columns.metrics.len().min(MAX_COLUMNS);
        for value in values.iter_mut().take(width) {
            match fields.next().and_then(decimal).filter(|value| *value >= 0.0) {
                Some(read) => *value = read,
                None => return Understood::No,
            }
        }
        let at = match (columns.stamped, fields.next(), fields.next()) {
            (Some(utc), Some(day), Some(time)) => instant(day, time, utc),
            (None, None, _) => None,
            _ => return Understood::No,
        };
        if fields.next().is_some() {
            return Understood::No;
        }
        self.rows += 1;
        let over = at
            .and_then(|at| u64::try_from(at.since(self.before?)?).ok())
            .filter(|ns| *ns > 0);
        self.before = at;
        let since_boot = self.rows == 1 && !self.without_first;
        out.report(at, over.filter(|_| !since_boot), since_boot);
        let is = |metric: &Option<Metric>, which: fn(Metric) -> bool| metric.is_some_and(which);
        let found = columns.metrics.iter().zip(values);
        // Swap that is used, free memory, and two that are named in the locale's language.
        let memory = columns
            .swpd
            .and_then(|swpd| values.get(swpd..(swpd + 4).min(width)));
        let memory: f64 = memory.unwrap_or_default().iter().sum();
        let in_kib = memory >= LEAST_MEMORY_KIB;
        for (((metric, value), series), _) in found.zip(&mut columns.at).zip(0..MAX_COLUMNS) {
            let Some(known) = *metric else { continue };
            if is(metric, is_memory) && !in_kib {
                continue;
            }
            if series.is_none() {
                *series = out.series_at(known, "");
            }
            out.figure_at(*series, value);
        }
        Understood::Evidence
    }

    /// A row of `-d`; `None` where it is none.
    fn disk(&mut self, line: &[u8], out: &mut Out<'_>) -> Option<Understood> {
        let mut fields = words(line);
        let name = fields.next()?;
        let mut counts = [0_u64; 10];
        for count in &mut counts {
            *count = whole(fields.next()?)?;
        }
        let at = match (fields.next(), fields.next()) {
            (Some(day), Some(time)) => instant(day, time, false),
            (None, _) => None,
            _ => return None,
        };
        let now = Counters {
            counts,
            at,
            turn: self.last.get(name).map_or(0, |last| last.turn + 1),
        };
        let text = String::from_utf8_lossy(name);
        if let Some(last) = self.last.get_mut(name) {
            // The first disk of a report that was seen in the one before begins it.
            if now.turn > self.seen {
                self.seen = now.turn;
                out.report(at, now.over(last), false);
            }
            now.since(last, &text, out);
            *last = now;
        } else if self.last.len() < DISKS {
            self.last.insert(name.into(), now);
        }
        Some(Understood::Evidence)
    }
}

/// `2026-11-22 04:09:47`.
fn instant(day: &[u8], time: &[u8], utc: bool) -> Option<When> {
    let day: jiff::civil::Date = std::str::from_utf8(day).ok()?.parse().ok()?;
    let mut parts = time.split(|byte| *byte == b':').map(whole);
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if hours > 23 || minutes > 59 || seconds > 60 || parts.next().is_some() {
        return None;
    }
    let of_day = (hours * 3600 + minutes * 60 + seconds) * SECOND;
    let day = i64::from((day - jiff::civil::date(1970, 1, 1)).get_days());
    if utc {
        let ns = day.checked_mul(86_400_000_000_000)?;
        return Some(When::Unix(ns.checked_add(i64::try_from(of_day).ok()?)?));
    }
    Some(When::Civil(Civil {
        day: Some(day),
        year_known: true,
        of_day,
    }))
}

/// Counters of a disk since boot: reads (total, merged, sectors, ms), the same of writes, requests in flight, seconds busy.
#[derive(Debug, Clone, Copy)]
struct Counters {
    counts: [u64; 10],
    at: Option<When>,
    /// Which report of the disk's it is, from 0.
    turn: u64,
}

impl Counters {
    fn over(&self, last: &Counters) -> Option<Ns> {
        u64::try_from(self.at?.since(last.at?)?).ok().filter(|ns| *ns > 0)
    }

    /// What the disk did since.
    fn since(&self, last: &Counters, name: &str, out: &mut Out<'_>) {
        let [
            reads,
            read_merged,
            read_sectors,
            read_ms,
            writes,
            write_merged,
            write_sectors,
            write_ms,
            _,
            busy,
        ] = std::array::from_fn(|at| {
            let (now, then) = (self.counts.get(at).copied(), last.counts.get(at).copied());
            now.zip(then).and_then(|(now, then)| now.checked_sub(then))
        });
        let mut put = |metric, part: Option<u64>, whole: f64| {
            if let Some(part) = part.filter(|_| whole > 0.0) {
                out.figure(metric, name, part as f64 / whole);
            }
        };
        put(Metric::DiskReadWaitMs, read_ms, reads.unwrap_or(0) as f64);
        put(Metric::DiskWriteWaitMs, write_ms, writes.unwrap_or(0) as f64);
        // Two sectors of 512 bytes are a KiB.
        put(
            Metric::DiskReadRequestKib,
            read_sectors,
            2.0 * reads.unwrap_or(0) as f64,
        );
        put(
            Metric::DiskWriteRequestKib,
            write_sectors,
            2.0 * writes.unwrap_or(0) as f64,
        );
        let Some(over) = self.over(last) else { return };
        let seconds = over as f64 / 1e9;
        put(Metric::DiskReadsPerSecond, reads, seconds);
        put(Metric::DiskWritesPerSecond, writes, seconds);
        put(Metric::DiskReadsMergedPerSecond, read_merged, seconds);
        put(Metric::DiskWritesMergedPerSecond, write_merged, seconds);
        put(Metric::DiskReadKibPerSecond, read_sectors, 2.0 * seconds);
        put(Metric::DiskWriteKibPerSecond, write_sectors, 2.0 * seconds);
        // Whole seconds: exact enough only over many.
        const EXACT_SECONDS: f64 = 10.0;
        if seconds >= EXACT_SECONDS
            && let Some(busy) = busy
        {
            let percent = (busy as f64 / seconds * 100.0).min(100.0);
            out.figure(Metric::DiskUtilPercent, name, percent);
        }
    }
}

#[cfg(test)]
mod tests;
