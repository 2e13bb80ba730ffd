//! The report of `holdup boot`: the sentence, the time line, the critical chain and its holes, then what rules found, and of
//! this machine its randomness.
//!
//! In: a report with a boot. Out: rows. What was read and what of it was understood is [`artefacts`]' to say, in the same words
//! as for `holdup read`.

use super::{artefacts, finding, margins, randomness};
use crate::sheet::{Paint, Piece, Sheet};
use crate::units::{duration, percent};
use holdup_evidence::Ns;
use holdup_model::finding::Severity;
use holdup_model::report::MilestoneKind;
use holdup_model::report::{Boot, Milestone, Report};

/// Column at which the words begin behind a time.
const WORDS: usize = 15;

/// Column at which the host and the kernel begin in the header.
const HEADER: usize = 10;

/// Units of the critical chain that are shown without `-v`: the last ones, which the others waited for.
const CHAIN: usize = 8;

/// Waits that are shown without `-v`.
const WAITS: usize = 5;

/// Writes it.
pub(super) fn write(sheet: &mut Sheet, report: &Report, boot: &Boot) {
    let style = *sheet.style();
    if !style.quiet {
        header(sheet, report, boot);
        sheet.blank();
    }
    verdict(sheet, boot);
    if style.quiet {
        for one in &report.findings {
            finding::title(sheet, one, finding::Title::Here);
        }
        return;
    }
    silent(sheet, report);
    sheet.blank();
    time_line(sheet, boot);
    waits(sheet, boot);
    chain(sheet, boot);
    sheet.blank();
    for one in &report.findings {
        if one.severity == Severity::Note && !style.verbose {
            finding::title(sheet, one, finding::Title::Here);
        } else {
            finding::write(sheet, one, finding::Title::Here, report.subject.wall_ns, true);
            sheet.blank();
        }
    }
    if !boot.randomness.is_empty() {
        randomness::section(sheet, &boot.randomness);
    }
    sheet.blank();
    artefacts::understood(sheet, report);
    missing(sheet, boot);
    if style.verbose {
        margins::other_rules(sheet, report);
    }
    sheet.blank();
    finding::page_of_first(sheet, report);
}

/// ` holdup   boot of host1   Linux 6.1.0-56-amd64   kernel 2.1 s + userspace 9.8 s`.
pub(super) fn header(sheet: &mut Sheet, report: &Report, boot: &Boot) {
    let subject = match (&boot.host, report.subject.command.as_slice()) {
        (Some(host), _) => format!("boot of {host}"),
        (None, [only]) => format!("boot: {only}"),
        (None, _) => "boot".to_owned(),
    };
    let mut body = vec![sheet.name(&subject).paint(Paint::Bold)];
    if let Some(release) = &boot.release {
        body.push(sheet.name(&format!("Linux {release}")).after(3));
    }
    let phases = boot.phases.iter();
    let phases: Vec<String> = phases
        .map(|phase| format!("{} {}", phase.name, duration(phase.ns)))
        .collect();
    if !phases.is_empty() {
        body.push(sheet.name(&phases.join(" + ")).after(3));
    }
    let lead = vec![sheet.name(" holdup").paint(Paint::Dim)];
    sheet.led(lead, HEADER, body);
}

/// The sentence.
pub(super) fn verdict(sheet: &mut Sheet, boot: &Boot) {
    sheet.line(2, vec![sheet.words(&boot.verdict).paint(Paint::Bold)]);
}

/// What of the boot could not be seen, and artefacts that are of another.
pub(super) fn missing(sheet: &mut Sheet, boot: &Boot) {
    for sentence in &boot.missing {
        labelled(sheet, "not observed", vec![sheet.words(sentence)]);
    }
    if !boot.apart.is_empty() {
        let words = format!(
            "from another boot, from long after it, or without a comparable time: {}",
            boot.apart.join(", ")
        );
        labelled(
            sheet,
            "other boot",
            vec![sheet.words(&words).paint(Paint::Yellow)],
        );
    }
}

/// How many rules could not tell, where nothing was found.
pub(super) fn silent(sheet: &mut Sheet, report: &Report) {
    let open = report.cannot_tell.len() as u64;
    if report.findings.is_empty() && open > 0 {
        let words = format!(
            "{} cannot tell from these artefacts. -v lists what is missing.",
            crate::units::counted(open, "rule", "rules")
        );
        sheet.line(2, vec![sheet.words(&words).paint(Paint::Dim)]);
    }
}

