//! The lines about a recording: when and where, what lies between its segments, which were unlike the others.

use super::margins::HEADER;
use crate::sheet::{Paint, Sheet};
use holdup_model::report::Report;

/// Writes them below the header.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    for line in report.recording.iter().flat_map(|recording| &recording.lines) {
        let body = vec![sheet.words(line).paint(Paint::Dim)];
        sheet.line(HEADER, body);
    }
}
