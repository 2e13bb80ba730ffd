//! Threads of one process queue for one lock.

use crate::rules::{
    Extend, Generality, MATTERS, Need, Rule, RuleId, Run, Waits, asked, beside, dumps as dumped, held,
    java_waits as java, lock_turns, percent, say,
};
use holdup_artefacts::dumps::{Doing, Dump, DumpThread, Graph, dumps};
use holdup_evidence::observed::LockRef;
use holdup_evidence::{Cause, Observed};
use holdup_knowledge::user_code;
use holdup_model::attributed::JavaLock;
use holdup_model::attributed::{AttributedWait, Holder, HowKnown};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::{BTreeMap, BTreeSet};

/// Threads from which it is a queue.
const MIN_QUEUED_THREADS: usize = 2;

/// Threads from which it is a queue in a dump: two may meet by chance in the instant that a dump is of.
const MIN_DUMPED_THREADS: usize = 3;

/// Holders that are named at most.
const MAX_HOLDERS: usize = 3;

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
pub(crate) const RULE: Rule = Rule::of_either(RuleId::LockConvoy, check, seen)
    .about("threads queue for one lock")
    .needs(&[Need::SchedulerEvents, Need::LockHolders])
    .causes(&[Cause::LockFutex, Cause::LockMonitor])
    .generality(Generality::General)
    .explains(&[
        RuleId::CpuBound,
        RuleId::ManyWaitInOnePlace,
        RuleId::ThreadStandsStill,
        RuleId::WaitUncategorised,
    ]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    if waits.cause() == Cause::LockMonitor {
        return in_java(run, waits);
    }
    let locks = waits.split(|wait| (wait.asker.name.pid, wait.resource.name.clone()));
    let mut findings = Vec::new();
    for lock in locks.iter().filter(|lock| run.matters(lock.cost(), MATTERS)) {
        if let Some(queue) = lock
            .only(|wait| {
                // Those that were not distinguished are many locks, and no queue for one.
                !wait.resource.is_many()
                    && !is_condition(wait)
                    && !wait.deadlock
                    && wait.orphaned.is_none()
                    && !beside::receives_with_lock(run, wait)
                    && user_code::allocator(&wait.asker.stack).is_none()
            })
            .filter(|queue| threads(queue) >= MIN_QUEUED_THREADS)
        {
            findings.extend(convoy(run, &queue));
        }
    }
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    let lock = &locks[0];
    Verdict::Clear(format!(
        "the costliest futex took {} of the elapsed time of {}, and no queue formed for a held lock",
        percent(run.share(lock.cost())),
        say::several(threads(lock) as u64, "thread"),
    ))
}

/// By the waits of a JVM's threads: that somebody has what they wait for is known by the frames in which they do. Where a monitor is
/// not known, the place in which it is entered stands for it. Connections of pools are no locks. A class that is being initialised is
/// one for as long as that takes; which class it is must be known.
fn in_java(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let queued = waits.only(|wait| {
        let class = java::lock(wait) == Some(JavaLock::Class);
        let untold = class && !wait.holders.iter().any(owner);
        !wait.resource.is_many() && !wait.deadlock && !untold && java::lock(wait) != Some(JavaLock::Pool)
    });
    let locks = queued.map_or_else(Vec::new, |queued| {
        queued.split(|wait| {
            (
                wait.asker.name.pid,
                wait.resource.name.clone(),
                java::identity(wait),
            )
        })
    });
    let worth: Vec<&Waits<'_>> = locks
        .iter()
        .filter(|lock| run.matters(lock.cost(), MATTERS) && is_queue(lock))
        .collect();
    let findings: Vec<Finding> = worth
        .iter()
        .filter(|lock| !is_told_by_owner(lock, &worth))
        .map(|lock| java_queue(run, lock))
        .collect();
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    let most = locks.iter().map(java::threads).max().unwrap_or(0);
    Verdict::Clear(format!(
        "at most {} for one lock of Java's",
        say::several(most as u64, "thread")
    ))
}

