//! Safepoints: how long until all threads stood, and how long they stood.
//!
//! JDK 17 and later tell both on one line; JDK 9 to 16 on one or two; JDK 8 as times for which threads were stopped, or as a
//! table of statistics. A stop is counted once.

use super::{Line, Longest, after, figure, ns};
use crate::find::find;
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Metric, SpanKind};

#[derive(Debug, Default)]
pub(super) struct Safepoints {
    reach: Longest,
    pause: Longest,
    /// JDK 8's table: how many columns of time come before and after the wait, `None` outside of one.
    table: Option<()>,
    /// Whether stops are known by sentences, so that a table of the same stops adds nothing.
    sentences: bool,
}

/// The header of JDK 8's table of statistics.
pub(super) fn is_old_header(line: &[u8]) -> bool {
    find(line, b"vmop  ").is_some() && find(line, b"[threads: total").is_some()
}

impl Safepoints {
    pub(super) fn in_table(&self) -> bool {
        self.table.is_some()
    }

    pub(super) fn old_header(&mut self, line: &[u8]) -> bool {
        if is_old_header(line) {
            self.table = Some(());
            return true;
        }
        false
    }

    pub(super) fn take(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> bool {
        let message = line.message;
        if let Some(rest) = message.strip_prefix(b"Safepoint \"") {
            return self.modern(rest, line, out).is_some();
        }
        if let Some(at) = find(message, b"Total time for which application threads were stopped:") {
            return self
                .sentence(message.get(at..).unwrap_or_default(), line, out)
                .is_some();
        }
        if self.in_table() && !self.sentences && message.contains(&b'[') {
            return self.row(line, out).is_some();
        }
        message.starts_with(b"Application time: ") || message.starts_with(b"Leaving safepoint region")
    }

    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        self.reach.tell(out);
        self.pause.tell(out);
    }

    /// `Cleanup", Time since last: 1 ns, Reaching safepoint: 2 ns, At safepoint: 3 ns, Total: 4 ns`.
    fn modern(&mut self, rest: &[u8], line: &Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let operation = rest.get(..memchr::memchr(b'"', rest)?)?;
        let in_ns = |text: &[u8]| after(rest, text).and_then(|(value, _)| ns(value, 1.0));
        let reach = in_ns(b"Reaching safepoint: ")?;
        let total = in_ns(b"Total: ")?;
        self.tell(operation, reach, total, line, out);
        Some(())
    }

    /// `Total time for which application threads were stopped: 0.0123 seconds, Stopping threads took: 0.0001 seconds`.
    fn sentence(&mut self, text: &[u8], line: &Line<'_>, out: &mut Out<'_>) -> Option<()> {
        self.sentences = true;
        let seconds = |name: &[u8]| after(text, name).and_then(|(value, _)| ns(value, 1e9));
        let total = seconds(b"were stopped: ")?;
        match seconds(b"Stopping threads took: ") {
            Some(reach) => self.tell(b"", reach, total, line, out),
            None => {
                figure(Metric::SafepointPauseMs, total, line, out);
                self.pause.keep(SpanKind::SafepointPause, b"", total, line, out);
            }
        }
        Some(())
    }

    /// `G1IncCollection  [ 12 0 1 ] [ 0 0 0 0 5 ] 0`: milliseconds of spin, block, sync, cleanup, operation.
    fn row(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let mut groups = line.message.split(|byte| matches!(byte, b'[' | b']'));
        let operation = groups.next()?.trim_ascii();
        let _threads = groups.next()?;
        let times = groups.nth(1)?;
        let times: Vec<u64> = words(times).map_while(whole).collect();
        let [_, _, sync, cleanup, operating] = times.as_slice() else {
            return None;
        };
        let ms = |value: u64| ns(value as f64, 1e6);
        let (reach, rest) = (ms(*sync)?, ms(cleanup.checked_add(*operating)?)?);
        self.tell(operation, reach, reach.saturating_add(rest), line, out);
        Some(())
    }

    fn tell(&mut self, operation: &[u8], reach: Ns, total: Ns, line: &Line<'_>, out: &mut Out<'_>) {
        out.report(line.at, None, false);
        out.figure(Metric::SafepointReachMs, "", reach as f64 / 1e6);
        out.figure(Metric::SafepointPauseMs, "", total as f64 / 1e6);
        self.reach
            .keep(SpanKind::SafepointReach, operation, reach, line, out);
        self.pause
            .keep(SpanKind::SafepointPause, operation, total, line, out);
    }
}
