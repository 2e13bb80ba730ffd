//! What several lines of a log tell together of one device, connection, guest or unit: how a trouble began, how far it went, and whether it ended.
//!
//! In: lines with one of the words below. Out: one fact for each thing, and the numbers of the lines that it tells.

mod gpu;
mod guest;
mod ladder;
mod lost;
mod ring;
mod start;
#[cfg(test)]
mod tests;

use super::Told;
use crate::stamp;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::When;

/// Lines of one thing that are kept as told.
const MAX_LINES: usize = 500;

/// Words that a line of a story has.
pub(super) const WORDS: &[&str] = &[
    // How the recovery from errors climbs.
    "attempting task abort",
    "attempting device reset",
    "attempting target reset",
    "attempting bus reset",
    "attempting host reset",
    "abort command issued",
    "reset issued",
    "host adapter abort request",
    "host bus reset request",
    "scsi device reset",
    "scsi bus reset",
    "scsi host reset",
    "resetting fusion adapter",
    "resetting logical",
    "timeout, aborting",
    "timeout, reset controller",
    "timeout, disable controller",
    "controller is down; will reset",
    "device offlined",
    "to offline device",
    "removing after probe failure",
    "device not ready; aborting reset",
    "after reset failure",
    "reset: success",
    "reset succeeded",
    "cdb: ",
    // Connections that do not come back.
    "conn error",
    "reported iscsi connection",
    "ping timeout of",
    "bind conn",
    "cannot make a connection",
    "operational after recovery",
    "is operational now",
    "starting error recovery",
    "reconnecting in",
    "successfully reconnected",
    "removing ctrl",
    "libceph: ",
    // A ring of a network card that does not move.
    "unit hang",
    "tdh ",
    "tdh, tdt",
    "tdt ",
    "time_stamp ",
    "jiffies ",
    // Guests.
    "state change lock",
    "cannot start job (",
    // Graphics cards.
    "amdgpu ",
    "the nvidia gpu ",
    "off the bus",
    // Units.
    "type=",
    "execstart=",
    "description=",
    "]: starting ",
    "start operation timed out",
];

/// A line of a story.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    at: Option<When>,
    number: u64,
}

/// The stories of one artefact.
#[derive(Debug, Default)]
pub(super) struct Stories {
    ladder: ladder::Ladders,
    lost: lost::Lost,
    ring: ring::Rings,
    cards: gpu::Cards,
    guest: guest::Guests,
    start: start::Starts,
}

impl Stories {
    /// Takes a line with one of the words.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let at = stamp::leading(text.as_bytes()).and_then(|(stamp, _)| stamp.at);
        let line = Line { text, at, number };
        self.ladder.line(line);
        self.lost.line(line);
        self.ring.line(line);
        self.cards.line(line);
        self.guest.line(line);
        self.start.line(line);
    }

    /// What they tell.
    pub(super) fn end(&mut self, told: &mut Told) -> Vec<Fact> {
        let mut facts = std::mem::take(&mut self.ladder).end(told);
        facts.extend(std::mem::take(&mut self.lost).end(told));
        facts.extend(std::mem::take(&mut self.ring).end(told));
        facts.extend(std::mem::take(&mut self.cards).end(told));
        facts.extend(std::mem::take(&mut self.guest).end(told));
        facts.extend(std::mem::take(&mut self.start).end(told));
        facts
    }
}

/// From when to when something was told, and in which lines.
#[derive(Debug, Default)]
struct Span {
    first: Option<When>,
    last: Option<When>,
    lines: Vec<u64>,
}

impl Span {
    fn add(&mut self, line: Line<'_>) {
        self.first = self.first.or(line.at);
        self.last = line.at.or(self.last);
        if self.lines.len() < MAX_LINES {
            self.lines.push(line.number);
        }
    }

    /// How long it took.
    fn ns(&self) -> Option<Ns> {
        let ns = self.last?.since(self.first?)?;
        Ns::try_from(ns).ok().filter(|ns| *ns > 0)
    }

    fn tell(&self, told: &mut Told) -> u64 {
        for line in &self.lines {
            told.add(*line);
        }
        self.lines.first().copied().unwrap_or(0)
    }
}

/// ` (7 times)`, where it was more than once.
fn times(count: u64) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" ({count} times)"),
    }
}

/// The digits at the beginning of a text.
fn digits(text: &str) -> &str {
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}
