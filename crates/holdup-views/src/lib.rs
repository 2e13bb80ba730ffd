//! What a person or a program gets to see of a run.
//!
//! In: what attribution and the rules made of the evidence. Out: one [`Report`](holdup_analysis::report::Report)
//! ([`report::build`]) and its renderings: [`terminal`] text, [`json`] and its [`schema`]; and the pages of
//! `holdup explain` ([`page`]). Nothing here does I/O but to write to the writer it is given, and nothing reads
//! a clock. Every view renders the same report, so that no two can say different things.
//!
//! All names come from observed programs and are hostile: [`text`] is the one way from a string to the
//! terminal.

pub mod json;
pub mod page;

pub mod report;
pub mod schema;
mod sheet;
pub mod style;
pub mod terminal;
pub mod text;
pub mod units;

pub use schema::text as schema_text;
pub use style::Style;
