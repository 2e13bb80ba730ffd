//! The waits as a profile for pprof: `perftools.profiles.Profile`, packed with gzip.
//!
//! In: a report. Out: the message, with two values a sample: `waits` (how often it blocked) and `time` in nanoseconds,
//! which is shown unless asked otherwise. Cause, resource, process, thread and whether a figure rests on samples are labels, so
//! that `-tagfocus`, `-tagroot` and `-tags` work. The first frames of every stack are the process and the thread.

use crate::samples::{Interned, Kind, Place, Who, resource, samples, signed, window};
use crate::text::printable;
use flate2::{Compression, GzBuilder};
use holdup_model::attributed::How;
use holdup_model::report::Report;
use prost::Message;
use std::io::{self, Write};

/// Writes the profile.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    // The header has neither name nor time, so that equal reports make equal files.
    let mut packed = GzBuilder::new().write(out, Compression::default());
    packed.write_all(&profile(report).encode_to_vec())?;
    packed.finish()?;
    Ok(())
}

/// What is kept once: strings with the empty one first, as the format wants it, and what they are put together to.
struct Tables {
    strings: Interned<String>,
    mappings: Interned<String>,
    functions: Interned<(String, String)>,
    places: Interned<Place>,
}

impl Tables {
    fn string(&mut self, text: &str) -> i64 {
        index(self.strings.place(text.to_owned()))
    }

    fn value_type(&mut self, (kind, unit): (&str, &str)) -> ValueType {
        ValueType {
            r#type: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn text(&mut self, key: &str, value: &str) -> Label {
        Label {
            key: self.string(key),
            str: self.string(value),
            ..Label::default()
        }
    }

    fn number(&mut self, key: &str, value: u32) -> Label {
        Label {
            key: self.string(key),
            num: i64::from(value),
            ..Label::default()
        }
    }
}

/// Ids begin at 1: 0 is none.
fn id(place: usize) -> u64 {
    place as u64 + 1
}

fn index(place: usize) -> i64 {
    signed(place as u64)
}

/// How often, and for how long: the last is what pprof shows unless asked otherwise.
const VALUES: [(&str, &str); 2] = [("waits", "count"), ("time", "nanoseconds")];

fn profile(report: &Report) -> Profile {
    let mut tables = Tables {
        strings: Interned::with([String::new()]),
        // pprof takes the first to be the program.
        mappings: Interned::with([printable(&report.subject.command.join(" "), true)]),
        functions: Interned::default(),
        places: Interned::default(),
    };
    let sample_type = VALUES.map(|value| tables.value_type(value)).to_vec();
    let default_sample_type = tables.string(VALUES[1].0);
    let mut sample = Vec::new();
    for one in samples(report) {
        let wait = one.wait;
        let location_id = one
            .stack
            .into_iter()
            .rev()
            .map(|place| id(tables.places.place(place)));
        let location_id = location_id.collect();
        let mut label = vec![
            tables.text("cause", wait.cause.id()),
            tables.text("process", &Who::of(&wait.asker).process()),
            tables.text("thread", &Who::of(&wait.asker).thread()),
        ];
        let named = resource(wait);
        if !named.is_empty() {
            label.push(tables.text("resource", &named));
        }
        if wait.how == How::Sampled {
            label.push(tables.text("how", "sampled"));
        }
        for (key, value) in [("pid", wait.asker.pid), ("tid", wait.asker.tid)] {
            if value != 0 {
                label.push(tables.number(key, value));
            }
        }
        sample.push(Sample {
            location_id,
            value: vec![signed(wait.count), signed(wait.ns)],
            label,
        });
    }
    let location = locations(&mut tables);
    let mapping = mappings(&mut tables);
    let function = functions(&mut tables);
    let comment = vec![tables.string(&format!("holdup {}: thread time by cause", report.holdup.version))];
    Profile {
        sample_type,
        sample,
        mapping,
        location,
        function,
        string_table: tables.strings.into_list(),
        time_nanos: signed(window(report).0),
        duration_nanos: signed(report.subject.wall_ns),
        comment,
        default_sample_type,
    }
}

fn locations(tables: &mut Tables) -> Vec<Location> {
    let places = std::mem::take(&mut tables.places).into_list();
    let mut locations = Vec::new();
    for (at, place) in places.into_iter().enumerate() {
        let mapping_id = match place.kind {
            Kind::Process | Kind::Thread => 0,
            _ if place.module.is_empty() => 0,
            _ => id(tables.mappings.place(place.module)),
        };
        let function_id = id(tables.functions.place((place.name, place.file)));
        locations.push(Location {
            id: id(at),
            mapping_id,
            line: vec![Line {
                function_id,
                line: i64::from(place.line),
            }],
        });
    }
    locations
}

fn mappings(tables: &mut Tables) -> Vec<Mapping> {
    let modules = std::mem::take(&mut tables.mappings).into_list();
    let mut mappings = Vec::new();
    for (at, module) in modules.iter().enumerate() {
        mappings.push(Mapping {
            id: id(at),
            filename: tables.string(module),
            // All that can be named is: pprof is not to look for the files.
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        });
    }
    mappings
}

fn functions(tables: &mut Tables) -> Vec<Function> {
    let functions = std::mem::take(&mut tables.functions).into_list();
    let mut made = Vec::new();
    for (at, (name, file)) in functions.iter().enumerate() {
        let name = tables.string(name);
        made.push(Function {
            id: id(at),
            name,
            system_name: name,
            filename: tables.string(file),
        });
    }
    made
}

// The messages of the format, with the fields that are written; numbers as in pprof's profile.proto.

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
    #[prost(int64, tag = "3")]
    num: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}
