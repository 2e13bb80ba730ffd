//! What a thread of a Python program does, by its Python frames.
//!
//! In: `function(path:line)`, innermost first, and whether the dump says that it is idle. Out: what it waits for. What the
//! interpreter's own code in C waits for (a lock, a socket's `recv`) has no frame, so that the program's line is all there is.

use super::Doing;
use holdup_evidence::Cause;
use holdup_evidence::observed::{SeenThread, State};

/// Functions of the standard library and of drivers that wait, by name and file, and what for.
const WAITS: &[(&str, &str, Doing)] = &[
    ("_worker", "concurrent/futures/thread.py", Doing::Idle),
    ("worker", "multiprocessing/pool.py", Doing::Idle),
    ("accept", "socket.py", Doing::Idle),
    ("serve_forever", "socketserver.py", Doing::Idle),
    ("select", "selectors.py", Doing::WaitsUnknown),
    ("_run_once", "asyncio/base_events.py", Doing::Idle),
    ("readinto", "socket.py", Doing::Waits(Cause::NetReceive)),
    ("getaddrinfo", "socket.py", Doing::Waits(Cause::NetDns)),
    ("getfqdn", "socket.py", Doing::Waits(Cause::NetDns)),
    ("create_connection", "socket.py", Doing::Waits(Cause::NetConnect)),
    ("do_handshake", "ssl.py", Doing::Waits(Cause::NetTls)),
    ("read", "ssl.py", Doing::Waits(Cause::NetReceive)),
    ("recv", "ssl.py", Doing::Waits(Cause::NetReceive)),
    ("recv_into", "ssl.py", Doing::Waits(Cause::NetReceive)),
    ("send", "ssl.py", Doing::Waits(Cause::NetSend)),
    ("_try_wait", "subprocess.py", Doing::Waits(Cause::ProcessChild)),
    ("_wait", "subprocess.py", Doing::Waits(Cause::ProcessChild)),
    ("wait", "subprocess.py", Doing::Waits(Cause::ProcessChild)),
    ("_communicate", "subprocess.py", Doing::Waits(Cause::IpcPipe)),
    ("result", "concurrent/futures/_base.py", Doing::WaitsForTask),
    ("wait", "concurrent/futures/_base.py", Doing::WaitsForTask),
    ("as_completed", "concurrent/futures/_base.py", Doing::WaitsForTask),
    ("_wait_for_tstate_lock", "threading.py", Doing::WaitsForTask),
    ("join", "threading.py", Doing::WaitsForTask),
    ("do_get", "sqlalchemy/pool", Doing::WaitsForPool),
    ("_do_get", "sqlalchemy/pool", Doing::WaitsForPool),
    ("_get_conn", "urllib3/connectionpool.py", Doing::WaitsForPool),
    ("getconn", "psycopg_pool/pool.py", Doing::WaitsForPool),
    ("get_connection", "redis/connection.py", Doing::WaitsForPool),
    (
        "_read_bytes",
        "pymysql/connections.py",
        Doing::Waits(Cause::NetReceive),
    ),
    ("wait", "psycopg/waiting.py", Doing::Waits(Cause::NetReceive)),
];

/// Parts of the paths of the standard library and of installed packages.
const LIBRARY: &[&str] = &[
    "/lib/python3",
    "site-packages/",
    "dist-packages/",
    "<frozen ",
    "lib/python2",
];

/// What a thread does.
pub(super) fn of(thread: &SeenThread, frames: &[&str]) -> Doing {
    if frames.is_empty() {
        return Doing::Unknown;
    }
    // Running is said only by dumps that looked.
    if thread.state == State::Runnable {
        return Doing::Runs;
    }
    let library = frames.iter().take_while(|frame| of_library(frame));
    // The outermost that says something: a pool's `get` stands on a condition's `wait`.
    let found = library.filter_map(|frame| known(frame)).last();
    found.unwrap_or(match thread.state {
        State::Waiting => Doing::WaitsUnknown,
        _ => Doing::Unknown,
    })
}

fn known(frame: &str) -> Option<Doing> {
    let (name, file) = parts(frame);
    // Some dumps have a path's last part alone.
    let of = |(function, path, _): &&(&str, &str, Doing)| {
        *function == name && (file.contains(path) || path.rsplit('/').next() == Some(file))
    };
    WAITS.iter().find(of).map(|(.., doing)| *doing)
}

