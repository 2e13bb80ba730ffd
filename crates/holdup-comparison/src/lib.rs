//! Attributed runs against each other: what changed, and whether it may be chance.
//!
//! In: reports, runs and profiles of two sides ([`comparison`]), of several counts of workers ([`scaling`]), or of a command with
//! and without a wait ([`experiment`]), and conditions over a report ([`gate`]). Out: the parts of a [`Report`](holdup_model::report::Report) that say so. Nothing here
//! does I/O or reads a clock.

pub mod comparison;
pub mod experiment;
pub mod gate;
pub mod scaling;
