//! What tasks of tokio wait for.
//!
//! In: the function or future of tokio that a task awaits, as `tokio::sync::mutex::lock`: the module, and the name without the type in between. Out: the
//! cause, in words what it is, and whether other tasks have it. Modules and names are those of tokio 1.0 to 1.54.

use holdup_evidence::Cause;

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The cause.
    pub cause: Cause,
    /// What it is; `None` where only its path says that.
    pub what: Option<&'static str>,
    /// Whether it is a lock that another task has.
    pub lock: bool,
    /// Whether it is a place among so many, which other tasks have.
    pub pool: bool,
    /// Whether it waits for room to send.
    pub sends: bool,
}

/// Which kind of wait: only the first two are of something that others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Lock,
    Place,
    Room,
    Other,
}

type Row = (&'static [&'static str], Cause, &'static str, Of);

/// By what a path begins with. Of several that fit the first counts.
const ROWS: [Row; 20] = [
    (
        &[
            "tokio::sync::mutex::lock",
            "tokio::sync::mutex::acquire",
            "tokio::sync::mutex::Mutex",
        ],
        Cause::LockFutex,
        "a tokio Mutex",
        Of::Lock,
    ),
    (
        &["tokio::sync::rwlock::"],
        Cause::LockFutex,
        "a tokio RwLock",
        Of::Lock,
    ),
    (
        &["tokio::sync::semaphore::", "tokio::sync::batch_semaphore::"],
        Cause::LockFutex,
        "a place of a tokio Semaphore",
        Of::Place,
    ),
    (
        &[
            "tokio::sync::mpsc::bounded::send",
            "tokio::sync::mpsc::bounded::reserve",
        ],
        Cause::LockFutex,
        "room in a channel",
        Of::Room,
    ),
    // Who receives from a channel of many values is a worker: an empty one is no work.
    (
        &[
            "tokio::sync::mpsc::",
            "tokio::sync::broadcast::",
            "tokio_stream::wrappers::",
        ],
        Cause::Idle,
        "a value of a channel",
        Of::Other,
    ),
    (
        &["tokio::sync::oneshot::"],
        Cause::LockFutex,
        "an answer on a oneshot channel",
        Of::Other,
    ),
    (
        &["tokio::sync::notify::"],
        Cause::LockFutex,
        "a Notify",
        Of::Other,
    ),
    (
        &["tokio::sync::watch::"],
        Cause::LockFutex,
        "a change of a watched value",
        Of::Other,
    ),
    (
        &["tokio::sync::barrier::"],
        Cause::LockFutex,
        "a Barrier",
        Of::Other,
    ),
    (
        &["tokio::sync::once_cell::", "tokio::sync::set_once::"],
        Cause::LockFutex,
        "a value that is set once",
        Of::Other,
    ),
    (
        &["tokio_util::sync::cancellation_token::"],
        Cause::Idle,
        "a cancellation",
        Of::Other,
    ),
    (
        &["tokio::time::interval::"],
        Cause::Idle,
        "a timer that repeats",
        Of::Other,
    ),
    (&["tokio::time::"], Cause::TimerSleep, "a timer", Of::Other),
    (
        &[
            "tokio::runtime::task::join::",
            "tokio::task::join",
            "tokio::runtime::blocking::",
        ],
        Cause::LockFutex,
        "the end of another task",
        Of::Other,
    ),
    (&["tokio::task::"], Cause::LockFutex, "another task", Of::Other),
    (&["tokio::signal::"], Cause::Idle, "a signal", Of::Other),
    (
        &["tokio::net::tcp::listener::", "tokio::net::unix::listener::"],
        Cause::Idle,
        "a client",
        Of::Other,
    ),
    (
        &[
            "tokio::net::tcp::stream::connect",
            "tokio::net::tcp::socket::connect",
            "tokio::net::unix::stream::connect",
        ],
        Cause::NetConnect,
        "a connection",
        Of::Other,
    ),
    (&["tokio::process::"], Cause::ProcessChild, "a child", Of::Other),
    (
        &["tokio::net::", "tokio::io::", "tokio::runtime::io::"],
        Cause::PollWait,
        "a descriptor",
        Of::Other,
    ),
];

/// What a task waits for that awaits this. `for_descriptor`: whether it is known to await a descriptor.
#[must_use]
pub fn wait(awaited: Option<&str>, for_descriptor: bool) -> Wait {
    let plain = |cause, what| Wait {
        cause,
        what,
        lock: false,
        pool: false,
        sends: false,
    };
    let fits = |row: &&Row| {
        let mut begins = row.0.iter();
        awaited.is_some_and(|path| begins.any(|begin| path.starts_with(begin)))
    };
    match ROWS.iter().find(fits) {
        Some((_, cause, what, of)) => Wait {
            lock: *of == Of::Lock,
            pool: *of == Of::Place,
            sends: *of == Of::Room,
            ..plain(*cause, Some(*what))
        },
        None if for_descriptor => plain(Cause::PollWait, Some("a descriptor")),
        None => plain(Cause::Unknown, None),
    }
}

#[cfg(test)]
mod tests {
    use super::wait;
    use holdup_evidence::Cause;

    #[test]
    fn locks_places_and_room_are_told_from_what_nobody_has() {
        let of = |path| {
            let wait = wait(Some(path), false);
            (wait.cause, wait.lock, wait.pool, wait.sends)
        };
        assert_eq!(
            of("tokio::sync::mutex::lock"),
            (Cause::LockFutex, true, false, false)
        );
        assert_eq!(
            of("tokio::sync::rwlock::write"),
            (Cause::LockFutex, true, false, false)
        );
        assert_eq!(
            of("tokio::sync::semaphore::acquire"),
            (Cause::LockFutex, false, true, false)
        );
        assert_eq!(
            of("tokio::sync::mpsc::bounded::send"),
            (Cause::LockFutex, false, false, true)
        );
        assert_eq!(
            of("tokio::sync::mpsc::bounded::recv"),
            (Cause::Idle, false, false, false)
        );
        assert_eq!(of("tokio::time::sleep::Sleep").0, Cause::TimerSleep);
        assert_eq!(of("tokio::net::tcp::listener::accept").0, Cause::Idle);
        assert_eq!(of("tokio::net::tcp::stream::connect").0, Cause::NetConnect);
    }

    #[test]
    fn what_is_not_known_is_unknown_unless_there_is_a_descriptor() {
        assert_eq!(wait(Some("hyper::client::Send"), false).cause, Cause::Unknown);
        assert_eq!(wait(Some("hyper::client::Send"), true).cause, Cause::PollWait);
        assert_eq!(wait(None, false).what, None);
    }
}
