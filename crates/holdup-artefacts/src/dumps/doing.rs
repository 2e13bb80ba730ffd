//! What a thread of a dump does, whatever it is a dump of.

use super::{dotnet, go, java, native, python, ruby};
use holdup_evidence::Cause;
#[cfg(test)]
use holdup_evidence::observed::State;
use holdup_evidence::observed::{SeenThread, SnapshotKind};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// It runs, or is ready to.
    Runs,
    /// It waits for something that it needs to go on.
    Waits(Cause),
    /// It waits for a free connection of a pool.
    WaitsForPool,
    /// It waits for the result of a task that another thread is to make.
    WaitsForTask,
    /// It waits, and for what the dump does not tell.
    WaitsUnknown,
    /// It has nothing to do.
    Idle,
    /// The runtime's own, or one that has no stack of the program's.
    Unknown,
}

/// What a thread does, by its stack, its state, how it waits for a lock, and nothing else. `frames` are innermost first.
pub(super) fn of(kind: SnapshotKind, thread: &SeenThread, frames: &[&str]) -> Doing {
    match kind {
        SnapshotKind::Jvm => java::of(thread, frames),
        SnapshotKind::Native => native::of(frames),
        SnapshotKind::Go => go::of(thread, frames),
        SnapshotKind::Python => python::of(thread, frames),
        SnapshotKind::Dotnet => dotnet::of(frames),
        SnapshotKind::Ruby => ruby::of(frames),
        // A list of tasks is no dump.
        SnapshotKind::Kernel => Doing::Unknown,
    }
}

/// Whether a frame is the runtime's or its standard library's own, so that somebody else asked.
pub(super) fn of_runtime(kind: SnapshotKind, frame: &str) -> bool {
    match kind {
        SnapshotKind::Jvm => holdup_knowledge::java::of_runtime(frame),
        SnapshotKind::Native => native::of_library(frame),
        SnapshotKind::Go => go::of_library(frame),
        SnapshotKind::Python => python::of_library(frame),
        SnapshotKind::Dotnet => dotnet::of_library(frame),
        SnapshotKind::Ruby => ruby::of_library(frame),
        SnapshotKind::Kernel => false,
    }
}

/// What a thread does of which its state and its frames alone are known.
#[cfg(test)]
pub(super) fn of_state(kind: SnapshotKind, state: State, frames: &[&str]) -> Doing {
    let thread = SeenThread {
        state,
        ..SeenThread::default()
    };
    of(kind, &thread, frames)
}
