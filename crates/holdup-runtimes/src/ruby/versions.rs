//! Versions of Ruby, and where each keeps what is read.
//!
//! Ruby (the reference implementation, CRuby) does not describe itself, so the offsets are constants here, one table per minor
//! version. Patch releases of a version have kept them so far; each structure is checked as it is read. Builds with
//! `RUBY_DEBUG` or without a feature that changes a structure have other offsets, and fail the check.

use crate::memory::{Memory, Source};
pub use crate::version::Version;
use serde::{Deserialize, Serialize};

/// Characters of a version: `3.1.2`.
const VERSION_MAX: usize = 16;

/// Why frames of an interpreter are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// What should be its version is none.
    #[error("the version of Ruby is not known")]
    NoVersion,
    /// holdup has no table for it.
    #[error("Ruby {0} is not supported")]
    Unsupported(Version),
    /// It exports nothing that leads to its state.
    #[error("Ruby {0} does not show where its threads are")]
    NoState(Version),
    /// Another build, another implementation, or memory that is not what it seems to be.
    #[error("its structures are not those of Ruby {0}")]
    Implausible(Version),
    /// It starts or ends; later it may be read.
    #[error("Ruby {0} has no threads yet")]
    NoThreads(Version),
    /// Its memory cannot be read.
    #[error("its memory cannot be read")]
    Memory,
}

/// The text that Ruby exports as `ruby_version`.
pub(super) fn read_version<S: Source>(memory: &mut Memory<S>, at: u64) -> Result<Version, Refused> {
    memory.byte(at).ok_or(Refused::Memory)?;
    let text = memory.c_text(at, VERSION_MAX).ok_or(Refused::NoVersion)?;
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => Ok(Version { major, minor }),
        _ => Err(Refused::NoVersion),
    }
}

/// How an interpreter lists its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// One list, at this offset of the interpreter.
    List(u64),
    /// A list for each ractor. Offsets: the list of ractors in the interpreter, the link to the next in a ractor, and the list of its
    /// threads.
    Ractors(u64, u64, u64),
}

/// Where a thread keeps what the C library and the kernel call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    /// In the thread: the C library's handle.
    Pthread(u64),
    /// In the thread: the handle, and the kernel's id.
    Both(u64, u64),
    /// Behind a pointer: the handle, and the kernel's id.
    Behind(u64, u64, u64),
}

/// How a short text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Embedded {
    /// The length is in the flags.
    Flags,
    /// The length has a word of its own.
    Word,
}

/// Where a method's code keeps its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    /// The entries, how many there are, and the index from a place in the code to an entry. Offsets.
    pub(super) entries: u64,
    pub(super) count: u64,
    pub(super) index: u64,
    /// Bytes of an entry, which begins with the line.
    pub(super) entry: u64,
    /// Whether the line of the definition is a number object.
    pub(super) first_is_object: bool,
}

/// A version's offsets. The first words of execution contexts, control frames and code are those of all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: Version,
    /// In the interpreter: its first thread.
    pub(super) main_thread: u64,
    pub(super) threads: Threads,
    /// In a thread: its interpreter, and what it executes.
    pub(super) thread_interpreter: u64,
    pub(super) thread_context: u64,
    pub(super) identity: Identity,
    /// In a thread: the `Mutex` that it waits for. The first of those that it has is behind that.
    pub(super) locking: u64,
    /// In a ractor, or in an interpreter without them: the thread that has the lock that one thread has while it runs.
    pub(super) running: u64,
    /// There: the list of those that wait for it.
    pub(super) queue: u64,
    /// In an execution context: its thread.
    pub(super) context_thread: u64,
    /// Bytes of a control frame.
    pub(super) frame: u64,
    pub(super) lines: Lines,
    /// In the body of code: the code around it, where code that is evaluated or handles an exception is named as that is.
    pub(super) around: Option<u64>,
    pub(super) text: Embedded,
    /// The bits of an array's flags that have the length of a short one.
    pub(super) array_length: u64,
    /// The last name that is an operator: later ones have four bits of their kind.
    pub(super) last_operator: u64,
}

const fn lines(from: u64, entry: u64, first_is_object: bool) -> Lines {
    Lines {
        entries: from,
        count: from + 16,
        index: from + 24,
        entry,
        first_is_object,
    }
}

const fn version(major: u8, minor: u8) -> Version {
    Version { major, minor }
}

/// Two bits of an array's flags, and seven.
const EMBEDDED_MASK_2_BITS: u64 = 0x3;
const EMBEDDED_MASK_7_BITS: u64 = 0x7f;

const LAYOUTS: [Layout; 4] = [
    Layout {
        version: version(2, 7),
        main_thread: 192,
        threads: Threads::List(312),
        thread_interpreter: 24,
        thread_context: 32,
        identity: Identity::Pthread(72),
        locking: 248,
        running: 8,
        queue: 56,
        context_thread: 56,
        frame: 56,
        lines: lines(120, 8, true),
        around: None,
        text: Embedded::Flags,
        array_length: EMBEDDED_MASK_2_BITS,
        last_operator: 168,
    },
    Layout {
        version: version(3, 1),
        main_thread: 40,
        threads: Threads::Ractors(8, 568, 304),
        thread_interpreter: 32,
        thread_context: 40,
        identity: Identity::Both(80, 88),
        locking: 264,
        running: 336,
        queue: 384,
        context_thread: 48,
        frame: 64,
        lines: lines(120, 12, true),
        around: None,
        text: Embedded::Flags,
        array_length: EMBEDDED_MASK_2_BITS,
        last_operator: 169,
    },
    Layout {
        version: version(3, 3),
        main_thread: 40,
        threads: Threads::Ractors(8, 432, 256),
        thread_interpreter: 32,
        thread_context: 48,
        identity: Identity::Behind(40, 16, 24),
        locking: 344,
        running: 328,
        queue: 344,
        context_thread: 48,
        frame: 56,
        lines: lines(112, 12, false),
        around: None,
        text: Embedded::Word,
        array_length: EMBEDDED_MASK_7_BITS,
        last_operator: 169,
    },
    Layout {
        version: version(3, 4),
        main_thread: 40,
        threads: Threads::Ractors(8, 432, 256),
        thread_interpreter: 32,
        thread_context: 48,
        identity: Identity::Behind(40, 16, 24),
        locking: 344,
        running: 328,
        queue: 344,
        context_thread: 48,
        frame: 56,
        lines: lines(112, 12, false),
        around: Some(160),
        text: Embedded::Word,
        array_length: EMBEDDED_MASK_7_BITS,
        last_operator: 170,
    },
];

impl Layout {
    /// That of a version.
    pub(super) fn of(version: Version) -> Result<Layout, Refused> {
        let found = LAYOUTS.iter().find(|layout| layout.version == version);
        found.copied().ok_or(Refused::Unsupported(version))
    }
}
