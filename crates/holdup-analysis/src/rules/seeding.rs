//! When kernels' random generators were seeded, as logs tell it, and who was up in the same instant.
//!
//! In: [`Observed`] and its [`Clock`]. Out: [`Seeding`]s. A unit that had been starting for a while and was up in the second
//! in which the generator was seeded waited for that.

use super::units::{Start, between};
use crate::artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, KernelEvent, What};
use holdup_evidence::{Ns, Observed};

const SECOND: Ns = 1_000_000_000;

/// How far the end of a start may be from the seeding, nanoseconds: old logs have whole seconds, cut off.
const SAME_INSTANT: Ns = SECOND;

/// How long a unit must have been starting, nanoseconds: what starts in a moment is up in any second.
const WAITED: Ns = 2 * SECOND;

/// A boot's generator.
pub(super) struct Seeding<'a> {
    /// The line that says that it is seeded.
    pub(super) line: &'a Happening,
    /// How long after the kernel's first line; `None` where the log does not tell.
    pub(super) after: Option<Ns>,
    /// Reads of it before that, and by whom.
    pub(super) reads: Vec<(&'a Happening, &'a str)>,
    /// Further reads that the kernel says it did not log.
    pub(super) suppressed: u64,
}

/// All of them, in order.
pub(super) fn all<'a>(observed: &'a Observed, clock: &Clock<'_>) -> Vec<Seeding<'a>> {
    let happenings = observed.happenings.iter();
    let lines =
        happenings.filter(|one| matches!(one.what, What::Kernel(KernelEvent::RandomSeeded { fully: true })));
    lines
        .map(|line| {
            let mut seeding = Seeding {
                line,
                after: clock.since_boot(line),
                reads: Vec::new(),
                suppressed: 0,
            };
            for one in &observed.happenings {
                let What::Kernel(KernelEvent::UnseededRead { process, suppressed }) = &one.what else {
                    continue;
                };
                let here = one.quote.source == line.quote.source;
                if !here || clock.same_boot(&one.quote, &line.quote) != Some(true) {
                    continue;
                }
                seeding.suppressed = seeding.suppressed.saturating_add(*suppressed);
                if !process.is_empty() {
                    seeding.reads.push((one, process));
                }
            }
            seeding
        })
        .collect()
}

impl Seeding<'_> {
    /// The line that says that this start was over, if that was the instant of the seeding and it had waited.
    pub(super) fn ended<'s>(&self, start: &Start<'s>, clock: &Clock<'_>) -> Option<&'s Happening> {
        let at = self.line.at?;
        let waited = start.took(clock).is_some_and(|ns| ns >= WAITED);
        let ends = [start.listens, start.up].into_iter().flatten();
        let mut same = ends.filter(|one| {
            let then = one.at.and_then(|then| {
                clock.same_instant((&self.line.quote, at), (&one.quote, then), SAME_INSTANT)
            });
            then == Some(true)
        });
        same.next().filter(|_| waited && start.timed_out.is_none())
    }

    /// Whether a try that ran out of time was one for this: a later one of the same unit ended with the seeding.
    pub(super) fn was_for_this(&self, start: &Start<'_>, all: &[Start<'_>], clock: &Clock<'_>) -> bool {
        let Some((timed_out, _)) = start.timed_out else {
            return false;
        };
        all.iter().any(|later| {
            later.unit == start.unit
                && later
                    .began
                    .is_some_and(|began| between(clock, timed_out, began).is_some())
                && self.ended(later, clock).is_some()
        })
    }
}
