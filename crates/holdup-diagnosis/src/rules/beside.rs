//! The other threads of a process whose threads wait for one of them: what those wait for meanwhile.
//!
//! In: waits of one process. Out: its other threads that wait for something themselves, and that in words.

use super::{Run, Waits, java_waits, root, say};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::{Cause, Frame, Language, Ns};
use holdup_knowledge::rust;
use holdup_knowledge::user_code::{Primitive, primitive};
use holdup_model::attributed::{AttributedWait, ThreadName};
use std::collections::{BTreeMap, BTreeSet};

/// The other threads of the process that wait for something, each by its longest wait: neither for work nor for the end of a thread.
pub(super) fn others<'a>(run: &Run<'a>, group: &Waits<'a>) -> Vec<&'a AttributedWait> {
    let pid = group.main().asker.name.pid;
    let own: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let mut longest: BTreeMap<u32, &AttributedWait> = BTreeMap::new();
    for wait in &run.attributed.waits {
        if wait.asker.name.pid == pid && !own.contains(&wait.asker.name.tid) {
            let known = longest.entry(wait.asker.name.tid).or_insert(wait);
            if wait.ns > known.ns {
                *known = wait;
            }
        }
    }
    let waits = |wait: &&AttributedWait| {
        let rests = matches!(
            primitive(&wait.asker.stack),
            Some(Primitive::ThreadEnd | Primitive::Queue | Primitive::Condition | Primitive::BlockOn)
        ) && wait.cause == Cause::LockFutex;
        let most = wait.ns.saturating_mul(2) >= run.attributed.wall;
        // Who waits for a signal of the operating system rests, as a program's first thread does.
        !matches!(wait.cause, Cause::Idle | Cause::IpcSignal)
            && java_waits::waits_for_something(wait.cause)
            && most
            && !rests
    };
    longest.into_values().filter(waits).collect()
}

/// The threads of a process that stand in a wait for something outside of it, each by its longest wait; not for the end of another thread or process.
pub(super) fn outside<'a>(run: &'a Run<'_>, pid: u32) -> Vec<&'a AttributedWait> {
    let mut longest: BTreeMap<u32, &AttributedWait> = BTreeMap::new();
    for wait in run
        .attributed
        .waits
        .iter()
        .filter(|wait| wait.asker.name.pid == pid)
    {
        let known = longest.entry(wait.asker.name.tid).or_insert(wait);
        if wait.ns > known.ns {
            *known = wait;
        }
    }
    let stands = |wait: &&AttributedWait| {
        let inside = matches!(
            wait.cause,
            Cause::Idle | Cause::LockFutex | Cause::TimerSleep | Cause::Unknown
        );
        let own = java_waits::waits_for_something(wait.cause) && !inside;
        own && wait.open && wait.ns.saturating_mul(2) >= run.attributed.wall && has_frames(wait)
    };
    longest.into_values().filter(stands).collect()
}

/// Whether a thread sleeps again and again: it goes on each time, and is nobody whom others wait for.
pub(super) fn goes_round(wait: &AttributedWait) -> bool {
    wait.cause == Cause::TimerSleep && wait.count > 1
}

/// Whether code of the program is in the stack: what a virtual machine does for itself has none.
fn has_frames(wait: &AttributedWait) -> bool {
    chosen_frame(&wait.asker.stack).is_some()
}

/// Whether a thread is in the function in which others wait.
pub(super) fn is_within(wait: &AttributedWait, place: &Frame) -> bool {
    let same = |frame: &Frame| {
        frame.symbol.is_some()
            && (&frame.symbol, &frame.module, &frame.file) == (&place.symbol, &place.module, &place.file)
    };
    // The frames of who asked a library's thread are others'.
    wait.resource.detail.asks_for_threads.is_none() && wait.asker.stack.iter().any(same)
}

/// The thread of a library that waits for what these threads stand for in that library: for something outside of the process.
pub(super) fn asks_for<'a>(run: &Run<'a>, group: &Waits<'_>) -> Option<&'a AttributedWait> {
    let main = group.main();
    let place = chosen_frame(&main.asker.stack)?;
    let is_for = |wait: &&AttributedWait| {
        let asked = chosen_frame(&wait.asker.stack);
        wait.resource.detail.asks_for_threads.is_some()
            && wait.open
            && wait.asker.name.pid == main.asker.name.pid
            && asked.is_some_and(|asked| {
                (&asked.symbol, &asked.file, asked.line) == (&place.symbol, &place.file, place.line)
            })
    };
    run.attributed
        .waits
        .iter()
        .filter(is_for)
        .max_by_key(|wait| wait.ns)
}

