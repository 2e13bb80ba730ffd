//! Functions of Rust programs: whose they are.
//!
//! The problem: a program's standard library and the crates that it uses are compiled into it, so the module says nothing of whose a
//! function is; and identical functions share one address, so a name of the standard library may be another one's. The choice: by the
//! source file where there is debug information, else by the crate in the name.

use holdup_evidence::{Frame, Language};

/// Crates of the toolchain.
const OWN_CRATES: [&str; 5] = ["std", "core", "alloc", "proc_macro", "test"];

/// What the compiler's own functions begin with.
const COMPILERS: [&str; 3] = ["__rust_", "rust_", "_R"];

/// Functions that are in the stack of each thread or main function of Rust.
const BEGINS: [&str; 3] = [
    "std::rt::lang_start",
    "std::sys::backtrace::__rust_begin_short_backtrace",
    "std::sys_common::backtrace::__rust_begin_short_backtrace",
];

/// Source files of Rust.
const SOURCE: &str = ".rs";

/// Where the toolchain was built, and where it keeps its sources.
const TOOLCHAIN: [&str; 2] = ["/rustc/", "/rustlib/src/rust/"];

/// Folders of fetched crates: by the package manager from a registry or a repository, and kept beside the program.
const FETCHED: [&str; 3] = ["/registry/src/", "/git/checkouts/", "/vendor/"];

/// The folder of a registry's fetched crates, in which each registry has one, and each crate with its version.
const REGISTRY: &str = "/registry/src/";

/// The crate that a package manager fetched from a registry, by the file of a function: `dashmap` of `…/registry/src/x/dashmap-6.2.1/src/lib.rs`.
#[must_use]
pub fn fetched_crate(frame: &Frame) -> Option<&str> {
    let (_, path) = frame.file.as_deref()?.rsplit_once(REGISTRY)?;
    let (name, version) = path.split('/').nth(1)?.rsplit_once('-')?;
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(name)
}

/// Whether a stack is of a Rust program, whose frames have names.
#[must_use]
pub fn is_rust(stack: &[Frame]) -> bool {
    stack.iter().any(|frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        frame.language == Language::Native
            && (in_rust(frame) || BEGINS.iter().any(|begin| symbol.starts_with(begin)))
    })
}

/// Where tokio's scheduler runs a task, by parts of a function's name, and where it runs what may block, in threads beside.
const RUNS_TASK: (&str, [&str; 2]) = ("tokio::runtime::scheduler::", ["run_task", "CoreGuard"]);
const MAY_BLOCK: [&str; 2] = ["tokio::runtime::blocking::pool", "block_in_place"];

/// What tokio's own functions begin with.
const TOKIO: [&str; 2] = ["tokio::", "<tokio::"];

/// Whether a thread stood in a function of the program that a worker of tokio had called: no other task of this worker runs meanwhile. The functions
/// of a future on which the thread blocks have called nothing: their frames stand between where tokio waits and what runs the future.
#[must_use]
pub fn keeps_event_loop(stack: &[Frame]) -> bool {
    let mut called = false;
    for frame in &stack[behind_future(stack)..] {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        if MAY_BLOCK.iter().any(|part| symbol.contains(part)) {
            return false;
        }
        if symbol.contains(RUNS_TASK.0) && RUNS_TASK.1.iter().any(|part| symbol.contains(part)) {
            return called;
        }
        let of_tokio = TOKIO.iter().any(|begin| symbol.starts_with(begin));
        called |= in_rust(frame) && !of_tokio && !of_library(frame);
    }
    false
}

/// How many frames are those of a wait of tokio's own for a future, and of that future; 0 of a wait of another kind.
fn behind_future(stack: &[Frame]) -> usize {
    let of_wait = |frame: &Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        PARKS.iter().chain(&DRIVERS).any(|part| symbol.contains(part))
    };
    let own = |frame: &Frame| in_rust(frame) && !of_library(frame);
    let waits = stack.iter().position(of_wait);
    let called = stack.iter().position(own).unwrap_or(stack.len());
    match waits {
        Some(waits) if waits < called => stack.iter().position(blocks).unwrap_or_default(),
        _ => 0,
    }
}

/// Whether a function runs one future until it is ready.
fn blocks(frame: &Frame) -> bool {
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    let name = |part: &str| part.split('<').next() == Some(BLOCKS_ON);
    symbol.split("::").any(name)
}

/// What a thread that tokio has parked waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokioPark {
    /// A worker of the scheduler, or a thread for what may block: for a task that can run.
    Work,
    /// A thread that runs one future until it is ready (`block_on`): for that, in a task or by itself.
    Future,
}

/// What each library names the function that runs one future in the thread that calls it.
const BLOCKS_ON: &str = "block_on";

