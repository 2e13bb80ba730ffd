//! What a file is for a comparison: runs with amounts, how much work they did, and what else it says.
//!
//! In: a report of holdup, or a profile by function. Out: a [`Source`]. Artefacts are [`super::artefacts`]'s.

use super::frames::Frames;
use super::made::{Made, Thing};
use super::runs::{Part, Run};
use super::stacks::Stacks;
use holdup_evidence::Cause;
use holdup_evidence::observed::Weight;
use holdup_model::churn::Born;
use holdup_model::report::{CauseShare, Churn, Compared, Measure, Report, SubjectKind};
use std::collections::BTreeMap;

/// A unit of work that is counted: a request that was answered.
pub const REQUEST: &str = "request";
/// A whole run of a command.
pub const RUN: &str = "run";
/// A second of watching.
pub const SECOND: &str = "second";
/// One thread dump of a series.
pub const DUMP: &str = "dump";
/// One report of a tool that prints figures again and again.
pub const REPORT: &str = "report";
/// No unit of work: parts are of all there is.
pub const WHOLE: &str = "whole";

/// What facts begin with that tell of which build a library is.
pub const BUILD: &str = "build of ";

/// Processes whose names tell what was watched.
const NAMED: usize = 8;

/// One second in nanoseconds.
const SECOND_NS: f64 = 1e9;

/// A file, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// What it is; `None` of what only says what was made anew, or how things are.
    pub what: Option<Compared>,
    /// What its amounts count.
    pub measure: Measure,
    /// Its runs.
    pub runs: Vec<Measured>,
    /// How things are: kernel, command line, options.
    pub facts: BTreeMap<String, String>,
    /// What is to be kept in mind.
    pub notes: Vec<String>,
    /// Stacks of all its runs, for a picture.
    pub stacks: Stacks,
}

/// A run before it is known for which unit of work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Its amounts.
    pub run: Run,
    /// How many units of each kind were done in it.
    pub units: BTreeMap<&'static str, f64>,
    /// Its amounts inside requests, where requests were counted and their time is distinguished.
    pub requests: Option<Run>,
    /// How many of what were made anew.
    pub made: BTreeMap<Made, f64>,
}

impl Measured {
    /// The run for a unit that was counted.
    #[must_use]
    pub fn per(&self, unit: &str) -> Option<Run> {
        if unit == REQUEST && self.requests.is_some() {
            return self.requests.clone();
        }
        if unit == WHOLE {
            let units = self.run.total;
            return (units > 0.0).then(|| self.of(units));
        }
        let units = self.units.get(unit).copied().filter(|units| *units > 0.0)?;
        Some(self.of(units))
    }

    /// Puts another stretch of the same run behind this one: the next segment of a recording, the next dump of a series.
    pub fn append(&mut self, next: Measured) {
        add(&mut self.run, next.run);
        for (unit, count) in next.units {
            *self.units.entry(unit).or_default() += count;
        }
        for (what, count) in next.made {
            *self.made.entry(what).or_default() += count;
        }
        match (&mut self.requests, next.requests) {
            (Some(sum), Some(part)) => {
                sum.units += part.units;
                add(sum, part);
            }
            (None, part @ Some(_)) => self.requests = part,
            (_, None) => {}
        }
    }

    /// The run with so many units of work.
    #[must_use]
    pub fn of(&self, units: f64) -> Run {
        Run {
            units,
            ..self.run.clone()
        }
    }
}

impl Source {
    /// A report of holdup; `None` where it has no time in it.
    #[must_use]
    pub fn of_report(name: String, report: &Report) -> Option<Source> {
        let waiting_for_work = |share: &&CauseShare| report.of_threads() && share.cause == Cause::Idle;
        let parts = |causes: &[CauseShare]| -> BTreeMap<Part, f64> {
            let found = causes.iter().filter(|share| !waiting_for_work(share));
            found
                .map(|share| (Part::own(share.cause.id()), share.ns as f64))
                .collect()
        };
        let run = |parts: BTreeMap<Part, f64>, units: f64| Run {
            units,
            total: parts.values().sum(),
            parts,
            stretches: Vec::new(),
        };
        let mut base = run(parts(&report.causes), 1.0);
        base.stretches = stretches(report, None);
        if base.total <= 0.0 {
            return None;
        }
        let mut units = BTreeMap::new();
        if report.of_threads() {
            units.insert(SECOND, report.subject.wall_ns as f64 / SECOND_NS);
        } else {
            units.insert(RUN, 1.0);
        }
        let counted = report.requests.as_ref().filter(|requests| requests.count > 0);
        let requests = counted.map(|requests| run(parts(&requests.causes), requests.count as f64));
        let mut requests = requests.filter(|requests| requests.total > 0.0);
        if let Some(requests) = &mut requests {
            requests.stretches = stretches(report, Some(requests));
        }
        if requests.is_some() {
            units.insert(REQUEST, counted.map_or(0.0, |requests| requests.count as f64));
        }
        Some(Source {
            name,
            what: Some(Compared::Recordings),
            measure: Measure::Ns,
            runs: vec![Measured {
                run: base,
                units,
                requests,
                made: report.churn.as_ref().map(made).unwrap_or_default(),
            }],
            facts: facts(report),
            notes: Vec::new(),
            stacks: Stacks::of_waits(&report.waits, report.of_threads()),
        })
    }

