//! What the JDK's `jfr print` shows of a flight recording.
//!
//! In: events, each as `jdk.NAME {`, its fields one a line, `}`. Out: [`Samples`]: what threads ran and, apart from that, what
//! they waited for, with the time of each wait; and how long the JVM took to reach its safepoints. An event of a wait
//! has the stack of who waits and says by its name for what: so the function of the JVM or of its library in which that
//! is done stands innermost, where the stack does not have it itself.
//!
//! [`Samples`]: holdup_evidence::observed::Samples

use super::Folded;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{decimal, whole, words};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Metric, Quote, Span, SpanKind, Weight};
use memchr::{memchr, memmem};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("jfr-print", Family::Profiles, recognise)
    .about("jfr print")
    .openings(&[
        "jdk.ExecutionSample {",
        "jdk.NativeMethodSample {",
        "jdk.JavaMonitorEnter {",
        "jdk.JavaMonitorWait {",
        "jdk.ThreadPark {",
        "jdk.ThreadSleep {",
        "jdk.SocketRead {",
        "jdk.SocketWrite {",
        "jdk.FileRead {",
        "jdk.FileWrite {",
        "jdk.FileForce {",
        "jdk.SafepointBegin {",
        "profiler.WallClockSample {",
    ]);

/// Bytes of one event's stack that are kept.
const STACK: usize = 64 << 10;

/// Bytes of a name that are kept.
const NAME: usize = 512;

/// Safepoints that are reported one by one, the longest.
const SAFEPOINTS: usize = 24;

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A sample of a thread that runs Java code.
    Running,
    /// A sample of one in native code, or of all, whatever they do.
    Sampled,
    /// A wait with its length, and the function that shows it.
    Waited(&'static str),
    /// The same for a lock or a queue, whose class the event names.
    Parked,
    /// Until all threads had come to stand.
    Safepoint,
    /// Another one, which says nothing to us.
    Other,
}

/// Events, by name. Functions are those that thread dumps and profiles show in the same place.
const EVENTS: &[(&[u8], Event)] = &[
    (b"jdk.ExecutionSample", Event::Running),
    (b"jdk.NativeMethodSample", Event::Sampled),
    (b"profiler.WallClockSample", Event::Sampled),
    (b"jdk.JavaMonitorEnter", Event::Waited("ObjectMonitor::enter")),
    (b"jdk.JavaMonitorWait", Event::Waited("java.lang.Object.wait_[j]")),
    (b"jdk.ThreadSleep", Event::Waited("java.lang.Thread.sleep_[j]")),
    (
        b"jdk.SocketRead",
        Event::Waited("java.net.SocketInputStream.socketRead0_[j]"),
    ),
    (
        b"jdk.SocketWrite",
        Event::Waited("java.net.SocketOutputStream.socketWrite0_[j]"),
    ),
    (
        b"jdk.FileRead",
        Event::Waited("java.io.RandomAccessFile.readBytes_[j]"),
    ),
    (
        b"jdk.FileForce",
        Event::Waited("sun.nio.ch.FileDispatcherImpl.force0_[j]"),
    ),
    (b"jdk.ThreadPark", Event::Parked),
    (b"jdk.SafepointBegin", Event::Safepoint),
];

/// The function in which a thread parks.
const PARK: &str = "jdk.internal.misc.Unsafe.park_[j]";

/// Whether an event begins and has its instant on the next line.
fn recognise(head: &[u8]) -> Sureness {
    let mut begun = false;
    for line in head.split(|byte| *byte == b'\n') {
        if begun && field(line).is_some_and(|(name, _)| name == b"startTime") {
            return Sureness::Certain;
        }
        begun = begins(line).is_some();
    }
    Sureness::No
}

/// The name of the event that begins: `jdk.ThreadPark {`.
fn begins(line: &[u8]) -> Option<&[u8]> {
    let name = line.trim_ascii_end().strip_suffix(b" {")?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$');
    (memchr(b'.', name).is_some() && name.iter().all(plain)).then_some(name)
}

