//! The report as a person reads it: what, how long, who asked, who is in the way, what to do.
//!
//! In: a report and a [`Style`]. Out: text that fits the style's columns, the verdict in one sentence first, then plain words, numbers beside
//! them, stacks and tables underneath on `-v`. Choosing is [`picture`]'s, setting is the sheet's; what is
//! between them only says it. Nothing that a name in the report contains can move the cursor, break a line
//! or change a colour.

mod artefacts;
mod boot;
mod churn;
mod comparison;
mod elsewhere;
pub(crate) mod entry;
pub(crate) mod experiment;
pub(crate) mod finding;
mod fleet;
mod host;
mod jvm;
pub(crate) mod margins;
pub(crate) mod picture;
mod prediction;
pub mod randomness;
mod recorded;
mod requests;
pub(crate) mod scale;
mod tasks;
pub(crate) mod way;
pub(crate) mod who;
pub(crate) mod words;

use crate::headline::headline;
use crate::sheet::{Paint, Sheet};
use crate::style::Style;
use entry::Depth;
use finding::Title;
use holdup_model::report::{Report, SubjectKind};
use picture::{Picture, picture, too_little_seen};
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// When writing to `out` fails.
pub fn write(report: &Report, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut sheet = Sheet::new(style);
    if let Some(part) = &report.experiment {
        experiment::write(&mut sheet, report, part);
    }
    if let (Some(store), Some(part)) = (&report.store, &report.comparison) {
        comparison::write(&mut sheet, part);
        fleet::of_store(&mut sheet, store);
    } else if let Some(part) = &report.store {
        fleet::write(&mut sheet, report, part);
    } else if let Some(part) = &report.boot {
        boot::write(&mut sheet, report, part);
    } else if let Some(part) = &report.host {
        host::write(&mut sheet, report, part);
    } else if let Some(part) = &report.comparison {
        comparison::write(&mut sheet, part);
    } else if let Some(part) = &report.scaling {
        scale::write(&mut sheet, report, part);
    } else if report.subject.kind == SubjectKind::Read {
        artefacts::write(&mut sheet, report);
    } else if style.quiet && report.experiment.is_some() {
        margins::gaps(&mut sheet, report);
    } else if style.quiet {
        quiet(&mut sheet, report);
    } else {
        whole(&mut sheet, report);
    }
    out.write_all(sheet.into_text().as_bytes())
}

/// `-q`: the first lines of the entries, the findings' titles, and what was not seen.
fn quiet(sheet: &mut Sheet, report: &Report) {
    let blind = too_little_seen(report);
    if blind {
        margins::no_verdict(sheet, report);
    } else if margins::says_nothing_found(report) {
        margins::nothing_found(sheet, report);
    }
    for one in &picture(report, false).tiles {
        entry::write(sheet, report, one, Depth::Line, false);
    }
    for one in report.findings.iter().filter(|_| !blind) {
        finding::title(sheet, one, Title::Here);
    }
    margins::gaps(sheet, report);
}

fn whole(sheet: &mut Sheet, report: &Report) {
    let verbose = sheet.style().verbose;
    let blind = too_little_seen(report);
    let healthy = margins::healthy(report);
    let nothing_found = margins::says_nothing_found(report);
    // What came of an experiment is said before, and is the answer.
    let headline = report.experiment.is_none().then(|| headline(report));
    if let Some(headline) = &headline {
        margins::headline(sheet, headline);
    }
    margins::header(sheet, report, headline.is_some());
    about(sheet, report);
    sheet.blank();
    match &headline {
        Some(_) if blind => margins::beside_no_verdict(sheet),
        None if blind => margins::no_verdict(sheet, report),
        Some(_) if nothing_found => margins::beside_nothing_found(sheet, report),
        None if nothing_found => margins::nothing_found(sheet, report),
        _ => {}
    }
    sheet.blank();
    let depth = match (verbose, healthy) {
        (true, _) => Depth::Stacks,
        (false, false) => Depth::Full,
        (false, true) => Depth::Line,
    };
    // What all threads of a machine wait for is mostly ordinary: a line of it for each cause is enough before who waits behind whom.
    let of_waits = match depth {
        Depth::Full if margins::of_machine(report) => Depth::Line,
        depth => depth,
    };
    entries(sheet, report, &picture(report, verbose), of_waits);
    sheet.blank();
    prediction::write(sheet, report);
    for (at, one) in report.findings.iter().filter(|_| !blind).enumerate() {
        let said = headline
            .as_ref()
            .is_some_and(|headline| headline.is_first_finding);
        let title = match at == 0 && said {
            true => Title::IsHeadline,
            false => Title::Here,
        };
        sheet.blank();
        if depth == Depth::Line {
            finding::title(sheet, one, title);
        } else {
            finding::write(sheet, one, title, report.subject.wall_ns, verbose);
        }
    }
    sheet.blank();
    margins::living(sheet, report);
    sheet.blank();
    margins::gaps(sheet, report);
    if verbose {
        margins::threads(sheet, report);
        margins::other_rules(sheet, report);
    }
    sheet.blank();
    let page = margins::page_to_read(report);
    margins::accounting(sheet, report, page.filter(|_| !healthy));
}

/// What is known of the observed program beside its waits.
fn about(sheet: &mut Sheet, report: &Report) {
    recorded::write(sheet, report);
    elsewhere::write(sheet, report);
    jvm::write(sheet, report);
    tasks::write(sheet, report);
    requests::write(sheet, report);
    churn::write(sheet, report);
}

/// Where the time went, and who waited for that.
fn entries(sheet: &mut Sheet, report: &Report, picture: &Picture, depth: Depth) {
    for one in &picture.tiles {
        entry::write(sheet, report, one, depth, false);
    }
    entry::write_rest(sheet, report.whole_ns(), &picture.rest);
    if picture.handed_on.is_empty() || depth == Depth::Line {
        return;
    }
    sheet.blank();
    let body = vec![sheet.words("Threads blocked by the above:").paint(Paint::Dim)];
    sheet.line(2, body);
    for one in &picture.handed_on {
        entry::write(sheet, report, one, depth, true);
    }
}
