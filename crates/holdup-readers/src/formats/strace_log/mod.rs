//! Logs of strace and of `ltrace -S`: one line a call.
//!
//! In: lines with or without thread (`-f`), time (`-t`, `-tt`, `-ttt`, `-r`), length (`-T`), descriptors' objects (`-y`,
//! `-yy`) and stacks (`-k`); calls that another thread's line broke in two; signals and ends. Out: [`Calls`]: time by
//! thread, call and object, and how much of it lies on the way of the first thread. A log without lengths gives them only
//! up to the thread's next line.
//!
//! [`Calls`]: holdup_evidence::observed::Calls

mod arguments;
mod describe;
mod descriptors;
mod failures;
mod futexes;
mod line;
pub(super) mod perf_trace;
mod refusals;
mod tally;
mod threads;
mod trace;

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use line::{Body, Stamp};
use trace::{At, Trace, Zero};

pub(crate) static FORMAT: Format = Format::new(
    "strace-log",
    Family::Calls,
    |head| recognise(head, Tracer::Strace),
    Shape::Lines(|| Box::new(Reader::new(Tracer::Strace))),
)
.about("strace")
.openings(&["execve(\""]);

pub(crate) static LTRACE: Format = Format::new(
    "ltrace-log",
    Family::Calls,
    |head| recognise(head, Tracer::Ltrace),
    Shape::Lines(|| Box::new(Reader::new(Tracer::Ltrace))),
)
.about("ltrace -S");

/// Frames of a stack that are kept.
const FRAMES: usize = 64;
/// Lines of an artefact that are looked at to recognise it.
const LOOKED_AT: usize = 200;
/// What a system call begins with in a log of ltrace.
const SYSTEM_CALL: &[u8] = b"SYS_";

/// Nanoseconds of a day, and of a second.
const DAY: i64 = 86_400_000_000_000;
const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tracer {
    Strace,
    Ltrace,
}

/// Most lines have strace's shape; or one is enough where it also has what nothing else has.
fn recognise(head: &[u8], tracer: Tracer) -> Sureness {
    let (mut fits, mut others, mut calls) = (0u32, 0u32, 0u32);
    let mut system_calls = 0u32;
    let mut attached = false;
    for text in head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .take(LOOKED_AT)
    {
        let line = line::line(text);
        match line::body(line.body) {
            Some(Body::Call(call) | Body::Resumed(call)) => {
                fits += 1;
                calls += 1;
                system_calls += u32::from(call.name.starts_with(SYSTEM_CALL));
            }
            Some(Body::Began { name, .. } | Body::NoReturn { name }) => {
                fits += 1;
                // A function call in any program's source looks like one that was cut.
                calls += u32::from(attached || line.stamp != Stamp::None || line.tid.is_some());
                system_calls += u32::from(name.starts_with(SYSTEM_CALL));
            }
            Some(body) => {
                fits += 1;
                attached |= matches!(body, Body::Attached(Some(_)));
            }
            None => others += 1,
        }
    }
    let right = (system_calls > 0) == (tracer == Tracer::Ltrace);
    match calls {
        0 => Sureness::No,
        _ if !right => Sureness::No,
        _ if fits > others => Sureness::Certain,
        _ => Sureness::No,
    }
}

/// Reads a log.
struct Reader {
    tracer: Tracer,
    trace: Trace,
    /// The day of the last line, counted from the log's first, and its time.
    day: i64,
    last: i64,
    frames: Vec<String>,
}

impl Reader {
    fn new(tracer: Tracer) -> Reader {
        Reader {
            tracer,
            trace: Trace::default(),
            day: 0,
            last: 0,
            frames: Vec::new(),
        }
    }

