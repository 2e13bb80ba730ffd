//! The report of `holdup read`: what the artefacts say, and how much of them was understood.
//!
//! In: a report of artefacts. Out: findings with the places that they quote, time where an artefact proves some, and the
//! honesty lines: what was read as what, what was not understood, what was missing to tell.

use super::entry::{self, Depth};
use super::picture::picture;
use super::{finding, margins};
use crate::headline::Headline;
use crate::sheet::{Paint, Sheet};
use crate::units::counted;
use holdup_model::finding::Severity;
use holdup_model::report::{AccountBasis, AccountLine, AccountOutcome, Artefact, FilesWithin, Report};
use std::collections::BTreeMap;

/// Column at which the file names begin in the header.
const HEADER: usize = 10;

/// Artefacts that get a line each; of more, those with trouble first, and the rest is counted.
const LISTED: usize = 12;

/// Lines of the account that are printed beside the first where nothing is wrong.
const FURTHER: usize = 4;

/// Notes that are printed whole where nothing is wrong; beside trouble only their titles are.
const NOTES: usize = 3;

/// The format of a text that is of no other.
const TEXT: &str = "text";

/// Writes it.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let style = *sheet.style();
    let trouble = report.findings.iter().any(|one| one.severity > Severity::Note);
    let headline = report.findings.first().filter(|_| trouble && !style.quiet);
    if let Some(first) = headline {
        margins::headline(sheet, &Headline::of(first));
    }
    if !trouble {
        nothing_wrong(sheet, report);
        sheet.blank();
    }
    // Of one artefact the name stands with what was read of it.
    let names = trouble || report.subject.command.len() > 1;
    if !style.quiet && names {
        header(sheet, report, headline.is_some() || !trouble);
        sheet.blank();
    }
    if report.subject.wall_ns > 0 {
        let depth = if style.quiet { Depth::Line } else { Depth::Full };
        let picture = picture(report, style.verbose);
        for one in &picture.tiles {
            entry::write(sheet, report, one, depth, false);
        }
        entry::write_rest(sheet, report.subject.wall_ns, &picture.rest);
        sheet.blank();
    }
    let mut notes = 0;
    for (at, one) in report.findings.iter().enumerate() {
        let title = match headline.is_some() && at == 0 {
            true => finding::Title::IsHeadline,
            false => finding::Title::Here,
        };
        let note = one.severity == Severity::Note;
        notes += usize::from(note);
        if style.quiet || note && (trouble || notes > NOTES) && !style.verbose {
            finding::title(sheet, one, title);
        } else {
            finding::write(sheet, one, title, report.subject.wall_ns, true);
            sheet.blank();
        }
    }
    sheet.blank();
    understood(sheet, report);
    if style.verbose {
        margins::other_rules(sheet, report);
    }
    sheet.blank();
    finding::page_of_first(sheet, report);
}

/// ` holdup   iostat.log   dump.txt`; without the tool's name where a headline is before it.
pub(super) fn header(sheet: &mut Sheet, report: &Report, below_headline: bool) {
    let names = report.subject.command.iter();
    let body = names
        .map(|name| sheet.name(name).after(3).paint(Paint::Bold))
        .collect();
    let lead = match below_headline {
        true => vec![],
        false => vec![sheet.name(" holdup").paint(Paint::Dim)],
    };
    sheet.led(lead, HEADER, body);
}