    /// Whether the next one of its folder goes on where it ended: what was watched while it ran, and not a whole run.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        let watched = |run: &Measured| run.units.contains_key(SECOND);
        self.what == Some(Compared::Recordings) && self.runs.iter().all(watched)
    }

    /// Puts the next segment of the same recording behind this one.
    pub fn append(&mut self, next: Source) {
        for part in next.runs {
            match self.runs.last_mut() {
                Some(run) => run.append(part),
                None => self.runs.push(part),
            }
        }
        self.facts.extend(next.facts);
        self.notes.extend(next.notes);
        self.stacks.append(&next.stacks);
    }

    /// A profile.
    #[must_use]
    pub fn of_profile(name: String, frames: &Frames, weight: Weight) -> Source {
        let (measure, scale) = match weight {
            Weight::Count => (Measure::Samples, 1.0),
            Weight::Ns => (Measure::Ns, 1.0),
            Weight::Us => (Measure::Ns, 1e3),
        };
        let mut notes = Vec::new();
        if frames.left_out() > 0 {
            notes.push(format!(
                "{name}: {} frames belong to too many different functions and count as one",
                frames.left_out()
            ));
        }
        Source {
            name,
            what: Some(Compared::Profiles),
            measure,
            runs: vec![Measured {
                run: of_frames(frames, scale),
                units: BTreeMap::from([(RUN, 1.0)]),
                ..Measured::default()
            }],
            facts: BTreeMap::new(),
            notes,
            stacks: frames.stacks(scale),
        }
    }
}

fn add(sum: &mut Run, part: Run) {
    sum.total += part.total;
    for (name, amount) in part.parts {
        *sum.parts.entry(name).or_default() += amount;
    }
    sum.stretches.extend(part.stretches);
}

/// Units of work and time of each window of a report, for those of its seconds, or of its requests.
fn stretches(report: &Report, requests: Option<&Run>) -> Vec<(f64, f64)> {
    let windows = report.windows.iter();
    let Some(requests) = requests else {
        let busy = |causes: &BTreeMap<Cause, u64>| -> u64 {
            let found = causes.iter().filter(|(cause, _)| **cause != Cause::Idle);
            found.map(|(_, ns)| *ns).fold(0, u64::saturating_add)
        };
        return match report.of_threads() {
            true => windows
                .map(|one| (one.ns as f64 / SECOND_NS, busy(&one.causes) as f64))
                .collect(),
            // A run is one unit of work, and no part of it is.
            false => Vec::new(),
        };
    };
    // Windows tell how long requests took, from being read to being answered; what is compared is their threads' time.
    let all: f64 = report.windows.iter().map(|one| one.requests_ns as f64).sum();
    let scale = if all > 0.0 { requests.total / all } else { 0.0 };
    windows
        .map(|one| (one.requests as f64, one.requests_ns as f64 * scale))
        .collect()
}

/// The amounts of a profile.
pub(super) fn of_frames(frames: &Frames, scale: f64) -> Run {
    let mut parts = BTreeMap::new();
    for function in frames.functions().filter(|function| function.with > 0) {
        for (within, weight) in [(false, function.own), (true, function.with)] {
            let name = function.name.to_owned();
            let part = Part {
                within,
                ..Part::own(name)
            };
            parts.insert(part, weight as f64 * scale);
        }
    }
    Run {
        units: 1.0,
        total: frames.total() as f64 * scale,
        parts,
        stretches: Vec::new(),
    }
}

/// What was made while it was watched.
fn made(churn: &Churn) -> BTreeMap<Made, f64> {
    let mut made: BTreeMap<Made, f64> = BTreeMap::new();
    let mut add = |what: Thing, count: u64| *made.entry(what.into()).or_default() += count as f64;
    for births in &churn.made {
        let what = match births.what {
            Born::Thread => Thing::Threads,
            Born::Process => Thing::Processes,
        };
        add(what, births.made);
    }
    for one in churn.connections.iter().filter(|one| !one.accepted) {
        add(Thing::Connections, one.made);
    }
    for tls in churn.connections.iter().filter_map(|one| one.tls.as_ref()) {
        add(Thing::FullHandshakes, tls.full);
        add(Thing::ResumedHandshakes, tls.resumed);
    }
    made
}

/// What was watched, by name: ids of processes are others each time.
fn watched(report: &Report) -> Option<String> {
    let command = report.subject.command.join(", ");
    if !command.starts_with("process ") {
        return Some(command);
    }
    let asked = report
        .threads
        .iter()
        .filter(|thread| report.subject.pids.contains(&thread.pid));
    let mut names: Vec<&str> = asked.map(|thread| thread.process.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(NAMED);
    (!names.is_empty()).then(|| names.join(", "))
}

/// How things were.
fn facts(report: &Report) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let command = report.subject.command.join(" ");
    if report.subject.kind == SubjectKind::Run {
        facts.insert("command".to_owned(), command);
    } else if let Some(watched) = watched(report) {
        facts.insert("watched".to_owned(), watched);
    }
    facts.insert("holdup".to_owned(), report.holdup.version.clone());
    let jvms = report.jvms.iter().map(|jvm| {
        let words = std::iter::once(jvm.summary.clone()).chain(jvm.options.iter().cloned());
        words.collect::<Vec<_>>().join(" ")
    });
    let jvms: Vec<String> = jvms.collect();
    if !jvms.is_empty() {
        facts.insert("Java virtual machine".to_owned(), jvms.join("; "));
    }
    facts
}