/// The same for the end of a title: `; java/network waits for that, waiting for a network peer to send: 127.0.0.1:9092 (tcp)`.
pub(super) fn asks_for_words(run: &Run<'_>, group: &Waits<'_>) -> Option<String> {
    let wait = asks_for(run, group)?;
    let behind = run.waits(|one| std::ptr::eq(one, wait));
    let root = behind
        .as_ref()
        .and_then(root::of)
        .map_or_else(String::new, |root| root.stands());
    Some(format!(
        "; {} asks for that, {}{root}",
        other(&wait.asker.name),
        doing_with_peer(run, wait)
    ))
}

/// Part of the observed time on a CPU from which a thread does something all the time.
const BUSY_SHARE: f64 = 0.1;

/// Whether another thread of the process was on a CPU for a good part of the time: it may be the one that others wait for.
pub(super) fn is_busy(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let pid = group.main().asker.name.pid;
    let own: BTreeSet<u32> = group.iter().map(|wait| wait.asker.name.tid).collect();
    let mut on_cpu: BTreeMap<u32, Ns> = BTreeMap::new();
    for wait in &run.attributed.waits {
        let name = &wait.asker.name;
        if name.pid == pid && !own.contains(&name.tid) && wait.cause.on_cpu() {
            *on_cpu.entry(name.tid).or_default() += wait.ns;
        }
    }
    let enough = BUSY_SHARE * run.attributed.wall as f64;
    on_cpu.into_values().any(|ns| ns as f64 >= enough)
}

/// A thread beside others of its process, which mostly have the same name in C.
pub(super) fn other(name: &ThreadName) -> String {
    match name.thread == name.process || name.thread.is_empty() {
        true => format!("thread {}", name.tid),
        false => say::who(name),
    }
}

/// Whether a thread waits for the lock with which another one waits for the next item: threads of a pool take turns so at one receiver.
pub(super) fn receives_with_lock(run: &Run<'_>, wait: &AttributedWait) -> bool {
    let Some(place) = chosen_frame(&wait.asker.stack).filter(|_| rust::is_rust(&wait.asker.stack)) else {
        return false;
    };
    let receives = |other: &AttributedWait| {
        let here = chosen_frame(&other.asker.stack);
        other.asker.name.pid == wait.asker.name.pid
            && primitive(&other.asker.stack) == Some(Primitive::Queue)
            && here.is_some_and(|here| (&here.symbol, &here.file) == (&place.symbol, &place.file))
    };
    primitive(&wait.asker.stack) == Some(Primitive::Mutex) && run.attributed.waits.iter().any(receives)
}

/// What a thread waits for, and where: `waiting for a network peer to send in fetch (tables.cpp:14): 127.0.0.1:22514 (tcp)`, and who is at the
/// other end of that.
pub(super) fn doing(wait: &AttributedWait) -> String {
    // Where in a library an interpreted program waits says nothing to who reads it.
    let place = chosen_frame(&wait.asker.stack)
        .filter(|_| wait.resource.detail.asks_for_threads.is_none())
        .filter(|frame| matches!(frame.language, Language::Native | Language::Java) || is_applications(frame))
        .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
    let on = match wait.resource.name.as_str() {
        "" => String::new(),
        // A clock that it sleeps by is none to look at.
        _ if wait.cause == Cause::TimerSleep => String::new(),
        name => format!(": {name}"),
    };
    let holder = wait.holders.iter().find(|holder| holder.how_known.holds());
    let held = holder.map_or_else(String::new, |holder| {
        format!(", which {} has", say::who_with_pid(&holder.name))
    });
    format!("{}{place}{on}{held}", wait.cause.phrase())
}

/// The same with the process at the other end of a connection.
pub(super) fn doing_with_peer(run: &Run<'_>, wait: &AttributedWait) -> String {
    let peer = root::peer_beside(run, wait).map_or_else(String::new, |peer| format!(" of {peer}"));
    format!("{}{peer}", doing(wait))
}
