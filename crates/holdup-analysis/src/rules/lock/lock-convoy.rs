//! Threads of one process queue for one lock.

use crate::artefacts::java::{Doing, Dump, Graph, dumps};
use crate::attributed::{AttributedWait, Holder, HowKnown};
use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{
    Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, dumps as dumped, percent, say,
};
use crate::user_code;
use holdup_evidence::{Cause, Observed};
use std::collections::{BTreeMap, BTreeSet};

/// Threads from which it is a queue.
const QUEUE: usize = 2;

/// Threads from which it is a queue in a dump: two may meet by chance in the instant that a dump is of.
const DUMPED_QUEUE: usize = 3;

/// Holders that are named at most.
const NAMED: usize = 3;

/// Functions of the C library under which a futex is a condition, a join or a barrier: nobody holds anything.
const NOT_A_LOCK: [&str; 6] = [
    "cond_wait",
    "cond_timedwait",
    "cond_clockwait",
    "join",
    "sem_",
    "barrier",
];

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::LockConvoy,
    about: "threads queue for one lock",
    needs: &[Need::SchedulerEvents, Need::LockHolders],
    causes: &[Cause::LockFutex],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Both(check, seen),
};

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let locks = waits.split(|wait| (wait.asker.name.pid, wait.resource.name.clone()));
    let mut findings = Vec::new();
    for lock in locks.iter().filter(|lock| run.matters(lock.cost(), MATTERS)) {
        if let Some(queue) = lock
            .only(|wait| {
                !is_condition(wait) && !wait.deadlock && user_code::allocator(&wait.asker.stack).is_none()
            })
            .filter(|queue| threads(queue) >= QUEUE)
        {
            findings.extend(convoy(run, &queue));
        }
    }
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    let lock = &locks[0];
    Verdict::Clear(format!(
        "the costliest futex took {} of the elapsed time from {}, and no queue for a held lock formed",
        percent(run.share(lock.cost())),
        say::several(threads(lock) as u64, "thread"),
    ))
}

/// By thread dumps: threads that wait for what one thread holds, directly or through others. Where that one reads a seed,
/// another rule says more. A holder is told once, in the dump where its queue is longest.
fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let mut longest: BTreeMap<&str, (usize, usize, &Dump<'_>)> = BTreeMap::new();
    let mut most = 0;
    for dump in &dumps {
        let graph = Graph::of(dump);
        let mut queues: BTreeMap<usize, usize> = BTreeMap::new();
        for place in 0..dump.threads.len() {
            if let Some(root) = graph.root(place) {
                *queues.entry(root).or_default() += 1;
            }
        }
        for (root, queue) in queues {
            let Some(holder) = dump.threads.get(root) else {
                continue;
            };
            most = most.max(queue);
            let seeds = holder.doing == Doing::Waits(Cause::RandomDevice);
            if queue < DUMPED_QUEUE || seeds {
                continue;
            }
            let known = longest.entry(&holder.thread.name).or_insert((queue, root, dump));
            if known.0 < queue {
                *known = (queue, root, dump);
            }
        }
    }
    let findings: Vec<Finding> = longest
        .into_values()
        .filter_map(|(queue, root, dump)| queue_behind(run, dump, root, queue))
        .collect();
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    Verdict::Clear(format!(
        "at most {} behind one holder",
        say::several(most as u64, "thread")
    ))
}

