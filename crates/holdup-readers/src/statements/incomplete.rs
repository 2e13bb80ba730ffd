//! Statements that are only the beginning of what is said, and which lines below them belong to them.

use super::{limits, shape};
use holdup_evidence::observed::StatementKind;

/// A message that is shorter says only half of it: the line below it says of what.
pub(super) const HALF: usize = 60;

/// A statement that says only the beginning: which one, and how many lines below it still belong to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incomplete {
    pub(super) place: usize,
    pub(super) lines: usize,
    /// Bytes of text that are enough.
    pub(super) enough: usize,
    /// Whether it ends where its brackets are closed.
    pub(super) brackets: bool,
    /// Whether lines with a time of their own belong to it too.
    pub(super) with_times: bool,
    /// Whether it says that more follows: it ends with a colon or within brackets. A line that is merely short does not.
    pub(super) goes_on: bool,
}

/// Lines below a deadlock that say who waits for what, and bytes of them: databases and the kernel print lists.
const DEADLOCK: (usize, usize) = (14, 700);

/// The same of a heading in a comment's form: the JVM's of a crash, a slow query's.
const COMMENT: (usize, usize) = (10, 700);

/// The same of a message that ends within brackets: a term of Erlang, a collection that a JVM tells over several lines.
const BRACKETS: (usize, usize) = (10, 500);

/// Bytes of a message that goes on in further lines.
pub(super) const MAX_MESSAGE_BYTES: usize = 900;

/// Which lines below a statement belong to it.
pub(super) fn incomplete_after(kind: StatementKind, message: &[u8], place: usize) -> Option<Incomplete> {
    let short = shape::is_incomplete(message, HALF);
    let (lines, enough) = match kind {
        StatementKind::Deadlock if short => DEADLOCK,
        _ if message.starts_with(b"# ") => COMMENT,
        _ if shape::is_open(message) => BRACKETS,
        _ if short => (1, MAX_MESSAGE_BYTES),
        _ if shape::is_cut(message) => (1, MAX_MESSAGE_BYTES),
        // What is at its limit by figures: the line below says what becomes of it.
        StatementKind::Exhausted if limits::full(&shape::sentence(message, 0)).is_some() => {
            (1, MAX_MESSAGE_BYTES)
        }
        _ => return None,
    };
    Some(Incomplete {
        place,
        lines,
        enough,
        brackets: (lines, enough) == BRACKETS,
        with_times: kind == StatementKind::Deadlock,
        goes_on: kind == StatementKind::Deadlock || lines > 1 || matches!(message.last(), Some(b':' | b'=')),
    })
}
