//! Threads of Java stand where another thread of the process has to notify, signal or complete something, and none did.
//!
//! The problem: to wait for a notification is also how a thread without work waits. The choice: it is said as a note, with who else waits in methods
//! of the same class, because `notify` may wake the wrong one. Where somebody lacks what is waited for, `nobody-completes` says so.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, Waits, duration, java_waits as java, say};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::Cause;
use holdup_model::attributed::{AttributedWait, Awaits};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// The method in which a program begins: it most likely waits for the end of all that it has begun.
const MAIN: &str = "main";

/// Places of others that a sentence names.
const MAX_PLACES: usize = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::JavaThreadsUnsignalled, check)
    .about("threads of Java wait for a notification, a signal or a result that does not come")
    .causes(&[Cause::LockFutex])
    .from(0.0)
    .generality(Generality::Describes);

fn check(run: &Run<'_>) -> Verdict {
    let all = run.waits(|wait| is_for_another(wait) && java::stands(run, wait));
    let groups = all.map_or_else(Vec::new, |all| {
        all.split(|wait| {
            let asker = &wait.asker;
            (asker.name.pid, wait.resource.name.clone(), asker.frame.clone())
        })
    });
    // Of several places in one class, that in which most wait stands for all.
    let mut findings: Vec<(usize, Finding)> = Vec::new();
    let mut told: BTreeSet<(u32, String)> = BTreeSet::new();
    let mut order: Vec<&Waits<'_>> = groups.iter().collect();
    order.sort_by_key(|group| std::cmp::Reverse(java::threads(group)));
    for group in order {
        if told.insert((group.main().asker.name.pid, class_of(group.main()).to_owned())) {
            findings.push((java::threads(group), finding(group, &groups)));
        }
    }
    if findings.is_empty() {
        return Verdict::Clear("0 threads of Java stood for a notification, a signal or a result".to_owned());
    }
    Verdict::Fires(findings.into_iter().map(|(_, finding)| finding).collect())
}

/// Whether a thread of the application waits for what another one does, and that is not the next item of a queue.
fn is_for_another(wait: &AttributedWait) -> bool {
    let own = chosen_frame(&wait.asker.stack).is_some_and(is_applications);
    let begins = wait
        .asker
        .frame
        .as_deref()
        .and_then(|frame| frame.rsplit('.').next())
        == Some(MAIN);
    let needs = matches!(java::awaits(wait), Some(Awaits::Signal | Awaits::Task));
    wait.cause == Cause::LockFutex && needs && own && !begins
}

/// The class in whose method a thread waits.
fn class_of(wait: &AttributedWait) -> &str {
    let frame = wait.asker.frame.as_deref().unwrap_or_default();
    frame.rsplit_once('.').map_or(frame, |(class, _)| class)
}

fn finding(group: &Waits<'_>, groups: &[Waits<'_>]) -> Finding {
    let main = group.main();
    let threads = java::threads(group);
    let place = java::askers(group, 1)
        .pop()
        .map_or_else(String::new, |place| format!(" in {place}"));
    let others: Vec<&Waits<'_>> = groups
        .iter()
        .filter(|other| {
            let wait = other.main();
            let same = wait.asker.name.pid == main.asker.name.pid && class_of(wait) == class_of(main);
            same && wait.resource == main.resource && wait.asker.frame != main.asker.frame
        })
        .collect();
    let places: Vec<String> = others
        .iter()
        .flat_map(|other| java::askers(other, 1))
        .take(MAX_PLACES)
        .collect();
    let beside = match places.is_empty() {
        true => String::new(),
        false => format!(
            "; {} in {}",
            match others.iter().map(|other| java::threads(other)).sum::<usize>() {
                1 => "1 other thread waits for the same".to_owned(),
                count => format!("{count} other threads wait for the same"),
            },
            places.join(" and ")
        ),
    };
    let title = format!(
        "{} of {} {} for {}{place}, for at least {}, and no thread ended that wait{beside}",
        say::several(threads as u64, "thread"),
        say::name_or(&main.asker.name.process, "the program"),
        if threads == 1 { "waits" } else { "wait" },
        main.resource.name,
        duration(group.longest().max)
    );
    let finding = RULE
        .finding(Severity::Note, title, group)
        .confidence(Confidence::Suspect)
        .and(Evidence::new(
            "a thread without work waits in the same way: whether somebody should have ended the wait is not known",
            "Java frames of the waits",
        ))
        .and_if((!places.is_empty()).then(|| {
            Evidence::new(
                "threads wait in several methods of one class: `notify` wakes one of them, which may wait for something else",
                "Java frames of the waits",
            )
        }));
    match places.is_empty() {
        true => finding.remedy(Remedy::safe(
            "find the code that should notify, signal or complete it, and look in the log for an exception that ended it",
        )),
        false => finding.remedy(Remedy::safe(
            "use `notifyAll`, or a condition (`Condition`) for each thing that is waited for",
        )),
    }
}
