//! What tasks of tokio wait for, by types.
//!
//! In: the path of a type. Out: what it is. Paths are the library's own modules and names, as debug information has them: they have been the same
//! since tokio 1.0.

use serde::{Deserialize, Serialize};

/// Something that tasks share, and wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// The semaphore that each lock, semaphore and bounded channel has.
    Semaphore,
    /// Of `Notify`.
    Notify,
    /// What the two sides of a channel share.
    Channel,
    /// The head of a task.
    Task,
}

const SHARED: [(&str, Kind); 8] = [
    ("tokio::sync::batch_semaphore::Semaphore", Kind::Semaphore),
    ("tokio::sync::notify::Notify", Kind::Notify),
    ("tokio::sync::oneshot::Inner", Kind::Channel),
    ("tokio::sync::mpsc::chan::Chan", Kind::Channel),
    ("tokio::sync::watch::Shared", Kind::Channel),
    ("tokio::sync::broadcast::Shared", Kind::Channel),
    ("tokio::runtime::task::core::Header", Kind::Task),
    ("tokio::task::core::Header", Kind::Task),
];

/// What a type is that tasks wait for.
pub(super) fn shared(path: &str) -> Option<Kind> {
    SHARED.iter().find(|(of, _)| *of == path).map(|(_, kind)| *kind)
}

/// Where the two sides of channels and the guards of locks are defined, and what their types end with.
const SYNC: &str = "tokio::sync::";
const GUARD: [&str; 2] = ["Guard", "Permit"];
const RECEIVER: &str = "Receiver";
const SENDER: &str = "Sender";

/// What a variable has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A lock that was taken, or a place of a semaphore.
    Taken,
    /// The side of a channel that receives.
    Receives,
    /// The side that sends.
    Sends,
}

/// What a variable of this type has.
pub(super) fn side(path: &str) -> Option<Side> {
    let name = path.strip_prefix(SYNC)?.rsplit("::").next()?;
    if GUARD.iter().any(|end| name.ends_with(end)) {
        return Some(Side::Taken);
    }
    match () {
        () if name.ends_with(RECEIVER) => Some(Side::Receives),
        () if name.ends_with(SENDER) => Some(Side::Sends),
        () => None,
    }
}

/// The states of asynchronous functions and blocks, by a part of the last name.
const COROUTINE: &str = "{async_";
const STATE: &str = "_env#";

/// Whether a type is the state of an asynchronous function or block.
pub(super) fn is_coroutine(path: &str) -> bool {
    let name = path.rsplit("::").next().unwrap_or_default();
    name.starts_with(COROUTINE) && name.contains(STATE)
}

/// Futures of tokio that are no asynchronous functions, and end a chain of those.
const FUTURES: [&str; 9] = [
    TIMER,
    "tokio::sync::batch_semaphore::Acquire",
    "tokio::sync::notify::Notified",
    "tokio::sync::notify::OwnedNotified",
    "tokio::sync::oneshot::Receiver",
    "tokio::sync::barrier::BarrierWaitResult",
    "tokio::runtime::task::join::JoinHandle",
    "tokio::task::join::JoinHandle",
    "tokio::runtime::io::scheduled_io::Readiness",
];

/// The future of a timer.
const TIMER: &str = "tokio::time::sleep::Sleep";

/// Modules of futures that read and write: each of them is one.
const TRANSFERS: &str = "tokio::io::util::";

/// Whether a type is such a future.
pub(super) fn is_future(path: &str) -> bool {
    FUTURES.contains(&path)
}

/// Whether a type is a timer.
pub(super) fn is_timer(path: &str) -> bool {
    path == TIMER
}

/// Whether a future reads or writes.
pub(super) fn transfers(path: &str) -> bool {
    path.starts_with(TRANSFERS)
}

/// What the language's own types begin with, and those that tokio had before the language did: they say nothing of what is awaited.
const OF_LANGUAGE: [&str; 4] = ["core::", "alloc::", "std::", "tokio::future::"];

/// Whether a type is of the language.
pub(super) fn of_language(path: &str) -> bool {
    path.is_empty() || OF_LANGUAGE.iter().any(|begin| path.starts_with(begin))
}

/// Whether a type is the one that owns a descriptor: its module is another one by version.
pub(super) fn owns_descriptor(path: &str) -> bool {
    path.starts_with("std::") && path.ends_with("::OwnedFd")
}

/// Whether a type is of tokio.
pub(super) fn of_tokio(path: &str) -> bool {
    path.starts_with("tokio::") && !of_language(path)
}

/// Whether what is awaited is a lock, a channel, or the like.
pub(super) fn synchronises(reason: &str) -> bool {
    reason.starts_with(SYNC)
}

/// Whether the end of another task is awaited.
pub(super) fn joins(reason: &str) -> bool {
    JOINS.iter().any(|begin| reason.starts_with(begin))
}

/// Modules of futures that await the end of a task.
const JOINS: [&str; 2] = ["tokio::runtime::task::join::", "tokio::task::join"];

/// Modules of tokio whose functions wait for no descriptor.
const WITHIN: [&str; 4] = [
    "tokio::sync::",
    "tokio::time::",
    "tokio::task::",
    "tokio::runtime::task::",
];

/// Whether something is awaited that is within the process.
pub(super) fn is_within(reason: &str) -> bool {
    WITHIN.iter().any(|begin| reason.starts_with(begin))
}

/// A path without what stands for implementations and coroutines: `tokio::sync::mutex::lock`.
pub(super) fn plain(path: &str) -> String {
    let names = path.split("::").filter(|name| !name.starts_with('{'));
    names.collect::<Vec<_>>().join("::")
}
