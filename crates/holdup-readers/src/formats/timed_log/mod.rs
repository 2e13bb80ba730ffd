//! Any log whose lines have times, whoever wrote it: the fallback where no other format fits.
//!
//! In: lines, most of which have a time of one of the common kinds. Out: the longest gaps as spans, steps of threads from a
//! line that begins something to the next, where time runs backwards, and where a pool or a proxy says that it gave up waiting. A line without a time belongs to the one before
//! it, as the lines of a stack do. The matcher looks where the last line's time was; nothing is allocated for a line.

mod gaps;
mod gave_up;
mod message;
mod stamp;

pub(crate) use stamp::{Stamp, Stamps};

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, quoted};
use gaps::{Entry, Gap, Gaps, Order};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Happening, LogEvent, Quote, Span, SpanKind, What, When};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("log", Family::Times, recognise).about("any log with times");

/// Lines of the beginning that are looked at.
const LOOKED_AT: usize = 100;

/// Jumps back that are reported one by one.
const MAX_EVENTS: u64 = 50;

/// Of so many lines one may be out of order; with more, gaps between lines that follow each other mean nothing.
const IN_ORDER: u64 = 20;

/// Whether a line is the signature of an entry in a changelog, which has a time but logs nothing: `Date:   Fri Mar 5 …` of
/// `git log`, ` -- Name <mail>  Fri, 05 Mar …` of Debian's, `2021-03-05 10:11:12 +0000  Name <mail>` of GNU's.
fn signs_a_change(line: &[u8]) -> bool {
    let dated: [&[u8]; 5] = [b"Date:", b"AuthorDate:", b"CommitDate:", b"date:", b"-- "];
    if dated
        .iter()
        .any(|start| line.trim_ascii_start().starts_with(start))
    {
        return true;
    }
    // A mail address in brackets and nothing of a message behind it.
    let address = memchr::memrchr(b'<', line).and_then(|at| line.get(at..));
    let address =
        address.and_then(|rest| memchr::memchr(b'>', rest).and_then(|end| rest.split_at_checked(end + 1)));
    address.is_some_and(|(address, behind)| {
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        address.contains(&b'@') && !address.iter().any(blank) && behind.iter().all(blank)
    })
}

/// Whether two lines have times, and at least a third of those that are not indented.
fn recognise(head: &[u8]) -> Sureness {
    let mut stamps = Stamps::default();
    let (mut with, mut without) = (0, 0);
    for line in head.split(|byte| *byte == b'\n').take(LOOKED_AT) {
        match line.first() {
            None | Some(b' ' | b'\t' | b'\r') => {}
            Some(_) if signs_a_change(line) => without += 1,
            Some(_) if stamps.of(line).is_some() => with += 1,
            Some(_) => without += 1,
        }
    }
    if with >= 2 && with * 2 >= without {
        Sureness::Weak
    } else {
        Sureness::No
    }
}

/// Reads any log; other readers have one for the lines that are not theirs.
pub(crate) struct Reader {
    stamps: Stamps,
    gaps: Box<Gaps>,
    lines: u64,
    backwards: u64,
    first: Option<(Stamp, Quote)>,
    /// Whether the last line with a time, or one that belongs to it, said that somebody gave up waiting.
    gave_up: bool,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            stamps: Stamps::default(),
            gaps: Box::new(Gaps::new()),
            lines: 0,
            backwards: 0,
            first: None,
            gave_up: false,
        }
    }
}

/// A step that a line ended.
pub(crate) struct Step {
    gap: Gap,
}

impl Step {
    /// The line with which it began.
    pub(crate) fn first_line(&self) -> u64 {
        self.gap.from_line
    }
}

impl LineReader for Reader {
    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        self.take(line, out).0
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.tell(out);
    }
}

impl Reader {
    /// Takes a line, and says which step it ends.
    #[inline]
    pub(crate) fn take(&mut self, line: &[u8], out: &mut Out<'_>) -> (Understood, Option<Step>) {
        let Some(stamp) = self.stamps.of(line) else {
            self.gave_up(line, None, out);
            let belongs = self.lines > 0 || line.iter().all(u8::is_ascii_whitespace);
            let understood = if belongs {
                Understood::Ignorable
            } else {
                Understood::No
            };
            return (understood, None);
        };
        self.lines += 1;
        self.gave_up = false;
        self.gave_up(line, stamp.when(), out);
        let here = out.here();
        if self.first.is_none() {
            self.first = Some((stamp, here.clone()));
        }
        let (thread, message) = match message::who(line, stamp.end) {
            Some((name, end)) => (hash(name), end),
            None => (0, stamp.end),
        };
        let entry = Entry {
            line,
            number: here.line,
            stamp,
            thread,
            message,
        };
        let (order, step) = self.gaps.take(&entry);
        if let Order::Back(ns, differs) = order {
            self.back(ns, differs, &stamp, line, out);
        }
        (Understood::Evidence, step.map(|gap| Step { gap }))
    }

