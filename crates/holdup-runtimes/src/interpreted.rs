//! Interpreters whose frames are read from outside while their threads sleep: one of several.
//!
//! In: where a process has an interpreter, and which one. Out: its threads, and the frames of each. What they are read by is each
//! interpreter's own ([`crate::python`], [`crate::ruby`], [`crate::php`], [`crate::perl`], [`crate::bash`], [`crate::node`]).

use crate::memory::Source;
use crate::{bash, node, perl, php, python, ruby};
use holdup_evidence::Frame;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A frame of interpreted code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpreted {
    /// What it is called, and where it stands.
    pub frame: Arc<Frame>,
    /// Whether it is the outermost of those that share one call of the evaluation function.
    pub entry: bool,
}

/// Why a thread's frames are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Unread {
    /// No thread of the interpreter has this id.
    #[error("the interpreter has no such thread")]
    NoThread,
    /// What was read does not hold together: it changed meanwhile, or is not there.
    #[error("its structures changed while they were read")]
    Torn,
}

/// Which kind of lock a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LockKind {
    /// `threading.Lock` of Python: a thread that has it cannot take it again.
    Lock,
    /// `threading.RLock` of Python.
    RLock,
    /// `threading.Semaphore` of Python.
    Semaphore,
    /// `Thread::Mutex` of Ruby; a `Monitor` has one.
    RubyMutex,
    /// The lock that one thread of Ruby has while it runs.
    RubyGlobal,
}

impl LockKind {
    /// As its language calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Lock => "threading.Lock",
            LockKind::RLock => "threading.RLock",
            LockKind::Semaphore => "threading.Semaphore",
            LockKind::RubyMutex => "Thread::Mutex",
            LockKind::RubyGlobal => "the global lock of Ruby",
        }
    }
}

/// A lock that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedLock {
    /// Which kind.
    pub kind: LockKind,
    /// What tells it from others of its kind while it is waited for.
    pub address: u64,
    /// Who has it: a thread id in its own pid namespace.
    pub owner: Option<u32>,
}

/// Who has the global lock of an interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its id in its own pid namespace.
    pub tid: u32,
    /// Frames in which it stayed while it was read, innermost first.
    pub frames: Vec<Interpreted>,
}

/// The frames that both have, counted from the outermost; with the lines of the second. Who has the lock mostly runs, so that a frame counts
/// if it is there twice.
#[must_use]
pub fn common(first: &[Interpreted], mut second: Vec<Interpreted>) -> Vec<Interpreted> {
    let pairs = first.iter().rev().zip(second.iter().rev());
    let same = |(one, other): &(&Interpreted, &Interpreted)| {
        let (one, other) = (&one.frame, &other.frame);
        (&one.symbol, &one.file) == (&other.symbol, &other.file)
    };
    let count = pairs.take_while(same).count();
    second.drain(..second.len() - count);
    second
}

/// Which interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// CPython.
    Python,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Perl.
    Perl,
    /// Bash.
    Bash,
    /// V8 in Node.js. Frames on stacks are walked elsewhere; here it is who waits for what libuv does.
    Node,
}

/// Where an interpreter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "it is copied once for a look")]
pub enum Place {
    /// CPython.
    Python(python::Place),
    /// Ruby.
    Ruby(ruby::Place),
    /// PHP.
    Php(php::Place),
    /// Perl.
    Perl(perl::Place),
    /// Bash.
    Bash(bash::Place),
    /// V8 in Node.js.
    Node(node::Place),
}

