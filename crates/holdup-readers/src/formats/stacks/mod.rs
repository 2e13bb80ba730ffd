//! What the threads of programs without a JVM do: stacks by debuggers, of Go's runtime, of Python's frames.
//!
//! In: text, several dumps one after another. Out: a [`Snapshot`](holdup_evidence::observed::Snapshot) for each.

mod dump;
pub(super) mod goroutines;
pub(super) mod native;
pub(super) mod python;
#[cfg(test)]
mod tests;
