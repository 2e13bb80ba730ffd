//! Tasks of a language runtime queue for a lock, a pool or a semaphore, or for somebody who takes what they send. No thread waits for it.

use crate::rules::{MATTERS, Rule, RuleId, Run, duration, say, tasks};
use holdup_evidence::{Cause, Ns, TaskRuntime};
use holdup_model::attributed::{Asker, TaskHas, TaskHolder, TaskQueue, TaskQueueFor, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_tasks(RuleId::TasksQueueForLock, check)
    .about("tasks of a runtime queue for a lock")
    .causes(&[Cause::LockFutex, Cause::LockMonitor])
    .from(MATTERS);

/// Looks that must have met a queue for its length to be worth a word: of fewer the estimate may be off by all of it.
const MIN_MET: u64 = 3;

/// A holder is named where it was met as that at one in so many of the looks that met the queue, or more often.
const HOLDER_PART: u64 = 2;

/// Share of the time of a program that ran already for which somebody must have waited: in a service that is well, a request waits now and then.
const MOST_OF_THE_TIME: f64 = 0.5;

/// How long one task of such a program must have waited, nanoseconds: what is shorter is how tasks take turns; of a pool or a semaphore, which is
/// made for that, how long people wait for an answer before they complain.
const LONG_NS: Ns = 250_000_000;
const LONG_FOR_POOL_NS: Ns = 1_000_000_000;

fn check(run: &Run<'_>) -> Verdict {
    let looks = run.attributed.task_looks;
    let worth = |queue: &&TaskQueue| match run.attributed.of_threads {
        false => run.matters(queue.covered, MATTERS),
        true => {
            let long = match queue.kind {
                TaskQueueFor::Lock => LONG_NS,
                TaskQueueFor::Pool => LONG_FOR_POOL_NS,
                // Who sends more than somebody takes is held back on purpose: whether that is trouble, the one who takes says.
                TaskQueueFor::Taker => return false,
            };
            queue.longest >= long && queue.covered as f64 >= run.attributed.wall as f64 * MOST_OF_THE_TIME
        }
    };
    let large: Vec<&TaskQueue> = run.attributed.task_queues.iter().filter(worth).collect();
    let findings: Vec<Finding> = large
        .iter()
        .filter(|queue| queue.met >= MIN_MET)
        .map(|queue| finding(run, queue))
        .collect();
    match (findings.is_empty(), large.first()) {
        (false, _) => Verdict::Fires(findings),
        (true, Some(queue)) => Verdict::CannotTell(format!(
            "for how long: {}; {} samples found that, too few for its length",
            main_clause(queue),
            queue.met
        )),
        (true, None) => {
            let longest = run
                .attributed
                .task_queues
                .first()
                .map_or(0, |queue| queue.covered);
            Verdict::Clear(format!(
                "tasks waited for a lock for about {} at most, by {}",
                duration(longest),
                say::several(looks, "sample")
            ))
        }
    }
}

/// Whether it is trouble. Who sends more than somebody takes is held back on purpose, and where that one computes, or nobody knows what he does, more cannot
/// be had from him; where he waits himself, all of them wait for the same.
fn severity(queue: &TaskQueue) -> Severity {
    let waits = |holder: &TaskHolder| !holder.cause.on_cpu() && !matches!(holder.cause, Cause::Unknown | Cause::SchedRunqueue);
    match queue.kind {
        TaskQueueFor::Taker if !main_holder(queue).is_some_and(waits) => Severity::Note,
        TaskQueueFor::Lock | TaskQueueFor::Pool | TaskQueueFor::Taker => Severity::Warning,
    }
}

/// Who has it often enough to be named.
fn main_holder(queue: &TaskQueue) -> Option<&TaskHolder> {
    let first = queue.holders.first()?;
    (first.looks.saturating_mul(HOLDER_PART) >= queue.met).then_some(first)
}

fn does(holder: &TaskHolder) -> String {
    match holder.resource.name.as_str() {
        "" => holder.cause.phrase().to_owned(),
        // That it is a timer says less than the cause.
        _ if holder.cause == Cause::TimerSleep => holder.cause.phrase().to_owned(),
        what => format!("waiting for {what}"),
    }
}

/// What a holder does with what others wait for: `has it`.
fn has(kind: TaskQueueFor, has: TaskHas, past: bool) -> String {
    let it = match kind {
        TaskQueueFor::Lock => "it",
        TaskQueueFor::Pool => "one",
        TaskQueueFor::Taker => "there",
    };
    let verb = match (has, past) {
        (TaskHas::Noted, false) => "has",
        (TaskHas::Noted, true) => "had",
        (TaskHas::Taken, false) => "seems to have",
        (TaskHas::Taken, true) => "seemed to have",
        (TaskHas::Uses, false) => "may take from",
        (TaskHas::Uses, true) => "used what leads",
    };
    format!("{verb} {it}")
}

fn outcome(queue: &TaskQueue) -> String {
    let Some(holder) = main_holder(queue) else {
        return String::new();
    };
    let place = match holder.place == queue.place {
        true => "a task in the same place".to_owned(),
        false => say::place(&holder.place),
    };
    let has = has(queue.kind, holder.has, false);
    format!("; {place} {has} meanwhile, {}", does(holder))
}

/// Who waits where for what: `Up to 3 goroutines of shop queue in main.pay (pay.go:9) for a sync.Mutex`.
fn main_clause(queue: &TaskQueue) -> String {
    let process = say::name_or(&queue.process, "a process");
    let (verb, up_to) = match queue.most {
        1 => ("waits", ""),
        _ => ("queue", "Up to "),
    };
    let others = match queue.other_places {
        0 => String::new(),
        more => format!(" and {}", say::several(more, "other place")),
    };
    // Of what is sent the name of the thing says what is waited for only in the runtime's own words.
    let what = match (queue.kind, queue.runtime) {
        (TaskQueueFor::Taker, TaskRuntime::Go) if queue.most == 1 => "somebody to receive what it sends",
        (TaskQueueFor::Taker, TaskRuntime::Go) => "somebody to receive what they send",
        (TaskQueueFor::Taker, _) if queue.resource.name.is_empty() => "room for what they send",
        _ => say::name_or(&queue.resource.name, "a lock"),
    };
    format!(
        "{up_to}{} of {process} {verb} in {}{others} for {what}",
        tasks::several_named(queue.most, queue.runtime),
        say::place(&queue.place),
    )
}

fn finding(run: &Run<'_>, queue: &TaskQueue) -> Finding {
    let title = Title::from(main_clause(queue)).with(outcome(queue));
    let met = Evidence::new(
        format!(
            "{} of {} samples found tasks that wait for it: {} in all, {} at a time at most; together they waited about {}",
            queue.met,
            queue.looks,
            queue.tasks,
            queue.most,
            duration(queue.waited)
        ),
        "samples of the program's own structures while it ran; what lies between two is like the nearer one",
    );
    let asker = Asker {
        name: ThreadName {
            pid: queue.pid,
            tid: queue.pid,
            process: queue.process.clone(),
            thread: queue.process.clone(),
        },
        frame: queue.place.symbol.clone(),
        stack: queue.stack.clone(),
        ..Default::default()
    };
    let lasted = queue.covered.min(run.attributed.elapsed);
    let mut finding = Finding::new(RULE.id.id(), severity(queue), title, queue.cause, lasted, met)
        .about(queue.resource.clone(), asker)
        .confidence(Confidence::Strong);
    for holder in &queue.holders {
        let how = match holder.has {
            TaskHas::Noted => "the program's own structures, read from its memory",
            TaskHas::Taken | TaskHas::Uses => "the program's code and stacks, read from its memory",
        };
        let has = has(queue.kind, holder.has, true);
        let met = format!(
            "{}, {}, {has} at {} of these samples",
            say::place(&holder.place),
            does(holder),
            holder.looks
        );
        finding = finding.and(Evidence::new(met, how));
    }
    if queue.holders.is_empty() {
        finding = finding.and(Evidence::new(
            match queue.kind {
                TaskQueueFor::Taker => "who takes from there is not known: no other task refers to it",
                TaskQueueFor::Lock | TaskQueueFor::Pool => {
                    "who had it is not known: the runtime does not note it"
                }
            },
            "the layout of the runtime's structures",
        ));
    }
    match (queue.kind, main_holder(queue)) {
        (TaskQueueFor::Lock, Some(holder)) => finding.remedy(Remedy::safe(format!(
            "do not wait while holding it: the holder is {}",
            does(holder)
        ))),
        (TaskQueueFor::Lock, None) => {
            finding.remedy(Remedy::safe("hold it for a shorter time, or lock less at once"))
        }
        (TaskQueueFor::Pool, _) => finding.remedy(Remedy::changing(
            "allow more at a time, if what they use can bear it",
            "what they use gets more load",
        )),
        (TaskQueueFor::Taker, _) => finding.remedy(Remedy::safe(
            "let more tasks take from there at a time, or take less time for each thing",
        )),
    }
    .remedy(Remedy::pointless(match queue.kind {
        TaskQueueFor::Taker => "more tasks that send: each one waits in the same queue",
        TaskQueueFor::Lock | TaskQueueFor::Pool => "more tasks or threads: each one waits in the same queue",
    }))
}
