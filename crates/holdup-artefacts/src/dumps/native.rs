//! What a thread does by the stack that a debugger shows of it.
//!
//! In: functions as debuggers name them, with or without arguments, file or library, innermost first. Out: what the C
//! library's innermost function waits for. Which descriptor it is about no stack tells: a plain `read` or `poll` stays open.

use super::Doing;
use holdup_evidence::Cause;

/// Frames in which the C library's function is looked for: its wrappers are at most so deep.
const NEAR: usize = 8;

/// Functions of the C library and kernel calls in which a thread waits, and what for. Names are compared without the marks
/// of the library's own variants: see [`plain`].
const WAITS: &[(&str, Doing)] = &[
    ("pthread_mutex_lock", Doing::Waits(Cause::LockFutex)),
    ("pthread_mutex_timedlock", Doing::Waits(Cause::LockFutex)),
    ("pthread_mutex_clocklock", Doing::Waits(Cause::LockFutex)),
    ("pthread_rwlock_rdlock", Doing::Waits(Cause::LockFutex)),
    ("pthread_rwlock_wrlock", Doing::Waits(Cause::LockFutex)),
    ("lll_lock_wait", Doing::Waits(Cause::LockFutex)),
    ("lll_lock_wait_private", Doing::Waits(Cause::LockFutex)),
    // The spin locks of tcmalloc and Abseil, which sleep after some turns.
    ("SpinLock::Lock", Doing::Waits(Cause::LockFutex)),
    ("SpinLock::SlowLock", Doing::Waits(Cause::LockFutex)),
    ("base::internal::SpinLockDelay", Doing::Waits(Cause::LockFutex)),
    ("sys_futex", Doing::WaitsUnknown),
    // Conditions, semaphores and joins: nobody holds anything, and workers without work stand there too.
    ("pthread_cond_wait", Doing::WaitsUnknown),
    ("pthread_cond_timedwait", Doing::WaitsUnknown),
    ("pthread_cond_clockwait", Doing::WaitsUnknown),
    ("pthread_join", Doing::WaitsUnknown),
    ("pthread_clockjoin_ex", Doing::WaitsUnknown),
    ("pthread_barrier_wait", Doing::WaitsUnknown),
    ("sem_wait", Doing::WaitsUnknown),
    ("sem_timedwait", Doing::WaitsUnknown),
    ("sem_clockwait", Doing::WaitsUnknown),
    ("futex_wait", Doing::WaitsUnknown),
    ("syscall", Doing::WaitsUnknown),
    ("poll", Doing::WaitsUnknown),
    ("ppoll", Doing::WaitsUnknown),
    ("select", Doing::WaitsUnknown),
    ("pselect", Doing::WaitsUnknown),
    ("read", Doing::WaitsUnknown),
    ("readv", Doing::WaitsUnknown),
    ("write", Doing::WaitsUnknown),
    ("writev", Doing::WaitsUnknown),
    ("ioctl", Doing::WaitsUnknown),
    ("fcntl", Doing::WaitsUnknown),
    ("open", Doing::WaitsUnknown),
    ("openat", Doing::WaitsUnknown),
    ("epoll_wait", Doing::Idle),
    ("epoll_pwait", Doing::Idle),
    ("accept", Doing::Idle),
    ("accept4", Doing::Idle),
    ("recv", Doing::Waits(Cause::NetReceive)),
    ("recvfrom", Doing::Waits(Cause::NetReceive)),
    ("recvmsg", Doing::Waits(Cause::NetReceive)),
    ("recvmmsg", Doing::Waits(Cause::NetReceive)),
    ("send", Doing::Waits(Cause::NetSend)),
    ("sendto", Doing::Waits(Cause::NetSend)),
    ("sendmsg", Doing::Waits(Cause::NetSend)),
    ("connect", Doing::Waits(Cause::NetConnect)),
    ("fsync", Doing::Waits(Cause::DiskSync)),
    ("fdatasync", Doing::Waits(Cause::DiskSync)),
    ("msync", Doing::Waits(Cause::DiskSync)),
    ("sync", Doing::Waits(Cause::DiskSync)),
    ("syncfs", Doing::Waits(Cause::DiskSync)),
    ("pread", Doing::Waits(Cause::DiskRead)),
    ("preadv", Doing::Waits(Cause::DiskRead)),
    ("flock", Doing::Waits(Cause::LockFile)),
    ("lockf", Doing::Waits(Cause::LockFile)),
    ("nanosleep", Doing::Waits(Cause::TimerSleep)),
    ("clock_nanosleep", Doing::Waits(Cause::TimerSleep)),
    ("wait4", Doing::Waits(Cause::ProcessChild)),
    ("waitpid", Doing::Waits(Cause::ProcessChild)),
    ("waitid", Doing::Waits(Cause::ProcessChild)),
    ("pause", Doing::Waits(Cause::IpcSignal)),
    ("sigsuspend", Doing::Waits(Cause::IpcSignal)),
    ("sigtimedwait", Doing::Waits(Cause::IpcSignal)),
    ("sigwaitinfo", Doing::Waits(Cause::IpcSignal)),
    ("sigwait", Doing::Waits(Cause::IpcSignal)),
    ("io_getevents", Doing::Waits(Cause::IoAsync)),
    ("io_uring_enter", Doing::Waits(Cause::IoAsync)),
    ("semop", Doing::Waits(Cause::LockSysv)),
    ("semtimedop", Doing::Waits(Cause::LockSysv)),
    ("msgrcv", Doing::Waits(Cause::IpcQueue)),
    ("msgsnd", Doing::Waits(Cause::IpcQueue)),
    ("mq_receive", Doing::Waits(Cause::IpcQueue)),
    ("mq_timedreceive", Doing::Waits(Cause::IpcQueue)),
    ("mq_send", Doing::Waits(Cause::IpcQueue)),
];

