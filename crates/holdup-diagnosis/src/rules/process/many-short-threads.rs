//! Starting and ending threads costs more than what they do.

use super::super::log_times::{covered, of_source, quote};
use crate::rules::{MATTERS, Need, Rule, RuleId, Run, Waits, duration, fires, percent, say, short_lives};
use holdup_evidence::observed::{Metric, Series, Span, SpanKind};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::{AttributedWait, ThreadLedger};
use holdup_model::churn::{Births, Born, Churn};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::ManyShortThreads, check, seen)
    .about("many short-lived threads are started")
    .needs(&[Need::SchedulerEvents, Need::CpuSamples])
    .causes(&[Cause::CpuKernel])
    .from(0.0)
    .explains(&[RuleId::CpuBound]);

/// Threads of one process from which they are many.
const MIN_THREADS: u64 = 200;

/// How long a thread that hardly does anything runs and waits, without queueing for a CPU, in nanoseconds. Starting and
/// ending one takes 20 to 60 µs.
const MAX_SHORT_RUN_NS: Ns = 1_000_000;

/// Of what runs already: threads that ended within a second, from which they are not a pool's that is being filled or emptied,
const MIN_LIVE_THREADS: u64 = 100;

/// and how long one lives that is not kept to be used again, in nanoseconds: pools keep idle threads for seconds and more.
const MAX_LIFETIME_NS: Ns = 1_000_000_000;

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    if let Some(churn) = short_lives::of_threads(run) {
        return live(run, waits, churn);
    }
    let threads = short_threads(&run.attributed.threads);
    let most = threads.iter().max_by_key(|(_, (count, _))| *count);
    let (count, of) = most.map_or((0, 0), |(pid, (count, _))| (*count, *pid));
    let making = waits.only(|wait| wait.asker.name.pid == of && makes(wait));
    let cost = making.as_ref().map_or(0, Waits::cost);
    let making =
        making.filter(|making| count >= MIN_THREADS && run.matters_without_queueing(making.cost(), MATTERS));
    let (Some(making), Some((_, (count, lived)))) = (making, most) else {
        return Verdict::Clear(format!(
            "{} that did almost nothing, {} of the elapsed time in the calls that start and end them",
            say::several(count, "thread"),
            percent(run.share(cost))
        ));
    };
    let who = say::name_or(&making.main().asker.name.process, "The program").to_owned();
    let title = format!("{who} starts {count} threads that do almost nothing");
    let text = format!(
        "each lives {} without queueing; starting and ending them takes {} of the kernel time of the program",
        duration(lived / count.max(&1)),
        percent(run.share_of_own(making.cost()))
    );
    fires(
        RULE.finding(Severity::Warning, title, &making)
            .and(Evidence::new(
                text,
                "process and thread starts and exits, CPU samples",
            ))
            .confidence(Confidence::Strong)
            .remedy(Remedy::safe(
                "use a thread pool instead of one thread for each piece of work",
            ))
            .remedy(Remedy::safe("give each thread more work at once")),
    )
}

/// What runs already: what making and ending threads costs, however long each of them lives.
fn live(run: &Run<'_>, waits: &Waits<'_>, churn: &Churn) -> Verdict {
    let mut processes: BTreeMap<u32, (u64, &Births)> = BTreeMap::new();
    let short = |one: &&Births| one.what == Born::Thread && one.p50 < MAX_LIFETIME_NS && one.ended > 0;
    for one in churn.made.iter().filter(short) {
        processes.entry(one.by.name.pid).or_insert((0, one)).0 += one.ended;
    }
    let most = processes.iter().max_by_key(|(_, (ended, _))| *ended);
    let (pid, ended) = most.map_or((0, 0), |(pid, (ended, _))| (*pid, *ended));
    let making = waits.only(|wait| wait.asker.name.pid == pid && makes(wait));
    let cost = making.as_ref().map_or(0, Waits::cost);
    let making = making.filter(|_| ended >= MIN_LIVE_THREADS && run.matters_without_queueing(cost, MATTERS));
    let (Some(making), Some((_, (_, by)))) = (making, most) else {
        return Verdict::Clear(format!(
            "{} ended within a second; the calls that start and end them took {} of the time",
            say::several(ended, "thread"),
            percent(run.share_of_own(cost))
        ));
    };
    let rate = churn.per_second(ended);
    let who = say::name_or(&by.by.name.process, "The program").to_owned();
    let title = format!(
        "{who} starts {rate:.0} threads a second: starting and ending them takes {} of its time",
        percent(run.share_of_own(cost))
    );
    let lived = format!(
        "{} started and ended, median lifetime {}",
        say::several(ended, "thread"),
        duration(by.p50)
    );
    let finding = short_lives::finding(&RULE, title, &making, by, lived, "clone").remedy(Remedy::safe(
        "use a thread pool instead of one thread for each piece of work",
    ));
    fires(finding)
}

/// Of a log, which tells no cost: threads from which they are many,
const MIN_LOGGED_THREADS: u64 = 100;

