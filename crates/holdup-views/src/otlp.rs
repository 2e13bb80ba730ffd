//! The report for OpenTelemetry: OTLP as JSON, one line of metrics and one of profiles, as collectors read files.
//!
//! In: a report. Out: a line with a `MetricsData` (`opentelemetry.proto.metrics.v1`, stable) and a line with a `ProfilesData`
//! (`opentelemetry.proto.profiles.v1development`, as of version 1.10 of the protocol; it may still change, and a collector that does not
//! know it leaves the line out). Times are nanoseconds, whole; 64-bit numbers of metrics are strings, as the protocol has them in JSON.
//! Attributes of metrics are bounded ([`figures`]); samples of the profile have cause, resource, process and thread.

use crate::figures::{Figure, Kind as Sort, Unit, figures};
use crate::samples::{Interned, Kind, Place, resource, samples, signed, window};
use crate::text::printable;
use holdup_model::report::Report;
use serde_json::{Value, json};
use std::io::{self, Write};

/// `AGGREGATION_TEMPORALITY_DELTA`: a sum is of this observation alone.
const DELTA: u32 = 1;

/// Writes both lines.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &metrics(report))?;
    writeln!(out)?;
    serde_json::to_writer(&mut *out, &profiles(report))?;
    writeln!(out)
}

/// A 64-bit number.
fn long(value: u64) -> Value {
    json!(value.to_string())
}

