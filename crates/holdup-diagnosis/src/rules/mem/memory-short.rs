//! Memory is used up: little is available, and what is used is partly in swap.

use crate::rules::levels::Level;
use crate::rules::{Extend, Generality, Rule, RuleId, Run, fires, levels, say};
use holdup_evidence::observed::{Metric, Point};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::MemoryShort, check)
    .about("little memory is available")
    .causes(&[Cause::MemSwapin, Cause::MemReclaim])
    .generality(Generality::General)
    .explains(&[RuleId::LoadIsNotCpu, RuleId::TasksStallForMemory]);

/// Share of memory (0..1) that is available, below which every further wish is granted by taking from others: the kernel
/// itself wants one or two hundredths free, and the rest is program code that is in use.
pub(crate) const LOW: f64 = 0.05;

/// The same where a tenth of memory has been pushed out to swap already.
const MAX_AVAILABLE_SHARE_WITH_SWAP: f64 = 0.10;
const MIN_SWAPPED_SHARE: f64 = 0.10;

/// Share of the swap from which its use is worth a note: a few idle programs fill less.
pub(crate) const SWAP_IN_USE: f64 = 0.25;

/// The same where the kernel's own thread that frees memory takes so much of a CPU, per cent: with room it sleeps.
const MAX_AVAILABLE_SHARE_WITH_RECLAIM: f64 = 0.10;
const MIN_RECLAIM_PERCENT: f64 = 20.0;
const RECLAIMER: &str = "kswapd";

/// Share of the swap from which it is full: the kernel keeps single pages back.
const FULL_SWAP_SHARE: f64 = 0.999;

/// Percent of memory of one process from which it is the one to ask.
const MIN_PROCESS_PERCENT: f64 = 30.0;

/// Percent of a CPU's time from which its waiting for disks is worth a word.
const MIN_IOWAIT_PERCENT: f64 = 20.0;

/// What one report says of memory, KiB.
#[derive(Debug, Clone, Copy)]
struct Memory<'a> {
    level: Level<'a>,
    total: f64,
    available: f64,
    swap_used: f64,
}

fn memory(level: Level<'_>) -> Option<Memory<'_>> {
    let value = |metric| level.value(metric);
    let total = value(Metric::MemoryTotalKib).filter(|total| *total > 0.0)?;
    // Before Linux 3.14 nothing says what is available: at most what is free and what holds files.
    let available = value(Metric::MemoryAvailableKib).or_else(|| {
        let others = [Metric::MemoryCachedKib, Metric::MemoryBuffersKib];
        let others: f64 = others.into_iter().filter_map(value).sum();
        Some(value(Metric::MemoryFreeKib)? + others)
    })?;
    Some(Memory {
        level,
        total,
        available: available.min(total),
        swap_used: value(Metric::SwapUsedKib).unwrap_or(0.0),
    })
}

impl Memory<'_> {
    fn share(&self) -> f64 {
        self.available / self.total
    }

    /// Whether nothing more can be pushed out.
    fn swap_is_full(&self) -> bool {
        let total = self.level.value(Metric::SwapTotalKib).unwrap_or(0.0);
        total > 0.0 && self.swap_used >= FULL_SWAP_SHARE * total
    }

    fn is_short(&self) -> bool {
        self.share() < LOW
            || (self.share() < MAX_AVAILABLE_SHARE_WITH_SWAP
                && self.swap_used >= MIN_SWAPPED_SHARE * self.total)
            || (self.share() < MAX_AVAILABLE_SHARE_WITH_RECLAIM && self.reclaimer().is_some())
    }

    /// The kernel's thread that frees memory, where it is busy with that.
    fn reclaimer(&self) -> Option<(&str, &Point)> {
        let busy = self.level.named(Metric::ProcessCpuPercent, RECLAIMER);
        busy.filter(|(_, point)| point.value >= MIN_RECLAIM_PERCENT)
    }
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let all: Vec<Memory<'_>> = levels::with(observed, Metric::MemoryTotalKib)
        .filter_map(memory)
        .collect();
    let short = all.iter().filter(|memory| memory.is_short());
    if let Some(worst) = short.min_by(|a, b| a.share().total_cmp(&b.share())) {
        return fires(finding(worst));
    }
    if let Some(found) = swap_in_use(observed) {
        return fires(found);
    }
    match all.iter().min_by(|a, b| a.share().total_cmp(&b.share())) {
        Some(least) => Verdict::Clear(format!(
            "{} of {} are available, {}",
            kib(least.available),
            kib(least.total),
            say::percent(least.share())
        )),
        None => Verdict::CannotTell("how much memory is available: `free`, /proc/meminfo or `top -b`".into()),
    }
}

fn kib(amount: f64) -> String {
    say::bytes((amount.max(0.0) * 1024.0) as u64)
}

