//! Waits of a Java virtual machine's threads as rules ask about them.

use super::{Run, Waits, say};
use holdup_evidence::{Cause, Frame, Language, Ns};
use holdup_knowledge::java;
use holdup_model::attributed::{Address, Awaits, JavaLock};
use holdup_model::attributed::{AttributedWait, Holder};
use holdup_model::finding::Evidence;
use std::collections::{BTreeMap, BTreeSet};

/// The Java frames of who asked, innermost first.
pub(super) fn frames(wait: &AttributedWait) -> Vec<&str> {
    let stack = wait.asker.stack.iter();
    stack
        .filter(|frame| frame.language == Language::Java)
        .filter_map(|frame| frame.symbol.as_deref())
        .collect()
}

/// Of which kind the lock of Java's is that a wait is for.
pub(super) fn lock(wait: &AttributedWait) -> Option<JavaLock> {
    wait.resource.detail.java_lock
}

/// Which object of its class a lock is, where that is known.
pub(super) fn identity(wait: &AttributedWait) -> Option<&Address> {
    wait.resource.detail.address.as_ref()
}

/// Of which kind is what another thread of the same JVM does, and this one waits for.
pub(super) fn awaits(wait: &AttributedWait) -> Option<Awaits> {
    wait.resource.detail.awaits
}

/// The outermost frame of the first run of frames that satisfy `which`: of a library, what the program called.
pub(super) fn entry<'a>(frames: &[&'a str], which: impl Fn(&str) -> bool) -> Option<&'a str> {
    let inside = frames.iter().position(|frame| which(frame))?;
    let run = frames[inside..].iter().take_while(|frame| which(frame));
    run.last().map(|frame| java::bare(frame))
}

/// The pool that a worker is of, by the worker's name.
pub(super) fn pool_of(thread: &str) -> &str {
    thread.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-')
}

/// How many threads wait.
pub(super) fn threads(waits: &Waits<'_>) -> usize {
    let tids: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.tid).collect();
    tids.len()
}

/// Who asked, each place once, costliest first, so many at most: `Feed.item (Feed.java:16)`.
pub(super) fn askers(waits: &Waits<'_>, most: usize) -> Vec<String> {
    let mut askers: Vec<String> = Vec::new();
    for asker in waits.iter().filter_map(asker) {
        if askers.len() < most && !askers.contains(&asker) {
            askers.push(asker);
        }
    }
    askers
}

/// Who asked, with file and line where the stack has them.
fn asker(wait: &AttributedWait) -> Option<String> {
    let asker = wait.asker.frame.as_deref()?;
    let of_asker = |frame: &&Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        frame.language == Language::Java && java::bare(symbol) == asker
    };
    let frame = wait.asker.stack.iter().find(of_asker);
    let place = frame.map(|frame| Frame {
        symbol: Some(asker.to_owned()),
        ..frame.clone()
    });
    Some(place.map_or_else(|| asker.to_owned(), |frame| say::place(&frame)))
}

/// Part of the observed time that a thread must have been in one wait, from which it stood there.
const STANDS_SHARE: f64 = 0.9;

/// How long such a wait is at least, nanoseconds: less is no standing.
pub(super) const STANDS_NS: Ns = 1_000_000_000;

/// Whether a thread stood in one wait for as long as it was watched, and stands there still. This is known by its own time: that others of
/// the process rest says nothing.
pub(super) fn stands(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let most = wait.ns as f64 >= STANDS_SHARE * run.attributed.wall as f64;
    wait.open && most && wait.max >= STANDS_NS
}

/// The method that waits for the end of a thread, and how far in it is.
const JOINS: &str = "java.lang.Thread.join";
const JOINS_FRAMES: usize = 6;

/// Whether a thread waits for the end of another one.
pub(super) fn joins(wait: &AttributedWait) -> bool {
    frames(wait)
        .into_iter()
        .take(JOINS_FRAMES)
        .any(|frame| java::bare(frame) == JOINS)
}

