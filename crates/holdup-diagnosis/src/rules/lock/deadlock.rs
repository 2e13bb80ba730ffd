//! Threads that wait for each other's locks, so that none can go on.

use crate::rules::{Need, Rule, RuleId, Run, Waits, asked, dumps as dumped, java_waits as java, say};
use holdup_artefacts::dumps::{Doing, Dump, DumpThread, Graph, dumps};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::observed::{LockWait, SnapshotKind};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::JavaLock;
use holdup_model::attributed::{AttributedWait, Link, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// Share of the elapsed time from which a deadlock is spoken of: one that nothing breaks lasts until the run is ended
/// from outside, which may be soon after.
const MIN_SHARE: f64 = 0.01;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_either(RuleId::Deadlock, check, seen)
    .about("threads wait for each other's locks, and none can continue")
    .needs(&[Need::SchedulerEvents, Need::LockHolders])
    .causes(&[Cause::LockFutex, Cause::LockMonitor, Cause::LockFile])
    .from(MIN_SHARE)
    .explains(&[
        RuleId::ManyWaitInOnePlace,
        RuleId::ThreadStandsStill,
        RuleId::WaitUncategorised,
    ]);

fn check(_run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // Where their owners could not be read.
    let classes = waits.only(|wait| wait.open && !wait.deadlock && for_class(wait));
    let processes = classes.map_or_else(Vec::new, |all| all.split(|wait| wait.asker.name.pid));
    let initialisers: Vec<Finding> = processes.iter().filter_map(initialisers).collect();
    let Some(stuck) = waits.only(|wait| wait.deadlock) else {
        if !initialisers.is_empty() {
            return Verdict::Fires(initialisers);
        }
        return Verdict::Clear(format!(
            "of {}, none was for a lock of a thread that waited for this one's",
            say::several(waits.count().max(1), "wait")
        ));
    };
    let circles = stuck.split(members);
    let circles = circles.iter().map(|circle| finding(circle));
    Verdict::Fires(circles.chain(initialisers).collect())
}

/// Whether a wait is for a class to be initialised.
fn for_class(wait: &AttributedWait) -> bool {
    java::lock(wait) == Some(JavaLock::Class)
}

/// Two threads that each run a class's initialiser and wait in it until another thread has run one. Which class that is their stacks do
/// not tell; of two, it can be but the other's. One that waits for a class without running an initialiser is none of them.
fn initialisers(waiting: &Waits<'_>) -> Option<Finding> {
    let running = waiting.only(|wait| initialised(wait).is_some())?;
    let threads: BTreeSet<u32> = running.iter().map(|wait| wait.asker.name.tid).collect();
    let [one, other] = threads.into_iter().collect::<Vec<_>>()[..] else {
        return None;
    };
    let of = |tid| running.iter().find(|wait| wait.asker.name.tid == tid);
    let (one, other) = (of(one)?, of(other)?);
    if initialised(one) == initialised(other) {
        return None;
    }
    let (first, second) = (say::who(&one.asker.name), say::who(&other.asker.name));
    let title = format!(
        "Deadlock of class initialisers: {first} waits for {second} waits for {first}{}",
        in_places(&running, &[one.asker.name.tid, other.asker.name.tid])
    );
    let side = |wait: &AttributedWait| {
        let text = format!(
            "{} (tid {}) initialises {}, and waits in {} until another thread has initialised a class",
            say::who(&wait.asker.name),
            wait.asker.name.tid,
            initialised(wait).unwrap_or_default(),
            wait.asker.frame.as_deref().unwrap_or("it"),
        );
        Evidence::new(text, "frames of the waits")
    };
    let finding = RULE.finding(Severity::Critical, title, &running);
    Some(break_circle(
        finding
            .and(side(one))
            .and(side(other))
            .confidence(Confidence::Strong),
    ))
}

/// The class whose initialiser a thread runs, innermost.
fn initialised(wait: &AttributedWait) -> Option<&str> {
    let frames = java::frames(wait);
    let running = frames
        .iter()
        .find(|frame| holdup_knowledge::java::method(frame) == "<clinit>")?;
    Some(holdup_knowledge::java::class(running))
}

fn break_circle(finding: Finding) -> Finding {
    finding
        .remedy(Remedy::safe(
            "break the circle of static initialisers: a class initialiser must not use a class that uses its \
             own class",
        ))
        .remedy(Remedy::safe(
            "load both classes in one thread before the other threads start, until that is \
         done",
        ))
}

/// By thread dumps: circles of the locks in them, whether the JVM reports them or not. One that stands in several dumps
/// is one.
fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let dumps = dumps(observed);
    if dumps.is_empty() {
        return Verdict::CannotTell(dumped::NO_DUMP.to_owned());
    }
    let mut known: BTreeSet<Vec<&str>> = BTreeSet::new();
    let mut findings = Vec::new();
    let mut blocked = 0_u64;
    let mut without_owner = 0_u64;
    for dump in &dumps {
        findings.extend(all_asleep(run, dump));
        let graph = Graph::of(dump);
        for circle in graph.circles() {
            let mut names: Vec<&str> = members_of(dump, &circle)
                .map(|seen| seen.thread.name.as_str())
                .collect();
            names.sort_unstable();
            if known.insert(names) {
                findings.push(dumped_circle(run, dump, &graph, &circle));
            }
        }
        for (place, seen) in dump.threads.iter().enumerate() {
            let waits = seen.thread.waits_for.as_ref().and_then(|lock| lock.wait);
            let locked = matches!(waits, Some(LockWait::Enter | LockWait::ClassInit))
                || (waits == Some(LockWait::Park) && dumped::wants_lock(seen));
            blocked += u64::from(locked);
            without_owner += u64::from(locked && graph.holder(place).is_none());
        }
    }
    if !findings.is_empty() {
        return Verdict::Fires(findings);
    }
    if without_owner > 1 {
        return Verdict::CannotTell(format!(
            "who holds the locks that {without_owner} threads wait for: a dump with the owners of all locks (`jcmd PID \
             Thread.print -l`), or `holdup attach` while they wait"
        ));
    }
    Verdict::Clear(format!(
        "of {} that wait for a lock in the dumps, 0 are in a circle",
        say::several(blocked, "thread")
    ))
}

