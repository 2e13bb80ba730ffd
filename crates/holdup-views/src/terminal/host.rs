//! The report of `holdup host`: the sentence, what rules found, facts that wait to hurt, each resource with who uses it, who was
//! blocked in what, randomness.
//!
//! In: a report with a host. Out: rows. Where nothing is wrong, a screen; on `-v` everything.

use super::{finding, jvm, margins, randomness, recorded};
use crate::budget;
use crate::headline::Headline;
use crate::sheet::{Paint, Piece, Row, Sheet};
use crate::units::{counted, duration};
use holdup_evidence::Cause;
use holdup_model::finding::Severity;
use holdup_model::randomness::State;
use holdup_model::report::{BlockedTasks, Finding, Host, Report};

/// Column at which the subject begins in the header.
const HEADER: usize = 10;

/// Column at which the words begin behind a resource's name.
const WORDS: usize = 18;

/// Rows of blocked tasks without `-v`, and the least share of a task at a time that is reported.
const BLOCKED: usize = 4;
const WORTH: f64 = 0.1;

/// Writes it.
pub(super) fn write(sheet: &mut Sheet, report: &Report, host: &Host) {
    let style = *sheet.style();
    if style.quiet {
        verdict(sheet, host);
        for one in &report.findings {
            finding::title(sheet, one, finding::Title::Here);
        }
        margins::gaps(sheet, report);
        return;
    }
    let first = worst(report);
    opening(sheet, report, host, first);
    sheet.blank();
    for (at, one) in report.findings.iter().enumerate() {
        let title = match at == 0 && first.is_some() {
            true => finding::Title::IsHeadline,
            false => finding::Title::Here,
        };
        if one.severity == Severity::Note && !style.verbose {
            finding::title(sheet, one, title);
        } else {
            finding::write(sheet, one, title, report.subject.wall_ns, style.verbose);
            sheet.blank();
        }
    }
    if !host.facts.is_empty() {
        sheet.blank();
        heading(sheet, "Notes");
        facts(sheet, host);
    }
    sheet.blank();
    resources(sheet, host);
    blocked(sheet, host, style.verbose);
    sheet.blank();
    // Of what is in order one row is enough.
    let all = style.verbose || host.randomness.iter().any(|one| one.state == State::Poor);
    if all {
        randomness::section(sheet, &host.randomness);
    } else if let Some(first) = host.randomness.first() {
        let gist = first.text.split(": ").next().unwrap_or_default();
        let found = format!("{}: {gist} (more with -v)", first.about);
        labelled(sheet, "randomness", vec![sheet.words(&found)]);
    }
    sheet.blank();
    margins::gaps(sheet, report);
    if style.verbose {
        margins::other_rules(sheet, report);
    }
    sheet.blank();
    foot(sheet, report, host);
}

/// The first lines: what is wrong and below it the machine and its load, or those where nothing is.
fn opening(sheet: &mut Sheet, report: &Report, host: &Host, first: Option<&Finding>) {
    if let Some(first) = first {
        margins::headline(sheet, &Headline::of(first));
    }
    header(sheet, report, host, first.is_some());
    if first.is_some() {
        let load = vec![sheet.words(&host.verdict).paint(Paint::Dim)];
        sheet.line(HEADER, load);
    }
    recorded::write(sheet, report);
    jvm::write(sheet, report);
    sheet.blank();
    if first.is_none() {
        verdict(sheet, host);
    }
}

/// The finding that stands for the whole: the first, unless it is a note.
pub(super) fn worst(report: &Report) -> Option<&Finding> {
    report
        .findings
        .first()
        .filter(|first| first.severity > Severity::Note)
}

/// ` holdup   this machine, 10.0 s   Linux 6.1.0   2 CPUs   214 threads`; without the tool's name where a headline is before it.
pub(super) fn header(sheet: &mut Sheet, report: &Report, host: &Host, below_headline: bool) {
    let watched = format!("this machine, {}", duration(report.subject.wall_ns));
    let mut body = vec![sheet.name(&watched).paint(Paint::Bold)];
    if let Some(release) = &host.release {
        body.push(sheet.name(&format!("Linux {release}")).after(3));
    }
    if let Some(cpus) = host.cpus {
        body.push(sheet.name(&counted(u64::from(cpus), "CPU", "CPUs")).after(3));
    }
    if host.threads > 0 {
        body.push(sheet.name(&counted(host.threads, "thread", "threads")).after(3));
    }
    let lead = match below_headline {
        true => Vec::new(),
        false => vec![sheet.name(" holdup").paint(Paint::Dim)],
    };
    let body = match below_headline {
        true => body.into_iter().map(|piece| piece.paint(Paint::Dim)).collect(),
        false => body,
    };
    sheet.led(lead, HEADER, body);
}

