//! What a thread waits in for another thread: to the kernel all of it is a futex.
//!
//! In: a user stack, innermost frame first. Out: the means of the language by which it waits, by the library's functions between the kernel
//! and the program's own code. What the program called is further out than what that is made of, so the outermost of them counts.

use super::{CONDITION, bare, of_c_library, split};
use crate::ruby::{self, Awaited};
use crate::rust::TokioPark;
use crate::{cpp, python, rust};
use holdup_evidence::{Frame, Language};

/// What the C library makes of futexes, by the functions that programs call.
const PRIMITIVES: &[(&[&str], Primitive)] = &[
    (CONDITION, Primitive::Condition),
    (&["cnd_wait", "cnd_timedwait"], Primitive::Condition),
    (&["pthread_barrier_wait"], Primitive::Barrier),
    (
        &["sem_wait", "sem_timedwait", "sem_clockwait"],
        Primitive::Semaphore,
    ),
    (
        &[
            "pthread_join",
            "pthread_timedjoin_np",
            "pthread_clockjoin_np",
            "pthread_clockjoin_ex",
            "thrd_join",
        ],
        Primitive::ThreadEnd,
    ),
    (
        &[
            "pthread_rwlock_rdlock",
            "pthread_rwlock_wrlock",
            "pthread_rwlock_timedrdlock",
            "pthread_rwlock_timedwrlock",
            "pthread_rwlock_clockrdlock",
            "pthread_rwlock_clockwrlock",
        ],
        Primitive::ReadWriteLock,
    ),
    (
        &[
            "pthread_mutex_lock",
            "pthread_mutex_timedlock",
            "pthread_mutex_clocklock",
            "mtx_lock",
            "mtx_timedlock",
        ],
        Primitive::Mutex,
    ),
    (
        &["pthread_once", "pthread_once_slow", "call_once"],
        Primitive::Initialisation,
    ),
];

/// The same of C++'s library: what the name of a function begins with or, of a template, its name with its namespace.
const IN_CPP: &[(&str, Primitive)] = &[
    ("__cxa_guard_acquire", Primitive::Initialisation),
    ("call_once", Primitive::Initialisation),
    ("__atomic_futex_unsigned", Primitive::Future),
    ("future<", Primitive::Future),
    ("shared_future<", Primitive::Future),
    ("__basic_future<", Primitive::Future),
    ("thread::join", Primitive::ThreadEnd),
    ("condition_variable", Primitive::Condition),
    ("barrier<", Primitive::Barrier),
    ("latch::", Primitive::Barrier),
    ("counting_semaphore<", Primitive::Semaphore),
    ("__atomic_semaphore::", Primitive::Semaphore),
    ("__platform_semaphore::", Primitive::Semaphore),
];

/// The namespace of most of them.
const STANDARD: &str = "std::";

/// The same of Rust's library and of channels that are used in its place, by a part of a function's name.
const IN_RUST: &[(&str, &[&str], Primitive)] = &[
    ("::mpmc::", SENDS, Primitive::Room),
    ("::mpmc::", RECEIVES, Primitive::Queue),
    ("::mpsc::", SENDS, Primitive::Room),
    ("::mpsc::", RECEIVES, Primitive::Queue),
    ("crossbeam_channel::", SENDS, Primitive::Room),
    ("crossbeam_channel::", RECEIVES, Primitive::Queue),
    (
        "::condvar::",
        &["wait", "wait_optional_timeout"],
        Primitive::Condition,
    ),
    ("::thread::", &["park", "park_timeout"], Primitive::Condition),
    ("::barrier::", &["wait"], Primitive::Barrier),
    (
        "::once::",
        &["call", "wait", "call_once", "call_once_force"],
        Primitive::Initialisation,
    ),
    ("::mutex::", &["lock", "lock_contended"], Primitive::Mutex),
    (
        "::rwlock::",
        &["read", "write", "read_contended", "write_contended"],
        Primitive::ReadWriteLock,
    ),
    ("parking_lot::raw_mutex::", &["lock_slow"], Primitive::Mutex),
    (
        "parking_lot::raw_rwlock::",
        &[
            "lock_shared_slow",
            "lock_exclusive_slow",
            "lock_upgradable_slow",
            "upgrade_slow",
            "wait_for_readers",
        ],
        Primitive::ReadWriteLock,
    ),
    (
        "parking_lot::condvar::",
        &["wait_until_internal"],
        Primitive::Condition,
    ),
    (
        "parking_lot::once::",
        &["call_once_slow"],
        Primitive::Initialisation,
    ),
    ("::join_handle::", &["join"], Primitive::ThreadEnd),
    ("::JoinHandle<", &["join"], Primitive::ThreadEnd),
    ("::JoinInner<", &["join"], Primitive::ThreadEnd),
];
const SENDS: &[&str] = &["send", "send_timeout"];
const RECEIVES: &[&str] = &["recv", "recv_timeout", "recv_deadline"];

