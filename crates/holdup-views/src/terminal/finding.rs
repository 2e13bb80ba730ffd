//! One finding: what is wrong, how we know, what to do, what not to do.

use crate::headline::remark;
use crate::prediction::gain;
use crate::sheet::{Paint, Row, Sheet};
use holdup_evidence::Ns;
use holdup_model::finding::Severity;
use holdup_model::report::{Finding, Remedy, Report};

/// Column at which the words of evidence and remedies begin.
const WORDS: usize = 13;

/// Heads the finding whose title is the first line of the page already: below it stands why that is so.
const WHY: &str = "Why";

/// Where the title of a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Title {
    /// Above its evidence.
    Here,
    /// In the first line of the page.
    IsHeadline,
}

/// The finding's title line; its rule's id at the edge.
pub(super) fn title(sheet: &mut Sheet, finding: &Finding, title: Title) {
    let paint = match finding.severity {
        Severity::Note => Paint::Bold,
        Severity::Warning => Paint::Yellow,
        Severity::Critical => Paint::Red,
    };
    let words = match title {
        Title::Here => &finding.title,
        Title::IsHeadline => WHY,
    };
    let mut body = vec![sheet.words(words).paint(paint)];
    // The first line of the page begins with it.
    if let Some(remark) = remark(finding).filter(|_| title == Title::Here) {
        body.push(sheet.words(&format!("({remark})")));
    }
    let edge = sheet.name(&finding.rule).paint(Paint::Dim);
    sheet.row(Row {
        indent: 2,
        hang: Some(4),
        body,
        edge: Some(edge),
        ..Row::default()
    });
}

/// The whole finding; `elapsed` is what the command took. With `sources`, each piece of evidence says where it was seen.
pub(crate) fn write(sheet: &mut Sheet, finding: &Finding, at: Title, elapsed: Ns, sources: bool) {
    title(sheet, finding, at);
    for (at, evidence) in finding.evidence.iter().enumerate() {
        let mut body = vec![sheet.words(&evidence.text)];
        if sources && !evidence.source.is_empty() {
            body.push(sheet.words(&format!("({})", evidence.source)).paint(Paint::Dim));
        }
        labelled(sheet, if at == 0 { "evidence" } else { "" }, body);
    }
    let (not, to_do): (Vec<&Remedy>, Vec<&Remedy>) =
        finding.remedies.iter().partition(|remedy| remedy.pointless);
    for (at, remedy) in to_do.into_iter().enumerate() {
        remedy_rows(sheet, if at == 0 { "do" } else { "" }, remedy);
    }
    if let Some(words) = gain(finding, elapsed) {
        labelled(sheet, "gain", vec![sheet.words(&words)]);
    }
    for (at, remedy) in not.into_iter().enumerate() {
        labelled(
            sheet,
            if at == 0 { "no help" } else { "" },
            vec![sheet.words(&remedy.text)],
        );
    }
}

/// A remedy, whether it is safe, the command, the risk.
fn remedy_rows(sheet: &mut Sheet, label: &str, remedy: &Remedy) {
    let mark = if remedy.safe {
        sheet.name("safe").after(3)
    } else {
        sheet.name("changes the system").after(3).paint(Paint::Yellow)
    };
    labelled(sheet, label, vec![sheet.words(&remedy.text), mark]);
    if let Some(command) = remedy.command.as_deref() {
        labelled(
            sheet,
            "",
            vec![sheet.words(&format!("$ {command}")).paint(Paint::Bold)],
        );
    }
    if let Some(risk) = remedy.risk.as_deref() {
        labelled(sheet, "", vec![sheet.words(&format!("risk: {risk}"))]);
    }
}

/// The page to read about the first finding.
pub(super) fn page_of_first(sheet: &mut Sheet, report: &Report) {
    if let Some(first) = report.findings.first() {
        let page = sheet
            .name(&format!("holdup explain {}", first.rule))
            .paint(Paint::Dim);
        sheet.line(2, vec![page]);
    }
}

fn labelled(sheet: &mut Sheet, label: &str, body: Vec<crate::sheet::Piece>) {
    let lead = sheet.name(&format!("    {label}")).paint(Paint::Dim);
    sheet.led(vec![lead], WORDS, body);
}