/// What there is to say where no artefact shows trouble, in the order in which it is read.
struct Verdict {
    /// The sentence.
    sentence: String,
    /// Its further clauses: the artefact's own words.
    further: Vec<String>,
    /// What is not known beside it, and where it was read.
    beside: Option<(&'static str, String)>,
    /// The next lines of the account.
    next: Vec<AccountLine>,
}

/// The largest thing, of which nothing tells whether it is too much; that all is within its norms; or that nothing could be judged.
fn verdict(report: &Report) -> Verdict {
    let account = report.account.as_deref().unwrap_or_default();
    let Some((first, rest)) = account.split_first() else {
        return Verdict {
            sentence: nothing_judged(report),
            further: Vec::new(),
            beside: None,
            next: Vec::new(),
        };
    };
    let main = first.headline.as_ref().unwrap_or(&first.text);
    let healthy = first.basis == AccountBasis::WithinNorm && report.outcome == Some(AccountOutcome::Healthy);
    let beside = match first.basis {
        AccountBasis::Reported => "Reported by the artefact itself. Not shown: its cause.",
        AccountBasis::Saturated => "Near its limit. Not shown: what waits for it.",
        AccountBasis::Largest => "The largest thing here. Not known: whether that is too much.",
        AccountBasis::WithinNorm if healthy => "Each figure is within its norm.",
        AccountBasis::WithinNorm => {
            "Within its norms. Not known: what stands in the lines that were not understood."
        }
    };
    Verdict {
        sentence: match healthy {
            true => format!("Healthy by these figures: {main}"),
            false => main.clone(),
        },
        further: first.clauses.iter().map(|clause| brief(clause)).collect(),
        beside: Some((beside, first.source.clone())),
        next: rest.iter().take(FURTHER).cloned().collect(),
    }
}

/// The first lines where no artefact shows trouble: the sentence, the artefact's own words, and what is not known.
pub(super) fn nothing_wrong(sheet: &mut Sheet, report: &Report) {
    let verdict = verdict(report);
    let lead = vec![sheet.name(" holdup").paint(Paint::Dim)];
    let body = vec![sheet.words(&verdict.sentence).paint(Paint::Bold)];
    sheet.led(lead, HEADER, body);
    for clause in &verdict.further {
        sheet.line(HEADER, vec![sheet.words(clause)]);
    }
    if let Some((beside, source)) = &verdict.beside {
        let source = sheet.name(source).after(2);
        let row = vec![sheet.words(beside).paint(Paint::Dim), source.paint(Paint::Dim)];
        sheet.line(HEADER, row);
    }
    for line in &verdict.next {
        account_line(sheet, line);
    }
}

/// Characters of an artefact's own words that the first lines have: whoever wants all of them has the place.
const QUOTED: usize = 240;

fn brief(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{} …", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// Says that nothing could be judged, and what was read: lines of text without words of failure, lines of a format that were
/// not understood, or figures of which none says how much is too much.
fn nothing_judged(report: &Report) -> String {
    let mut formats: Vec<&str> = Vec::new();
    let (mut lines, mut missed) = (0u64, 0u64);
    for one in &report.artefacts {
        lines = lines.saturating_add(one.lines);
        missed = missed.saturating_add(one.not_understood);
        if let Some(format) = one.format.as_deref().filter(|format| !formats.contains(format)) {
            formats.push(format);
        }
    }
    let read = counted(lines, "line", "lines");
    let known = match formats.as_slice() {
        [] | [TEXT] => {
            // Figures may stand in lines that nothing here judges: then that is what there is to say.
            let unread = match missed {
                0 => String::new(),
                missed => format!(" Not judged: {missed} of them, which are of no format that is known."),
            };
            return format!("No failure and no length of time is stated in words in {read} of text.{unread}");
        }
        [known] => (*known).to_owned(),
        several => format!("{} formats", several.len()),
    };
    match missed {
        0 => format!(
            "Nothing to judge: {read} of {known}, all understood, without a figure that can be judged."
        ),
        missed if missed >= lines => {
            format!("Nothing was understood: {read}, taken for {known}, of which none fits it.")
        }
        missed => format!("Nothing to judge: {read} of {known}, of which {missed} were not understood."),
    }
}

/// A further line of the account, in short, with its place: its main clause, or as much of its words as the first lines have.
fn account_line(sheet: &mut Sheet, line: &AccountLine) {
    let source = sheet.name(&line.source).paint(Paint::Dim).after(2);
    let words = line.headline.clone().unwrap_or_else(|| brief(&line.text));
    sheet.line(4, vec![sheet.words(&words), source]);
}

/// What was read as what, and what of it was understood.
pub(super) fn understood(sheet: &mut Sheet, report: &Report) {
    let quiet = sheet.style().quiet;
    let mut order: Vec<&Artefact> = report
        .artefacts
        .iter()
        .filter(|one| one.lines > 0 || !one.problems.is_empty() || one.files.is_some())
        .collect();
    order.sort_by_key(|one| one.not_understood == 0 && one.problems.is_empty());
    let shown = if sheet.style().verbose {
        order.len()
    } else {
        LISTED
    };
    for (at, artefact) in order.iter().take(shown).enumerate() {
        if quiet && artefact.not_understood == 0 && artefact.problems.is_empty() {
            continue;
        }
        one(sheet, artefact, at == 0);
    }
    if let Some(rest) = order.get(shown..).filter(|rest| !rest.is_empty() && !quiet) {
        let mut formats: BTreeMap<&str, u64> = BTreeMap::new();
        for artefact in rest {
            *formats
                .entry(artefact.format.as_deref().unwrap_or("not recognised"))
                .or_default() += 1;
        }
        let formats: Vec<String> = formats
            .iter()
            .map(|(format, count)| format!("{count} {format}"))
            .collect();
        let words = format!("and {} more: {}", rest.len(), formats.join(", "));
        labelled(sheet, "", vec![sheet.words(&words)]);
    }
}

fn one(sheet: &mut Sheet, artefact: &Artefact, first: bool) {
    let format = artefact.format.as_deref().unwrap_or("not recognised");
    let lines = counted(artefact.lines, "line", "lines");
    let words = match artefact.not_understood {
        0 if artefact.files.is_some() => format!(
            "{format}, {}",
            artefact.files.as_ref().map(within).unwrap_or_default()
        ),
        0 => format!("{format}, {lines}, all understood"),
        missed => format!("{format}, {lines}, {missed} not understood"),
    };
    let paint = match artefact.not_understood * 10 > artefact.lines {
        true => Paint::Yellow,
        false => Paint::Plain,
    };
    let body = vec![
        sheet.name(&artefact.name),
        sheet.words(&words).paint(paint).after(2),
    ];
    labelled(sheet, if first { "read" } else { "" }, body);
    if let Some(files) = artefact.files.as_ref().filter(|_| sheet.style().verbose) {
        for name in &files.names {
            let text = format!("not recognised: {name}");
            labelled(sheet, "", vec![sheet.name(&text).paint(Paint::Dim).after(2)]);
        }
    }
    let shown = if sheet.style().verbose {
        artefact.misunderstood.len()
    } else {
        1
    };
    for missed in artefact.misunderstood.iter().take(shown) {
        let text = format!("line {}: {}", missed.line, missed.text.trim());
        labelled(sheet, "", vec![sheet.name(&text).paint(Paint::Dim).after(2)]);
    }
    for problem in &artefact.problems {
        labelled(sheet, "", vec![sheet.words(problem).paint(Paint::Yellow)]);
    }
    if artefact.left_out > 0 {
        let words = format!("{} understood but left out: too many", artefact.left_out);
        labelled(sheet, "", vec![sheet.words(&words).paint(Paint::Yellow)]);
    }
}

/// `12 files read, 212 files not recognised`.
fn within(files: &FilesWithin) -> String {
    let mut words = format!("{} read", counted(files.read, "file", "files"));
    for (count, one, many) in [
        (
            files.not_recognised,
            "file not recognised",
            "files not recognised",
        ),
        (files.links, "link not followed", "links not followed"),
    ] {
        if count > 0 {
            words.push_str(&format!(", {}", counted(count, one, many)));
        }
    }
    words
}

/// Column at which the words after a label begin.
const WORDS: usize = 13;

fn labelled(sheet: &mut Sheet, label: &str, body: Vec<crate::sheet::Piece>) {
    let lead = sheet.name(&format!("  {label}")).paint(Paint::Dim);
    sheet.led(vec![lead], WORDS, body);
}

#[cfg(test)]
mod tests {
    use super::verdict;
    use crate::html::tests::report;
    use holdup_model::report::{AccountBasis, AccountLine, AccountOutcome};

    #[test]
    fn what_was_read_in_part_is_not_healthy_by_figures_within_their_norms() {
        let said = |outcome| {
            let mut report = report();
            report.outcome = outcome;
            report.account = Some(vec![AccountLine {
                what: "clock".to_owned(),
                ns: None,
                share: None,
                text: "The clock is 12 µs off".to_owned(),
                headline: None,
                clauses: Vec::new(),
                source: "chrony.txt:1".to_owned(),
                basis: AccountBasis::WithinNorm,
            }]);
            let verdict = verdict(&report);
            (verdict.sentence, verdict.beside.unwrap().0)
        };
        let (sentence, beside) = said(Some(AccountOutcome::Healthy));
        assert_eq!(sentence, "Healthy by these figures: The clock is 12 µs off");
        assert_eq!(beside, "Each figure is within its norm.");
        for outcome in [Some(AccountOutcome::CannotTell), None] {
            let (sentence, beside) = said(outcome);
            assert_eq!(sentence, "The clock is 12 µs off");
            assert!(beside.starts_with("Within its norms. Not known"));
        }
    }
}