/// The same of Python's library, by file and function. Before 3.11 functions have no class.
const IN_PYTHON: &[(&str, &[&str], Primitive)] = &[
    ("/threading.py", &["acquire"], Primitive::Semaphore),
    ("/threading.py", &["wait", "wait_for"], Primitive::Condition),
    ("/threading.py", &["_wait"], Primitive::Barrier),
    (
        "/threading.py",
        &["join", "_wait_for_tstate_lock", "_shutdown"],
        Primitive::ThreadEnd,
    ),
    ("/queue.py", &["put"], Primitive::Room),
    ("/queue.py", &["get", "join"], Primitive::Queue),
    (
        "/concurrent/futures/_base.py",
        &[
            "result",
            "exception",
            "wait",
            "as_completed",
            "result_iterator",
            "_result_or_cancel",
        ],
        Primitive::Future,
    ),
];

/// A way to wait for another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Primitive {
    /// A condition variable: keeps no note of signals that came before somebody waited.
    Condition,
    /// A barrier: opens when as many threads have come as it was made for.
    Barrier,
    /// A semaphore: keeps no note of who took it.
    Semaphore,
    /// The end of another thread.
    ThreadEnd,
    /// A reader-writer lock.
    ReadWriteLock,
    /// A mutex.
    Mutex,
    /// A result that another thread sets.
    Future,
    /// A queue that another thread fills or empties.
    Queue,
    /// Room in a queue or channel, which another thread empties.
    Room,
    /// A future that the thread runs until it is ready, which tasks of a runtime may have to bring about.
    BlockOn,
    /// What is initialised once: one thread does it, and whoever comes meanwhile waits.
    Initialisation,
}

/// What a thread waits in; `None` where the stack does not show it, and where the allocator waits for a lock of its own.
#[must_use]
pub fn primitive(stack: &[Frame]) -> Option<Primitive> {
    if let Some(awaited) = ruby::awaited(stack) {
        return match awaited {
            Awaited::Time | Awaited::Child => None,
            Awaited::Mutex | Awaited::Monitor => Some(Primitive::Mutex),
            Awaited::ThreadEnd => Some(Primitive::ThreadEnd),
            Awaited::Condition | Awaited::Wakeup => Some(Primitive::Condition),
            Awaited::Item => Some(Primitive::Queue),
            Awaited::Room => Some(Primitive::Room),
        };
    }
    in_python(stack)
        .or_else(|| in_rust(stack))
        .or_else(|| in_cpp(stack))
        .or_else(|| in_c(stack))
}

/// By functions of Python's own library, where nothing else is further in.
#[must_use]
pub fn in_python(stack: &[Frame]) -> Option<Primitive> {
    let python = stack.iter().filter(|frame| frame.language == Language::Python);
    let known = |frame: &Frame| {
        let (file, symbol) = (frame.file.as_deref()?, frame.symbol.as_deref()?);
        let name = symbol.rsplit('.').next().unwrap_or(symbol);
        let of = |(path, functions, _): &&(&str, &[&str], Primitive)| {
            file.ends_with(path) && functions.contains(&name)
        };
        IN_PYTHON.iter().find(of).map(|(.., primitive)| *primitive)
    };
    python.map_while(known).last()
}