    /// The instant of a line, and how coarse it is.
    fn instant(&mut self, stamp: Stamp) -> (Option<i64>, u64) {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let coarse = |exact: bool| if exact { 0 } else { SECOND };
        match stamp {
            Stamp::None => (None, 0),
            Stamp::OfDay(ns, exact) => {
                self.trace.zero = Zero::OfDay;
                let mut at = self.day.saturating_add(signed(ns));
                // Past midnight; a smaller step back is the clock's own or another thread's line.
                if at < self.last.saturating_sub(DAY / 2) {
                    self.day = self.day.saturating_add(DAY);
                    at = at.saturating_add(DAY);
                }
                self.last = at;
                (Some(at), coarse(exact))
            }
            Stamp::Unix(ns, exact) => {
                self.trace.zero = Zero::Unix;
                (Some(signed(ns)), coarse(exact))
            }
            Stamp::Relative(ns) => {
                self.trace.zero = Zero::Start;
                self.last = self.last.saturating_add(signed(ns));
                (Some(self.last), 0)
            }
        }
    }

    fn flush_frames(&mut self, out: &mut Out<'_>) {
        if !self.frames.is_empty() {
            let frames = std::mem::take(&mut self.frames);
            self.trace.asked(&frames, out);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, text: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line::line(text);
        let Some(mut body) = line::body(line.body) else {
            let blank = line.body.is_empty();
            return if blank {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        if let Body::Frame(frame) = body {
            if self.trace.last_long.is_some() && self.frames.len() < FRAMES {
                self.frames.push(shown(frame));
            }
            return Understood::Evidence;
        }
        self.flush_frames(out);
        if self.tracer == Tracer::Ltrace {
            match of_kernel(body) {
                Some(kernel) => body = kernel,
                // A call of a library: what it did in the kernel has lines of its own.
                None => return Understood::Ignorable,
            }
        }
        if let Body::Attached(tid) = body {
            if let Some(tid) = tid {
                self.trace.threads.announce(tid);
            }
            return Understood::Ignorable;
        }
        let (now, coarse) = self.instant(line.stamp);
        self.trace.now(now);
        let at = At {
            place: self.trace.threads.of(line.tid),
            began: now,
            ended: now,
            quote: out.here(),
            coarse,
        };
        if let (Some(comm), Some(place)) = (line.comm, at.place) {
            self.trace.named(place, comm);
        }
        match body {
            Body::Call(call) => {
                self.trace.next_of(&at);
                self.trace.comes_back(&at, &call);
            }
            Body::Began { name, args } => {
                self.trace.begins(&at, name, args);
                // `vfork(strace: Process 17 attached`
                if let Some(tid) = line::announced(line.body) {
                    self.trace.threads.announce(tid);
                }
            }
            Body::Resumed(call) => self.trace.resumes(&at, &call),
            Body::NoReturn { .. } => self.trace.next_of(&at),
            Body::Ended => {
                self.trace.next_of(&at);
                if let Some(place) = at.place {
                    self.trace.threads.ended(place);
                }
            }
            Body::Signal | Body::Superseded => self.trace.next_of(&at),
            Body::Nothing | Body::Frame(_) | Body::Attached(_) => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.flush_frames(out);
        std::mem::take(&mut self.trace).finish(out);
    }
}

/// A line of ltrace as one of strace, where it is a system call.
fn of_kernel(body: Body<'_>) -> Option<Body<'_>> {
    let own = |name| <[u8]>::strip_prefix(name, SYSTEM_CALL);
    match body {
        Body::Call(call) => own(call.name).map(|name| Body::Call(line::Call { name, ..call })),
        Body::Resumed(call) => own(call.name).map(|name| Body::Resumed(line::Call { name, ..call })),
        Body::Began { name, args } => own(name).map(|name| Body::Began { name, args }),
        Body::NoReturn { name } => own(name).map(|name| Body::NoReturn { name }),
        other => Some(other),
    }
}

/// A frame as all readers write them: `function (module)`.
fn shown(frame: &[u8]) -> String {
    let frame = String::from_utf8_lossy(frame);
    let (path, rest) = frame.split_once('(').unwrap_or((&frame, ""));
    let module = path.rsplit('/').next().unwrap_or_default();
    let function = rest.split(['+', ')']).next().unwrap_or_default();
    match function {
        "" => format!("[unknown] ({module})"),
        _ => format!("{function} ({module})"),
    }
}

#[cfg(test)]
mod tests;