/// A field and its value: `  duration = 95.5 ms`.
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii();
    let at = memmem::find(line, b" = ")?;
    Some((line.get(..at)?, line.get(at + 3..)?))
}

/// `95.5 ms`, `4.61 s`, `2 m 3 s`, `1 h 2 m`, in any locale.
fn duration(value: &[u8]) -> Option<Ns> {
    let mut sum: Option<f64> = None;
    let mut words = words(value);
    while let Some(number) = words.next() {
        let unit = match words.next()? {
            b"ns" => 1.0,
            b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1e3,
            b"ms" => 1e6,
            b"s" => 1e9,
            b"m" | b"min" => 60e9,
            b"h" => 3600e9,
            b"d" => 86_400e9,
            _ => return None,
        };
        let number = decimal(number).filter(|number| *number >= 0.0)?;
        sum = Some(sum.unwrap_or(0.0) + number * unit);
    }
    sum.filter(|ns| *ns < Ns::MAX as f64).map(|ns| ns.round() as Ns)
}

/// A thread's name: `"order-1" (javaThreadId = 16)`.
fn thread(value: &[u8]) -> &[u8] {
    let inner = value.strip_prefix(b"\"").and_then(|rest| {
        let end = memmem::rfind(rest, b"\" (").or_else(|| rest.len().checked_sub(1))?;
        rest.get(..end)
    });
    inner.unwrap_or(value)
}

/// A frame without its arguments and its line: `Orders.book() line: 6`.
fn frame(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.get(..memchr(b'(', line).unwrap_or(line.len()))
        .unwrap_or_default()
}

/// The events of one profile.
#[derive(Default)]
struct Profile {
    folded: Folded,
    first: Option<Quote>,
}

#[derive(Default)]
struct Reader {
    running: Profile,
    sampled: Profile,
    waits: Profile,
    /// The event that is being read.
    event: Option<Event>,
    quote: Quote,
    name: Vec<u8>,
    class: Vec<u8>,
    ns: Option<Ns>,
    weight: u64,
    in_stack: bool,
    /// How deep within a field of several lines.
    within: u32,
    /// The frames, innermost first, with `;` behind each.
    frames: Vec<u8>,
    stack: Vec<u8>,
    /// The longest safepoints and where they were.
    safepoints: Vec<(Ns, Quote)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = line.trim_ascii();
        if text.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(name) = begins(line) {
            self.begin(name, out);
            return self.taken();
        }
        let Some(event) = self.event else {
            return Understood::No;
        };
        if self.in_stack {
            return self.in_stack(text, out);
        }
        match text {
            b"}" if self.within == 0 => {
                self.flush(event, out);
                return Understood::Ignorable;
            }
            b"}" | b"]" => {
                self.within = self.within.saturating_sub(1);
                return Understood::Ignorable;
            }
            _ => {}
        }
        match field(text) {
            Some((b"stackTrace", b"[")) if self.within == 0 => self.in_stack = true,
            Some((_, b"[" | b"{")) => self.within = self.within.saturating_add(1),
            Some(_) if self.within > 0 => {}
            Some((name, value)) => return self.field(name, value),
            // Elements of a list.
            None if self.within > 0 => {}
            None => return Understood::No,
        }
        self.taken()
    }

    fn end(&mut self, out: &mut Out<'_>) {
        // What was cut off has no end.
        if let Some(event) = self.event {
            self.flush(event, out);
        }
        for (profile, waiting, weight) in [
            (std::mem::take(&mut self.running), Some(false), Weight::Count),
            (std::mem::take(&mut self.sampled), None, Weight::Count),
            (std::mem::take(&mut self.waits), Some(true), Weight::Ns),
        ] {
            let quote = profile.first.unwrap_or_default();
            profile.folded.finish(out, waiting, weight, quote);
        }
        for (ns, quote) in std::mem::take(&mut self.safepoints) {
            out.span(Span {
                kind: SpanKind::SafepointReach,
                name: String::new(),
                began: None,
                ns,
                thread: None,
                usual: None,
                quote,
                text: "jdk.SafepointBegin".to_owned(),
            });
        }
    }
}

