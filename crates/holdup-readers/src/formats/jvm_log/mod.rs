//! What a JVM logs of itself: unified logging of JDK 9 and later, garbage collection and safepoint logs of JDK 8.
//!
//! In: lines with any decorations, mixed with those of the application. Out: threads that came and went, safepoints, pauses
//! of the collector, allocation stalls, compiled code that was given up. Figures go into series; of pauses the longest are
//! kept as spans. Lines are known by what they say, since decorations are the user's choice. The application's lines go to
//! the reader of any log, which has a clock of its own.

mod collector;
mod decorations;
pub(crate) mod jstat;
pub(crate) mod openj9;
mod safepoints;
mod threads;

use super::timed_log;
use crate::find::find;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use collector::Collector;
use decorations::{Decorations, decorations};
use holdup_evidence::Ns;
use holdup_evidence::observed::{JvmEvent, Metric, Quote, Span, SpanKind, What, When};
use safepoints::Safepoints;
use threads::Threads;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("jvm-log", Family::Runtime, recognise)
    .about("JVM logs (-Xlog, GC logs of JDK 8)");

/// Lines of the beginning that are looked at.
const LOOKED_AT: usize = 400;

/// Spans of a kind that are kept, the longest.
const MAX_SPANS: usize = 16;

/// Methods whose compiled code was given up that are reported one by one.
const DEOPTIMISED: u64 = 500;

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let own = lines.any(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match decorations(line) {
            Some((header, message)) => header.own() || is_own(message),
            None => is_old_header(line),
        }
    });
    if own { Sureness::Certain } else { Sureness::No }
}

/// Whether a message without level and tags is a JVM's.
fn is_own(message: &[u8]) -> bool {
    let starts: [&[u8]; 8] = [
        b"GC(",
        b"[GC",
        b"[Full GC",
        b"Total time for which application threads were stopped",
        b"Safepoint \"",
        b"Entering safepoint",
        b"Application time: ",
        b"Allocation Stall (",
    ];
    starts.iter().any(|start| message.starts_with(start))
}

/// The first line of a log of JDK 8.
fn is_old_header(line: &[u8]) -> bool {
    line.starts_with(b"OpenJDK 64-Bit Server VM (25.")
        || line.starts_with(b"Java HotSpot(TM) 64-Bit Server VM (25.")
        || safepoints::is_old_header(line)
}

/// What all parts of the reader are given: the time of a line and what it says.
struct Line<'a> {
    message: &'a [u8],
    whole: &'a [u8],
    /// Nanoseconds on the line's clock.
    ns: Option<Ns>,
    at: Option<When>,
}

#[derive(Default)]
struct Reader {
    application: timed_log::Reader,
    threads: Threads,
    safepoints: Safepoints,
    collector: Collector,
    deoptimised: u64,
    lines: u64,
    clock: Clock,
    /// Whether the last line of another kind was the JVM's.
    last_own: bool,
}

/// From the first to the last time.
#[derive(Debug, Default)]
struct Clock {
    first: Option<(Ns, Option<When>, Quote, bool)>,
    last: Ns,
    /// Of former runs, where one file has several.
    before: Ns,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let found =
            decorations(line).filter(|(one, message)| one.own() || is_own(message) || self.old(message));
        let Some((one, message)) = found else {
            return self.others(line, out);
        };
        self.last_own = true;
        self.lines += 1;
        self.clock.take(&one, out);
        let line = Line {
            message,
            whole: line,
            ns: one.ns,
            at: one.at(),
        };
        self.own(&line, out)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.safepoints.end(out);
        self.collector.end(out);
        self.application.tell(out);
        if let Some((first, at, quote, _)) = self.clock.first.take() {
            out.span(Span {
                kind: SpanKind::JvmLogCovers,
                name: format!("{} lines", self.lines),
                began: at,
                ns: self
                    .clock
                    .before
                    .saturating_add(self.clock.last.saturating_sub(first)),
                thread: None,
                usual: None,
                quote,
                text: String::new(),
            });
        }
    }
}

impl Reader {
    /// Whether a message behind a mere time is of the tables that JDK 8 prints.
    fn old(&self, message: &[u8]) -> bool {
        self.safepoints.in_table() && message.contains(&b'[')
    }

    /// A line that is not the JVM's.
    fn others(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let rest = Line {
            message: line,
            whole: line,
            ns: None,
            at: None,
        };
        if self.collector.ends(&rest, out) {
            self.last_own = true;
            return Understood::Evidence;
        }
        // The CPU time of a pause whose length is reported already.
        if sets_out(line) || line.trim_ascii_start().starts_with(b"[Times: ") {
            self.last_own = true;
            return Understood::Evidence;
        }
        if self.safepoints.old_header(line) || is_old_header(line) || is_old_preamble(line) {
            self.last_own = true;
            return Understood::Ignorable;
        }
        // Blank lines, and what a paste leaves of a cut.
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'.')) {
            return Understood::Ignorable;
        }
        let (understood, step) = self.application.take(line, out);
        if let Some(step) = step {
            let within = self.threads.ended_after(step.first_line());
            if within > 0 {
                self.application.step_with_threads(&step, within, out);
            }
        }
        match understood {
            // Lines of a report that belong to the JVM's line before: heap layouts, tables.
            Understood::No if self.last_own => Understood::Ignorable,
            Understood::Evidence => {
                self.last_own = false;
                understood
            }
            other => other,
        }
    }

    fn own(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> Understood {
        if self.threads.take(line, out) || self.safepoints.take(line, out) || self.collector.take(line, out) {
            return Understood::Evidence;
        }
        if let Some(method) = given_up(line.message) {
            self.deoptimised += 1;
            if self.deoptimised <= DEOPTIMISED {
                let method = String::from_utf8_lossy(method).into_owned();
                out.happened(
                    What::Jvm(JvmEvent::Deoptimised { method }),
                    line.at,
                    None,
                    line.whole,
                );
            } else {
                out.account().left_out += 1;
            }
            return Understood::Evidence;
        }
        if sets_out(line.whole) {
            return Understood::Evidence;
        }
        // A JVM has a thousand kinds of lines; those that we have no use for are its own all the same.
        Understood::Ignorable
    }
}