/// Why an interpreter's frames are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// CPython.
    #[error(transparent)]
    Python(#[from] python::Refused),
    /// Ruby.
    #[error(transparent)]
    Ruby(#[from] ruby::Refused),
    /// PHP.
    #[error(transparent)]
    Php(#[from] php::Refused),
    /// Perl.
    #[error(transparent)]
    Perl(#[from] perl::Refused),
    /// Bash.
    #[error(transparent)]
    Bash(#[from] bash::Refused),
    /// V8 in Node.js.
    #[error(transparent)]
    Node(#[from] node::Refused),
}

/// For how long an interpreter is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// It is not one that can be read.
    ForEver,
    /// It may be what it seems not to be, once it has started.
    Perhaps,
    /// It starts or ends: so far nothing runs in it.
    UntilItRuns,
}

/// A thread of an interpreter, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// CPython.
    Python(python::Thread),
    /// Ruby.
    Ruby(ruby::Thread),
    /// The thread of this id.
    Named(u32),
}

/// An interpreter whose structures are known.
#[derive(Debug)]
pub enum Interpreter<S> {
    /// CPython.
    Python(Box<python::Interpreter<S>>),
    /// Ruby.
    Ruby(Box<ruby::Interpreter<S>>),
    /// PHP.
    Php(php::Interpreter<S>),
    /// Perl.
    Perl(perl::Interpreter<S>),
    /// Bash.
    Bash(bash::Interpreter<S>),
    /// V8 in Node.js.
    Node(Box<node::Engine<S>>),
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Python,
        Kind::Ruby,
        Kind::Php,
        Kind::Perl,
        Kind::Bash,
        Kind::Node,
    ];

    /// Whether a file may hold it, by its base name.
    #[must_use]
    pub fn may_be_in(self) -> fn(&str) -> bool {
        match self {
            Kind::Python => python::may_be_in,
            Kind::Ruby => ruby::may_be_in,
            Kind::Php => php::may_be_in,
            Kind::Perl => perl::may_be_in,
            Kind::Bash => bash::may_be_in,
            Kind::Node => node::may_be_in,
        }
    }

    /// The symbols by which it is found; without the first it is not there.
    #[must_use]
    pub fn symbols(self) -> &'static [&'static str] {
        match self {
            Kind::Python => &python::SYMBOLS,
            Kind::Ruby => &ruby::SYMBOLS,
            Kind::Php => &php::SYMBOLS,
            Kind::Perl => &perl::SYMBOLS,
            Kind::Bash => &bash::SYMBOLS,
            Kind::Node => &node::SYMBOLS,
        }
    }

    /// Where it is: the addresses of its symbols, in their order, and the base name of the file that has them.
    #[must_use]
    pub fn place(self, addresses: &[Option<u64>], file: &str) -> Option<Place> {
        let first = addresses.first().copied().flatten()?;
        let second = addresses.get(1).copied().flatten();
        Some(match self {
            Kind::Python => Place::Python(python::Place {
                runtime: first,
                number: second,
                named: python::version_of_file(file),
            }),
            Kind::Ruby => Place::Ruby(ruby::Place::of(addresses)?),
            Kind::Php => Place::Php(php::Place {
                modules: first,
                running: second,
            }),
            Kind::Perl => Place::Perl(perl::Place::of(addresses)?),
            Kind::Bash => Place::Bash(bash::Place::of(addresses)?),
            Kind::Node => Place::Node(node::Place::of(addresses)?),
        })
    }

    /// What its frames are frames of.
    #[must_use]
    pub fn language(self) -> &'static str {
        match self {
            Kind::Python => "Python",
            Kind::Ruby => "Ruby",
            Kind::Php => "PHP",
            Kind::Perl => "Perl",
            Kind::Bash => "Bash",
            Kind::Node => "JavaScript",
        }
    }

    /// Which versions are read.
    #[must_use]
    pub fn versions(self) -> &'static str {
        match self {
            Kind::Python => "CPython 3.8 to 3.14",
            Kind::Ruby => "Ruby 2.7, 3.1, 3.3 and 3.4",
            Kind::Php => "PHP 7.4 or 8.1 to 8.5 without threads",
            Kind::Perl => "Perl 5.32 to 5.40 with threads",
            Kind::Bash => "Bash with its exported symbols",
            Kind::Node => "Node.js 18 to 24",
        }
    }
}

