//! Versions of CPython, and where each keeps what is read.
//!
//! CPython 3.13 and later describe themselves: `_PyRuntime` begins with a table of offsets. For 3.8 to 3.12 the offsets are
//! constants here, one table per minor version: patch releases keep them. Debug builds (`Py_DEBUG`, `Py_TRACE_REFS`) have
//! other offsets and fail the check of plausibility.

use super::objects_layout::{
    OBJECTS_3_8, OBJECTS_3_9, OBJECTS_3_10, OBJECTS_3_11, OBJECTS_3_12, OBJECTS_3_13, Objects,
};
use crate::memory::{Memory, Source};
pub use crate::version::Version;
use serde::{Deserialize, Serialize};

/// The exported symbols that are wanted: the runtime's state, and the version as a number (3.11 and later).
pub const SYMBOLS: [&str; 2] = ["_PyRuntime", "Py_Version"];

/// The first eight bytes of a table of offsets.
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");

/// An offset beyond this belongs to no structure of CPython. The state of an interpreter has some 400 KB.
const OFFSET_MAX: u64 = 4 << 20;

/// Largest structure whose offsets are read from an object on the heap: code objects and frames.
const SMALL_MAX: u64 = 4096;

/// Why frames of an interpreter are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// Neither the file's name nor its symbols say which version it is.
    #[error("the version of CPython is not known")]
    NoVersion,
    /// holdup has no table for it.
    #[error("CPython {0} is not supported")]
    Unsupported(Version),
    /// Its frames refer to copies of the bytecode that each thread has.
    #[error("the free-threaded build of CPython {0} is not supported")]
    FreeThreaded(Version),
    /// A debug build, another implementation, or memory that is not what it seems to be.
    #[error("its structures are not those of CPython {0}")]
    Implausible(Version),
    /// It starts or ends; later it may be read.
    #[error("CPython {0} has no threads yet")]
    NoThreads(Version),
    /// Its memory cannot be read.
    #[error("its memory cannot be read")]
    Memory,
}

/// The first version that is read.
pub const VERSION_MIN: Version = Version { major: 3, minor: 8 };

/// By the base name of the interpreter's file: `python3.11`, `libpython3.8.so.1.0`.
#[must_use]
pub fn version_of_file(name: &str) -> Option<Version> {
    let rest = name
        .strip_prefix("lib")
        .unwrap_or(name)
        .strip_prefix("python3.")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let minor = rest.get(..digits)?.parse().ok()?;
    Some(Version { major: 3, minor })
}

/// By `PY_VERSION_HEX`.
fn version_of_number(number: u64) -> Option<Version> {
    let number = u32::try_from(number).ok()?;
    let [major, minor, ..] = number.to_be_bytes();
    (major == 3).then_some(Version { major, minor })
}

/// How the lines of a code object are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// `co_lnotab`, to 3.9.
    Notab,
    /// `co_linetable` of 3.10.
    Ranges,
    /// The location table, from 3.11.
    Locations,
}

/// Where a frame keeps its place in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An index: its offset, and the bytes per unit.
    Index(u64, u64),
    /// A pointer into the bytecode, which begins at this offset of the code object.
    Pointer(u64, u64),
}

/// How the outermost frame of a call of the evaluation function is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Each frame is one.
    Each,
    /// A byte of the frame says so.
    Flag(u64),
    /// A frame without code follows it, whose owner (at this offset) is at least this value.
    Before(u64, u8),
}

/// Where the global lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GlobalLock {
    /// Whether each interpreter points to its own, at the offset; it is part of the runtime's state otherwise.
    pub(super) of_interpreter: bool,
    pub(super) offset: u64,
    /// Of it: whether it is taken, four bytes, and the thread that has or had it.
    pub(super) locked: u64,
    pub(super) holder: u64,
}

/// What is read of code objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeFields {
    pub(super) file: u64,
    pub(super) name: u64,
    pub(super) qualified: Option<u64>,
    pub(super) first_line: u64,
    pub(super) table: u64,
    pub(super) lines: Lines,
}

/// What is read of texts and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextFields {
    pub(super) length: u64,
    pub(super) state: u64,
    /// Where in the state the kind begins, in bits.
    pub(super) kind: u32,
    /// Where the characters begin, of ASCII text and of other.
    pub(super) ascii: u64,
    pub(super) other: u64,
    pub(super) bytes_size: u64,
    pub(super) bytes: u64,
}

/// Where a version keeps what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: Version,
    /// Of the runtime's state: the first interpreter. Of an interpreter: the next, and the first thread.
    pub(super) interpreters: u64,
    pub(super) next_interpreter: u64,
    pub(super) threads: u64,
    /// Of a thread's state.
    pub(super) next_thread: u64,
    pub(super) interpreter: u64,
    pub(super) pthread: u64,
    /// The kernel's thread id, from 3.11.
    pub(super) tid: Option<u64>,
    /// The innermost frame; where a second offset is, it lies there in what the first points to.
    pub(super) frame: u64,
    pub(super) frame_within: Option<u64>,
    pub(super) global_lock: GlobalLock,
    /// Of a frame.
    pub(super) previous: u64,
    pub(super) executable: u64,
    /// Bits of a reference to code that are no part of the address.
    pub(super) tag: u64,
    pub(super) place: Place,
    pub(super) entry: Entry,
    /// Of an object its type, of a type its name.
    pub(super) kind: u64,
    pub(super) kind_name: u64,
    pub(super) code: CodeFields,
    pub(super) text: TextFields,
    /// Objects on the heap; `None` where they are not read.
    pub(super) objects: Option<Objects>,
}