impl Clock {
    fn take(&mut self, decorations: &Decorations, out: &Out<'_>) {
        let Some(ns) = decorations.ns else { return };
        let unix = decorations.since_start.is_none();
        match &self.first {
            Some((first, _, _, same)) if *same == unix => {
                // A second run in the same file begins at zero again.
                if ns.saturating_add(1_000_000_000) < self.last {
                    self.before = self.before.saturating_add(self.last.saturating_sub(*first));
                    self.first = Some((ns, decorations.at(), out.here(), unix));
                    self.last = ns;
                }
                self.last = self.last.max(ns);
            }
            Some(_) => {}
            None => {
                self.first = Some((ns, decorations.at(), out.here(), unix));
                self.last = ns;
            }
        }
    }
}

/// Whether a line says what a collection is about to do, or how it decides: how it went and how long it took, its end tells.
fn sets_out(line: &[u8]) -> bool {
    let tags: [&[u8]; 7] = [
        b"[gc,start",
        b"[gc,ergo",
        b"[gc,task",
        b"Entering safepoint region",
        b"[G1Ergonomics",
        b"] Trigger: ",
        b"] Cancelling GC",
    ];
    tags.iter().any(|tag| find(line, tag).is_some())
}

/// Lines of JDK 8's beginning that tell the machine and the flags.
fn is_old_preamble(line: &[u8]) -> bool {
    let starts: [&[u8]; 5] = [
        b"Memory: ",
        b"CommandLine flags:",
        b"Heap",
        b" PSYoungGen",
        b" ParOldGen",
    ];
    starts.iter().any(|start| line.starts_with(start))
}

/// The method of `144  1  java.util.AbstractSet::<init> (5 bytes)   made not entrant`: of code that was at its last level.
/// Code of levels 2 and 3 is given up for better code, which happens to every method that is much used.
fn given_up(message: &[u8]) -> Option<&[u8]> {
    find(message, b"made not entrant")?;
    let mut words = crate::numbers::words(message).skip_while(|word| !word.iter().all(u8::is_ascii_digit));
    let _id = words.next()?;
    // Marks such as `%`, `s`, `!`, `b`, `n` stand before the level.
    let level = words.by_ref().find(|word| matches!(word, [b'0'..=b'4']))?;
    let method = words.next()?;
    (matches!(level, b"1" | b"4") && method.contains(&b':')).then_some(method)
}

/// The longest spans of a kind.
#[derive(Debug, Default)]
struct Longest {
    spans: Vec<Span>,
}

impl Longest {
    fn keep(&mut self, kind: SpanKind, name: &[u8], ns: Ns, line: &Line<'_>, out: &Out<'_>) {
        let least = self.spans.last().map_or(0, |last| last.ns);
        if ns == 0 || (self.spans.len() >= MAX_SPANS && ns <= least) {
            return;
        }
        let at = self.spans.partition_point(|other| other.ns >= ns);
        self.spans.insert(
            at,
            Span {
                kind,
                name: String::from_utf8_lossy(name).into_owned(),
                began: line.at,
                ns,
                thread: None,
                usual: None,
                quote: out.here(),
                text: crate::gather::quoted(line.whole),
            },
        );
        self.spans.truncate(MAX_SPANS);
    }

    fn tell(&mut self, out: &mut Out<'_>) {
        for span in std::mem::take(&mut self.spans) {
            out.span(span);
        }
    }
}

/// A figure in milliseconds, in a report of its own.
fn figure(metric: Metric, ns: Ns, line: &Line<'_>, out: &mut Out<'_>) {
    out.report(line.at, None, false);
    out.figure(metric, "", ns as f64 / 1e6);
}

/// The number right after a text: `0.0012` or `0,0012`, and what follows it.
fn after<'a>(message: &'a [u8], text: &[u8]) -> Option<(f64, &'a [u8])> {
    let at = find(message, text)? + text.len();
    let rest = message.get(at..)?.trim_ascii_start();
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit() && !matches!(byte, b'.' | b','))
        .unwrap_or(rest.len());
    let number = rest.get(..end)?;
    let number = number.strip_suffix(b",").unwrap_or(number);
    Some((crate::numbers::decimal(number)?, rest.get(end..)?))
}

/// Nanoseconds of a number in a unit; `None` of what can't be a duration.
fn ns(value: f64, unit: f64) -> Option<Ns> {
    let ns = value * unit;
    // A day: longer is no pause.
    (0.0..86_400e9).contains(&ns).then_some(ns.round() as Ns)
}

#[cfg(test)]
mod tests;
