//! Pauses of the garbage collector, and threads that had to wait for memory.

use super::{Line, Longest, after, figure, ns};
use crate::gather::Out;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Metric, SpanKind};

#[derive(Debug, Default)]
pub(super) struct Collector {
    pauses: Longest,
    stalls: Longest,
}

impl Collector {
    pub(super) fn take(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> bool {
        let message = line.message;
        if message.starts_with(b"Allocation Stall (") || message.starts_with(b"Relocation Stall (") {
            return self.stall(line, out).is_some();
        }
        if message.starts_with(b"[GC") || message.starts_with(b"[Full GC") {
            return self.old(line, out).is_some();
        }
        if let Some(rest) = message.strip_prefix(b"GC(") {
            return self.modern(rest, line, out).is_some();
        }
        false
    }

    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        self.pauses.tell(out);
        self.stalls.tell(out);
    }

    fn stall(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let (value, unit) = after(line.message, b") ")?;
        let ns = in_unit(value, unit)?;
        figure(Metric::AllocationStallMs, ns, line, out);
        let open = memchr::memchr(b'(', line.message)? + 1;
        let close = memchr::memchr(b')', line.message)?;
        let thread = line.message.get(open..close)?;
        self.stalls.keep(SpanKind::AllocationStall, thread, ns, line, out);
        Some(())
    }

    /// `12) Pause Young (Normal) (G1 Evacuation Pause) 18M->2M(380M) 5.132ms`: the end of a pause has its length, the
    /// beginning has none. ZGC has a letter of the generation before it.
    fn modern(&mut self, rest: &[u8], line: &Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let at = memchr::memmem::find(rest, b") ")? + 2;
        let text = rest.get(at..)?;
        let text = ["Y: ", "O: ", "y: ", "o: "]
            .iter()
            .find_map(|letter| text.strip_prefix(letter.as_bytes()))
            .unwrap_or(text);
        if !text.starts_with(b"Pause ") {
            return None;
        }
        let last = crate::numbers::words(text).last()?;
        let digits = last.iter().position(u8::is_ascii_alphabetic)?;
        let ns = in_unit(crate::numbers::decimal(last.get(..digits)?)?, last.get(digits..)?)?;
        let name_end = memchr::memmem::find(text, b") ").map_or(text.len(), |end| end + 1);
        let name = crate::numbers::words(text.get(..name_end)?)
            .take(4)
            .collect::<Vec<_>>()
            .join(&b' ');
        self.pause(&name, ns, line, out);
        self.heap(text, out);
        Some(())
    }

    /// `[Full GC (Ergonomics) [PSYoungGen: …] 49000K->49000K(62000K), [Metaspace: …], 0.0102 secs] [Times: …]`.
    fn old(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let text = line.message;
        // The last time before `[Times:` is that of the whole.
        let own = text.get(..memchr::memmem::find(text, b"[Times:").unwrap_or(text.len()))?;
        let end = memchr::memmem::rfind(own, b" secs]")?;
        let begin = own.get(..end)?.iter().rposition(|byte| *byte == b' ')?;
        let ns = ns(crate::numbers::decimal(own.get(begin + 1..end)?)?, 1e9)?;
        let name = own.get(1..own.iter().position(|byte| matches!(byte, b')' | b'K'))?)?;
        self.pause(name, ns, line, out);
        if own.starts_with(b"[Full") {
            self.heap(own, out);
        }
        Some(())
    }

    fn pause(&mut self, name: &[u8], ns: Ns, line: &Line<'_>, out: &mut Out<'_>) {
        figure(Metric::GcPauseMs, ns, line, out);
        self.pauses.keep(SpanKind::GcPause, name, ns, line, out);
    }

    /// How full the heap still is: `59M->49M(61M)` of a full collection. What ends with a bracket is of a generation.
    fn heap(&mut self, text: &[u8], out: &mut Out<'_>) {
        let full = memchr::memmem::find(text, b"Full").is_some();
        let mut words = crate::numbers::words(text).filter(|word| full && !word.contains(&b']'));
        let Some((after, of)) = words.find_map(heap) else {
            return;
        };
        if of > 0.0 && after <= of {
            out.figure(Metric::HeapAfterGcPercent, "", after / of * 100.0);
        }
    }
}

/// What is left and of how much, in KiB.
fn heap(word: &[u8]) -> Option<(f64, f64)> {
    let at = memchr::memmem::find(word, b"->")? + 2;
    let rest = word.get(at..)?;
    let open = memchr::memchr(b'(', rest)?;
    let close = memchr::memchr(b')', rest)?;
    Some((kib(rest.get(..open)?)?, kib(rest.get(open + 1..close)?)?))
}

fn kib(text: &[u8]) -> Option<f64> {
    let (unit, number) = text.split_last()?;
    let scale = match unit {
        b'K' => 1.0,
        b'M' => 1024.0,
        b'G' => 1024.0 * 1024.0,
        b'B' => 1.0 / 1024.0,
        _ => return None,
    };
    Some(crate::numbers::decimal(number)? * scale)
}

fn in_unit(value: f64, unit: &[u8]) -> Option<Ns> {
    match unit.trim_ascii() {
        b"ms" => ns(value, 1e6),
        b"s" => ns(value, 1e9),
        b"us" => ns(value, 1e3),
        _ => None,
    }
}
