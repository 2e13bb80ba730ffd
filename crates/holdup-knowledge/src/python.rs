//! Files of Python code: whose they are.
//!
//! In: the path that a code object names. Out: whether it belongs to the standard library or to an installed package, and not to
//! the program.

use holdup_evidence::{Frame, Language};

/// Folders into which packages are installed, or copied beside the program or within another package.
const PACKAGES: [&str; 4] = ["site-packages", "dist-packages", "vendor", "_vendor"];

/// Code that is part of the interpreter's binary: `<frozen importlib._bootstrap>`.
const FROZEN: &str = "<frozen ";

/// Files in which threads and programs begin.
const BEGIN: [&str; 2] = ["threading.py", "runpy.py"];

/// The function in which a process that the library has forked begins, and its file: what is further out is what the one that forked it was in,
/// and nothing that this process asked for.
const FORKED: (&str, &str) = ("/multiprocessing/process.py", "_bootstrap");

/// Whether a file is of the standard library or of an installed package.
#[must_use]
pub fn of_library(file: &str) -> bool {
    let folders = || file.rsplit('/').skip(1);
    file.starts_with(FROZEN)
        || folders().any(|folder| PACKAGES.contains(&folder))
        || folders()
            .zip(folders().skip(1))
            .any(|(folder, above)| is_version(folder) && matches!(above, "lib" | "lib64"))
}

/// Whether a function is of the standard library or of an installed package: by where its file is, or by the package that an installer put it
/// there with.
#[must_use]
pub fn is_of_library(frame: &Frame) -> bool {
    frame.package.is_some() || of_library(frame.file.as_deref().unwrap_or_default())
}

/// Whether a file of the library is one in which a thread or a program begins, whatever it does later.
#[must_use]
pub fn begins(file: &str) -> bool {
    file.starts_with(FROZEN)
        || file.ends_with(FORKED.0)
        || file.rsplit('/').next().is_some_and(|name| BEGIN.contains(&name))
}

/// The frames of Python's that a process has made itself, innermost first.
fn own(stack: &[Frame]) -> impl DoubleEndedIterator<Item = &Frame> {
    let frames = |frame: &&Frame| frame.language == Language::Python;
    let begins = stack.iter().position(|frame| is_of(frame, FORKED));
    let end = begins.map_or(stack.len(), |at| at + 1);
    stack.iter().take(end).filter(frames)
}

/// Whether a frame is of a function of the library, by its file and its name within its class.
fn is_of(frame: &Frame, (path, name): (&str, &str)) -> bool {
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    let file = frame.file.as_deref().unwrap_or_default();
    frame.language == Language::Python && file.ends_with(path) && symbol.rsplit('.').next() == Some(name)
}

/// The function that asked: the innermost of the program's own, or, where there is none, what the thread began with.
#[must_use]
pub fn asker(stack: &[Frame]) -> Option<&Frame> {
    let frames = || own(stack);
    let begun = || frames().rfind(|frame| !begins(frame.file.as_deref().unwrap_or_default()));
    application(stack).or_else(begun).or_else(|| frames().next_back())
}

/// The innermost function of the program's own; one that was made from a text while the program ran only where no other is there: libraries
/// make wrappers so.
#[must_use]
pub fn application(stack: &[Frame]) -> Option<&Frame> {
    let programs = |frame: &&Frame| !is_of_library(frame);
    own(stack)
        .filter(programs)
        .find(|frame| !is_made_from_text(frame))
        .or_else(|| own(stack).find(programs))
}

/// Whether a function has no file: `<string>`. What is outside of functions there is a program that was given as a text.
fn is_made_from_text(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    file.starts_with('<') && file.ends_with('>') && frame.symbol.as_deref() != Some("<module>")
}

/// The functions below which threads of the library's pools work on tasks, and their files.
const WORKERS: [(&str, &str); 2] = [
    ("/concurrent/futures/thread.py", "_worker"),
    ("/multiprocessing/pool.py", "worker"),
];

/// Whether a frame is that of a pool's thread, of the library.
#[must_use]
pub fn is_pools_worker(frame: &Frame) -> bool {
    let (file, symbol) = (frame.file.as_deref(), frame.symbol.as_deref());
    let is =
        |(path, name): &(&str, &str)| file.is_some_and(|file| file.ends_with(path)) && symbol == Some(*name);
    frame.language == Language::Python && WORKERS.iter().any(is)
}

