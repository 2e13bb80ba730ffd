//! The verdict as Markdown, for an issue tracker or a chat: what, how long, what it rests on, what to do, where the time went.
//!
//! In: a report. Out: text whose first line says it all. Names from observed programs are code, or escaped: they can begin no markup,
//! no link, no table cell and no mention of a person.

use crate::budget;
use crate::headline::line;
use crate::prediction;
use crate::terminal::entry::beside_the_phrase;
use crate::terminal::experiment::{causes_that_matter, facts_of};
use crate::terminal::margins::{no_verdict_words, nothing_found_words, on_cpu, quoted, says_nothing_found};
use crate::terminal::picture::{Entry, picture, too_little_seen};
use crate::terminal::scale::{figures, law};
use crate::text::printable;
use crate::units::{counted, duration, duration_beside, percent};
use holdup_evidence::Ns;
use holdup_model::finding::Severity;
use holdup_model::report::{
    CauseChange, Comparison, Experiment, Finding, Gate, GateOutcome, Remedy, Report, Scaling, SubjectKind,
};
use std::io::{self, Write};

/// Pieces of evidence of a finding; more are counted.
const EVIDENCE: usize = 6;

/// Causes of a comparison; more are counted.
const CHANGES: usize = 10;

/// Characters of a name that are kept: what is longer is no help in a chat.
const NAME: usize = 160;

/// Writes it.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if let Some(part) = &report.comparison {
        comparison(part, out)?;
        return conditions(report.gate.as_ref(), out);
    }
    if let Some(part) = &report.scaling {
        return scaling(part, out);
    }
    if let Some(part) = &report.experiment {
        experiment(part, out)?;
    }
    writeln!(out, "{}", first_line(report))?;
    conditions(report.gate.as_ref(), out)?;
    if let Some(words) = instead_of_findings(report) {
        writeln!(out, "\n{}", escaped(&words))?;
    }
    let findings: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|_| !too_little_seen(report))
        .collect();
    let (notes, trouble): (Vec<&Finding>, Vec<&Finding>) = findings
        .into_iter()
        .partition(|one| one.severity == Severity::Note);
    for one in trouble {
        finding(one, report.subject.wall_ns, out)?;
    }
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for one in notes {
        writeln!(out, "- {} ({})", escaped(&line(one)), code(&one.rule))?;
    }
    table(report, out)?;
    predictions(report, out)?;
    accounting(report, out)
}

/// Conditions of `--fail-on`, and what they came to.
fn conditions(gate: Option<&Gate>, out: &mut dyn Write) -> io::Result<()> {
    for (at, check) in gate.iter().flat_map(|gate| &gate.checks).enumerate() {
        if at == 0 {
            writeln!(out)?;
        }
        let outcome = match check.outcome {
            GateOutcome::Passed => "passed",
            GateOutcome::CannotTell => "cannot tell",
            GateOutcome::Failed => "**failed**",
        };
        writeln!(
            out,
            "- {outcome}: {} · {}",
            code(&check.condition),
            escaped(&check.text)
        )?;
    }
    Ok(())
}

/// What came of an experiment, before the run as it is.
fn experiment(found: &Experiment, out: &mut dyn Write) -> io::Result<()> {
    for (at, sentence) in found.verdict.iter().enumerate() {
        match at {
            0 => writeln!(out, "**{}**", escaped(sentence))?,
            _ => writeln!(out, "\n{}", escaped(sentence))?,
        }
    }
    writeln!(out)?;
    for (fact, words) in facts_of(found) {
        writeln!(out, "- {}: {}", fact.label(), escaped(&words))?;
    }
    let mut causes = causes_that_matter(found).peekable();
    if causes.peek().is_some() {
        writeln!(out, "\n| unchanged | without | what |")?;
        writeln!(out, "|---:|---:|---|")?;
    }
    for one in causes {
        let (phrase, id) = (one.cause.phrase(), code(one.cause.id()));
        let (as_is, without) = (duration(one.baseline_ns), duration(one.measured_ns));
        writeln!(out, "| {as_is} | {without} | {phrase} {id} |")?;
    }
    writeln!(out, "\nAn unchanged run:\n")
}

/// What it would take without a wait.
fn predictions(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let lines = prediction::lines(report);
    if !lines.is_empty() {
        writeln!(out, "\n{}\n", prediction::TITLE)?;
    }
    for line in lines {
        writeln!(out, "- {}", escaped(&line.words))?;
        for doubt in line.doubts {
            writeln!(out, "  - uncertain: {doubt}")?;
        }
    }
    Ok(())
}

