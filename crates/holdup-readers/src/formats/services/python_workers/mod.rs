//! Workers of gunicorn and uWSGI that their master killed because they took too long, and where their Python code was then.
//!
//! In: a log with `WORKER TIMEOUT (pid:12)`, below which the worker's traceback ends in `SystemExit`, or with `HARAKIRI ON WORKER`, below
//! which stand the request, the kernel's function and the tracebacker's frames. Out: a statement for each place in the application, with
//! how many workers were killed there. Source: `gunicorn/arbiter.py`, `gunicorn/workers/base.py`; `core/master_utils.c` of uWSGI.

mod lines;
mod places;

use self::lines::{Frame, Killed};
use self::places::{Open, Places};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, text_in};
use crate::gather::Out;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("python-workers", Family::Logs, recognise)
    .about("timeouts of workers in a log of gunicorn or uWSGI");

/// Workers of which it is not yet known where they were.
const MAX_OPEN: usize = 64;

fn recognise(head: &[u8]) -> Sureness {
    if !holds(head, "WORKER TIMEOUT (pid") && !holds(head, "HARAKIRI ON WORKER") {
        return Sureness::No;
    }
    if !any_line(head, |line| Killed::of(line).is_some()) {
        return Sureness::No;
    }
    // Without a request or a frame, what any log is read for says all that there is.
    match any_line(head, |line| Frame::of(line).is_some()) {
        true => Sureness::Certain,
        false if holds(head, "HARAKIRI [core ") => Sureness::Likely,
        false => Sureness::No,
    }
}

/// The traceback that is being read.
#[derive(Debug, Default)]
struct Stack {
    own: Option<Frame>,
    inner: Option<Frame>,
    by_signal: bool,
    /// The lines of source below frames are no end of it.
    reads: bool,
}

#[derive(Debug, Default)]
struct Reader {
    open: Vec<Open>,
    stack: Stack,
    places: Places,
}

impl Reader {
    /// A frame of a traceback, the outermost first.
    fn frame(&mut self, frame: Frame) {
        self.stack.reads = true;
        if frame.is_handler() || self.stack.by_signal {
            self.stack.by_signal = true;
            return;
        }
        if frame.is_own() {
            self.stack.own = Some(frame.clone());
        }
        self.stack.inner = Some(frame);
    }

    /// The traceback has ended; whether it was that of a worker that was killed.
    fn close_stack(&mut self, ended_by_exit: bool) -> bool {
        let stack = std::mem::take(&mut self.stack);
        if !stack.by_signal && !ended_by_exit {
            return false;
        }
        let Some(open) = self.open.iter_mut().find(|open| open.inner.is_none()) else {
            return false;
        };
        (open.own, open.inner) = (stack.own, stack.inner);
        true
    }

    fn close_open(&mut self, out: &mut Out<'_>) {
        for open in std::mem::take(&mut self.open) {
            self.places.settle(open, out);
        }
    }

