//! Waits that only a user stack can tell: the locks that an interpreter or a runtime makes of futexes.
//!
//! In: the cause that the kernel's side of a wait showed, its call, and the user stack that asked. Out: the cause that
//! takes its place, and what is waited for, where the stack proves it. A wait for such a lock may run out of time and
//! be tried again, as Python's does every 5 ms: it is then no sleep, but the same wait.

use super::objects::named;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::handlers::has_request;
use holdup_knowledge::rust::{self, TokioPark};
use holdup_knowledge::system_calls::Kind as Does;
use holdup_knowledge::user_code::Primitive;
use holdup_knowledge::{pools, python, system_calls, user_code};
use holdup_model::attributed::{Common, DatabaseServer, Resource, ResourceKind};

/// What a wait was for by the stack that asked; `None` where the stack says no more than the kernel did.
#[must_use]
pub fn by_user_stack(cause: Cause, call: Option<&str>, stack: &[Frame]) -> Option<(Cause, Resource)> {
    // A session is woken by a signal to itself, which it awaits with epoll, or in older servers by a pipe of its own.
    let awaits_signal = matches!(
        cause,
        Cause::IpcQueue | Cause::IpcPipe | Cause::PollWait | Cause::TimerSleep
    );
    if awaits_signal && let Some(what) = user_code::postgres_lock(stack) {
        let resource = of_database(DatabaseServer::Postgresql, what);
        return Some((Cause::LockFutex, resource.in_call(call.unwrap_or("epoll_wait"))));
    }
    // Beside its client or its signal it listens for the end of its server, which says nothing of what it waits for; and of a Unix
    // socket that was accepted the kernel may name the one that listens as its other end.
    if (awaits_signal || cause == Cause::IpcUnix) && user_code::postgres_sends(stack) {
        let resource = Resource::of(Common::SessionsClient).in_call(call.unwrap_or("epoll_wait"));
        return Some((Cause::NetSend, resource));
    }
    if awaits_signal && user_code::postgres_awaits_standby(stack) {
        let resource = Resource::of(Common::Standby).in_call(call.unwrap_or("epoll_wait"));
        return Some((Cause::NetReceive, resource));
    }
    let futex = system_calls::is_named(call, Does::WaitsForFutex);
    if futex && matches!(cause, Cause::LockFutex) && user_code::postgres_latch(stack) {
        let resource = named(ResourceKind::Lock, "a lock in PostgreSQL's own memory");
        return Some((Cause::LockFutex, resource.in_call(call.unwrap_or("futex"))));
    }
    // A thread that is at work on a client's command does not wait for work, whatever it is parked on.
    if futex
        && matches!(cause, Cause::LockFutex | Cause::TimerSleep | Cause::Idle)
        && user_code::mysql::works(stack)
    {
        let call = call.unwrap_or("futex");
        if user_code::mysql::sleeps(stack) {
            let resource = named(ResourceKind::Name, "SLEEP() of a statement");
            return Some((Cause::TimerSleep, resource.in_call(call)));
        }
        let resource = match user_code::mysql::lock(stack) {
            Some(what) => of_database(DatabaseServer::Mysql, what),
            None => named(
                ResourceKind::Name,
                "another thread of the server, within a statement",
            ),
        };
        return Some((Cause::LockFutex, resource.in_call(call)));
    }
    if let Some(listed) = super::java::of_stack(cause, call, stack) {
        return Some(listed);
    }
    if let Some(listed) = super::go::of_stack(cause, call, stack) {
        return Some(listed);
    }
    if let Some(listed) = super::node::of_stack(cause, call, stack) {
        return Some(listed);
    }
    // Who has a request in hand and wants a connection for it does not wait for work, whatever it is parked on.
    let parked = matches!(
        cause,
        Cause::LockFutex | Cause::TimerSleep | Cause::Idle | Cause::IpcQueue
    );
    if parked && pools::waits(stack) {
        let resource = Resource::of(Common::PooledConnection);
        return Some((Cause::LockFutex, resource.in_call(call.unwrap_or("futex"))));
    }
    if let Some(listed) = super::ruby::of_stack(cause, call, stack) {
        return Some(listed);
    }
    // A thread of a server that is parked so has no work; one that has some may be stuck in the same call. Nobody takes a lock without work.
    if futex
        && cause == Cause::Idle
        && let Some(what) = user_code::never_idle_in_python(stack)
            .or_else(|| user_code::lock(stack))
            .or_else(|| awaited_in_handler(stack))
    {
        let resource = named(ResourceKind::Lock, what);
        return Some((Cause::LockFutex, resource.in_call(call.unwrap_or("futex"))));
    }
    // The one that reads the tasks of a pool of processes, and the pool's thread that reads the results; the other processes stand in a lock
    // behind the first one.
    if matches!(cause, Cause::IpcPipe | Cause::PollWait)
        && system_calls::is_named(call, Does::Reads | Does::Polls)
        && let Some(what) = python::awaits_of_pool(stack)
    {
        let work = named(ResourceKind::Name, what);
        return Some((Cause::Idle, work.in_call(call.unwrap_or("read"))));
    }
    if !futex || !matches!(cause, Cause::LockFutex | Cause::TimerSleep) {
        return None;
    }
    if user_code::takes_next_in_python(stack) && !has_request(stack) {
        let work = named(ResourceKind::Name, "work from a queue");
        return Some((Cause::Idle, work.in_call(call.unwrap_or("futex"))));
    }
    if rust::parked_in_tokio(stack) == Some(TokioPark::Work) {
        let work = named(ResourceKind::Name, "a task of tokio that can run");
        return Some((Cause::Idle, work.in_call(call.unwrap_or("futex"))));
    }
    if let Some((cause, what)) = in_jvm(stack) {
        return Some((
            cause,
            named(ResourceKind::Name, what).in_call(call.unwrap_or("futex")),
        ));
    }
    let lock = user_code::interpreter_lock(stack)?;
    let resource = named(ResourceKind::Lock, lock).in_call(call.unwrap_or("futex"));
    Some((Cause::RuntimeInterpreter, resource))
}

