//! Whether a filter on system calls lets holdup try to trace at all: some end whoever makes the calls that it takes.

use holdup_proc::Root;
use holdup_proc::filters::{self, Call};

/// Calls that tracing begins with.
const CALLS: [Call; 2] = [Call::Bpf, Call::PerfEvents];

/// Tracing would end holdup.
#[derive(Debug)]
pub struct Forbidden(Call);

impl std::fmt::Display for Forbidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a filter on system calls (seccomp) kills a process that calls {}",
            self.0.name()
        )
    }
}

impl std::error::Error for Forbidden {}

/// # Errors
/// When holdup would not live to see whether it can trace.
pub fn to_trace() -> Result<(), Forbidden> {
    filters::beware(&Root::system());
    CALLS
        .into_iter()
        .find(|call| filters::kills(*call))
        .map_or(Ok(()), |call| Err(Forbidden(call)))
}
