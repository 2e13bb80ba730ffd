//! A disk has requests in flight nearly all the time, while the CPU has time to spare.

use crate::rules::figures::{Intervals, mean, often, span};
use crate::rules::{Extend, Rule, RuleId, Run, figures, fires, say, waiters};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// Percent of an interval with a request in flight from which a disk hardly rests. Lower, requests begin to find it idle.
pub(crate) const BUSY: f64 = 80.0;

/// Milliseconds a request, and requests in flight, below both of which a disk that is always busy is merely in use: one
/// reader that never pauses keeps a fast disk so, and gets its answers at once.
const MIN_REQUEST_MS: f64 = 2.0;
const MIN_QUEUE_LENGTH: f64 = 2.0;

/// Percent of CPU time, idle or in iowait, from which the CPU is not what is short.
const MIN_IDLE_CPU_PERCENT: f64 = 30.0;

/// KiB of a request, before requests next to each other are made one, up to which it is small: a few blocks of a file
/// system, as one commit of a journal or one small file is.
const MAX_SMALL_REQUEST_KIB: f64 = 16.0;

/// KiB a second above which a disk is busy with moving data rather than with single requests.
const MIN_THROUGHPUT_KIB_PER_SECOND: f64 = 50_000.0;

/// How far rates may lie apart, as a share of their mean, and be called the same: what rounding and the interval's
/// jitter make of a rate that a limit holds. And intervals from which that is no chance.
const MAX_RATE_SPREAD: f64 = 0.03;
const MIN_EQUAL_INTERVALS: usize = 4;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::DiskBusy, check)
    .about("a disk is always busy, while the CPU is partly idle")
    .causes(&[Cause::DiskRead, Cause::DiskWrite, Cause::DiskSync])
    .explains(&[RuleId::CpuWaitsForDisk, RuleId::DiskAnswersSlowly]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let disks: Vec<Intervals<'_>> = figures::of(observed, Metric::DiskUtilPercent).collect();
    let Some(busiest) = disks.iter().max_by(|a, b| a.most().total_cmp(&b.most())) else {
        return Verdict::CannotTell(missing(observed));
    };
    let short: Vec<&Intervals<'_>> = disks.iter().filter(|disk| is_short(disk)).collect();
    let weight = |disk: &&&Intervals<'_>| mean(&disk.values());
    let Some(most) = short.iter().max_by(|a, b| weight(a).total_cmp(&weight(b))) else {
        let (name, most, count) = (busiest.of(), busiest.most(), busiest.count());
        let intervals = say::several(count as u64, "interval");
        let why = match most >= BUSY && often(busiest.from(BUSY).len(), count) {
            true => format!("{name} is up to {most:.0} % busy, but answers at once: it is in use, not short"),
            false => format!("{name}, the busiest disk, is at most {most:.0} % busy in {intervals}"),
        };
        return Verdict::Clear(why);
    };
    // Of layers that carry the same requests the lowest is the disk.
    let below = short.iter().find(|disk| carries(most, disk));
    let disk = below.unwrap_or(most);
    fires(finding(disk, &disks))
}

/// What would have told, by what there is.
fn missing(observed: &Observed) -> String {
    let of_format = |id: &str| observed.sources.iter().any(|source| source.format == id);
    let what = if observed.of(Metric::DiskUtilPercent).next().is_some() {
        "how busy a disk is"
    } else if of_format("iostat") {
        "how busy a disk is: this iostat log has no `-x`, so device saturation is not known"
    } else if of_format("vmstat") {
        "how busy a disk is: vmstat does not name disks; `iostat -xz 1 5` beside it would tell"
    } else if of_format("sar") {
        "how busy a disk is: this sar log has no `-d`, so device saturation is not known"
    } else {
        "how busy a disk is: `iostat -xz 1 5` or `sar -d`"
    };
    figures::missing(observed, Metric::DiskUtilPercent, what)
}