/// What came when, with the places where it stands.
pub(super) fn time_line(sheet: &mut Sheet, boot: &Boot) {
    if boot.milestones.is_empty() {
        return;
    }
    let zero = match (boot.from_kernel, boot.taken_late) {
        (true, false) => "since the kernel's first line",
        (true, true) => "since the journal stored the kernel's first line, which is older",
        (false, _) => "since the first line of the log",
    };
    heading(sheet, "Time line", zero);
    for one in &boot.milestones {
        let mut body = vec![sheet.words(&one.text).paint(paint_of(one))];
        if !one.with.is_empty() {
            let words = format!("up at the same instant: {}", one.with.join(", "));
            body.push(sheet.words(&format!("({words})")).paint(Paint::Yellow));
        }
        body.push(sheet.name(place(&one.source)).paint(Paint::Dim).after(2));
        at(sheet, one.at_ns, body);
    }
    sheet.blank();
}

fn paint_of(one: &Milestone) -> Paint {
    match one.what {
        MilestoneKind::TimedOut | MilestoneKind::DeviceMissing | MilestoneKind::Pause => Paint::Yellow,
        MilestoneKind::RandomSeeded => Paint::Bold,
        _ => Paint::Plain,
    }
}

/// Who waited for what, as far as it is proved.
pub(super) fn waits(sheet: &mut Sheet, boot: &Boot) {
    if boot.waits.is_empty() {
        return;
    }
    heading(
        sheet,
        "Waited",
        "each from its first line to its last; waits may overlap",
    );
    let shown = if sheet.style().verbose {
        boot.waits.len()
    } else {
        WAITS
    };
    for wait in boot.waits.iter().take(shown) {
        let mut body = vec![sheet.name(&wait.unit).paint(Paint::Bold), sheet.words(&wait.text)];
        if let Some(took) = boot.took_ns.filter(|took| *took >= wait.ns && !boot.at_least) {
            body.push(sheet.words(&format!("({} of the boot)", percent(wait.ns, took))));
        }
        body.push(sheet.name(place(&wait.source)).paint(Paint::Dim).after(2));
        if wait.source != wait.ended {
            body.push(sheet.name(place(&wait.ended)).paint(Paint::Dim));
        }
        let lead = format!("{:>12}", duration(wait.ns));
        led(sheet, &lead, body);
    }
    more(sheet, boot.waits.len().saturating_sub(shown));
    sheet.blank();
}

/// The chain from its end, each hole where it is.
pub(super) fn chain(sheet: &mut Sheet, boot: &Boot) {
    if boot.chain.is_empty() {
        return;
    }
    heading(
        sheet,
        "Critical chain",
        "since systemd began; each unit waited for the next",
    );
    let shown = if sheet.style().verbose {
        boot.chain.len()
    } else {
        CHAIN
    };
    for unit in boot.chain.iter().take(shown) {
        let mut body = vec![sheet.name(&unit.unit)];
        if let Some(took) = unit.took_ns {
            body.push(sheet.words(&format!("took {}", duration(took))));
        }
        at(sheet, unit.reached_ns, body);
        for hole in boot.holes.iter().filter(|hole| hole.unit == unit.unit) {
            let what = hole.what.as_deref().unwrap_or("reason not known");
            let words = format!("a gap of {} after {}: {what}", duration(hole.ns), hole.after);
            led(sheet, "", vec![sheet.words(&words).paint(Paint::Yellow)]);
        }
    }
    more(sheet, boot.chain.len().saturating_sub(shown));
    sheet.blank();
}

/// Where something stands, without the folders: they stand below, with what was read.
fn place(source: &str) -> &str {
    source.rsplit('/').next().unwrap_or(source)
}

fn more(sheet: &mut Sheet, count: usize) {
    if count > 0 {
        let words = format!("and {count} more: -v lists them");
        led(sheet, "", vec![sheet.words(&words).paint(Paint::Dim)]);
    }
}

fn heading(sheet: &mut Sheet, title: &str, aside: &str) {
    let body = vec![
        sheet.words(title).paint(Paint::Bold),
        sheet.words(aside).paint(Paint::Dim).after(2),
    ];
    sheet.line(2, body);
}

/// A time, to the millisecond as the kernel's log has it, and words.
fn at(sheet: &mut Sheet, ns: Ns, body: Vec<Piece>) {
    let lead = format!("{:>12}", crate::units::seconds(ns));
    led(sheet, &lead, body);
}

fn led(sheet: &mut Sheet, lead: &str, body: Vec<Piece>) {
    let lead = vec![sheet.name(lead)];
    sheet.led(lead, WORDS, body);
}

fn labelled(sheet: &mut Sheet, label: &str, body: Vec<Piece>) {
    let lead = sheet.name(&format!("  {label}")).paint(Paint::Dim);
    sheet.led(vec![lead], 13, body);
}
