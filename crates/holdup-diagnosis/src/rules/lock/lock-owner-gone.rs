//! A wait for a lock or condition that no thread which there is can end: copied by fork, or left behind by a thread.

use crate::rules::{Check, Extend, Generality, Need, Place, Rule, RuleId, Run, Waits, say};
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::user_code::{Primitive, primitive};
use holdup_model::attributed::{Orphaned, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Share of the elapsed time from which it is spoken of: what nobody can end lasts until the program is ended from outside,
/// which may be soon after.
const FROM: f64 = 0.01;

/// How long such a wait must have lasted, nanoseconds: a thread that has been made and not been heard of yet may end shorter
/// ones.
const LASTS: Ns = 50_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::LockOwnerGone,
    about: "nobody is left who could release what it waits for",
    needs: &[Need::SchedulerEvents],
    causes: &[Cause::LockFutex],
    from: FROM,
    generality: Generality::Specific,
    explains: &[],
    place: Place::End,
    check: Check::Waits(check),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let orphaned = waits.only(|wait| wait.orphaned.is_some() && !wait.deadlock && wait.max >= LASTS);
    let groups = orphaned.map_or_else(Vec::new, |all| {
        all.split(|wait| {
            let whole = wait.orphaned.as_ref().is_some_and(|orphaned| orphaned.all_of > 0);
            // All threads of a process are one finding, whatever each of them waits for.
            let lock = (!whole).then(|| wait.resource.name.clone());
            (wait.asker.name.pid, lock)
        })
    });
    let findings: Vec<Finding> = groups
        .iter()
        .filter(|group| run.matters(group.cost(), FROM))
        .filter_map(finding)
        .collect();
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => Verdict::Clear(format!(
            "of {}, none was of a kind that nobody could have ended",
            say::several(waits.count().max(1), "wait")
        )),
    }
}

fn finding(waits: &Waits<'_>) -> Option<Finding> {
    let main = waits.iter().find(|wait| wait.orphaned.is_some())?;
    let orphaned = main.orphaned.as_ref()?;
    let awaited = primitive(&main.asker.stack);
    let who = match orphaned.all_of {
        0 => say::who(&main.asker.name),
        _ => main.asker.name.process.clone(),
    };
    let alone = orphaned.alone.then(|| {
        Evidence::new(
            format!(
                "{} has no other thread, and the lock is not shared with other processes",
                say::who_with_pid(&main.asker.name)
            ),
            "threads of the process, and the flags of the call",
        )
    });
    // A signal handler may post a semaphore: whether this one has such a handler is not seen.
    let handler = orphaned.owner.is_none().then(|| {
        Evidence::new(
            "a signal handler could release it too, where it is a semaphore or an event: whether the program has one is not seen",
            "signal-safety(7)",
        )
    });
    let all = (orphaned.all_of > 0).then(|| {
        Evidence::new(
            format!(
                "all {} threads of {} wait as observation ends, each for something that processes do not share",
                orphaned.all_of,
                say::who_with_pid(&ThreadName {
                    thread: String::new(),
                    ..main.asker.name.clone()
                })
            ),
            "threads of the process, and the flags of their calls",
        )
    });
    let severity = match orphaned.owner {
        Some(_) => Severity::Critical,
        None => Severity::Warning,
    };
    let finding = RULE
        .finding(severity, title(&who, orphaned, awaited), waits)
        .and_if(orphaned.owner.as_ref().map(named))
        .and_if(alone)
        .and_if(all)
        .and_if(handler)
        .and(Evidence::new(
            "no time limit was set, and nobody released it while it was observed",
            say::SCHEDULER,
        ))
        // Two independent signs prove it.
        .confidence(match (&orphaned.owner, orphaned.alone) {
            (Some(_), true) => Confidence::Proved,
            (Some(_), false) => Confidence::Strong,
            (None, _) => Confidence::Suspect,
        });
    if orphaned.all_of > 0 {
        return Some(finding
            .remedy(Remedy::safe(
                "see who should have ended the first of these waits: a task that waits for another task of the same pool takes a \
                 thread that the other one needs; give those a pool of their own, or go on when they are done instead of waiting",
            ))
            .remedy(Remedy::safe(
                "a condition that is signalled before the wait begins is lost, unless the waiter looks first, with the lock in hand",
            ))
            .remedy(Remedy::pointless("to wait longer: it never ends by itself")));
    }
    Some(match &orphaned.owner {
        Some(owner) if owner.pid == 0 && !orphaned.alone => finding
            .remedy(Remedy::safe(
                "let the thread release its locks on every way on which it can end",
            ))
            .remedy(Remedy::safe(
                "or make the lock robust (PTHREAD_MUTEX_ROBUST): the next one is then told that its owner died",
            ))
            .remedy(Remedy::pointless("to wait longer: it never ends by itself")),
        // Of these the child of a fork has a copy, too; but a program with one thread that never forked is the plainer story.
        None if awaited == Some(Primitive::Condition) => finding
            .remedy(Remedy::safe(
                "a signal that comes before the wait begins is lost: keep what is waited for in a variable, set and read with the \
                 mutex in hand, and wait only while it is not there",
            ))
            .remedy(Remedy::safe(
                "see whether the thread that should have signalled has ended, or was never there: fork copies the memory, and \
                 only the thread that calls it",
            ))
            .remedy(Remedy::pointless("to wait longer: it never ends by itself")),
        _ => finding
            .remedy(Remedy::safe(
                "in a program with threads do not fork and go on: start a program anew (posix_spawn, or exec right after \
                 fork); in Python, multiprocessing with the start method spawn or forkserver",
            ))
            .remedy(Remedy::safe(
                "where it must fork, do so before threads are started, or hold the lock across it (pthread_atfork)",
            ))
            .remedy(Remedy::pointless("to wait longer: it never ends by itself")),
    })
}

fn title(who: &str, orphaned: &Orphaned, awaited: Option<Primitive>) -> String {
    match &orphaned.owner {
        None if orphaned.all_of > 0 => format!(
            "All {} threads of {who} wait for one of them: none is left that could go on",
            orphaned.all_of
        ),
        Some(owner) if owner.pid != 0 => format!(
            "{who} waits for a lock that {} held when this process was forked: nobody can release the copy",
            say::who_with_pid(owner)
        ),
        Some(owner) if orphaned.alone => format!(
            "{who} waits for a lock of thread {}, which this process does not have: nobody can release it",
            owner.tid
        ),
        Some(owner) => format!(
            "{who} waits for a lock of thread {}, which is gone: nobody can release it",
            owner.tid
        ),
        None => match awaited {
            Some(Primitive::Condition) => {
                format!("{who} waits for a condition that another thread would signal, and has none")
            }
            Some(Primitive::Semaphore) => {
                format!("{who} waits for a semaphore that another thread would post, and has none")
            }
            _ => {
                format!("{who} waits for a lock or condition that another thread would release, and has none")
            }
        },
    }
}

fn named(owner: &ThreadName) -> Evidence {
    let text = match owner.pid {
        0 => format!(
            "the lock names thread {} as its owner; no such thread lives",
            owner.tid
        ),
        pid => format!(
            "the lock names thread {} as its owner, which is one of process {pid}; memory that fork copied names its owner so",
            owner.tid
        ),
    };
    Evidence::new(text, "owner in the mutex")
}
