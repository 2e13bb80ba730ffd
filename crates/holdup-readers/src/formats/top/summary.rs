//! The summary above the table: load, tasks, CPU, memory.
//!
//! Words are translated in other locales and units stand where each version likes them; the order of the figures is the
//! same in all.

use super::has;
use crate::format::Understood;
use crate::gather::Out;
use crate::load;
use crate::numbers::{decimal, words};
use crate::sizes;
use holdup_evidence::observed::Metric;

/// The shares of a CPU in procps's order.
const ORDER: [Metric; 8] = [
    Metric::CpuUserPercent,
    Metric::CpuSystemPercent,
    Metric::CpuNicePercent,
    Metric::CpuIdlePercent,
    Metric::CpuIowaitPercent,
    Metric::CpuIrqPercent,
    Metric::CpuSoftirqPercent,
    Metric::CpuStealPercent,
];

/// The same by busybox's names.
const BUSYBOX: [(&[u8], Metric); 7] = [
    (b"usr", Metric::CpuUserPercent),
    (b"sys", Metric::CpuSystemPercent),
    (b"nic", Metric::CpuNicePercent),
    (b"idle", Metric::CpuIdlePercent),
    (b"io", Metric::CpuIowaitPercent),
    (b"irq", Metric::CpuIrqPercent),
    (b"sirq", Metric::CpuSoftirqPercent),
];

/// Most that a share of a CPU can be, for rounding.
const FULL: f64 = 100.5;

/// Nothing, or nothing but blanks of any kind.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| byte.is_ascii_whitespace() || matches!(byte, 0xc2 | 0xa0 | 0))
}

/// The CPU line of busybox.
pub(super) fn is_busybox_cpu(line: &[u8]) -> bool {
    line.starts_with(b"CPU:") && has(line, "% usr") && has(line, "% idle")
}

/// Whether a summary can begin with such a line where the banner is not there.
pub(super) fn begins_without_banner(line: &[u8]) -> bool {
    let beginnings: [&[u8]; 5] = [b"Tasks:", b"Threads:", b"%Cpu", b"Cpu", b"Mem:"];
    beginnings.iter().any(|begin| line.starts_with(begin))
}

/// What the lines of a summary begin with behind the banner.
const BEGINNINGS: [&[u8]; 8] = [
    b" Tasks:",
    b" Threads:",
    b" %Cpu",
    b" Cpu(s):",
    b" KiB Mem",
    b" MiB Mem",
    b" Mem:",
    b" Swap:",
];

/// The lines of a summary that stand on one line.
pub(super) fn parts(line: &[u8]) -> Vec<&[u8]> {
    let mut places: Vec<usize> = BEGINNINGS
        .iter()
        .filter_map(|begin| memchr::memmem::find(line, begin))
        .collect();
    places.sort_unstable();
    let mut found = Vec::new();
    let mut from = 0;
    for to in places.into_iter().chain([line.len()]) {
        found.push(line.get(from..to).unwrap_or_default().trim_ascii());
        from = to;
    }
    found
}

/// The load averages at the end of a banner: the only figures behind the last colon.
pub(super) fn loads(line: &[u8], out: &mut Out<'_>) {
    let Some(at) = line.iter().rposition(|byte| *byte == b':') else {
        return;
    };
    averages(line.get(at + 1..).unwrap_or_default(), out);
}

fn averages(text: &[u8], out: &mut Out<'_>) -> bool {
    let found = load::averages(text);
    if let Some(averages) = found {
        load::put_averages(averages, out);
    }
    found.is_some()
}

/// Any other line of the summary.
pub(super) fn line(line: &[u8], out: &mut Out<'_>) -> Understood {
    let understood = if line.starts_with(b"Tasks:") || line.starts_with(b"Threads:") {
        tasks(line, out)
    } else if is_busybox_cpu(line) {
        busybox_cpu(line, out)
    } else if let Some(found) = procps_cpu(line) {
        cpu(found.0, found.1, out)
    } else if let Some(rest) = line.strip_prefix(b"Load average:") {
        averages(rest, out)
    } else {
        memory(line, out)
    };
    if understood {
        Understood::Evidence
    } else {
        Understood::No
    }
}

/// `Tasks: 108 total,   1 running, 107 sleeping,   0 stopped,   0 zombie`.
fn tasks(line: &[u8], out: &mut Out<'_>) -> bool {
    let metrics = [
        Some(Metric::ProcessesTotal),
        Some(Metric::ProcessesRunnable),
        None,
        Some(Metric::ProcessesStopped),
        Some(Metric::ProcessesZombie),
    ];
    // `d-sleep` stands between them in the newest.
    let fields = line.split(|byte| matches!(byte, b',' | b':')).skip(1);
    let fields = fields.filter(|field| !has(field, "d-sleep"));
    let mut any = false;
    for (field, metric) in fields.zip(metrics) {
        if let (Some(metric), Some(count)) = (metric, words(field).next().and_then(decimal)) {
            out.figure(metric, "", count);
            any = true;
        }
    }
    any
}