/// What Go's runtime says before it ends a program whose goroutines all wait for each other.
fn all_asleep(run: &Run<'_>, dump: &Dump<'_>) -> Option<Finding> {
    if dump.snapshot.kind != SnapshotKind::Go || dump.snapshot.deadlocks.is_empty() {
        return None;
    }
    let mut waiting = dump.threads.iter().filter(|seen| seen.doing != Doing::Idle);
    let first = waiting.next()?;
    let count = 1 + waiting.clone().count();
    let title = match count {
        1 => format!(
            "Deadlock: {} waits, and no thread is left to wake it",
            dumped::name(first)
        ),
        _ => format!("Deadlock: all {count} goroutines wait, and none is left to wake them"),
    };
    let said = "Go's runtime found all goroutines asleep and ended the program";
    let mut finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        title,
        Cause::LockFutex,
        Evidence::new(said, dumped::place(run, first)),
    )
    .and(evidence_of(run, first))
    .about(
        first
            .thread
            .waits_for
            .as_ref()
            .map(dumped::lock)
            .unwrap_or_default(),
        dumped::asker(first),
    )
    .confidence(Confidence::Proved);
    for seen in waiting.take(MAX_GOROUTINES - 1) {
        finding = finding.and(evidence_of(run, seen));
    }
    Some(finding.remedy(Remedy::safe(
        "break the circle: another goroutine must send, receive, close or unlock what these wait for, \
         without waiting for them first",
    )))
}

/// Goroutines that are reported of a deadlock, the first ones: the main one is among them.
const MAX_GOROUTINES: usize = 4;

