//! OTLP, read by OpenTelemetry's own types.

use crate::{samples, text, total};
use holdup_views::Format;
use opentelemetry_proto::tonic::metrics::v1::{MetricsData, metric, number_data_point};
use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use serde_json::Value;

/// With the fields that those types want of profiles, and that protobuf's JSON leaves out because they are empty.
fn completed(mut profiles: Value) -> Value {
    for resource in profiles["resourceProfiles"].as_array_mut().expect("a list") {
        for scope in resource["scopeProfiles"].as_array_mut().expect("a list") {
            for profile in scope["profiles"].as_array_mut().expect("a list") {
                profile["profileId"] = "".into();
                profile["originalPayload"] = Value::Array(Vec::new());
            }
        }
    }
    let links = &mut profiles["dictionary"]["linkTable"];
    assert_eq!(*links, serde_json::json!([{}]));
    links[0] = serde_json::json!({"traceId": [], "spanId": []});
    profiles
}

/// The nanoseconds in the metrics and in the profile, by OpenTelemetry's own types.
pub(crate) fn totals_of_otlp(text: &str) -> (u64, u64) {
    let [metrics, profiles] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("two lines: {text}")
    };
    let metrics: MetricsData = serde_json::from_str(metrics).expect("it is a MetricsData");
    let profiles = completed(serde_json::from_str(profiles).expect("JSON"));
    let profiles: ProfilesData = serde_json::from_value(profiles).expect("it is a ProfilesData");
    let scopes = metrics.resource_metrics.iter().flat_map(|one| &one.scope_metrics);
    let time = scopes
        .flat_map(|one| &one.metrics)
        .find(|metric| metric.name == "holdup.thread.time");
    let of_metrics = match time.and_then(|metric| metric.data.as_ref()) {
        Some(metric::Data::Sum(sum)) => sum.data_points.iter().map(|point| match point.value {
            Some(number_data_point::Value::AsInt(ns)) => ns.cast_unsigned(),
            ref other => panic!("{other:?}"),
        }),
        None => return (0, total_of_profiles(&profiles)),
        other => panic!("{other:?}"),
    };
    (of_metrics.sum(), total_of_profiles(&profiles))
}

fn total_of_profiles(profiles: &ProfilesData) -> u64 {
    let tables = profiles.dictionary.as_ref().expect("it has its tables");
    let string = |index: i32| tables.string_table[usize::try_from(index).expect("an index")].as_str();
    assert_eq!(string(0), "");
    for function in &tables.function_table {
        string(function.name_strindex);
        string(function.filename_strindex);
    }
    for location in &tables.location_table {
        let mapping = &tables.mapping_table[usize::try_from(location.mapping_index).expect("an index")];
        string(mapping.filename_strindex);
        for line in &location.lines {
            assert!((line.function_index as usize) < tables.function_table.len());
        }
    }
    let scopes = profiles
        .resource_profiles
        .iter()
        .flat_map(|one| &one.scope_profiles);
    let of_time = scopes.flat_map(|one| &one.profiles).filter(|profile| {
        let kind = profile.sample_type.as_ref().expect("a type");
        (string(kind.type_strindex), string(kind.unit_strindex)) == ("time", "nanoseconds")
    });
    let samples = of_time.flat_map(|profile| &profile.samples).map(|sample| {
        for index in &tables.stack_table[sample.stack_index as usize].location_indices {
            assert!((*index as usize) < tables.location_table.len());
        }
        for index in &sample.attribute_indices {
            let attribute = &tables.attribute_table[*index as usize];
            assert!(*index > 0 && attribute.value.is_some() && !string(attribute.key_strindex).is_empty());
        }
        sample.values.iter().sum::<i64>().cast_unsigned()
    });
    samples.sum()
}

#[test]
fn opentelemetry_reads_metrics_and_profiles_with_the_same_total() {
    for (name, report) in samples::all() {
        let totals = totals_of_otlp(&text(Format::Otlp, &report));
        assert_eq!(totals, (total(&report), total(&report)), "{name}");
    }
}