/// Whether waits in the same place of the same threads' process are known to be for a lock with an owner: who looks at a lock in the moment in which
/// it changes hands finds none.
fn is_told_by_owner(lock: &Waits<'_>, locks: &[&Waits<'_>]) -> bool {
    let owned = |waits: &Waits<'_>| waits.iter().any(|wait| wait.holders.iter().any(owner));
    let (pid, place) = (lock.main().asker.name.pid, asked::place(lock));
    let same = |other: &&&Waits<'_>| {
        other.main().asker.name.pid == pid && !place.is_empty() && asked::place(other) == place
    };
    !owned(lock) && locks.iter().any(|other| owned(other) && same(&other))
}

/// Whether so many threads wait that it is a queue. For a class one is enough: a class is initialised once, and whoever comes then waits.
fn is_queue(lock: &Waits<'_>) -> bool {
    let class = java::lock(lock.main()) == Some(JavaLock::Class);
    class || java::threads(lock) >= MIN_QUEUED_THREADS
}

fn java_queue(run: &Run<'_>, queue: &Waits<'_>) -> Finding {
    let main = queue.main();
    let holders = queue.holders();
    let mut owners: Vec<&Holder> = holders.iter().filter(|holder| owner(holder)).collect();
    // Where it goes from hand to hand, one that waits for it itself meanwhile tells nothing.
    owners.sort_by_key(|owner| owner.doing == Some(queue.cause()));
    let found: Vec<&Holder> = if owners.is_empty() {
        holders.iter().collect()
    } else {
        owners.clone()
    };
    let threads = java::threads(queue);
    let candidates = match holders.is_empty() {
        true => java::candidates(run, queue),
        false => Vec::new(),
    };
    let who = say::name_or(&main.asker.name.process, "the program");
    let class = java::lock(main) == Some(JavaLock::Class);
    let place = asked::place(queue);
    let title = match owners.first() {
        Some(holder) if class => Title::from(format!(
            "{} of {who} {}{place} for {} by {}",
            say::several(threads as u64, "thread"),
            if threads == 1 { "waits" } else { "wait" },
            main.resource.name,
            say::who(&holder.name)
        ))
        .with(held::with_it(run, holder)),
        Some(holder) => Title::from(format!(
            "{threads} threads of {who} wait{place} for what {} holds",
            say::who(&holder.name)
        ))
        .with(held::with_it(run, holder)),
        None => match candidates.as_slice() {
            [one] => Title::from(format!(
                "{threads} threads of {who} queue{place} for one lock, which {} seems to have",
                say::who(&one.asker.name)
            ))
            .with(format!(", {}", beside::doing_with_peer(run, one))),
            _ => Title::from(format!("{threads} threads of {who} queue{place} for one lock")),
        },
    };
    let names: BTreeSet<String> = found
        .iter()
        .take(MAX_HOLDERS)
        .map(|holder| say::who(&holder.name))
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    let by = match (names.as_slice(), owners.is_empty()) {
        ([], _) if java::lock(main) == Some(JavaLock::Semaphore) => "; a semaphore notes no owner".to_owned(),
        ([], _) => "; its holder could not be read".to_owned(),
        (names, true) => format!(", released by {}", names.join(", ")),
        (names, false) if class => format!(" by {}", names.join(", ")),
        (names, false) => format!(", held by {}", names.join(", ")),
    };
    let text = format!(
        "{}{by}; asked for in {}",
        main.resource.name,
        java::askers(queue, MAX_HOLDERS).join(", ")
    );
    let worst = java::worst(&found);
    let between = java::between(run, queue);
    let doing = between
        .or(candidates.first().copied().filter(|_| candidates.len() == 1))
        .map(|wait| wait.cause)
        .or(worst.and_then(|worst| worst.doing));
    let shorten = match doing {
        Some(cause) if class && java::waits_for_something(cause) => format!(
            "do not block in a static initialiser: its thread is {}",
            cause.phrase()
        ),
        _ if class => "do less in the static initialiser, or run it before other threads start".to_owned(),
        Some(cause) if java::waits_for_something(cause) => {
            format!("do not block while holding it: the holder is {}", cause.phrase())
        }
        _ => "do less while holding it, or split it into several locks".to_owned(),
    };
    RULE.finding(Severity::Warning, title, queue)
        .and(Evidence::new(
            text,
            worst.map_or("Java frames of the waits", |worst| {
                say::how_known(worst.how_known)
            }),
        ))
        .and_if(between.map(java::meanwhile).or(worst.map(say::meanwhile)))
        .and_if(may_have_it(&candidates))
        .and_if(say::clock(run, queue))
        .confidence(if owners.is_empty() {
            Confidence::Strong
        } else {
            Confidence::Proved
        })
        .remedy(Remedy::safe(shorten))
        .remedy(Remedy::pointless(
            "more threads: each one waits in the same queue",
        ))
}