/// how many a second, on the mean: a million a day are 11.6, and fewer than one a second costs nothing that matters,
const MIN_LOGGED_PER_SECOND: f64 = 1.0;

/// and how long one lives that is not kept to be used again, in milliseconds: a pool keeps its threads for a minute.
const MAX_LOGGED_LIFETIME_MS: f64 = 1_000.0;

/// A JVM's log of its threads.
fn seen(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let Some((lives, count)) = observed
        .of(Metric::ThreadLifeMs)
        .map(|lives| (lives, short(lives)))
        .max_by_key(|(_, count)| *count)
    else {
        return Verdict::CannotTell(
            "whether threads started and ended: a log with `-Xlog:os+thread`".to_owned(),
        );
    };
    let log = covered(observed, SpanKind::JvmLogCovers, lives.source);
    let rate = count as f64 / (log as f64 / 1e9).max(1.0);
    let step = of_source(observed, SpanKind::StepWithThreads, lives.source).next();
    let many = count >= MIN_LOGGED_THREADS && rate >= MIN_LOGGED_PER_SECOND;
    if !many && (step.is_none() || count == 0) {
        return Verdict::Clear(format!(
            "{} lived for less than a second in {} of log",
            say::several(count, "thread"),
            duration(log)
        ));
    }
    let median = median(lives);
    let first = lives
        .points
        .iter()
        .find(|point| point.value <= MAX_LOGGED_LIFETIME_MS);
    let place = first.map_or_else(Default::default, |point| point.quote.clone());
    let title = match (many, step) {
        (false, Some(step)) => format!("{} started and ended within {}", threads(step), duration(step.ns)),
        _ => format!("A JVM starts {count} threads that end within a second, {rate:.1} a second"),
    };
    let lived = match median {
        0 => "below the resolution of the log".to_owned(),
        median => duration(median),
    };
    let text = format!(
        "{} started and ended, median lifetime {lived}",
        say::several(count, "thread")
    );
    let severity = if many { Severity::Warning } else { Severity::Note };
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        severity,
        title,
        Cause::CpuKernel,
        quote(observed, text, &place),
    );
    if let Some(step) = step {
        let text = format!(
            "within {} of {}: {}",
            duration(step.ns),
            step.thread.as_deref().unwrap_or("a thread"),
            step.name
        );
        finding = finding.and(quote(observed, text, &step.quote));
    }
    finding = finding.and(quote(
        observed,
        "the log does not show what starts them, nor their cost",
        &place,
    ));
    fires(
        finding
            .confidence(Confidence::Suspect)
            .remedy(Remedy::safe(
                "find out what starts them: a profile of thread starts of the JVM, or of `clone3`, has the \
                 stack",
            ))
            .remedy(Remedy::safe(
                "use a thread pool; HttpsURLConnection starts a thread after each TLS handshake, so reuse \
                 its connections",
            )),
    )
}

/// `1 thread` of a step.
fn threads(step: &Span) -> String {
    let count = step.name.split(' ').next().and_then(|word| word.parse().ok());
    match count.unwrap_or(0) {
        1 => "1 thread was".to_owned(),
        many => format!("{many} threads were"),
    }
}

/// How many of the threads lived for less than a second, as far as their lives were kept one by one.
fn short(lives: &Series) -> u64 {
    let short = lives
        .points
        .iter()
        .filter(|point| point.value <= MAX_LOGGED_LIFETIME_MS)
        .count() as u64;
    let kept = lives.points.len() as u64;
    short.saturating_mul(lives.count).checked_div(kept).unwrap_or(0)
}

/// Of those.
fn median(lives: &Series) -> Ns {
    let mut short: Vec<f64> = lives
        .points
        .iter()
        .map(|point| point.value)
        .filter(|value| *value <= MAX_LOGGED_LIFETIME_MS)
        .collect();
    short.sort_by(f64::total_cmp);
    short
        .get(short.len() / 2)
        .map_or(0, |ms| (ms.max(0.0) * 1e6) as Ns)
}

fn makes(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::ThreadLife)
}

/// How many short threads each process had, and how long they lived together. Threads that the report lists together
/// have the process's id and no own.
fn short_threads(threads: &[ThreadLedger]) -> BTreeMap<u32, (u64, Ns)> {
    let mut processes: BTreeMap<u32, (u64, Ns)> = BTreeMap::new();
    for thread in threads
        .iter()
        .filter(|thread| thread.name.tid != thread.name.pid && thread.name.pid != 0)
    {
        let queued = thread
            .causes
            .get(&Cause::SchedRunqueue)
            .map_or(0, |tally| tally.ns);
        let lived = thread.wall.saturating_sub(queued);
        if lived / u64::from(thread.threads.max(1)) <= MAX_SHORT_RUN_NS {
            let (count, all) = processes.entry(thread.name.pid).or_default();
            *count += u64::from(thread.threads);
            *all = all.saturating_add(lived);
        }
    }
    processes
}
