//! The waits as a profile for the Firefox Profiler: its processed format, [`VERSION`], as JSON.
//!
//! In: a report. Out: a thread of the profile for each thread, with a weighted sample for each wait: its stack, the cause as the
//! innermost frame, and its milliseconds as weight (`tracing-ms`), so that call tree and flame graph add up to the report's
//! waits. Sums have no instants: their samples all stand at the end of the observation, where they are known. Single pieces of time
//! whose instants are known ([`spans`]) are markers.

use crate::samples::{Interned, Kind, Place, Who, samples, window};
use crate::spans::{Span, spans};
use crate::text::printable;
use holdup_evidence::{Cause, Ns};
use holdup_model::report::Report;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// `PROCESSED_PROFILE_VERSION`: the profiler reads this and all older ones.
const VERSION: u32 = 70;

/// The version of the format that Firefox itself writes, which a field must tell.
const GECKO_VERSION: u32 = 36;

/// Milliseconds that the profiler takes a sample to stand for where it has no weight.
const INTERVAL_MS: f64 = 1.0;

/// Phase of a marker with begin and end.
const INTERVAL: u32 = 1;

/// Type of a resource that is a library.
const LIBRARY: u32 = 1;

/// What stands where there is nothing, in columns that have numbers only.
const NONE: i32 = -1;

/// Writes the profile.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &profile(report))?;
    writeln!(out)
}

/// Milliseconds, as the format has times; every nanosecond is kept up to a hundred days.
fn milliseconds(ns: Ns) -> f64 {
    ns as f64 / 1e6
}

/// What colours tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Category {
    Other,
    Running,
    Waiting,
    Idle,
    Kernel,
    Java,
    Python,
    JavaScript,
    Ruby,
    Php,
    Perl,
    Bash,
}

impl Category {
    const ALL: [(Category, &'static str, &'static str); 12] = [
        // The profiler looks for one that is grey.
        (Category::Other, "Other", "grey"),
        (Category::Running, "Running", "green"),
        (Category::Waiting, "Waiting", "orange"),
        (Category::Idle, "Waiting for work", "transparent"),
        (Category::Kernel, "Kernel", "red"),
        (Category::Java, "Java", "yellow"),
        (Category::Python, "Python", "blue"),
        (Category::JavaScript, "JavaScript", "purple"),
        (Category::Ruby, "Ruby", "magenta"),
        (Category::Php, "PHP", "lightblue"),
        (Category::Perl, "Perl", "lightgreen"),
        (Category::Bash, "Bash", "grey"),
    ];

    fn index(self) -> u32 {
        self as u32
    }

    fn of_kind(kind: Kind) -> Category {
        match kind {
            Kind::Kernel => Category::Kernel,
            Kind::Java => Category::Java,
            Kind::Python => Category::Python,
            Kind::JavaScript => Category::JavaScript,
            Kind::Ruby => Category::Ruby,
            Kind::Php => Category::Php,
            Kind::Perl => Category::Perl,
            Kind::Bash => Category::Bash,
            Kind::Process | Kind::Thread | Kind::Native | Kind::Inlined => Category::Other,
        }
    }

    fn of_cause(cause: Cause) -> Category {
        match cause {
            Cause::Idle => Category::Idle,
            Cause::Unknown => Category::Other,
            cause if cause.on_cpu() => Category::Running,
            _ => Category::Waiting,
        }
    }
}

/// What all threads share.
#[derive(Default)]
struct Shared {
    strings: Interned<String>,
    frames: Interned<(Place, Category)>,
    /// A frame, and the stack that it is on.
    stacks: Interned<(usize, Option<usize>)>,
}

impl Shared {
    fn stack(&mut self, places: Vec<Place>, cause: Cause) -> Option<usize> {
        let of_cause = Place {
            name: cause.phrase().to_owned(),
            module: String::new(),
            file: String::new(),
            line: 0,
            kind: Kind::Native,
        };
        // The thread is a row of its own, so that its frames would only be in the way.
        let frames = places
            .into_iter()
            .filter(|place| !matches!(place.kind, Kind::Process | Kind::Thread))
            .map(|place| {
                let category = Category::of_kind(place.kind);
                (place, category)
            });
        let frames: Vec<_> = frames.chain([(of_cause, Category::of_cause(cause))]).collect();
        frames.into_iter().fold(None, |below, frame| {
            let frame = self.frames.place(frame);
            Some(self.stacks.place((frame, below)))
        })
    }