/// Who may have a lock that notes no owner.
fn may_have_it(candidates: &[&AttributedWait]) -> Option<Evidence> {
    let parts: Vec<String> = candidates
        .iter()
        .take(MAX_HOLDERS)
        .map(|wait| java::doing(wait))
        .collect();
    let count = say::several(candidates.len() as u64, "candidate");
    (!parts.is_empty()).then(|| {
        Evidence::new(
            format!("{count} for its holder, in the same code: {}", parts.join("; ")),
            "Java frames of the waits",
        )
    })
}

/// By thread dumps: threads that wait for what one thread holds, directly or through others. Where that one reads a seed,
/// another rule says more. A holder is reported once, in the dump where its queue is longest; so is a lock that nobody is said
/// to hold: dumps do not name the owner of every lock, and none that is a virtual thread.
fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let mut longest: BTreeMap<&str, (usize, usize, &Dump<'_>)> = BTreeMap::new();
    let mut ownerless: BTreeMap<&str, Ownerless<'_, '_>> = BTreeMap::new();
    let mut most = 0;
    let mut untold: Option<(usize, &str)> = None;
    for dump in &dumps {
        let graph = Graph::of(dump);
        for queue in without_owner(dump, &graph) {
            most = most.max(queue.waiters.len());
            let known = ownerless.get(queue.lock.id.as_str());
            let longer = known.is_none_or(|known| known.waiters.len() < queue.waiters.len());
            if longer && queue.waiters.len() >= MIN_DUMPED_THREADS {
                ownerless.insert(&queue.lock.id, queue);
            }
        }
        let mut taking = dump.threads.iter().filter_map(DumpThread::takes_untold_lock);
        if let Some(method) = taking.next() {
            untold = untold.max(Some((1 + taking.count(), method)));
        }
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
            if queue < MIN_DUMPED_THREADS && !dumped::awaits_notice(holder) || seeds {
                continue;
            }
            let known = longest.entry(&holder.thread.name).or_insert((queue, root, dump));
            if known.0 < queue {
                *known = (queue, root, dump);
            }
        }
    }
    let mut findings: Vec<Finding> = longest
        .into_values()
        .filter_map(|(queue, root, dump)| queue_behind(run, dump, root, queue))
        .collect();
    findings.extend(ownerless.values().filter_map(|queue| queue_for(run, queue)));
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    match untold {
        Some((threads, method)) if threads >= MIN_DUMPED_THREADS => Verdict::CannotTell(format!(
            "whether {threads} threads in {method} wait for the same lock: a dump with locks (`jcmd PID \
             Thread.print -l`; for virtual threads, `Thread.dump_to_file` of JDK 24 or later)"
        )),
        _ => Verdict::Clear(format!(
            "at most {} behind one holder or for one lock",
            say::several(most as u64, "thread")
        )),
    }
}

/// Threads that wait for a lock of which the dump does not say who has it.
struct Ownerless<'d, 'a> {
    lock: &'a LockRef,
    waiters: Vec<&'d DumpThread<'a>>,
    /// Threads in the dump.
    of: usize,
}