/// Whether a function of an interpreter evaluates interpreted code.
#[must_use]
pub fn evaluates(symbol: &str) -> bool {
    let all = [
        python::evaluates,
        ruby::evaluates,
        php::evaluates,
        perl::evaluates,
        bash::evaluates,
    ];
    all.iter().any(|evaluates| evaluates(symbol))
}

impl Place {
    /// An address in the interpreter's memory.
    #[must_use]
    pub fn address(self) -> u64 {
        match self {
            Place::Python(place) => place.runtime,
            Place::Ruby(place) => place.version,
            Place::Php(place) => place.modules,
            Place::Perl(place) => place.interpreter,
            Place::Bash(place) => place.variables,
            Place::Node(place) => place.first,
        }
    }

    /// That its memory cannot be read.
    #[must_use]
    pub fn refused_memory(self) -> Refused {
        match self {
            Place::Python(_) => python::Refused::Memory.into(),
            Place::Ruby(_) => ruby::Refused::Memory.into(),
            Place::Php(_) => php::Refused::Memory.into(),
            Place::Perl(_) => perl::Refused::Memory.into(),
            Place::Bash(_) => bash::Refused::Memory.into(),
            Place::Node(_) => node::Refused::Memory.into(),
        }
    }
}

impl Refused {
    /// Which interpreter it is.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Refused::Python(_) => Kind::Python,
            Refused::Ruby(_) => Kind::Ruby,
            Refused::Php(_) => Kind::Php,
            Refused::Perl(_) => Kind::Perl,
            Refused::Bash(_) => Kind::Bash,
            Refused::Node(_) => Kind::Node,
        }
    }

    /// For how long that is so.
    #[must_use]
    pub fn lasting(self) -> Lasting {
        match self {
            Refused::Python(refused) => match refused {
                python::Refused::NoVersion
                | python::Refused::Unsupported(_)
                | python::Refused::FreeThreaded(_) => Lasting::ForEver,
                python::Refused::NoThreads(_) => Lasting::UntilItRuns,
                python::Refused::Implausible(_) | python::Refused::Memory => Lasting::Perhaps,
            },
            Refused::Ruby(refused) => match refused {
                ruby::Refused::NoVersion | ruby::Refused::Unsupported(_) | ruby::Refused::NoState(_) => {
                    Lasting::ForEver
                }
                ruby::Refused::NoThreads(_) => Lasting::UntilItRuns,
                ruby::Refused::Implausible(_) | ruby::Refused::Memory => Lasting::Perhaps,
            },
            Refused::Php(refused) => match refused {
                php::Refused::Unsupported(_) | php::Refused::ThreadSafe(_) | php::Refused::DebugBuild(_) => {
                    Lasting::ForEver
                }
                php::Refused::NoModules => Lasting::UntilItRuns,
                php::Refused::NoVersion | php::Refused::Implausible(_) | php::Refused::Memory => {
                    Lasting::Perhaps
                }
            },
            Refused::Perl(refused) => match refused {
                perl::Refused::Unsupported(_) | perl::Refused::WithoutThreads(_) => Lasting::ForEver,
                perl::Refused::NoInterpreter => Lasting::UntilItRuns,
                perl::Refused::Memory => Lasting::Perhaps,
            },
            Refused::Bash(refused) => match refused {
                bash::Refused::NoVariables => Lasting::UntilItRuns,
                bash::Refused::Unsupported | bash::Refused::Memory => Lasting::Perhaps,
            },
            Refused::Node(refused) => match refused {
                node::Refused::Memory => Lasting::Perhaps,
                node::Refused::NoVersion | node::Refused::Unsupported(_) | node::Refused::NoConstants(_) => {
                    Lasting::ForEver
                }
            },
        }
    }
}