/// Whether a disk is short: busy often, and requests wait.
pub(crate) fn is_short(disk: &Intervals<'_>) -> bool {
    let reports = disk.from(BUSY);
    if !often(reports.len(), disk.count()) {
        return false;
    }
    let look_up = |metric: Metric| {
        disk.beside(metric)
            .map(|beside| mean(&beside.in_reports(&reports)))
    };
    let waits = [
        Metric::DiskWaitMs,
        Metric::DiskReadWaitMs,
        Metric::DiskWriteWaitMs,
    ];
    let waits = waits.into_iter().filter_map(look_up).reduce(f64::max);
    let queue = look_up(Metric::DiskQueueLength);
    // Where neither is reported the share of time is all there is to go by.
    waits.is_none_or(|ms| ms >= MIN_REQUEST_MS) || queue.is_some_and(|queue| queue >= MIN_QUEUE_LENGTH)
}

/// Whether a name is of a layer above disks, or of a part of one.
pub(crate) fn is_layer(name: &str, disk: &str) -> bool {
    let part = name.strip_prefix(disk);
    let is_part =
        part.is_some_and(|part| part.chars().all(|c| c.is_ascii_digit() || c == 'p') && !part.is_empty());
    is_part
        || ["dm-", "md", "drbd", "bcache"]
            .iter()
            .any(|layer| name.starts_with(layer))
}

/// Whether what is read and written through the one is as good as all that the other does.
fn carries(layer: &Intervals<'_>, disk: &Intervals<'_>) -> bool {
    if !is_layer(layer.of(), disk.of()) || is_layer(disk.of(), layer.of()) {
        return false;
    }
    let moved = |of: &Intervals<'_>| {
        let both = [Metric::DiskReadKibPerSecond, Metric::DiskWriteKibPerSecond];
        let both = both.into_iter().filter_map(|metric| of.beside(metric));
        both.map(|of| of.values().iter().sum::<f64>()).sum::<f64>()
    };
    let same = layer.series.source == disk.series.source;
    let (through, all) = (moved(layer), moved(disk));
    // A tenth, for what other small layers add.
    same && all > 0.0 && through >= 0.9 * all && through <= 1.1 * all
}

/// What a disk did in all its intervals.
struct Work {
    reads: Vec<f64>,
    writes: Vec<f64>,
    merged: Vec<f64>,
    /// KiB of a write as it was asked for.
    asked_kib: Option<f64>,
    /// KiB a second of all.
    kib: f64,
}

fn work(disk: &Intervals<'_>, reports: &[u32]) -> Work {
    let values = |metric| {
        let beside = disk.beside(metric);
        beside
            .map(|beside| beside.in_reports(reports))
            .unwrap_or_default()
    };
    let (writes, merged) = (
        values(Metric::DiskWritesPerSecond),
        values(Metric::DiskWritesMergedPerSecond),
    );
    let (read_kib, written) = (
        mean(&values(Metric::DiskReadKibPerSecond)),
        mean(&values(Metric::DiskWriteKibPerSecond)),
    );
    let asked = mean(&writes) + mean(&merged);
    Work {
        reads: values(Metric::DiskReadsPerSecond),
        asked_kib: (asked > 0.0 && written > 0.0).then(|| written / asked),
        writes,
        merged,
        kib: read_kib + written,
    }
}

