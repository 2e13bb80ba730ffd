//! A Java virtual machine, seen from outside.
//!
//! HotSpot describes its own structures in tables that debuggers read (`gHotSpotVMStructs` and its like). In come a
//! process that has libjvm mapped and, for a stack, the registers and bytes that the collector copied; out come Java
//! frames, names of threads, and who has what they wait for. That stops nothing, asks nobody and waits for no safepoint: its
//! memory is read from outside. Where that can't be, the machine can be asked ([`attach`]), which stops it for a moment.
//!
//! Everything that is read is hostile until checked: reads and walks are bounded, offsets come only from tables whose
//! types and sizes make sense, names are cut and left to the views to make printable.

mod arch;
pub mod attach;
mod classes;
mod code;
mod compressed;
pub mod figures;
mod flags;
mod frames;
pub mod hsperfdata;
mod itself;
mod layout;
mod machine;
mod machines;
mod memory;
mod methods;
mod monitors;
mod objects;
mod oops;
pub mod perf_memory;
mod pools;
mod safepoints;
mod scopes;
pub mod structures;
mod threads;
mod virtuals;

pub use frames::Walk;
pub use itself::Itself;
pub use machine::{Machine, Structures, Unread};
pub use machines::{Look, Machines};
pub use memory::{Memory, Running, Source};
pub use monitors::{Found, How, Kind, Sighting};
pub use pools::Pool;
pub use safepoints::Operations;
pub use virtuals::{Does, Owner, Virtual, Virtuals};

/// `…/libjvm.so`, whatever its folder: who has that mapped is a Java virtual machine.
#[must_use]
pub fn is_libjvm(path: &str) -> bool {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next() == Some("libjvm.so")
}

#[cfg(test)]
mod tests {
    use super::is_libjvm;

    #[test]
    fn a_machine_is_told_by_its_library() {
        assert!(is_libjvm(
            "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"
        ));
        assert!(is_libjvm("/opt/jre/libjvm.so (deleted)"));
        assert!(!is_libjvm("/usr/lib/libjvm.so.1"));
        assert!(!is_libjvm("/tmp/xlibjvm.so"));
    }
}
