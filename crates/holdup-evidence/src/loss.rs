//! What was dropped, and what could not be seen at all. Both reach the report.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// Why records were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LossClass {
    /// A wait's record found the ring buffer full; its thread's time is known, its cause is not.
    WaitRecord,
    /// A thread's birth, exec or end record found the ring buffer full.
    ThreadRecord,
    /// A description of an object found the ring buffer full.
    ObjectRecord,
    /// A stack sample was not taken or not delivered; times stay exact, askers get coarser.
    StackSample,
    /// A CPU sample was not delivered; the split of CPU time gets coarser.
    CpuSample,
    /// A thread could not be followed (no memory for its state).
    Thread,
    /// A module mapping record was dropped; stacks through it stay unnamed.
    Mapping,
    /// The kernel showed a waking to no program; when it was, the scheduler told, but not who woke.
    Waking,
    /// The kernel showed neither a thread's waking nor how it got its CPU: of the time before it is not known what it was for.
    Switch,
    /// A request's record found the ring buffer full.
    Request,
    /// The record of a connection that was made or closed, or of its first bytes, found the ring buffer full.
    Connection,
}

impl LossClass {
    /// The words of the report.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            LossClass::WaitRecord => "waits whose record was dropped",
            LossClass::ThreadRecord => "thread start, exec or exit records dropped",
            LossClass::ObjectRecord => "descriptions of files or sockets dropped",
            LossClass::StackSample => "stack samples dropped",
            LossClass::CpuSample => "CPU samples dropped",
            LossClass::Thread => "threads that could not be followed",
            LossClass::Mapping => "mappings of libraries dropped",
            LossClass::Waking => "wakeups not reported by the kernel",
            LossClass::Switch => "context switches not reported by the kernel",
            LossClass::Request => "requests whose record was dropped",
            LossClass::Connection => "connections of which a record was dropped",
        }
    }
}

/// A number of dropped records of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// What was dropped.
    pub class: LossClass,
    /// How many.
    pub count: u64,
    /// Thread time they stood for; 0 where the class has none or it is already counted elsewhere.
    pub ns: Ns,
}

/// Something this run could not observe at all. "Not measured", never zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// What could not be seen, in plain words.
    pub what: String,
    /// Why not.
    pub why: String,
    /// What would make it visible.
    pub fix: String,
}