/// What became slower, and whether that is more than chance.
fn comparison(found: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    for (at, sentence) in found.verdict.iter().chain(&found.trade).enumerate() {
        let sentence = escaped(sentence);
        match at {
            0 => writeln!(out, "**{sentence}**")?,
            _ => writeln!(out, "\n{sentence}")?,
        }
    }
    let names = (code(&found.before), code(&found.after));
    writeln!(out, "\nBEFORE is {}, AFTER is {}.", names.0, names.1)?;
    let changed: Vec<&CauseChange> = found.causes.iter().filter(|one| one.change_ns != 0).collect();
    if !changed.is_empty() {
        writeln!(
            out,
            "\n| change | before | after | what, for each {} | significant |",
            code(&found.unit)
        )?;
        writeln!(out, "|---:|---:|---:|---|---|")?;
    }
    for one in changed.iter().take(CHANGES) {
        let sign = if one.change_ns > 0 { "+" } else { "−" };
        writeln!(
            out,
            "| {sign}{} | {} | {} | {} {} | {} |",
            duration(one.change_ns.unsigned_abs()),
            duration(one.before_ns),
            duration(one.after_ns),
            one.cause.phrase(),
            code(one.cause.id()),
            match one.significant {
                Some(true) => "yes",
                Some(false) => "no",
                None => "unknown",
            },
        )?;
    }
    let more = changed.len().saturating_sub(CHANGES) as u64;
    if more > 0 {
        writeln!(
            out,
            "\nAnd {} changed less.",
            counted(more, "more cause", "more causes")
        )?;
    }
    if !found.notes.is_empty() {
        writeln!(out)?;
    }
    for note in &found.notes {
        writeln!(out, "- {}", escaped(note))?;
    }
    Ok(())
}

/// Throughput and latency as workers are added.
fn scaling(found: &Scaling, out: &mut dyn Write) -> io::Result<()> {
    for (at, sentence) in found.words.iter().enumerate() {
        let sentence = escaped(sentence);
        match at {
            0 => writeln!(out, "**{sentence}** ({})", code(found.verdict.id()))?,
            _ => writeln!(out, "\n{sentence}")?,
        }
    }
    writeln!(
        out,
        "\n| workers | {}s a second | lies in | control | median | p99 | on a CPU | without one | waiting |",
        escaped(&found.unit)
    )?;
    writeln!(out, "|---:|---:|---:|---:|---:|---:|---:|---:|---:|")?;
    for point in &found.points {
        writeln!(out, "| {} |", figures(point).join(" | "))?;
    }
    writeln!(out)?;
    if let Some(words) = law(found) {
        writeln!(out, "- {}", escaped(&words))?;
    }
    writeln!(out, "- control: {}", escaped(&found.control))?;
    for note in &found.notes {
        writeln!(out, "- {}", escaped(note))?;
    }
    Ok(())
}

/// What was looked at, how long, and what most of that was.
fn first_line(report: &Report) -> String {
    let verdict = report.host.as_ref().map(|host| &host.verdict);
    if let Some(verdict) = verdict.or(report.boot.as_ref().map(|boot| &boot.verdict)) {
        return format!("**{}**", escaped(verdict));
    }
    let words = report.subject.command.iter();
    let subject = match report.subject.kind {
        SubjectKind::Run | SubjectKind::Try => words.map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        _ => report.subject.command.join(", "),
    };
    let subject = code(&subject);
    let elapsed = duration(report.subject.wall_ns);
    if report.subject.kind == SubjectKind::Read {
        let first = report
            .findings
            .first()
            .map_or_else(|| "no hold-up found".to_owned(), line);
        return format!("{subject}: **{}**", escaped(&first));
    }
    let whole = report.whole_ns();
    let picture = picture(report, false);
    let most = picture.tiles.first().map(|entry| {
        let time = if report.of_threads() {
            "of its thread time"
        } else {
            "of that"
        };
        let on = named(entry)
            .map(|name| format!(" {}", code(name)))
            .unwrap_or_default();
        format!(", {} {time} {}{on}", entry.share(whole), entry.cause.phrase())
    });
    let verb = if report.of_threads() {
        "observed for"
    } else {
        "took"
    };
    format!("{subject} {verb} **{elapsed}**{}", most.unwrap_or_default())
}

/// The sentence that stands where there is nothing, or nothing to be sure of.
fn instead_of_findings(report: &Report) -> Option<String> {
    let live = matches!(
        report.subject.kind,
        SubjectKind::Run | SubjectKind::Try | SubjectKind::Attach
    );
    if live && too_little_seen(report) {
        Some(no_verdict_words(report))
    } else if live && says_nothing_found(report) {
        Some(nothing_found_words(report))
    } else {
        None
    }
}

fn finding(finding: &Finding, elapsed: Ns, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n### {}\n", escaped(&line(finding)))?;
    for evidence in finding.evidence.iter().take(EVIDENCE) {
        let source = match evidence.source.as_str() {
            "" => String::new(),
            source => format!(" ({})", code(source)),
        };
        writeln!(out, "- evidence: {}{source}", escaped(&evidence.text))?;
    }
    let more = finding.evidence.len().saturating_sub(EVIDENCE) as u64;
    if more > 0 {
        writeln!(
            out,
            "- and {}",
            counted(more, "more piece of evidence", "more pieces of evidence")
        )?;
    }
    for one in finding.remedies.iter().filter(|one| !one.pointless) {
        remedy(one, out)?;
    }
    if let Some(words) = prediction::gain(finding, elapsed) {
        writeln!(out, "- gain: {}", escaped(&words))?;
    }
    for one in finding.remedies.iter().filter(|one| one.pointless) {
        writeln!(out, "- **does not help**: {}", escaped(&one.text))?;
    }
    writeln!(
        out,
        "- more: {}",
        code(&format!("holdup explain {}", finding.rule))
    )
}

