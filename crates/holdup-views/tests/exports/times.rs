//! The formats with a time line: Perfetto's, decoded by protoc, and the Firefox Profiler's, as JSON.

use crate::{export, samples, text, told_by, total};
use holdup_evidence::Cause;
use holdup_model::attributed::ThreadName;
use holdup_model::report::Report;
use holdup_model::timeline::{EndedBy, Piece, Task, Timeline};
use holdup_views::Format;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

// Perfetto

/// Fields of each packet by their path, as protoc prints them.
fn packets(trace: &[u8]) -> Vec<BTreeMap<String, String>> {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemas");
    let mut protoc = Command::new("protoc");
    protoc
        .args(["--decode=perfetto.protos.Trace", "-I", schema])
        .arg(format!("{schema}/perfetto.proto"));
    let found = told_by(&mut protoc, trace);
    let mut packets: Vec<BTreeMap<String, String>> = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    for line in found.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {") {
            if path.is_empty() {
                packets.push(BTreeMap::new());
            } else {
                path.push(name);
                continue;
            }
            path.push("");
        } else if line == "}" {
            path.pop();
        } else {
            let (name, value) = line.split_once(": ").expect("a field has a value");
            assert!(
                !name.starts_with(|first: char| first.is_ascii_digit()),
                "no such field: {line}"
            );
            let path = path[1..]
                .iter()
                .chain([&name])
                .copied()
                .collect::<Vec<_>>()
                .join(".");
            packets
                .last_mut()
                .expect("a packet began")
                .insert(path, value.to_owned());
        }
    }
    packets
}

fn number(packet: &BTreeMap<String, String>, path: &str) -> Option<u64> {
    packet.get(path).map(|value| value.parse().expect("a number"))
}

