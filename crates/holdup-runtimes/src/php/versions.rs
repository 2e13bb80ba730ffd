//! Which PHP this is, and where its structures have what is read.
//!
//! In: memory, and where the registry of modules is. Out: the offsets of that version. The first module in the registry is always
//! PHP's own: it says for which interface it was built, which is one of each minor version, and how.

use super::Place;
use crate::memory::{Memory, Source};
pub use crate::version::Version;
use serde::{Deserialize, Serialize};

/// Where PHP keeps its modules, and what runs. A thread-safe build has only the first.
pub const SYMBOLS: [&str; 2] = ["module_registry", "executor_globals"];

/// In a hash table: where its entries begin, and how many there are. An entry begins with its value.
const ENTRIES: u64 = 16;
const ENTRIES_USED: u64 = 24;

/// In a module: the number of the interface that it was built for, whether for debugging, whether for threads, and its version's text.
const INTERFACE: u64 = 4;
const DEBUG: u64 = 8;
const THREADS: u64 = 9;
const VERSION: u64 = 88;

/// The longest text of a version: `8.2.36-1+ubuntu22.04.1+deb.sury.org+1`.
const VERSION_MAX: usize = 128;

/// Engines have numbers of their own: that of PHP 8 is 4.
const ENGINE_LAST: u8 = 4;

/// Why frames of PHP are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// It starts: it has no modules so far.
    #[error("PHP has no modules yet")]
    NoModules,
    /// Its own module does not say which version it is, or not yet.
    #[error("the version of PHP is not known")]
    NoVersion,
    /// holdup has no table for it.
    #[error("PHP {0} is not supported")]
    Unsupported(Version),
    /// Each thread has what runs in memory of its own.
    #[error("the thread-safe build of PHP {0} is not supported")]
    ThreadSafe(Version),
    /// Structures of such builds are others.
    #[error("the debug build of PHP {0} is not supported")]
    DebugBuild(Version),
    /// It is built in a way that is not known, or a symbol is missing.
    #[error("its structures are not those of PHP {0}")]
    Implausible(Version),
    /// Its memory cannot be read.
    #[error("its memory cannot be read")]
    Memory,
}

/// Where structures have what is read, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: Version,
    /// In what runs: the innermost call.
    pub(super) current: u64,
    /// In a function of a script: its file, and its instructions.
    pub(super) file: u64,
    pub(super) instructions: u64,
    /// In a generator: its own call, the one that it delegates to, and the stand-in for its callers.
    pub(super) own_call: u64,
    pub(super) parent: u64,
    pub(super) stand_in: u64,
}

/// One version's interface number, and its offsets.
const fn table(major: u8, minor: u8, interface: u32, offsets: [u64; 6]) -> (u32, Layout) {
    let [current, file, instructions, own_call, parent, stand_in] = offsets;
    let layout = Layout {
        version: Version { major, minor },
        current,
        file,
        instructions,
        own_call,
        parent,
        stand_in,
    };
    (interface, layout)
}

/// Interfaces are numbered by the day. Patch releases keep the structures: modules are built for the interface, and look into them.
const LAYOUTS: [(u32, Layout); 6] = [
    table(7, 4, 20_190_902, [488, 136, 64, 64, 160, 200]),
    table(8, 1, 20_210_902, [488, 144, 72, 56, 152, 184]),
    table(8, 2, 20_220_829, [488, 152, 88, 56, 152, 184]),
    table(8, 3, 20_230_831, [488, 144, 80, 56, 152, 184]),
    table(8, 4, 20_240_924, [488, 168, 104, 56, 152, 184]),
    table(8, 5, 20_250_925, [512, 168, 104, 56, 152, 184]),
];

impl Layout {
    /// The offsets of the PHP that has its modules here.
    pub(super) fn find<S: Source>(memory: &mut Memory<S>, place: Place) -> Result<Layout, Refused> {
        let modules = place.modules;
        let used = at(modules, ENTRIES_USED).and_then(|at| memory.int(at));
        if used.ok_or(Refused::Memory)? == 0 {
            return Err(Refused::NoModules);
        }
        let (version, interface, [debug, threads]) = own_module(memory, modules).ok_or(Refused::NoVersion)?;
        let Some((_, layout)) = LAYOUTS.iter().find(|(number, _)| *number == interface) else {
            // Until PHP has started, the text is of its engine.
            let version = version.filter(|version| version.major > ENGINE_LAST);
            return Err(version.map_or(Refused::NoVersion, Refused::Unsupported));
        };
        let version = layout.version;
        match (debug, threads) {
            (0, 0) if place.running.is_some() => Ok(*layout),
            (_, 1) => Err(Refused::ThreadSafe(version)),
            (1, _) => Err(Refused::DebugBuild(version)),
            _ => Err(Refused::Implausible(version)),
        }
    }
}

/// What the first module says: its version, its interface, and whether it was built for debugging and for threads.
fn own_module<S: Source>(memory: &mut Memory<S>, modules: u64) -> Option<(Option<Version>, u32, [u8; 2])> {
    let entries = memory.pointer(at(modules, ENTRIES)?)?;
    let module = memory.pointer(entries)?;
    let interface = memory.int(at(module, INTERFACE)?)?;
    let built = [
        memory.byte(at(module, DEBUG)?)?,
        memory.byte(at(module, THREADS)?)?,
    ];
    let text = memory.pointer(at(module, VERSION)?)?;
    let text = memory.c_text(text, VERSION_MAX)?;
    Some((version(&text), interface, built))
}

/// `8.2.36-1~deb12u1`.
fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some(Version {
        major: number()?,
        minor: number()?,
    })
}

fn at(address: u64, offset: u64) -> Option<u64> {
    address.checked_add(offset)
}