/// A frame's function, without its class, and its file.
fn parts(frame: &str) -> (&str, &str) {
    let (name, place) = frame.split_once('(').unwrap_or((frame, ""));
    let name = name.rsplit('.').next().unwrap_or(name);
    (name, place.rsplit_once(':').map_or(place, |(file, _)| file))
}

/// Whether a frame is of the standard library or of an installed package. Dumps that shorten paths leave names of known files only.
pub(super) fn of_library(frame: &str) -> bool {
    let (_, file) = parts(frame);
    // A function of the interpreter's own has a type and no line: `acquire(_thread.lock)`.
    let place = frame.split_once('(').map_or("", |(_, place)| place);
    let built_in = !place.is_empty() && !place.contains(':') && !file.contains(".py");
    built_in
        || LIBRARY.iter().any(|part| file.contains(part))
        || known(frame).is_some()
        || SHORTENED.contains(&file)
}

/// Files of the standard library in whose functions threads begin and wait, as py-spy shortens their paths.
const SHORTENED: &[&str] = &[
    "threading.py",
    "thread.py",
    "_base.py",
    "base_events.py",
    "popen_fork.py",
    "queue.py",
    "socket.py",
    "ssl.py",
    "selectors.py",
    "subprocess.py",
    "socketserver.py",
    "concurrent/futures/thread.py",
    "concurrent/futures/_base.py",
    "asyncio/base_events.py",
    "asyncio/runners.py",
    "multiprocessing/pool.py",
    "multiprocessing/process.py",
    "multiprocessing/connection.py",
    "multiprocessing/popen_fork.py",
    "http/client.py",
    "http/server.py",
    "urllib/request.py",
    "logging/__init__.py",
    "runpy.py",
];

#[cfg(test)]
mod tests {
    use crate::dumps::doing::{Doing, of_state};
    use holdup_evidence::Cause;
    use holdup_evidence::observed::{SnapshotKind, State};

    fn doing(state: State, frames: &[&str]) -> Doing {
        of_state(SnapshotKind::Python, state, frames)
    }

    #[test]
    fn a_worker_without_a_task_is_idle_and_one_with_a_task_waits_where_that_says() {
        let worker = [
            "_worker(concurrent/futures/thread.py:81)",
            "Thread.run(threading.py:982)",
        ];
        assert_eq!(doing(State::Waiting, &worker), Doing::Idle);
        let pays = [
            "pay(app.py:10)",
            "_WorkItem.run(concurrent/futures/thread.py:58)",
            worker[0],
        ];
        assert_eq!(doing(State::Waiting, &pays), Doing::WaitsUnknown);
        assert_eq!(doing(State::Unknown, &pays), Doing::Unknown);
        assert_eq!(doing(State::Runnable, &pays), Doing::Runs);
    }

    #[test]
    fn paths_may_be_shortened_to_their_last_part() {
        let result = [
            "wait(threading.py:295)",
            "result(_base.py:427)",
            "snapshot(app.py:25)",
        ];
        assert_eq!(doing(State::Waiting, &result), Doing::WaitsForTask);
        let worker = [
            "wait(threading.py:295)",
            "get(queue.py:164)",
            "_worker(thread.py:67)",
        ];
        assert_eq!(doing(State::Waiting, &worker), Doing::Idle);
    }

    #[test]
    fn a_function_of_the_interpreter_stands_before_the_library_s() {
        let joins = [
            "acquire(_thread.lock)",
            "_wait_for_tstate_lock(/usr/lib/python3.6/threading.py:1072)",
            "join(/usr/lib/python3.6/threading.py:1056)",
            "main(app.py:3)",
        ];
        assert_eq!(doing(State::Unknown, &joins), Doing::WaitsForTask);
        assert_eq!(doing(State::Unknown, &[joins[0], joins[3]]), Doing::Unknown);
    }

    #[test]
    fn the_library_s_function_tells_what_it_waits_for() {
        let child = [
            "Popen._try_wait(subprocess.py:2004)",
            "Popen.wait(subprocess.py:1264)",
            "backup(app.py:22)",
        ];
        assert_eq!(doing(State::Waiting, &child), Doing::Waits(Cause::ProcessChild));
        let result = [
            "Condition.wait(threading.py:327)",
            "Future.result(concurrent/futures/_base.py:451)",
            "<module>(app.py:25)",
        ];
        assert_eq!(doing(State::Waiting, &result), Doing::WaitsForTask);
        let names = ["getaddrinfo(/usr/lib/python3.11/socket.py:962)", "ask(app.py:23)"];
        assert_eq!(doing(State::Unknown, &names), Doing::Waits(Cause::NetDns));
    }
}
