//! Memory comes back from swap, again and again.

use crate::rules::figures;
use crate::rules::figures::{Intervals, mean, often, span};
use crate::rules::{Extend, Need, Rule, RuleId, Run, Waits, fires, memory, paging, say};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Pages a second that come back from which the machine pages: a disk that turns does about as many reads in all.
pub(crate) const PAGES: f64 = 100.0;

/// KiB of as many pages of the smallest size there is.
pub(crate) const KIB: f64 = 4.0 * PAGES;

/// Percent of an interval with a request in flight from which another disk is worth naming.
const MIN_BUSY_PERCENT: f64 = 30.0;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::SwapThrash, check, seen)
    .about("its memory must be read back from swap")
    .needs(&[Need::SchedulerEvents, Need::KernelStacks])
    .causes(&[Cause::MemSwapin])
    .explains(&[RuleId::DiskBusy, RuleId::MemoryShort]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let main = waits.main();
    let who = say::who(&main.asker.name);
    let limit = memory::limit_reached(run);
    let why = match &limit {
        Some(limit) => format!("its cgroup may use {}", say::bytes(limit.bytes)),
        None => "there is not enough memory for all that runs".to_owned(),
    };
    let from = say::name_or(&main.resource.name, "swap").to_owned();
    let title = format!("{who} waits for its memory to be read back, {from}: {why}");
    let counted = run.facts.cgroup.memory.memory_again.filter(|_| limit.is_some());
    let mut finding = RULE
        .finding(Severity::Warning, title, waits)
        .and_if(memory::came_back(counted, "of memory came back from swap"))
        .and_if(say::kernel_top(waits));
    finding = match &limit {
        Some(limit) => limit.tell(finding),
        None => finding.remedy(
            Remedy::safe(
                "find the processes that use the memory, and give this program more or the others less",
            )
            .with_command("ps -eo pid,rss,comm --sort=-rss"),
        ),
    };
    fires(
        finding
            .remedy(Remedy::safe("reduce its memory: smaller caches, fewer workers"))
            .remedy(Remedy::pointless(
                "a faster disk for its files: it waits for its own memory",
            )),
    )
}

/// By figures: pages come back from swap all the time.
fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let came_back = [
        (Metric::SwapInKibPerSecond, KIB),
        (Metric::SwapInPagesPerSecond, PAGES),
    ];
    let told_by = came_back.into_iter().flat_map(|(metric, from)| {
        let series = figures::of(observed, metric);
        series.map(move |series| (series, from))
    });
    let counted: Vec<(Intervals<'_>, f64)> = told_by.collect();
    let disks: Vec<(Intervals<'_>, &str)> = figures::of(observed, Metric::DiskReadsPerSecond)
        .filter_map(|disk| Some((disk, paging::swap_on(run.facts, disk.of())?)))
        .collect();
    let pages = |series: &Intervals<'_>, from: f64| often(series.from(from).len(), series.count());
    if let Some((series, _)) = counted.iter().find(|(series, from)| pages(series, *from)) {
        return fires(seen_in(run, series, None));
    }
    if let Some((disk, swap)) = disks.iter().find(|(disk, _)| pages(disk, PAGES)) {
        return fires(seen_in(run, disk, Some(swap)));
    }
    if let Some((series, _)) = counted.first() {
        let most = counted
            .iter()
            .map(|(series, _)| series.most())
            .fold(0.0, f64::max);
        let unit = unit(series.series.metric);
        let intervals = say::several(series.count() as u64, "interval");
        return Verdict::Clear(format!(
            "at most {most:.0} {unit} came back from swap in {intervals}"
        ));
    }
    if let Some((disk, swap)) = disks.first() {
        let (name, most) = (disk.of(), disk.most());
        return Verdict::Clear(format!("at most {most:.0} reads/s from {name}, which has {swap}"));
    }
    let what = "whether memory comes back from swap: `vmstat 1 5` (si, so), `sar -W`, or swapon's list beside an iostat log";
    Verdict::CannotTell(figures::missing(observed, Metric::SwapInKibPerSecond, what))
}

fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::SwapInKibPerSecond | Metric::SwapOutKibPerSecond => "KiB/s",
        Metric::SwapInPagesPerSecond | Metric::SwapOutPagesPerSecond => "pages/s",
        _ => "reads/s",
    }
}

