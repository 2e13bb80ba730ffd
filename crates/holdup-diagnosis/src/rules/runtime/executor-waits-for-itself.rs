//! All threads of Python's executors wait for results of tasks that only they could run.

use crate::rules::{MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame, Ns};
use holdup_knowledge::python;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_executors(RuleId::ExecutorWaitsForItself, any, check)
    .about("all threads of an executor wait for results of tasks that only they could run")
    .causes(&[Cause::LockFutex, Cause::TimerSleep])
    .from(MATTERS)
    .explains(&[RuleId::SleepsOnPurpose, RuleId::WorkerPoolExhausted]);

/// Part of the longest of these waits that each of the others lasts at the least: then nearly all of it is of one and the same time.
const MIN_PART: f64 = 0.9;

/// Places that a sentence names.
const MAX_PLACES: usize = 3;

fn is_worker(wait: &AttributedWait) -> bool {
    wait.asker.stack.iter().any(python::is_pools_worker)
}

fn awaits(wait: &AttributedWait) -> bool {
    RULE.causes.contains(&wait.cause) && python::worker_awaits_result(&wait.asker.stack)
}

fn any(run: &Run<'_>) -> bool {
    run.attributed.waits.iter().any(awaits)
}

fn check(run: &Run<'_>) -> Verdict {
    let Some(waits) = run.waits(awaits) else {
        return Verdict::Clear("0 threads of executors wait for results".to_owned());
    };
    let mut longest = 0;
    let mut findings = Vec::new();
    for pool in waits.split(|wait| wait.asker.name.pid) {
        let lasted = by_thread(&pool).into_values().max().unwrap_or_default();
        longest = longest.max(lasted);
        if run.matters(lasted, MATTERS) && nobody_else(run, &pool, lasted) {
            findings.push(finding(run, &pool, lasted));
        }
    }
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => Verdict::Clear(format!(
            "threads of executors waited for results for {} at most, and others were there to run what they wait for",
            duration(longest)
        )),
    }
}

/// For how long each of these threads waited.
fn by_thread(pool: &Waits<'_>) -> BTreeMap<u32, Ns> {
    let mut threads: BTreeMap<u32, Ns> = BTreeMap::new();
    for wait in pool.iter() {
        let sum = threads.entry(wait.asker.name.tid).or_default();
        *sum = sum.saturating_add(wait.ns);
    }
    threads
}

/// Whether nobody was left in the process who could give one of the results: each thread of an executor waits for one, all for about as long, and no
/// processes or event loop run tasks for them.
fn nobody_else(run: &Run<'_>, pool: &Waits<'_>, longest: Ns) -> bool {
    let threads = by_thread(pool);
    let together = threads.values().all(|ns| *ns as f64 >= longest as f64 * MIN_PART);
    let pid = pool.main().asker.name.pid;
    let own = || {
        run.attributed
            .waits
            .iter()
            .filter(|wait| wait.asker.name.pid == pid)
    };
    let workers: BTreeSet<u32> = own()
        .filter(|wait| is_worker(wait))
        .map(|wait| wait.asker.name.tid)
        .collect();
    let by_others = own().any(|wait| {
        let stack = &wait.asker.stack;
        python::runs_event_loop(stack) || stack.iter().any(of_processes)
    });
    together && !by_others && workers.iter().all(|tid| threads.contains_key(tid))
}

/// Whether a frame is of the part of the library that has processes run tasks.
fn of_processes(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    file.ends_with("/concurrent/futures/process.py")
}

fn finding(run: &Run<'_>, pool: &Waits<'_>, lasted: Ns) -> Finding {
    let main = pool.main();
    let count = by_thread(pool).len() as u64;
    let process = say::name_or(&main.asker.name.process, "a process");
    let mut places: Vec<String> = Vec::new();
    for wait in pool.iter() {
        let place = chosen_frame(&wait.asker.stack).map_or_else(|| "an unknown place".to_owned(), say::place);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.truncate(MAX_PLACES);
    let who = match count {
        1 => format!("The only thread of an executor (ThreadPoolExecutor) in {process} waits"),
        2 => format!("Both threads of the executor (ThreadPoolExecutor) in {process} wait"),
        _ => format!("All {count} threads of the executor (ThreadPoolExecutor) in {process} wait"),
    };
    let title = Title::from(format!("{who} in {} for results of tasks", places.join(" and ")))
        .with("; the pool waits for itself: no thread is left to run them");
    let together = Evidence::new(
        format!(
            "{} in Future.result at the same time, for {}",
            say::several(count, "thread"),
            duration(lasted)
        ),
        "the frames of the threads",
    );
    let mut finding = RULE.finding(Severity::Warning, title, pool);
    finding.ns = Some(lasted.min(run.attributed.elapsed));
    finding
        .and(together)
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "give what a task waits for to another executor, or call it in the task itself",
        ))
        .remedy(Remedy::safe(
            "do not wait within a task: submit what follows when the results are there (`add_done_callback`, or from the thread that began all of it)",
        ))
        .remedy(Remedy::pointless(
            "a longer limit of time; more threads only until as many tasks wait at once",
        ))
}
