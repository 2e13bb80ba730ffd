//! Garbage collection stops all threads for much of the time.

use super::super::log_times::{covered, longest, most, quote, share, sum};
use crate::rules::{Extend, HARM_FLOOR, MATTERS, Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_attribution::attribution::collects;
use holdup_evidence::observed::{Metric, Series, SpanKind};
use holdup_evidence::{Cause, Collector, Jvm, Ns, Observed};
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::CollectorStopsThreads, stopped, check)
    .about("garbage collection stops all threads for much of the time")
    .causes(&[Cause::RuntimeGc]);

/// A pause that people notice even if it is the only one: the second from which a pause breaks the flow of thought.
pub(crate) const MIN_NS: Ns = 1_000_000_000;

/// Percent of the heap in use after collections, at the median, from which it has no room to work in: collectors begin to collect
/// all the time below a fifth free.
const MIN_HEAP_PERCENT: f64 = 80.0;

/// Percent of a process's CPU time that its collector uses, from which it is reported.
const MIN_COLLECTOR_PERCENT: u64 = 10;

/// By the threads that were stopped.
fn stopped(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let stopped = waits.only(|wait| wait.resource.detail.collector_behind.is_none());
    let Some(stopped) = stopped.filter(|stopped| run.matters(stopped.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "{}: threads were stopped for a collection for less than {} of the time",
            waits.cause().id(),
            percent(MATTERS)
        ));
    };
    let machines = stopped.split(|wait| wait.asker.name.pid);
    let worth = run.worth(&stopped, machines, MATTERS);
    Verdict::Fires(worth.iter().map(|one| of_machine(run, one)).collect())
}

fn of_machine(run: &Run<'_>, stopped: &Waits<'_>) -> Finding {
    let main = stopped.main();
    let pid = main.asker.name.pid;
    let who = say::name_or(&main.asker.name.process, "a JVM");
    let title = format!(
        "Garbage collection stops the threads of {who} for {} of the time",
        percent(run.share(stopped.cost()))
    );
    let jvm = run.facts.jvms.iter().find(|jvm| jvm.pid == pid);
    let cause = main.resource.detail.gc_cause.as_deref();
    let mut finding = RULE
        .finding(Severity::Warning, title, stopped)
        .and_if(jvm.and_then(counted))
        .and_if(cpu_of_collector(run, pid))
        .and_if(cause.map(|cause| Evidence::new(format!("the last one's cause: {cause}"), FIGURES)));
    finding = match cause {
        Some(cause) if cause.starts_with("System.gc") => finding.remedy(Remedy::changing(
            "find the code that calls System.gc(), or ignore these calls: -XX:+DisableExplicitGC",
            "off-heap memory that only such collections free is then freed later",
        )),
        Some(cause) if cause.starts_with("GCLocker") => finding.remedy(Remedy::safe(
            "copy arrays in native code, or pin them for less time: GetPrimitiveArrayCritical pins them \
             while memory runs out",
        )),
        _ => finding,
    };
    let heap = jvm.and_then(|jvm| jvm.max_heap).map_or_else(
        || "give the heap more room (-Xmx)".to_owned(),
        |bytes| format!("give the heap more room than its {} MB (-Xmx)", bytes >> 20),
    );
    finding
        .remedy(Remedy::changing(
            &heap,
            "the machine must have the memory, or it swaps",
        ))
        .remedy(
            Remedy::safe("print a histogram of the heap")
                .with_command(format!("jcmd {pid} GC.class_histogram")),
        )
        .remedy(Remedy::safe("allocate less: profile allocations"))
}

/// Where a machine's own figures are read.
const FIGURES: &str = "the JVM's performance data";

/// What the machine has counted itself.
fn counted(jvm: &Jvm) -> Option<Evidence> {
    let count = jvm.after.collections.saturating_sub(jvm.before.collections);
    let took = jvm.after.collecting.saturating_sub(jvm.before.collecting);
    let text = format!(
        "it counted {} itself, {} together",
        say::several(count, "collection"),
        duration(took)
    );
    // A collector that works beside the program counts that time, too.
    let of_pauses = !jvm.collector.is_some_and(Collector::is_concurrent);
    (count > 0 && of_pauses).then(|| Evidence::new(text, FIGURES))
}

