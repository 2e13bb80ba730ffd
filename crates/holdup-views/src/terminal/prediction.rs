//! What it would take without a wait.

use crate::prediction::{TITLE, lines};
use crate::sheet::{Paint, Row, Sheet};
use holdup_model::report::Report;

/// Writes the block, where something was predicted.
pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let lines = lines(report);
    if lines.is_empty() {
        return;
    }
    let mut row = |indent, words: &str, paint| {
        let body = vec![sheet.words(words).paint(paint)];
        sheet.row(Row {
            indent,
            hang: Some(indent + 2),
            body,
            ..Row::default()
        });
    };
    row(2, TITLE, Paint::Dim);
    for line in &lines {
        row(4, &line.words, Paint::Plain);
        for doubt in &line.doubts {
            row(6, &format!("uncertain: {doubt}"), Paint::Dim);
        }
    }
}