    /// What uWSGI tells of the worker below its first line.
    fn of_uwsgi(&mut self, text: &str) -> Option<()> {
        let (_, rest) = text.split_once("HARAKIRI")?;
        let open = self.open.last_mut()?;
        if let Some((_, function)) = rest.split_once("wchan> ") {
            let function = function.trim();
            if !matches!(function, "" | "0") {
                open.kernel = name_of(function);
            }
        } else if let Some((_, request)) = rest
            .strip_prefix(" [core ")
            .and_then(|rest| rest.split_once(" - "))
        {
            let request = request.split(" since ").next().unwrap_or(request);
            open.request = name_of(request.split('?').next().unwrap_or(request));
        }
        Some(())
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        if text.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(killed) = Killed::of(&text) {
            self.close_stack(false);
            // The master asks again, and then does not ask.
            if !self.open.iter().any(|open| open.killed == killed) {
                if self.open.len() >= MAX_OPEN {
                    self.close_open(out);
                }
                let (request, kernel) = (String::new(), String::new());
                self.open.push(Open {
                    killed,
                    quote: out.here(),
                    request,
                    kernel,
                    own: None,
                    inner: None,
                });
            }
            return Understood::Evidence;
        }
        if self.open.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(frame) = Frame::of(&text) {
            let by_tracebacker = text.contains("filename = ");
            self.frame(frame);
            if by_tracebacker {
                // Each thread has its own frames; the last of the first is where the request is.
                if let Some(open) = self.open.last_mut() {
                    open.own = self.stack.own.clone().or(open.own.take());
                    open.inner = self.stack.inner.clone();
                }
            }
            return Understood::Evidence;
        }
        if self.of_uwsgi(&text).is_some() {
            return Understood::Evidence;
        }
        // `[2024-…] [812] [ERROR] Error handling request /slow`.
        if let Some((_, request)) = text.split_once("Error handling request") {
            let open = self.open.iter_mut().find(|open| open.request.is_empty());
            if let Some(open) = open {
                open.request = name_of(request.trim().split('?').next().unwrap_or_default());
            }
            return Understood::Evidence;
        }
        if text.starts_with("Traceback (most recent call last)") {
            self.stack = Stack {
                reads: true,
                ..Stack::default()
            };
            return Understood::Evidence;
        }
        let exits = text == "SystemExit" || text.starts_with("SystemExit:");
        if exits {
            self.close_stack(true);
            return Understood::Evidence;
        }
        let pid_is_known = |pid: &str| self.open.iter().any(|open| open.killed.pid == pid);
        let of_killed = ["Worker (pid:", "Worker exiting (pid:", "Worker with pid "]
            .iter()
            .any(|words| {
                let behind = text
                    .split_once(words)
                    .map_or("", |(_, behind)| behind.trim_start());
                let pid: String = behind.chars().take_while(char::is_ascii_digit).take(10).collect();
                pid_is_known(&pid)
            });
        // That it was sent SIGKILL is what its time-out did, and no lack of memory.
        match of_killed || self.stack.reads && line.first().is_some_and(u8::is_ascii_whitespace) {
            true => Understood::Evidence,
            false => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close_stack(false);
        self.close_open(out);
        std::mem::take(&mut self.places).state(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const GUNICORN: &str = "[2024-04-04 09:00:00 +0000] [7] [INFO] Booting worker with pid: 31\n\
        [2024-04-04 09:01:00 +0000] [1] [CRITICAL] WORKER TIMEOUT (pid:31)\n\
        [2024-04-04 09:01:00 +0000] [31] [ERROR] Error handling request /report?week=9\n\
        Traceback (most recent call last):\n\
        \x20 File \"/venv/lib/python3.11/site-packages/gunicorn/workers/sync.py\", line 134, in handle\n    self.handle_request(listener)\n\
        \x20 File \"/srv/shop/reports.py\", line 88, in load_week\n    rows = fetch(week)\n\
        \x20 File \"/usr/lib/python3.11/ssl.py\", line 1099, in read\n    return self._sslobj.read(len, buffer)\n\
        \x20 File \"/venv/lib/python3.11/site-packages/gunicorn/workers/base.py\", line 203, in handle_abort\n    sys.exit(1)\n\
        SystemExit: 1\n\
        [2024-04-04 09:01:01 +0000] [1] [ERROR] Worker (pid:31) was sent SIGKILL! Perhaps out of memory?\n";

    #[test]
    fn where_the_application_was_when_its_worker_was_killed() {
        let reading = read_text("g", GUNICORN.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "python-workers");
        assert_eq!(
            reading.texts(),
            [
                "worker 31 of gunicorn was killed for its timeout while it was in load_week (/srv/shop/reports.py:88), within read \
                 (/usr/lib/python3.11/ssl.py:1099), for /report"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::TimedOut);
    }

    #[test]
    fn harakiri_with_its_request_and_its_frames() {
        let text = "Mon Apr  1 10:00:00 2024 - *** HARAKIRI ON WORKER 3 (pid: 812, try: 1, graceful: yes) ***\n\
            Mon Apr  1 10:00:00 2024 - HARAKIRI: -- wchan> poll_schedule_timeout\n\
            Mon Apr  1 10:00:00 2024 - HARAKIRI !!! worker 3 status !!!\n\
            Mon Apr  1 10:00:00 2024 - HARAKIRI [core 0] 10.1.1.9 - GET /slow?x=1 since 1711965570\n\
            *** uWSGI Python tracebacker output ***\n\n\
            thread_id = MainThread filename = /srv/shop/views.py lineno = 40 function = slow line = wait()\n";
        let reading = read_text("u", text.as_bytes());
        assert_eq!(
            reading.texts(),
            [
                "worker 812 of uWSGI was killed for its timeout (harakiri) while it was in slow (/srv/shop/views.py:40), in the \
                 kernel's poll_schedule_timeout, for GET /slow"
            ]
        );
    }

    #[test]
    fn workers_that_were_killed_at_one_place_are_counted() {
        let text = "*** HARAKIRI ON WORKER 1 (pid: 4, try: 1) ***\nHARAKIRI [core 0] 10.1.1.9 - GET /slow since 1711965570\n\
            *** HARAKIRI ON WORKER 2 (pid: 5, try: 1) ***\nHARAKIRI [core 0] 10.1.1.9 - GET /slow since 1711965571\n";
        let reading = read_text("g", text.as_bytes());
        assert_eq!(
            reading.texts(),
            [
                "worker 4 of uWSGI was killed for its timeout (harakiri), for GET /slow; 2 workers were killed like this"
            ]
        );
    }

    #[test]
    fn a_log_in_which_nobody_was_killed_is_none() {
        let text = "[7] [INFO] Booting worker with pid: 31\nsee WORKER TIMEOUT (pid:xxx) in the manual\n";
        assert_ne!(
            read_text("g", text.as_bytes()).observed.sources[0].format,
            "python-workers"
        );
    }
}