/// Texts of 3.8 to 3.11.
const OLD_TEXT: TextFields = TextFields {
    length: 16,
    state: 32,
    kind: 2,
    ascii: 48,
    other: 72,
    bytes_size: 16,
    bytes: 32,
};

/// Code objects of 3.8 and 3.9.
const OLD_CODE: CodeFields = CodeFields {
    file: 104,
    name: 112,
    qualified: None,
    first_line: 40,
    table: 120,
    lines: Lines::Notab,
};

const V3_8: Layout = Layout {
    version: Version { major: 3, minor: 8 },
    interpreters: 32,
    next_interpreter: 0,
    threads: 8,
    next_thread: 8,
    interpreter: 16,
    pthread: 176,
    tid: None,
    frame: 24,
    frame_within: None,
    global_lock: GlobalLock {
        of_interpreter: false,
        offset: 1152,
        locked: 16,
        holder: 8,
    },
    previous: 24,
    executable: 32,
    tag: 0,
    place: Place::Index(104, 1),
    entry: Entry::Each,
    kind: 8,
    kind_name: 24,
    code: OLD_CODE,
    text: OLD_TEXT,
    objects: Some(OBJECTS_3_8),
};

const V3_9: Layout = Layout {
    version: Version { major: 3, minor: 9 },
    global_lock: GlobalLock {
        offset: 352,
        ..V3_8.global_lock
    },
    objects: Some(OBJECTS_3_9),
    ..V3_8
};

const V3_10: Layout = Layout {
    version: Version { major: 3, minor: 10 },
    place: Place::Index(96, 2),
    code: CodeFields {
        lines: Lines::Ranges,
        ..OLD_CODE
    },
    objects: Some(OBJECTS_3_10),
    ..V3_9
};

const V3_11: Layout = Layout {
    version: Version { major: 3, minor: 11 },
    interpreters: 40,
    threads: 16,
    pthread: 152,
    tid: Some(160),
    frame: 56,
    frame_within: Some(8),
    global_lock: GlobalLock {
        offset: 360,
        ..V3_8.global_lock
    },
    previous: 48,
    executable: 32,
    place: Place::Pointer(56, 184),
    entry: Entry::Flag(68),
    code: CodeFields {
        file: 112,
        name: 120,
        qualified: Some(128),
        first_line: 72,
        table: 136,
        lines: Lines::Locations,
    },
    objects: Some(OBJECTS_3_11),
    ..V3_8
};

const V3_12: Layout = Layout {
    version: Version { major: 3, minor: 12 },
    threads: 72,
    pthread: 136,
    tid: Some(144),
    frame_within: Some(0),
    global_lock: GlobalLock {
        of_interpreter: true,
        offset: 384,
        ..V3_8.global_lock
    },
    previous: 8,
    executable: 0,
    place: Place::Pointer(56, 192),
    entry: Entry::Before(70, 3),
    code: CodeFields {
        first_line: 68,
        ..V3_11.code
    },
    text: TextFields {
        ascii: 40,
        other: 56,
        ..OLD_TEXT
    },
    objects: Some(OBJECTS_3_12),
    ..V3_11
};

const TABLES: [Layout; 5] = [V3_8, V3_9, V3_10, V3_11, V3_12];

/// Words of a table of offsets that are read; all that is wanted is within.
const WORDS: usize = 88;

/// Where in a table of offsets, in words, a version has what is wanted.
#[derive(Debug, Clone, Copy)]
struct Table {
    thread: usize,
    frame: usize,
    code: usize,
    object: usize,
    kind: usize,
    bytes: usize,
    text: usize,
    /// Of an interpreter: its pointer to its global lock.
    global_lock: usize,
}

const TABLE_3_13: Table = Table {
    thread: 19,
    frame: 28,
    code: 34,
    object: 44,
    kind: 46,
    bytes: 64,
    text: 67,
    global_lock: 14,
};

const TABLE_3_14: Table = Table {
    thread: 22,
    frame: 31,
    code: 39,
    object: 50,
    kind: 52,
    bytes: 74,
    text: 77,
    global_lock: 15,
};

impl Layout {
    /// Of the interpreter whose runtime state is at `runtime`. `number`: where its version is as a number, if that is
    /// anywhere; `named`: what its file's name says.
    pub(super) fn find<S: Source>(
        memory: &mut Memory<S>,
        runtime: u64,
        number: Option<u64>,
        named: Option<Version>,
    ) -> Result<Layout, Refused> {
        if memory.word(runtime).ok_or(Refused::Memory)? == COOKIE {
            return Layout::described(memory, runtime);
        }
        let number = number.and_then(|at| memory.word(at)).and_then(version_of_number);
        let version = number.or(named).ok_or(Refused::NoVersion)?;
        let mut tables = TABLES.into_iter();
        let table = tables.find(|table| table.version == version);
        table.ok_or(Refused::Unsupported(version))
    }