    /// Once for a line with a time and the stack below it, which says it again.
    fn gave_up(&mut self, line: &[u8], at: Option<When>, out: &mut Out<'_>) {
        if self.gave_up {
            return;
        }
        if let Some(event) = gave_up::event(line) {
            self.gave_up = true;
            out.happened(What::Log(event), at, None, line);
        }
    }

    fn back(&mut self, ns: i64, differs: bool, stamp: &Stamp, line: &[u8], out: &mut Out<'_>) {
        self.backwards += 1;
        if self.backwards > MAX_EVENTS {
            return;
        }
        let ns = ns.unsigned_abs();
        let event = match differs {
            true => LogEvent::AnotherLog { ns },
            false => LogEvent::Backwards { ns },
        };
        out.happened(What::Log(event), stamp.when(), None, line);
    }

    /// Puts what was found into the evidence.
    pub(crate) fn tell(&mut self, out: &mut Out<'_>) {
        let Some((first, quote)) = self.first.take() else {
            return;
        };
        if let Some(times) = self.backwards.checked_sub(MAX_EVENTS).filter(|more| *more > 0) {
            out.happening(Happening {
                what: What::Log(LogEvent::MoreBackwards { times }),
                at: None,
                since_boot: None,
                quote: quote.clone(),
                text: String::new(),
            });
        }
        out.span(Span {
            kind: SpanKind::LogCovers,
            name: format!("{} lines with a time", self.lines),
            began: first.when(),
            ns: self.gaps.covered.unsigned_abs(),
            thread: None,
            usual: None,
            quote,
            text: String::new(),
        });
        if self.backwards.saturating_mul(IN_ORDER) > self.lines.max(IN_ORDER) {
            out.problem(format!(
                "times run backwards in {} of {} lines: it is not in order, so gaps are not known",
                self.backwards, self.lines
            ));
            return;
        }
        let gaps = self.gaps.whole.iter().chain(&self.gaps.of_threads);
        for gap in gaps {
            // Where another thread ends the silence, which is not said to go on with the same, it may be for want of work.
            let kind = match !gap.of_others && message::begins(&gap.from, gap.from_message) {
                true => SpanKind::LogGap,
                false => SpanKind::LogSilence,
            };
            let span = self.span(kind, gap, out);
            out.span(span);
        }
        for gap in &self.gaps.steps {
            let span = self.span(SpanKind::LogStep, gap, out);
            out.span(span);
        }
    }

    /// A step during which threads of the JVM came and went.
    pub(crate) fn step_with_threads(&self, step: &Step, threads: usize, out: &mut Out<'_>) {
        let mut span = self.span(SpanKind::StepWithThreads, &step.gap, out);
        span.name = format!("{threads} threads, {}", span.name);
        out.span(span);
    }

    fn span(&self, kind: SpanKind, gap: &Gap, out: &Out<'_>) -> Span {
        let thread = message::who(&gap.from, gap.began.end).filter(|_| gap.of_thread);
        // Where the time stands last, what is told stands before it.
        let told = |line: &[u8], from: usize| {
            let text = message::text(line, from);
            match text.contains(char::is_alphabetic) {
                true => text,
                false => message::text(line, 0),
            }
        };
        let from = told(&gap.from, gap.from_message);
        let to = told(&gap.to, gap.to_message);
        Span {
            kind,
            name: format!("`{from}` to `{to}`"),
            began: gap.began.when(),
            ns: Ns::try_from(gap.ns).unwrap_or(0),
            thread: thread.map(|(name, _)| String::from_utf8_lossy(name).into_owned()),
            usual: self.gaps.usual(gap),
            quote: Quote {
                line: gap.from_line,
                ..out.here()
            },
            text: format!(
                "line {}: {}\nline {}: {}",
                gap.from_line,
                quoted(&gap.from),
                gap.to_line,
                quoted(&gap.to)
            ),
        }
    }
}

/// A number for a short text; never 0.
#[inline]
pub(crate) fn hash(text: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut chunks = text.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    for byte in chunks.remainder() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 | 1
}

#[cfg(test)]
mod tests;
