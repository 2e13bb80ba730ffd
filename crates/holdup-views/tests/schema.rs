//! The published JSON Schema is that of the code, and what is written is valid by it.

mod samples;

use holdup_views::{json, schema};
use serde_json::{Value, json};
use std::path::Path;

fn written(report: &holdup_model::report::Report) -> Value {
    let mut out = Vec::new();
    json::write(report, &mut out).expect("a vector takes everything");
    serde_json::from_slice(&out).expect("what is written is JSON")
}

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&schema::text()).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is a schema")
}

#[test]
fn the_published_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(schema::PATH);
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == schema::text(),
        "{} is not what the report's types say now: run `cargo xtask gen`",
        schema::PATH
    );
}

#[test]
fn every_sample_is_valid() {
    let validator = validator();
    for (name, report) in samples::all() {
        let value = written(&report);
        let problems: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert!(problems.is_empty(), "{name}: {problems:?}");
    }
}

#[test]
fn what_breaks_the_contract_is_not_valid() {
    let validator = validator();
    let good = written(&samples::sshd().report());
    let breakages: [(&str, Value); 6] = [
        ("/findings/0/severity", json!("bad")),
        ("/findings", Value::Null),
        ("/coverage/backend", json!("magic")),
        ("/waits/0/ns", json!(-1)),
        ("/waits/0/resource/kind", json!("Cgroup")),
        ("/subject/started", json!(12)),
    ];
    for (pointer, value) in breakages {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect("the sample has it") = value;
        assert!(!validator.is_valid(&bad), "{pointer} may be anything");
    }
    let mut bad = good;
    bad.as_object_mut().expect("a report").remove("ruled_out");
    assert!(!validator.is_valid(&bad), "a list may be missing");
}

#[test]
fn a_report_reads_back_as_what_was_written() {
    for (name, report) in samples::all() {
        let back = serde_json::from_value(written(&report)).expect(name);
        assert_eq!(report, back, "{name}");
    }
}
