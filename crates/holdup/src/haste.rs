//! Signals while a report is put together.
//!
//! The problem: what is left to do after the observation can take seconds, and whoever sends a signal then wants holdup to end. The choice:
//! while names are looked up, a signal ends that, and the report comes at once with what there is. After that signals do to
//! holdup what they do to any program: they end it. Only where CMD still runs they stay CMD's. In: signals. Out: whether to
//! make haste.

use crate::signals::Signals;
use crate::subject::Subject;

/// Who may be in a hurry.
pub(crate) struct Haste<'a>(Who<'a>);

enum Who<'a> {
    /// A recorder's observer: its recorder ends it if it is late.
    Nobody,
    /// Whoever sent a signal; with CMD, if it still runs.
    Sender(&'a mut Signals, Option<&'a Subject>),
    /// The same, where more runs come after this one: they end as well.
    SenderOfMany(&'a mut Signals),
}

impl<'a> Haste<'a> {
    /// Signals change nothing.
    pub(crate) fn none() -> Haste<'a> {
        Haste(Who::Nobody)
    }

    /// What came until now was for the observation. `cmd`: the command, if it still runs.
    pub(crate) fn of(signals: &'a mut Signals, cmd: Option<&'a Subject>) -> Haste<'a> {
        match cmd {
            Some(cmd) => drop(signals.serve(cmd)),
            None => drop(signals.interrupted()),
        }
        Haste(Who::Sender(signals, cmd))
    }

    /// The same for one of several runs.
    pub(crate) fn of_many(signals: &'a mut Signals) -> Haste<'a> {
        Haste(Who::SenderOfMany(signals))
    }

    /// Whether somebody wants the report now.
    pub(crate) fn is_wanted(&mut self) -> bool {
        match &mut self.0 {
            Who::Nobody => false,
            Who::Sender(signals, Some(cmd)) => signals.interrupted_again(cmd),
            Who::Sender(signals, None) => signals.asked_to_end(),
            Who::SenderOfMany(signals) => signals.asked_to_end_all(),
        }
    }

    /// Names have been looked up: from now on a signal ends holdup, unless CMD still runs.
    pub(crate) fn over(self) {
        if let Who::Sender(signals, None) = self.0 {
            signals.let_through();
        }
    }
}