impl Thread {
    /// Its id in its own pid namespace.
    #[must_use]
    pub fn tid(self) -> u32 {
        match self {
            Thread::Python(thread) => thread.tid,
            Thread::Ruby(thread) => thread.tid,
            Thread::Named(tid) => tid,
        }
    }

    /// Ruby's.
    #[must_use]
    pub fn ruby(self) -> Option<ruby::Thread> {
        match self {
            Thread::Ruby(thread) => Some(thread),
            Thread::Python(_) | Thread::Named(_) => None,
        }
    }

    /// CPython's.
    #[must_use]
    pub fn python(self) -> Option<python::Thread> {
        match self {
            Thread::Python(thread) => Some(thread),
            Thread::Ruby(_) | Thread::Named(_) => None,
        }
    }
}

impl<S: Source> Interpreter<S> {
    /// Finds out how an interpreter's structures are laid out. `main`: the process's first thread, by its id in its own pid namespace.
    ///
    /// # Errors
    /// When it is one that is not read, or its structures are not where they should be.
    pub fn find(source: S, place: Place, main: u32) -> Result<Interpreter<S>, Refused> {
        Ok(match place {
            Place::Python(place) => Interpreter::Python(Box::new(python::Interpreter::find(source, place)?)),
            Place::Ruby(place) => Interpreter::Ruby(Box::new(ruby::Interpreter::find(source, place)?)),
            Place::Php(place) => Interpreter::Php(php::Interpreter::find(source, place, main)?),
            Place::Perl(place) => Interpreter::Perl(perl::Interpreter::find(source, place, main)?),
            Place::Bash(place) => Interpreter::Bash(bash::Interpreter::find(source, place, main)?),
            Place::Node(place) => {
                Interpreter::Node(Box::new(node::Engine::find(source, &place.addresses())?))
            }
        })
    }

    /// The frames of a thread, innermost first. `tid`: its id in its own pid namespace.
    ///
    /// # Errors
    /// When it is none of its threads, or what was read does not hold together.
    pub fn frames(&mut self, tid: u32) -> Result<Vec<Interpreted>, Unread> {
        match self {
            Interpreter::Python(interpreter) => interpreter.frames(tid),
            Interpreter::Ruby(interpreter) => interpreter.frames(tid),
            Interpreter::Php(interpreter) => interpreter.frames(tid),
            Interpreter::Perl(interpreter) => interpreter.frames(tid),
            Interpreter::Bash(interpreter) => interpreter.frames(tid),
            Interpreter::Node(_) => Err(Unread::NoThread),
        }
    }

    /// All its threads, for [`Interpreter::frames_of`]: it finds a thread faster than [`Interpreter::frames`] does.
    ///
    /// # Errors
    /// When what was read does not hold together.
    pub fn threads(&mut self) -> Result<Vec<Thread>, Unread> {
        match self {
            Interpreter::Python(interpreter) => {
                let threads = interpreter.threads()?;
                Ok(threads.into_iter().map(Thread::Python).collect())
            }
            Interpreter::Ruby(interpreter) => {
                let threads = interpreter.threads()?;
                Ok(threads.into_iter().map(Thread::Ruby).collect())
            }
            Interpreter::Php(interpreter) => Ok(vec![Thread::Named(interpreter.main())]),
            Interpreter::Perl(interpreter) => Ok(vec![Thread::Named(interpreter.main())]),
            Interpreter::Bash(interpreter) => Ok(vec![Thread::Named(interpreter.main())]),
            // Each of the process's threads may be one.
            Interpreter::Node(_) => Ok(Vec::new()),
        }
    }