fn finding(disk: &Intervals<'_>, disks: &[Intervals<'_>]) -> Finding {
    let reports: Vec<u32> = disk.points().map(|point| point.report).collect();
    let busy = disk.from(BUSY);
    let work = work(disk, &reports);
    let writes_more = mean(&work.writes) > mean(&work.reads);
    let small = writes_more
        && work.asked_kib.is_some_and(|kib| kib <= MAX_SMALL_REQUEST_KIB)
        && work.kib <= MIN_THROUGHPUT_KIB_PER_SECOND;
    let waiters = waiters::of(disk.observed, disk.of());
    let known = waiters.as_ref().map(|waiters| waiters.cause);
    let cause = match (small, writes_more) {
        _ if known.is_some_and(|cause| RULE.causes.contains(&cause)) => known.unwrap_or(Cause::DiskSync),
        (true, _) => Cause::DiskSync,
        (false, true) => Cause::DiskWrite,
        (false, false) => Cause::DiskRead,
    };
    let (name, shares) = (disk.of(), span(&disk.values(), 0));
    let cpu = |metric| {
        disk.other(metric, "")
            .map(|cpu| cpu.in_reports(&reports))
            .unwrap_or_default()
    };
    let (idle, iowait) = (cpu(Metric::CpuIdlePercent), cpu(Metric::CpuIowaitPercent));
    let free = (!idle.is_empty()).then(|| mean(&idle) + mean(&iowait));
    let title = match free {
        Some(free) if free < MIN_IDLE_CPU_PERCENT => format!("{name} is {shares} % busy"),
        Some(_) if mean(&idle) >= mean(&iowait) => format!(
            "{name} is {shares} % busy while the CPU is {} % idle: the disk is short, not the CPU",
            span(&idle, 0)
        ),
        Some(_) => format!(
            "{name} is {shares} % busy while the CPU waits for disks {} % of its time: the disk is short, not the CPU",
            span(&iowait, 0)
        ),
        None => format!("{name} is {shares} % busy"),
    };
    let first = disk.evidence(format!(
        "{name}: {} % busy; above {BUSY:.0} % in {} of {}",
        span(&disk.values(), 1),
        busy.len(),
        say::several(disk.count() as u64, "interval")
    ));
    let mut asker = Asker::default();
    if let Some(waiters) = &waiters {
        asker.name.process.clone_from(&waiters.process);
    }
    let resource = Resource {
        kind: ResourceKind::Device,
        name: name.to_owned(),
        ..Resource::default()
    };
    let finding = Finding::without_duration(RULE.id.id(), Severity::Warning, title, cause, first)
        .about(resource, asker)
        .and_if(waiters.as_ref().map(|waiters| {
            Evidence::new(
                format!("{name} is waited for by {}", waiters.sentence()),
                "the lists of tasks",
            )
        }))
        .and_if(of_cpu(disk, &idle, &iowait))
        .and_if(of_work(disk, &work))
        .and_if(of_queue(disk, &busy))
        .and_if(layers(disk, disks, &reports))
        .and_if((small && waiters.is_none()).then(|| of_habit(disk, &work)))
        .and_if(limit(disk, &busy))
        // What a process writes is of all disks; who waits for this one is of this one.
        .and_if(who(disk, writes_more).filter(|_| waiters.is_none()));
    remedies(finding, small, writes_more)
}

fn of_cpu(disk: &Intervals<'_>, idle: &[f64], iowait: &[f64]) -> Option<Evidence> {
    let cpu = disk.other(Metric::CpuIdlePercent, "")?;
    let waits = match iowait {
        [] => String::new(),
        _ => format!(
            ", and {} % idle with a request to a disk open (iowait)",
            span(iowait, 0)
        ),
    };
    Some(cpu.evidence(format!("the CPU is {} % idle{waits}", span(idle, 0))))
}

fn of_work(disk: &Intervals<'_>, work: &Work) -> Option<Evidence> {
    let name = disk.of();
    let mut parts = Vec::new();
    if mean(&work.reads) >= 1.0 {
        parts.push(format!("{} reads/s", span(&work.reads, 0)));
    }
    if mean(&work.writes) >= 1.0 {
        let merged = match mean(&work.merged) >= 1.0 {
            true => format!(" after merging ({} merged)", span(&work.merged, 0)),
            false => String::new(),
        };
        let each = work.asked_kib.filter(|_| !work.merged.is_empty());
        let each = each
            .map(|kib| format!(", {kib:.1} KiB each before it"))
            .unwrap_or_default();
        parts.push(format!("{} writes/s{merged}{each}", span(&work.writes, 0)));
    }
    if parts.is_empty() {
        let transfers = disk.beside(Metric::DiskTransfersPerSecond)?;
        parts.push(format!("{} requests/s", span(&transfers.values(), 0)));
    }
    Some(disk.evidence(format!("{name}: {}", parts.join("; "))))
}

fn of_queue(disk: &Intervals<'_>, busy: &[u32]) -> Option<Evidence> {
    let at = |metric: Metric| disk.beside(metric).map(|beside| mean(&beside.in_reports(busy)));
    let mut parts = Vec::new();
    if let Some(queue) = at(Metric::DiskQueueLength) {
        parts.push(format!("{queue:.1} requests are in flight at a time"));
    }
    let waits = [
        (Metric::DiskWaitMs, "a request"),
        (Metric::DiskReadWaitMs, "a read"),
        (Metric::DiskWriteWaitMs, "a write"),
    ];
    for (metric, what) in waits {
        if let Some(ms) = at(metric).filter(|ms| *ms > 0.0) {
            parts.push(format!("{ms:.1} ms {what}"));
        }
    }
    (!parts.is_empty()).then(|| disk.evidence(format!("while it is busy: {}", parts.join(", "))))
}

