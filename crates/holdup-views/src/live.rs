//! A report as a live screen shows it: who waits now, behind whom, and what else there is to say of it.
//!
//! In: a report of what was watched. Out: a [`Look`], plain words and figures within bounds, without colours, columns or lines: the screen
//! sets them. The words are the terminal's own ([`terminal`](crate::terminal)), the sentence is the report's headline and the order follows
//! its findings, so that a screen can say nothing that the report does not.

use crate::headline::headline;
use crate::sheet::{Said, Sheet};
use crate::style::Style;
use crate::terminal::entry::{self, Depth, beside_the_phrase};
use crate::terminal::picture::{Entry, tells_of};
use crate::terminal::way::{Step, steps};
use crate::terminal::who::{members, thread};
use crate::terminal::words::findings_count;
use crate::terminal::{finding, margins};
use crate::units::percent;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::ResourceKind;
use holdup_model::finding::Severity;
use holdup_model::host_figures::{HostFigure, HostFigures, HostLine};
use holdup_model::report::{Backend, Finding, Report, Thread, Wait};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Rows of a look. More are not read; how many are left out is reported.
const MAX_ROWS: usize = 400;

/// Lines of a row's details: a stack has at most 127 frames in either half.
const MAX_LINES: usize = 300;

/// Bytes of a line: names come from observed programs.
const MAX_BYTES_OF_LINE: usize = 2_000;

/// Programs on a CPU that are named.
const MAX_RUNNING: usize = 3;

/// Sentences on what was not measured.
const MAX_GAPS: usize = 20;

/// A figure of the machine is shown from this share on, 0..1.
const MIN_SHARE: f64 = 0.005;

/// What a screen shows of one observation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// What was observed.
    pub subject: String,
    /// When observation began, RFC 3339 in UTC.
    pub began: String,
    /// How long it is, nanoseconds.
    pub lasted_ns: Ns,
    /// `traced` or `sampled`.
    pub how: String,
    /// The report's first sentence.
    pub sentence: String,
    /// How much that is.
    pub size: Option<String>,
    /// How grave it is; `None` where nothing was found.
    pub severity: Option<Severity>,
    /// What to do about it: words, and a command where there is one.
    pub remedy: Option<(String, Option<String>)>,
    /// Figures of the machine: `CPUs 93 % busy`.
    pub figures: Vec<String>,
    /// Programs on a CPU, with how many CPUs' worth of time: `cc1 1.4`.
    pub running: Vec<String>,
    /// Threads that wait for work, and all others.
    pub idle_threads: u32,
    /// All threads.
    pub threads: u32,
    /// Who waits; those that the first finding is about come first, then by time.
    pub rows: Vec<LookRow>,
    /// Rows that were left out.
    pub more_rows: u64,
    /// What was not measured.
    pub gaps: Vec<String>,
}

/// A process that waits for one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookRow {
    /// The same from one look to the next: process, cause, thing and function.
    pub key: String,
    /// Cause.
    pub cause: Cause,
    /// Who: `4 threads of app (pid 12)`.
    pub who: String,
    /// In plain words, with the thing's name.
    pub what: String,
    /// How much time went there in this look, nanoseconds of thread time.
    pub ns: Ns,
    /// How long the longest wait is or has lasted so far, from before the look too, nanoseconds.
    pub longest_ns: Ns,
    /// How often.
    pub count: u64,
    /// Whether somebody still waits so.
    pub open: bool,
    /// Whether that is what programs do while they have nothing to do, and nothing says that it is trouble.
    pub rests: bool,
    /// Who is in the way, nearest first; the last one is the root.
    pub behind: Vec<LookStep>,
    /// All that the report says of it: label and words.
    pub lines: Vec<(String, String)>,
    /// Whether a stack is among them.
    pub has_stack: bool,
    /// Findings about it: label and words.
    pub findings: Vec<(String, String)>,
}

/// One that is in the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookStep {
    /// Who.
    pub who: String,
    /// What it does meanwhile.
    pub doing: Option<Cause>,
    /// For how long, nanoseconds; 0 where that is not known.
    pub ns: Ns,
}