/// Whether a thread of Python that the program began waits for the next thing in a queue: a worker without work. The main thread waits for
/// a result there.
#[must_use]
pub fn takes_next_in_python(stack: &[Frame]) -> bool {
    let from_queue = in_python(stack) == Some(Primitive::Queue) && passes(stack, TAKES_NEXT);
    (from_queue || takes_from_simple_queue(stack)) && passes(stack, BEGINS_THREAD)
}

/// Whether a thread waits in `queue.SimpleQueue`, which has no frame of Python's: directly in the function of a pool's worker, which takes
/// from nothing else, or in the module of such queues.
fn takes_from_simple_queue(stack: &[Frame]) -> bool {
    let inner = || {
        stack
            .iter()
            .take_while(|frame| frame.language != Language::Python)
    };
    let symbols = || inner().filter_map(|frame| frame.symbol.as_deref());
    let takes = symbols().any(|symbol| TAKES_LOCK.iter().any(|name| symbol.starts_with(name)));
    let of_module = |frame: &Frame| {
        let module = frame.module.as_deref().unwrap_or_default();
        module.starts_with(SIMPLE_QUEUE_MODULE)
    };
    let in_module = inner().any(of_module) || symbols().any(|symbol| symbol.starts_with(SIMPLE_QUEUE));
    let caller = stack.iter().find(|frame| frame.language == Language::Python);
    takes && (in_module || caller.is_some_and(python::is_pools_worker))
}

/// What a thread of Python waits for that no parked worker waits for, in words: room in a queue, a semaphore, or, in a thread that the program
/// began, a result.
#[must_use]
pub fn never_idle_in_python(stack: &[Frame]) -> Option<&'static str> {
    match in_python(stack)? {
        Primitive::Room => Some("room in a queue.Queue"),
        Primitive::Semaphore => Some("a threading.Semaphore"),
        Primitive::Future if passes(stack, BEGINS_THREAD) => Some("a result of another thread"),
        _ => None,
    }
}

/// A lock, or room in a channel, that a thread waits for, in words, by the function that takes it. The kernel's side of the wait does not always tell it from a parked
/// worker's: only a mutex of the C library and of Rust's has a number of its own.
#[must_use]
pub fn lock(stack: &[Frame]) -> Option<&'static str> {
    match primitive(stack)? {
        Primitive::ReadWriteLock => Some("a reader-writer lock"),
        Primitive::Mutex => Some("a mutex"),
        Primitive::Initialisation => Some("what is initialised once"),
        // Who has something to hand on has work.
        Primitive::Room => Some("room in a channel"),
        Primitive::Condition
        | Primitive::Barrier
        | Primitive::Semaphore
        | Primitive::ThreadEnd
        | Primitive::Future
        | Primitive::Queue
        | Primitive::BlockOn => None,
    }
}

/// Whether a function of Python's library is on the stack, by its file and name.
fn passes(stack: &[Frame], (path, name): (&str, &str)) -> bool {
    stack.iter().any(|frame| {
        let (file, symbol) = (frame.file.as_deref(), frame.symbol.as_deref());
        let own = symbol.is_some_and(|symbol| symbol.rsplit('.').next() == Some(name));
        frame.language == Language::Python && own && file.is_some_and(|file| file.ends_with(path))
    })
}

/// The function that takes from a queue, and the one in which a thread begins.
const TAKES_NEXT: (&str, &str) = ("/queue.py", "get");
const BEGINS_THREAD: (&str, &str) = ("/threading.py", "_bootstrap");

