//! What makes a root of a machine weigh little, however long somebody waited behind it.
//!
//! The problem: CPUs that are fully used by a build, and a second instance that stands by for the first one's lock, have long waits behind them
//! on machines where nothing is wrong. In: a root, and how long was observed. Out: whether anybody's request was late, and whether all was as
//! it had been before.

use super::ends::Key;
use super::names::Names;
use super::roots::{MIN_LONGEST_NS, Root, Waiter, apart, named_of};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use std::collections::BTreeSet;

/// Share of the observed time for which a thread that others depend on must stand in a queue for a CPU, so that what it does is late.
const MIN_QUEUED_SHARE: f64 = 0.1;

/// The same of a thread that nobody is known to depend on.
const MIN_STARVED_SHARE: f64 = 0.5;

/// The same of a thread that waits for an answer of one that does.
const MIN_ASKED_SHARE: f64 = 0.2;

/// Share of the observed time from which a wait has lasted from its begin to its end.
const WHOLE_SHARE: f64 = 0.9;

/// The shortest observation that tells one which stands by from the successor of a job that hangs.
const MIN_WATCHED_NS: Ns = 60_000_000_000;

/// Whether a wait is for what a service was asked for.
pub(super) fn asks(row: &AttributedWait) -> bool {
    matches!(
        row.cause,
        Cause::NetReceive | Cause::NetConnect | Cause::NetTls | Cause::NetDns | Cause::IpcUnix
    )
}

impl Root<'_> {
    /// Of CPUs that are short: whether anybody's answer was late because of that, or a thread could not run for as long as one notices.
    pub(crate) fn is_late(&self, wall: Ns) -> bool {
        let part = |one: &Waiter<'_>, share: f64| {
            one.longest >= MIN_LONGEST_NS || one.ns as f64 >= wall as f64 * share
        };
        // Threads of a program that has the CPUs itself wait for each other's turns.
        let ran: BTreeSet<&str> = (named_of(&self.ran).into_iter())
            .map(|(name, _)| name.as_str())
            .collect();
        let other = |one: &Waiter<'_>| !ran.contains(one.name.process.as_str());
        let asked = |one: &Waiter<'_>| one.asks && other(one) && part(one, MIN_ASKED_SHARE);
        let starved = |one: &Waiter<'_>| one.ns as f64 >= wall as f64 * MIN_STARVED_SHARE;
        let queued = |one: &Waiter<'_>| {
            let depended = self.is_asked(one.name) && part(one, MIN_QUEUED_SHARE);
            other(one) && (depended || starved(one))
        };
        self.behind.iter().any(asked) || self.own.iter().any(queued)
    }

    /// Whether all that waits is one other process of the same program, for a lock, from the begin of the observation to its end: a second
    /// instance that stands by.
    pub(crate) fn stands_by(&self, names: &Names<'_>, wall: Ns) -> bool {
        if wall < MIN_WATCHED_NS || !matches!(self.key, Key::Lock(_)) || !self.open {
            return false;
        }
        let behind = apart(self.behind.iter());
        let whole = |one: &&&Waiter<'_>| one.longest as f64 >= wall as f64 * WHOLE_SHARE;
        let between: BTreeSet<u32> = (self.way.iter().skip(1)).map(|step| step.name.pid).collect();
        let own = names.program(self.name);
        // A database's sessions stand between the two.
        let (twins, others): (Vec<&Waiter<'_>>, Vec<&Waiter<'_>>) =
            behind.iter().partition(|one| names.program(one.name) == own);
        let pids: BTreeSet<u32> = twins.iter().map(|one| one.name.pid).collect();
        pids.len() == 1
            && behind.iter().filter(whole).count() == behind.len()
            && others.iter().all(|one| between.contains(&one.name.pid))
    }
}