/// Callers that tell what a read, a poll or a receive is for.
const FOR: &[(&str, Cause)] = &[
    ("SSL_do_handshake", Cause::NetTls),
    ("SSL_connect", Cause::NetTls),
    ("SSL_accept", Cause::NetTls),
    ("gnutls_handshake", Cause::NetTls),
    ("getaddrinfo", Cause::NetDns),
    ("gethostbyname", Cause::NetDns),
    ("gethostbyname_r", Cause::NetDns),
    ("gethostbyname2_r", Cause::NetDns),
    ("gethostbyaddr_r", Cause::NetDns),
    ("getnameinfo", Cause::NetDns),
    ("res_send", Cause::NetDns),
    ("res_nsend", Cause::NetDns),
    ("res_context_send", Cause::NetDns),
    ("res_query", Cause::NetDns),
    ("SSL_read", Cause::NetReceive),
    ("SSL_write", Cause::NetSend),
    ("take_gil", Cause::RuntimeInterpreter),
    ("PyEval_RestoreThread", Cause::RuntimeInterpreter),
];

/// Functions of interpreters in which a thread waits for another one's end.
const JOINS: &[&str] = &[
    "thread_join_sleep",
    "rb_thread_join",
    "thread_PyThread_join_thread",
];

/// Beginnings of names and files that are the C library's, the C++ library's or the thread's own start.
const LIBRARY: &[&str] = &[
    "std::",
    "__gnu_cxx::",
    "__gthread",
    "execute_native_thread_routine",
    "start_thread",
    "clone",
];
/// Beginnings of names, without the marks of variants, of the C library's own functions around locks and threads.
const LOCKS_AND_THREADS: &[&str] = &["lll_", "pthread_", "futex_", "gthread_"];

const FILES: &[&str] = &[
    "(libc.so",
    "(libc-2.",
    "(libpthread",
    "(libstdc++",
    "(ld-linux",
    "(libgcc_s",
];
const SOURCES: &[&str] = &[
    "(nptl/",
    "(sysdeps/",
    "(io/",
    "(socket/",
    "(misc/",
    "(posix/",
    "(stdlib/",
    "(malloc/",
    "(resolv/",
    "(nss/",
];

/// What a thread does; by its stack and nothing else.
pub(super) fn of(frames: &[&str]) -> Doing {
    let near = frames.get(..NEAR.min(frames.len())).unwrap_or_default();
    // The outermost of the library's functions is the one that the program called.
    let library = near
        .iter()
        .take_while(|frame| of_library(frame) || known(frame).is_some());
    let Some(doing) = library.filter_map(|frame| known(frame)).last() else {
        // Without one it runs, unless there is no name at all.
        let named = near.first().is_some_and(|frame| !frame.starts_with("0x"));
        return if named { Doing::Runs } else { Doing::Unknown };
    };
    let waits = matches!(
        doing,
        Doing::WaitsUnknown
            | Doing::Idle
            | Doing::Waits(Cause::NetReceive | Cause::NetConnect | Cause::NetSend)
    );
    let found = frames.iter().find_map(|frame| {
        let name = plain(frame);
        FOR.iter()
            .find(|(caller, _)| *caller == name)
            .map(|(_, cause)| *cause)
    });
    let joins = || frames.iter().any(|frame| JOINS.contains(&plain(frame)));
    match found {
        Some(cause) if waits => Doing::Waits(cause),
        None if doing == Doing::WaitsUnknown && joins() => Doing::WaitsForTask,
        _ => doing,
    }
}