/// Functions of CPython in which a thread waits for a lock of the program's, or for a word since 3.13; not for the interpreter's own.
const TAKES_LOCK: &[&str] = &["PyThread_acquire_lock", "_PyParkingLot_Park", "_PySemaphore_Wait"];

/// The module of `queue.SimpleQueue` where it is a file of its own, and its functions.
const SIMPLE_QUEUE_MODULE: &str = "_queue.";
const SIMPLE_QUEUE: &str = "_queue_SimpleQueue_get";

fn in_rust(stack: &[Frame]) -> Option<Primitive> {
    if !rust::is_rust(stack) {
        return None;
    }
    if rust::parked_in_tokio(stack) == Some(TokioPark::Future) {
        return Some(Primitive::BlockOn);
    }
    let library = stack.iter().take_while(|frame| {
        of_c_library(frame) || rust::of_library(frame) || rust::of_library_of_locks(frame)
    });
    let known = |frame: &Frame| {
        let symbol = frame.symbol.as_deref()?;
        let name = symbol.rsplit("::").next().unwrap_or(symbol);
        let of = |(part, functions, _): &&(&str, &[&str], Primitive)| {
            symbol.contains(part) && functions.contains(&name)
        };
        IN_RUST.iter().find(of).map(|(.., primitive)| *primitive)
    };
    library.filter_map(known).last()
}

fn in_cpp(stack: &[Frame]) -> Option<Primitive> {
    let library = stack
        .iter()
        .skip_while(|frame| of_c_library(frame))
        .take_while(|frame| cpp::of_runtime(frame) || cpp::of_library(frame) || of_c_library(frame));
    let known = |frame: &Frame| {
        let name = cpp::qualified(frame.symbol.as_deref()?);
        let name = name.strip_prefix(STANDARD).unwrap_or(name);
        let of = |(begin, _): &&(&str, Primitive)| name.starts_with(begin);
        IN_CPP.iter().find(of).map(|(_, primitive)| *primitive)
    };
    library.filter_map(known).last()
}

fn in_c(stack: &[Frame]) -> Option<Primitive> {
    let (library, _) = split(stack);
    let mut outermost = library.iter().rev().filter_map(bare);
    outermost.find_map(|name| {
        // With debugging symbols it is the name within the library.
        let name = name.trim_start_matches('_');
        let known = PRIMITIVES.iter().find(|(functions, _)| functions.contains(&name));
        known.map(|(_, primitive)| *primitive)
    })
}

#[cfg(test)]
mod tests {
    use super::super::python_lock;
    use super::{Primitive, never_idle_in_python, primitive, takes_next_in_python};
    use holdup_evidence::{Frame, Language};

    fn stack(frames: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(module, symbol): &(&str, &str)| Frame {
            module: Some((*module).to_owned()),
            symbol: (!symbol.is_empty()).then(|| (*symbol).to_owned()),
            ..Frame::default()
        };
        frames.iter().map(frame).collect()
    }

    #[test]
    fn what_of_the_c_library_is_waited_in_is_told_by_what_the_program_called() {
        let look_up = |frames: &[(&str, &str)]| primitive(&stack(frames));
        let condition = [
            ("libc.so.6", ""),
            ("libc.so.6", "pthread_cond_wait@@GLIBC_2.3.2"),
            (
                "libstdc++.so.6",
                "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
            ),
        ];
        assert_eq!(look_up(&condition), Some(Primitive::Condition));
        // With debugging symbols.
        let semaphore = [
            ("libc.so.6", "__futex_abstimed_wait_common64"),
            ("libc.so.6", "__new_sem_wait_slow64.constprop.0"),
            ("libc.so.6", "___sem_wait"),
            ("server", "take"),
        ];
        assert_eq!(look_up(&semaphore), Some(Primitive::Semaphore));
        let own = [("server", "pthread_barrier_wait"), ("server", "main")];
        assert_eq!(look_up(&own), None, "a function of the program's own");
        let python = [
            ("libc.so.6", "sem_clockwait"),
            ("libpython3.11.so.1.0", "PyThread_acquire_lock_timed"),
        ];
        assert!(python_lock(&stack(&python)) && !python_lock(&stack(&condition)));
    }

