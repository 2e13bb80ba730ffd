//! How a line is followed: one that says nothing by its shape is passed over, any other is looked at for its words and its figures.

use super::{SCANNED, Statements, shape};
use crate::gather::Out;
use crate::known_figures::{Line, Seen};

impl Statements {
    /// Takes a line; whether it states anything.
    pub(crate) fn line(&mut self, line: &[u8], out: &Out<'_>) -> bool {
        let shape = match self.is_idle() {
            true => self.inert.shape(line),
            false => None,
        };
        if let Some(shape) = shape.filter(|shape| self.inert.has(*shape)) {
            let mut plain = std::mem::take(&mut self.plain);
            self.columns.pass(plain.of(line.get(..SCANNED).unwrap_or(line)));
            self.plain = plain;
            self.tables.pass();
            self.together.pass(line, out.here().line);
            return self.inert.counts(shape) && self.figures(line, out).bad;
        }
        let seen = self.figures(line, out);
        self.well = seen.well;
        let states = self.look(line, out);
        if let Some(shape) = shape
            && !states
            && self.is_idle()
            && !shape::is_command(line.trim_ascii())
        {
            self.inert.add(shape, seen.counts);
        }
        states || seen.bad
    }

    /// Takes a line whose reader keeps what it says: it may end what others state.
    pub(crate) fn evidence(&mut self, line: &[u8]) {
        self.together.evidence(line);
    }

    /// Takes a line of a log whose reader keeps what it says: others may belong to it.
    pub(crate) fn kept(&mut self, line: &[u8], number: u64) {
        self.together.kept(line, number);
    }

    /// Looks at a line for known figures alone.
    pub(crate) fn figures(&mut self, line: &[u8], out: &Out<'_>) -> Seen {
        let mut plain = std::mem::take(&mut self.plain);
        let stamps = &mut self.stamps;
        let placed = |text: &[u8]| {
            let stamp = stamps.of(text);
            let from = shape::message(text, stamp.map_or(0, |stamp| stamp.end));
            let from = from + shape::words(text.get(from..).unwrap_or_default());
            (stamp.and_then(|stamp| stamp.when()), from)
        };
        let of_line = Line::of(line, plain.of(line), out.here().line);
        let seen = self.known.line(of_line, || out.here(), placed);
        self.plain = plain;
        seen
    }

    /// Whether no line before says how this one is to be read.
    fn is_idle(&self) -> bool {
        self.incomplete.is_none()
            && self.of_heading.is_none()
            && self.locked.is_none()
            && self.heading.is_empty()
            && self.item.is_empty()
            && self.columns.is_idle()
            && self.tables.is_idle()
            && self.records.is_idle()
            && self.top_events.is_idle()
            && self.known.is_idle()
    }
}
