//! The terminal's words for a view that sets them itself: what is said, without lines and columns.
//!
//! In: a report. Out: the same rows that [`write`](super::write) prints, sorted by what they are about, and the verdict in one
//! line. So no other view has words of its own for what the terminal says, and none can say something else.

use super::entry::Depth;
use super::picture::{Entry, picture};
use super::{
    artefacts, boot, comparison, entry, experiment, host, jvm, margins, prediction, randomness, recorded,
    scale,
};
use crate::sheet::{Said, Sheet};
use crate::style::Style;
use crate::units::{duration, duration_beside};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::Severity;
use holdup_model::report::{Report, SubjectKind, Wait};
use std::collections::HashMap;

/// Everything that the terminal says, apart from findings: those stand in the report in plain words.
#[derive(Debug, Default)]
pub(crate) struct TerminalWords {
    /// Command and figures.
    pub(crate) header: Vec<Said>,
    /// What it is: what was recorded of it, processes elsewhere, machines, requests, what is made anew.
    pub(crate) about: Vec<Said>,
    /// The sentences of the verdict that are no findings.
    pub(crate) verdict: Vec<Said>,
    /// Where the time went.
    pub(crate) tiles: Vec<TileWords>,
    /// Who waited for that.
    pub(crate) handed_on: Vec<TileWords>,
    /// What has no entry: cause and time.
    pub(crate) rest: Vec<(Cause, Ns)>,
    /// Further parts, with what each is called.
    pub(crate) parts: Vec<(&'static str, Vec<Said>)>,
    /// What was lost, and what could not be seen.
    pub(crate) gaps: Vec<Said>,
    /// What lives on.
    pub(crate) living: Vec<Said>,
    /// How far it can be trusted.
    pub(crate) accounting: Vec<Said>,
    /// The page of `holdup explain` to read.
    pub(crate) page: Option<String>,
}

/// An entry of where the time went.
#[derive(Debug)]
pub(crate) struct TileWords {
    pub(crate) cause: Cause,
    pub(crate) ns: Ns,
    pub(crate) open: bool,
    pub(crate) share: String,
    pub(crate) time: String,
    /// Its rows, the first line too.
    pub(crate) rows: Vec<Said>,
    /// Its waits, as they are numbered in the report.
    pub(crate) waits: Vec<usize>,
}

/// Whether findings are to be reported: too little seen is no ground for any.
pub(crate) fn findings_count(report: &Report) -> bool {
    let live = report.boot.is_none()
        && report.host.is_none()
        && report.comparison.is_none()
        && report.subject.kind != SubjectKind::Read;
    !live || !margins::has_no_verdict(report)
}

/// Takes the report's words.
pub(crate) fn terminal_words(report: &Report) -> TerminalWords {
    let style = Style {
        width: usize::MAX,
        ..Style::default()
    };
    let mut sheet = Sheet::new(&style);
    let mut result = TerminalWords::default();
    if let Some(one) = &report.host {
        of_host(&mut sheet, report, one, &mut result);
    } else if let Some(one) = &report.boot {
        of_boot(&mut sheet, report, one, &mut result);
    } else if let Some(one) = &report.scaling {
        of_scaling(&mut sheet, one, &mut result);
    } else if let Some(one) = &report.comparison {
        comparison::sentences(&mut sheet, one);
        result.verdict = sheet.take_said();
    } else if report.subject.kind == SubjectKind::Read {
        artefacts::header(&mut sheet, report, false);
        result.header = sheet.take_said();
        if !report.findings.iter().any(|one| one.severity > Severity::Note) {
            artefacts::nothing_wrong(&mut sheet, report);
        }
        result.verdict = sheet.take_said();
        artefacts::understood(&mut sheet, report);
        result.parts.push(("What was read", sheet.take_said()));
    } else {
        of_watched(&mut sheet, report, &mut result);
    }
    if report.whole_ns() > 0 {
        entries(&mut sheet, report, &mut result);
    }
    margins::gaps(&mut sheet, report);
    result.gaps = sheet.take_said();
    let findings = findings_count(report).then(|| report.findings.first()).flatten();
    result.page = findings.map(|finding| finding.rule.clone());
    result
}

fn of_host(sheet: &mut Sheet, report: &Report, one: &holdup_model::report::Host, result: &mut TerminalWords) {
    host::header(sheet, report, one, false);
    result.header = sheet.take_said();
    recorded::write(sheet, report);
    jvm::write(sheet, report);
    result.about = sheet.take_said();
    host::verdict(sheet, one);
    result.verdict = sheet.take_said();
    for (name, write) in [
        ("Resources", host::resources as fn(&mut Sheet, &_)),
        ("Notes", host::facts),
        ("Blocked in the kernel", |sheet, one| {
            host::blocked(sheet, one, true)
        }),
        ("Randomness", |sheet, one| {
            randomness::section(sheet, &one.randomness);
        }),
    ] {
        write(sheet, one);
        result.parts.push((name, sheet.take_said()));
    }
    host::foot(sheet, report, one);
    result.accounting = sheet.take_said();
}

fn of_boot(sheet: &mut Sheet, report: &Report, one: &holdup_model::report::Boot, result: &mut TerminalWords) {
    boot::header(sheet, report, one);
    result.header = sheet.take_said();
    boot::verdict(sheet, one);
    boot::silent(sheet, report);
    result.verdict = sheet.take_said();
    for (name, write) in [
        ("Time line", boot::time_line as fn(&mut Sheet, &_)),
        ("Waits", boot::waits),
        ("The critical chain", boot::chain),
        ("Randomness", |sheet, one| {
            randomness::section(sheet, &one.randomness);
        }),
        ("Not observed", boot::missing),
    ] {
        write(sheet, one);
        result.parts.push((name, sheet.take_said()));
    }
    artefacts::understood(sheet, report);
    result.parts.push(("What was read", sheet.take_said()));
}

fn of_scaling(sheet: &mut Sheet, one: &holdup_model::report::Scaling, result: &mut TerminalWords) {
    scale::header(sheet, one);
    result.header = sheet.take_said();
    scale::verdict(sheet, one);
    result.verdict = sheet.take_said();
    scale::remarks(sheet, one);
    result.parts.push(("How it was measured", sheet.take_said()));
}

fn of_watched(sheet: &mut Sheet, report: &Report, result: &mut TerminalWords) {
    if let Some(one) = &report.experiment {
        experiment::write(sheet, report, one);
        result.parts.push(("The experiment", sheet.take_said()));
    }
    margins::header(sheet, report, false);
    result.header = sheet.take_said();
    super::about(sheet, report);
    result.about = sheet.take_said();
    if margins::has_no_verdict(report) {
        margins::no_verdict(sheet, report);
    } else if margins::says_nothing_found(report) {
        margins::nothing_found(sheet, report);
    }
    result.verdict = sheet.take_said();
    prediction::write(sheet, report);
    result.parts.push(("Prediction", sheet.take_said()));
    margins::living(sheet, report);
    result.living = sheet.take_said();
    margins::accounting(sheet, report, None);
    result.accounting = sheet.take_said();
}

fn entries(sheet: &mut Sheet, report: &Report, result: &mut TerminalWords) {
    let whole = report.whole_ns();
    let numbers: HashMap<*const Wait, usize> = report
        .waits
        .iter()
        .enumerate()
        .map(|(at, wait)| (std::ptr::from_ref(wait), at))
        .collect();
    let mut tell = |one: &Entry, elsewhere: bool| {
        entry::write(sheet, report, one, Depth::Full, elsewhere);
        TileWords {
            cause: one.cause,
            ns: one.ns,
            open: one.open(),
            share: one.share(whole),
            time: {
                let about = if one.open() { "" } else { one.qualified() };
                let time = match one.so_far() > one.ns {
                    true => duration(one.so_far()),
                    false => duration_beside(one.ns, whole),
                };
                format!("{about}{time}")
            },
            rows: sheet.take_said(),
            waits: one
                .members
                .iter()
                .filter_map(|(wait, _)| numbers.get(&std::ptr::from_ref(*wait)).copied())
                .collect(),
        }
    };
    let picture = picture(report, false);
    result.tiles = picture.tiles.iter().map(|one| tell(one, false)).collect();
    result.handed_on = picture.handed_on.iter().map(|one| tell(one, true)).collect();
    result.rest = picture.rest;
}

/// The verdict in one line, for a message to somebody: what it was, what is wrong, and where most of the time went.
pub(crate) fn headline(report: &Report, result: &TerminalWords) -> String {
    let of: Vec<String> = result.header.iter().map(|said| plain(said).0).collect();
    let subject = of.first().map_or("holdup", String::as_str);
    if let Some(answer) = report.experiment.as_ref().and_then(|one| one.verdict.first()) {
        return format!("{subject}: {answer}");
    }
    if let Some(first) = host::worst(report).filter(|_| report.host.is_some()) {
        return crate::headline::line(first);
    }
    // What a machine or a boot is said to be short of is a sentence by itself, and so are what got slower and what workers do.
    let is_sentence = report.host.is_some() || report.boot.is_some();
    if is_sentence || report.scaling.is_some() || report.comparison.is_some() {
        return result
            .verdict
            .first()
            .map_or_else(|| subject.to_owned(), |said| plain(said).1);
    }
    let finding = report.findings.first().filter(|_| findings_count(report));
    let healthy = result.verdict.first().map(|said| plain(said).1);
    let what = match (healthy, finding) {
        (Some(words), _) => words,
        (None, Some(finding)) => finding.title.clone(),
        (None, None) => "time by cause".to_owned(),
    };
    let most = result.tiles.first().map(|tile| {
        let least = if tile.open { "≥" } else { "" };
        format!(
            " ({} of {}: {least}{} {})",
            tile.share,
            duration(report.whole_ns()),
            tile.time,
            tile.cause.phrase()
        )
    });
    format!("{subject}: {what}{}", most.unwrap_or_default())
}

/// The first piece of what is said, and all of it.
fn plain(said: &Said) -> (String, String) {
    let first = said.body.first().map(|(text, _, _)| text.clone());
    (first.unwrap_or_default(), said.text())
}