impl Look {
    /// That of a report.
    #[must_use]
    pub fn of(report: &Report) -> Look {
        let style = Style {
            width: usize::MAX,
            verbose: true,
            ..Style::default()
        };
        let mut sheet = Sheet::new(&style);
        let headline = headline(report);
        let first = report.findings.first().filter(|_| headline.is_first_finding);
        let entries = entries(report, first);
        let more_rows = entries.len().saturating_sub(MAX_ROWS) as u64;
        let rows = entries
            .iter()
            .take(MAX_ROWS)
            .map(|entry| row(&mut sheet, report, entry, first))
            .collect();
        margins::gaps(&mut sheet, report);
        let gaps = sheet.take_said();
        let (idle_threads, threads) = idle(report);
        Look {
            subject: bounded(report.subject.command.join(", ")),
            began: report.subject.started.clone(),
            lasted_ns: report.subject.wall_ns,
            how: match report.coverage.backend {
                Backend::Bpf => "traced",
                Backend::Proc => "sampled",
                Backend::Artefact => "read",
            }
            .to_owned(),
            sentence: bounded(headline.sentence),
            size: headline.size,
            severity: headline.severity,
            remedy: first.and_then(remedy),
            figures: machine_words(&report.host_figures),
            running: running(report),
            idle_threads,
            threads,
            rows,
            more_rows,
            gaps: gaps.iter().take(MAX_GAPS).map(|said| pair(said).1).collect(),
        }
    }
}

/// Who waits, a process and a thing each: those that the first finding is about, then the rest by time; what rests comes last.
fn entries<'a>(report: &'a Report, first: Option<&Finding>) -> Vec<Entry<'a>> {
    type Place<'a> = (u32, Cause, ResourceKind, &'a str, Option<&'a str>);
    let mut places: HashMap<Place<'a>, Vec<(&'a Wait, Ns)>> = HashMap::new();
    for wait in report.waits.iter().filter(|wait| !wait.cause.on_cpu()) {
        let thing = (wait.resource.kind, wait.resource.name.as_str());
        let place = (
            wait.asker.pid,
            wait.cause,
            thing.0,
            thing.1,
            wait.asker.frame.as_deref(),
        );
        places.entry(place).or_default().push((wait, wait.ns));
    }
    let mut entries: Vec<Entry<'a>> = (places.into_iter())
        .map(|((_, cause, ..), mut members)| {
            members.sort_by_key(|(wait, ns)| (Reverse(*ns), wait.asker.tid));
            Entry {
                cause,
                ns: members.iter().map(|(_, ns)| ns).sum(),
                members,
                several_places: false,
                error: 0,
            }
        })
        .collect();
    let leads = |entry: &Entry<'_>| first.is_some_and(|first| tells_of(first, entry));
    entries.sort_by_cached_key(|entry| {
        let tid = entry.largest().map(|wait| wait.asker.tid);
        let leads = leads(entry);
        (!leads, rests(entry, leads), Reverse(entry.ns), entry.cause, tid)
    });
    entries
}

/// Whether an entry is what programs do while they have nothing to do.
fn rests(entry: &Entry<'_>, leads: bool) -> bool {
    entry.cause.rests() && !leads
}

fn row(sheet: &mut Sheet, report: &Report, entry: &Entry<'_>, first: Option<&Finding>) -> LookRow {
    entry::write(sheet, report, entry, Depth::Stacks, true);
    let said = sheet.take_said();
    let lines: Vec<(String, String)> = said.iter().take(MAX_LINES).map(pair).collect();
    let wait = entry.largest();
    let mut what = entry.cause.phrase().to_owned();
    if let Some(name) = wait.and_then(beside_the_phrase) {
        what.push_str(": ");
        what.push_str(name);
    }
    let behind = steps(report, entry)
        .into_iter()
        .map(|step| step_of(sheet, report, step));
    let behind = behind.collect();
    let leads = first.is_some_and(|first| tells_of(first, entry));
    let mut about = Vec::new();
    for one in (report.findings.iter()).filter(|finding| findings_count(report) && tells_of(finding, entry)) {
        finding::write(sheet, one, finding::Title::Here, report.subject.wall_ns, true);
        about.extend(sheet.take_said().iter().map(pair));
    }
    about.truncate(MAX_LINES);
    LookRow {
        key: key(entry),
        cause: entry.cause,
        who: bounded(members(sheet, report, entry, true).unwrap_or_default()),
        what: bounded(what),
        ns: entry.ns,
        longest_ns: entry
            .members
            .iter()
            .map(|(wait, _)| wait.max_ns)
            .max()
            .unwrap_or(0),
        count: entry.sum(|wait| wait.count),
        open: entry.open(),
        rests: rests(entry, leads),
        behind,
        lines,
        has_stack: entry.members.iter().any(|(wait, _)| !wait.asker.stack.is_empty()),
        findings: about,
    }
}

