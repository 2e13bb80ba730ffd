//! libuv's pool of threads, in which Node and others have files, names and cryptography done: whether all of it is taken.
//!
//! In: waits with their stacks. Out: the waits that all threads of one process's pool were in at once. What is asked of the pool meanwhile
//! queues, however quick it is by itself; the queue is in the program's memory and has no thread, so that it is not seen.

use super::Run;
use super::full_pool::{self, Full};
use holdup_evidence::Frame;
use holdup_model::attributed::AttributedWait;

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

/// The pools of libuv that were full, of each process.
pub(super) fn full<'a>(run: &Run<'a>) -> Vec<Full<'a>> {
    full_pool::full(run, of_pool, waits_for_work)
}
