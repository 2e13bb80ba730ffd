//! From evidence to findings: what each wait was for, where the elapsed time went, what is wrong.
//!
//! In: `holdup-evidence`'s events and facts. Out: [`Attributed`], [`Finding`]s and the [`report::Report`]
//! that every view renders. Nothing here does I/O or reads a clock, so that live runs, recordings and tests
//! go the same way.

pub mod account;
pub mod artefacts;
pub mod attributed;
pub mod attribution;
pub mod boot;
pub mod churn;
pub mod classify;
pub mod comparison;
pub mod connections;
pub mod experiment;
pub mod finding;
pub mod handshake;
pub mod host;
pub mod host_figures;
mod java;
pub mod prediction;
pub mod randomness;
pub mod report;
pub mod rules;
pub mod scaling;
pub mod timeline;
mod user_code;

pub use attributed::Attributed;
pub use finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
