//! Reports of macOS about a program that hangs, uses much CPU or writes much: spindump's, and those of the system's own watchers.
//!
//! In: a heading of names and values (`Event: hang`, `Duration: 1.30s (process was unresponsive for 82 seconds before sampling)`, `Steps: 13`), then
//! the heaviest stack, outermost frame first, each with how many samples it is in. Out: how long the main thread did not answer, and where it stands.
//! Source: `man spindump`, and "Diagnosing issues using crash reports and device logs" of Apple.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, ns_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("macos-event", Family::Threads, recognise).about("reports of spindump");

/// The part of the samples that a frame has to be in for the thread to stand there.
const MIN_PART_OF_SAMPLES: f64 = 0.5;

/// What begins like another format within the heading.
const HEADED: &str = "lscpu";

/// Functions in which a thread waits, and for what; the first whose name begins so.
const WAITS: [(&str, &str); 12] = [
    ("semaphore_wait", "it waits for a semaphore that nobody signals"),
    ("semaphore_timedwait", "it waits for a semaphore"),
    (
        "__psynch_mutexwait",
        "it waits for a mutex that another thread has",
    ),
    ("__psynch_cvwait", "it waits for a condition that nobody signals"),
    (
        "__psynch_rw",
        "it waits for a read-write lock that another thread has",
    ),
    ("__ulock_wait", "it waits for a lock, or for the end of a thread"),
    ("mach_msg", "it waits for the answer of another process"),
    ("__select", "it waits for a descriptor"),
    ("kevent", "it waits for an event"),
    ("__wait4", "it waits for a child process to end"),
    ("__semwait_signal", "it sleeps"),
    ("__open", "it opens a file"),
];

fn recognise(head: &[u8]) -> Sureness {
    let is_event = |line: &str| named(line, "Event").is_some_and(|event| EVENTS.contains(&event));
    Sureness::certain_if(holds(head, "Event:") && holds(head, "Command:") && any_line(head, is_event))
}

/// Events that are told.
const EVENTS: [&str; 4] = ["hang", "cpu usage", "disk writes", "wakeups"];

/// The value of a name of the heading.
fn named<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    Some(line.strip_prefix(name)?.strip_prefix(':')?.trim())
}

/// `*13  semaphore_wait_trap + 10 (libsystem_kernel.dylib + 74838) [0x7fff]`: in how many samples, which function, and whether it is the kernel's.
fn frame(text: &str) -> Option<(f64, &str, bool)> {
    let kernel = text.starts_with('*');
    let (count, rest) = text.trim_start_matches('*').split_once(' ')?;
    let rest = rest.trim_start();
    let name = rest.split(" + ").next()?;
    let of_image = rest.contains(" + ") || rest.starts_with('<') || rest.starts_with("???");
    of_image.then_some((number(count)?, name.trim(), kernel))
}

