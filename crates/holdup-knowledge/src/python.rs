//! Files of Python code: whose they are.
//!
//! In: the path that a code object names. Out: whether it belongs to the standard library or to an installed package, and not to
//! the program.

use holdup_evidence::{Frame, Language};

/// Folders into which packages are installed.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// Code that is part of the interpreter's binary: `<frozen importlib._bootstrap>`.
const FROZEN: &str = "<frozen ";

/// Files in which threads and programs begin.
const BEGIN: [&str; 2] = ["threading.py", "runpy.py"];

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

/// Whether a file of the library is one in which a thread or a program begins, whatever it does later.
#[must_use]
pub fn begins(file: &str) -> bool {
    file.starts_with(FROZEN) || file.rsplit('/').next().is_some_and(|name| BEGIN.contains(&name))
}

/// The function that asked: the innermost of the program's own, or, where there is none, what the thread began with.
#[must_use]
pub fn asker(stack: &[Frame]) -> Option<&Frame> {
    let frames = || stack.iter().filter(|frame| frame.language == Language::Python);
    let begun = || frames().rfind(|frame| !begins(frame.file.as_deref().unwrap_or_default()));
    application(stack).or_else(begun).or_else(|| frames().next_back())
}

/// The innermost function of the program's own.
#[must_use]
pub fn application(stack: &[Frame]) -> Option<&Frame> {
    let mut frames = stack.iter().filter(|frame| frame.language == Language::Python);
    frames.find(|frame| !of_library(frame.file.as_deref().unwrap_or_default()))
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
    use super::{begins, keeps_event_loop, of_library, runs_event_loop};
    use holdup_evidence::{Frame, Language};

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
