//! From attributed waits to what is wrong.
//!
//! In: [`Attributed`](holdup_model::attributed::Attributed), the machine's facts, and artefacts. Out:
//! [`Finding`](holdup_model::finding::Finding)s, what was ruled out and what could not be determined ([`rules`]), how a machine came
//! up ([`boot`]), how it does ([`host`]) and where its random numbers come from ([`randomness`]). Nothing here does I/O or reads
//! a clock.

pub mod account;
pub mod boot;
pub mod host;
mod machine;
pub mod randomness;
pub mod rules;