/// The sentence.
pub(super) fn verdict(sheet: &mut Sheet, host: &Host) {
    sheet.line(2, vec![sheet.words(&host.verdict).paint(Paint::Bold)]);
}

/// Facts that wait to hurt.
pub(super) fn facts(sheet: &mut Sheet, host: &Host) {
    for fact in &host.facts {
        sheet.line(4, vec![sheet.words(&fact.text)]);
    }
}

/// Each resource with who uses it.
pub(super) fn resources(sheet: &mut Sheet, host: &Host) {
    for one in &host.resources {
        let paint = if one.short { Paint::Yellow } else { Paint::Plain };
        let body = vec![sheet.words(&one.text).paint(paint)];
        // Without colours, too, it is to be seen which is short.
        let mark = if one.short { "! " } else { "  " };
        let lead = sheet.name(&format!("{mark}{}", one.name));
        sheet.led(
            vec![lead.paint(if one.short { Paint::Yellow } else { Paint::Dim })],
            WORDS,
            body,
        );
        if !one.users.is_empty() {
            let users = vec![sheet.words(&one.users.join(", ")).paint(Paint::Dim)];
            labelled(sheet, "", users);
        }
    }
}

/// Who was blocked in what.
pub(super) fn blocked(sheet: &mut Sheet, host: &Host, verbose: bool) {
    let blockeds: Vec<&BlockedTasks> = host
        .blocked
        .iter()
        // The kernel's workers pass through that state when they have nothing to do.
        .filter(|one| verbose || (one.tasks >= WORTH && one.cause != Cause::Idle))
        .collect();
    if blockeds.is_empty() {
        return;
    }
    sheet.blank();
    let lists = counted(u64::from(host.lists), "list", "lists");
    heading(
        sheet,
        &format!("Tasks blocked in the kernel (state D), on average over {lists} of all tasks"),
    );
    let shown = if verbose { blockeds.len() } else { BLOCKED };
    for one in blockeds.iter().take(shown) {
        let mut words = one.process.clone();
        if let Some(function) = &one.function {
            words.push_str(&format!(" at {function}"));
        }
        if one.cause != Cause::Unknown {
            words.push_str(&format!(": {}", one.cause.phrase()));
        }
        if !one.disks.is_empty() {
            words.push_str(&format!(", {}", one.disks.join(" and ")));
        }
        if let Some(file) = &one.file {
            words.push_str(&format!(", as at {file}"));
        }
        words.push_str(&format!(", in {:.0} % of the lists", one.share * 100.0));
        let edge = (one.cause != Cause::Unknown).then(|| sheet.name(one.cause.id()).paint(Paint::Dim));
        sheet.row(Row {
            lead: vec![sheet.name(&format!("    {:>6.1}", one.tasks)).paint(Paint::Bold)],
            indent: 12,
            body: vec![sheet.words(&words)],
            edge,
            ..Row::default()
        });
    }
    if let Some(more) = blockeds.len().checked_sub(shown).filter(|more| *more > 0) {
        let words = format!("and {}", counted(more as u64, "other", "others"));
        sheet.line(12, vec![sheet.words(&words).paint(Paint::Dim)]);
    }
}

/// What it cost, and the page to read.
pub(super) fn foot(sheet: &mut Sheet, report: &Report, host: &Host) {
    let cost = report.coverage.own_cost_ns;
    let wall = report.subject.wall_ns.max(1);
    let words = format!(
        "overhead: {} of CPU time, {:.1} % of one CPU; {} of all tasks",
        duration(cost),
        cost as f64 * 100.0 / wall as f64,
        counted(u64::from(host.lists), "list", "lists")
    );
    sheet.line(2, vec![sheet.words(&words).paint(Paint::Dim)]);
    if let Some(words) = report.coverage.budget.as_ref().and_then(budget::words) {
        sheet.line(2, vec![sheet.words(&words).paint(Paint::Dim)]);
    }
    finding::page_of_first(sheet, report);
}

fn heading(sheet: &mut Sheet, words: &str) {
    sheet.line(2, vec![sheet.words(words).paint(Paint::Bold)]);
}

fn labelled(sheet: &mut Sheet, label: &str, body: Vec<Piece>) {
    let lead = sheet.name(&format!("  {label}")).paint(Paint::Dim);
    sheet.led(vec![lead], WORDS, body);
}