/// Beginnings of names of the C library's slow paths of locks before 2.18: a number follows.
const OLD_LOCKS: &[&str] = &["L_lock_", "L_timedlock_", "L_cond_lock_", "L_robust_lock_"];

fn known(frame: &str) -> Option<Doing> {
    let name = plain(frame);
    if OLD_LOCKS.iter().any(|start| name.starts_with(start)) {
        return Some(Doing::Waits(Cause::LockFutex));
    }
    WAITS
        .iter()
        .find(|(waits, _)| *waits == name)
        .map(|(_, doing)| *doing)
}

/// A function's name without the marks of the C library's variants (`__GI___libc_read`, `epoll_wait64`, `__read_nocancel`), without
/// version, arguments and place.
fn plain(frame: &str) -> &str {
    let name = frame.split(['(', '@']).next().unwrap_or(frame).trim();
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_');
    let name = name.strip_prefix("libc_").unwrap_or(name).trim_start_matches('_');
    ["_nocancel", "_cancelable", "_time64", "_common", "64"]
        .iter()
        .fold(name, |name, mark| name.strip_suffix(mark).unwrap_or(name))
}

/// Whether a frame is the C or C++ library's own, or begins the thread.
pub(super) fn of_library(frame: &str) -> bool {
    let any = |list: &[&str], within: &dyn Fn(&str) -> bool| list.iter().any(|one| within(one));
    frame.starts_with("__")
        || any(LIBRARY, &|start| frame.starts_with(start))
        || any(LOCKS_AND_THREADS, &|start| plain(frame).starts_with(start))
        || any(FILES, &|file| frame.contains(file))
        || any(SOURCES, &|place| frame.contains(place))
        || known(frame).is_some()
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::dumps::Doing;
    use holdup_evidence::Cause;

    #[test]
    fn the_function_that_the_program_called_tells_what_it_waits_for() {
        let locks = [
            "futex_wait(sysdeps/nptl/futex-internal.h:146)",
            "__GI___lll_lock_wait(nptl/lowlevellock.c:49)",
            "___pthread_mutex_lock(nptl/pthread_mutex_lock.c:93)",
            "append_entry(journal.c:12)",
        ];
        assert_eq!(of(&locks), Doing::Waits(Cause::LockFutex));
        let by_name = [
            "futex_wait(futex-internal.h:146)",
            "lll_mutex_lock_optimized(pthread_mutex_lock.c:48)",
            "___pthread_mutex_lock(pthread_mutex_lock.c:93)",
            "std::mutex::lock(std_mutex.h:113)",
        ];
        assert!(by_name.iter().all(|frame| super::of_library(frame)));
        assert!(!super::of_library("Registry::lock(registry.cc:9)"));
        let condition = [
            "__futex_abstimed_wait_common64(nptl/futex-internal.c:57)",
            "___pthread_cond_wait(nptl/pthread_cond_wait.c:618)",
            "idle(conv.c:15)",
        ];
        assert_eq!(of(&condition), Doing::WaitsUnknown);
        assert_eq!(
            of(&["fsync(libc.so.6)", "commit(db)"]),
            Doing::Waits(Cause::DiskSync)
        );
        assert_eq!(
            of(&[
                "__GI___libc_read(sysdeps/unix/sysv/linux/read.c:26)",
                "flush(conv.c:14)"
            ]),
            Doing::WaitsUnknown
        );
        assert_eq!(of(&["compress(zip.c:9)", "main(zip.c:99)"]), Doing::Runs);
        // No function of that name in the program's own code is the library's.
        assert_eq!(of(&["compress(zip.c:9)", "read(zip.c:12)"]), Doing::Runs);
        assert_eq!(of(&["0x00005630d242238c"]), Doing::Unknown);
    }

    #[test]
    fn callers_tell_what_a_poll_or_a_read_is_for() {
        let names = [
            "__GI___poll(sysdeps/unix/sysv/linux/poll.c:29)",
            "__res_context_send(resolv/res_send.c:361)",
            "__GI_getaddrinfo(nss/getaddrinfo.c:2455)",
            "dial(client.c:7)",
        ];
        assert_eq!(of(&names), Doing::Waits(Cause::NetDns));
        let shakes = [
            "read(libc.so.6)",
            "BIO_read(libcrypto.so.3)",
            "SSL_do_handshake(libssl.so.3)",
        ];
        assert_eq!(of(&shakes), Doing::Waits(Cause::NetTls));
    }
}
