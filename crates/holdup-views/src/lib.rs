//! What a person or a program gets to see of a run.
//!
//! In: a [`Report`](holdup_model::report::Report), as `holdup-report` builds it. Out: its renderings: [`terminal`] text, [`json`] and its [`schema`], an [`html`] page, and the formats of
//! other people's tools ([`export`]); and the pages of `holdup explain` ([`page`]). Nothing here does I/O but to write to the writer it is given, and nothing reads
//! a clock. Every view renders the same report, so that no two can say different things.
//!
//! All names come from observed programs and are hostile: [`text`] is the one way from a string to the
//! terminal.

mod budget;
mod collapsed;
pub mod export;
mod figures;
mod firefox;
mod github;
mod headline;
pub mod html;
pub mod json;
mod junit;
pub mod live;
mod markdown;
mod otlp;
pub mod page;
mod perfetto;
mod plot;
mod pprof;
mod prediction;
mod prometheus;
mod samples;
pub mod schema;
mod sections;
mod sheet;
mod spans;
pub mod style;
pub mod terminal;
pub mod text;
mod unanswered;

pub use export::Format;
pub use headline::{sentence, undecided};
pub use holdup_evidence::units;
pub use live::{Look, LookRow, LookStep, machine_words};
pub use schema::text as schema_text;
pub use style::Style;
