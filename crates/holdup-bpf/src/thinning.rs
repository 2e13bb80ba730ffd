//! How many of a busy service's requests are reported: all of a few thousand, then a fair sample, by how many there are.
//!
//! In: requests as they are reported, and time. Out: the mask that the programs keep to, where one in `mask + 1` is reported. What
//! is not known is counted, so that numbers stay exact; each that is reported stands for so many.

use holdup_evidence::Ns;

/// So many are reported before any are left out: the 99th percentile of so many is known by the slowest forty.
const ALL_OF: u64 = 4096;

/// Requests reported a second are to be no more than this: a record takes some 2 µs in all, so 0.2 % of a core.
const MAX_PER_SECOND: f64 = 1_000.0;

/// Below this rate each stands for fewer again.
const MIN_PER_SECOND: f64 = 250.0;

/// Rates are judged over so long, nanoseconds.
const JUDGED_OVER: Ns = 100_000_000;

/// The greatest mask: one in so many and one.
const MOST_MASK: u32 = (1 << 16) - 1;

/// To stay within a budget, this part of them.
const SPARE: f64 = 8.0;

/// Of one observation.
#[derive(Debug, Default)]
pub(crate) struct Thinning {
    mask: u32,
    /// Fewer than usual are wanted.
    sparing: bool,
    /// Arrived in all, and since the last judgement.
    arrived: u64,
    lately: u64,
    since: Ns,
}

impl Thinning {
    /// One arrived.
    pub(crate) fn arrive(&mut self) {
        self.arrived += 1;
        self.lately += 1;
    }

    /// Whether fewer than usual are wanted from now on.
    pub(crate) fn spare(&mut self, sparing: bool) {
        self.sparing = sparing;
    }

    /// The mask from now on, `elapsed` after the last time.
    pub(crate) fn adapt(&mut self, elapsed: Ns) -> u32 {
        self.since = self.since.saturating_add(elapsed);
        if self.since < JUDGED_OVER || self.arrived < ALL_OF {
            return self.mask;
        }
        let rate = self.lately as f64 * 1e9 / self.since as f64;
        (self.lately, self.since) = (0, 0);
        let part = if self.sparing { SPARE } else { 1.0 };
        let mut rate = rate * part;
        while rate > MAX_PER_SECOND && self.mask < MOST_MASK {
            self.mask = self.mask << 1 | 1;
            rate /= 2.0;
        }
        if rate < MIN_PER_SECOND {
            self.mask >>= 1;
        }
        self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL_OF, JUDGED_OVER, Thinning};

    fn second(thinning: &mut Thinning, requests: u64) -> u32 {
        for _ in 0..10 {
            (0..requests / 10).for_each(|_| thinning.arrive());
            thinning.adapt(JUDGED_OVER);
        }
        thinning.mask
    }

    #[test]
    fn few_are_all_told() {
        let mut thinning = Thinning::default();
        for _ in 0..60 {
            assert_eq!(second(&mut thinning, 900), 0);
        }
    }

    #[test]
    fn a_budget_leaves_an_eighth_of_them() {
        let mut thinning = Thinning::default();
        (0..ALL_OF).for_each(|_| thinning.arrive());
        thinning.adapt(JUDGED_OVER);
        thinning.spare(true);
        (0..64).for_each(|_| thinning.arrive());
        assert_eq!(thinning.adapt(JUDGED_OVER), 511, "640 a second are to be 80");
        thinning.spare(false);
        (0..8).for_each(|_| thinning.arrive());
        assert_eq!(thinning.adapt(JUDGED_OVER), 255, "80 a second may be more again");
    }

    #[test]
    fn of_many_a_sample_is_told_and_of_few_all_again() {
        let mut thinning = Thinning::default();
        (0..ALL_OF).for_each(|_| thinning.arrive());
        assert_eq!(thinning.adapt(JUDGED_OVER), 63, "40,960 a second");
        let mask = second(&mut thinning, 640);
        assert_eq!(mask, 63, "neither many nor few");
        for _ in 0..6 {
            second(&mut thinning, 10);
        }
        assert_eq!(thinning.mask, 0);
    }
}
