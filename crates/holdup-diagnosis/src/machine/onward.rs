//! Where the way of somebody goes on to who has what others wait for.
//!
//! In: a way, and where on it the holder is. Out: the end of the way, and what the one before it waits for: a lock is kept for so long
//! because its holder, or a child of it, waits for something itself.

use super::path::{Graph, Step};
use holdup_model::attributed::Resource;

/// What a holder's own way leads to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Onward<'a> {
    /// The last thread of it that is known; the holder itself where nobody stands in its way.
    pub(crate) last: Step<'a>,
    /// Who waits for that one.
    pub(crate) before: Option<Step<'a>>,
    /// Whether that is not the holder itself, but somebody it waits for.
    pub(crate) through: bool,
    /// What is waited for there.
    pub(crate) resource: Option<&'a Resource>,
}

/// From the holder on, which is at this place of the way.
pub(super) fn of<'a>(graph: &Graph<'a>, way: &[Step<'a>], holder: usize) -> Option<Onward<'a>> {
    let end = way.len().checked_sub(1)?;
    let last = *way.get(end)?;
    let before = (end > holder).then(|| way.get(end - 1).copied()).flatten();
    let waits = before.unwrap_or(last);
    let row = waits.cause.and_then(|cause| graph.row(waits.id(), cause));
    Some(Onward {
        last,
        before,
        through: end > holder + 1,
        resource: row.map(|row| &row.resource),
    })
}