/// What a goroutine waits for, in its runtime's words, and where.
fn evidence_of(run: &Run<'_>, seen: &DumpThread<'_>) -> Evidence {
    let at = seen
        .asker()
        .or(seen.frames.first().copied())
        .unwrap_or("an unknown place");
    let text = format!("{} waits ({}) in {at}", dumped::name(seen), seen.thread.words);
    Evidence::new(text, dumped::place(run, seen))
}

fn members_of<'d, 'a>(dump: &'d Dump<'a>, circle: &'d [usize]) -> impl Iterator<Item = &'d DumpThread<'a>> {
    circle.iter().filter_map(|place| dump.threads.get(*place))
}

/// A circle of a dump.
fn dumped_circle(run: &Run<'_>, dump: &Dump<'_>, graph: &Graph, circle: &[usize]) -> Finding {
    let names: Vec<String> = members_of(dump, circle).map(dumped::name).collect();
    let initialises = members_of(dump, circle).any(|seen| {
        let lock = seen.thread.waits_for.as_ref();
        lock.is_some_and(|lock| lock.wait == Some(LockWait::ClassInit))
    });
    let way = names
        .iter()
        .chain(names.first())
        .cloned()
        .collect::<Vec<_>>()
        .join(" waits for ");
    let title = if initialises {
        format!("Deadlock of class initialisers: {way}")
    } else {
        format!("Deadlock: {way}")
    };
    let mut sides = circle.iter().filter_map(|place| {
        let seen = dump.threads.get(*place)?;
        let holder = dump.threads.get(graph.holder(*place)?)?;
        let lock = seen.thread.waits_for.as_ref()?;
        let asked = seen
            .asker()
            .map(|asker| format!(", in {asker}"))
            .unwrap_or_default();
        let text = format!(
            "{}{} waits for {}, which {} has{asked}",
            dumped::name(seen),
            dumped::ids(seen),
            dumped::lock_name(lock),
            dumped::name(holder),
        );
        Some(Evidence::new(text, dumped::place(run, seen)))
    });
    let first = sides
        .next()
        .unwrap_or_else(|| Evidence::new(title.clone(), "a thread dump"));
    let critical = Severity::Critical;
    let mut finding = Finding::without_duration(RULE.id.id(), critical, title, Cause::LockMonitor, first);
    for side in sides {
        finding = finding.and(side);
    }
    if let Some(seen) = members_of(dump, circle).next() {
        let lock = seen
            .thread
            .waits_for
            .as_ref()
            .map(dumped::lock)
            .unwrap_or_default();
        finding = finding.about(lock, dumped::asker(seen));
    }
    if initialises {
        return break_circle(finding.confidence(Confidence::Proved));
    }
    remedies(finding.confidence(Confidence::Proved))
}

fn remedies(finding: Finding) -> Finding {
    finding
        .remedy(Remedy::safe(
            "take these locks in the same order everywhere (by address, or by a rank), or both under one lock",
        ))
        .remedy(Remedy::safe(
            "if the order cannot be known, try the second lock, and release the first if that fails",
        ))
        .remedy(Remedy::pointless("waiting longer: none of them can release its lock"))
}

/// The threads of a wait's circle, whichever of them it is of.
fn members(wait: &AttributedWait) -> BTreeSet<u32> {
    wait.chain.iter().map(|link| link.name.tid).collect()
}

