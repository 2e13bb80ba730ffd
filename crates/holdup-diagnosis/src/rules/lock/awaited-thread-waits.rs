//! Threads wait for something that another thread of their process has, or is to give, and that one waits itself.
//!
//! The problem: a semaphore, a channel, a future or a static that is being initialised notes no owner, so to the kernel these are waits for
//! nobody. The choice: whoever is in the function in which others wait, and further in, is past the place where they stand. Where nobody is,
//! the only other thread of the process that waits for something is named as such.

use crate::rules::awaited_threads;
use crate::rules::beside::{
    asks_for_words, doing, doing_with_peer, goes_round, is_busy, is_within, other, others, receives_with_lock,
};
use crate::rules::{Rule, RuleId, Run, Waits, asked, java_waits, root, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Frame, Language};
use holdup_knowledge::handlers::has_request;
use holdup_knowledge::user_code::{Primitive, in_python, primitive};
use holdup_knowledge::{cpp, executors, rust};
use holdup_model::attributed::{AttributedWait, Judge};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// Other threads that are listed.
const MAX_CANDIDATES: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::AwaitedThreadWaits, check)
    .about("threads wait for another thread of their process, which waits itself")
    .causes(&[Cause::LockFutex])
    .from(0.0)
    .explains(&[RuleId::WaitUncategorised]);

fn check(run: &Run<'_>) -> Verdict {
    let standing = run.waits(|wait| {
        awaited(wait).is_some() && java_waits::stands(run, wait) && !receives_with_lock(run, wait)
    });
    let groups = standing.map_or_else(Vec::new, |standing| {
        standing.split(|wait| (wait.asker.name.pid, awaited(wait), wait.asker.frame.clone()))
    });
    let found: Vec<Finding> = groups.iter().filter_map(|group| finding(run, group)).collect();
    if !found.is_empty() {
        return Verdict::Fires(found);
    }
    let open = run.waits(|wait| awaited(wait).is_some() && wait.open);
    if let Some(open) = open.filter(|_| run.attributed.wall < java_waits::STANDS_NS) {
        return Verdict::CannotTell(format!(
            "whether {} still waits in one place a second later: observe for longer",
            say::several(java_waits::threads(&open) as u64, "thread")
        ));
    }
    let most = groups.iter().map(java_waits::threads).max().unwrap_or(0);
    Verdict::Clear(format!(
        "at most {} stood in one place for what another thread of the process has or gives, and none of those waited",
        say::several(most as u64, "thread")
    ))
}

/// What a thread waits for that some other thread of its process has, or owes: neither work, nor a signal that may never be due, nor the end
/// of a thread. Those whose owner is known are other rules'.
fn awaited(wait: &AttributedWait) -> Option<Primitive> {
    let owned = wait.deadlock
        || wait.orphaned.is_some()
        || wait.holders.iter().any(|holder| holder.how_known.holds());
    if wait.cause != Cause::LockFutex || owned {
        return None;
    }
    let stack = &wait.asker.stack;
    match primitive(stack) {
        Some(
            known @ (Primitive::Initialisation
            | Primitive::Barrier
            | Primitive::Future
            | Primitive::Room
            | Primitive::ReadWriteLock),
        ) => Some(known),
        Some(known @ Primitive::Mutex) if rust::is_rust(stack) => Some(known),
        // It may be a signal, too: only the place says that somebody has it.
        Some(known @ Primitive::Semaphore) => Some(known),
        Some(known @ (Primitive::Condition | Primitive::ThreadEnd)) if in_program(stack) => Some(known),
        // Only a worker waits in a thread of its own for work.
        Some(known @ Primitive::Queue) if in_program(stack) && wait.asker.name.tid == wait.asker.name.pid => {
            Some(known)
        }
        _ if in_python(stack).is_some() => None,
        // An interpreter says that it is a lock.
        _ => (wait.judged_by?.judge == Judge::RuntimeLock).then_some(Primitive::Mutex),
    }
}

