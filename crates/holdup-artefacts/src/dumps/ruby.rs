//! What a thread of a Ruby program does, by its frames.
//!
//! In: `method(path:line)`, innermost first; a method that is written in C has the place of its caller. Out: what it waits for.

use super::Doing;
use holdup_evidence::Cause;
use holdup_knowledge::ruby as names;

/// Methods that wait, by name and a part of the path where it is needed, and what for.
const WAITS: &[(&str, &str, Doing)] = &[
    ("synchronize", "", Doing::Waits(Cause::LockFutex)),
    ("lock", "", Doing::Waits(Cause::LockFutex)),
    ("mon_enter", "", Doing::Waits(Cause::LockFutex)),
    ("mon_synchronize", "", Doing::Waits(Cause::LockFutex)),
    ("sleep", "", Doing::Waits(Cause::TimerSleep)),
    ("join", "", Doing::WaitsForTask),
    ("value", "", Doing::WaitsForTask),
    ("wait", "", Doing::WaitsUnknown),
    ("pop", "", Doing::WaitsUnknown),
    ("shift", "", Doing::WaitsUnknown),
    ("select", "", Doing::WaitsUnknown),
    ("wait_readable", "", Doing::Waits(Cause::NetReceive)),
    ("wait_writable", "", Doing::Waits(Cause::NetSend)),
    ("rbuf_fill", "", Doing::Waits(Cause::NetReceive)),
    ("readpartial", "", Doing::Waits(Cause::NetReceive)),
    ("read_nonblock", "", Doing::Waits(Cause::NetReceive)),
    ("sysread", "", Doing::Waits(Cause::NetReceive)),
    ("exec_params", "", Doing::Waits(Cause::NetReceive)),
    ("exec_prepared", "", Doing::Waits(Cause::NetReceive)),
    ("async_exec", "", Doing::Waits(Cause::NetReceive)),
    ("_query", "mysql2", Doing::Waits(Cause::NetReceive)),
    ("connect_nonblock", "", Doing::Waits(Cause::NetConnect)),
    ("tcp", "socket", Doing::Waits(Cause::NetConnect)),
    ("getaddrinfo", "", Doing::Waits(Cause::NetDns)),
    ("foreach", "addrinfo", Doing::Waits(Cause::NetDns)),
    ("ssl_socket_connect", "", Doing::Waits(Cause::NetTls)),
    ("waitpid", "", Doing::Waits(Cause::ProcessChild)),
    ("wait2", "", Doing::Waits(Cause::ProcessChild)),
    ("system", "", Doing::Waits(Cause::ProcessChild)),
    ("flock", "", Doing::Waits(Cause::LockFile)),
    ("fsync", "", Doing::Waits(Cause::DiskSync)),
    ("wait_poll", "connection_pool", Doing::WaitsForPool),
    ("internal_poll", "connection_pool", Doing::WaitsForPool),
    ("accept", "", Doing::Idle),
    ("brpop", "", Doing::Idle),
    ("start_heartbeat", "sidekiq", Doing::Idle),
    ("run_internal", "puma/reactor", Doing::Idle),
];

/// What a thread does.
pub(super) fn of(frames: &[&str]) -> Doing {
    let Some(first) = frames.first() else {
        return Doing::Unknown;
    };
    // The innermost waits, unless one of the library around it says for what.
    let outer = frames.iter().skip(1).take_while(|frame| of_library(frame));
    let innermost = known(first);
    let says = |doing: &Doing| !matches!(doing, Doing::WaitsUnknown | Doing::Waits(Cause::LockFutex));
    let found = outer.filter_map(|frame| known(frame)).filter(says).last();
    let program = frames.iter().any(|frame| !of_library(frame));
    match (innermost, found) {
        (None, None) => Doing::Runs,
        // Workers without work: nothing of the program is in their stack.
        (Some(Doing::WaitsUnknown | Doing::Waits(Cause::TimerSleep)), None) if !program => Doing::Idle,
        (Some(doing), None) => doing,
        (_, Some(found)) => found,
    }
}

/// A frame's method, without its class and without `block in`, and its path.
fn parts(frame: &str) -> (&str, &str) {
    let (name, place) = frame.split_once('(').unwrap_or((frame, ""));
    let name = name.rsplit([' ', '#', '.']).next().unwrap_or(name);
    let path = place.rsplit_once(':').map_or(place, |(path, _)| path);
    (name, path)
}

fn known(frame: &str) -> Option<Doing> {
    let (name, path) = parts(frame);
    let of = |(method, part, _): &&(&str, &str, Doing)| *method == name && path.contains(part);
    WAITS.iter().find(of).map(|(.., doing)| *doing)
}

/// Whether a frame is Ruby's, its standard library's or an installed gem's.
pub(super) fn of_library(frame: &str) -> bool {
    names::of_library(parts(frame).1)
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::dumps::Doing;
    use holdup_evidence::Cause;

    #[test]
    fn the_library_around_the_innermost_says_what_for() {
        let answer = [
            "wait_readable(/usr/lib/ruby/2.6.0/net/protocol.rb:217)",
            "rbuf_fill(/usr/lib/ruby/2.6.0/net/protocol.rb:217)",
            "perform(/app/jobs/sync.rb:22)",
        ];
        assert_eq!(of(&answer), Doing::Waits(Cause::NetReceive));
        let pool = [
            "wait(/usr/lib/ruby/2.6.0/monitor.rb:111)",
            "wait_poll(/gems/activerecord-5.2.0/lib/active_record/connection_pool.rb:190)",
            "index(/app/controllers/a.rb:2)",
        ];
        assert_eq!(of(&pool), Doing::WaitsForPool);
        let idle = [
            "wait(/gems/puma-5.0.0/lib/puma/thread_pool.rb:100)",
            "block in spawn_thread(/gems/puma-5.0.0/lib/puma/thread_pool.rb:110)",
        ];
        assert_eq!(of(&idle), Doing::Idle);
        assert_eq!(
            of(&["synchronize(/app/a.rb:7)", "work(/app/a.rb:3)"]),
            Doing::Waits(Cause::LockFutex)
        );
        assert_eq!(of(&["compute(/app/a.rb:7)"]), Doing::Runs);
    }
}
