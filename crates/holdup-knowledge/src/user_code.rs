//! What the user stack of a wait shows of what it was for, where neither the call nor the kernel can tell: a futex is
//! the allocator's lock, a sleep is a database's way to wait for a lock.
//!
//! In: a user stack, innermost frame first. Out: what asked, if the stack proves it. A library's own functions often
//! have no names (their symbols are stripped), so what counts is in whose code the wait was asked for, and through which
//! of its exported functions. Names are compared without the version that the linker adds to them.

pub mod mysql;
mod primitive;

use holdup_evidence::Frame;
pub use primitive::{Primitive, in_python, lock, never_idle_in_python, primitive, takes_next_in_python};

/// Beginnings of the names of files that hold a C library, its loader or the kernel's own user code.
const C_LIBRARY: &[&str] = &[
    "libc.so",
    "libc-2.",
    "libc.musl",
    "ld-linux",
    "ld-2.",
    "ld-musl",
    "ld.so",
    "libpthread.so",
    "libpthread-2.",
    "[vdso]",
    "linux-vdso",
];

/// The C library's allocator, as programs call it. Every one of them takes the lock of an arena, and nothing else that
/// can block on a futex.
const ALLOCATOR: &[&str] = &[
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "cfree",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_memalign",
];

/// Waiting for a condition variable, with and without a time limit.
const CONDITION: &[&str] = &[
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
];

/// Files that hold the Python interpreter: the program, or the library where it is embedded.
const PYTHON: &[&str] = &["python3", "libpython3"];

/// CPython's own lock objects, which on systems without POSIX semaphores are made of a condition variable.
const PYTHON_LOCK: &str = "PyThread_acquire_lock";

/// Functions that send a call over D-Bus and return when it has been answered: those of libsystemd, libdbus and GLib. Modules
/// of PAM and of the C library's name services are called for an answer themselves, and have a library of their own linked in.
const BUS_CALLS: &[&str] = &[
    "sd_bus_call",
    "sd_bus_call_method",
    "dbus_connection_send_with_reply_and_block",
    "dbus_pending_call_block",
    "g_dbus_connection_call_sync",
    "g_dbus_connection_send_message_with_reply_sync",
];
const CALLED_FOR_ANSWER: &[&str] = &["pam_sm_", "_nss_"];

/// Files that hold SQLite.
const SQLITE: &[&str] = &["libsqlite3"];

/// SQLite sleeps for three reasons: between two looks at a lock of the database (the busy handler), likewise at a lock
/// of its write-ahead log, and because the program asked it to, by this function.
const SQLITE_SLEEP: &str = "sqlite3_sleep";

/// The busy handler's functions in a program that SQLite has been compiled into.
const SQLITE_BUSY: &[&str] = &[
    "sqliteDefaultBusyCallback",
    "sqlite3InvokeBusyHandler",
    "walTryBeginRead",
];

/// The file that holds apt's library.
const APT: &[&str] = &["libapt-pkg.so"];

/// The functions of apt's library that take the lock of the package database, and sleep between two tries. Reading and
/// building its cache sleeps for nothing else.
const APT_LOCKS: &[&str] = &["pkgCacheFile::", "debSystem::", "GetLockMaybeWait", "pkgSystem::"];

/// The file that holds PostgreSQL's server. It exports its functions to extensions, so that they have names everywhere.
const POSTGRES: &[&str] = &["postgres"];

/// The function in which a PostgreSQL session sleeps until another one lets go of an entry in the table of locks. The server
/// keeps who that is in its own shared memory.
const POSTGRES_LOCK: &str = "ProcSleep";

/// What is said of a table that is locked, where the stack alone tells of it.
pub const POSTGRES_TABLE: &str = "a table";

/// What the functions of PostgreSQL that ask for such a lock want, innermost first; what none of them asked for is just a lock.
const POSTGRES_LOCKED: &[(&[&str], &str)] = &[
    (
        &[
            "XactLockTableWait",
            "ConditionalXactLockTableWait",
            "SpeculativeInsertionWait",
            "MultiXactIdWait",
        ],
        "a row that a transaction has changed",
    ),
    (&["LockTuple", "heap_acquire_tuplock"], "a row"),
    (
        &[
            "LockRelationOid",
            "LockRelation",
            "LockRelationId",
            "LockRelationForExtension",
        ],
        POSTGRES_TABLE,
    ),
    (&["VirtualXactLock"], "the end of a transaction"),
    (
        &["LockDatabaseObject", "LockSharedObject"],
        "an object of the database",
    ),
    (
        &[
            "pg_advisory_lock_int8",
            "pg_advisory_lock_int4",
            "pg_advisory_xact_lock_int8",
        ],
        "an advisory lock",
    ),
];

