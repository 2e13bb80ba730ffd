//! User and kernel stacks as names.
//!
//! In come the registers and stack bytes of a thread, copied by the collector, and the executable mappings
//! of its process; out come frames. Stock binaries have no frame pointers, so callers are found by the call
//! frame information that every binary carries for its exceptions (`.eh_frame`). A stack is unwound at once,
//! because its bytes do not last, and kept as (module, address) pairs; names are looked up at the end, when
//! nothing is being measured any more.
//!
//! Everything that is read here, ELF files above all, may have been made by the observed program to do harm:
//! sizes, counts and loops are bounded, and a file that makes no sense costs names, never the run.

mod arch;
mod bounds;
mod budget;
mod debug_copy;
mod debug_file;
mod demangle;
mod elf;
mod files;
mod futures;
mod go;
#[cfg(test)]
mod hostile;
mod interpreted;
mod kernel;
mod maps;
mod modules;
mod mounts;
mod namer;
mod open;
mod opener;
mod perf_map;
mod reader;
mod runtime;
mod stacks;
mod symbolise;
mod symbols;
mod unread;
mod unwind;

pub use bounds::Bounds;
pub use futures::{FoundFutures, Futures};
pub use interpreted::{Found, FoundGo, Interpreted};
pub use kernel::{KernelSymbols, kernel_function};
pub use maps::Mapping;
pub use runtime::{Asked, Mapped, Runtime, Walked};
pub use stacks::{Beside, ProcessKey, RawStack, Refused, UserStacks};
pub use symbolise::Named;
pub use unread::{Unread, Why};
pub use unwind::{Registers, StackBytes};