fn finding(circle: &Waits<'_>) -> Finding {
    let main = circle.main();
    let alone = members(main).len() == 1;
    // A wait that ran into its own time limit breaks the circle, and is tried again.
    let broken = circle.timed_out() > 0;
    let circle_of = &main.chain;
    let who: Vec<String> = circle_of
        .iter()
        .map(|link| named(&link.name, circle_of))
        .collect();
    let title = if alone {
        format!(
            "{} waits for a lock that it holds itself",
            say::who(&main.asker.name)
        )
    } else if circle.iter().all(for_class) {
        format!("Deadlock of class initialisers: {}", who.join(" waits for "))
    } else {
        format!("Deadlock: {}", who.join(" waits for "))
    };
    let severity = if broken {
        Severity::Warning
    } else {
        Severity::Critical
    };
    // Who closes the circle has begun it.
    let threads: Vec<u32> = circle_of
        .iter()
        .rev()
        .skip(1)
        .rev()
        .map(|link| link.name.tid)
        .collect();
    let title = format!("{title}{}", in_places(circle, &threads));
    let mut finding = RULE.finding(severity, title, circle);
    // They stand at the same time: the longest is what the circle costs.
    let longest = circle.iter().map(|wait| wait.ns).fold(0, u64::max);
    finding.ns = finding.ns.map(|ns| ns.min(longest));
    for wait in circle.iter() {
        finding = finding.and(side(wait));
    }
    let finding = finding.and(Evidence::new(
        if broken {
            "a timeout ended it: no lock was released"
        } else {
            "none of its locks was released; it ended with the run"
        },
        say::SCHEDULER,
    ));
    let finding = finding.confidence(Confidence::Proved);
    if alone {
        return finding.remedy(Remedy::safe(
            "do not lock it again: split the function into one that locks and one that expects the lock, or make the \
             lock recursive",
        ));
    }
    if circle.iter().all(for_class) {
        return break_circle(finding);
    }
    if circle.iter().any(for_class) {
        let remedy = "take no lock in a static initialiser, and do not wait there for another thread";
        return remedies(finding.remedy(Remedy::safe(remedy)));
    }
    remedies(finding)
}

/// A thread of the circle, distinguished from its namesakes in there.
fn named(name: &ThreadName, circle: &[Link]) -> String {
    let who = say::who(name);
    let namesake = |link: &&Link| link.name.tid != name.tid && say::who(&link.name) == who;
    match circle.iter().find(namesake) {
        Some(_) => format!("{who} (tid {})", name.tid),
        None => who,
    }
}

/// Places of a circle that a title names: of a longer one, the first of them show which locks it is about.
const MAX_PLACES: usize = 3;

/// Where in the program's code each of them waits, for the end of a title. Empty where they all wait in one place, which the title gets as any
/// other does.
fn in_places(circle: &Waits<'_>, threads: &[u32]) -> String {
    let place = |tid: u32| {
        let of = circle.iter().filter(|wait| wait.asker.name.tid == tid);
        let longest = of.max_by_key(|wait| wait.ns)?;
        asked::known(chosen_frame(&longest.asker.stack)).map(say::place)
    };
    let mut places: Vec<String> = Vec::new();
    for tid in threads {
        places.extend(place(*tid).filter(|place| !places.contains(place)));
    }
    let more = places.len().saturating_sub(MAX_PLACES);
    places.truncate(MAX_PLACES);
    match (places.as_slice(), more) {
        ([] | [_], _) => String::new(),
        ([first @ .., last], 0) => format!("; they wait in {} and {last}", first.join(", ")),
        (named, _) => format!(
            "; they wait in {} and {}",
            named.join(", "),
            say::several(more as u64, "other place")
        ),
    }
}

/// Who waits for which lock, and whose that is.
fn side(wait: &AttributedWait) -> Evidence {
    let lock = wait
        .resource
        .detail
        .symbol
        .as_ref()
        .unwrap_or(&wait.resource.name);
    let asked = wait
        .asker
        .frame
        .as_deref()
        .map(|frame| format!(", in {frame}"))
        .unwrap_or_default();
    let (holder, how) = match wait.holders.first() {
        Some(holder) => (
            format!(
                ", which {} (tid {}) {}",
                say::who(&holder.name),
                holder.name.tid,
                if for_class(wait) { "initialises" } else { "has" },
            ),
            say::how_known(holder.how_known),
        ),
        None => (String::new(), say::SCHEDULER),
    };
    Evidence::new(
        format!(
            "{} (tid {}) waits for {}{holder}{asked}",
            say::who(&wait.asker.name),
            wait.asker.name.tid,
            say::name_or(lock, "a lock"),
        ),
        how,
    )
}
