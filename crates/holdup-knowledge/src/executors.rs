//! Functions in which a thread of a C++ program runs, one after the other, what was queued for it.
//!
//! The problem: a task that waits for another task of its own pool needs a thread that is free, and no note says whose thread is of which pool. The
//! choice: executors of known libraries by the function that runs their tasks; a pool of the program's own by its shape: right where the thread
//! began, a function of the program calls through a `std::function` or a `std::packaged_task`.
//!
//! In: a stack, innermost frame first. Out: the function that runs tasks, if the thread is in a task.

use crate::cpp;
use crate::user_code::of_c_library;
use holdup_evidence::{Frame, Language};

/// Functions of libraries that run tasks until there are none, by how their names with their namespace end. What the program calls of them is
/// further out than what does it.
const OF_LIBRARIES: [&str; 8] = [
    "asio::io_context::run",
    "asio::io_service::run",
    "asio::thread_pool::thread_function::operator",
    "asio::detail::scheduler::run",
    "folly::CPUThreadPoolExecutor::threadRun",
    "folly::ThreadPoolExecutor::runTask",
    "QThreadPoolThread::run",
    "tbb::detail::r1::rml::private_worker::run",
];

/// Headers of the standard library in which what was queued is called.
const CALLS: [&str; 3] = [
    "/bits/std_function.h",
    "/bits/move_only_function.h",
    "/functional",
];

/// The header of `std::packaged_task`, and its function that calls.
const TASKS: (&str, &str) = ("/future", "operator()");

/// The same by name, where there is no debug information.
const CALLS_BY_NAME: [&str; 3] = ["std::function<", "std::packaged_task<", "std::_Function_handler<"];

/// Whether a thread runs its own tasks there until its program ends: it began in another function, and is none of a pool.
const BEGINS_PROGRAM: &str = "main";

/// The function that runs tasks.
#[must_use]
pub fn runs_tasks(stack: &[Frame]) -> Option<&Frame> {
    let native = |frame: &&Frame| frame.language == Language::Native;
    let known = stack.iter().filter(native).rfind(|frame| {
        let name = cpp::qualified(frame.symbol.as_deref().unwrap_or_default());
        OF_LIBRARIES.iter().any(|one| name.ends_with(one))
    });
    known.or_else(|| own_pool(stack))
}

/// The function of the program in which a worker of its own pool calls tasks.
fn own_pool(stack: &[Frame]) -> Option<&Frame> {
    let calls = stack.iter().rposition(is_call)?;
    let library = |frame: &&Frame| of_c_library(frame) || cpp::of_library(frame) || cpp::of_runtime(frame);
    let outer = &stack[calls + 1..];
    // Between the two is nothing but what calls are made of, and further out but a lambda nothing of the program's own.
    let skipped = outer.iter().take_while(library).count();
    let mut own = outer[skipped..]
        .iter()
        .filter(|frame| !library(frame) && frame.symbol.is_some());
    let runs = own.next().filter(|frame| !is_lambda(frame))?;
    let begins_here = own.all(is_lambda);
    let name = runs.symbol.as_deref().map(cpp::qualified);
    (begins_here && name != Some(BEGINS_PROGRAM)).then_some(runs)
}

fn is_call(frame: &Frame) -> bool {
    let by_file = frame
        .file
        .as_deref()
        .is_some_and(|file| CALLS.iter().any(|header| file.ends_with(header)));
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    // In the same header is what waits for a result.
    let file = frame.file.as_deref().unwrap_or_default();
    let packaged = file.ends_with(TASKS.0) && symbol.starts_with(TASKS.1);
    let name = cpp::qualified(symbol);
    by_file || packaged || CALLS_BY_NAME.iter().any(|begin| name.starts_with(begin))
}

/// Whether a function has no name of its own.
fn is_lambda(frame: &Frame) -> bool {
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    symbol.starts_with("operator()") || symbol.contains("{lambda") || symbol.contains("<lambda")
}

#[cfg(test)]
mod tests {
    use super::runs_tasks;
    use holdup_evidence::Frame;

    fn stack(frames: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(symbol, file): &(&str, &str)| Frame {
            symbol: Some((*symbol).to_owned()),
            module: Some(if *symbol == "begin" { "libc.so.6" } else { "shop" }.to_owned()),
            file: (!file.is_empty()).then(|| (*file).to_owned()),
            ..Frame::default()
        };
        frames.iter().map(frame).collect()
    }

    fn runs(frames: &[(&str, &str)]) -> Option<String> {
        runs_tasks(&stack(frames)).and_then(|frame| frame.symbol.clone())
    }

    const WAITS: [(&str, &str); 2] = [
        ("std::future<int>::get()", "/usr/include/c++/12/future"),
        ("shop::price(int)", "/srv/shop.cpp"),
    ];
    const THREAD: [(&str, &str); 2] = [("_M_run", "/usr/include/c++/12/bits/std_thread.h"), ("begin", "")];

    #[test]
    fn an_event_loop_of_a_library_is_known_by_name() {
        let asio = [
            (
                "boost::asio::detail::scheduler::run(boost::system::error_code&)",
                "/usr/include/boost/asio/detail/impl/scheduler.ipp",
            ),
            (
                "boost::asio::io_context::run()",
                "/usr/include/boost/asio/impl/io_context.ipp",
            ),
            ("operator()", "/srv/main.cpp"),
        ];
        let found = runs(&[&WAITS[..], &asio, &THREAD].concat());
        assert_eq!(found.as_deref(), Some("boost::asio::io_context::run()"));
    }

    #[test]
    fn a_pool_of_the_programs_own_is_known_by_its_shape() {
        let call = ("operator()", "/usr/include/c++/12/bits/std_function.h");
        let pool = [
            ("shop::Pool::work()", "/srv/pool.cpp"),
            ("operator()", "/srv/pool.cpp"),
        ];
        let found = runs(&[&WAITS[..], &[call], &pool, &THREAD].concat());
        assert_eq!(found.as_deref(), Some("shop::Pool::work()"));
        let by_name = ("std::packaged_task<int ()>::operator()()", "");
        let found = runs(&[&WAITS[..], &[by_name], &pool[..1], &THREAD].concat());
        assert_eq!(found.as_deref(), Some("shop::Pool::work()"));
    }

    #[test]
    fn what_only_calls_something_back_runs_no_tasks() {
        let call = ("operator()", "/usr/include/c++/12/bits/std_function.h");
        assert_eq!(
            runs(&[&WAITS[..], &THREAD].concat()),
            None,
            "a thread for one thing"
        );
        let alone = [&WAITS[..1], &[("shop::session()", "/srv/shop.cpp")], &THREAD].concat();
        assert_eq!(runs(&alone), None, "what it waits for is in the same header");
        let begun = [&WAITS[..], &[call], &THREAD].concat();
        assert_eq!(runs(&begun), None, "a thread that began in a std::function");
        let walks = [
            ("shop::for_each()", "/srv/shop.cpp"),
            ("shop::session()", "/srv/shop.cpp"),
        ];
        assert_eq!(runs(&[&WAITS[..], &[call], &walks, &THREAD].concat()), None);
        let main = [("main", "/srv/shop.cpp")];
        assert_eq!(runs(&[&WAITS[..], &[call], &main].concat()), None);
    }
}
