//! Which of findings that are as grave comes first.
//!
//! In: a finding and its rule. Out: its time, as far as it counts.

use super::{Finding, Place, Rule};
use holdup_evidence::{Cause, Ns};

/// Time that is divided by these counts for less than the same time of a root cause. The order is what matters: before a sleep comes a wait for
/// another thread that lasts a quarter as long, on the way to a root or not; a thread that waits for a signal comes last.
const INTERMEDIATE: Ns = 2;
const SLEEP_INSIDE: Ns = 4;
const SIGNAL_INSIDE: Ns = 8;

/// What a finding's time counts for among those of the same severity: what mending it would bring. Where somebody waits for another whose
/// own time is judged, the end of that chain comes first if it is at least half of it; if the end is something else that costs little,
/// it is not. `waits_inside`: whether a thread of a process waits for another one of it. A sleep there is what that process waits for only where
/// nothing else of it stands, however many threads sleep; and to wait for a signal is how a thread rests.
pub(super) fn rank(rule: &Rule, finding: &Finding, wall: Ns, waits_inside: bool) -> Option<Ns> {
    finding.ns.map(|ns| match (finding.cause, rule.place) {
        (Cause::IpcSignal, _) if waits_inside => ns / SIGNAL_INSIDE,
        (Cause::TimerSleep, _) if waits_inside => ns.min(wall) / SLEEP_INSIDE,
        (_, Place::RootCause) => ns,
        (_, Place::Intermediate) => ns / INTERMEDIATE,
    })
}