/// A CPU line of procps: which CPU, and its figures.
fn procps_cpu(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"%").unwrap_or(line);
    let rest = [&b"Cpu"[..], b"CPU"]
        .iter()
        .find_map(|name| rest.strip_prefix(*name))?;
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let which = rest.get(..colon)?.trim_ascii();
    let which = if which.iter().all(u8::is_ascii_digit) {
        which
    } else {
        b""
    };
    Some((which, rest.get(colon + 1..)?))
}

/// Figures of a CPU in order: `10.6%us,  1.7%sy, …`, `  0,3 us,  0,2 sy, …`, `100,0 id`.
fn cpu(which: &[u8], figures: &[u8], out: &mut Out<'_>) -> bool {
    let which = std::str::from_utf8(which).unwrap_or_default();
    let mut shares = [0.0; 8];
    let mut count = 0;
    let mut rest = figures;
    while let Some(at) = rest.iter().position(u8::is_ascii_digit) {
        let digits = rest.get(at..).unwrap_or_default();
        let length = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
            .count();
        let (number, behind) = digits.split_at_checked(length).unwrap_or((digits, &[]));
        let number = number.strip_suffix(b",").unwrap_or(number);
        let Some((share, slot)) = decimal(number).zip(shares.get_mut(count)) else {
            return false;
        };
        if share > FULL {
            return false;
        }
        *slot = share;
        count += 1;
        rest = behind;
    }
    // Kernels before 2.6 have no steal; less than that is a line that was cut.
    if count < 4 {
        return false;
    }
    for (metric, share) in ORDER.iter().zip(shares).take(count) {
        out.figure(*metric, which, share);
    }
    true
}

/// `CPU:  10% usr   5% sys   0% nic  85% idle   0% io   0% irq   0% sirq`.
fn busybox_cpu(line: &[u8], out: &mut Out<'_>) -> bool {
    let mut any = false;
    let mut last = None;
    for word in words(line) {
        if let Some((_, metric)) = BUSYBOX.iter().find(|(name, _)| *name == word)
            && let Some(share) = last.filter(|share| *share <= FULL)
        {
            out.figure(*metric, "", share);
            any = true;
        }
        last = word.strip_suffix(b"%").and_then(decimal);
    }
    any
}

/// Memory and swap: `Mem:   1695600k total,  1682160k used,    13440k free,     1400k buffers`,
/// `MiB Swap:   2048.0 total,   1092.1 free,    955.9 used.   1200.0 avail Mem`, `Mem: 1234K used, 5678K free, …`.
fn memory(line: &[u8], out: &mut Out<'_>) -> bool {
    let mut parts = line.splitn(2, |byte| *byte == b':');
    let (Some(title), Some(rest)) = (parts.next(), parts.next()) else {
        return false;
    };
    let mut title_words: Vec<&[u8]> = words(title).take(3).collect();
    let kind = title_words.pop().unwrap_or_default();
    let swap = kind == b"Swap";
    if !swap && kind != b"Mem" && kind != b"Sp" && kind != b"Spch" {
        return false;
    }
    // `KiB Mem`: one KiB of the unit's own letter.
    let factor = match title_words
        .first()
        .and_then(|unit| sizes::with_unit(&[b"1", *unit].concat()))
    {
        Some(bytes) => bytes / 1024.0,
        None if title_words.is_empty() => 1.0,
        None => return false,
    };
    let mut any = false;
    let mut last: Option<f64> = None;
    for word in words(rest) {
        let word = word.strip_suffix(b"+").unwrap_or(word);
        let word_end = word
            .strip_suffix(b",")
            .or_else(|| word.strip_suffix(b"."))
            .unwrap_or(word);
        if let Some(number) = sizes::kib(word_end) {
            let factor = if word_end.last().is_some_and(u8::is_ascii_digit) {
                factor
            } else {
                1.0
            };
            last = Some(number * factor);
            continue;
        }
        let metric = match (word_end, swap) {
            (b"total" | b"gesamt", false) => Metric::MemoryTotalKib,
            (b"used" | b"belegt", false) => Metric::MemoryUsedKib,
            (b"free" | b"frei", false) => Metric::MemoryFreeKib,
            (b"buffers" | b"buff", _) => Metric::MemoryBuffersKib,
            (b"buff/cache" | b"Puff/Cache" | b"cached" | b"cache", _) => Metric::MemoryCachedKib,
            (b"avail" | b"verf\xc3\xbcgb", _) => Metric::MemoryAvailableKib,
            (b"total" | b"gesamt", true) => Metric::SwapTotalKib,
            (b"used" | b"belegt", true) => Metric::SwapUsedKib,
            _ => continue,
        };
        if let Some(kib) = last.take() {
            out.figure(metric, "", kib);
            any = true;
        }
    }
    any || last.is_some()
}
