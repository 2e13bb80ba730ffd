//! `perf script`: a sample in several lines, a header and a frame a line.
//!
//! In: `comm  pid/tid [cpu] seconds: period event:`, then frames `address function+offset (file)`, innermost first, then an
//! empty line. Out: [`Samples`], one for each event: those of a clock or a counter are of running, `sched_switch` is of
//! going to wait.
//!
//! [`Samples`]: holdup_evidence::observed::Samples

use super::Folded;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use holdup_evidence::observed::{Quote, Weight};
use memchr::{memchr, memmem, memrchr};
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("perf-script", Family::Profiles, recognise).about("perf script");

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 200;
/// Events that are distinguished.
const EVENTS: usize = 32;
/// Bytes of one stack.
const STACK: usize = 64 << 10;

/// Events that tick while a thread runs.
const RUNNING: [&str; 6] = [
    "cycles",
    "cpu-clock",
    "task-clock",
    "instructions",
    "cpu/",
    "cpu_core/",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut header_before = false;
    let mut samples = 0;
    for line in head.split(|byte| *byte == b'\n').take(LOOKED_AT) {
        samples += u32::from(header_before && frame(line).is_some());
        header_before = header(line).is_some();
    }
    if samples > 0 {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

/// Process name and event of a header.
fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if line.first().is_none_or(u8::is_ascii_whitespace) && frame(line).is_some() {
        return None;
    }
    let line = line.trim_ascii();
    // The instant: `1234.567890:`, after the ids.
    let colon = memmem::find(line, b": ")?;
    let before = line.get(..colon)?;
    let at = memrchr(b' ', before)?;
    let seconds = before.get(at + 1..)?;
    let is_instant =
        memchr(b'.', seconds).is_some() && seconds.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !is_instant {
        return None;
    }
    let rest = line.get(colon + 2..)?.trim_ascii();
    let mut words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let event = words.find(|word| !word.iter().all(u8::is_ascii_digit))?;
    let event = event.strip_suffix(b":").unwrap_or(event);
    // The name may hold blanks: it ends before the last two or three words, which begin with digits or a bracket.
    let mut name = before.get(..at)?.trim_ascii_end();
    while let Some(space) = memrchr(b' ', name) {
        let word = name.get(space + 1..)?;
        let is_id = word
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'/' | b'[' | b']'));
        if !is_id {
            break;
        }
        name = name.get(..space)?.trim_ascii_end();
    }
    Some((name, event))
}

/// Function and file of a frame.
fn frame(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if !line.first()?.is_ascii_whitespace() {
        return None;
    }
    let line = line.trim_ascii();
    let space = memchr(b' ', line)?;
    if !line.get(..space)?.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let rest = line.get(space + 1..)?.trim_ascii_start();
    let open = memrchr(b'(', rest)?;
    let file = rest.get(open + 1..)?.strip_suffix(b")")?;
    let function = rest.get(..open)?.trim_ascii();
    let plus = memmem::rfind(function, b"+0x").unwrap_or(function.len());
    Some((function.get(..plus)?, file))
}

#[derive(Default)]
struct Reader {
    by_event: BTreeMap<Vec<u8>, (Folded, Quote)>,
    /// The sample that is being read: its event, its name, its frames, innermost first.
    event: Option<Vec<u8>>,
    name: Vec<u8>,
    /// The sample is one that does not count.
    preempted: bool,
    frames: Vec<Vec<u8>>,
    bytes: usize,
    quote: Quote,
}

impl Reader {
    fn flush(&mut self) {
        let Some(event) = self.event.take() else { return };
        if self.by_event.len() < EVENTS || self.by_event.contains_key(&event) {
            let mut stack = std::mem::take(&mut self.name);
            for frame in self.frames.iter().rev() {
                stack.push(b';');
                stack.extend_from_slice(frame);
            }
            let first = self.quote.clone();
            let (folded, _) = self
                .by_event
                .entry(event)
                .or_insert_with(|| (Folded::default(), first));
            folded.add(&stack, 1);
        }
        self.frames.clear();
        self.bytes = 0;
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            self.flush();
            return Understood::Ignorable;
        }
        if self.event.is_some()
            && let Some((function, file)) = frame(line)
        {
            let mut text = function.to_vec();
            let file = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            text.extend_from_slice(b" (");
            text.extend_from_slice(file);
            text.push(b')');
            for byte in &mut text {
                if *byte == b';' {
                    *byte = b':';
                }
            }
            self.bytes += text.len();
            if self.bytes <= STACK {
                self.frames.push(text);
            }
            return Understood::Evidence;
        }
        if self.preempted && frame(line).is_some() {
            return Understood::Evidence;
        }
        let Some((name, event)) = header(line) else {
            return if line.starts_with(b"#") {
                Understood::Ignorable
            } else {
                Understood::No
            };
        };
        self.flush();
        // It was made to give up the CPU and did not go to wait.
        if memmem::find(line, b"prev_state=R ").is_some() || memmem::find(line, b"prev_state=R+ ").is_some() {
            self.preempted = true;
            return Understood::Evidence;
        }
        self.preempted = false;
        self.quote = out.here();
        self.name = name.to_vec();
        self.event = Some(event.to_vec());
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.flush();
        for (event, (folded, quote)) in std::mem::take(&mut self.by_event) {
            let event = String::from_utf8_lossy(&event);
            let running = RUNNING.iter().any(|name| event.starts_with(name));
            let waiting = match () {
                () if running => Some(false),
                () if event.starts_with("sched:sched_switch") => Some(true),
                () => None,
            };
            folded.finish(out, waiting, Weight::Count, quote);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TEXT: &str = "# captured on: Thu\nmy prog  77/78 [001]  5034.441: 250000 cpu-clock:pppH: \n\t  ffffffff8123 native_queued_spin_lock_slowpath+0x1b ([kernel.kallsyms])\n\t    7f12 do_work+0x3 (/opt/app (deleted))\n\n\
        my prog  77/78 [001]  5034.442: 250000 cpu-clock:pppH: \n\t  ffffffff8123 native_queued_spin_lock_slowpath+0x1b ([kernel.kallsyms])\n\t    7f12 do_work+0x3 (/opt/app (deleted))\n\n";

    #[test]
    fn samples_of_one_stack_are_added_up() {
        let reading = read_text("p", TEXT.as_bytes());
        let [profile] = reading.observed.samples.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!((profile.total, profile.waiting), (2, Some(false)));
        let frames: Vec<&str> = reading.observed.stacks.frames(profile.stacks[0].0).collect();
        assert_eq!(frames[0], "native_queued_spin_lock_slowpath ([kernel.kallsyms])");
        assert_eq!(frames[2], "my prog");
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn cut_and_hostile_samples_are_read_as_far_as_they_go() {
        for cut in 0..TEXT.len() {
            let _ = read_text("p", TEXT.as_bytes().get(..cut).unwrap_or_default());
        }
        let text = format!("{TEXT}x 1.1: \n\t zz\n\t 12 ()\n\0\u{7f} 1. 2.3: e\n");
        assert_eq!(read_text("p", text.as_bytes()).observed.samples[0].total, 2);
    }
}