/// How much of a process's CPU time its collector used, where that is much.
fn cpu_of_collector(run: &Run<'_>, pid: u32) -> Option<Evidence> {
    let rows = run.attributed.waits.iter();
    let on_cpu = rows.filter(|row| row.asker.name.pid == pid && row.cause.on_cpu());
    let (mut own, mut all) = (0u64, 0u64);
    for row in on_cpu {
        all = all.saturating_add(row.ns);
        if collects(&row.asker.name.thread) {
            own = own.saturating_add(row.ns);
        }
    }
    let text = format!(
        "its collecting threads used {} of its CPU time",
        percent(own as f64 / all.max(1) as f64)
    );
    (own.saturating_mul(100) >= all.saturating_mul(MIN_COLLECTOR_PERCENT) && all > 0)
        .then(|| Evidence::new(text, say::SCHEDULER))
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some(series) = most(observed, Metric::GcPauseMs) else {
        return Verdict::CannotTell(
            "for how long the collector stopped the threads: a log with `-Xlog:gc`, or before JDK 9 `-XX:+PrintGCDetails`"
                .to_owned(),
        );
    };
    let (total, log) = (
        sum(series),
        covered(observed, SpanKind::JvmLogCovers, series.source),
    );
    let part = share(total, log);
    let worst = longest(observed, SpanKind::GcPause, series.source);
    let worst = worst.filter(|worst| worst.ns >= MIN_NS || (part >= MATTERS && total >= HARM_FLOOR));
    let Some(worst) = worst else {
        return Verdict::Clear(format!(
            "{} took {} together, {} of the time that the log covers",
            say::several(series.count, "pause"),
            duration(total),
            percent(part)
        ));
    };
    let first = quote(
        observed,
        format!(
            "{}, {} together in {} of log",
            say::several(series.count, "pause"),
            duration(total),
            duration(log)
        ),
        &worst.quote,
    );
    let heaps = observed.of(Metric::HeapAfterGcPercent);
    let heap = heaps
        .filter(|heap| heap.source == series.source && heap.count > 0)
        .max_by_key(|heap| heap.count);
    let left = heap
        .and_then(|heap| Some((heap, median(heap)?)))
        .filter(|(_, left)| *left >= MIN_HEAP_PERCENT);
    let heap_full = left.map_or_else(String::new, |(_, left)| {
        format!(", and {left:.0} % of the heap is in use after it")
    });
    let title = match part >= MATTERS {
        true => format!(
            "Garbage collection stops all threads for {} of the time, for up to {} ({}){heap_full}",
            percent(part.min(1.0)),
            duration(worst.ns),
            worst.name
        ),
        false => format!(
            "Garbage collection stops all threads for {} ({}){heap_full}",
            duration(worst.ns),
            worst.name
        ),
    };
    let full = left.map(|(heap, left)| {
        let text = format!(
            "after a collection {left:.0} % of the heap is still in use (median of {})",
            heap.count
        );
        let place = heap
            .greatest()
            .map_or_else(|| worst.quote.clone(), |point| point.quote.clone());
        quote(observed, text, &place)
    });
    let room = match full {
        Some(_) => Remedy::changing(
            "give the heap more room (-Xmx)",
            "the machine must have the memory, or it swaps",
        ),
        None => Remedy::safe("allocate less: profile allocations if the pauses are many and short"),
    };
    fires(
        Finding::new(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::RuntimeGc,
            total,
            first,
        )
        .and(quote(
            observed,
            format!("the longest, {}: {}", worst.name, duration(worst.ns)),
            &worst.quote,
        ))
        .and_if(full)
        .remedy(room)
        .remedy(Remedy::safe("print a histogram of the heap").with_command("jcmd PID GC.class_histogram")),
    )
}

/// Of the values that were kept.
fn median(series: &Series) -> Option<f64> {
    let mut values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