    /// The frames of a thread that was found before, innermost first.
    ///
    /// # Errors
    /// When the thread has ended since, or what was read does not hold together.
    pub fn frames_of(&mut self, thread: Thread) -> Result<Vec<Interpreted>, Unread> {
        match (self, thread) {
            (Interpreter::Python(interpreter), Thread::Python(thread)) => interpreter.frames_of(thread),
            (Interpreter::Ruby(interpreter), Thread::Ruby(thread)) => interpreter.frames_of(thread),
            (Interpreter::Php(interpreter), thread) => interpreter.frames(thread.tid()),
            (Interpreter::Perl(interpreter), thread) => interpreter.frames(thread.tid()),
            (Interpreter::Bash(interpreter), thread) => interpreter.frames(thread.tid()),
            _ => Err(Unread::NoThread),
        }
    }

    /// The lock that a thread waits for, which was found in these frames. `word`: the word of memory on which it sleeps, if it sleeps on one.
    /// `all`: the threads that there are.
    ///
    /// # Errors
    /// When the thread has ended since, or what was read does not hold together.
    pub fn awaited_lock(
        &mut self,
        thread: Thread,
        word: Option<u64>,
        frames: &[Interpreted],
        all: &[Thread],
    ) -> Result<Option<AwaitedLock>, Unread> {
        match (self, thread) {
            (Interpreter::Python(interpreter), Thread::Python(thread)) => {
                let Some(word) = word else { return Ok(None) };
                let all: Vec<_> = all.iter().filter_map(|one| one.python()).collect();
                interpreter.awaited_lock(thread, word, frames, &all)
            }
            (Interpreter::Ruby(interpreter), Thread::Ruby(thread)) => {
                let all: Vec<_> = all.iter().filter_map(|one| one.ruby()).collect();
                interpreter.awaited_lock(thread, &all)
            }
            _ => Ok(None),
        }
    }

    /// The thread that has the global lock; `None` where nobody has it.
    ///
    /// # Errors
    /// When it has no such lock, or only one thread; when the lock changed hands during each attempt, or what was read does not hold
    /// together.
    pub fn holder(&mut self) -> Result<Option<Held>, Unread> {
        match self {
            Interpreter::Python(interpreter) => interpreter.holder(),
            Interpreter::Ruby(interpreter) => interpreter.holder(),
            Interpreter::Php(_) | Interpreter::Perl(_) | Interpreter::Bash(_) | Interpreter::Node(_) => {
                Err(Unread::NoThread)
            }
        }
    }

    /// CPython's, whose tasks are read too.
    #[must_use]
    pub fn python(&mut self) -> Option<&mut python::Interpreter<S>> {
        match self {
            Interpreter::Python(interpreter) => Some(interpreter),
            Interpreter::Ruby(_)
            | Interpreter::Php(_)
            | Interpreter::Perl(_)
            | Interpreter::Bash(_)
            | Interpreter::Node(_) => None,
        }
    }

    /// V8 in Node.js, of which is read who waits for what libuv does.
    #[must_use]
    pub fn node(&mut self) -> Option<&mut node::Engine<S>> {
        match self {
            Interpreter::Node(engine) => Some(engine),
            Interpreter::Python(_)
            | Interpreter::Ruby(_)
            | Interpreter::Php(_)
            | Interpreter::Perl(_)
            | Interpreter::Bash(_) => None,
        }
    }

    /// An address within the function that executes interpreted code, once frames of such code were read; `None` where it is known by
    /// its name alone.
    #[must_use]
    pub fn executor(&self) -> Option<u64> {
        match self {
            Interpreter::Ruby(interpreter) => interpreter.executor(),
            Interpreter::Python(_)
            | Interpreter::Php(_)
            | Interpreter::Perl(_)
            | Interpreter::Bash(_)
            | Interpreter::Node(_) => None,
        }
    }
}

/// Name and line of each frame, and whether C code has called it.
#[cfg(test)]
pub(crate) fn shown(frames: &[Interpreted]) -> Vec<(&str, Option<u32>, bool)> {
    let each = frames.iter();
    each.map(|one| {
        (
            one.frame.symbol.as_deref().unwrap_or_default(),
            one.frame.line,
            one.entry,
        )
    })
    .collect()
}
