//! Pauses of the garbage collector, and threads that had to wait for memory.

use super::{Line, Longest, after, figure, ns};
use crate::find::find;
use crate::gather::Out;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Metric, SpanKind};

#[derive(Debug, Default)]
pub(super) struct Collector {
    pauses: Longest,
    stalls: Longest,
    /// What a pause of JDK 8 is called whose length comes on a later line: tables of ages and decisions stand between.
    begun: Option<Vec<u8>>,
    /// The collection that said of itself, on a line of its own, that it found no room.
    exhausted: Option<Vec<u8>>,
}

/// What a line says of a collection beside its name.
const MARKS: [&str; 11] = [
    "CMS-remark",
    "CMS-initial-mark",
    "promotion failed",
    "concurrent mode failure",
    "concurrent mode interrupted",
    "to-space exhausted",
    "to-space overflow",
    "System.gc()",
    "Humongous Allocation",
    "Heap Dump",
    "Full GC",
];

/// What G1 says on a line of its own before the end of the pause.
const EXHAUSTED: &[u8] = b"To-space exhausted";

/// A step of a collection beside the application.
const CONCURRENT: &[u8] = b"[GC concurrent-";

/// Whether such a step's line has come into the line of a pause before its length was written.
fn is_cut_into(message: &[u8]) -> bool {
    let end = find(message, b" secs]");
    find(message, CONCURRENT).is_some_and(|at| end.is_none_or(|end| at < end))
}

/// Bytes of a line in which they are looked for.
const HEAD: usize = 2_000;

/// A name, with what else the line says of the collection.
fn marked(name: &[u8], line: &[u8]) -> Vec<u8> {
    let head = line.get(..HEAD).unwrap_or(line);
    let mut whole = name.to_vec();
    for mark in MARKS {
        let known = find(name, mark.as_bytes()).is_some();
        if !known && find(head, mark.as_bytes()).is_some() {
            whole.extend_from_slice(b" (");
            whole.extend_from_slice(mark.as_bytes());
            whole.push(b')');
        }
    }
    whole
}