/// What a thread of Python waits for within a handler, in words: its client waits. Not for a queue: who hands a client what comes, as it comes,
/// takes that from one.
fn awaited_in_handler(stack: &[Frame]) -> Option<&'static str> {
    match user_code::in_python(stack).filter(|_| has_request(stack))? {
        Primitive::Condition => Some("a condition or an event of Python"),
        Primitive::Future => Some("a result of another thread"),
        Primitive::ThreadEnd => Some("the end of a thread of Python"),
        Primitive::Barrier => Some("others at a threading.Barrier"),
        _ => None,
    }
}

fn of_database(server: DatabaseServer, what: &str) -> Resource {
    named(ResourceKind::Lock, what).with(|facts| facts.database_lock = Some(server))
}

/// Functions of libjvm, where the library has their names, below which a thread waits for the machine itself. Without them the
/// waits are known by who ends them (`attribution/jvms.rs`); with them, those too that nobody has ended yet.
const STOPPED: [(&str, Cause, &str); 6] = [
    (
        "SafepointSynchronize::block",
        Cause::RuntimeSafepoint,
        "all threads to come to a safepoint, or what is done there",
    ),
    (
        "VMThread::wait_until_executed",
        Cause::RuntimeSafepoint,
        "an operation of its VM thread",
    ),
    (
        "VMThread::execute",
        Cause::RuntimeSafepoint,
        "an operation of its VM thread",
    ),
    (
        "ZPageAllocator::alloc_page_stall",
        Cause::RuntimeGc,
        "ZGC, which has not freed memory yet",
    ),
    (
        "ShenandoahControlThread::handle_alloc_failure",
        Cause::RuntimeGc,
        "Shenandoah, which has not freed memory yet",
    ),
    (
        "ShenandoahController::handle_alloc_failure",
        Cause::RuntimeGc,
        "Shenandoah, which has not freed memory yet",
    ),
];

/// Frames from the innermost within which one of these is: beyond them it is the program that asked for what takes long.
const NEAR: usize = 12;

fn in_jvm(stack: &[Frame]) -> Option<(Cause, &'static str)> {
    let names = stack.iter().take(NEAR).filter(|frame| of_libjvm(frame));
    let mut names = names.filter_map(|frame| frame.symbol.as_deref());
    names.find_map(|name| {
        let known = STOPPED.iter().find(|(function, ..)| {
            let rest = name.strip_prefix(function);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
        });
        known.map(|(_, cause, what)| (*cause, *what))
    })
}