/// The queues for locks without an owner. A condition is none: nobody holds it.
fn without_owner<'d, 'a>(dump: &'d Dump<'a>, graph: &Graph) -> Vec<Ownerless<'d, 'a>> {
    let mut queues: BTreeMap<&str, Ownerless<'d, 'a>> = BTreeMap::new();
    for (place, seen) in dump.threads.iter().enumerate() {
        let Some(lock) = &seen.thread.waits_for else {
            continue;
        };
        // A class that is not named has no id: those who wait so may wait for different ones.
        let is_lock = dumped::wants_lock(seen) && !lock.id.is_empty();
        if is_lock && graph.holder(place).is_none() {
            let queue = queues.entry(&lock.id).or_insert_with(|| Ownerless {
                lock,
                waiters: Vec::new(),
                of: dump.threads.len(),
            });
            queue.waiters.push(seen);
        }
    }
    queues.into_values().collect()
}

fn queue_for(run: &Run<'_>, queue: &Ownerless<'_, '_>) -> Option<Finding> {
    let first = queue.waiters.first()?;
    let count = queue.waiters.len();
    let name = dumped::lock_name(queue.lock);
    let threads = dumped::threads(first.kind);
    let askers: BTreeSet<&str> = queue.waiters.iter().filter_map(|seen| seen.asker()).collect();
    let askers: Vec<&str> = askers.into_iter().take(MAX_HOLDERS).collect();
    let text = format!(
        "{count} of {} {threads} wait for {name}; among them {}, in {}",
        queue.of,
        dumped::name(first),
        askers.join(", ")
    );
    let owner = format!("the dump names no holder of {name}");
    Some(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            format!("{count} {threads} wait for one lock; the dump does not name its holder"),
            dumped::lock_cause(first.kind),
            Evidence::new(text, dumped::place(run, first)),
        )
        .and(Evidence::new(owner, dumped::place(run, first)))
        .about(dumped::lock(queue.lock), dumped::asker(first))
        .confidence(Confidence::Proved)
        .remedy(Remedy::safe(dumped::who_holds(first.kind, queue.lock)))
        .remedy(Remedy::safe(
            "hold it for less time: do the slow work first, then take the lock",
        ))
        .remedy(Remedy::pointless(format!(
            "more {threads}: each one waits in the same queue"
        ))),
    )
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
    let askers: Vec<&str> = askers.into_iter().take(MAX_HOLDERS).collect();
    let by = dumped::name(holder);
    let verb = if queue == 1 { "waits" } else { "wait" };
    let title = match (dumped::awaits_notice(holder), queue) {
        (false, _) => format!("{queue} threads {verb} for what {by} holds"),
        (true, 1) => format!(
            "{} waits for the {} that {by} holds; {by} itself waits to be notified (Object.wait)",
            dumped::name(direct),
            lock.class.rsplit('.').next().unwrap_or_default()
        ),
        (true, _) => format!(
            "{queue} threads wait for what {by} holds; {by} itself waits to be notified (Object.wait)"
        ),
    };
    let text = format!(
        "{queue} of {} threads {verb} for {}, directly or behind another waiter; among them {}, in {}",
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
        _ => "do not block while holding it: do the slow work first, then take the lock",
    };
    Some(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            title,
            dumped::lock_cause(direct.kind),
            Evidence::new(text, dumped::place(run, direct)),
        )
        .and(Evidence::new(meanwhile, dumped::place(run, holder)))
        .and(dumped::stands(run, holder))
        .about(dumped::lock(lock), dumped::asker(direct))
        .confidence(Confidence::Proved)
        .remedy(Remedy::safe(shorten))
        .remedy(Remedy::pointless(
            "more threads: each one waits in the same queue",
        )),
    )
}

fn threads(waits: &Waits<'_>) -> usize {
    let mut tids: Vec<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    tids.sort_unstable();
    tids.dedup();
    tids.len()
}