/// The function in which PostgreSQL takes a lock of its own memory: of its log's buffers, of a page, of a table of its own.
const POSTGRES_LATCH: &str = "LWLockAcquire";

/// The function in which a PostgreSQL session sends to its client, and sleeps until that one has read what was sent before.
const POSTGRES_SENDS: &str = "secure_write";

/// The function in which a PostgreSQL session that has committed sleeps until a standby server has its log, too.
const POSTGRES_STANDBY: &str = "SyncRepWaitForLSN";

/// Whether it is Python that waits for one of its lock objects: what `threading`, `queue` and `concurrent.futures` are made of.
pub fn python_lock(stack: &[Frame]) -> bool {
    let (_, callers) = split(stack);
    let caller = callers.first().filter(|frame| within(frame, PYTHON));
    let name = caller.and_then(bare);
    name.is_some_and(|name| name.starts_with(PYTHON_LOCK))
}

/// A function's name without version and arguments.
fn bare(frame: &Frame) -> Option<&str> {
    let name = frame.symbol.as_deref()?;
    Some(name.split(['@', '(']).next().unwrap_or(name))
}

fn within(frame: &Frame, files: &[&str]) -> bool {
    let module = frame.module.as_deref();
    module.is_some_and(|module| files.iter().any(|file| module.starts_with(file)))
}

/// Whether a frame is the C library's, the loader's or the kernel's own.
pub fn of_c_library(frame: &Frame) -> bool {
    within(frame, C_LIBRARY)
}

/// The frames of the C library at the innermost end, and those that called it.
fn split(stack: &[Frame]) -> (&[Frame], &[Frame]) {
    let library = stack.iter().take_while(|frame| of_c_library(frame)).count();
    stack.split_at(library)
}

/// The allocator's function, where it was the allocator that asked.
pub fn allocator(stack: &[Frame]) -> Option<&str> {
    let (library, _) = split(stack);
    library
        .iter()
        .rev()
        .filter_map(bare)
        .find(|name| ALLOCATOR.contains(name))
}

/// The interpreter whose global lock a futex wait is for, in words.
///
/// CPython takes that lock by waiting for a condition variable, with a time limit of 5 ms, from its own file; its other
/// locks are semaphores, and extensions are other files.
pub fn interpreter_lock(stack: &[Frame]) -> Option<&'static str> {
    let (library, callers) = split(stack);
    let condition = library
        .iter()
        .filter_map(bare)
        .any(|name| CONDITION.contains(&name));
    let caller = callers.first()?;
    let other_lock = bare(caller).is_some_and(|name| name.starts_with(PYTHON_LOCK));
    (condition && within(caller, PYTHON) && !other_lock).then_some("Python's global interpreter lock")
}

/// Whether a call over D-Bus was made for which somebody waits.
pub fn awaits_bus_answer(stack: &[Frame]) -> bool {
    stack.iter().filter_map(bare).any(|name| {
        BUS_CALLS.contains(&name) || CALLED_FOR_ANSWER.iter().any(|start| name.starts_with(start))
    })
}

/// Whether SQLite sleeps until it looks at a lock again.
pub fn sqlite_waits(stack: &[Frame]) -> bool {
    let (_, callers) = split(stack);
    let library: Vec<&Frame> = callers.iter().take_while(|frame| within(frame, SQLITE)).collect();
    let asked = library
        .iter()
        .any(|frame| bare(frame).is_some_and(|name| name == SQLITE_SLEEP));
    let inside = callers
        .iter()
        .any(|frame| bare(frame).is_some_and(|name| SQLITE_BUSY.contains(&name)));
    inside || (!library.is_empty() && !asked)
}

/// Whether apt sleeps until it tries to lock the package database again.
pub fn apt_waits(stack: &[Frame]) -> bool {
    let (_, callers) = split(stack);
    callers
        .iter()
        .take_while(|frame| within(frame, APT))
        .any(|frame| {
            bare(frame).is_some_and(|name| APT_LOCKS.iter().any(|function| name.starts_with(function)))
        })
}