/// Who may have a lock that notes no owner: the other threads of the process that wait for something in the function in which this one is
/// wanted, else in another method of the same class. Those that wait for work have nothing.
pub(super) fn candidates<'a>(run: &Run<'a>, queue: &Waits<'a>) -> Vec<&'a AttributedWait> {
    let main = queue.main();
    let tids: BTreeSet<u32> = queue.iter().map(|wait| wait.asker.name.tid).collect();
    let Some(wanted) = main.asker.frame.as_deref() else {
        return Vec::new();
    };
    let theirs = |wait: &AttributedWait, which: &dyn Fn(&str) -> bool| {
        let other = wait.asker.name.pid == main.asker.name.pid && !tids.contains(&wait.asker.name.tid);
        let own = wait.resource.detail.asks_for_threads.is_none();
        let waits = own && wait.cause != Cause::Idle && waits_for_something(wait.cause);
        // Who waits for the end of a thread has most likely started those that queue.
        other && waits && !joins(wait) && frames(wait).into_iter().map(java::bare).any(which)
    };
    let of = |which: &dyn Fn(&str) -> bool| run.waits(|wait| theirs(wait, which));
    let same =
        of(&|frame| frame == wanted).or_else(|| of(&|frame| java::class(frame) == java::class(wanted)));
    let mut one_each: BTreeMap<u32, &AttributedWait> = BTreeMap::new();
    for wait in same.iter().flat_map(Waits::iter) {
        let known = one_each.entry(wait.asker.name.tid).or_insert(wait);
        if wait.ns > known.ns {
            *known = wait;
        }
    }
    one_each.into_values().collect()
}

/// What a thread waits for, and where: `java/req-0 in Db.query (Db.java:9), waiting for a network peer to send: 127.0.0.1:5432`.
pub(super) fn doing(wait: &AttributedWait) -> String {
    format!("{}{}", say::who(&wait.asker.name), stands_in(wait))
}

/// The same without the thread, to follow what it has.
pub(super) fn stands_in(wait: &AttributedWait) -> String {
    let own = wait.resource.detail.asks_for_threads.is_none();
    let place = asker(wait)
        .filter(|_| own)
        .map_or_else(String::new, |place| format!(" in {place}"));
    let on = match wait.resource.name.as_str() {
        "" => String::new(),
        name => format!(": {name}"),
    };
    format!("{place}, {}{on}", wait.cause.phrase())
}

/// What those who queue for a lock wait for when it is theirs: the costliest of their other waits, if it is half of what the queue costs.
/// One that has it is mostly seen in the queue itself, where it stood before.
pub(super) fn between<'a>(run: &Run<'a>, queue: &Waits<'a>) -> Option<&'a AttributedWait> {
    let tids: BTreeSet<u32> = queue.iter().map(|wait| wait.asker.name.tid).collect();
    let other = |wait: &AttributedWait| {
        let waits = waits_for_something(wait.cause) && !matches!(wait.cause, Cause::Idle | Cause::LockFutex);
        waits && wait.cause != queue.cause() && tids.contains(&wait.asker.name.tid)
    };
    let all = run.waits(other)?;
    let main = all.main();
    let same = all.only(|wait| wait.cause == main.cause)?;
    (same.cost().saturating_mul(2) >= queue.cost()).then_some(main)
}

/// The same, in words.
pub(super) fn meanwhile(wait: &AttributedWait) -> Evidence {
    let on = match wait.resource.name.as_str() {
        "" => String::new(),
        name => format!(": {name}"),
    };
    let text = format!(
        "its holder is mostly {} ({}){on}",
        wait.cause.phrase(),
        wait.cause
    );
    Evidence::new(text, say::SCHEDULER)
}

/// Whether a thread waits then for something that its code asked for, a lock among it, and not for a CPU.
pub(super) fn waits_for_lock_too(cause: Cause) -> bool {
    !cause.on_cpu() && !cause.id().starts_with("sched.")
}

/// Whether a thread waits then for something that its code asked for: neither for a CPU nor in the same queue.
pub(super) fn waits_for_something(cause: Cause) -> bool {
    !cause.on_cpu() && !cause.id().starts_with("sched.") && cause != Cause::LockMonitor
}

/// Of those in the way, who waited for something meanwhile, else the first.
pub(super) fn worst<'h>(holders: &[&'h Holder]) -> Option<&'h Holder> {
    let waits = |holder: &&&Holder| holder.doing.is_some_and(waits_for_something);
    holders.iter().find(waits).or(holders.first()).copied()
}