fn remedy(remedy: &Remedy, out: &mut dyn Write) -> io::Result<()> {
    let mark = match remedy.risk.as_deref() {
        _ if remedy.safe => "safe".to_owned(),
        Some(risk) => format!("changes the system; risk: {}", escaped(risk)),
        None => "changes the system".to_owned(),
    };
    writeln!(out, "- **do**: {} ({mark})", escaped(&remedy.text))?;
    if let Some(command) = remedy.command.as_deref() {
        let command = printable(command, true);
        let fence = fence(&command, 3);
        writeln!(out, "\n  {fence}sh\n  {command}\n  {fence}\n")?;
    }
    Ok(())
}

/// Where the time went, as far as the report knows.
fn table(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let whole = report.whole_ns();
    let picture = picture(report, false);
    if whole == 0 || picture.tiles.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| share | time | waiting or running | what | asked by |")?;
    writeln!(out, "|---:|---:|---|---|---|")?;
    for entry in &picture.tiles {
        let wait = entry.largest().filter(|_| !entry.several_places);
        let asker = wait.and_then(|wait| wait.asker.frame.as_deref());
        writeln!(
            out,
            "| {} | {}{} | {} {} | {} | {} |",
            entry.share(whole),
            entry.qualified(),
            duration_beside(entry.so_far(), whole),
            entry.cause.phrase(),
            code(entry.cause.id()),
            named(entry).map(cell).unwrap_or_default(),
            asker.map(cell).unwrap_or_default(),
        )?;
    }
    let rest: u64 = picture.rest.iter().map(|(_, ns)| ns).sum();
    if rest > 0 {
        let part = share(rest, whole);
        writeln!(
            out,
            "| {part} | {} | everything else | | |",
            duration_beside(rest, whole)
        )?;
    }
    Ok(())
}

/// What all of the entry waited for, where that is one thing whose name says more than the cause does.
fn named<'a>(entry: &Entry<'a>) -> Option<&'a str> {
    let wait = entry.largest().filter(|_| !entry.several_places)?;
    beside_the_phrase(wait)
}

/// How far it can be trusted.
fn accounting(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let coverage = &report.coverage;
    let recorded = report.recording.iter().flat_map(|recording| &recording.lines);
    let mut parts: Vec<String> = recorded.map(|line| escaped(line)).collect();
    if let (Some(observed), Some(unknown)) = (coverage.observed_ns, coverage.unknown_ns)
        && observed > 0
    {
        parts.push(format!("unknown {}", share(unknown, observed)));
        let lost: u64 = coverage.lost.iter().map(|lost| lost.count).sum();
        parts.push(format!("dropped {lost}"));
        let running = on_cpu(&report.causes);
        parts.push(format!("{} on a CPU", share(running, report.whole_ns())));
    }
    for gap in &coverage.not_measured {
        parts.push(format!("not observed: {}", escaped(&gap.what)));
    }
    parts.push(format!("holdup {}", escaped(&report.holdup.version)));
    parts.push(format!("overhead {} CPU", duration(coverage.own_cost_ns)));
    parts.extend(coverage.budget.as_ref().and_then(budget::words));
    writeln!(out, "\n{}", parts.join(" · "))
}

/// A part of a whole, where `<` and `>` are markup.
fn share(part: u64, whole: u64) -> String {
    escaped(&percent(part, whole))
}

/// A name in a cell of a table, where a bar ends even code.
fn cell(name: &str) -> String {
    code(name).replace('|', "\\|")
}

/// A name as code.
fn code(name: &str) -> String {
    let mut name: String = printable(name, true);
    if name.chars().count() > NAME {
        name = name.chars().take(NAME).chain(['…']).collect();
    }
    if name.trim().is_empty() {
        return String::new();
    }
    let fence = fence(&name, 1);
    // A blank at both ends is taken off again; it keeps a backtick of the name apart from the fence.
    let pad = if name.starts_with(['`', ' ']) || name.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{name}{pad}{fence}")
}

/// More backticks than the text has in a row, and no fewer than `least`.
fn fence(text: &str, least: usize) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max();
    "`".repeat(longest.map_or(least, |longest| least.max(longest + 1)))
}

/// A sentence with nothing in it that is markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let text = printable(text, true);
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let follows = rest.peek().copied().unwrap_or(' ');
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '[' | ']' | '#' | '|' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(character);
            }
            // Within a word it is no emphasis, and names are full of it.
            '_' if !(before.is_alphanumeric() && follows.is_alphanumeric()) => out.push_str("\\_"),
            // An address becomes a link, and a name behind an @ a message to that person, where trackers see fit.
            ':' if follows == '/' => out.push_str("&#58;"),
            '@' if follows.is_alphanumeric() => out.push_str("@<!-- -->"),
            other => out.push(other),
        }
        before = character;
    }
    out
}
