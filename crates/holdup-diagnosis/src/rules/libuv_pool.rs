//! libuv's pool of threads, in which Node and others have files, names and cryptography done: whether all of it is taken.
//!
//! In: waits with their stacks. Out: the waits that all threads of one process's pool were in at once. What is asked of the pool meanwhile
//! queues, however quick it is by itself; the queue is in the program's memory and has no thread, so that it is not seen.

use super::{Run, Waits, say};
use holdup_evidence::{Cause, Frame, Ns};
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::AttributedWait;
use std::collections::{BTreeMap, BTreeSet};

/// The name that newer versions of libuv give a thread of the pool.
const NAME: &str = "libuv-worker";

/// The file that libuv is in where it is a library by itself. It starts threads of its own for the pool alone: those that a program
/// starts through it run the program's functions.
const LIBRARY: &str = "libuv.so";

/// What a thread of the pool waits in for work.
const FOR_WORK: &str = "uv_cond_wait";

/// Begin and end of the functions that do what was asked of the pool: `uv__fs_work`, `uv__getaddrinfo_work`, and `uv__queue_work` for what
/// is not libuv's own.
const WORK: (&str, &str) = ("uv__", "_work");

/// Functions in which a thread begins before it runs its own, and the libraries that they are in.
const STARTS: &[&str] = &[
    "start_thread",
    "uv__thread_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
];
const C_LIBRARY: &[&str] = &["libc.so", "libpthread.so", "ld-musl"];

/// A pool whose threads were all taken.
pub(super) struct Full<'a> {
    /// What they were in.
    pub(super) waits: Waits<'a>,
    /// How many they are.
    pub(super) threads: usize,
    /// How long all were at once, nanoseconds.
    pub(super) both: Ns,
}

/// Names of what is waited for that a sentence has.
const NAMED_MAX: usize = 2;

/// For what all of these wait, where that is of one kind, as it follows "wait": `opening FIFOs that no process opens at the other end
/// (/run/a, /run/b and 2 others)`.
pub(super) fn awaited(waits: &Waits<'_>) -> Option<String> {
    let main = waits.main();
    if waits.iter().any(|wait| wait.cause != main.cause) {
        return None;
    }
    let opens = |wait: &AttributedWait| {
        wait.cause == Cause::IpcPipe && system_calls::is_named(wait.call.as_deref(), Kind::Opens)
    };
    let alone = waits.iter().all(|wait| wait.holders.is_empty());
    let what = match (waits.iter().all(opens), alone) {
        (true, true) => "opening FIFOs that no process opens at the other end",
        (true, false) => "opening FIFOs",
        (false, _) => main.cause.phrase(),
    };
    // Without a path the resource is the call.
    let names: BTreeSet<&str> = waits.iter().map(|wait| wait.resource.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| name.starts_with('/')).collect();
    let first = names[..names.len().min(NAMED_MAX)].join(", ");
    Some(match (names.len(), names.len().saturating_sub(NAMED_MAX)) {
        (0, _) => what.to_owned(),
        (_, 0) => format!("{what} ({first})"),
        (_, more) => format!("{what} ({first} and {})", say::several(more as u64, "other")),
    })
}

fn named(frame: &Frame, is: impl Fn(&str) -> bool) -> bool {
    frame.symbol.as_deref().is_some_and(is)
}

fn in_file(frame: &Frame, name: &str) -> bool {
    frame
        .module
        .as_deref()
        .is_some_and(|module| module.starts_with(name))
}

/// The frames below which a thread does what it was started for, outermost last: without those of the C library and of libuv's start.
fn own(stack: &[Frame]) -> &[Frame] {
    let starts = |frame: &Frame| {
        named(frame, |name| STARTS.contains(&name)) || C_LIBRARY.iter().any(|library| in_file(frame, library))
    };
    let outermost = stack.iter().rposition(|frame| !starts(frame));
    &stack[..outermost.map_or(0, |place| place + 1)]
}

fn waits_for_work(wait: &AttributedWait) -> bool {
    let stack = &wait.asker.stack;
    stack.iter().any(|frame| named(frame, |name| name == FOR_WORK))
}

/// Whether the thread was in the pool. Where libuv is part of the program and its thread has nothing to do, what it waits in is called by
/// the function that it was started with, and that is a function of C.
fn of_pool(wait: &AttributedWait) -> bool {
    let own = own(&wait.asker.stack);
    let works = |name: &str| name.starts_with(WORK.0) && name.ends_with(WORK.1);
    wait.asker.name.thread == NAME
        || own.iter().any(|frame| named(frame, works))
        || own.last().is_some_and(|first| in_file(first, LIBRARY))
        || matches!(own, [.., inner, first]
            if named(inner, |name| name == FOR_WORK) && !named(first, |name| name.contains("::")))
}

/// The pools that were full, of each process.
pub(super) fn full<'a>(run: &Run<'a>) -> Vec<Full<'a>> {
    let mut pools: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for wait in run.attributed.waits.iter().filter(|wait| of_pool(wait)) {
        let name = &wait.asker.name;
        pools.entry(name.pid).or_default().insert(name.tid);
    }
    let pools = pools.iter();
    pools.filter_map(|(pid, tids)| one(run, *pid, tids)).collect()
}

fn one<'a>(run: &Run<'a>, pid: u32, tids: &BTreeSet<u32>) -> Option<Full<'a>> {
    let works = |wait: &AttributedWait, tid: u32| {
        let name = &wait.asker.name;
        (name.pid, name.tid) == (pid, tid) && !wait.cause.on_cpu() && of_pool(wait) && !waits_for_work(wait)
    };
    let mut longest: Vec<&AttributedWait> = Vec::new();
    for tid in tids {
        let own = run.attributed.waits.iter().filter(|wait| works(wait, *tid));
        longest.push(own.max_by_key(|wait| wait.max)?);
    }
    let from = longest.iter().map(|wait| wait.max_started).max()?;
    let until = longest.iter().map(|wait| wait.max_ended).min()?;
    let waits = run.waits(|wait| longest.iter().any(|one| std::ptr::eq(*one, wait)))?;
    Some(Full {
        waits,
        threads: tids.len(),
        both: until.saturating_sub(from),
    })
}
