//! Traces a run with BPF.
//!
//! In: a process to watch. Out: [`RawEvent`]s, decoded but not yet named: addresses where evidence has
//! function names, stack bytes where it has stacks. The only crate that needs clang to build and privilege
//! to run. Probe ([`capability`]), load ([`Loaded`]), attach ([`Tracer`]), read ([`Tracer::drain`]) and decode ([`decode`],
//! pure) are apart; the wire format is `bpf/wire.h`, from which both sides take it.

mod adopt;
mod allowance;
pub mod calls;
pub mod capability;
mod datagrams;
pub mod decode;
mod entry;
mod extract;
mod functions;
mod later;
mod loaded;
pub mod mappings;
mod older;
mod optional;
mod spent;
mod thinning;
mod tracer;
mod untold;
mod upstreams;

#[allow(
    missing_docs,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    unused_qualifications,
    unreachable_pub,
    reason = "generated"
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/trace.skel.rs"));
}

pub use adopt::{LOOKED_WORDS, Looked, POLLED_LOOKED};
pub use capability::{Capability, probe};
pub use decode::{Asleep, RawEvent, RawMemory, Registers};
pub use functions::KernelFunctions;
pub use loaded::{Loaded, TraceError};
pub use mappings::{Change, Mapped, Mapping};
pub use spent::{Runs, count_runs};
pub use tracer::{DEFAULT_BUFFER, LARGEST_BUFFER, Options, Pace, Report, SMALLEST_BUFFER, Tracer};
