//! Signals while a report is put together.
//!
//! The problem: what is left to do after the observation can take seconds, and whoever sends a signal then wants holdup to end. The choice:
//! while names are looked up, a signal ends that, and the report comes at once with what there is. After that a signal ends
//! holdup at once, with CMD's status if there was a CMD. Only where CMD still runs they stay CMD's. In: signals. Out: whether to
//! make haste.

use holdup_subject::signals::Signals;
use holdup_subject::subject::{Ended, Subject};

/// Who may be in a hurry.
pub struct Haste<'a>(Who<'a>);

enum Who<'a> {
    /// A recorder's observer: its recorder ends it if it is late.
    Nobody,
    /// Whoever sent a signal; with CMD, if it still runs.
    Sender(&'a mut Signals, Option<&'a Subject>),
    /// The same, of a run whose CMD has ended with this status.
    SenderToRun(&'a mut Signals, u8),
    /// The same, where more runs come after this one: they end as well.
    SenderOfMany(&'a mut Signals),
}

impl<'a> Haste<'a> {
    /// Signals change nothing.
    pub fn none() -> Haste<'a> {
        Haste(Who::Nobody)
    }

    /// What came until now was for the observation. `cmd`: the command, if it still runs.
    pub fn of(signals: &'a mut Signals, cmd: Option<&'a Subject>) -> Haste<'a> {
        match cmd {
            Some(cmd) => drop(signals.serve(cmd)),
            None => drop(signals.interrupted()),
        }
        Haste(Who::Sender(signals, cmd))
    }

    /// The same of a run: until CMD has ended signals are CMD's.
    pub fn of_run(signals: &'a mut Signals, cmd: &'a Subject, ended: Option<&Ended>) -> Haste<'a> {
        match ended {
            None => Haste::of(signals, Some(cmd)),
            Some(ended) => {
                signals.interrupted();
                Haste(Who::SenderToRun(signals, ended.status()))
            }
        }
    }

    /// The same for one of several runs.
    pub fn of_many(signals: &'a mut Signals) -> Haste<'a> {
        Haste(Who::SenderOfMany(signals))
    }

    /// Whether somebody wants the report now.
    pub fn is_wanted(&mut self) -> bool {
        match &mut self.0 {
            Who::Nobody => false,
            Who::Sender(signals, Some(cmd)) => signals.interrupted_again(cmd),
            Who::Sender(signals, None) | Who::SenderToRun(signals, _) => signals.asked_to_end(),
            Who::SenderOfMany(signals) => signals.asked_to_end_all(),
        }
    }

    /// Names have been looked up: from now on a signal ends holdup, unless CMD still runs.
    pub fn over(self) {
        match self.0 {
            Who::Sender(signals, None) => signals.let_through(None),
            Who::SenderToRun(signals, status) => signals.let_through(Some(status)),
            Who::Nobody | Who::Sender(_, Some(_)) | Who::SenderOfMany(_) => {}
        }
    }
}
