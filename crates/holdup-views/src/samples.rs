//! The waits of a report as weighted stacks: what every format for profile viewers is made from.
//!
//! In: a report. Out: a [`Sample`] for each of its waits, with one stack from the process through the thread, the
//! program's own frames (Java and native, as they lie) and the kernel's. Nothing is left out and nothing is added up,
//! so that every format has the total of the report's waits. All names are printable ([`text::printable`]): viewers
//! print them on terminals too.
//!
//! [`text::printable`]: crate::text::printable

use crate::text::printable;
use holdup_evidence::{Language, Ns};
use holdup_model::attributed::ThreadName;
use holdup_model::report::{Asker, Report, StackFrame, Wait};
use jiff::Timestamp;
use std::collections::HashMap;
use std::hash::Hash;

/// What a frame of a sample stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The process.
    Process,
    /// The thread.
    Thread,
    /// Machine code of the program.
    Native,
    /// The same, inlined into the frame that comes before it.
    Inlined,
    /// Java.
    Java,
    /// Python.
    Python,
    /// JavaScript.
    JavaScript,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Perl.
    Perl,
    /// Bash.
    Bash,
    /// The kernel.
    Kernel,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The function, or the process or thread; never empty.
    pub(crate) name: String,
    /// File that the code came from; empty where there is none.
    pub(crate) module: String,
    /// Source file; empty where it is not known.
    pub(crate) file: String,
    /// Line there; 0 where it is not known.
    pub(crate) line: u32,
    /// What it is.
    pub(crate) kind: Kind,
}

/// A wait with its stack.
#[derive(Debug, Clone)]
pub(crate) struct Sample<'a> {
    /// The wait.
    pub(crate) wait: &'a Wait,
    /// Process, thread, and the stack, outermost first.
    pub(crate) stack: Vec<Place>,
}

/// Code that has no name.
const NAMELESS: &str = "[unknown]";

/// Where the kernel's code came from, as profilers have it.
const KERNEL: &str = "[kernel]";

/// Every wait of the report.
pub(crate) fn samples(report: &Report) -> impl Iterator<Item = Sample<'_>> {
    report.waits.iter().map(|wait| Sample {
        wait,
        stack: stack(wait),
    })
}

fn stack(wait: &Wait) -> Vec<Place> {
    let asker = &wait.asker;
    let mut stack = vec![
        Place::named(Who::of(asker).process(), Kind::Process),
        Place::named(Who::of(asker).thread(), Kind::Thread),
    ];
    stack.extend(asker.stack.iter().rev().map(Place::of_frame));
    if let Some(frame) = asker.frame.as_deref().filter(|_| asker.stack.is_empty()) {
        stack.push(Place {
            module: printable(asker.module.as_deref().unwrap_or_default(), true),
            ..Place::named(printable(frame, true), Kind::Native)
        });
    }
    stack.extend(wait.kernel_stack.iter().rev().map(|function| Place {
        module: KERNEL.to_owned(),
        ..Place::named(printable(function, true), Kind::Kernel)
    }));
    stack
}

/// A thread, by numbers and names: numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who<'a> {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    process: &'a str,
    thread: &'a str,
}

impl<'a> Who<'a> {
    /// Who asked.
    pub(crate) fn of(asker: &'a Asker) -> Who<'a> {
        Who {
            pid: asker.pid,
            tid: asker.tid,
            process: &asker.process,
            thread: &asker.thread,
        }
    }

    /// Whose name it is.
    pub(crate) fn named(name: &'a ThreadName) -> Who<'a> {
        Who {
            pid: name.pid,
            tid: name.tid,
            process: &name.process,
            thread: &name.thread,
        }
    }

    /// `sshd (812)`; without a number where it stands for several.
    pub(crate) fn process(self) -> String {
        numbered(self.process, self.pid, "a process")
    }

    /// `worker-3 (815)`; an entry that stands for several threads says so.
    pub(crate) fn thread(self) -> String {
        match self.tid {
            0 => "several threads".to_owned(),
            tid => numbered(self.thread, tid, "a thread"),
        }
    }
}

fn numbered(name: &str, number: u32, otherwise: &str) -> String {
    let name = match name {
        "" => otherwise.to_owned(),
        name => printable(name, true),
    };
    match number {
        0 => name,
        number => format!("{name} ({number})"),
    }
}

impl Place {
    fn named(name: String, kind: Kind) -> Place {
        Place {
            name: if name.is_empty() {
                NAMELESS.to_owned()
            } else {
                name
            },
            module: String::new(),
            file: String::new(),
            line: 0,
            kind,
        }
    }

    fn of_frame(frame: &StackFrame) -> Place {
        let kind = match frame.language {
            Language::Kernel => Kind::Kernel,
            Language::Java => Kind::Java,
            Language::Python => Kind::Python,
            Language::JavaScript => Kind::JavaScript,
            Language::Ruby => Kind::Ruby,
            Language::Php => Kind::Php,
            Language::Perl => Kind::Perl,
            Language::Bash => Kind::Bash,
            Language::Native | Language::Go if frame.inlined => Kind::Inlined,
            Language::Native | Language::Go => Kind::Native,
        };
        let name = match (frame.symbol.as_deref(), frame.module.as_deref()) {
            (Some(symbol), _) => printable(symbol, true),
            // One function has many addresses; without its name they are all that tells.
            (None, Some(module)) => format!("{}+{:#x}", printable(module, true), frame.offset),
            (None, None) => NAMELESS.to_owned(),
        };
        let of = |text: &Option<String>| printable(text.as_deref().unwrap_or_default(), true);
        Place {
            module: of(&frame.module),
            file: of(&frame.file),
            line: frame.line.unwrap_or(0),
            ..Place::named(name, kind)
        }
    }
}

/// Things that are kept once each and named by their place in a list.
#[derive(Debug)]
pub(crate) struct Interned<T> {
    places: HashMap<T, usize>,
    list: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Interned<T> {
        Interned {
            places: HashMap::new(),
            list: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interned<T> {
    /// Begins with these, in this order.
    pub(crate) fn with(first: impl IntoIterator<Item = T>) -> Interned<T> {
        let mut interned = Interned::default();
        for one in first {
            interned.place(one);
        }
        interned
    }

    /// Its place; at the end of the list if it is new.
    pub(crate) fn place(&mut self, one: T) -> usize {
        if let Some(place) = self.places.get(&one) {
            return *place;
        }
        let place = self.list.len();
        self.places.insert(one.clone(), place);
        self.list.push(one);
        place
    }

    /// All, by place.
    pub(crate) fn list(&self) -> &[T] {
        &self.list
    }

    /// The same, for good.
    pub(crate) fn into_list(self) -> Vec<T> {
        self.list
    }
}

/// A number in a field that has a sign: what does not fit is the most there is.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// When observation began and ended, nanoseconds since the epoch; 0 where the report tells no date.
pub(crate) fn window(report: &Report) -> (Ns, Ns) {
    let began = report.subject.started.parse::<Timestamp>().ok();
    let began = began.and_then(|began| u64::try_from(began.as_nanosecond()).ok());
    let began = began.unwrap_or(0);
    (began, began.saturating_add(report.subject.wall_ns))
}

/// What a wait was for, printable; empty where it has no name.
pub(crate) fn resource(wait: &Wait) -> String {
    printable(&wait.resource.name, true)
}
