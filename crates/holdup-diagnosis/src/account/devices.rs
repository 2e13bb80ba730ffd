//! Which disk does most and which answers slowest, and how full the file systems are.

use super::values::{self, Value, figure, parts};
use super::{Rank, Ranked};
use crate::rules::figures::{self, Intervals};
use crate::rules::list::{disk_answers_slowly, disk_busy, file_system_full};
use holdup_evidence::Observed;
use holdup_evidence::observed::Metric;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let busiest = busiest(observed);
    let slowest = slowest(observed).filter(|slow| {
        let named = busiest.as_ref().map(|busiest| busiest.of());
        slow.value() >= disk_answers_slowly::MIN_SLOW_MS || named.is_none()
    });
    let holds = |value: &Value<'_>| slowest.as_ref().is_some_and(|slow| slow.of() == value.of());
    if let Some(busiest) = &busiest
        && !holds(busiest)
    {
        all.push(line(observed, busiest, busy_rank(observed, busiest)));
    }
    if let Some(slow) = &slowest {
        let long = slow.value() >= disk_answers_slowly::MIN_SLOW_MS && !slow.point.since_boot;
        let rank = match (long, slow.is_average()) {
            (true, _) => Rank::Saturated,
            (false, true) => Rank::Largest,
            (false, false) => Rank::Ordinary,
        };
        let rank = busiest
            .as_ref()
            .filter(|busiest| busiest.of() == slow.of())
            .map_or(rank, |busiest| rank.min(busy_rank(observed, busiest)));
        all.push(line(observed, slow, rank));
    }
    if busiest.is_none() && slowest.is_none() {
        add_by_amount(observed, all);
    }
    add_file_systems(observed, all);
}

/// The disk that is short, or the one that is most busy.
fn busiest(observed: &Observed) -> Option<Value<'_>> {
    let all = values::largest(observed, Metric::DiskUtilPercent);
    let short: Vec<(u32, &str)> = figures::of(observed, Metric::DiskUtilPercent)
        .filter(|disk| disk_busy::is_short(disk))
        .map(|disk| (disk.series.source, disk.of()))
        .collect();
    let is_short = |value: &&Value<'_>| short.contains(&(value.series.source, value.of()));
    // Of a disk and its parts the disk is named.
    let named = all.iter().find(is_short).or(all.first()).copied()?;
    let whole = all
        .iter()
        .find(|disk| disk.value() >= named.value() && disk_busy::is_layer(named.of(), disk.of()));
    Some(whole.copied().unwrap_or(named))
}

fn busy_rank(observed: &Observed, disk: &Value<'_>) -> Rank {
    let intervals = Intervals {
        observed,
        series: disk.series,
    };
    if intervals.count() > 0 && disk_busy::is_short(&intervals) {
        Rank::Saturated
    } else if disk.is_average() || disk.value() >= disk_busy::BUSY {
        Rank::Largest
    } else {
        Rank::Ordinary
    }
}

/// The disk whose requests take longest, of those that have enough of them to have a mean.
fn slowest(observed: &Observed) -> Option<Value<'_>> {
    let waits = [
        (Metric::DiskWriteWaitMs, Some(Metric::DiskWritesPerSecond)),
        (Metric::DiskReadWaitMs, Some(Metric::DiskReadsPerSecond)),
        (Metric::DiskWaitMs, None),
    ];
    let of_metric = |(metric, rate): (Metric, Option<Metric>)| {
        values::largest(observed, metric).into_iter().find(|value| {
            let rate = match rate {
                Some(rate) => value.beside(rate),
                None => value
                    .beside(Metric::DiskReadsPerSecond)
                    .map(|reads| reads + value.beside(Metric::DiskWritesPerSecond).unwrap_or(0.0)),
            };
            rate.is_none_or(|rate| rate >= disk_answers_slowly::MIN_REQUESTS_PER_SECOND)
        })
    };
    let all = waits.into_iter().filter_map(of_metric);
    all.filter(|value| value.value() > 0.0)
        .max_by(|one, other| one.value().total_cmp(&other.value()))
}

/// What a disk did in the report of a value.
fn line(observed: &Observed, disk: &Value<'_>, rank: Rank) -> Ranked {
    let name = disk.of();
    let mut listed = Vec::new();
    let busy = disk.beside(Metric::DiskUtilPercent);
    let waits = [
        (Metric::DiskReadWaitMs, Some(Metric::DiskReadsPerSecond), "a read"),
        (
            Metric::DiskWriteWaitMs,
            Some(Metric::DiskWritesPerSecond),
            "a write",
        ),
        (Metric::DiskWaitMs, None, "a request"),
    ];
    let both = disk.beside(Metric::DiskReadWaitMs).is_some();
    for (metric, rate, what) in waits {
        let some = rate.is_none_or(|rate| disk.beside(rate).is_none_or(|rate| rate > 0.0));
        if let Some(ms) = disk.beside(metric).filter(|_| some && (rate.is_some() || !both)) {
            listed.push(format!("{} ms {what}", figure(ms)));
        }
    }
    if let Some(queue) = disk.beside(Metric::DiskQueueLength).filter(|queue| *queue >= 0.1) {
        listed.push(format!("{} requests in flight", figure(queue)));
    }
    listed.extend(amounts(disk));
    let busy_words = busy.map(|busy| format!("{} % busy", figure(busy)));
    let norm = match rank {
        Rank::Ordinary => format!(
            " (from {} % busy, or {} ms a request, on a disk is short)",
            disk_busy::BUSY,
            disk_answers_slowly::MIN_SLOW_MS
        ),
        _ => String::new(),
    };
    let text = format!(
        "{name} was{} {}{norm}",
        disk.since_boot(),
        parts(&busy_words.into_iter().chain(listed).collect::<Vec<_>>())
    );
    let line = Ranked::new(rank, name, text, (observed, &disk.point.quote));
    match busy {
        Some(busy) => line.share(busy / 100.0),
        None => line,
    }
}