fn of_libjvm(frame: &Frame) -> bool {
    frame
        .module
        .as_deref()
        .is_some_and(|module| module.contains("libjvm.so"))
}

#[cfg(test)]
mod tests {
    use super::by_user_stack;
    use holdup_evidence::{Cause, Frame};

    fn taking() -> Vec<Frame> {
        let frames = [
            ("libc.so.6", Some("pthread_cond_timedwait")),
            ("python3.11", None),
            ("python3.11", Some("PyEval_RestoreThread")),
        ];
        let frame = |(module, symbol): (&str, Option<&str>)| Frame {
            module: Some(module.to_owned()),
            symbol: symbol.map(str::to_owned),
            ..Frame::default()
        };
        frames.map(frame).to_vec()
    }

    #[test]
    fn a_futex_wait_under_the_interpreters_lock_is_for_it_even_if_its_time_ran_out() {
        for cause in [Cause::LockFutex, Cause::TimerSleep] {
            let (found, resource) = by_user_stack(cause, Some("futex"), &taking()).unwrap();
            assert_eq!(found, Cause::RuntimeInterpreter);
            assert_eq!(resource.name, "Python's global interpreter lock");
        }
    }

    #[test]
    fn no_thread_that_takes_a_lock_has_no_work() {
        let stack = |frames: &[&str]| -> Vec<Frame> {
            let frame = |symbol: &&str| Frame {
                module: Some(
                    if symbol.contains("::") || *symbol == "serve" {
                        "desk"
                    } else {
                        "libc.so.6"
                    }
                    .to_owned(),
                ),
                symbol: Some((*symbol).to_owned()),
                ..Frame::default()
            };
            frames.iter().map(frame).collect()
        };
        let rust = |symbols: &[&str]| {
            let begins = "std::sys::backtrace::__rust_begin_short_backtrace";
            stack(&[&["syscall"], symbols, &["desk::quote", begins]].concat())
        };
        let idle = |stack: &[Frame]| {
            let found = by_user_stack(Cause::Idle, Some("futex"), stack);
            found.map(|(cause, resource)| (cause, resource.name))
        };
        let lock = |name: &str| Some((Cause::LockFutex, name.to_owned()));
        let reads = rust(&["<std::sys::sync::rwlock::futex::RwLock>::read_contended"]);
        assert_eq!(idle(&reads), lock("a reader-writer lock"));
        let parks = [
            "parking_lot_core::parking_lot::park",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
        ];
        assert_eq!(idle(&rust(&parks)), lock("a mutex"));
        let in_c = stack(&["__futex_abstimed_wait64", "pthread_rwlock_wrlock", "serve"]);
        assert_eq!(idle(&in_c), lock("a reader-writer lock"));
        // Workers between two tasks.
        let waits = ["std::sync::poison::condvar::Condvar::wait"];
        assert_eq!(idle(&rust(&waits)), None);
        assert_eq!(idle(&stack(&["pthread_cond_wait", "serve"])), None);
    }

    #[test]
    fn who_is_in_a_handler_of_python_is_not_idle() {
        let frame = |(symbol, file): (&str, &str)| Frame {
            file: Some(file.to_owned()),
            symbol: Some(symbol.to_owned()),
            language: holdup_evidence::Language::Python,
            ..Frame::default()
        };
        let library = |file: &str| format!("/usr/lib/python3.11/{file}");
        let (threading, queue, server) = (
            library("threading.py"),
            library("queue.py"),
            library("http/server.py"),
        );
        let wait = ("Condition.wait", threading.as_str());
        let begins = ("Thread._bootstrap", threading.as_str());
        let handler = [
            ("price", "/srv/app.py"),
            ("H.handle_one_request", server.as_str()),
            begins,
        ];
        let worker = [("work", "/srv/app.py"), begins];
        let get = ("Queue.get", queue.as_str());
        let judged = |cause, inner: &[(&str, &str)], outer: &[(&str, &str)]| {
            let stack: Vec<Frame> = [inner, outer].concat().into_iter().map(frame).collect();
            by_user_stack(cause, Some("futex"), &stack).map(|(cause, resource)| (cause, resource.name))
        };
        // Nobody is known to wait for it: it may hand on what comes.
        assert_eq!(judged(Cause::Idle, &[wait, get], &handler), None);
        assert_eq!(judged(Cause::Idle, &[wait, get], &worker), None);
        let event = Some((Cause::LockFutex, "a condition or an event of Python".to_owned()));
        assert_eq!(judged(Cause::Idle, &[wait], &handler), event);
        let (of_queue, _) = judged(Cause::LockFutex, &[wait, get], &worker).unwrap();
        assert_eq!(of_queue, Cause::Idle);
        let of_request = judged(Cause::LockFutex, &[wait, get], &handler);
        assert!(of_request.is_none_or(|(cause, _)| cause != Cause::Idle));
    }

