//! Memory and swap that are nearly used up, paging, and limits of cgroups.

use super::values::{self, Value, figure};
use super::{Rank, Ranked};
use crate::rules::list::{cgroup_limit_near, cpu_quota_spent, memory_short, swap_thrash};
use holdup_evidence::Observed;
use holdup_evidence::observed::{Limited, Metric, SeenCgroup};
use holdup_evidence::units::bytes;

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    add_memory(observed, all);
    add_swap(observed, all);
    add_paging(observed, all);
    let part = |one: &&SeenCgroup| one.used / one.limit;
    for what in [Limited::Memory, Limited::Tasks, Limited::CpuTime] {
        let of_kind = observed
            .cgroups
            .iter()
            .filter(|one| one.what == what && one.limit > 0.0);
        if let Some(most) = of_kind.max_by(|one, other| part(one).total_cmp(&part(other))) {
            all.push(of_cgroup(observed, most));
        }
    }
}

fn kib(value: f64) -> String {
    bytes((value.max(0.0) * 1024.0) as u64)
}

fn add_memory(observed: &Observed, all: &mut Vec<Ranked>) {
    let least = observed
        .of(Metric::MemoryAvailableKib)
        .filter(|series| series.of.is_empty())
        .filter_map(|series| {
            let point = series
                .points
                .iter()
                .min_by(|one, other| one.value.total_cmp(&other.value))?;
            let of = observed.of(Metric::MemoryTotalKib);
            let mut totals = of.filter(|total| total.source == series.source && total.of.is_empty());
            let total = totals.find_map(|total| total.in_report(point.report).or(total.points.first()))?;
            (total.value > 0.0).then_some((point, total.value))
        })
        .min_by(|one, other| (one.0.value / one.1).total_cmp(&(other.0.value / other.1)));
    let Some((point, total)) = least else { return };
    let part = point.value / total;
    let rank = if part < memory_short::LOW {
        Rank::Saturated
    } else {
        Rank::Ordinary
    };
    let text = format!(
        "{} of {} of memory are available (less than {} % is short)",
        kib(point.value),
        kib(total),
        figure(memory_short::LOW * 100.0)
    );
    all.push(Ranked::new(rank, "memory", text, (observed, &point.quote)).share(1.0 - part));
}

fn add_swap(observed: &Observed, all: &mut Vec<Ranked>) {
    let used = values::largest(observed, Metric::SwapUsedKib)
        .into_iter()
        .find(|used| used.of().is_empty());
    let Some(used) = used.filter(|used| used.value() > 0.0) else {
        return;
    };
    let here = (observed, &used.point.quote);
    let total = used.beside(Metric::SwapTotalKib).filter(|total| *total > 0.0);
    let Some(total) = total else {
        return;
    };
    let share = used.value() / total;
    // Full swap is an end; swap that is in use was short of memory once.
    let rank = match share {
        _ if 1.0 - share < memory_short::LOW => Rank::Saturated,
        _ if share >= memory_short::SWAP_IN_USE => Rank::Largest,
        _ => Rank::Ordinary,
    };
    let text = format!(
        "{} of {} of swap are used (from {} % on memory was short at some time)",
        kib(used.value()),
        kib(total),
        figure(memory_short::SWAP_IN_USE * 100.0)
    );
    all.push(Ranked::new(rank, "swap", text, here).share(share));
}

/// The part of what is much from which on paging in both directions at once is short of memory, and what is as good as nothing
/// free, KiB: kernels keep that much for themselves (`vm.min_free_kbytes` is at most 64 MiB).
const BOTH_WAYS: f64 = 0.25;
const FEW_FREE_KIB: f64 = 65_536.0;

/// What goes the other way.
fn other_way(metric: Metric) -> Metric {
    match metric {
        Metric::SwapInKibPerSecond => Metric::SwapOutKibPerSecond,
        Metric::SwapOutKibPerSecond => Metric::SwapInKibPerSecond,
        Metric::SwapInPagesPerSecond => Metric::SwapOutPagesPerSecond,
        _ => Metric::SwapInPagesPerSecond,
    }
}