/// The file of the function in which a thread waits for the result of a task that it has given to an executor.
const OF_FUTURES: &str = "/concurrent/futures/_base.py";

/// Whether a thread of a pool waits, in a task that it runs, for the result of another one.
#[must_use]
pub fn worker_awaits_result(stack: &[Frame]) -> bool {
    let python = || stack.iter().filter(|frame| frame.language == Language::Python);
    let awaits = |frame: &Frame| {
        let file = frame.file.as_deref().unwrap_or_default();
        file.ends_with(OF_FUTURES) && matches!(frame.symbol.as_deref(), Some("Future.result" | "result"))
    };
    // Before 3.11 a method has no class.
    let from = python().position(awaits);
    from.is_some_and(|from| python().skip(from).any(is_pools_worker))
}

/// The functions in which a process of a pool takes its next task and works on it; and what takes it from the queue.
const TASKS: [(&str, &str); 3] = [
    ("/multiprocessing/pool.py", "worker"),
    ("/concurrent/futures/process.py", "_process_worker"),
    ("/billiard/pool.py", "workloop"),
];
/// The threads of a pool that take results from its processes for whoever waits for one, and look after the processes.
const RESULTS: [(&str, &str); 3] = [
    ("/multiprocessing/pool.py", "_handle_results"),
    ("/multiprocessing/pool.py", "_handle_workers"),
    ("/concurrent/futures/process.py", "wait_result_broken_or_wakeup"),
];
const TAKES: [(&str, &str); 5] = [
    ("/multiprocessing/pool.py", "_wait_for_updates"),
    ("/multiprocessing/connection.py", "wait"),
    ("/multiprocessing/queues.py", "get"),
    ("/billiard/queues.py", "get"),
    ("/billiard/pool.py", "receive"),
];

/// What a process of a pool, or the pool's own thread, waits for in a queue between the two, where there is nothing for it, in words.
#[must_use]
pub fn awaits_of_pool(stack: &[Frame]) -> Option<&'static str> {
    let mut called = None;
    let is = |frame: &Frame, functions: &[(&str, &str)]| functions.iter().any(|one| is_of(frame, *one));
    for frame in own(stack) {
        let what = match () {
            () if is(frame, &TASKS) => Some("a task from its pool"),
            () if is(frame, &RESULTS) => Some("a result from the processes of its pool"),
            () => None,
        };
        if what.is_some() {
            return what.filter(|_| called.is_some_and(|called| is(called, &TAKES)));
        }
        called = Some(frame);
    }
    None
}

/// What takes a lock that processes share, and its file; and the functions of a queue that hold its lock while they read or write one message.
const TAKES_SHARED: (&str, &str) = ("/multiprocessing/synchronize.py", "__enter__");
const OF_QUEUE: [(&str, &str); 2] = [
    ("/multiprocessing/queues.py", "get"),
    ("/multiprocessing/queues.py", "put"),
];

/// Whether a process takes the lock of a queue of `multiprocessing`.
#[must_use]
pub fn takes_queues_lock(stack: &[Frame]) -> bool {
    let mut frames = own(stack);
    let takes = frames.next().is_some_and(|frame| is_of(frame, TAKES_SHARED));
    let caller = frames.next();
    takes && caller.is_some_and(|caller| OF_QUEUE.iter().any(|queue| is_of(caller, *queue)))
}

/// Where in the program's own code a process waits to enter a block of `with` for a lock of `multiprocessing`.
#[must_use]
pub fn enters_shared_lock(stack: &[Frame]) -> Option<&Frame> {
    let mut frames = own(stack);
    let takes = frames.next().is_some_and(|frame| is_of(frame, TAKES_SHARED));
    frames.next().filter(|caller| takes && !is_of_library(caller))
}

/// The function of an event loop that runs what is ready, and its file; and the file of what it waits in.
const LOOP: (&str, &str) = ("base_events.py", "_run_once");
const SELECTORS: &str = "selectors.py";

/// Whether a frame is of a file of this name.
fn is(frame: &Frame, file: &str) -> bool {
    let path = frame.file.as_deref().unwrap_or_default();
    path.rsplit('/').next() == Some(file)
}

