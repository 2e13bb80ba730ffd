//! How often to look: as often as a stated part of a CPU allows.
//!
//! In: the time, and the CPU time that holdup has used so far. Out: how long to sleep before the next round. What a round costs
//! grows with the threads and with how many of them ran since the last one, so the rate follows by itself.

use holdup_evidence::Ns;
use std::time::Duration;

/// The budget that nobody has set, in thousandths of one CPU: 2 %, from the project's promise.
const BUDGET: Ns = 20;

/// CPU time that may be taken beyond it, nanoseconds: at the beginning, when each thread's files are opened once, and whenever so much was
/// left.
const BEGINNING: Ns = 20_000_000;

/// While some of that is left, looks are so many times as frequent as the budget alone would have them: many a program is over in a fifth
/// of a second, of which the budget is four milliseconds.
const EAGER: Ns = 4;

/// Between two rounds at least, in nanoseconds. More often than every millisecond the sampler would mostly meet waits that it is
/// itself the reason of.
const MIN_BETWEEN_NS: Ns = 1_000_000;

/// A round's part in what the next one is expected to cost: more where it was dearer than expected, so that the budget is kept while
/// that is still being learnt.
const DEARER: Ns = 4;
const CHEAPER: Ns = 4;

/// A round counts as this many times the earlier ones at most: one that has met thousands of threads for the first time says nothing of
/// the next. If all are as dear, that is known a few rounds later.
const LEAP: Ns = 8;

/// What was taken beyond the budget is paid back by looking so much less often, and not by looking away until it is paid.
const SLOWER: Ns = 4;

/// Says when to look.
#[derive(Debug)]
pub struct Rate {
    /// In thousandths of one CPU.
    budget: Ns,
    began: Ns,
    spent_before: Ns,
    /// What a round costs, lately.
    round: Ns,
    last: Ns,
    chance: u64,
}

impl Rate {
    /// From this instant on, with this much CPU time spent already. `seed` makes the rhythm its own, lest it is the program's.
    #[must_use]
    pub fn new(now: Ns, spent: Ns, seed: u64) -> Rate {
        Rate::within(BUDGET, now, spent, seed)
    }

    /// The same within another budget, in thousandths of one CPU.
    #[must_use]
    pub fn within(budget: Ns, now: Ns, spent: Ns, seed: u64) -> Rate {
        Rate {
            budget: budget.clamp(1, 1000),
            began: now,
            spent_before: spent,
            round: MIN_BETWEEN_NS / 50,
            last: spent,
            chance: seed | 1,
        }
    }

    /// A round is over. How long to sleep now.
    pub fn sleep(&mut self, now: Ns, spent: Ns) -> Duration {
        let budget = self.budget;
        let cost = spent.saturating_sub(self.last);
        self.last = spent;
        let counts = cost.min(self.round * LEAP);
        let memory = if counts > self.round { DEARER } else { CHEAPER };
        self.round = (self.round * (memory - 1) + counts) / memory;
        let even = (self.round * 1000 / budget).max(MIN_BETWEEN_NS);
        let allowed = now.saturating_sub(self.began) * budget / 1000 + BEGINNING;
        let taken = spent.saturating_sub(self.spent_before);
        let owed = taken.saturating_sub(allowed) * 1000 / budget;
        let left = allowed.saturating_sub(taken);
        // What was left long ago is no credit.
        self.began += left.saturating_sub(BEGINNING) * 1000 / budget;
        let sooner = (left.min(BEGINNING) * 1000 / budget).min(even - even / EAGER);
        let wait = (even - sooner).max(MIN_BETWEEN_NS) + owed.min(even * (SLOWER - 1));
        // Anything between half and one and a half of it, so that what happens at fixed times is not always met, or never.
        let wait = wait / 2 + wait * (self.random() % 1024) / 1024;
        Duration::from_nanos(wait)
    }

    fn random(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::{BEGINNING, Rate};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_budget_is_kept_whatever_a_round_costs(costs in proptest::collection::vec(1_000u64..30_000_000, 200..400), beginning in 0u64..400_000_000, seed in any::<u64>()) {
            let mut rate = Rate::new(0, 0, seed);
            let (mut now, mut spent, mut most) = (0u64, 0u64, 0);
            // Meeting a great many threads comes first.
            for cost in [beginning].into_iter().chain(costs) {
                now += cost;
                spent += cost;
                most = most.max(cost);
                now += u64::try_from(rate.sleep(now, spent).as_nanos()).unwrap();
            }
            // The last round, and what its sleep was shortened by, may be beyond it.
            prop_assert!(spent <= now / 50 + BEGINNING + 2 * most, "{spent} of {now}");
        }
    }

    #[test]
    fn another_budget_is_kept_as_well() {
        let mut rate = Rate::within(5, 0, 0, 7);
        let (mut now, mut spent) = (0u64, 0u64);
        for _ in 0..2_000 {
            now += 400_000;
            spent += 400_000;
            now += u64::try_from(rate.sleep(now, spent).as_nanos()).unwrap();
        }
        assert!(spent <= now / 200 + BEGINNING + 800_000, "{spent} of {now}");
    }

    #[test]
    fn cheap_rounds_are_made_often() {
        let mut rate = Rate::new(0, 0, 7);
        let sleeps: Vec<u128> = (1..100)
            .map(|round| rate.sleep(round * 1_000_000, round * 10_000).as_micros())
            .collect();
        assert!(
            sleeps.iter().all(|micros| (500..=1_500).contains(micros)),
            "{sleeps:?}"
        );
    }
}