    fn string(&mut self, text: &str) -> usize {
        self.strings.place(text.to_owned())
    }
}

/// A thread's waits.
#[derive(Default)]
struct Thread<'a> {
    stacks: Vec<Option<usize>>,
    weights: Vec<f64>,
    spans: Vec<Span<'a>>,
}

fn profile(report: &Report) -> Value {
    let (began, _) = window(report);
    let mut shared = Shared::default();
    let mut threads: BTreeMap<Who<'_>, Thread<'_>> = BTreeMap::new();
    for sample in samples(report) {
        let wait = sample.wait;
        let thread = threads.entry(Who::of(&wait.asker)).or_default();
        thread.stacks.push(shared.stack(sample.stack, wait.cause));
        thread.weights.push(milliseconds(wait.ns));
    }
    for span in spans(report) {
        threads.entry(span.who).or_default().spans.push(span);
    }
    let length = report.subject.wall_ns;
    let threads: Vec<Value> = threads
        .iter()
        .map(|(who, one)| one.json(*who, length, &mut shared))
        .collect();
    json!({
        "meta": meta(report, began, length),
        "libs": [],
        "pages": [],
        "shared": shared.json(),
        "threads": threads,
    })
}

fn meta(report: &Report, began: Ns, length: Ns) -> Value {
    let categories: Vec<Value> = Category::ALL
        .iter()
        .map(|(_, name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}))
        .collect();
    let command: Vec<String> = report
        .subject
        .command
        .iter()
        .map(|word| printable(word, true))
        .collect();
    // What stands at the very end is still within.
    let end = milliseconds(length) + INTERVAL_MS;
    json!({
        "interval": INTERVAL_MS,
        "startTime": milliseconds(began),
        "endTime": end,
        "profilingStartTime": 0,
        "profilingEndTime": end,
        "processType": 0,
        "product": format!("holdup {}", command.join(" ")),
        "importedFrom": format!("holdup {}", report.holdup.version),
        "stackwalk": 1,
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "categories": categories,
        "extensions": {"baseURL": [], "id": [], "name": [], "length": 0},
        "symbolicated": true,
        "symbolicationNotSupported": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "keepProfileThreadOrder": true,
        "markerSchema": [{
            "name": "holdup-wait",
            "tooltipLabel": "{marker.name}",
            "tableLabel": "{marker.data.what}",
            "chartLabel": "{marker.name}",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "fields": [
                {"key": "what", "label": "What", "format": "string"},
                {"key": "resource", "label": "Waited for", "format": "string"},
                {"key": "frame", "label": "Asked by", "format": "string"},
                {"key": "ended_by", "label": "Ended by", "format": "string"},
            ],
        }],
    })
}

impl Thread<'_> {
    fn json(&self, who: Who<'_>, length: Ns, shared: &mut Shared) -> Value {
        let count = self.stacks.len();
        let ended = milliseconds(length);
        let mut markers: BTreeMap<&str, Vec<Value>> =
            ["data", "name", "startTime", "endTime", "phase", "category"]
                .map(|column| (column, Vec::new()))
                .into();
        for span in &self.spans {
            let mut data: Map<String, Value> = span
                .attributes()
                .into_iter()
                .map(|(key, words)| (key.to_owned(), words.into()))
                .collect();
            data.insert("type".to_owned(), "holdup-wait".into());
            let start = span.start as f64 / 1e6;
            let row = [
                ("data", Value::Object(data)),
                ("name", json!(shared.string(span.cause.id()))),
                ("startTime", json!(start)),
                ("endTime", json!(start + milliseconds(span.ns))),
                ("phase", json!(INTERVAL)),
                ("category", json!(Category::of_cause(span.cause).index())),
            ];
            for (column, value) in row {
                markers.entry(column).or_default().push(value);
            }
        }
        let mut markers = json!(markers);
        markers["length"] = json!(self.spans.len());
        json!({
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pausedRanges": [],
            "name": who.thread(),
            "processName": who.process(),
            "isMainThread": who.pid == who.tid,
            "pid": who.pid.to_string(),
            "tid": who.tid,
            "samples": {
                "stack": self.stacks,
                "time": vec![ended; count],
                "weight": self.weights,
                "weightType": "tracing-ms",
                "length": count,
            },
            "markers": markers,
        })
    }
}