/// How much was read and written, and in how many requests.
fn amounts(disk: &Value<'_>) -> Vec<String> {
    let kinds = [
        (Metric::DiskReadKibPerSecond, Metric::DiskReadsPerSecond, "read"),
        (
            Metric::DiskWriteKibPerSecond,
            Metric::DiskWritesPerSecond,
            "written",
        ),
    ];
    let found = kinds.into_iter().filter_map(|(kib, rate, what)| {
        let kib = disk.beside(kib).filter(|kib| *kib >= 1.0)?;
        let rate = disk.beside(rate).filter(|rate| *rate > 0.0);
        let rate = rate.map_or_else(String::new, |rate| format!(" in {} requests", figure(rate)));
        Some(format!("{} KiB/s {what}{rate}", figure(kib)))
    });
    found.collect()
}

/// Where nothing tells how busy disks are or how long they take: the one that moves most.
fn add_by_amount(observed: &Observed, all: &mut Vec<Ranked>) {
    let of = |metric| values::largest(observed, metric).into_iter().next();
    let (read, written) = (
        of(Metric::DiskReadKibPerSecond),
        of(Metric::DiskWriteKibPerSecond),
    );
    let most = [read, written]
        .into_iter()
        .flatten()
        .max_by(|one, other| one.value().total_cmp(&other.value()));
    let Some(most) = most.filter(|most| most.value() >= 1.0) else {
        return;
    };
    let transfers = most
        .beside(Metric::DiskTransfersPerSecond)
        .map(|count| format!(", {} transfers a second", figure(count)));
    let text = format!(
        "{} moves most{}: {}{}; how busy it is is not known",
        most.of(),
        most.since_boot(),
        parts(&amounts(&most)),
        transfers.unwrap_or_default()
    );
    all.push(Ranked::new(
        Rank::Largest,
        most.of(),
        text,
        (observed, &most.point.quote),
    ));
}

fn add_file_systems(observed: &Observed, all: &mut Vec<Ranked>) {
    let used = |percent: Option<f64>| percent.unwrap_or(0.0);
    let fullest = observed
        .file_systems
        .iter()
        .filter(|one| one.used_percent.is_some() && !file_system_full::is_image(one))
        .max_by(|one, other| used(one.used_percent).total_cmp(&used(other.used_percent)));
    let Some(fullest) = fullest else { return };
    let percent = used(fullest.used_percent);
    let left = fullest.available_kib;
    let plenty = left.is_some_and(|left| left >= file_system_full::PLENTY_KIB);
    let rank = match percent >= file_system_full::NEARLY && !plenty {
        true => Rank::Saturated,
        false => Rank::Ordinary,
    };
    let left = left.map(|kib| format!(", {} left", holdup_evidence::units::bytes((kib * 1024.0) as u64)));
    let text = format!(
        "{} is {} % full{} (from {} % on little is left)",
        fullest.mount,
        figure(percent),
        left.unwrap_or_default(),
        file_system_full::NEARLY
    );
    all.push(Ranked::new(rank, &fullest.mount, text, (observed, &fullest.quote)).share(percent / 100.0));
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use crate::account::values::tests::report;
    use holdup_evidence::observed::Metric;

    #[test]
    fn a_disk_that_is_short_is_told_with_its_waits() {
        let observed = report(&[
            (Metric::DiskUtilPercent, "sda", 3.0),
            (Metric::DiskUtilPercent, "sdb", 98.0),
            (Metric::DiskReadsPerSecond, "sdb", 200.0),
            (Metric::DiskReadWaitMs, "sdb", 34.0),
            (Metric::DiskQueueLength, "sdb", 7.5),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "sdb was 98 % busy, 34 ms a read and 7.5 requests in flight"
        );
    }

    #[test]
    fn an_array_that_answers_slowly_comes_before_disks_that_are_busier() {
        let observed = report(&[
            (Metric::DiskUtilPercent, "md127", 4.51),
            (Metric::DiskWritesPerSecond, "md127", 9.8),
            (Metric::DiskWriteWaitMs, "md127", 1495.44),
            (Metric::DiskUtilPercent, "sda", 12.0),
        ]);
        let lines = account(&observed);
        assert_eq!(lines[0].text, "md127 was 4.5 % busy and 1495 ms a write");
        assert!(
            lines[1].text.starts_with("sda was 12 % busy (from 80 % busy"),
            "{}",
            lines[1].text
        );
    }

    #[test]
    fn without_utilisation_the_disk_that_moves_most_is_told() {
        let observed = report(&[
            (Metric::DiskWriteKibPerSecond, "sdb", 26_223.1),
            (Metric::DiskTransfersPerSecond, "sdb", 54.2),
            (Metric::DiskWriteKibPerSecond, "md0", 8.8),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "sdb moves most: 26223 KiB/s written, 54.2 transfers a second; how busy it is is not known"
        );
    }
}
