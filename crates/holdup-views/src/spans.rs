//! Single pieces of threads' time whose begin and length are both known: what a format with a time line can draw.
//!
//! In: a report. Out: a [`Span`] for each piece of its time line; in a report without one, for the longest wait of each entry that tells
//! when that one began. All other time is a sum without instants, so it is drawn nowhere; formats with a time line tell it as sums.

use crate::samples::{Who, window};
use crate::text::printable;
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{Report, Wait};
use holdup_model::timeline::{EndedBy, Piece, Timeline};
use jiff::Timestamp;

/// A piece of time at its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a> {
    /// Whose.
    pub(crate) who: Who<'a>,
    /// Begin, nanoseconds since observation began; less than 0 if it had begun before.
    pub(crate) start: i64,
    /// Length.
    pub(crate) ns: Ns,
    /// What for.
    pub(crate) cause: Cause,
    /// The entry of waits that it belongs to, where that is known.
    pub(crate) wait: Option<&'a Wait>,
    /// Whether it went on as observation ended.
    pub(crate) open: bool,
    ended_by: Option<Ended<'a>>,
}

/// Who or what ended it.
#[derive(Debug, Clone, Copy)]
enum Ended<'a> {
    Thread(Who<'a>),
    Words(&'static str),
}

/// All, in the order of their begin.
pub(crate) fn spans(report: &Report) -> Vec<Span<'_>> {
    let mut spans: Vec<Span<'_>> = match &report.timeline {
        Some(timeline) => {
            let pieces = timeline.pieces.iter();
            pieces
                .filter_map(|piece| Span::of_piece(piece, timeline, report))
                .collect()
        }
        None => {
            let (began, _) = window(report);
            let waits = report.waits.iter();
            waits.filter_map(|wait| Span::of_longest(wait, began)).collect()
        }
    };
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.ns)));
    spans
}

impl<'a> Span<'a> {
    /// A report from elsewhere may point at what is not there; that piece is of nobody.
    fn of_piece(piece: &Piece, timeline: &'a Timeline, report: &'a Report) -> Option<Span<'a>> {
        let task = |index: u32| {
            let task = timeline.tasks.get(index as usize)?;
            Some(Who::named(&task.name))
        };
        let start = i128::from(piece.start) - i128::from(piece.before);
        let ended_by = match piece.ended_by {
            Some(EndedBy::Task(index)) => task(index).map(Ended::Thread),
            Some(EndedBy::Timer) => Some(Ended::Words("a timer")),
            Some(EndedBy::Device) => Some(Ended::Words("a device")),
            Some(EndedBy::Interrupt) => Some(Ended::Words("an interrupt")),
            Some(EndedBy::Unknown) | None => None,
        };
        let span = Span {
            who: task(piece.task)?,
            start: i64::try_from(start).ok()?,
            ns: piece.ns.saturating_add(piece.before),
            cause: piece.cause,
            wait: piece.wait.and_then(|index| report.waits.get(index as usize)),
            open: piece.open,
            ended_by,
        };
        (span.ns > 0).then_some(span)
    }

    fn of_longest(wait: &'a Wait, began: Ns) -> Option<Span<'a>> {
        // An entry of several threads has no thread whose time line it could be on.
        if wait.asker.tid == 0 || wait.max_ns == 0 {
            return None;
        }
        let start = wait.max_started.as_deref()?.parse::<Timestamp>().ok()?;
        Some(Span {
            who: Who::of(&wait.asker),
            start: i64::try_from(start.as_nanosecond() - i128::from(began)).ok()?,
            ns: wait.max_ns,
            cause: wait.cause,
            wait: Some(wait),
            open: wait.open && wait.count <= 1,
            ended_by: None,
        })
    }

    /// What more is known of it, as words under a name each; printable, and none of them empty.
    pub(crate) fn attributes(&self) -> Vec<(&'static str, String)> {
        let resource = self.wait.map_or("", |wait| wait.resource.name.as_str());
        let frame = self.wait.and_then(|wait| wait.asker.frame.as_deref());
        let ended_by = match self.ended_by {
            _ if self.open => "not ended: it was still waiting".to_owned(),
            Some(Ended::Thread(who)) => who.thread(),
            Some(Ended::Words(words)) => words.to_owned(),
            None => String::new(),
        };
        let mut listed = vec![
            ("what", self.cause.phrase().to_owned()),
            ("resource", printable(resource, true)),
            ("frame", printable(frame.unwrap_or_default(), true)),
            ("ended_by", ended_by),
        ];
        listed.retain(|(_, words)| !words.is_empty());
        listed
    }
}

/// Nanoseconds from boot to the epoch, where a wait of the report tells both of one instant.
pub(crate) fn boot(report: &Report) -> Option<Ns> {
    report.waits.iter().find_map(|wait| {
        let unix = wait.max_started.as_deref()?.parse::<Timestamp>().ok()?;
        let unix = u64::try_from(unix.as_nanosecond()).ok()?;
        unix.checked_sub(wait.max_started_boot_ns?)
    })
}
