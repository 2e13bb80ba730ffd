//! `sample` of macOS: a tree of what each thread did in all samples, of which the main thread is told.
//!
//! In: `Call graph:`, and below it threads and their functions, each with its count of samples, set in by signs and blanks. Out: where the main thread
//! stands in most samples, who called that, and whether that is how a program waits for the next event.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("macos-sample", Family::Threads, recognise).about("sample of macOS");

/// The part of its samples in which a thread has to be at a place to stand there.
const MIN_PART_OF_SAMPLES: f64 = 0.9;

/// Functions of a program that waits for the next event.
const IDLE: [&str; 7] = [
    "CFRunLoopRun",
    "_DPSNextEvent",
    "ReceiveNextEvent",
    "uv__io_poll",
    "event_base_loop",
    "kevent",
    "NSApplication run",
];

/// Functions in which a thread waits for another one that has what it wants, and for what. Those that call others of these come first.
const LOCKS: [(&str, &str); 4] = [
    ("__psynch_mutexwait", "a mutex that another thread has"),
    ("__psynch_rw", "a read-write lock that another thread has"),
    ("_dispatch_sync", "a queue on which another thread works"),
    ("_os_unfair_lock_lock_slow", "a lock that another thread has"),
];

/// Functions in which a thread waits for another one, or as one that has nothing to do.
const WAITS: [(&str, &str); 3] = [
    ("__psynch_cvwait", "for a condition, or for want of work"),
    ("semaphore_wait_trap", "for a semaphore, or for want of work"),
    ("__ulock_wait", "for a lock, or the end of a thread"),
];

fn recognise(head: &[u8]) -> Sureness {
    let is_thread = |line: &str| thread(line).is_some();
    Sureness::certain_if(holds(head, "Call graph:") && any_line(head, is_thread))
}

/// `2652 Thread_8123   DispatchQueue_1: com.apple.main-thread  (serial)`.
fn thread(line: &str) -> Option<f64> {
    let (count, rest) = line.split_once(' ')?;
    rest.trim_start().starts_with("Thread_").then(|| number(count))?
}

/// `+   2652 -[Doc save]  (in Editor) + 41  [0x1000]`: the count, the function, its program.
fn call(line: &str) -> Option<(f64, &str, &str)> {
    let line = line.trim_start_matches(['+', '!', ':', '|', ' ']);
    let (count, rest) = line.split_once(' ')?;
    let count = number(count)?;
    let (name, image) = match rest.split_once("  (in ") {
        Some((name, rest)) => (name, rest.split(')').next().unwrap_or_default()),
        None => (rest, ""),
    };
    (!name.trim().is_empty()).then(|| (count, name.trim(), image))
}

#[derive(Debug, Default)]
struct Reader {
    in_graph: bool,
    /// Samples of the first thread, which is the main one.
    samples: Option<f64>,
    /// Whether another thread's functions follow.
    over: bool,
    /// Whether the way to where it stands has ended: other ways follow.
    apart: bool,
    path: Vec<(String, String)>,
    quote: Option<Quote>,
}