/// Whether the stack says that the futex is something that nobody holds. Interpreters make locks of semaphores, and name their owners.
pub(in crate::rules) fn is_condition(wait: &AttributedWait) -> bool {
    let by_interpreter = |holder: &Holder| holder.how_known == HowKnown::Interpreter;
    if wait.holders.iter().any(by_interpreter) {
        return false;
    }
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
        HowKnown::MutexOwner
            | HowKnown::PiFutex
            | HowKnown::RobustList
            | HowKnown::Monitor
            | HowKnown::Interpreter
            | HowKnown::Vmstructs
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
    let candidate = lock_turns::candidate(queue, &holders).filter(|_| owners.is_empty());
    let worst = owners.first().copied().or(candidate).or(holders.first())?;
    let threads = threads(queue);
    let who = say::name_or(&main.asker.name.process, "the program");
    let place = asked::place(queue);
    // Whoever lets the lock go has mostly waited in the queue itself before: what he does with it is what the path goes through.
    let inside = lock_turns::between(run, queue).filter(|_| owners.is_empty() && candidate.is_none());
    // Of one that has it for most of the time; where it goes from hand to hand, nobody is in the way.
    let keeps = owners.first().filter(|owner| owner.ns.saturating_mul(2) > all);
    let title = match (candidate, keeps) {
        (Some(candidate), _) => Title::from(format!(
            "{threads} threads of {who} queue{place} for one lock, which {} seems to have had",
            say::who(&candidate.name)
        )),
        (None, Some(keeps)) => Title::from(format!(
            "{threads} threads of {who} queue{place} for one lock, which {} has",
            held::who(keeps, main)
        ))
        .with(held::with_it(run, keeps)),
        (None, None) => Title::from(format!("{threads} threads of {who} queue{place} for one lock")).with(
            lock_turns::in_turn(run, queue, &owners, all)
                .or_else(|| {
                    let told = inside
                        .as_ref()
                        .filter(|(cause, ..)| *cause != Cause::SchedRunqueue);
                    told.map(|(_, _, wait)| beside::doing_with_peer(run, wait))
                })
                .map_or_else(String::new, |doing| {
                    format!(", which goes from one to the other, each {doing}")
                }),
        ),
    };
    let how = if owners.is_empty() {
        "released by"
    } else {
        "held by"
    };
    let mut held: Vec<String> = holders.iter().map(|holder| say::who(&holder.name)).collect();
    held.dedup();
    held.truncate(MAX_HOLDERS);
    let lock = match &main.resource.detail.symbol {
        Some(symbol) => format!("the lock at {symbol}"),
        // Its address is for who looks into the process: `-v` has it.
        None if main.resource.is_futex_alone() || main.resource.name.is_empty() => "the lock".to_owned(),
        None => main.resource.name.clone(),
    };
    let text = format!("{lock}, {how} {}", held.join(", "));
    let finding = RULE
        .finding(Severity::Warning, title, queue)
        .and(Evidence::new(text, say::how_known(worst.how_known)))
        .and(
            inside
                .as_ref()
                .map_or_else(|| say::meanwhile(worst), lock_turns::with_it),
        )
        .and_if(candidate.map(lock_turns::without_waiting))
        .and_if(say::clock(run, queue))
        .confidence(if owners.is_empty() {
            Confidence::Suspect
        } else {
            Confidence::Proved
        });
    let doing = match &inside {
        Some((cause, ..)) => Some(*cause),
        None => worst.doing.filter(|cause| *cause != main.cause),
    };
    let shorten = match doing {
        Some(cause) if !cause.on_cpu() && cause != Cause::SchedRunqueue => {
            format!("do not block while holding it: the holder is {}", cause.phrase())
        }
        _ => "do less while holding it, or split it into several locks".to_owned(),
    };
    Some(finding.remedy(Remedy::safe(shorten)).remedy(Remedy::pointless(
        "more threads: each one waits in the same queue",
    )))
}