    #[test]
    fn a_thread_of_python_without_work_is_told_from_one_that_waits_for_another() {
        let stack = |frames: &[(&str, &str)]| -> Vec<Frame> {
            let frame = |(file, symbol): &(&str, &str)| Frame {
                symbol: Some((*symbol).to_owned()),
                file: Some(format!("/usr/lib/python3.11/{file}")),
                language: Language::Python,
                ..Frame::default()
            };
            frames.iter().map(frame).collect()
        };
        let wait = ("threading.py", "Condition.wait");
        let begins = ("threading.py", "Thread._bootstrap");
        let worker = stack(&[wait, ("queue.py", "Queue.get"), ("app.py", "work"), begins]);
        let main = stack(&[wait, ("queue.py", "Queue.get"), ("app.py", "main")]);
        let joins = stack(&[wait, ("queue.py", "Queue.join"), ("app.py", "main"), begins]);
        assert_eq!(
            [&worker, &main, &joins].map(|stack| takes_next_in_python(stack)),
            [true, false, false]
        );
        let puts = stack(&[wait, ("queue.py", "Queue.put"), ("app.py", "make")]);
        assert_eq!(never_idle_in_python(&puts), Some("room in a queue.Queue"));
        let result = ("concurrent/futures/_base.py", "Future.result");
        let of_main = stack(&[wait, result, ("app.py", "main")]);
        let of_task = stack(&[wait, result, ("app.py", "task"), begins]);
        assert_eq!(never_idle_in_python(&of_main), None);
        assert!(never_idle_in_python(&of_task).is_some() && never_idle_in_python(&worker).is_none());
    }

    #[test]
    fn of_what_cpp_initialises_once_only_who_waits_is_told() {
        let look_up = |frames: &[(&str, &str)]| primitive(&stack(frames));
        let future = [
            ("libc.so.6", "syscall"),
            (
                "libstdc++.so.6.0.30",
                "std::__atomic_futex_unsigned_base::_M_futex_wait_until(unsigned int*, unsigned int)",
            ),
            ("server", "std::future<int>::get()"),
            ("server", "main"),
        ];
        assert_eq!(look_up(&future), Some(Primitive::Future));
        let guard = [
            ("libc.so.6", "syscall"),
            ("libstdc++.so.6.0.30", "__cxa_guard_acquire"),
            ("server", "table()"),
        ];
        assert_eq!(look_up(&guard), Some(Primitive::Initialisation));
        let once = [
            ("libc.so.6", "__pthread_once_slow"),
            ("server", "__gthread_once(int*, void (*)())"),
            (
                "server",
                "void std::call_once<void (&)()>(std::once_flag&, void (&)())",
            ),
            ("server", "config()"),
        ];
        assert_eq!(look_up(&once), Some(Primitive::Initialisation));
        let initialises = [&[("libc.so.6", "recv"), ("server", "load()")], &once[..]].concat();
        assert_eq!(look_up(&initialises), None);
    }