impl Collector {
    pub(super) fn take(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> bool {
        let message = line.message;
        if message.starts_with(b"Allocation Stall (") || message.starts_with(b"Relocation Stall (") {
            return self.stall(line, out).is_some();
        }
        // It stops nobody, and its lines come between those of a pause.
        if message.starts_with(CONCURRENT) {
            return true;
        }
        if message.starts_with(b"[GC") || message.starts_with(b"[Full GC") {
            if is_cut_into(message) || self.old(line, out).is_none() {
                self.begun = old_name(message).map(|name| marked(name, message));
            }
            return true;
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
        let at = find(rest, b") ")? + 2;
        let text = rest.get(at..)?;
        let number = rest.get(..at)?;
        if text.starts_with(EXHAUSTED) {
            self.exhausted = Some(number.to_vec());
            return Some(());
        }
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
        let name_end = find(text, b") ").map_or(text.len(), |end| end + 1);
        let name = crate::numbers::words(text.get(..name_end)?)
            .take(4)
            .collect::<Vec<_>>()
            .join(&b' ');
        let no_room = self.exhausted.as_deref() == Some(number);
        let name = if no_room {
            marked(&name, EXHAUSTED.to_ascii_lowercase().as_slice())
        } else {
            name
        };
        self.pause(&name, ns, line, out);
        self.heap(text, out);
        Some(())
    }

    /// `[Full GC (Ergonomics) [PSYoungGen: …] 49000K->49000K(62000K), [Metaspace: …], 0.0102 secs] [Times: …]`.
    fn old(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> Option<()> {
        let text = line.message;
        // The last time before `[Times:` is that of the whole.
        let own = text.get(..find(text, b"[Times:").unwrap_or(text.len()))?;
        let end = memchr::memmem::rfind(own, b" secs]")?;
        let begin = own.get(..end)?.iter().rposition(|byte| *byte == b' ')?;
        let ns = ns(crate::numbers::decimal(own.get(begin + 1..end)?)?, 1e9)?;
        let (name, ns) = by_the_clock(marked(old_name(own)?, own), ns, text);
        self.begun = None;
        self.pause(&name, ns, line, out);
        self.heap(own, out);
        Some(())
    }

    /// A line that ends what a line before has begun: `, 0.2124664 secs]`, ` (to-space exhausted), 0.3857580 secs]`.
    pub(super) fn ends(&mut self, line: &Line<'_>, out: &mut Out<'_>) -> bool {
        let text = line.message.trim_ascii();
        let Some(begun) = &self.begun else {
            return false;
        };
        let text = text
            .get(..find(text, b"[Times:").unwrap_or(text.len()))
            .unwrap_or(text);
        // Parts of a pause are indented and have a name; the end of the whole closes a bracket that it does not open.
        let count = |sign: u8| memchr::memchr_iter(sign, text).count();
        let of_whole = matches!(text.first(), Some(b',' | b'(' | b'0'..=b'9')) || count(b']') > count(b'[');
        let end = memchr::memmem::rfind(text, b" secs]").filter(|_| of_whole);
        let Some(end) = end else { return false };
        let number = text.get(..end).unwrap_or_default();
        // A comma in front of the number is no part of it, one within it is.
        let begin = number
            .iter()
            .rposition(|byte| !byte.is_ascii_digit() && !matches!(byte, b'.' | b','))
            .map_or(0, |at| at + 1);
        let value = number.get(begin..).unwrap_or_default();
        let value = value.strip_prefix(b",").unwrap_or(value);
        let value = crate::numbers::decimal(value);
        let Some(ns) = value.and_then(|value| ns(value, 1e9)) else {
            return false;
        };
        let (name, ns) = by_the_clock(marked(begun, text), ns, line.message);
        self.begun = None;
        self.pause(&name, ns, line, out);
        self.heap(text, out);
        true
    }

    fn pause(&mut self, name: &[u8], ns: Ns, line: &Line<'_>, out: &mut Out<'_>) {
        figure(Metric::GcPauseMs, ns, line, out);
        self.pauses.keep(SpanKind::GcPause, name, ns, line, out);
    }

    /// How full the heap still is: `59M->49M(61M)`. What ends with a bracket is of a generation.
    fn heap(&mut self, text: &[u8], out: &mut Out<'_>) {
        let mut words = crate::numbers::words(text).filter(|word| !word.contains(&b']'));
        let Some((after, of)) = words.find_map(heap) else {
            return;
        };
        if of > 0.0 && after <= of {
            out.figure(Metric::HeapAfterGcPercent, "", after / of * 100.0);
        }
    }
}

/// What the collector did not see of its own pause: at least so long, and as long again as it says.
const UNSEEN_NS: Ns = 1_000_000_000;

/// A pause by the clock, where that ran on for much longer than the collector counted: `[Times: user=0.14 sys=0.01, real=37.70 secs]`.
/// Its threads did not run meanwhile: memory came from swap, a log was written to a slow disk, or others had the CPUs.
fn by_the_clock(name: Vec<u8>, counted: Ns, line: &[u8]) -> (Vec<u8>, Ns) {
    let value = |key: &[u8]| {
        let at = find(line, b"[Times:")?;
        let rest = line.get(at..)?;
        let rest = rest.get(find(rest, key)? + key.len()..)?;
        let end = rest
            .iter()
            .position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        crate::numbers::decimal(rest.get(..end)?)
    };
    let times = || Some((ns(value(b"real=")?, 1e9)?, value(b"user=")? + value(b"sys=")?));
    match times() {
        Some((real, cpu))
            if real >= counted.saturating_mul(2) && real >= counted.saturating_add(UNSEEN_NS) =>
        {
            let mut name = name;
            name.extend_from_slice(format!(" ({cpu:.2} s of CPU time)").as_bytes());
            (name, real)
        }
        _ => (name, counted),
    }
}

/// `GC pause (G1 Evacuation Pause)` of `[GC pause (G1 Evacuation Pause) (young), …`.
fn old_name(text: &[u8]) -> Option<&[u8]> {
    // `System.gc()` has brackets of its own.
    let end = match find(text, b"(System.gc())") {
        Some(at) if at < 24 => at + b"(System.gc())".len(),
        _ => {
            // What stands in further brackets is a part of it.
            let inner = text
                .iter()
                .skip(1)
                .position(|byte| matches!(byte, b')' | b'K' | b'['));
            let end = inner.map_or(text.len(), |at| at + 1);
            if text.get(end) == Some(&b')') {
                end + 1
            } else {
                end
            }
        }
    };
    let name = text.get(1..end)?.trim_ascii();
    // The time of such a part.
    let stamped = name.strip_suffix(b":").and_then(|name| {
        let at = name.iter().rposition(|byte| *byte == b' ')?;
        crate::numbers::decimal(name.get(at + 1..)?)?;
        name.get(..at)
    });
    Some(stamped.unwrap_or(name).trim_ascii())
}

/// What is left and of how much, in KiB.
fn heap(word: &[u8]) -> Option<(f64, f64)> {
    let at = find(word, b"->")? + 2;
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