/// What a session of PostgreSQL waits for that another session has locked, in words.
pub fn postgres_lock(stack: &[Frame]) -> Option<&'static str> {
    let (_, callers) = split(stack);
    let mut server = callers
        .iter()
        .take_while(|frame| within(frame, POSTGRES))
        .filter_map(bare);
    server.by_ref().find(|name| *name == POSTGRES_LOCK)?;
    let wanted = |name: &str| {
        let mut known = POSTGRES_LOCKED.iter();
        known
            .find(|(functions, _)| functions.contains(&name))
            .map(|(_, what)| *what)
    };
    Some(server.find_map(wanted).unwrap_or("a lock"))
}

/// Whether a session of PostgreSQL waits for its client to read.
pub fn postgres_sends(stack: &[Frame]) -> bool {
    in_postgres(stack, POSTGRES_SENDS)
}

/// Whether a session of PostgreSQL waits for a standby server to have its log.
pub fn postgres_awaits_standby(stack: &[Frame]) -> bool {
    in_postgres(stack, POSTGRES_STANDBY)
}

/// Whether this function of PostgreSQL's server is on a stack, with nothing but the server's own beneath it.
fn in_postgres(stack: &[Frame], function: &str) -> bool {
    let (_, callers) = split(stack);
    callers
        .iter()
        .take_while(|frame| within(frame, POSTGRES))
        .any(|frame| bare(frame) == Some(function))
}

/// Whether PostgreSQL waits for a lock of its own memory, which sessions hold for a moment, or while one writes its log.
pub fn postgres_latch(stack: &[Frame]) -> bool {
    in_postgres(stack, POSTGRES_LATCH)
}

#[cfg(test)]
mod tests {
    use super::{
        allocator, apt_waits, interpreter_lock, postgres_awaits_standby, postgres_latch, postgres_lock,
        postgres_sends, sqlite_waits,
    };
    use holdup_evidence::Frame;

    fn stack(frames: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(module, symbol): &(&str, &str)| Frame {
            module: Some((*module).to_owned()),
            symbol: (!symbol.is_empty()).then(|| (*symbol).to_owned()),
            ..Frame::default()
        };
        frames.iter().map(frame).collect()
    }

    #[test]
    fn the_allocator_is_what_asks_for_its_own_lock_alone() {
        let arena = [
            ("libc.so.6", ""),
            ("libc.so.6", "malloc@@GLIBC_2.2.5"),
            ("libstdc++.so.6", "operator new(unsigned long)"),
            ("server", "parse"),
        ];
        assert_eq!(allocator(&stack(&arena)), Some("malloc"));
        // A mutex that is taken in a function which malloc called is not malloc's.
        let hook = [
            ("libc.so.6", "pthread_mutex_lock"),
            ("profiler.so", "count"),
            ("libc.so.6", "malloc"),
            ("server", "parse"),
        ];
        assert_eq!(allocator(&stack(&hook)), None);
        assert_eq!(allocator(&stack(&[("server", "malloc")])), None);
        assert_eq!(allocator(&[]), None);
    }

    #[test]
    fn a_condition_that_python_itself_waits_for_is_its_global_lock() {
        // Debian 12: as the evaluation loop takes it back, and as a call that had released it does.
        let switching = [
            ("libc.so.6", ""),
            ("libc.so.6", "pthread_cond_timedwait"),
            ("python3.11", ""),
            ("python3.11", "_PyEval_EvalFrameDefault"),
        ];
        let returning = [
            ("libc.so.6", ""),
            ("libc.so.6", "pthread_cond_timedwait"),
            ("python3.11", ""),
            ("python3.11", "PyEval_RestoreThread"),
        ];
        let named = [
            ("libpthread-2.31.so", "pthread_cond_timedwait@@GLIBC_2.3.2"),
            ("libpython3.9.so.1.0", "take_gil"),
        ];
        for taking in [&switching[..], &returning[..], &named[..]] {
            assert!(interpreter_lock(&stack(taking)).is_some());
        }
        // Thread.join and queue.get wait for a lock object.
        let join = [
            ("libc.so.6", ""),
            ("libc.so.6", ""),
            ("python3.11", "PyThread_acquire_lock_timed"),
        ];
        let without_semaphores = [
            ("libc.so.6", "pthread_cond_timedwait"),
            ("python3.11", "PyThread_acquire_lock_timed"),
        ];
        let extension = [
            ("libc.so.6", "pthread_cond_wait"),
            ("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", ""),
            ("python3.11", "_PyEval_EvalFrameDefault"),
        ];
        let other = [("libc.so.6", "pthread_cond_wait"), ("server", "take")];
        for not in [
            &join[..],
            &without_semaphores[..],
            &extension[..],
            &other[..],
            &[],
        ] {
            assert_eq!(interpreter_lock(&stack(not)), None);
        }
    }