/// Where such a function runs its future, or a scheduler within it one of its tasks, by parts of functions' names.
const RUNS_FUTURE: [&str; 4] = [
    "core::future::future::Future",
    "tokio::task::coop::",
    "tokio::coop::",
    "tokio::runtime::task::",
];

/// Where in a stack the function is that runs one future until it is ready, if the thread waits there for that: it stands neither in the future
/// nor in a task. `None` where that is within another such future: which of the two is known of is not to be told.
#[must_use]
pub fn blocks_on(stack: &[Frame]) -> Option<usize> {
    let at = stack.iter().position(blocks)?;
    let own = |frame: &Frame| in_rust(frame) && !of_library(frame);
    let (inner, outer) = stack.split_at(at);
    // What runs it may be several functions, one within the other; a function of the program's that has such a name is one of them.
    let mut callers = outer.iter().skip_while(|frame| blocks(frame) || !own(frame));
    if callers.any(blocks) {
        return None;
    }
    let runs = |frame: &Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        own(frame) || RUNS_FUTURE.iter().any(|part| symbol.contains(part))
    };
    (!inner.iter().any(runs)).then_some(at)
}

/// Where a worker parks, where a thread for what may block does, and what all of them are made of, by parts of functions' names.
const WORKERS_PARK: [&str; 2] = [
    "tokio::runtime::scheduler::multi_thread",
    "tokio::runtime::blocking::pool",
];
const PARKS: [&str; 2] = [
    "tokio::runtime::park",
    "tokio::runtime::scheduler::current_thread",
];
const MADE_OF: [&str; 1] = ["tokio::loom"];

/// A library of locks that tokio may be built with, and that programs use in place of the standard library's.
const LOCKS_OF_OTHERS: &str = "parking_lot";

/// Whether a function is of a library of locks, by its name: a program without debug information has no more.
#[must_use]
pub fn of_library_of_locks(frame: &Frame) -> bool {
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    symbol.trim_start_matches('<').starts_with(LOCKS_OF_OTHERS)
}

/// What a thread waits for that a function of tokio's runtime has parked; `None` of one that waits in something else.
#[must_use]
pub fn parked_in_tokio(stack: &[Frame]) -> Option<TokioPark> {
    let mut seen_tokio = false;
    for frame in stack {
        let Some(symbol) = frame.symbol.as_deref() else {
            // The C library has no names.
            if seen_tokio {
                return None;
            }
            continue;
        };
        let has = |parts: &[&str]| parts.iter().any(|part| symbol.contains(part));
        if has(&WORKERS_PARK) {
            return Some(TokioPark::Work);
        }
        if has(&PARKS) {
            return Some(TokioPark::Future);
        }
        let of_tokio = TOKIO.iter().any(|begin| symbol.starts_with(begin));
        seen_tokio |= of_tokio;
        let between = has(&MADE_OF) || symbol.contains(LOCKS_OF_OTHERS) || of_toolchain(symbol);
        let of_c = !in_rust(frame) && !symbol.contains("::");
        if !(between || of_c && !seen_tokio) {
            return None;
        }
    }
    None
}

/// Where a thread of tokio's waits for what comes first of all descriptors and timers of its tasks.
const DRIVERS: [&str; 2] = [
    "tokio::runtime::time::Driver::",
    "tokio::runtime::io::driver::Driver::",
];

/// Whether a thread waits for descriptors and timers of tokio's tasks: its sleep is one of theirs.
#[must_use]
pub fn drives_tokio(stack: &[Frame]) -> bool {
    let mut symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    symbols.any(|symbol| DRIVERS.iter().any(|driver| symbol.contains(driver)))
}

/// What tokio calls its workers, as far as the kernel keeps it.
const WORKERS_NAME: &str = "tokio-rt-worker";

/// Whether tokio runs tasks in a thread, by its name or its functions.
#[must_use]
pub fn runs_tokio(thread: &str, stack: &[Frame]) -> bool {
    let of_runtime = |frame: &Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        symbol.starts_with("tokio::runtime::")
    };
    thread == WORKERS_NAME || stack.iter().any(of_runtime)
}

/// Whether a function of a Rust program is of the toolchain or of a fetched crate.
#[must_use]
pub fn of_library(frame: &Frame) -> bool {
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    if COMPILERS.iter().any(|begin| symbol.starts_with(begin)) {
        return true;
    }
    match frame.file.as_deref().filter(|_| in_rust(frame)) {
        Some(file) => {
            let places = TOOLCHAIN.iter().chain(&FETCHED);
            places.into_iter().any(|place| file.contains(place))
        }
        None => of_toolchain(symbol),
    }
}

