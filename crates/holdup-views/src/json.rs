//! The report as JSON, for other programs.
//!
//! In: a report. Out: one JSON document, indented, with a newline at its end. Hostile text needs no care of
//! ours: JSON escapes control characters itself.

use holdup_model::report::Report;
use holdup_model::timeline::MAX_PIECES_IN_JSON;
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// When writing to `out` fails.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let shortened = report.timeline.as_ref().map(|timeline| Report {
        timeline: Some(timeline.longest(MAX_PIECES_IN_JSON)),
        ..report.clone()
    });
    serde_json::to_writer_pretty(&mut *out, shortened.as_ref().unwrap_or(report))?;
    writeln!(out)
}