    #[test]
    fn sqlite_sleeps_for_a_lock_unless_the_program_asked_it_to() {
        let sleep = [("libc.so.6", "clock_nanosleep"), ("libc.so.6", "usleep")];
        let after = |rest: &[(&str, &str)]| stack(&[&sleep[..], rest].concat());
        let busy = [
            ("libsqlite3.so.0.8.6", ""),
            ("libsqlite3.so.0.8.6", "sqlite3_step"),
            ("sqlite3", ""),
        ];
        assert!(sqlite_waits(&after(&busy)));
        let compiled_in = [
            ("fossil", "unixSleep"),
            ("fossil", "sqliteDefaultBusyCallback"),
            ("fossil", "sqlite3_step"),
        ];
        assert!(sqlite_waits(&after(&compiled_in)));
        let asked = [
            ("libsqlite3.so.0.8.6", ""),
            ("libsqlite3.so.0.8.6", "sqlite3_sleep"),
            ("app", "retry"),
        ];
        assert!(!sqlite_waits(&after(&asked)));
        // A function of the program that SQLite calls, and that sleeps for its own reasons.
        let own = [("app", "busy"), ("libsqlite3.so.0.8.6", "sqlite3_step")];
        assert!(!sqlite_waits(&after(&own)));
    }

    #[test]
    fn a_session_of_postgres_sleeps_for_what_its_table_of_locks_has() {
        // Debian 12's PostgreSQL 15: an update of a row that another transaction has changed.
        let row = [
            ("libc.so.6", "epoll_wait"),
            ("postgres", "WaitEventSetWait"),
            ("postgres", "WaitLatch"),
            ("postgres", "ProcSleep"),
            ("postgres", ""),
            ("postgres", "LockAcquireExtended"),
            ("postgres", "XactLockTableWait"),
            ("postgres", "heap_update"),
        ];
        assert_eq!(
            postgres_lock(&stack(&row)),
            Some("a row that a transaction has changed")
        );
        let other = [
            ("libc.so.6", ""),
            ("postgres", "ProcSleep"),
            ("postgres", "LockAcquire"),
        ];
        assert_eq!(postgres_lock(&stack(&other)), Some("a lock"));
        let idle = [
            ("libc.so.6", "epoll_wait"),
            ("postgres", "WaitEventSetWait"),
            ("postgres", "secure_read"),
        ];
        assert_eq!(postgres_lock(&stack(&idle)), None);
        assert_eq!(postgres_lock(&stack(&[("server", "ProcSleep")])), None);
        let latch = [
            ("libc.so.6", ""),
            ("postgres", "PGSemaphoreLock"),
            ("postgres", "LWLockAcquire"),
            ("postgres", "XLogFlush"),
        ];
        assert!(postgres_latch(&stack(&latch)) && !postgres_latch(&stack(&idle)));
        assert_eq!(postgres_lock(&stack(&latch)), None);
        // Of a result that its client does not read, and of a commit that a standby does not confirm.
        let sends = [
            ("libc.so.6", "epoll_wait"),
            ("postgres", "WaitEventSetWait"),
            ("postgres", "secure_write"),
            ("postgres", ""),
            ("postgres", "socket_putmessage"),
        ];
        let commits = [
            ("libc.so.6", "epoll_wait"),
            ("postgres", "WaitEventSetWait"),
            ("postgres", "WaitLatch"),
            ("postgres", "SyncRepWaitForLSN"),
            ("postgres", "CommitTransaction"),
        ];
        let look_up = |frames: &[(&str, &str)]| {
            let frames = stack(frames);
            (postgres_sends(&frames), postgres_awaits_standby(&frames))
        };
        assert_eq!(look_up(&sends), (true, false));
        assert_eq!(look_up(&commits), (false, true));
        assert_eq!(look_up(&idle), (false, false));
    }

    #[test]
    fn apt_sleeps_for_the_lock_where_it_opens_its_cache() {
        let apt = "libapt-pkg.so.6.0.0";
        let lock = [
            ("libc.so.6", "sleep"),
            (apt, ""),
            (apt, "pkgCacheFile::BuildCaches(OpProgress*, bool)"),
            ("libapt-private.so.0.0.0", "DoInstall(CommandLine&)"),
        ];
        assert!(apt_waits(&stack(&lock)));
        let download = [("libc.so.6", "sleep"), (apt, "pkgAcquire::Run(int)")];
        assert!(!apt_waits(&stack(&download)));
    }
}
