//! All that is known of one row: its chain, one line a step, what the report says of it, its stack, and findings about it.
//!
//! In: the state. Out: lines. Words are the report's. Looks at what goes on have no stacks; the last one that had them is named.

use super::{Line, Tone, columns, wrapped};
use crate::state::{State, View};
use holdup_evidence::units::{counted, duration};
use holdup_views::LookRow;
use holdup_views::text::width;

/// Columns of labels, where there is room.
const LABEL: usize = 11;

/// From so many columns on there is.
const COLUMNS_FOR_LABELS: usize = 48;

/// All lines.
pub(super) fn lines(state: &State) -> Vec<Line> {
    let View::Details { key, .. } = &state.view else {
        return Vec::new();
    };
    let columns = columns(state);
    let mut sheet = Sheet {
        columns,
        lines: Vec::new(),
    };
    let now = state
        .moments
        .look()
        .and_then(|look| look.rows.iter().find(|row| row.key == *key));
    let earlier = state.moments.with_stack(key);
    match now {
        Some(row) => facts(&mut sheet, row),
        None => sheet.put("", "Nobody waits so in this look.", Tone::Bold),
    }
    if let Some((label, row)) = earlier.filter(|_| !now.is_some_and(|row| row.has_stack)) {
        sheet.blank();
        sheet.put("", &format!("With its stack, as it was at {label}:"), Tone::Bold);
        for (label, words) in &row.lines {
            sheet.put(label, words, Tone::Plain);
        }
    } else if now.is_some() && earlier.is_none() {
        sheet.blank();
        sheet.put("", NO_STACK, Tone::Dim);
    }
    if let Some(row) = now.filter(|row| !row.findings.is_empty()) {
        sheet.blank();
        sheet.put("", "Findings about it:", Tone::Bold);
        for (label, words) in &row.findings {
            sheet.put(label, words, Tone::Plain);
        }
    }
    let gaps = state
        .moments
        .look()
        .map(|look| look.gaps.as_slice())
        .unwrap_or_default();
    if !gaps.is_empty() {
        sheet.blank();
        sheet.put("", "Not measured:", Tone::Bold);
        for words in gaps {
            sheet.put("", words, Tone::Dim);
        }
    }
    sheet.lines
}

/// Where no look has a stack of it.
const NO_STACK: &str = "No stack yet. Stacks are named at the end of an observation.";

fn facts(sheet: &mut Sheet, row: &LookRow) {
    sheet.put("", &row.who, Tone::Bold);
    sheet.put("", &format!("{} ({})", row.what, row.cause.id()), Tone::Bold);
    let so_far = match row.open {
        true => format!("{}, and it still waits", duration(row.longest_ns)),
        false => format!("ended; the longest took {}", duration(row.longest_ns)),
    };
    sheet.put("for", &so_far, Tone::Plain);
    sheet.put(
        "observed",
        &format!(
            "{} of thread time in {}",
            duration(row.ns),
            counted(row.count, "wait", "waits")
        ),
        Tone::Plain,
    );
    let last = row.behind.len();
    for (at, step) in row.behind.iter().enumerate() {
        let label = match at + 1 {
            number if number == last => "root",
            1 => "behind",
            _ => "",
        };
        let doing = step
            .doing
            .map(|cause| format!(", {}", cause.phrase()))
            .unwrap_or_default();
        let time = match step.ns {
            0 => String::new(),
            ns => format!(", {}", duration(ns)),
        };
        sheet.put(label, &format!("{}{doing}{time}", step.who), Tone::Plain);
    }
    sheet.blank();
    for (label, words) in &row.lines {
        sheet.put(label, words, Tone::Plain);
    }
}

/// Lines that grow.
struct Sheet {
    columns: usize,
    lines: Vec<Line>,
}

impl Sheet {
    fn blank(&mut self) {
        self.lines.push(Line::new());
    }

    /// A label and words, in as many lines as they need.
    fn put(&mut self, label: &str, words: &str, tone: Tone) {
        let label_columns =
            match self.columns >= COLUMNS_FOR_LABELS && (tone == Tone::Plain || !label.is_empty()) {
                true => LABEL.max(width(label) + 1),
                false if label.is_empty() => 0,
                false => width(label) + 1,
            };
        let room = self.columns.saturating_sub(label_columns);
        if room == 0 {
            return;
        }
        let hang = if label_columns == LABEL { LABEL } else { 0 };
        let room_after = self.columns.saturating_sub(hang);
        let mut lines = wrapped(words, room.min(room_after), 0).into_iter();
        let first = lines.next().unwrap_or_default();
        let gap = " ".repeat(label_columns.saturating_sub(width(label)));
        self.lines
            .push(vec![(format!("{label}{gap}"), Tone::Dim), (first, tone)]);
        for line in lines {
            self.lines
                .push(vec![(" ".repeat(hang), Tone::Plain), (line, tone)]);
        }
    }
}