/// Whether a function is of the toolchain, by its name: `core::ptr::read`, `<alloc::vec::Vec<T> as core::clone::Clone>::clone`. What a program
/// implements is its own: `<shop::Cart as core::clone::Clone>::clone`.
fn of_toolchain(symbol: &str) -> bool {
    let first = symbol.trim_start_matches(['<', '&', '*', '[', '(']);
    let first = ["mut ", "const ", "dyn "]
        .iter()
        .fold(first, |name, word| name.strip_prefix(word).unwrap_or(name));
    let (begin, path) = first.split_once("::").unwrap_or((first, ""));
    // What is implemented for any type, or for one of the language's own.
    let implemented = || {
        let (_, of) = first.split_once(" as ")?;
        of.split("::").next()
    };
    let name = match begin.split_once(" as ") {
        Some(_) => implemented().unwrap_or(begin),
        None => begin,
    };
    !path.is_empty() && OWN_CRATES.contains(&name)
}

fn in_rust(frame: &Frame) -> bool {
    frame.file.as_deref().is_some_and(|file| file.ends_with(SOURCE))
}

#[cfg(test)]
mod tests {
    use super::{TokioPark, blocks_on, drives_tokio, is_rust, keeps_event_loop, of_library, parked_in_tokio};
    use holdup_evidence::Frame;

    #[test]
    fn a_fetched_crate_is_told_by_its_folder() {
        let of = |file: &str| {
            let frame = Frame {
                file: Some(file.to_owned()),
                ..Default::default()
            };
            super::fetched_crate(&frame).map(str::to_owned)
        };
        let home = "/home/dev/.cargo/registry/src/index.crates.io-1949";
        assert_eq!(
            of(&format!("{home}/dashmap-6.2.1/src/lib.rs")).as_deref(),
            Some("dashmap")
        );
        assert_eq!(
            of(&format!("{home}/lock_api-0.4.14/src/rwlock.rs")).as_deref(),
            Some("lock_api")
        );
        assert_eq!(of("/rustc/59/library/std/src/sync/mutex.rs"), None);
        assert_eq!(of("/srv/shop/src/main.rs"), None);
    }

    fn frame(symbol: &str, file: Option<&str>) -> Frame {
        Frame {
            symbol: Some(symbol.to_owned()),
            module: Some("shop".to_owned()),
            file: file.map(str::to_owned),
            ..Frame::default()
        }
    }

    #[test]
    fn functions_of_the_toolchain_and_of_fetched_crates_are_told_by_their_files() {
        let std = "/rustc/59807616e1fa/library/std/src/sys/net/connection/socket/mod.rs";
        let installed =
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/ops/function.rs";
        let registry = "/home/me/.cargo/registry/src/index-1949cf8c6b5b557f/tokio-1.40.0/src/net/tcp.rs";
        for file in [std, installed, registry, "/srv/shop/vendor/hyper/src/proto.rs"] {
            assert!(of_library(&frame("shop::looks_like_mine", Some(file))), "{file}");
        }
        let own = frame("std::net::looks_like_std", Some("/srv/shop/src/main.rs"));
        assert!(!of_library(&own));
        // A function that is the same as one of the program's may be shown with its name.
        assert!(!of_library(&frame(
            "<std::net::udp::UdpSocket>::recv",
            Some("src/bank.rs")
        )));
    }

    #[test]
    fn a_thread_that_waits_for_its_future_is_told_from_one_that_stands_in_it() {
        let of = |symbols: &[&str]| {
            let stack: Vec<Frame> = symbols.iter().map(|symbol| frame(symbol, None)).collect();
            blocks_on(&stack)
        };
        let (waits, parks) = ("syscall", "tokio::runtime::park::Inner::park");
        let blocks = "tokio::runtime::park::CachedParkThread::block_on";
        assert_eq!(of(&[waits, parks, blocks, "shop::main"]), Some(2));
        let in_closure = "tokio::runtime::scheduler::current_thread::CoreGuard::block_on::{{closure}}";
        assert_eq!(of(&["epoll_wait", in_closure]), Some(1));
        assert_eq!(of(&[waits, "futures_executor::local_pool::block_on<F>"]), Some(1));
        // In its future, in a task of the same thread, and in a future of a library.
        let own = frame("shop::serve::{{closure}}", Some("/srv/shop/src/main.rs"));
        assert_eq!(blocks_on(&[frame(waits, None), own, frame(blocks, None)]), None);
        assert_eq!(
            of(&[waits, "tokio::runtime::task::harness::poll_future", in_closure]),
            None
        );
        assert_eq!(of(&[waits, "tokio::task::coop::budget", blocks]), None);
        assert_eq!(of(&[waits, parks, "shop::unblock_on"]), None);
    }

