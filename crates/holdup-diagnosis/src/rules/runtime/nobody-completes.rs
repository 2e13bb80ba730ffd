//! Threads stand where they need another thread of the process: one that finishes a task, opens a latch, or takes from a full queue.

use crate::rules::{Rule, RuleId, Run, Waits, beside, duration, java_waits as java, say};
use holdup_evidence::Cause;
use holdup_knowledge::handlers::has_request;
use holdup_model::attributed::{AttributedWait, Awaits};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::{BTreeMap, BTreeSet};

/// Threads that stand for a task or a latch in one place, from which somebody lacks it: one alone may be the program's first, which waits for
/// its end.
const MIN_THREADS: usize = 2;

/// The method in which a program begins.
const MAIN: &str = "main";

/// Other threads that are reported.
const MAX_OTHERS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::NobodyCompletes, check)
    .about("threads wait for what another thread of the process does not do")
    .causes(&[Cause::LockFutex])
    .from(0.0)
    .explains(&[RuleId::WaitUncategorised])
    .intermediate();

fn check(run: &Run<'_>) -> Verdict {
    let needs_other = |wait: &AttributedWait| {
        matches!(
            java::awaits(wait),
            Some(Awaits::Task | Awaits::Room | Awaits::Signal)
        )
    };
    let all = run.waits(|wait| wait.cause == Cause::LockFutex && needs_other(wait));
    let standing = all
        .as_ref()
        .and_then(|all| all.only(|wait| java::stands(run, wait)));
    let groups = standing.map_or_else(Vec::new, |standing| {
        standing.split(|wait| {
            let asker = &wait.asker;
            (asker.name.pid, wait.resource.name.clone(), asker.frame.clone())
        })
    });
    let enough = |group: &&Waits<'_>| match java::awaits(group.main()) {
        Some(Awaits::Room) => true,
        Some(Awaits::Task) if java::threads(group) >= MIN_THREADS => true,
        awaits => {
            // What stands in a client library for whatever comes next rests, unless somebody waits for this thread in turn.
            let asked = || awaits == Some(Awaits::Task) || has_request(&group.main().asker.stack);
            let asks = || asked() && beside::asks_for(run, group).is_some();
            !of_main(group) && (!only_others(run, group).is_empty() || asks())
        }
    };
    let findings: Vec<Finding> = groups
        .iter()
        .filter(enough)
        .map(|group| finding(run, group))
        .collect();
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    let most = groups.iter().map(java::threads).max().unwrap_or(0);
    Verdict::Clear(format!(
        "at most {} stood in one place for a result, a latch or room in a queue",
        say::several(most as u64, "thread")
    ))
}

/// Whether the program's first function waits, most likely for the end of all that it has begun.
fn of_main(group: &Waits<'_>) -> bool {
    let frame = group.main().asker.frame.as_deref().unwrap_or_default();
    frame.rsplit('.').next() == Some(MAIN)
}

/// The other threads of the process that wait for something outside of it, if they all do so in one place.
fn only_others<'a>(run: &'a Run<'_>, group: &Waits<'_>) -> Vec<&'a AttributedWait> {
    let own: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let mut outside = beside::outside(run, group.main().asker.name.pid);
    outside.retain(|wait| !own.contains(&wait.asker.name.tid));
    let elsewhere = |wait: &&AttributedWait| java::stands_in(wait) != java::stands_in(outside[0]);
    match outside.iter().any(elsewhere) {
        true => Vec::new(),
        false => outside,
    }
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let threads = java::threads(group);
    let who = say::name_or(&main.asker.name.process, "the program");
    let place = java::askers(group, 1)
        .pop()
        .map_or_else(String::new, |place| format!(" in {place}"));
    let by_library = beside::asks_for_words(run, group);
    let outcome = match (only_others(run, group).as_slice(), java::awaits(main)) {
        _ if by_library.is_some() => by_library.unwrap_or_default(),
        ([other], _) => format!(
            "; the only other thread that waits for something else is {}",
            java::doing(other)
        ),
        ([other, ..], _) => format!("; others wait for something else, as {} does", java::doing(other)),
        ([], Some(Awaits::Room)) => ": no thread takes from it".to_owned(),
        ([], _) => String::new(),
    };
    let title = Title::from(format!(
        "{} of {who} {} for {}{place}, for at least {}",
        say::several(threads as u64, "thread"),
        if threads == 1 { "waits" } else { "wait" },
        main.resource.name,
        duration(group.longest().max)
    ))
    .with(outcome);
    let others = others(run, group);
    let at_work = !others.is_empty();
    let text = match at_work {
        true => format!("other threads of the process that wait for something: {}", others.join("; ")),
        false => "no other thread of the process waits for anything but work: whoever was to do it has ended, or rests"
            .to_owned(),
    };
    let remedy = match (java::awaits(main), at_work) {
        (_, true) => "look at what the other threads wait for, and set a time limit for this wait",
        (Some(Awaits::Room), false) => {
            "find the thread that takes from the queue: look in the log for an exception that ended it"
        }
        (_, false) => {
            "find the thread that was to do it: look in the log for an exception that ended it, and count down or complete in `finally`"
        }
    };
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(text, "Java frames of the waits"))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(remedy))
        .remedy(Remedy::pointless(
            "more threads: each one waits in the same place",
        ))
}

/// What the other threads of the process stand in, the longest first.
fn others(run: &Run<'_>, group: &Waits<'_>) -> Vec<String> {
    let pid = group.main().asker.name.pid;
    let own: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let mut most: BTreeMap<u32, &AttributedWait> = BTreeMap::new();
    for wait in &run.attributed.waits {
        let name = &wait.asker.name;
        let waits = wait.cause != Cause::Idle && java::waits_for_lock_too(wait.cause);
        if name.pid != pid || own.contains(&name.tid) || !waits || !java::stands(run, wait) {
            continue;
        }
        most.entry(name.tid).or_insert(wait);
    }
    let mut most: Vec<&AttributedWait> = most.into_values().collect();
    // Who waits for a result says nothing of who owes it.
    most.sort_by_key(|wait| (java::awaits(wait).is_some(), std::cmp::Reverse(wait.ns)));
    most.into_iter().take(MAX_OTHERS).map(java::doing).collect()
}