impl Reader {
    fn begin(&mut self, name: &[u8], out: &mut Out<'_>) {
        if let Some(event) = self.event {
            self.flush(event, out);
        }
        let known = EVENTS.iter().find(|(known, _)| *known == name);
        self.event = Some(known.map_or(Event::Other, |(_, event)| *event));
        self.quote = out.here();
        self.weight = 1;
    }

    /// What a line of the event is that is being read.
    fn taken(&self) -> Understood {
        match self.event {
            Some(Event::Other) | None => Understood::Ignorable,
            Some(_) => Understood::Evidence,
        }
    }

    fn in_stack(&mut self, text: &[u8], out: &mut Out<'_>) -> Understood {
        match text {
            b"]" => self.in_stack = false,
            b"..." if self.event == Some(Event::Other) => {}
            b"..." => out.problem(
                "stacks are cut to a few frames, so who asked can't always be told: print them with \
                 `jfr print --stack-depth 64`",
            ),
            _ if self.frames.len() + text.len() < STACK => {
                let from = self.frames.len();
                self.frames.extend_from_slice(frame(text));
                for byte in self.frames.iter_mut().skip(from).filter(|byte| **byte == b';') {
                    *byte = b':';
                }
                self.frames.extend_from_slice(b"_[j];");
            }
            _ => {}
        }
        self.taken()
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Understood {
        let kept = |value: &[u8]| value.get(..NAME).unwrap_or(value).to_vec();
        match name {
            b"eventThread" | b"sampledThread" => self.name = kept(thread(value)),
            b"parkedClass" => {
                let end = memchr(b' ', value).unwrap_or(value.len());
                self.class = kept(value.get(..end).unwrap_or_default());
            }
            b"samples" => self.weight = whole(value).unwrap_or(1),
            b"duration" => match duration(value) {
                Some(ns) => self.ns = Some(ns),
                None => return Understood::No,
            },
            _ => {}
        }
        self.taken()
    }

    /// The event is whole.
    fn flush(&mut self, event: Event, out: &mut Out<'_>) {
        self.event = None;
        self.within = 0;
        self.in_stack = false;
        let frames = std::mem::take(&mut self.frames);
        let (name, class) = (std::mem::take(&mut self.name), std::mem::take(&mut self.class));
        let (ns, quote) = (self.ns.take(), std::mem::take(&mut self.quote));
        let of_lock = memmem::find(&class, b"Lock$").is_some();
        let (profile, weight, innermost) = match (event, ns) {
            (Event::Running, _) => (&mut self.running, self.weight, None),
            (Event::Sampled, _) => (&mut self.sampled, self.weight, None),
            (Event::Waited(function), Some(ns)) => (&mut self.waits, ns, Some(function)),
            (Event::Parked, Some(ns)) if of_lock => (&mut self.waits, ns, Some(super::LOCK_PARKED)),
            (Event::Parked, Some(ns)) => (&mut self.waits, ns, Some(PARK)),
            (Event::Safepoint, Some(ns)) => {
                out.report(None, None, false);
                out.figure(Metric::SafepointReachMs, "", ns as f64 / 1e6);
                self.safepoints.push((ns, quote));
                if self.safepoints.len() > 2 * SAFEPOINTS {
                    self.safepoints.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
                    self.safepoints.truncate(SAFEPOINTS);
                }
                return;
            }
            _ => return,
        };
        let stack = &mut self.stack;
        stack.clear();
        stack.extend(name.iter().map(|byte| if *byte == b';' { b':' } else { *byte }));
        for frame in frames
            .split(|byte| *byte == b';')
            .rev()
            .filter(|frame| !frame.is_empty())
        {
            stack.push(b';');
            stack.extend_from_slice(frame);
        }
        if let Some(function) = innermost.filter(|function| !frames.starts_with(function.as_bytes())) {
            stack.push(b';');
            stack.extend_from_slice(function.as_bytes());
        }
        profile.first.get_or_insert(quote);
        profile.folded.add(stack, weight);
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, frame, thread};
    use crate::read_text;
    use holdup_evidence::observed::{Samples, Weight};

    const TEXT: &str = "jdk.JavaMonitorEnter {
  startTime = 07:06:24.784 (2026-11-22)
  duration = 386 ms
  monitorClass = java.lang.Object (classLoader = bootstrap)
  previousOwner = \"order-0\" (javaThreadId = 26)
  eventThread = \"order-1\" (javaThreadId = 27)
  stackTrace = [
    Orders.book() line: 6
    Orders.lambda$main$0(int) line: 13
    ...
  ]
}

jdk.ThreadPark {
  startTime = 07:06:24.787 (2026-11-22)
  duration = 33,2 ms
  parkedClass = java.util.concurrent.locks.ReentrantLock$NonfairSync (classLoader = bootstrap)
  eventThread = \"order-4\" (javaThreadId = 30)
  stackTrace = [
    jdk.internal.misc.Unsafe.park(boolean, long)
  ]
}

jdk.ExecutionSample {
  startTime = 07:06:24.822 (2026-11-22)
  sampledThread = \"order-5\" (javaThreadId = 31)
  state = \"STATE_RUNNABLE\"
  stackTrace = [
    Orders.price() line: 8
  ]
}

jdk.ActiveSetting {
  startTime = 07:06:24.749 (2026-11-22)
  values = [
    1
    2
  ]
}

jdk.SafepointBegin {
  startTime = 07:06:24.749 (2026-11-22)
  duration = 0.0880 ms
}
";

