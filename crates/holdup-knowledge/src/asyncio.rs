//! What the functions of Python's `asyncio` wait for.
//!
//! In: where a task stands, innermost frame first. Out: what it waits for, and whether it has no work. Coroutines have the name with which
//! they were defined, with the class.

use crate::python;
use holdup_evidence::{Cause, Frame};

/// Functions of the library, by file and name, in which a task waits, and what for.
const WAITS: [(&str, &str, Cause, &str, bool); 21] = [
    (
        "locks.py",
        "Lock.acquire",
        Cause::LockFutex,
        "an asyncio.Lock",
        true,
    ),
    (
        "locks.py",
        "Semaphore.acquire",
        Cause::LockFutex,
        "an asyncio.Semaphore",
        true,
    ),
    (
        "locks.py",
        "Condition.wait",
        Cause::LockFutex,
        "an asyncio.Condition",
        false,
    ),
    (
        "locks.py",
        "Event.wait",
        Cause::LockFutex,
        "an asyncio.Event",
        false,
    ),
    (
        "locks.py",
        "Barrier._wait",
        Cause::LockFutex,
        "an asyncio.Barrier",
        false,
    ),
    (
        "queues.py",
        "Queue.get",
        Cause::Idle,
        "work from an asyncio.Queue",
        false,
    ),
    (
        "queues.py",
        "Queue.put",
        Cause::LockFutex,
        "room in an asyncio.Queue",
        false,
    ),
    (
        "queues.py",
        "Queue.join",
        Cause::LockFutex,
        "all items of an asyncio.Queue to be done (join)",
        false,
    ),
    ("tasks.py", "sleep", Cause::TimerSleep, "a timer", false),
    ("tasks.py", "wait_for", Cause::LockFutex, "another task", false),
    ("tasks.py", "_wait", Cause::LockFutex, "other tasks", false),
    (
        "taskgroups.py",
        "TaskGroup.__aexit__",
        Cause::LockFutex,
        "other tasks",
        false,
    ),
    (
        "selector_events.py",
        "BaseSelectorEventLoop.sock_accept",
        Cause::Idle,
        "clients",
        false,
    ),
    (
        "selector_events.py",
        "BaseSelectorEventLoop.sock_connect",
        Cause::NetConnect,
        "descriptor",
        false,
    ),
    (
        "base_events.py",
        "BaseEventLoop.getaddrinfo",
        Cause::NetDns,
        "a name, in another thread",
        false,
    ),
    (
        "base_events.py",
        "Server.serve_forever",
        Cause::Idle,
        "clients",
        false,
    ),
    (
        "base_events.py",
        "Server.wait_closed",
        Cause::Idle,
        "its end",
        false,
    ),
    (
        "base_subprocess.py",
        "BaseSubprocessTransport._wait",
        Cause::ProcessChild,
        "a child",
        false,
    ),
    (
        "threads.py",
        "to_thread",
        Cause::LockFutex,
        "a function in another thread",
        false,
    ),
    (
        "streams.py",
        DRAINS,
        Cause::NetSend,
        "room to send on descriptor",
        false,
    ),
    (
        "streams.py",
        "StreamReader._wait_for_data",
        Cause::PollWait,
        "descriptor",
        false,
    ),
];

/// Functions that wait by means of those of an event or a condition, and say more.
const BY_MEANS: [&str; 2] = ["Queue.join", "Barrier._wait"];
const MEANS: [&str; 3] = ["Event.wait", "Condition.wait", "Condition.wait_for"];

/// The method of a stream's protocol that waits until the other end has read some of what was sent.
pub const DRAINS: &str = "FlowControlMixin._drain_helper";

/// Files of the library are in this folder.
const FOLDER: &str = "asyncio";

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The cause.
    pub cause: Cause,
    /// What a report calls it.
    pub what: Option<&'static str>,
    /// Whether that is a lock, which another task has.
    pub lock: bool,
}

/// What a task waits for that stands here. `for_task`, `for_descriptor`: whether it is known to wait for another task, or for a descriptor.
#[must_use]
pub fn wait(stack: &[Frame], for_task: bool, for_descriptor: bool) -> Wait {
    let symbol = |frame: &Frame| frame.symbol.clone().unwrap_or_default();
    let is = |frame: &Frame, names: &[&str]| names.contains(&symbol(frame).as_str());
    let mut callers = stack.iter().skip_while(|frame| is(frame, &MEANS));
    let by_means = callers.next().filter(|frame| is(frame, &BY_MEANS));
    let known = by_means.or(stack.first()).and_then(in_library);
    let wait = |cause, what, lock| Wait {
        cause,
        what: Some(what),
        lock,
    };
    match known {
        Some((.., cause, what, lock)) if *cause != Cause::PollWait || !for_task => wait(*cause, *what, *lock),
        _ if for_task => wait(Cause::LockFutex, "another task", false),
        _ if for_descriptor => wait(Cause::PollWait, "descriptor", false),
        // Somebody is to set its result: who, nothing says.
        _ => wait(Cause::LockFutex, "a future", false),
    }
}

/// What another task or thread does, and a task awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Given {
    /// It sets an event.
    Signal,
    /// It sets a future that the program awaits itself.
    Result,
    /// It puts something into a queue, which may be work.
    Item,
    /// It takes something from a full queue, has done what was in one, comes to a barrier, or tells of a change.
    Other,
    /// A thread returns from a function.
    Return,
}

