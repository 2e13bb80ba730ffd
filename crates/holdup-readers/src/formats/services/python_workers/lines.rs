//! Lines of gunicorn and uWSGI: which worker was killed, and the frames of Python below.

use crate::formats::report::name_of;

/// What the paths of libraries have in them.
const LIBRARIES: [&str; 6] = [
    "site-packages",
    "dist-packages",
    "/lib/python",
    "/lib64/python",
    "<frozen",
    "/gunicorn/",
];

/// Functions of gunicorn that a signal of the master runs in the worker, on top of what it did.
const HANDLERS: [&str; 3] = ["handle_abort", "handle_quit", "handle_exit"];

/// A worker that was killed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Killed {
    pub(super) server: &'static str,
    pub(super) pid: String,
}

impl Killed {
    pub(super) fn of(line: &str) -> Option<Killed> {
        let (server, rest) = match line.split_once("WORKER TIMEOUT (pid") {
            Some((_, rest)) => ("gunicorn", rest),
            None => (
                "uWSGI",
                line.split_once("*** HARAKIRI ON WORKER ")?
                    .1
                    .split_once("(pid")?
                    .1,
            ),
        };
        let pid: String = rest
            .trim_start_matches([':', ' '])
            .chars()
            .take_while(char::is_ascii_digit)
            .take(10)
            .collect();
        (!pid.is_empty()).then_some(Killed { server, pid })
    }
}

/// A frame of Python.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub(super) file: String,
    pub(super) line: String,
    pub(super) function: String,
}

impl Frame {
    /// `File "/srv/app.py", line 12, in load`; `thread_id = Main filename = /srv/app.py lineno = 12 function = load line = x()`.
    pub(super) fn of(line: &str) -> Option<Frame> {
        let (file, number, function) = match line.split_once("filename = ") {
            Some((_, rest)) => {
                let (file, rest) = rest.split_once(" lineno = ")?;
                let (number, rest) = rest.split_once(" function = ")?;
                (file, number, rest.split(" line = ").next()?)
            }
            None => {
                let (file, rest) = line.strip_prefix("File \"")?.split_once("\", line ")?;
                let (number, function) = rest.split_once(", in ")?;
                (file, number, function)
            }
        };
        let digits = number.trim();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Frame {
            file: name_of(file),
            line: name_of(digits),
            function: name_of(function),
        })
    }

    pub(super) fn is_own(&self) -> bool {
        !LIBRARIES.iter().any(|part| self.file.contains(part))
    }

    pub(super) fn is_handler(&self) -> bool {
        HANDLERS.contains(&self.function.as_str()) && self.file.contains("gunicorn")
    }

    pub(super) fn told(&self) -> String {
        format!("{} ({}:{})", self.function, self.file, self.line)
    }
}
