//! When kernels' random generators were seeded, as logs tell it, and who was up in the same instant.
//!
//! In: [`Observed`] and its [`Clock`]. Out: [`Seeding`]s. A unit that had been starting for a while and was up in the second
//! in which the generator was seeded waited for that.

use super::units::{self, Start, between};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{Happening, KernelEvent, What};
use holdup_evidence::{Ns, Observed};

const SECOND: Ns = 1_000_000_000;

/// How long after the seeding a start may have ended, nanoseconds: old logs have whole seconds, cut off.
const SAME_INSTANT: Ns = SECOND;

/// How long before the seeding it may have ended by two logs, nanoseconds: one of them may have whole seconds.
const BY_ANOTHER_LOG: Ns = SECOND;

/// The same by one log, nanoseconds: the kernel's messages and others' reach a log's daemon by two ways.
const BY_ONE_LOG: Ns = 100_000_000;

/// How long a unit must have been starting, nanoseconds: of those that take a second or two, some are up in any second of a
/// boot.
const WAITED: Ns = 5 * SECOND;

/// The unit that does nothing else than to feed the generator and to wait for it, however short.
const SEED_UNIT: &str = "systemd-random-seed.service";

/// Boots that are looked at: a log of more is not read for how one of them went.
const BOOTS: usize = 100;

/// A boot's generator.
pub(crate) struct Seeding<'a> {
    /// The line that says that it is seeded.
    pub(crate) line: &'a Happening,
    /// How long after the kernel's first line; `None` where the log does not tell.
    pub(crate) after: Option<Ns>,
    /// It was longer: the kernel's first line is older than the log has it.
    pub(crate) at_least: bool,
    /// Reads of it before that, and by whom.
    pub(crate) reads: Vec<(&'a Happening, &'a str)>,
    /// Further reads that the kernel says it did not log.
    pub(crate) suppressed: u64,
}

/// The first [`BOOTS`] of them, in order.
pub(crate) fn all<'a>(observed: &'a Observed, clock: &Clock<'_>) -> Vec<Seeding<'a>> {
    let happenings = observed.happenings.iter();
    let lines =
        happenings.filter(|one| matches!(one.what, What::Kernel(KernelEvent::RandomSeeded { fully: true })));
    lines
        .take(BOOTS)
        .map(|line| {
            let mut seeding = Seeding {
                line,
                after: clock.since_boot(line),
                at_least: clock.is_at_least(line),
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
    /// Whether another log's line is about the same: as late after the beginning of what can be the same boot.
    pub(crate) fn is_same(&self, other: &Seeding<'_>, clock: &Clock<'_>) -> bool {
        let as_late = self.after.zip(other.after).is_some_and(|(one, length)| {
            // Of a log that was taken late only the least is known.
            let shorter = |of: &Seeding<'_>, least: Ns, whole: Ns| of.at_least && least <= whole;
            one.abs_diff(length) <= SAME_INSTANT || shorter(self, one, length) != shorter(other, length, one)
        });
        self.line.quote.source != other.line.quote.source
            && as_late
            && clock.same_boot(&self.line.quote, &other.line.quote) != Some(false)
    }

    /// The line that says that this start was over, if that was the instant of the seeding and it had waited.
    pub(crate) fn ended<'s>(&self, start: &Start<'s>, clock: &Clock<'_>) -> Option<&'s Happening> {
        let enough = if start.unit == SEED_UNIT { SECOND } else { WAITED };
        let waited = start.took(clock).is_some_and(|ns| ns >= enough);
        let ends = [start.listens, start.up].into_iter().flatten();
        let mut same = ends.filter(|one| {
            let before = if one.quote.source == self.line.quote.source {
                BY_ONE_LOG
            } else {
                BY_ANOTHER_LOG
            };
            let later = clock.between(self.line, one);
            later.is_some_and(|ns| ns >= -i128::from(before) && ns <= i128::from(SAME_INSTANT))
        });
        // A device is found when it is found.
        let waits = start.timed_out.is_none() && units::device(start.unit).is_none();
        same.next().filter(|_| waited && waits)
    }

    /// The starts that were over in the instant of the seeding.
    pub(crate) fn all_ended<'s, 'a>(&self, all: &'s [Start<'a>], clock: &Clock<'_>) -> Vec<&'s Start<'a>> {
        all.iter()
            .filter(|start| self.ended(start, clock).is_some())
            .collect()
    }

    /// Whether a try that ran out of time was one for this: a later one of the same unit ended with the seeding
    /// ([`all_ended`](Seeding::all_ended)).
    pub(crate) fn was_for_this(start: &Start<'_>, ended: &[&Start<'_>], clock: &Clock<'_>) -> bool {
        let Some((timed_out, _)) = start.timed_out else {
            return false;
        };
        ended.iter().any(|later| {
            later.unit == start.unit
                && later
                    .began
                    .is_some_and(|began| between(clock, timed_out, began).is_some())
        })
    }
}