/// How much goes to and comes from swap.
fn add_paging(observed: &Observed, all: &mut Vec<Ranked>) {
    let kinds = [
        (
            Metric::SwapInKibPerSecond,
            "KiB/s",
            "come back from swap",
            swap_thrash::KIB,
        ),
        (
            Metric::SwapOutKibPerSecond,
            "KiB/s",
            "go to swap",
            swap_thrash::KIB,
        ),
        (
            Metric::SwapInPagesPerSecond,
            "pages a second",
            "come back from swap",
            swap_thrash::PAGES,
        ),
        (
            Metric::SwapOutPagesPerSecond,
            "pages a second",
            "go to swap",
            swap_thrash::PAGES,
        ),
    ];
    let largest = |(metric, unit, what, much)| {
        let most: Value<'_> = values::largest(observed, metric).into_iter().next()?;
        (most.value() >= 1.0).then_some((most, unit, what, much))
    };
    let most = kinds
        .into_iter()
        .filter_map(largest)
        .max_by(|one, other| (one.0.value() / one.3).total_cmp(&(other.0.value() / other.3)));
    let Some((most, unit, what, much)) = most else {
        return;
    };
    // What goes out and comes back at the same time, while nothing is free, is missing: how fast it goes the disk decides.
    let other_way = most
        .beside(other_way(most.series.metric))
        .filter(|other| *other >= 1.0);
    // What there is at an instant is in a report of its own, on the same line.
    let on_line = |metric| {
        let mut all = observed
            .of(metric)
            .filter(|series| series.source == most.series.source);
        all.find_map(|series| series.points.iter().find(|point| point.quote == most.point.quote))
            .map(|point| point.value)
    };
    let free_kib = most
        .other(Metric::MemoryFreeKib, "")
        .or_else(|| on_line(Metric::MemoryFreeKib));
    let both = other_way.filter(|other| {
        most.value().min(*other) >= much * BOTH_WAYS && free_kib.is_some_and(|free| free <= FEW_FREE_KIB)
    });
    let rank = match (most.point.since_boot, most.value() >= much || both.is_some()) {
        (true, _) => Rank::Largest,
        (false, true) => Rank::Saturated,
        (false, false) => Rank::Ordinary,
    };
    let also = other_way.map(|other| format!(", {} the other way", figure(other)));
    let in_use = most
        .other(Metric::SwapUsedKib, "")
        .or_else(|| on_line(Metric::SwapUsedKib))
        .map(|used| format!("; {} of swap are in use", kib(used)));
    let free = free_kib.map(|free| format!(", {} of memory are free", kib(free)));
    let text = format!(
        "up to {} {unit} {what}{}{} ({} are much){}{}",
        figure(most.value()),
        also.unwrap_or_default(),
        most.since_boot(),
        figure(much),
        in_use.unwrap_or_default(),
        free.unwrap_or_default()
    );
    // While pages come and go, what else is busy is so because of them.
    let share = if both.is_some() {
        1.0
    } else {
        (most.value() / much).min(1.0)
    };
    all.push(Ranked::new(rank, "swap", text, (observed, &most.point.quote)).share(share));
}

fn of_cgroup(observed: &Observed, one: &SeenCgroup) -> Ranked {
    let part = one.used / one.limit;
    let (text, much) = match one.what {
        Limited::Memory => (
            format!(
                "cgroup {} uses {} of at most {} of memory",
                one.cgroup,
                bytes(one.used as u64),
                bytes(one.limit as u64)
            ),
            cgroup_limit_near::MEMORY_SHORT,
        ),
        Limited::Tasks => (
            format!(
                "cgroup {} has {:.0} of at most {:.0} tasks",
                one.cgroup, one.used, one.limit
            ),
            cgroup_limit_near::TASKS,
        ),
        Limited::CpuTime => (
            format!(
                "cgroup {} used up its CPU quota in {:.0} of {:.0} periods",
                one.cgroup, one.used, one.limit
            ),
            cpu_quota_spent::SPENT,
        ),
    };
    let rank = match part >= much || (one.refused.unwrap_or(0) > 0 && one.what != Limited::CpuTime) {
        true => Rank::Saturated,
        false => Rank::Ordinary,
    };
    let text = format!(
        "{text}, {} % (from {} % on it is much)",
        figure(part * 100.0),
        figure(much * 100.0)
    );
    Ranked::new(rank, &one.cgroup, text, (observed, &one.quote)).share(part)
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use crate::account::values::tests::report;
    use holdup_evidence::observed::{Limited, Metric, Quote, SeenCgroup};

    #[test]
    fn memory_that_is_nearly_used_up_comes_before_swap_in_use() {
        let observed = report(&[
            (Metric::MemoryTotalKib, "", 16_000_000.0),
            (Metric::MemoryAvailableKib, "", 320_000.0),
            (Metric::SwapTotalKib, "", 2_000_000.0),
            (Metric::SwapUsedKib, "", 1_000_000.0),
        ]);
        let lines = account(&observed);
        assert!(
            lines[0]
                .text
                .contains("of memory are available (less than 5 % is short)"),
            "{}",
            lines[0].text
        );
        assert!(
            lines[1].text.contains("of swap are used (from 25 % on"),
            "{}",
            lines[1].text
        );
    }

    #[test]
    fn swapping_is_told_by_its_rate() {
        let observed = report(&[
            (Metric::SwapOutKibPerSecond, "", 8472.0),
            (Metric::SwapInKibPerSecond, "", 12.0),
        ]);
        assert_eq!(
            account(&observed)[0].text,
            "up to 8472 KiB/s go to swap, 12 the other way (400 are much)"
        );
    }

    #[test]
    fn what_goes_both_ways_while_nothing_is_free_comes_before_busy_cpus() {
        let look_up = |free: f64| {
            let observed = report(&[
                (Metric::CpuIdlePercent, "", 0.0),
                (Metric::CpuUserPercent, "", 100.0),
                (Metric::SwapOutKibPerSecond, "", 190.0),
                (Metric::SwapInKibPerSecond, "", 210.0),
                (Metric::MemoryFreeKib, "", free),
            ]);
            account(&observed)[0].what.clone()
        };
        assert_eq!(look_up(12_000.0), "swap");
        assert_ne!(look_up(900_000.0), "swap");
    }

    #[test]
    fn the_cgroup_nearest_to_its_limit_is_told() {
        let mut observed = report(&[]);
        let cgroup = |name: &str, used: f64| SeenCgroup {
            whole: None,
            hits: None,
            read_again: None,
            watched: None,
            processes: Vec::new(),
            members: Vec::new(),
            users: Vec::new(),
            paused: false,
            cgroup: name.to_owned(),
            what: Limited::Tasks,
            used,
            limit: 100.0,
            refused: None,
            cpus: None,
            quote: Quote::default(),
        };
        observed.cgroups = vec![cgroup("/a", 12.0), cgroup("/b", 95.0)];
        let lines = account(&observed);
        assert_eq!(
            lines[0].text,
            "cgroup /b has 95 of at most 100 tasks, 95 % (from 90 % on it is much)"
        );
        assert_eq!(lines.len(), 1);
    }
}