impl Shared {
    fn json(mut self) -> Value {
        let stacks = std::mem::take(&mut self.stacks).into_list();
        let frames = std::mem::take(&mut self.frames).into_list();
        let mut functions: Interned<(String, String, String)> = Interned::default();
        let function_of: Vec<usize> = frames
            .iter()
            .map(|(place, _)| functions.place((place.name.clone(), place.module.clone(), place.file.clone())))
            .collect();
        let mut resources: Interned<String> = Interned::default();
        let mut sources: Interned<String> = Interned::default();
        let functions = functions.into_list();
        let of = |text: &str, table: &mut Interned<String>| {
            (!text.is_empty()).then(|| table.place(text.to_owned()))
        };
        let (mut names, mut resource_of, mut source_of) = (Vec::new(), Vec::new(), Vec::new());
        for (name, module, file) in &functions {
            names.push(self.string(name));
            resource_of.push(of(module, &mut resources).map_or(json!(NONE), |place| json!(place)));
            source_of.push(of(file, &mut sources));
        }
        let named = |table: Interned<String>, shared: &mut Shared| -> Vec<usize> {
            table.list().iter().map(|name| shared.string(name)).collect()
        };
        let resource_names = named(resources, &mut self);
        let source_names = named(sources, &mut self);
        let (libraries, files) = (resource_names.len(), source_names.len());
        let nothing = |count: usize| vec![Value::Null; count];
        // A stack says how far before it the one lies that it is on.
        let offsets: Vec<usize> = stacks
            .iter()
            .enumerate()
            .map(|(at, (_, below))| below.map_or(0, |below| at - below))
            .collect();
        json!({
            "stackTable": {
                "frame": stacks.iter().map(|(frame, _)| *frame).collect::<Vec<_>>(),
                "prefixOffset": offsets,
                "length": stacks.len(),
            },
            "frameTable": {
                "address": vec![NONE; frames.len()],
                "lib": vec![NONE; frames.len()],
                "inlineDepth": vec![0; frames.len()],
                "category": frames.iter().map(|(_, category)| category.index()).collect::<Vec<_>>(),
                "subcategory": vec![0; frames.len()],
                "func": function_of,
                "nativeSymbol": nothing(frames.len()),
                "innerWindowID": nothing(frames.len()),
                "line": frames.iter().map(|(place, _)| Some(place.line).filter(|line| *line > 0)).collect::<Vec<_>>(),
                "column": nothing(frames.len()),
                "originalLocation": nothing(frames.len()),
                "length": frames.len(),
            },
            "funcTable": {
                "name": names,
                "isJS": vec![false; functions.len()],
                "relevantForJS": vec![false; functions.len()],
                "resource": resource_of,
                "source": source_of,
                "lineNumber": nothing(functions.len()),
                "columnNumber": nothing(functions.len()),
                "originalLocation": nothing(functions.len()),
                "length": functions.len(),
            },
            "resourceTable": {
                "name": resource_names,
                "host": nothing(libraries),
                "type": vec![LIBRARY; libraries],
                "length": libraries,
            },
            "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
            "sources": {
                "id": nothing(files),
                "filename": source_names,
                "startLine": vec![1; files],
                "startColumn": vec![1; files],
                "sourceMapURL": nothing(files),
                "content": nothing(files),
                "length": files,
            },
            "sourceLocationTable": {"source": [], "line": [], "column": [], "length": 0},
            "stringArray": self.strings.list(),
        })
    }
}