/// Languages of which a program's own threads are known from those of its interpreter.
const INTERPRETED: [Language; 3] = [Language::Python, Language::Ruby, Language::Perl];

/// A script's code outside of any function, where it waits for all that it has begun.
const OUTSIDE_OF_FUNCTIONS: [&str; 2] = ["<module>", "<main>"];

/// Whether a function of an interpreted program waits, not the interpreter for itself or the script for its end.
fn in_program(stack: &[Frame]) -> bool {
    let place = asked::known(chosen_frame(stack));
    place.is_some_and(|frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        INTERPRETED.contains(&frame.language) && !OUTSIDE_OF_FUNCTIONS.contains(&symbol)
    })
}

/// Whether that may be due at any time, or never: then only a thread that must be the one is named.
fn is_signal(primitive: Primitive) -> bool {
    matches!(
        primitive,
        Primitive::Condition | Primitive::ThreadEnd | Primitive::Queue
    )
}

/// What that is, as it follows "for".
fn what(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Condition => "a condition or an event",
        Primitive::ThreadEnd => "the end of another thread",
        Primitive::Queue => "a queue",
        _ => awaited_threads::what(primitive),
    }
}

/// Whether somebody in the same function, and further in, has it; of a queue or a result that says nothing.
fn taken_in_place(primitive: Primitive) -> bool {
    !matches!(primitive, Primitive::Future | Primitive::Room) && !is_signal(primitive)
}

fn named(wait: &&AttributedWait) -> String {
    format!("{}, {}", other(&wait.asker.name), doing(wait))
}

/// Whether threads all wait in one place for one thing.
fn in_one_place(waits: &[&AttributedWait]) -> bool {
    let place = |wait: &AttributedWait| (doing(wait), wait.cause);
    waits.iter().all(|wait| place(wait) == place(waits[0]))
}

/// Who waits for what, and where.
fn head(group: &Waits<'_>, awaited: Primitive, place: Option<&Frame>) -> String {
    let threads = java_waits::threads(group);
    let place = place.map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
    format!(
        "{} of {} {} for {}{place}",
        say::several(threads as u64, "thread"),
        say::name_or(&group.main().asker.name.process, "the program"),
        if threads == 1 { "waits" } else { "wait" },
        what(awaited)
    )
}