fn queue_behind(run: &Run<'_>, dump: &Dump<'_>, root: usize, queue: usize) -> Option<Finding> {
    let graph = Graph::of(dump);
    let holder = dump.threads.get(root)?;
    let waiters = dump.threads.iter().enumerate();
    let waiters: Vec<_> = waiters
        .filter(|(place, _)| graph.root(*place) == Some(root))
        .collect();
    let direct = waiters
        .iter()
        .find(|(place, _)| graph.holder(*place) == Some(root))?
        .1;
    let lock = direct.thread.waits_for.as_ref()?;
    let askers: BTreeSet<&str> = waiters.iter().filter_map(|(_, seen)| seen.asker()).collect();
    let askers: Vec<&str> = askers.into_iter().take(NAMED).collect();
    let title = format!("{queue} threads wait for what {} holds", dumped::name(holder));
    let text = format!(
        "{queue} of {} threads wait for {}, directly or behind one that does; among them {}, in {}",
        dump.threads.len(),
        dumped::lock_name(lock),
        dumped::name(direct),
        askers.join(", ")
    );
    let meanwhile = format!(
        "its holder {} {}",
        dumped::name(holder),
        dumped::doing(holder.doing)
    );
    let shorten = match holder.doing {
        Doing::Runs => "do less while holding it, or split it into several locks",
        _ => "do not wait while holding it: do what takes long first, then take the lock",
    };
    Some(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::LockMonitor,
            Evidence::new(text, dumped::place(run, direct)),
        )
        .and(Evidence::new(meanwhile, dumped::place(run, holder)))
        .and(dumped::stands(run, holder))
        .about(dumped::lock(lock), dumped::asker(direct))
        .confidence(Confidence::Proved)
        .remedy(Remedy::safe(shorten))
        .remedy(Remedy::pointless(
            "more threads: each one more waits in the same queue",
        )),
    )
}

fn threads(waits: &Waits<'_>) -> usize {
    let mut tids: Vec<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    tids.sort_unstable();
    tids.dedup();
    tids.len()
}

/// Whether the stack says that the futex is something that nobody holds.
fn is_condition(wait: &AttributedWait) -> bool {
    let names = wait
        .asker
        .stack
        .iter()
        .filter_map(|frame| frame.symbol.as_deref());
    names.chain(wait.asker.frame.as_deref()).any(|name| {
        // Only the library's own names: a program may well have a function called `join_tables`.
        let of_library = name.trim_start_matches('_');
        let of_library = of_library
            .strip_prefix("pthread_")
            .or(of_library.strip_prefix("sem_").map(|_| "sem_"));
        of_library.is_some_and(|name| NOT_A_LOCK.iter().any(|not| name.contains(not)))
    })
}

/// Whether the lock's own word named its owner.
fn owner(holder: &Holder) -> bool {
    matches!(
        holder.how_known,
        HowKnown::MutexOwner | HowKnown::PiFutex | HowKnown::RobustList | HowKnown::Monitor
    )
}

/// The queue, if those who end its waits are its own members or are named as owners by the lock itself. Whoever wakes
/// the waiters of a condition is neither.
fn convoy(run: &Run<'_>, queue: &Waits<'_>) -> Option<Finding> {
    let holders = queue.holders();
    let owners: Vec<&Holder> = holders.iter().filter(|holder| owner(holder)).collect();
    let member = |holder: &Holder| queue.iter().any(|wait| wait.asker.name.tid == holder.name.tid);
    let by_members: u64 = holders
        .iter()
        .filter(|holder| member(holder))
        .map(|holder| holder.ns)
        .sum();
    let all: u64 = holders.iter().map(|holder| holder.ns).sum();
    if owners.is_empty() && (holders.is_empty() || by_members.saturating_mul(2) < all) {
        return None;
    }
    let main = queue.main();
    let worst = owners.first().copied().or(holders.first())?;
    let threads = threads(queue);
    let who = say::name_or(&main.asker.name.process, "the program");
    let title = format!("{threads} threads of {who} queue for one lock");
    let name = main.resource.detail.get("symbol").unwrap_or(&main.resource.name);
    let how = if owners.is_empty() {
        "released by"
    } else {
        "held by"
    };
    let mut held: Vec<String> = holders.iter().map(|holder| say::who(&holder.name)).collect();
    held.dedup();
    held.truncate(NAMED);
    let text = format!(
        "the lock at {}, {how} {}",
        say::name_or(name, "one address"),
        held.join(", ")
    );
    let finding = RULE
        .finding(Severity::Warning, title, queue)
        .and(Evidence::new(text, say::how_known(worst.how_known)))
        .and(say::meanwhile(worst))
        .and_if(say::clock(run, queue))
        .confidence(if owners.is_empty() {
            Confidence::Suspect
        } else {
            Confidence::Proved
        });
    let shorten = match worst.doing {
        Some(cause) if !cause.on_cpu() => {
            format!("do not wait while holding it: the holder is {}", cause.phrase())
        }
        _ => "do less while holding it, or split it into several locks".to_owned(),
    };
    Some(finding.remedy(Remedy::safe(shorten)).remedy(Remedy::pointless(
        "more threads: each one more waits in the same queue",
    )))
}
