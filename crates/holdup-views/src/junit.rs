//! The report as JUnit XML, which every build server reads.
//!
//! In: a report. Out: one test suite. Each condition of `--fail-on` is a test: it fails where the condition holds, and has an error where that
//! cannot be determined. Findings are tests that pass, with the finding as their output: what fails a build is the person's choice, and the
//! page of a build server and the exit status never contradict each other. Names are escaped, and what XML 1.0 has no place for is replaced.

use crate::headline::headline;
use crate::text::printable;
use holdup_model::report::{Check, Finding, GateOutcome, Report};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Characters of a name or a message; a page of a build server has no room for more.
const TEXT: usize = 2_000;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Writes the document.
///
/// # Errors
/// When writing to `out` fails.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let checks = report.gate.as_ref().map_or(&[][..], |gate| &gate.checks);
    let with = |outcome| checks.iter().filter(|check| check.outcome == outcome).count();
    let (failures, errors) = (with(GateOutcome::Failed), with(GateOutcome::CannotTell));
    // The first is the observation itself: a suite without a test is an error to some.
    let tests = 1 + checks.len() + report.findings.len();
    let time = format!(
        "{}.{:09}",
        report.subject.wall_ns / SECOND,
        report.subject.wall_ns % SECOND
    );
    let counts = format!(r#"tests="{tests}" failures="{failures}" errors="{errors}" time="{time}""#);
    let name = escaped(&format!("holdup: {}", report.subject.command.join(" ")));
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, r#"<testsuites name="holdup" {counts}>"#)?;
    let started = escaped(&report.subject.started);
    writeln!(
        out,
        r#"  <testsuite name="{name}" {counts} skipped="0" timestamp="{started}">"#
    )?;
    let said = match &report.comparison {
        Some(comparison) => comparison.verdict.join(" "),
        None => headline(report).sentence,
    };
    passed("holdup.observation", "verdict", &said, out)?;
    for check in checks {
        condition(check, out)?;
    }
    for one in &report.findings {
        finding(one, out)?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn condition(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    let class = "holdup.fail-on";
    let element = match check.outcome {
        GateOutcome::Passed => return passed(class, &check.condition, &check.text, out),
        GateOutcome::Failed => "failure",
        GateOutcome::CannotTell => "error",
    };
    let (name, text) = (escaped(&check.condition), escaped(&check.text));
    let kind = match check.outcome {
        GateOutcome::CannotTell => "cannot-tell",
        GateOutcome::Failed | GateOutcome::Passed => "condition",
    };
    writeln!(
        out,
        r#"    <testcase classname="{class}" name="{name}" time="0">"#
    )?;
    writeln!(
        out,
        r#"      <{element} type="{kind}" message="{text}">{text}</{element}>"#
    )?;
    writeln!(out, "    </testcase>")
}

fn finding(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let mut text = finding.title.clone();
    for evidence in &finding.evidence {
        let _ = write!(text, "\nevidence: {}", evidence.text);
    }
    for remedy in finding.remedies.iter().filter(|one| !one.pointless) {
        let _ = write!(text, "\ndo: {}", remedy.text);
    }
    let name = match finding.resource.name.as_str() {
        "" => finding.rule.clone(),
        resource => format!("{} ({resource})", finding.rule),
    };
    passed("holdup.findings", &name, &text, out)
}

fn passed(class: &str, name: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let name = escaped(name);
    writeln!(
        out,
        r#"    <testcase classname="{class}" name="{name}" time="0">"#
    )?;
    let lines: Vec<String> = text.split('\n').map(escaped).collect();
    writeln!(out, "      <system-out>{}</system-out>", lines.join("\n"))?;
    writeln!(out, "    </testcase>")
}

/// Text for an element or an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in printable(text, true).chars().take(TEXT) {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // Characters that XML 1.0 excludes, even as references.
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            other => out.push(other),
        }
    }
    out
}
