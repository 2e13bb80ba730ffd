//! What the threads of programs without a JVM do: stacks by debuggers, of Go's runtime, of Python's, Ruby's and .NET's frames.
//!
//! In: text, several dumps one after another. Out: a [`Snapshot`](holdup_evidence::observed::Snapshot) for each.

pub(super) mod crash_bt;
pub(super) mod dotnet;
mod dump;
pub(super) mod erlang_crash;
pub(super) mod erlang_process;
mod go_objects;
pub(super) mod goroutines;
pub(super) mod hot_threads;
pub(super) mod mac_hang;
pub(super) mod mac_sample;
pub(super) mod native;
pub(super) mod python;
pub(super) mod ruby;
#[cfg(test)]
mod tests;