/// The finding from a rate at which pages come back, of the machine or of its swap disk.
fn seen_in(run: &Run<'_>, rate: &Intervals<'_>, swap: Option<&str>) -> Finding {
    let (unit, rates) = (unit(rate.series.metric), span(&rate.values(), 0));
    let from = match swap {
        Some(_) => format!("{rates} {unit} from swap disk {}", rate.of()),
        None => format!("{rates} {unit} come back from swap"),
    };
    let title = format!("Memory is short and the machine pages: {from}");
    let first = match swap {
        Some(swap) => {
            let disk = rate.beside(Metric::DiskUtilPercent).unwrap_or(*rate);
            let mut evidence = paging::disk(&disk);
            evidence.text.push_str(&format!("; {swap} on it is a swap area"));
            evidence
        }
        None => {
            let out = match rate.series.metric {
                Metric::SwapInKibPerSecond => Metric::SwapOutKibPerSecond,
                _ => Metric::SwapOutPagesPerSecond,
            };
            let out = rate
                .other(out, "")
                .map(|out| format!(", {} go out", span(&out.values(), 0)));
            rate.evidence(format!("{rates} {unit} come in{}", out.unwrap_or_default()))
        }
    };
    let resource = Resource {
        kind: ResourceKind::Device,
        name: swap.unwrap_or("swap").to_owned(),
        ..Resource::default()
    };
    let mut finding =
        Finding::without_duration(RULE.id.id(), Severity::Warning, title, Cause::MemSwapin, first)
            .about(resource, Asker::default())
            .and_if(state(run, rate))
            .and_if(iowait(rate));
    let others = figures::of(rate.observed, Metric::DiskUtilPercent).filter(|disk| {
        let own = swap.is_some() && disk.of() == rate.of();
        !own && disk.series.source == rate.series.source && disk.most() >= MIN_BUSY_PERCENT
    });
    for disk in others.take(2) {
        finding = finding.and(paging::disk(&disk));
    }
    if let Some(faults) = figures::leader(rate.observed, Metric::MajorFaultsPerSecond)
        && !faults.of().is_empty()
        && mean(&faults.values()) >= 1.0
    {
        let text = format!(
            "{} waits for the most pages: {} major faults/s",
            faults.of(),
            span(&faults.values(), 0)
        );
        finding = finding.and(faults.evidence(text));
    }
    finding
        .remedy(
            Remedy::safe(
                "find the processes that use the memory; add memory to the machine, or reduce their use",
            )
            .with_command("ps -eo pid,rss,comm --sort=-rss | head"),
        )
        .remedy(Remedy::changing(
            "limit or stop unneeded programs",
            "their users lose them",
        ))
        .remedy(Remedy::pointless(
            "more swap: it only delays the shortage, and everything is slow until then",
        ))
}

/// How much swap is used.
fn state(run: &Run<'_>, rate: &Intervals<'_>) -> Option<Evidence> {
    let used = figures::leader(rate.observed, Metric::SwapUsedKib).filter(|used| used.most() >= 1.0)?;
    let size: u64 = run
        .facts
        .swaps
        .iter()
        .map(|swap| swap.size)
        .fold(0, u64::saturating_add);
    let of = if size > 0 {
        format!(" of {}", say::bytes(size))
    } else {
        String::new()
    };
    let most = say::bytes((used.most() * 1024.0) as u64);
    Some(used.evidence(format!("up to {most}{of} of swap are used")))
}

fn iowait(rate: &Intervals<'_>) -> Option<Evidence> {
    let waits = rate.other(Metric::CpuIowaitPercent, "")?;
    Some(waits.evidence(format!("the CPU is {} % in iowait", span(&waits.values(), 0))))
}
