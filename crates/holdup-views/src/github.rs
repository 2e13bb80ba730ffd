//! The report as annotations of a GitHub workflow: lines that its runner turns into marks beside a change.
//!
//! In: a report. Out: `::LEVEL PROPERTIES::MESSAGE` lines. Only a condition of `--fail-on` that holds is an error, so that a page of marks and
//! the exit status never contradict each other. Names from observed programs stand in properties and messages: what ends either is escaped,
//! and control characters are made printable, so a name can begin no command of its own.

use crate::text::printable;
use holdup_model::finding::Severity;
use holdup_model::report::{Finding, Gate, GateOutcome, Report, StackFrame};
use std::io::{self, Write};

/// Marks of one level that GitHub shows of a step; more are counted in a notice.
const MARKS: usize = 10;

/// Bytes of a message: GitHub cuts longer ones, in the middle of an escape if need be.
const MESSAGE: usize = 2_000;

/// Levels of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Error,
    Warning,
    Notice,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Notice => "notice",
        }
    }
}

/// A mark.
struct Mark {
    level: Level,
    title: String,
    message: String,
    /// File and line in the source.
    place: Option<(String, u32)>,
}

/// Writes the lines.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let checks = report.gate.iter().flat_map(of_gate);
    let marks: Vec<Mark> = checks.chain(report.findings.iter().map(of_finding)).collect();
    let mut left = 0;
    for level in [Level::Error, Level::Warning, Level::Notice] {
        let of_level = marks.iter().filter(|mark| mark.level == level);
        // One notice is kept for the number of what is left out.
        let most = if level == Level::Notice { MARKS - 1 } else { MARKS };
        for (at, mark) in of_level.enumerate() {
            match at < most {
                true => line(mark, out)?,
                false => left += 1,
            }
        }
    }
    match left {
        0 => Ok(()),
        left => writeln!(out, "::notice title=holdup::{left} more in the report"),
    }
}

fn of_gate(gate: &Gate) -> impl Iterator<Item = Mark> {
    gate.checks.iter().filter_map(|check| {
        let (level, title) = match check.outcome {
            GateOutcome::Passed => return None,
            GateOutcome::Failed => (Level::Error, format!("holdup: {}", check.condition)),
            GateOutcome::CannotTell => (Level::Warning, format!("holdup cannot tell: {}", check.condition)),
        };
        Some(Mark {
            level,
            title,
            message: check.text.clone(),
            place: None,
        })
    })
}

fn of_finding(finding: &Finding) -> Mark {
    let evidence = finding.evidence.first().map(|evidence| evidence.text.as_str());
    let remedy = finding.remedies.iter().find(|one| !one.pointless);
    let remedy = remedy.map(|one| format!("do: {}", one.text));
    let lines: Vec<&str> = [Some(finding.title.as_str()), evidence, remedy.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    Mark {
        level: match finding.severity {
            Severity::Note => Level::Notice,
            Severity::Warning | Severity::Critical => Level::Warning,
        },
        title: format!("holdup: {}", finding.rule),
        message: lines.join("\n"),
        place: place(finding),
    }
}

/// Where the function stands that asked: only its own frame, since a line of a library is in no change.
fn place(finding: &Finding) -> Option<(String, u32)> {
    let asker = &finding.asker;
    let name = asker.frame.as_deref()?;
    let is_it = |frame: &&StackFrame| frame.symbol.as_deref() == Some(name);
    let frame = asker
        .stack
        .iter()
        .filter(is_it)
        .find(|frame| frame.line.is_some())?;
    Some((frame.file.clone()?, frame.line?))
}

fn line(mark: &Mark, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "::{} title={}", mark.level.name(), property(&mark.title))?;
    if let Some((file, line)) = &mark.place {
        write!(out, ",file={},line={line}", property(file))?;
    }
    writeln!(out, "::{}", message(&mark.message))
}

/// The text with each of its lines made printable, escaped as a message is.
fn message(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| printable(line, true)).collect();
    let mut text = lines.join("\n");
    let end = text.floor_char_boundary(MESSAGE);
    if end < text.len() {
        text.truncate(end);
        text.push('…');
    }
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The same as a property's value, which ends at a comma or a colon too.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