    #[test]
    fn channels_of_rust_are_told_by_the_end_that_waits() {
        let look_up = |library: &[&str]| {
            let mut frames = vec![
                ("libc.so.6", "syscall"),
                ("shop", "std::sys::pal::unix::futex::futex_wait"),
            ];
            frames.extend(library.iter().map(|symbol| ("shop", *symbol)));
            frames.extend([("shop", "shop::announce"), ("shop", "std::rt::lang_start")]);
            primitive(&stack(&frames))
        };
        let park = "std::thread::park";
        assert_eq!(
            look_up(&[
                park,
                "std::sync::mpmc::array::Channel<T>::send",
                "std::sync::mpsc::SyncSender<T>::send"
            ]),
            Some(Primitive::Room)
        );
        assert_eq!(
            look_up(&[
                park,
                "std::sync::mpmc::list::Channel<T>::recv",
                "std::sync::mpsc::Receiver<T>::recv"
            ]),
            Some(Primitive::Queue)
        );
        let condition = "<std::sys::sync::condvar::futex::Condvar>::wait";
        assert_eq!(look_up(&[condition]), Some(Primitive::Condition));
        assert_eq!(
            look_up(&[condition, "std::sync::barrier::Barrier::wait"]),
            Some(Primitive::Barrier)
        );
        assert_eq!(
            look_up(&["<std::sys::sync::once::futex::Once>::call"]),
            Some(Primitive::Initialisation)
        );
        let mutex = "<std::sys::sync::mutex::futex::Mutex>::lock_contended";
        assert_eq!(
            look_up(&[mutex, "std::sync::poison::mutex::Mutex<T>::lock"]),
            Some(Primitive::Mutex)
        );
        assert_eq!(look_up(&[park]), Some(Primitive::Condition));
    }

    #[test]
    fn pythons_library_says_what_its_locks_are_for() {
        let python = |frames: &[(&str, &str)]| {
            let frame = |(symbol, file): &(&str, &str)| Frame {
                symbol: Some((*symbol).to_owned()),
                file: Some((*file).to_owned()),
                language: Language::Python,
                ..Frame::default()
            };
            let mut all = stack(&[
                ("libc.so.6", "sem_clockwait"),
                ("python3.11", "PyThread_acquire_lock_timed"),
            ]);
            all.extend(frames.iter().map(frame));
            primitive(&all)
        };
        let threading = "/usr/lib/python3.11/threading.py";
        let wait = ("Condition.wait", threading);
        let own = ("resize", "/srv/resize.py");
        assert_eq!(
            python(&[wait, ("Semaphore.acquire", threading), own]),
            Some(Primitive::Semaphore)
        );
        let futures = "/usr/lib/python3.11/concurrent/futures/_base.py";
        assert_eq!(
            python(&[wait, ("Future.result", futures), own]),
            Some(Primitive::Future)
        );
        assert_eq!(
            python(&[wait, ("Queue.put", "/usr/lib/python3.11/queue.py"), own]),
            Some(Primitive::Room)
        );
        assert_eq!(python(&[wait, own]), Some(Primitive::Condition));
        // What waits in C by itself is what the C library says.
        assert_eq!(python(&[own, wait]), Some(Primitive::Semaphore));
    }

    /// A pool's worker takes its next task in machine code: there is no frame of the queue.
    #[test]
    fn a_worker_of_a_pool_without_a_task_takes_from_a_queue() {
        let begins = ("/usr/lib/python3.11/threading.py", "Thread._bootstrap");
        let worker = ("/usr/lib/python3.11/concurrent/futures/thread.py", "_worker");
        let of = |native: &[(&str, &str)], caller: (&str, &str)| {
            let mut all = stack(native);
            all.extend([caller, begins].map(|(file, symbol)| Frame {
                file: Some(file.to_owned()),
                symbol: Some(symbol.to_owned()),
                language: Language::Python,
                ..Frame::default()
            }));
            all
        };
        let takes = ("python3.11", "PyThread_acquire_lock_timed");
        let module = ("_queue.cpython-311-x86_64-linux-gnu.so", "");
        assert!(takes_next_in_python(&of(&[takes, module], worker)));
        assert!(takes_next_in_python(&of(&[takes, ("python3.11", "")], worker)));
        let own = ("/srv/app.py", "drain");
        assert!(takes_next_in_python(&of(&[takes, module], own)));
        // A lock of the program's, the interpreter's own, and the main thread.
        assert!(!takes_next_in_python(&of(&[takes, ("python3.11", "")], own)));
        assert!(!takes_next_in_python(&of(&[("python3.11", "take_gil")], worker)));
        let mut main = of(&[takes, module], own);
        main.pop();
        assert!(!takes_next_in_python(&main));
    }
}