    fn stacks(reading: &crate::Reading, samples: &Samples) -> Vec<(String, u64)> {
        let of = |stack| -> Vec<&str> { reading.observed.stacks.frames(stack).collect() };
        let stacks = samples.stacks.iter();
        stacks
            .map(|(stack, weight)| (of(*stack).join(" < "), *weight))
            .collect()
    }

    #[test]
    fn waits_and_samples_are_apart() {
        let reading = read_text("r", TEXT.as_bytes());
        assert_eq!(reading.accounts.len(), 1);
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert!(reading.accounts[0].problems[0].contains("--stack-depth"));
        let [running, waits] = reading.observed.samples.as_slice() else {
            panic!("{:?}", reading.observed.samples)
        };
        assert_eq!(
            (running.waiting, running.weight, running.total),
            (Some(false), Weight::Count, 1)
        );
        assert_eq!(
            (waits.waiting, waits.weight, waits.total),
            (Some(true), Weight::Ns, 419_200_000)
        );
        assert_eq!(
            stacks(&reading, waits)[0],
            (
                "ObjectMonitor::enter < Orders.book_[j] < Orders.lambda$main$0_[j] < order-1".to_owned(),
                386_000_000
            )
        );
        assert_eq!(reading.observed.spans[0].ns, 88_000);
    }

    #[test]
    fn lengths_names_and_frames() {
        assert_eq!(duration(b"2 m 3 s"), Some(123_000_000_000));
        assert_eq!(duration(b"0.00413 ms"), Some(4_130));
        for wrong in [&b""[..], b"N/A", b"5", b"-1 ms", b"ms", b"1e300 s"] {
            assert_eq!(duration(wrong), None, "{wrong:?}");
        }
        assert_eq!(thread(b"\"a (b) \"\" (javaThreadId = 7)"), b"a (b) \"");
        assert_eq!(thread(b"\""), b"\"");
        assert_eq!(frame(b"  Map.get(Object, int) line: 5"), b"Map.get");
    }

    #[test]
    fn cut_and_hostile_events_are_read_as_far_as_they_go() {
        for cut in (0..TEXT.len()).step_by(7) {
            let _ = read_text("r", TEXT.as_bytes().get(..cut).unwrap_or_default());
        }
        let hostile = format!(
            "{TEXT}\njdk.ThreadPark {{\n duration = -5 s\n x = [\n y = {{\n}}\n]\n\0\n}}\n}}\n\x7f\n"
        );
        let reading = read_text("r", hostile.as_bytes());
        assert_eq!(reading.observed.samples.len(), 2);
        assert!(reading.accounts[0].not_understood >= 2);
    }
}