/// What tells a row from others, in this look and in the next.
fn key(entry: &Entry<'_>) -> String {
    let wait = entry.largest();
    let of = |text: fn(&Wait) -> &str| wait.map(text).unwrap_or_default();
    let pid = wait.map_or(0, |wait| wait.asker.pid);
    bounded(format!(
        "{pid} {} {} {}",
        entry.cause.id(),
        of(|wait| &wait.resource.name),
        of(|wait| wait.asker.frame.as_deref().unwrap_or_default())
    ))
}

fn step_of(sheet: &Sheet, report: &Report, step: Step<'_>) -> LookStep {
    LookStep {
        who: bounded(thread(
            sheet,
            report,
            (step.pid, step.tid),
            (step.process, step.thread),
            None,
        )),
        doing: step.doing,
        ns: step.ns,
    }
}

/// A row's label and words.
fn pair(said: &Said) -> (String, String) {
    (bounded(said.lead.trim().to_owned()), bounded(said.text()))
}

/// No longer than a line may be.
fn bounded(mut text: String) -> String {
    if text.len() > MAX_BYTES_OF_LINE {
        let end = (0..=MAX_BYTES_OF_LINE)
            .rev()
            .find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// What to do about a finding.
fn remedy(finding: &Finding) -> Option<(String, Option<String>)> {
    let remedy = finding.remedies.iter().find(|remedy| !remedy.pointless)?;
    Some((bounded(remedy.text.clone()), remedy.command.clone().map(bounded)))
}

/// Threads that wait for work for most of their time, and how many there are.
fn idle(report: &Report) -> (u32, u32) {
    let idle = |thread: &&Thread| {
        let rests = thread.causes.iter().filter(|share| share.cause.rests());
        rests.map(|share| share.ns).sum::<Ns>().saturating_mul(2) > thread.wall_ns
    };
    let count = |threads: u32, thread: &Thread| threads.saturating_add(thread.threads);
    (
        report.threads.iter().filter(idle).fold(0, count),
        report.threads.iter().fold(0, count),
    )
}

/// Programs that used CPUs most.
fn running(report: &Report) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Ns> = BTreeMap::new();
    for thread in &report.threads {
        let cpu = thread.causes.iter().filter(|share| share.cause.on_cpu());
        *by_name.entry(&thread.process).or_default() += cpu.map(|share| share.ns).sum::<Ns>();
    }
    let mut most: Vec<(&str, Ns)> = by_name.into_iter().filter(|(_, ns)| *ns > 0).collect();
    most.sort_by_key(|(_, ns)| Reverse(*ns));
    let wall = report.subject.wall_ns.max(1);
    let said = |(name, ns): (&str, Ns)| bounded(format!("{name} {}", percent(ns, wall)));
    most.into_iter().take(MAX_RUNNING).map(said).collect()
}

/// Figures of the machine in words, each over the whole time: `disk vda 97.0 % busy`.
#[must_use]
pub fn machine_words(figures: &HostFigures) -> Vec<String> {
    let mean = |line: &HostLine| {
        let known = || line.shares.iter().flatten();
        let count = known().count();
        (count > 0).then(|| known().sum::<f64>() / count as f64)
    };
    let words = |line: &HostLine| {
        let share = mean(line).filter(|share| *share >= MIN_SHARE)?;
        let share = holdup_evidence::units::share(share);
        Some(match line.figure {
            HostFigure::CpuBusy => format!("CPUs {share} busy"),
            HostFigure::CpuIowait => format!("CPUs {share} idle with a task waiting for a disk"),
            HostFigure::PressureCpu => format!("{share} of the time a task was short of CPU"),
            HostFigure::PressureMemory => format!("{share} short of memory"),
            HostFigure::PressureIo => format!("{share} short of disk"),
            HostFigure::DiskBusy => format!("disk {} {share} busy", line.of),
        })
    };
    figures.lines.iter().filter_map(words).map(bounded).collect()
}

#[cfg(test)]
mod tests;
