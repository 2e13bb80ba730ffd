//! The keys, and how the list is read.

use super::{Line, Tone, wrapped};
use holdup_views::text::width;

/// Columns of keys.
const KEYS: usize = 18;

/// Keys and what they do.
const TEXT: &[(&str, &str)] = &[
    ("Up, Down, k, j", "choose a row"),
    ("Page Up, Page Down", "a screen up or down"),
    ("Home, End", "the first or last row"),
    ("Enter", "its chain, stack and evidence"),
    ("Escape, Backspace", "back"),
    (
        "Left, Right",
        "the look before or after; Right at the end is live again",
    ),
    ("Space", "pause, and go on"),
    ("/", "show only rows with some text in them"),
    ("s", "order: time lost, longest wait, name"),
    ("i", "list idle threads as well"),
    ("mouse", "choose; choose again to open; the wheel scrolls"),
    ("q, Ctrl-C", "quit"),
    ("", ""),
    (
        "so far",
        "how long the longest wait has lasted, from before holdup began too",
    ),
    (
        "ended",
        "nobody waits so any more; it happened since this observation began",
    ),
    (
        "behind, root",
        "who blocks the row; the root is the last one of the chain",
    ),
];

/// All lines.
pub(super) fn lines(columns: usize) -> Vec<Line> {
    let mut lines = vec![Line::new()];
    for (keys, words) in TEXT {
        let beside = columns >= KEYS * 2;
        let lead = if beside {
            format!("{keys:KEYS$}  ")
        } else {
            format!("{keys}: ")
        };
        let lead = if keys.is_empty() { String::new() } else { lead };
        let hang = if beside { width(&lead) } else { 0 };
        let room = columns.saturating_sub(width(&lead)).max(1);
        let mut wrapped = wrapped(words, room, 0).into_iter();
        let first = wrapped.next().unwrap_or_default();
        lines.push(vec![(lead, Tone::Bold), (first, Tone::Plain)]);
        lines.extend(wrapped.map(|line| vec![(" ".repeat(hang), Tone::Plain), (line, Tone::Plain)]));
    }
    lines
}
