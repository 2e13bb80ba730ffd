//! The JSON Schema of the report, published as `schemas/holdup.report-1.schema.json`.
//!
//! In: the report's types. Out: the schema's text. `cargo xtask gen` writes it, a test says when it is due.

use holdup_model::report::Report;
use schemars::generate::SchemaSettings;

/// Where the schema is published, from the repository's root.
pub const PATH: &str = "schemas/holdup.report-1.schema.json";

/// The text of the published file. It describes what is written, so every field of the report is required;
/// more may be there, because fields are only ever added.
#[must_use]
pub fn text() -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Report>();
    schema.insert("title".to_owned(), holdup_model::report::SCHEMA.into());
    let mut schema = schema.to_value();
    // Whether maps keep an order of their own depends on what else is in the build.
    schema.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
