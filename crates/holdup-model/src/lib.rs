//! What holdup concludes, as types: what views, recordings and comparisons see.
//!
//! In: `holdup-evidence`'s types of what was observed. Out: [`attributed::Attributed`] (waits with cause, resource, asker and
//! lock holder), [`finding::Finding`]s, and the [`report::Report`] that every view renders. The stages fill these types:
//! `holdup-attribution` and `holdup-artefacts` the first, `holdup-diagnosis` the second, `holdup-report` the third. Nothing here
//! decides, does I/O or reads a clock.

pub mod attributed;
pub mod churn;
pub mod connections;
pub mod finding;
pub mod host_figures;
pub mod prediction;
pub mod randomness;
pub mod report;
pub mod timeline;
pub mod title;
