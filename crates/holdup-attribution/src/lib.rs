//! From the stream of events to where every nanosecond went.
//!
//! In: `holdup-evidence`'s events and facts, in the order in which a source delivers them. Out:
//! [`Attributed`](holdup_model::attributed::Attributed): ledgers, the critical path, and waits with cause, resource, asker and
//! lock holder. [`classify`] says what one wait was for, [`attribution`] adds up. Nothing here knows of rules, does I/O or reads
//! a clock, so that live runs, recordings and tests go the same way.

pub mod attribution;
pub mod classify;
pub mod handshake;
mod prediction;