/// The same with those that stand before it. `sure`: they are further in, in the same function.
fn title(
    run: &Run<'_>,
    head: &str,
    awaited: Primitive,
    (candidates, sure): (&[&AttributedWait], bool),
) -> Title {
    let title = Title::from(head);
    let Some(first) = candidates.first() else {
        return title;
    };
    let who = other(&first.asker.name);
    title.with(match (candidates.len(), sure, awaited) {
        (1, true, Primitive::Initialisation) => {
            format!(", which {who} initialises, {}", doing_with_peer(run, first))
        }
        (1, true, Primitive::Barrier) => {
            format!(", to which {who} has not come, {}", doing_with_peer(run, first))
        }
        (count, true, Primitive::Barrier) => {
            format!(
                ", to which {count} threads have not come, {}",
                doing_with_peer(run, first)
            )
        }
        (1, true, _) => format!(", which {who} seems to have, {}", doing_with_peer(run, first)),
        (1, false, _) => format!(
            "; the only other thread that waits for something else is {who}, {}",
            doing_with_peer(run, first)
        ),
        (count, true, _) => format!(
            ", which {count} threads seem to have, {}",
            doing_with_peer(run, first)
        ),
        (count, false, _) if in_one_place(candidates) => {
            format!(
                "; {count} other threads wait for something else, {}",
                doing_with_peer(run, first)
            )
        }
        (count, false, _) => format!(", and {count} others for something else"),
    })
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Option<Finding> {
    let main = group.main();
    let awaited = awaited(main)?;
    let place = chosen_frame(&main.asker.stack);
    // Who sleeps again and again goes on.
    let still = |wait: &&AttributedWait| {
        wait.cause != Cause::TimerSleep || java_waits::stands(run, wait) && !goes_round(wait)
    };
    // Who waits for a result of a task does not set one, where the tasks' own threads are all taken.
    let taken = taken_whole(run, group).filter(|_| awaited == Primitive::Future);
    let result = |wait: &&AttributedWait| {
        taken.is_some()
            && wait.cause == Cause::LockFutex
            && primitive(&wait.asker.stack) == Some(Primitive::Future)
    };
    let all = others(run, group);
    let others = all.iter().copied().filter(still);
    let others: Vec<&AttributedWait> = others.filter(|wait| !result(wait)).collect();
    let within: Vec<&AttributedWait> = match place.filter(|_| taken_in_place(awaited)) {
        Some(place) => others
            .iter()
            .copied()
            .filter(|wait| is_within(wait, place))
            .collect(),
        None => Vec::new(),
    };
    // A semaphore may be a signal, too: only the place says that somebody has it.
    if within.is_empty() && awaited == Primitive::Semaphore {
        return None;
    }
    // Those that wait for something outside of the process are further along.
    let outside = |wait: &&AttributedWait| wait.cause != Cause::LockFutex;
    let (candidates, sure) = match within.is_empty() {
        true if others.iter().any(outside) => (others.into_iter().filter(outside).collect(), false),
        true => (others, false),
        false => (within, true),
    };
    let head = head(group, awaited, place);
    // What may be due at any time is asked for only by one for whom somebody waits in turn: else it stands there for whatever comes next.
    let asked = !is_signal(awaited) || has_request(&main.asker.stack);
    if let Some(words) = asks_for_words(run, group).filter(|_| asked) {
        return Some(by_library(Title::from(head).with(words), group, awaited));
    }
    let Some(first) = candidates.first() else {
        // One who got room in between, or who sleeps between two that it takes, goes on.
        let goes_on = main.count > 1 || all.iter().any(|wait| goes_round(wait));
        if awaited == Primitive::Room && goes_on {
            return None;
        }
        return nobody(run, awaited, &head, (group, taken));
    };
    let together = in_one_place(&candidates);
    if is_signal(awaited) && !(together && outside(first)) {
        return None;
    }
    let title = title(run, &head, awaited, (&candidates, sure));
    let listed: Vec<String> = candidates.iter().take(MAX_CANDIDATES).map(named).collect();
    let basis = match sure {
        true => "further in, in the same function",
        false => "nothing notes who is to end the wait; these wait for something else",
    };
    let behind = run.waits(|wait| wait.asker.name == first.asker.name && wait.cause == first.cause);
    let behind = behind.as_ref().filter(|_| candidates.len() == 1 || sure);
    let root = behind.and_then(root::of);
    // Where the way ends at a lock that nobody can release, that is the finding; that these wait for it, too, is only a guess.
    if !sure && root.is_some_and(|root| root.is_orphaned()) {
        return None;
    }
    let title = title.with(root.map_or_else(String::new, |root| root.stands()));
    let mut finding = RULE
        .finding(Severity::Warning, title, group)
        .and(Evidence::new(
            format!("{basis}: {}", listed.join("; ")),
            "the stacks of the process's threads",
        ))
        .confidence(if sure {
            Confidence::Strong
        } else {
            Confidence::Suspect
        });
    if let Some(root) = root {
        finding = finding.remedy(root.remedy());
    }
    Some(finding.remedy(remedy(awaited)))
}

/// Threads that wait within a library for what a thread of that library asks for.
fn by_library(title: Title, group: &Waits<'_>, awaited: Primitive) -> Finding {
    RULE.finding(Severity::Warning, title, group)
        .and(Evidence::new(
            "they wait in functions of the library of which that thread is",
            "the stacks of the process's threads",
        ))
        .confidence(match is_signal(awaited) {
            true => Confidence::Suspect,
            false => Confidence::Strong,
        })
        .remedy(remedy(awaited))
}

/// The function in which these threads run what is queued for them, if no other thread of the process runs it: whatever stands in that queue has
/// nobody left.
fn taken_whole<'a>(run: &Run<'_>, group: &Waits<'a>) -> Option<&'a Frame> {
    let runs = executors::runs_tasks(&group.main().asker.stack)?;
    let name = &group.main().asker.name;
    let own: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let threads = run
        .attributed
        .threads
        .iter()
        .filter(|thread| thread.name.pid == name.pid);
    let rows = |tid: u32| {
        let waits = run.attributed.waits.iter();
        waits.filter(move |wait| (wait.asker.name.pid, wait.asker.name.tid) == (name.pid, tid))
    };
    // Of a thread without a stack it is not known where it is.
    let elsewhere = |tid: u32| {
        rows(tid).any(|wait| !wait.asker.stack.is_empty()) && !rows(tid).any(|wait| is_within(wait, runs))
    };
    let all_within = group.iter().all(|wait| is_within(wait, runs));
    let mut others = threads
        .map(|thread| thread.name.tid)
        .filter(|tid| !own.contains(tid));
    (all_within && others.all(elsewhere)).then_some(runs)
}

/// Where nobody of the process stands for anything else: whoever was to come, to give a result or to take from a queue has ended, or goes on without it.
/// Who computes meanwhile may be the one.
fn nobody(
    run: &Run<'_>,
    awaited: Primitive,
    head: &str,
    (group, taken): (&Waits<'_>, Option<&Frame>),
) -> Option<Finding> {
    if is_busy(run, group) {
        return None;
    }
    let missing = match awaited {
        Primitive::Barrier => "whoever has not come has ended, or goes on without it",
        Primitive::Future => "whoever was to set it has ended, or goes on without it",
        Primitive::Room => "whoever was to take from it has ended, or goes on without it",
        _ => return None,
    };
    let title = match taken {
        Some(runs) => Title::from(head)
            .with(format!(
                ", and no other thread of the process runs {}",
                cpp::qualified(runs.symbol.as_deref().unwrap_or_default())
            ))
            .with(": what is queued there to set it finds no thread left: most likely a deadlock"),
        None => Title::from(head)
            .with(", and no other thread stands before that")
            .with(format!(": {missing}")),
    };
    let finding = RULE
        .finding(Severity::Warning, title, group)
        .and(Evidence::new(
            "no other thread of the process stands in a wait for anything but work",
            "the stacks of the process's threads",
        ))
        .confidence(Confidence::Suspect);
    if taken.is_some() {
        return Some(finding.remedy(Remedy::safe(
            "do not wait in a task for another task of the same threads: go on in a callback, or run one of the two elsewhere",
        )));
    }
    let finding = match awaited {
        Primitive::Room => finding.remedy(Remedy::safe(
            "look in the log for an error that ended the thread that takes from the queue, and let it end nothing else",
        )),
        _ => finding,
    };
    Some(finding.remedy(remedy(awaited)))
}

fn remedy(awaited: Primitive) -> Remedy {
    Remedy::safe(match awaited {
        Primitive::Initialisation => {
            "do not wait for others in an initialiser: do it before the threads start, with a time limit"
        }
        Primitive::Future => "give the wait for the result a time limit, and what it waits for one, too",
        Primitive::Room => {
            "find out why nobody takes from it; where data may be dropped, send without waiting or with a time limit"
        }
        Primitive::Condition | Primitive::ThreadEnd | Primitive::Queue => {
            "give what the other thread waits for a time limit, and this wait one, too"
        }
        Primitive::Barrier => {
            "give what comes before the barrier a time limit: one thread that does not come stops all others"
        }
        _ => "do not wait for anything else while holding it, or with a time limit",
    })
}