    #[test]
    fn who_reads_in_the_queues_of_a_pool_of_processes_has_no_work() {
        let frame = |file: &str, symbol: &str| Frame {
            file: Some(format!("/usr/lib/python3.11/multiprocessing/{file}")),
            symbol: Some(symbol.to_owned()),
            language: holdup_evidence::Language::Python,
            ..Frame::default()
        };
        let stack = |function: &str| {
            vec![
                frame("connection.py", "Connection._recv"),
                frame("queues.py", "SimpleQueue.get"),
                frame("pool.py", function),
            ]
        };
        let look_up = |function: &str, call: &str| {
            let found = by_user_stack(Cause::IpcPipe, Some(call), &stack(function));
            found.map(|(cause, resource)| (cause, resource.name))
        };
        let idle = |what: &str| Some((Cause::Idle, what.to_owned()));
        assert_eq!(look_up("worker", "read"), idle("a task from its pool"));
        let results = idle("a result from the processes of its pool");
        assert_eq!(look_up("Pool._handle_results", "read"), results);
        assert_eq!(look_up("worker", "write"), None);
        assert_eq!(look_up("Pool.map", "read"), None);
    }

    #[test]
    fn a_wait_below_a_jvms_own_functions_is_for_the_machine() {
        let frame = |module: &str, symbol: &str| Frame {
            module: Some(module.to_owned()),
            symbol: Some(symbol.to_owned()),
            ..Frame::default()
        };
        let stack = |symbol| {
            vec![
                frame("libc.so.6", "syscall"),
                frame("libjvm.so", "LinuxWaitBarrier::wait(int)"),
                frame("libjvm.so", symbol),
            ]
        };
        let look_up =
            |symbol| by_user_stack(Cause::LockFutex, Some("futex"), &stack(symbol)).map(|(cause, _)| cause);
        assert_eq!(
            look_up("SafepointSynchronize::block(JavaThread*)"),
            Some(Cause::RuntimeSafepoint)
        );
        assert_eq!(
            look_up("ZPageAllocator::alloc_page_stall(ZPageAllocation*)"),
            Some(Cause::RuntimeGc)
        );
        assert_eq!(look_up("SafepointSynchronize::blocked()"), None);
        // A function of that name in another library says nothing.
        let other = vec![frame("libother.so", "SafepointSynchronize::block(JavaThread*)")];
        assert_eq!(by_user_stack(Cause::LockFutex, Some("futex"), &other), None);
    }

    #[test]
    fn a_session_of_a_database_waits_for_its_client_or_a_standby() {
        let stack = |function: &str| {
            ["epoll_wait", "WaitEventSetWait", function].map(|symbol| Frame {
                module: Some(
                    if symbol == "epoll_wait" {
                        "libc.so.6"
                    } else {
                        "postgres"
                    }
                    .to_owned(),
                ),
                symbol: Some(symbol.to_owned()),
                ..Frame::default()
            })
        };
        let look_up = |function| {
            let look_up = by_user_stack(Cause::PollWait, Some("epoll_wait"), &stack(function));
            look_up.map(|(cause, resource)| (cause, resource.name))
        };
        let expected = Some((Cause::NetSend, "its client".to_owned()));
        assert_eq!(look_up("secure_write"), expected);
        let expected = Some((Cause::NetReceive, "a synchronous standby".to_owned()));
        assert_eq!(look_up("SyncRepWaitForLSN"), expected);
        assert_eq!(look_up("secure_read"), None);
    }

    #[test]
    fn other_calls_and_causes_stay_what_they_are() {
        assert_eq!(
            by_user_stack(Cause::TimerSleep, Some("clock_nanosleep"), &taking()),
            None
        );
        assert_eq!(by_user_stack(Cause::MemPagefault, Some("futex"), &taking()), None);
        assert_eq!(by_user_stack(Cause::LockFutex, Some("futex"), &[]), None);
    }
}