/// Whether a thread stood in something that its event loop called, and not in the loop's own wait for events.
#[must_use]
pub fn keeps_event_loop(stack: &[Frame]) -> bool {
    let frames = stack.iter().filter(|frame| frame.language == Language::Python);
    let mut called = None;
    for frame in frames {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        if is(frame, LOOP.0) && symbol.rsplit('.').next() == Some(LOOP.1) {
            return called.is_some_and(|called| !is(called, SELECTORS));
        }
        called = Some(frame);
    }
    false
}

/// Whether a thread runs an event loop of `asyncio`.
#[must_use]
pub fn runs_event_loop(stack: &[Frame]) -> bool {
    let of_loop = |frame: &Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        frame.language == Language::Python && is(frame, LOOP.0) && symbol.rsplit('.').next() == Some(LOOP.1)
    };
    stack.iter().any(of_loop)
}

/// `python3.11`, `python3.13t`.
fn is_version(folder: &str) -> bool {
    let minor = folder.strip_prefix("python3.").unwrap_or_default();
    let digits = minor.trim_end_matches('t');
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{
        asker, awaits_of_pool, begins, enters_shared_lock, keeps_event_loop, of_library, runs_event_loop,
        takes_queues_lock,
    };
    use holdup_evidence::{Frame, Language};

    fn stack_of(names: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(file, symbol): &(&str, &str)| Frame {
            symbol: Some((*symbol).to_owned()),
            file: Some((*file).to_owned()),
            language: Language::Python,
            ..Frame::default()
        };
        names.iter().map(frame).collect()
    }

    const LIBRARY: &str = "/usr/lib/python3.11/multiprocessing";

    #[test]
    fn a_process_of_a_pool_has_no_task_while_it_takes_the_next_one() {
        let file = |name: &str| format!("{LIBRARY}/{name}");
        let (pool, queues) = (file("pool.py"), file("queues.py"));
        let (connection, process) = (file("connection.py"), file("process.py"));
        let worker = (pool.as_str(), "worker");
        let receives = (connection.as_str(), "Connection._recv");
        let begins = [(process.as_str(), "BaseProcess._bootstrap"), ("shop.py", "main")];
        let of = |inner: &[(&str, &str)]| awaits_of_pool(&stack_of(&[inner, &begins].concat())).is_some();
        assert!(of(&[receives, (&queues, "SimpleQueue.get"), worker]));
        assert!(of(&[(&queues, "get"), worker]), "before 3.11, without the class");
        assert!(!of(&[(&queues, "SimpleQueue.put"), worker]), "its result");
        assert!(!of(&[("shop.py", "render"), worker]));
        assert!(
            !of(&[receives, (&queues, "Queue.get"), ("shop.py", "render"), worker]),
            "of its task"
        );
        assert!(
            !of(&[receives, (&queues, "Queue.get"), ("shop.py", "work")]),
            "a queue of its own"
        );
        let results = (pool.as_str(), "Pool._handle_results");
        assert!(
            of(&[receives, (&queues, "SimpleQueue.get"), results]),
            "the pool's own thread"
        );
        assert!(!of(&[
            receives,
            (&queues, "SimpleQueue.get"),
            (&pool, "Pool.map")
        ]));
        let waits = (connection.as_str(), "wait");
        let looks = [
            waits,
            (pool.as_str(), "Pool._wait_for_updates"),
            (pool.as_str(), "Pool._handle_workers"),
        ];
        assert!(of(&looks));
        let manages = "_ExecutorManagerThread.wait_result_broken_or_wakeup";
        assert!(of(&[
            waits,
            ("/usr/lib/python3.12/concurrent/futures/process.py", manages)
        ]));
        assert!(!of(&[waits, ("shop.py", "work")]));
        let executor = "/usr/lib/python3.12/concurrent/futures/process.py";
        assert!(of(&[
            receives,
            (&queues, "Queue.get"),
            (executor, "_process_worker")
        ]));
    }

    #[test]
    fn the_lock_of_a_queue_is_taken_by_its_own_functions_alone() {
        let file = |name: &str| format!("{LIBRARY}/{name}");
        let (locks, queues) = (file("synchronize.py"), file("queues.py"));
        let enters = (locks.as_str(), "SemLock.__enter__");
        let takes = |names: &[(&str, &str)]| takes_queues_lock(&stack_of(names));
        assert!(takes(&[enters, (&queues, "Queue.get"), ("shop.py", "work")]));
        assert!(takes(&[
            enters,
            (&queues, "SimpleQueue.put"),
            ("shop.py", "work")
        ]));
        assert!(!takes(&[enters, ("shop.py", "work")]), "a lock of the program");
        let own = |names: &[(&str, &str)]| enters_shared_lock(&stack_of(names)).is_some();
        assert!(own(&[enters, ("shop.py", "work")]));
        assert!(!own(&[enters, (&queues, "Queue.get"), ("shop.py", "work")]));
        assert!(!own(&[("shop.py", "work")]), "in the block");
        assert!(
            !takes(&[(&queues, "Queue.put"), ("shop.py", "work")]),
            "room in a queue"
        );
    }

    #[test]
    fn what_the_process_was_in_that_forked_another_did_not_ask_for_the_other() {
        let file = |name: &str| format!("{LIBRARY}/{name}");
        let (pool, process, forks) = (file("pool.py"), file("process.py"), file("popen_fork.py"));
        let asked = |inner: &[(&str, &str)]| {
            let outer = [
                (process.as_str(), "BaseProcess.run"),
                (process.as_str(), "BaseProcess._bootstrap"),
                (forks.as_str(), "Popen._launch"),
                ("shop.py", "main"),
            ];
            let stack = stack_of(&[inner, &outer].concat());
            asker(&stack).and_then(|frame| frame.symbol.clone())
        };
        assert_eq!(asked(&[(&pool, "worker")]).as_deref(), Some("worker"));
        assert_eq!(
            asked(&[("shop.py", "render"), (&pool, "worker")]).as_deref(),
            Some("render")
        );
        assert_eq!(asked(&[]).as_deref(), Some("BaseProcess._bootstrap"));
        let started = stack_of(&[(&pool, "Pool.map"), ("shop.py", "main")]);
        assert_eq!(
            asker(&started).and_then(|frame| frame.symbol.as_deref()),
            Some("main")
        );
    }

    #[test]
    fn a_loop_is_kept_from_its_events_by_what_it_called_and_not_by_its_own_wait() {
        let stack = |names: &[(&str, &str)]| -> Vec<Frame> {
            let frame = |(file, symbol): &(&str, &str)| Frame {
                symbol: Some((*symbol).to_owned()),
                file: Some(format!("/usr/lib/python3.11/{file}")),
                language: Language::Python,
                ..Frame::default()
            };
            names.iter().map(frame).collect()
        };
        let loops = ("asyncio/base_events.py", "BaseEventLoop._run_once");
        let selects = ("selectors.py", "EpollSelector.select");
        let (runs, pays) = (("asyncio/events.py", "Handle._run"), ("shop.py", "pay"));
        for (names, keeps) in [
            (vec![pays, runs, loops], true),
            (vec![selects, pays, runs, loops], true),
            (vec![selects, loops], false),
            (vec![loops], false),
            (vec![pays], false),
        ] {
            let stack = stack(&names);
            assert_eq!(runs_event_loop(&stack), names.contains(&loops));
            assert_eq!(keeps_event_loop(&stack), keeps, "{names:?}");
        }
    }

    #[test]
    fn the_library_and_packages_are_not_the_program() {
        for file in [
            "/usr/lib/python3.11/threading.py",
            "/usr/lib64/python3.9/asyncio/base_events.py",
            "/opt/python/lib/python3.13t/queue.py",
            "/srv/venv/lib/python3.12/site-packages/flask/app.py",
            "/usr/lib/python3/dist-packages/gunicorn/workers/sync.py",
            "<frozen importlib._bootstrap>",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/app.py",
            "/srv/lib/python/app.py",
            "/srv/python3.11/app.py",
            "/usr/lib/python3.x/app.py",
            "app.py",
            "<string>",
            "<stdin>",
            "",
        ] {
            assert!(!of_library(file), "{file}");
        }
        assert!(begins("/usr/lib/python3.8/threading.py") && begins("<frozen runpy>"));
        assert!(!begins("/usr/lib/python3.8/queue.py"));
    }
}