/// What carries the same requests.
fn layers(disk: &Intervals<'_>, disks: &[Intervals<'_>], reports: &[u32]) -> Option<Evidence> {
    let layer = disks.iter().find(|layer| carries(layer, disk))?;
    let work = work(layer, reports);
    let writes_more = mean(&work.writes) > mean(&work.reads);
    let (rates, what) = if writes_more {
        (&work.writes, "writes/s")
    } else {
        (&work.reads, "reads/s")
    };
    let sectors = layer
        .beside(Metric::DiskRequestKib)
        .or_else(|| layer.beside(Metric::DiskWriteRequestKib));
    let each = sectors.map(|size| mean(&size.values())).or(work.asked_kib);
    let each = each.map(|kib| format!(" of {kib:.1} KiB")).unwrap_or_default();
    let verb = if writes_more { "written to" } else { "read from" };
    Some(layer.evidence(format!(
        "the same data is {verb} {} through {}: {} {what}{each} there",
        disk.of(),
        layer.of(),
        span(rates, 0)
    )))
}

fn of_habit(disk: &Intervals<'_>, work: &Work) -> Evidence {
    let kib = work.asked_kib.unwrap_or(0.0);
    disk.evidence(format!(
        "suspected: many synchronous writes (fsync) of {kib:.1} KiB, as of a queue directory, a mail spool \
         or a database log; these figures cannot show that they are synchronous"
    ))
}

/// A rate that is the same in each interval is held by something.
fn limit(disk: &Intervals<'_>, busy: &[u32]) -> Option<Evidence> {
    let rate = |metric| {
        disk.beside(metric)
            .map(|beside| beside.in_reports(busy))
            .unwrap_or_default()
    };
    let (reads, writes) = (
        rate(Metric::DiskReadsPerSecond),
        rate(Metric::DiskWritesPerSecond),
    );
    let merged = rate(Metric::DiskTransfersPerSecond);
    let all: Vec<f64> = match reads.len() == writes.len() && !reads.is_empty() {
        true => reads.iter().zip(&writes).map(|(a, b)| a + b).collect(),
        false => merged,
    };
    let middle = mean(&all);
    let same = all
        .iter()
        .all(|rate| (rate - middle).abs() <= MAX_RATE_SPREAD * middle);
    (all.len() >= MIN_EQUAL_INTERVALS && same && middle >= 1.0).then(|| {
        disk.evidence(format!(
            "suspected: a limit (of a cloud volume, a hypervisor or a cgroup), because each interval has \
             {middle:.0} requests/s"
        ))
    })
}

/// Who reads or writes the most, where pidstat or its like is there.
fn who(disk: &Intervals<'_>, writes: bool) -> Option<Evidence> {
    let (metric, verb) = match writes {
        true => (Metric::ProcessWriteKibPerSecond, "writes"),
        false => (Metric::ProcessReadKibPerSecond, "reads"),
    };
    let leader = figures::leader(disk.observed, metric)?;
    let kib = mean(&leader.values());
    (kib >= 1.0).then(|| leader.evidence(format!("{} {verb} the most: {kib:.0} KiB/s", leader.of())))
}

fn remedies(finding: Finding, small: bool, writes: bool) -> Finding {
    let finding = finding.remedy(
        Remedy::safe(match writes {
            true => "list the processes that write",
            false => "list the processes that read",
        })
        .with_command("pidstat -d 1 5"),
    );
    let finding = match (small, writes) {
        (true, _) => finding
            .remedy(Remedy::changing(
                "use one sync for several changes: group commit, fewer queue files, batches",
                "changes since the last sync are lost in a crash",
            ))
            .remedy(Remedy::changing(
                "put the directory of the small writes on a faster disk, or on tmpfs if its content may be lost",
                "the content of tmpfs is gone after a reboot, and uses memory",
            )),
        (false, true) => finding.remedy(Remedy::safe(
            "write less at once, or spread it: a backup, a dump or a flush of logs can be slowed (ionice, rate limits)",
        )),
        (false, false) => finding.remedy(Remedy::safe(
            "read less: an index, a larger cache, or more memory for the page cache",
        )),
    };
    finding.remedy(Remedy::pointless("more CPUs: they wait for the same disk"))
}
