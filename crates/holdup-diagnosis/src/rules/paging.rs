//! Swap disks among the disks of a log, and how a disk's work is told where paging may be behind it.

use super::figures::{Intervals, mean, span};
use holdup_evidence::SystemFacts;
use holdup_evidence::observed::Metric;
use holdup_model::finding::Evidence;

/// KiB of a page, and of the largest request by which pages are still written in ones and twos.
const PAGE_KIB: f64 = 4.0;
const MAX_SMALL_REQUEST_KIB: f64 = 32.0;

/// How far from a page the mean read may be: neighbours are read together now and then.
const MAX_DISTANCE_SHARE: f64 = 0.5;

/// Requests a second from which the shape of requests says something.
const MIN_REQUESTS_PER_SECOND: f64 = 20.0;

/// The swap area that is on a disk, or on a partition of it.
pub(super) fn swap_on<'a>(facts: &'a SystemFacts, disk: &str) -> Option<&'a str> {
    let on = |path: &str| {
        let name = path
            .strip_prefix("/dev/mapper/")
            .or_else(|| path.strip_prefix("/dev/"));
        name.and_then(|name| name.strip_prefix(disk)).is_some_and(|part| {
            // `xvdk1` is on `xvdk`, `nvme0n1p2` on `nvme0n1`; `sdb` is not on `sd`.
            let number = part.strip_prefix('p').unwrap_or(part);
            part.is_empty() || !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
        })
    };
    facts
        .swaps
        .iter()
        .map(|swap| swap.path.as_str())
        .find(|path| on(path))
}

/// Whether a disk is read by the page and written by a few, as swap is.
pub(super) fn looks_like_swap(disk: &Intervals<'_>) -> bool {
    let Some((read, write)) = sizes(disk) else {
        return false;
    };
    let often = |metric| {
        disk.beside(metric)
            .is_some_and(|rate| mean(&rate.values()) >= MIN_REQUESTS_PER_SECOND)
    };
    let page = (read - PAGE_KIB).abs() <= MAX_DISTANCE_SHARE;
    let pages = (PAGE_KIB - MAX_DISTANCE_SHARE..=MAX_SMALL_REQUEST_KIB).contains(&write);
    page && pages && often(Metric::DiskReadsPerSecond) && often(Metric::DiskWritesPerSecond)
}

/// KiB of a read and of a write, over all intervals.
fn sizes(disk: &Intervals<'_>) -> Option<(f64, f64)> {
    let size = |kib, rate| {
        let (kib, rate) = (disk.beside(kib)?, disk.beside(rate)?);
        let (kib, rate) = (mean(&kib.values()), mean(&rate.values()));
        (rate > 0.0).then(|| kib / rate)
    };
    Some((
        size(Metric::DiskReadKibPerSecond, Metric::DiskReadsPerSecond)?,
        size(Metric::DiskWriteKibPerSecond, Metric::DiskWritesPerSecond)?,
    ))
}

/// KiB of each request in each interval, in words.
fn each(disk: &Intervals<'_>, kib: Metric, rate: Metric) -> Option<String> {
    let (kib, rate) = (disk.beside(kib)?, disk.beside(rate)?);
    let reports: Vec<u32> = rate
        .points()
        .filter(|point| point.value > 0.0)
        .map(|point| point.report)
        .collect();
    let (kib, rate) = (kib.in_reports(&reports), rate.in_reports(&reports));
    let each: Vec<f64> = kib.iter().zip(&rate).map(|(kib, rate)| kib / rate).collect();
    (!each.is_empty()).then(|| span(&each, 1))
}

/// What a disk does: how busy, how many reads and writes, and how large they are.
pub(super) fn disk(disk: &Intervals<'_>) -> Evidence {
    let mut text = format!("{} is {} % busy", disk.of(), span(&disk.values(), 0));
    let rates = [
        (
            Metric::DiskReadsPerSecond,
            Metric::DiskReadKibPerSecond,
            "reads/s",
        ),
        (
            Metric::DiskWritesPerSecond,
            Metric::DiskWriteKibPerSecond,
            "writes/s",
        ),
    ];
    for (rate, kib, what) in rates {
        let Some(rates) = disk
            .beside(rate)
            .map(|rate| rate.values())
            .filter(|rates| mean(rates) >= 1.0)
        else {
            continue;
        };
        let each = each(disk, kib, rate)
            .map(|each| format!(" of {each} KiB"))
            .unwrap_or_default();
        text.push_str(&format!("; {} {what}{each}", span(&rates, 0)));
    }
    disk.evidence(text)
}

#[cfg(test)]
mod tests {
    use super::swap_on;
    use holdup_evidence::SystemFacts;
    use holdup_evidence::facts::SwapArea;

    #[test]
    fn a_swap_area_is_on_its_disk() {
        let facts = |path: &str| SystemFacts {
            swaps: vec![SwapArea {
                path: path.to_owned(),
                ..SwapArea::default()
            }],
            ..SystemFacts::default()
        };
        for (path, disk) in [
            ("/dev/xvdk1", "xvdk"),
            ("/dev/nvme0n1p2", "nvme0n1"),
            ("/dev/dm-1", "dm-1"),
        ] {
            assert_eq!(swap_on(&facts(path), disk), Some(path));
        }
        for (path, disk) in [
            ("/dev/sdb1", "sd"),
            ("/swapfile", "sda"),
            ("/dev/sda1", "sdb"),
            ("/dev/sdap", "sda"),
        ] {
            assert_eq!(swap_on(&facts(path), disk), None, "{path} {disk}");
        }
    }
}