/// A 64-bit number with a sign.
fn whole(value: u64) -> Value {
    json!(signed(value).to_string())
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn resource_of(report: &Report) -> Value {
    let command: Vec<String> = report
        .subject
        .command
        .iter()
        .map(|word| printable(word, true))
        .collect();
    json!({
        "attributes": [
            attribute("service.name", "holdup"),
            attribute("service.version", &report.holdup.version),
            attribute("holdup.subject", &command.join(" ")),
        ],
        "droppedAttributesCount": 0,
    })
}

fn scope(report: &Report) -> Value {
    json!({"name": "holdup", "version": report.holdup.version, "attributes": [], "droppedAttributesCount": 0})
}

fn metrics(report: &Report) -> Value {
    let window = window(report);
    let metrics: Vec<Value> = figures(report)
        .iter()
        .map(|figure| metric(figure, window))
        .collect();
    json!({"resourceMetrics": [{
        "resource": resource_of(report),
        "scopeMetrics": [{"scope": scope(report), "metrics": metrics, "schemaUrl": ""}],
        "schemaUrl": "",
    }]})
}

fn metric(figure: &Figure, (began, ended): (u64, u64)) -> Value {
    let points: Vec<Value> = figure
        .values
        .iter()
        .map(|(labels, value)| {
            let attributes: Vec<Value> = labels
                .iter()
                .map(|(key, value)| attribute(&format!("holdup.{key}"), value))
                .collect();
            json!({
                "attributes": attributes,
                "startTimeUnixNano": long(began),
                "timeUnixNano": long(ended),
                "asInt": whole(*value),
                "exemplars": [],
                "flags": 0,
            })
        })
        .collect();
    let mut metric = json!({
        "name": format!("holdup.{}", figure.name.join(".")),
        "description": figure.about,
        "unit": match figure.unit {
            Unit::Time => "ns",
            Unit::Count => "1",
        },
        "metadata": [],
    });
    match figure.kind {
        Sort::Sum => {
            metric["sum"] =
                json!({"dataPoints": points, "aggregationTemporality": DELTA, "isMonotonic": true});
        }
        Sort::Gauge => metric["gauge"] = json!({"dataPoints": points}),
    }
    metric
}

/// Tables of a profile. The first entry of each stands for nothing.
struct Dictionary {
    strings: Interned<String>,
    /// Key and value, by their strings' places.
    attributes: Interned<(usize, Attribute)>,
    places: Interned<Option<Place>>,
    stacks: Interned<Vec<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Attribute {
    Nothing,
    Text(String),
    Number(u32),
}

impl Dictionary {
    fn attribute(&mut self, key: &str, value: Attribute) -> usize {
        let key = self.strings.place(key.to_owned());
        self.attributes.place((key, value))
    }
}

fn profiles(report: &Report) -> Value {
    let mut tables = Dictionary {
        strings: Interned::with([String::new()]),
        attributes: Interned::with([(0, Attribute::Nothing)]),
        places: Interned::with([None]),
        stacks: Interned::with([Vec::new()]),
    };
    let mut times = Vec::new();
    let mut counts = Vec::new();
    for sample in samples(report) {
        let wait = sample.wait;
        // Process and thread are attributes here.
        let frames = sample
            .stack
            .into_iter()
            .rev()
            .filter(|place| !matches!(place.kind, Kind::Process | Kind::Thread));
        let stack: Vec<usize> = frames.map(|place| tables.places.place(Some(place))).collect();
        let stack = tables.stacks.place(stack);
        let asker = &wait.asker;
        let attributes = [
            ("holdup.cause", Attribute::Text(wait.cause.id().to_owned())),
            ("holdup.resource", Attribute::Text(resource(wait))),
            (
                "process.executable.name",
                Attribute::Text(printable(&asker.process, true)),
            ),
            ("process.pid", Attribute::Number(asker.pid)),
            ("thread.name", Attribute::Text(printable(&asker.thread, true))),
            ("thread.id", Attribute::Number(asker.tid)),
        ];
        let attributes = attributes.into_iter().filter(|(_, value)| match value {
            Attribute::Nothing | Attribute::Number(0) => false,
            Attribute::Text(text) => !text.is_empty(),
            Attribute::Number(_) => true,
        });
        let attributes: Vec<usize> = attributes
            .map(|(key, value)| tables.attribute(key, value))
            .collect();
        for (values, value) in [(&mut times, wait.ns), (&mut counts, wait.count)] {
            values.push(json!({
                "stackIndex": stack,
                "attributeIndices": attributes,
                "linkIndex": 0,
                "values": [signed(value)],
                "timestampsUnixNano": [],
            }));
        }
    }
    let profiles = [("time", "nanoseconds", times), ("waits", "count", counts)];
    let profiles = profiles.map(|(kind, unit, samples)| {
        let kind = tables.strings.place(kind.to_owned());
        let unit = tables.strings.place(unit.to_owned());
        profile(report, (kind, unit), samples)
    });
    let profiles = json!([{
        "resource": resource_of(report),
        "scopeProfiles": [{"scope": scope(report), "profiles": profiles, "schemaUrl": ""}],
        "schemaUrl": "",
    }]);
    json!({"resourceProfiles": profiles, "dictionary": tables.json()})
}

fn profile(report: &Report, (kind, unit): (usize, usize), samples: Vec<Value>) -> Value {
    json!({
        "sampleType": {"typeStrindex": kind, "unitStrindex": unit},
        "samples": samples,
        "timeUnixNano": window(report).0,
        "durationNano": report.subject.wall_ns,
        "period": 0,
        "droppedAttributesCount": 0,
        "originalPayloadFormat": "",
        "attributeIndices": [],
    })
}

impl Dictionary {
    fn json(mut self) -> Value {
        let places = std::mem::take(&mut self.places).into_list();
        let mut mappings: Interned<String> = Interned::with([String::new()]);
        let mut functions: Interned<(usize, usize)> = Interned::with([(0, 0)]);
        let locations: Vec<Value> = places
            .into_iter()
            .map(|place| {
                let mut lines = Vec::new();
                let mut mapping = 0;
                if let Some(place) = place {
                    mapping = mappings.place(place.module);
                    let function = (self.strings.place(place.name), self.strings.place(place.file));
                    let function = functions.place(function);
                    lines.push(json!({"functionIndex": function, "line": place.line, "column": 0}));
                }
                json!({"mappingIndex": mapping, "address": 0, "lines": lines, "attributeIndices": []})
            })
            .collect();
        let functions: Vec<Value> = functions
            .list()
            .iter()
            .map(|(name, file)| {
                json!({
                    "nameStrindex": name,
                    "systemNameStrindex": name,
                    "filenameStrindex": file,
                    "startLine": 0,
                })
            })
            .collect();
        let mappings: Vec<Value> = mappings
            .into_list()
            .into_iter()
            .map(|module| {
                json!({
                    "memoryStart": 0,
                    "memoryLimit": 0,
                    "fileOffset": 0,
                    "filenameStrindex": self.strings.place(module),
                    "attributeIndices": [],
                })
            })
            .collect();
        let attributes: Vec<Value> = self
            .attributes
            .list()
            .iter()
            .map(|(key, value)| {
                let value = match value {
                    Attribute::Nothing => Value::Null,
                    Attribute::Text(text) => json!({"stringValue": text}),
                    Attribute::Number(number) => json!({"intValue": number.to_string()}),
                };
                json!({"keyStrindex": key, "value": value, "unitStrindex": 0})
            })
            .collect();
        let stacks: Vec<Value> = self
            .stacks
            .list()
            .iter()
            .map(|stack| json!({"locationIndices": stack}))
            .collect();
        json!({
            "mappingTable": mappings,
            "locationTable": locations,
            "functionTable": functions,
            "linkTable": [{}],
            "stringTable": self.strings.list(),
            "attributeTable": attributes,
            "stackTable": stacks,
        })
    }
}