/// What a task awaits that another task or thread has to do; `None` where that is a task, a lock or a descriptor, or where the library waits for
/// something of its own.
#[must_use]
pub fn given(stack: &[Frame]) -> Option<Given> {
    let innermost = stack.first()?;
    innermost.file.as_ref()?;
    if !python::is_of_library(innermost) {
        return Some(Given::Result);
    }
    in_library(innermost)?;
    let calls = |name: &str| stack.iter().any(|frame| frame.symbol.as_deref() == Some(name));
    let by_means = BY_MEANS.into_iter().any(calls);
    match innermost.symbol.as_deref()? {
        "Event.wait" if !by_means => Some(Given::Signal),
        "Queue.get" => Some(Given::Item),
        "Event.wait" | "Condition.wait" | "Barrier._wait" | "Queue.put" => Some(Given::Other),
        "to_thread" => Some(Given::Return),
        _ => None,
    }
}

/// Whether a task waits for room in a queue.
#[must_use]
pub fn puts(stack: &[Frame]) -> bool {
    let innermost = stack.first().filter(|frame| in_library(frame).is_some());
    innermost.is_some_and(|frame| frame.symbol.as_deref() == Some("Queue.put"))
}

/// Whether a task waits for the work of a queue to be done.
#[must_use]
pub fn joins(stack: &[Frame]) -> bool {
    let library = stack.iter().take_while(|frame| in_library(frame).is_some());
    library
        .last()
        .is_some_and(|frame| frame.symbol.as_deref() == Some("Queue.join"))
}

/// What a function of the library waits for.
fn in_library(frame: &Frame) -> Option<&'static (&'static str, &'static str, Cause, &'static str, bool)> {
    let (file, folder) = {
        let mut parts = frame.file.as_deref()?.rsplit('/');
        (parts.next()?, parts.next())
    };
    let symbol = frame.symbol.as_deref()?;
    let is = |(of_file, name, ..): &&(&str, &str, Cause, &str, bool)| *of_file == file && *name == symbol;
    WAITS.iter().find(is).filter(|_| folder == Some(FOLDER))
}

/// Folders of installed packages end so.
const PACKAGES: &str = "-packages/";

/// Part of the names of classes that let so many in at a time; others lend connections.
const LIMITER: &str = "Limiter";

/// What a task waits for that stands here, in a method of a pool of this class.
#[must_use]
pub fn lent(class: &str, stack: &[Frame]) -> String {
    let what = if class.contains(LIMITER) {
        "a turn"
    } else {
        "a free connection"
    };
    let package = stack.iter().find_map(|frame| {
        let (_, within) = frame.file.as_deref()?.rsplit_once(PACKAGES)?;
        let (package, _) = within.split_once('/')?;
        Some(package)
    });
    match package {
        Some(package) => format!("{what} of {package}'s {class}"),
        None => format!("{what} of a {class}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{DRAINS, Given, given, lent, wait};
    use holdup_evidence::{Cause, Frame};

    fn frame(file: &str, symbol: &str) -> Frame {
        Frame {
            symbol: Some(symbol.to_owned()),
            file: Some(file.to_owned()),
            ..Frame::default()
        }
    }

    #[test]
    fn the_innermost_function_of_the_library_says_what_a_task_waits_for() {
        let library = |file: &str, symbol: &str| {
            let stack = [frame(&format!("/usr/lib/python3.11/asyncio/{file}"), symbol)];
            let wait = wait(&stack, false, false);
            (wait.cause, wait.what.unwrap(), wait.lock)
        };
        assert_eq!(
            library("locks.py", "Lock.acquire"),
            (Cause::LockFutex, "an asyncio.Lock", true)
        );
        assert_eq!(library("tasks.py", "sleep").0, Cause::TimerSleep);
        let event = frame("/usr/lib/python3.11/asyncio/locks.py", "Event.wait");
        let join = frame("/usr/lib/python3.11/asyncio/queues.py", "Queue.join");
        assert_eq!(given(std::slice::from_ref(&event)), Some(Given::Signal));
        assert_eq!(given(&[event, join]), Some(Given::Other));
        assert_eq!(given(&[frame("/srv/shop.py", "need")]), Some(Given::Result));
        assert_eq!(
            given(&[frame("/usr/lib/python3.11/asyncio/tasks.py", "sleep")]),
            None
        );
        assert_eq!(library("queues.py", "Queue.get").0, Cause::Idle);
        assert_eq!(library("tasks.py", "other").1, "a future");
        assert_eq!(library("streams.py", DRAINS).0, Cause::NetSend);
        let joins = [("locks.py", "Event.wait"), ("queues.py", "Queue.join")]
            .map(|(file, symbol)| frame(&format!("/usr/lib/python3.11/asyncio/{file}"), symbol));
        assert_eq!(
            wait(&joins, false, false).what,
            Some("all items of an asyncio.Queue to be done (join)")
        );
        let own = [frame("/srv/tasks.py", "sleep")];
        assert_eq!(wait(&own, false, false).cause, Cause::LockFutex);
        assert_eq!(wait(&own, true, false).what, Some("another task"));
        assert_eq!(wait(&own, false, true).cause, Cause::PollWait);
        assert_eq!(wait(&[], false, false).what, Some("a future"));
    }
    #[test]
    fn what_a_pool_lends_is_named_with_the_package_and_the_class() {
        let installed = [frame(
            "/usr/lib/python3/dist-packages/aiohttp/connector.py",
            "BaseConnector.connect",
        )];
        assert_eq!(
            lent("TCPConnector", &installed),
            "a free connection of aiohttp's TCPConnector"
        );
        let own = [frame("/srv/desk.py", "DeskPool.take")];
        assert_eq!(lent("DeskPool", &own), "a free connection of a DeskPool");
        assert_eq!(lent("CapacityLimiter", &own), "a turn of a CapacityLimiter");
    }
}