/// Functions of the way that are kept, innermost last.
const MAX_PATH: usize = 512;

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if text.starts_with("Call graph:") {
            self.end(out);
            self.in_graph = true;
            return Understood::Evidence;
        }
        if !self.in_graph {
            return Understood::Ignorable;
        }
        if let Some(count) = thread(&text) {
            self.over = self.samples.is_some();
            self.samples.get_or_insert(count);
            return Understood::Evidence;
        }
        if text.starts_with("Total number in stack") || text.starts_with("Sort by top of stack") {
            self.in_graph = false;
            return Understood::Ignorable;
        }
        let Some((count, name, image)) = call(&text) else {
            return Understood::Ignorable;
        };
        if self.over || self.apart {
            return Understood::Evidence;
        }
        self.apart = count < self.samples.unwrap_or(0.0) * MIN_PART_OF_SAMPLES;
        if !self.apart && self.path.len() < MAX_PATH {
            self.path.push((name_of(name), name_of(image)));
            self.quote = Some(out.here());
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let (Some(samples), Some(quote), Some((last, _))) = (read.samples, read.quote, read.path.last())
        else {
            return;
        };
        // The way splits up: it works at several places.
        if read.apart
            && !read
                .path
                .iter()
                .any(|(name, _)| LOCKS.iter().chain(&WAITS).any(|(wait, _)| name.starts_with(wait)))
        {
            return;
        }
        let is_in = |(begin, _): &&(&str, &str)| {
            let mut innermost = read.path.iter().rev().take(4);
            innermost.any(|(name, _)| name.starts_with(begin))
        };
        let (lock, wait) = (LOCKS.iter().find(is_in), WAITS.iter().find(is_in));
        let of_system = |image: &str| image.starts_with("lib") || image == "dyld" || image.is_empty();
        let caller = read
            .path
            .iter()
            .rev()
            .skip(1)
            .find(|(_, image)| !of_system(image));
        let caller = caller.map_or_else(String::new, |(name, image)| {
            format!(", called by {name} of {image}")
        });
        let idle = lock.or(wait).is_none()
            && read
                .path
                .iter()
                .any(|(name, _)| IDLE.iter().any(|idle| name.contains(idle)));
        let (kind, text) = match lock {
            Some((_, what)) => (
                StatementKind::Stalled,
                format!(
                    "the main thread stands in {last} in nearly all of {samples:.0} samples{caller}: it waits for {what}, and answers nobody"
                ),
            ),
            None if idle => (
                StatementKind::WithinNorm,
                format!(
                    "the main thread waits for the next event in nearly all of {samples:.0} samples, in {last}, as one that has nothing to do"
                ),
            ),
            None => {
                let what = wait.map_or_else(String::new, |(_, what)| format!(": it waits {what}"));
                (
                    StatementKind::Took,
                    format!(
                        "the main thread stands in {last} in nearly all of {samples:.0} samples{caller}{what}"
                    ),
                )
            }
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Option<(StatementKind, String)> {
        let observed = read_text("m", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "macos-sample");
        observed
            .statements
            .first()
            .map(|one| (one.kind, one.text.clone()))
    }

    fn tree(leaf: &str) -> String {
        format!(
            "Call graph:\n    2652 Thread_81   DispatchQueue_1: com.apple.main-thread  (serial)\n    + 2652 start  (in dyld) + 1  [0x1]\n    \
             +   2652 main  (in Editor) + 12  [0x2]\n    +     2652 {leaf}\n    2652 Thread_82\n    + 2652 work  (in Editor) + 3  [0x4]\n\nTotal number in stack:\n"
        )
    }

    #[test]
    fn a_main_thread_that_waits_for_a_lock() {
        let (kind, text) = said(&tree(
            "__psynch_mutexwait  (in libsystem_kernel.dylib) + 10  [0x3]",
        ))
        .unwrap();
        assert_eq!(kind, StatementKind::Stalled);
        assert_eq!(
            text,
            "the main thread stands in __psynch_mutexwait in nearly all of 2652 samples, called by main of Editor: it waits for a mutex that another thread \
             has, and answers nobody"
        );
    }

    #[test]
    fn one_that_waits_for_events_is_idle() {
        let leaf = "CFRunLoopRunSpecific  (in CoreFoundation) + 600  [0x3]\n    +       2652 mach_msg_trap  (in libsystem_kernel.dylib) + 8  [0x4]";
        assert_eq!(said(&tree(leaf)).unwrap().0, StatementKind::WithinNorm);
    }

    #[test]
    fn one_that_waits_for_a_condition_may_have_nothing_to_do() {
        let (kind, text) = said(&tree("__psynch_cvwait  (in libsystem_kernel.dylib) + 10  [0x3]")).unwrap();
        assert_eq!(kind, StatementKind::Took);
        assert!(
            text.ends_with("it waits for a condition, or for want of work"),
            "{text}"
        );
    }

    #[test]
    fn one_that_works() {
        let (kind, text) = said(&tree("compute  (in Editor) + 99  [0x3]")).unwrap();
        assert_eq!(kind, StatementKind::Took);
        assert!(text.contains("stands in compute"), "{text}");
        let several = tree(
            "a  (in Editor) + 99  [0x3]\n    +       1300 b  (in Editor) + 3  [0x4]\n    +       1352 c  (in Editor) + 3  [0x4]",
        );
        assert_eq!(said(&several), None);
    }
}