fn finding(memory: &Memory<'_>) -> Finding {
    let level = memory.level;
    let hog = level
        .most(Metric::ProcessMemoryPercent)
        .filter(|(_, point)| point.value >= MIN_PROCESS_PERCENT);
    let mut title = "Memory is short: ".to_owned();
    if let Some((name, point)) = hog {
        title += &format!("{name} holds {:.1} % of it, ", point.value);
    }
    title += &match memory.swap_used > 0.0 {
        true if memory.swap_is_full() => format!("all {} of swap are used", kib(memory.swap_used)),
        true => format!("{} is in swap", kib(memory.swap_used)),
        false => format!("{} of {} are available", kib(memory.available), kib(memory.total)),
    };
    if let Some(iowait) = level
        .value(Metric::CpuIowaitPercent)
        .filter(|share| *share >= MIN_IOWAIT_PERCENT)
    {
        title += &format!(", and the CPU waits for a disk {iowait:.1} % of the time");
    }
    let reclaims = memory.reclaimer().map(|(name, point)| {
        title += &format!(", and {name} takes {:.1} % of a CPU to free some", point.value);
        let text = format!(
            "{name} is the kernel's thread that frees memory: what it takes away is read again from the disk"
        );
        level.evidence(text, point)
    });
    let text = format!(
        "{} of {} are available, {}",
        kib(memory.available),
        kib(memory.total),
        say::percent(memory.share())
    );
    let place = |metric| level.point(metric);
    let first = match place(Metric::MemoryAvailableKib).or_else(|| place(Metric::MemoryTotalKib)) {
        Some(point) => level.evidence(text, point),
        None => Evidence::new(text, "memory"),
    };
    let swap = place(Metric::SwapUsedKib).map(|point| {
        let of = place(Metric::SwapTotalKib).map(|total| format!(" of {}", kib(total.value)));
        level.evidence(
            format!(
                "{}{} of swap are in use",
                kib(point.value),
                of.unwrap_or_default()
            ),
            point,
        )
    });
    let held = hog.map(|(name, point)| {
        level.evidence(
            format!("{name} holds {:.1} % of the machine's memory", point.value),
            point,
        )
    });
    let cause = if memory.swap_used > 0.0 {
        Cause::MemSwapin
    } else {
        Cause::MemReclaim
    };
    let resource = Resource {
        kind: ResourceKind::Process,
        name: hog.map_or_else(|| "memory".to_owned(), |(name, _)| name.to_owned()),
        ..Resource::default()
    };
    Finding::without_duration(RULE.id.id(), Severity::Warning, title, cause, first)
        .and_if(held)
        .and_if(reclaims)
        .and_if(swap)
        .and_if(waits(level))
        .about(resource, Asker::default())
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe(match hog {
                Some((name, _)) => format!(
                    "reduce the memory of {name}: smaller caches, fewer workers, a \
                 limit; or fix its leak if it only grows"
                ),
                None => "find the processes that use the memory, and reduce it".to_owned(),
            })
            .with_command("ps -eo pid,rss,vsz,comm --sort=-rss | head"),
        )
        .remedy(Remedy::safe(
            "add memory to the machine, or move a program to another machine",
        ))
        .remedy(Remedy::pointless("a faster CPU: the programs wait for memory"))
}

/// What the CPU did meanwhile, where it waited for disks.
fn waits(level: Level<'_>) -> Option<Evidence> {
    let iowait = level
        .point(Metric::CpuIowaitPercent)
        .filter(|point| point.value >= MIN_IOWAIT_PERCENT)?;
    let user = level
        .value(Metric::CpuUserPercent)
        .map(|user| format!(" and computes {user:.1} %"));
    let load = level.value(Metric::LoadAverage1);
    let load = load.map(|load| format!(": the load of {load:.2} is tasks that wait, not work"));
    let text = format!(
        "the CPU waits for a disk {:.1} % of the time{}{}",
        iowait.value,
        user.unwrap_or_default(),
        load.unwrap_or_default()
    );
    Some(level.evidence(text, iowait))
}

/// Much of the swap is in use: memory was short at some time, whether it is now or not.
fn swap_in_use(observed: &Observed) -> Option<Finding> {
    let used = levels::with(observed, Metric::SwapUsedKib).filter_map(|level| {
        let used = level.point(Metric::SwapUsedKib)?;
        let total = level.value(Metric::SwapTotalKib).filter(|total| *total > 0.0)?;
        (used.value / total >= SWAP_IN_USE).then_some((level, used, total))
    });
    let (level, used, total) = used.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let text = format!(
        "{} of {} are used, {}",
        kib(used.value),
        kib(total),
        say::percent(used.value / total)
    );
    Some(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Note,
            format!(
                "{} of swap are in use: memory was short at some time",
                kib(used.value)
            ),
            Cause::MemSwapin,
            level.evidence(text, used),
        )
        .confidence(Confidence::Strong)
        .remedy(
            Remedy::safe(
                "check whether pages are still swapped in and out; unused swapped pages cost nothing",
            )
            .with_command("vmstat 1 10"),
        ),
    )
}