/// The sum of what the counters say at the end; slices end on their track, in turn.
pub(crate) fn total_of_trace(trace: &[u8]) -> u64 {
    let mut tracks = BTreeSet::new();
    let mut counters: BTreeMap<u64, u64> = BTreeMap::new();
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    let mut last = 0;
    for packet in packets(trace) {
        assert_eq!(number(&packet, "trusted_packet_sequence_id"), Some(1));
        if let Some(track) = number(&packet, "track_descriptor.uuid") {
            assert!(tracks.insert(track), "two tracks have one number");
            let parent = number(&packet, "track_descriptor.parent_uuid");
            assert!(parent.is_none_or(|parent| tracks.contains(&parent)));
        }
        let Some(track) = number(&packet, "track_event.track_uuid") else {
            continue;
        };
        let at = number(&packet, "timestamp").expect("an event has its time");
        assert!(at >= last && tracks.contains(&track));
        last = at;
        match packet["track_event.type"].as_str() {
            "TYPE_COUNTER" => {
                let value = number(&packet, "track_event.counter_value").expect("a value");
                counters.insert(track, value);
            }
            "TYPE_SLICE_BEGIN" => assert_eq!(open.insert(track, at), None, "a slice in a slice"),
            "TYPE_SLICE_END" => assert!(open.remove(&track).is_some_and(|begin| begin < at)),
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    counters.values().sum()
}

#[test]
fn protoc_decodes_a_trace_by_the_schema_and_counters_add_up() {
    for (name, report) in samples::all() {
        let trace = export(Format::Perfetto, &report);
        assert_eq!(total_of_trace(&trace), total(&report), "{name}");
    }
}

#[test]
fn a_wait_whose_instant_is_known_is_a_slice_and_no_other_is() {
    let report = samples::sshd().report();
    let packets = packets(&export(Format::Perfetto, &report));
    let slices = packets
        .iter()
        .filter(|packet| packet.contains_key("track_event.name"));
    let [slice] = slices.collect::<Vec<_>>()[..] else {
        panic!("one wait of three has a date: {packets:?}")
    };
    assert_eq!(slice["track_event.name"], "\"random.unseeded\"");
    assert_eq!(number(slice, "timestamp"), report.waits[0].max_started_boot_ns);
}

/// A time line of the report's first threads.
pub(crate) fn timeline(report: &Report, pieces: Vec<Piece>) -> Option<Timeline> {
    let tasks = report.waits.iter().map(|wait| Task {
        name: ThreadName {
            pid: wait.asker.pid,
            tid: wait.asker.tid,
            process: wait.asker.process.clone(),
            thread: wait.asker.thread.clone(),
        },
        thread: None,
    });
    Some(Timeline {
        tasks: tasks.collect(),
        pieces,
        ..Timeline::default()
    })
}

pub(crate) fn piece(task: u32, start: u64, ns: u64) -> Piece {
    Piece {
        task,
        start,
        ns,
        cause: Cause::IpcPipe,
        wait: Some(task),
        ended_by: None,
        before: 0,
        open: false,
    }
}

#[test]
fn each_piece_of_the_time_line_is_a_slice_and_a_marker_with_who_ended_it() {
    let mut report = samples::pipeline().report();
    let mut early = piece(1, 0, 300);
    (early.before, early.ended_by) = (1_000, Some(EndedBy::Task(2)));
    let mut late = piece(1, 400, 50);
    (late.ended_by, late.wait) = (Some(EndedBy::Timer), None);
    let mut open = piece(2, 10, 90);
    open.open = true;
    // Of what is not there, nothing is drawn.
    report.timeline = timeline(&report, vec![early, late, open, piece(77, 5, 5)]);
    for wait in &mut report.waits {
        // 1 s after boot is the begin.
        wait.max_started = Some("2023-11-14T22:13:21.8Z".to_owned());
        wait.max_started_boot_ns = Some(1_000_000_000);
    }
    let packets = packets(&export(Format::Perfetto, &report));
    let slices = packets
        .iter()
        .filter(|packet| packet.contains_key("track_event.name"));
    let begins: Vec<_> = slices
        .map(|slice| number(slice, "timestamp").expect("a time"))
        .collect();
    assert_eq!(begins, [999_999_000, 1_000_000_010, 1_000_000_400]);

    let profile: Value = serde_json::from_str(&text(Format::Firefox, &report)).expect("JSON");
    let threads = profile["threads"].as_array().expect("threads").iter();
    let markers = threads.flat_map(|thread| {
        let columns = &thread["markers"];
        let rows = columns["data"].as_array().expect("rows").iter().enumerate();
        rows.map(|(at, data)| {
            (
                columns["startTime"][at].clone(),
                columns["endTime"][at].clone(),
                data["ended_by"].clone(),
            )
        })
    });
    // By thread: the writer has the lower number.
    let expected = [
        (
            Value::from(0.00001),
            Value::from(0.0001),
            Value::from("not ended: it was still waiting"),
        ),
        (
            Value::from(-0.001),
            Value::from(0.0003),
            Value::from("slow-writer (101)"),
        ),
        (Value::from(0.0004), Value::from(0.00045), Value::from("a timer")),
    ];
    let near = |a: &Value, b: &Value| (a.as_f64().expect("ms") - b.as_f64().expect("ms")).abs() < 1e-9;
    let markers: Vec<_> = markers.collect();
    assert_eq!(markers.len(), expected.len());
    for (marker, wanted) in markers.iter().zip(&expected) {
        assert!(
            near(&marker.0, &wanted.0) && near(&marker.1, &wanted.1),
            "{marker:?} {wanted:?}"
        );
        assert_eq!(marker.2, wanted.2);
    }
}

// Firefox Profiler

/// The nanoseconds in a profile whose every index leads somewhere and whose columns are of one length.
pub(crate) fn total_of_firefox(profile: &Value) -> u64 {
    let table = |table: &Value| {
        let length = table["length"].as_u64().expect("a table has a length");
        for (name, column) in table.as_object().expect("a table") {
            let column = column.as_array().map(|column| column.len() as u64);
            assert!(column.is_none_or(|column| column == length), "{name}: {table}");
        }
        length
    };
    let within = |column: &Value, length: u64| {
        for index in column.as_array().expect("a column") {
            let index = index.as_u64();
            assert!(index.is_none_or(|index| index < length), "{column} of {length}");
        }
    };
    assert_eq!(profile["meta"]["preprocessedProfileVersion"], 70);
    let shared = &profile["shared"];
    let strings = shared["stringArray"].as_array().expect("strings").len() as u64;
    let [stacks, frames, functions, resources, sources] = [
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "sources",
    ]
    .map(|name| table(&shared[name]));
    within(&shared["stackTable"]["frame"], frames);
    within(&shared["frameTable"]["func"], functions);
    within(&shared["funcTable"]["name"], strings);
    within(&shared["funcTable"]["resource"], resources);
    within(&shared["funcTable"]["source"], sources);
    within(&shared["resourceTable"]["name"], strings);
    within(&shared["sources"]["filename"], strings);
    let categories = profile["meta"]["categories"]
        .as_array()
        .expect("categories")
        .len() as u64;
    within(&shared["frameTable"]["category"], categories);
    for (at, offset) in shared["stackTable"]["prefixOffset"]
        .as_array()
        .expect("a column")
        .iter()
        .enumerate()
    {
        assert!(offset.as_u64().is_some_and(|offset| offset <= at as u64));
    }
    let mut total = 0;
    for thread in profile["threads"].as_array().expect("threads") {
        table(&thread["samples"]);
        within(&thread["samples"]["stack"], stacks);
        table(&thread["markers"]);
        within(&thread["markers"]["name"], strings);
        assert_eq!(thread["samples"]["weightType"], "tracing-ms");
        for weight in thread["samples"]["weight"].as_array().expect("weights") {
            total += (weight.as_f64().expect("milliseconds") * 1e6).round() as u64;
        }
    }
    total
}

#[test]
fn a_profile_for_firefox_is_whole_and_adds_up() {
    for (name, report) in samples::all() {
        let profile = serde_json::from_str(&text(Format::Firefox, &report)).expect("JSON");
        assert_eq!(total_of_firefox(&profile), total(&report), "{name}");
    }
}