#[derive(Debug, Default)]
struct Reader {
    event: String,
    command: String,
    pid: String,
    duration: String,
    steps: Option<f64>,
    told: Option<(String, Quote)>,
    quote: Option<Quote>,
    in_stack: bool,
    /// The innermost function of the program and its libraries, in how many samples.
    innermost: Option<(f64, String)>,
    kernel: Option<String>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        if text.is_empty() {
            return Understood::Ignorable;
        }
        if text.starts_with("Heaviest stack for the ") {
            self.in_stack = self.innermost.is_none();
            return Understood::Evidence;
        }
        if let Some((count, name, kernel)) = frame(&text) {
            if self.in_stack && !name.starts_with('<') {
                let steps = self.steps.unwrap_or(count).max(1.0);
                if count >= steps * MIN_PART_OF_SAMPLES && kernel {
                    self.kernel = Some(name_of(name));
                } else if count >= steps * MIN_PART_OF_SAMPLES {
                    self.innermost = Some((count, name_of(name)));
                }
            }
            return Understood::Evidence;
        }
        let Some((name, value)) = text.split_once(':') else {
            return Understood::No;
        };
        // The stacks of all threads stand below the heaviest one.
        self.in_stack = false;
        let value = value.trim();
        match name.trim() {
            "Event" => {
                if !self.event.is_empty() {
                    self.end(out);
                }
                value.clone_into(&mut self.event);
                self.quote = Some(out.here());
            }
            "Command" if self.command.is_empty() => self.command = name_of(value),
            "PID" if self.pid.is_empty() => self.pid = name_of(value),
            "Duration" => {
                self.duration = name_of(value);
                self.quote = Some(out.here());
            }
            "Steps" => self.steps = value.split([' ', '(']).next().and_then(number),
            "CPU" | "Writes" | "Wakeups" => self.told = Some((name_of(value), out.here())),
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn keeps(&self, other: &Format) -> bool {
        other.id == HEADED
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let who = match (read.command.as_str(), read.pid.as_str()) {
            ("", _) => "the program".to_owned(),
            (name, "") => name.to_owned(),
            (name, pid) => format!("{name} (pid {pid})"),
        };
        if read.event != "hang" {
            if let Some((told, quote)) = read.told {
                let text = format!("macOS reports {} of {who}: {told}", read.event);
                out.statement(statements::one(StatementKind::Warned, None, quote, text));
            }
            return;
        }
        let Some(quote) = read.quote.clone() else { return };
        let seconds = unresponsive(&read.duration);
        let long = seconds.map_or_else(String::new, |seconds| {
            format!(" for {}", duration(ns_of(seconds)))
        });
        let text = format!("the main thread of {who} did not respond{long}{}", stands(&read));
        out.statement(statements::one(
            StatementKind::Stalled,
            seconds.map(ns_of),
            quote,
            text,
        ));
    }
}

/// Seconds of `1.30s (process was unresponsive for 82 seconds before sampling)`, or how long it was sampled.
fn unresponsive(text: &str) -> Option<f64> {
    let before = text.split_once("unresponsive for ").map(|(_, rest)| rest);
    match before {
        Some(rest) => {
            let mut words = rest.split_whitespace();
            let count = number(words.next()?)?;
            let minutes = words.next().is_some_and(|unit| unit.starts_with("minute"));
            Some(if minutes { count * 60.0 } else { count })
        }
        None => number(text.split('s').next()?),
    }
}

/// Where the thread stands, in how many samples.
fn stands(read: &Reader) -> String {
    let Some((count, name)) = &read.innermost else {
        return String::new();
    };
    let of = match read.steps {
        Some(steps) if *count >= steps => format!("in all {steps:.0} samples"),
        Some(steps) => format!("in {count:.0} of {steps:.0} samples"),
        None => format!("in {count:.0} samples"),
    };
    let plain = name.trim_start_matches("_");
    let why = WAITS
        .iter()
        .find(|(begin, _)| name.starts_with(begin) || plain.starts_with(begin.trim_start_matches('_')));
    let why = why.map_or_else(String::new, |(_, why)| format!(": {why}"));
    let kernel = read
        .kernel
        .as_ref()
        .map_or_else(String::new, |kernel| format!(" (in the kernel {kernel})"));
    format!("; {of} it stands in {name}{kernel}{why}")
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let observed = read_text("m", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "macos-event");
        assert_eq!(observed.sources.len(), 1);
        let all = observed.statements.into_iter().filter(|one| one.of_reader);
        all.map(|one| (one.kind, one.text)).collect()
    }

    const HANG: &str = "Date/Time:        2022-03-04 10:00:00.000 +0100\nOS Version:       macOS 12.2 (Build 21D49)\nArchitecture:     arm64e\n\
        Report Version:   35\n\nCommand:          Editor\nPath:             /Applications/Editor.app/Contents/MacOS/Editor\nPID:              411\n\n\
        Event:            hang\nDuration:         2.10s (process was unresponsive for 34 seconds before sampling)\nSteps:            21 (100ms sampling interval)\n\n\
        Heaviest stack for the main thread of the target process:\n  21  start + 520 (dyld + 20724) [0x1]\n  21  main + 40 (Editor + 4096) [0x2]\n\
        \x20 21  __psynch_mutexwait + 8 (libsystem_kernel.dylib + 1) [0x3]\n *21  psynch_mtxcontinue + 0 (pthread + 2) [0x4]\n\n\
        Process:          Editor [411]\n  Thread 0x11    DispatchQueue 1    21 samples (1-21)\n  1  idle + 3 (x + 1) [0x9]\n";

    #[test]
    fn a_main_thread_that_waits_for_a_lock() {
        assert_eq!(
            said(HANG),
            [(
                StatementKind::Stalled,
                "the main thread of Editor (pid 411) did not respond for 34.00 s; in all 21 samples it stands in __psynch_mutexwait (in the kernel \
                 psynch_mtxcontinue): it waits for a mutex that another thread has"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn a_hang_of_which_only_the_heading_is_there() {
        let text = HANG
            .split("Heaviest")
            .next()
            .unwrap()
            .replace("34 seconds", "2 minutes");
        assert_eq!(
            said(&text)[0].1,
            "the main thread of Editor (pid 411) did not respond for 2 min 0 s"
        );
    }

    #[test]
    fn much_cpu_is_no_hang() {
        let text = "Command:         syncd\nPID:             9\n\nEvent:           cpu usage\nCPU:             90s cpu time over 101s (89% cpu average), exceeding limit of 50% cpu over 180s\n\
            Duration:        101.00s\nSteps:           40\n";
        let all = said(text);
        assert_eq!(all[0].0, StatementKind::Warned);
        assert!(
            all[0]
                .1
                .starts_with("macOS reports cpu usage of syncd (pid 9): 90s cpu time"),
            "{all:?}"
        );
        let other = read_text("m", b"Event: hang on tight\nname: x\n").observed;
        assert_ne!(other.sources[0].format, "macos-event");
    }
}