    #[test]
    fn the_future_that_a_worker_waits_for_does_not_keep_it() {
        let own = |symbol: &str| frame(symbol, Some("/srv/shop/src/main.rs"));
        let of_tokio = |symbol: &str| frame(symbol, Some("/x/registry/src/y/tokio-1.54.1/src/lib.rs"));
        let polls = [
            frame("epoll_wait", None),
            of_tokio("tokio::runtime::io::driver::Driver::turn"),
        ];
        let blocks = of_tokio("tokio::runtime::scheduler::current_thread::CoreGuard::block_on");
        let future = [
            &polls[..],
            &[own("shop::book"), blocks.clone(), own("shop::main")],
        ]
        .concat();
        assert!(!keeps_event_loop(&future));
        // It stands in its future, or a task of a worker blocks on another future.
        assert!(keeps_event_loop(&[
            frame("read", None),
            own("shop::book"),
            blocks
        ]));
        let runs = of_tokio("tokio::runtime::scheduler::multi_thread::worker::Context::run_task");
        let inner = of_tokio("tokio::runtime::park::CachedParkThread::block_on");
        let nested = [&polls[..], &[own("shop::book"), inner, own("shop::pay"), runs]].concat();
        assert!(keeps_event_loop(&nested));
    }

    #[test]
    fn a_driver_of_tokio_is_known_by_its_functions() {
        let stack = [
            "epoll_wait",
            "mio::poll::Poll::poll",
            "tokio::runtime::io::driver::Driver::turn",
        ];
        let stack: Vec<Frame> = stack.iter().map(|symbol| frame(symbol, None)).collect();
        assert!(drives_tokio(&stack) && !drives_tokio(&stack[..2]));
    }

    #[test]
    fn a_worker_of_tokio_without_a_task_is_told_from_a_thread_that_runs_a_future() {
        let parked = |symbols: &[&str]| {
            let stack: Vec<Frame> = symbols.iter().map(|symbol| frame(symbol, None)).collect();
            parked_in_tokio(&stack)
        };
        const WAITS: [&str; 3] = [
            "syscall",
            "std::sys::pal::unix::futex::futex_wait",
            "std::sync::poison::condvar::Condvar::wait",
        ];
        let of = |rest: &[&'static str]| parked(&[&WAITS[..], rest].concat());
        let worker = "tokio::runtime::scheduler::multi_thread::park::Inner::park_condvar";
        assert_eq!(of(&[worker]), Some(TokioPark::Work));
        let blocking = [
            "tokio::loom::std::mutex::Condvar::wait_timeout",
            "tokio::runtime::blocking::pool::Inner::run",
        ];
        assert_eq!(of(&blocking), Some(TokioPark::Work));
        let future = [
            "tokio::runtime::park::Inner::park",
            "tokio::runtime::park::CachedParkThread::block_on",
        ];
        assert_eq!(of(&future), Some(TokioPark::Future));
        // A condition of the program's own, in a task; and a channel of another library.
        assert_eq!(of(&["shop::Cart::wait", worker]), None);
        assert_eq!(
            of(&["crossbeam_channel::channel::Receiver<T>::recv", worker]),
            None
        );
        let others = [
            "syscall",
            "parking_lot::condvar::Condvar::wait_until_internal",
            worker,
        ];
        assert_eq!(parked(&others), Some(TokioPark::Work));
        assert_eq!(parked(&["epoll_wait", "mio::poll::Poll::poll", worker]), None);
    }

    #[test]
    fn without_debug_information_the_crate_in_the_name_tells() {
        for symbol in [
            "std::thread::sleep",
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
            "<alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()>> as core::ops::function::FnOnce<()>>::call_once",
            "<&dyn core::ops::function::Fn<(), Output = i32> as core::ops::function::FnOnce<()>>::call_once",
            "<&mut T as core::fmt::Display>::fmt",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "__rust_try",
        ] {
            assert!(of_library(&frame(symbol, None)), "{symbol}");
        }
        for symbol in [
            "shop::Cart::pay",
            "<shop::Cart as core::fmt::Display>::fmt",
            "<shop::Cart as std::io::Read>::read",
            "standard::run",
            "std",
            "main",
        ] {
            assert!(!of_library(&frame(symbol, None)), "{symbol}");
        }
    }

    #[test]
    fn a_rust_program_is_told_by_a_source_or_by_how_it_begins() {
        assert!(is_rust(&[frame("shop::pay", Some("src/main.rs"))]));
        assert!(is_rust(&[
            frame("pay", None),
            frame("std::rt::lang_start::{{closure}}", None)
        ]));
        let c_plus_plus = [
            frame("std::thread::join()", None),
            frame("main", Some("/srv/main.cc")),
        ];
        assert!(!is_rust(&c_plus_plus));
        assert!(!is_rust(&[]));
    }
}