    /// By the table of offsets at the beginning of the runtime's state.
    fn described<S: Source>(memory: &mut Memory<S>, runtime: u64) -> Result<Layout, Refused> {
        let mut bytes = [0; WORDS * 8];
        memory.read(runtime, &mut bytes).ok_or(Refused::Memory)?;
        let words = bytes.as_chunks::<8>().0;
        let word = |at: usize| words.get(at).map_or(u64::MAX, |word| u64::from_le_bytes(*word));
        let version = version_of_number(word(1)).ok_or(Refused::NoVersion)?;
        let table = match version.minor {
            13 => TABLE_3_13,
            14 => TABLE_3_14,
            _ => return Err(Refused::Unsupported(version)),
        };
        if word(2) != 0 && version.minor > 13 {
            return Err(Refused::FreeThreaded(version));
        }
        let Table {
            thread,
            frame,
            code,
            object,
            kind,
            bytes,
            text,
            global_lock,
        } = table;
        let ascii = word(text + 3);
        let layout = Layout {
            version,
            interpreters: word(5),
            next_interpreter: word(8),
            threads: word(9),
            next_thread: word(thread + 2),
            interpreter: word(thread + 3),
            frame: word(thread + 4),
            frame_within: None,
            global_lock: GlobalLock {
                of_interpreter: true,
                offset: word(global_lock),
                // Behind the pointer are the offsets of one that is part of the interpreter's state: of it, and of what is within.
                locked: word(global_lock + 3).wrapping_sub(word(global_lock + 1)),
                holder: word(global_lock + 4).wrapping_sub(word(global_lock + 1)),
            },
            pthread: word(thread + 5),
            tid: Some(word(thread + 6)),
            previous: word(frame + 1),
            executable: word(frame + 2),
            tag: if version.minor > 13 { 3 } else { 0 },
            place: Place::Pointer(word(frame + 3), word(code + 9)),
            entry: Entry::Before(word(frame + 5), 3),
            kind: word(object + 1),
            kind_name: word(kind + 1),
            code: CodeFields {
                file: word(code + 1),
                name: word(code + 2),
                qualified: Some(word(code + 3)),
                table: word(code + 4),
                first_line: word(code + 5),
                lines: Lines::Locations,
            },
            text: TextFields {
                state: word(text + 1),
                length: word(text + 2),
                kind: if version.minor > 13 { 16 } else { 2 },
                ascii,
                // A length and a pointer are between the two.
                other: ascii.saturating_add(16),
                bytes_size: word(bytes + 1),
                bytes: word(bytes + 2),
            },
            // Locks and tasks of 3.14 and of free-threaded builds are others.
            objects: (version.minor == 13 && word(2) == 0).then_some(OBJECTS_3_13),
        };
        layout.check()
    }

    /// Whether offsets that were read lie within structures of a likely size.
    fn check(self) -> Result<Layout, Refused> {
        let large = [
            self.interpreters,
            self.next_interpreter,
            self.threads,
            self.global_lock.offset,
        ];
        let (CodeFields { qualified, .. }, text) = (self.code, self.text);
        let (place, bytecode) = match self.place {
            Place::Index(place, _) => (place, 0),
            Place::Pointer(place, bytecode) => (place, bytecode),
        };
        let entry = match self.entry {
            Entry::Each => 0,
            Entry::Flag(at) | Entry::Before(at, _) => at,
        };
        let small = [
            self.next_thread,
            self.interpreter,
            self.pthread,
            self.tid.unwrap_or(0),
            self.frame,
            self.global_lock.locked,
            self.global_lock.holder,
            self.previous,
            self.executable,
            place,
            bytecode,
            entry,
            self.kind,
            self.kind_name,
            self.code.file,
            self.code.name,
            qualified.unwrap_or(0),
            self.code.table,
            self.code.first_line,
            text.state,
            text.length,
            text.other,
            text.bytes_size,
            text.bytes,
        ];
        let fits =
            large.iter().all(|offset| *offset < OFFSET_MAX) && small.iter().all(|offset| *offset < SMALL_MAX);
        fits.then_some(self).ok_or(Refused::Implausible(self.version))
    }
}

#[cfg(test)]
mod tests {
    use super::{Version, version_of_file};

    #[test]
    fn a_file_name_gives_the_version() {
        let version = |minor| Some(Version { major: 3, minor });
        for (name, expected) in [
            ("python3.11", version(11)),
            ("libpython3.8.so.1.0", version(8)),
            ("libpython3.13t.so.1.0", version(13)),
            ("python3.9-dbg", version(9)),
            ("python3", None),
            ("python3.", None),
            ("python2.7", None),
            ("python3.999", None),
            ("uwsgi", None),
        ] {
            assert_eq!(version_of_file(name), expected, "{name}");
        }
    }
}
