//! How many stacks of one kind may come, and how much blocked time each stands for.
//!
//! In: what came since the last time, and how long that was. Out: the budget and the allowance that the programs keep to.
//! Each time a thread's blocked time passes a multiple of the budget it has a stack; too many, and each stands for more.

use crate::tracer::Pace;
use holdup_evidence::Ns;

/// Blocked time that one stack stands for to begin with: a wait of a millisecond or more has one of its own.
/// Shorter ones do not decide what a person can feel; at this budget stacks cost some 0.25 % of blocked time.
const STACK_BUDGET: Ns = 1_000_000;
/// A stack stands for at most this much, so that long runs are still reported.
const STACK_BUDGET_MOST: Ns = 1_000_000_000;

/// The low rates of services are judged over at least so long, nanoseconds: of two or three in a turn, chance would decide.
const JUDGED_OVER: Ns = 100_000_000;

/// The same of the rates of recorders, which are lower still.
const JUDGED_OVER_RECORDING: Ns = 1_000_000_000;

/// A burst may bring so many times the rate that is too much.
const BURST: f64 = 2.0;

/// The shortest turn that is reckoned with, nanoseconds.
const TURN: Ns = 20_000_000;

/// Of one kind.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Stacks a second above which each must stand for more.
    most: f64,
    /// Stacks a second below which each may stand for less again.
    few: f64,
    /// Rates are judged over at least so long.
    judged_over: Ns,
    /// Blocked time that one stands for now.
    budget: Ns,
    /// One in so many of them is to do, to stay within a budget.
    spare: f64,
    /// Stacks since the last judgement, and how long ago that was.
    seen: u64,
    since: Ns,
}

impl Allowance {
    /// Unwinding a user stack takes some 30 µs: beside a service no more than 0.3 % of a core.
    pub(crate) fn user(pace: Pace) -> Allowance {
        match pace {
            Pace::Command => Allowance::between(100.0, 500.0, TURN),
            Pace::Service => Allowance::between(20.0, 100.0, JUDGED_OVER),
            Pace::Record => Allowance::between(5.0, 20.0, JUDGED_OVER_RECORDING),
        }
    }

    /// A kernel stack is some names by the time it gets here, and found again by them; the kernel takes some 3 µs for it.
    /// What a wait without one was for is known by an earlier one in the same call.
    pub(crate) fn kernel(pace: Pace) -> Allowance {
        match pace {
            Pace::Command => Allowance::between(4_000.0, 20_000.0, TURN),
            Pace::Service => Allowance::between(200.0, 1_000.0, JUDGED_OVER),
            Pace::Record => Allowance::between(20.0, 100.0, JUDGED_OVER),
        }
    }

    fn between(few: f64, most: f64, judged_over: Ns) -> Allowance {
        Allowance {
            most,
            few,
            judged_over,
            budget: STACK_BUDGET,
            spare: 1.0,
            seen: 0,
            since: 0,
        }
    }

    /// One has come.
    pub(crate) fn came(&mut self) {
        self.seen += 1;
    }

    /// Blocked time that one stands for now.
    pub(crate) fn budget(&self) -> Ns {
        self.budget
    }

    /// From now on one stack where there would have been `spare`.
    pub(crate) fn spare(&mut self, spare: f64) {
        self.spare = spare.max(1.0);
    }

    /// Adapts to what came in the last `elapsed`; returns how many more may come until the next time.
    pub(crate) fn adapt(&mut self, elapsed: Ns) -> i32 {
        self.since = self.since.saturating_add(elapsed);
        let (few, most) = (self.few / self.spare, self.most / self.spare);
        if self.since >= self.judged_over {
            let rate = self.seen as f64 * 1e9 / self.since as f64;
            (self.seen, self.since) = (0, 0);
            if rate > most {
                self.budget = (self.budget * 2).min(STACK_BUDGET_MOST);
            } else if rate < few {
                self.budget = (self.budget / 2).max(STACK_BUDGET);
            }
        }
        (most * BURST * elapsed.clamp(TURN, self.judged_over.max(JUDGED_OVER)) as f64 / 1e9) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowance, JUDGED_OVER, STACK_BUDGET, STACK_BUDGET_MOST, TURN};
    use crate::tracer::Pace;

    #[test]
    fn too_many_stand_for_more_and_few_for_less_again() {
        let mut allowance = Allowance::user(Pace::Service);
        let after = |allowance: &mut Allowance, stacks: u64| {
            (0..stacks).for_each(|_| allowance.came());
            allowance.adapt(JUDGED_OVER);
            allowance.budget()
        };
        assert_eq!(after(&mut allowance, 11), 2 * STACK_BUDGET);
        assert_eq!(after(&mut allowance, 5), 2 * STACK_BUDGET, "neither many nor few");
        assert_eq!(after(&mut allowance, 1), STACK_BUDGET);
        assert_eq!(after(&mut allowance, 0), STACK_BUDGET, "not below the first");
        for _ in 0..64 {
            after(&mut allowance, 1_000);
        }
        assert_eq!(allowance.budget(), STACK_BUDGET_MOST);
    }

    #[test]
    fn a_budget_leaves_fewer() {
        let mut allowance = Allowance::user(Pace::Service);
        allowance.spare(5.0);
        (0..3).for_each(|_| allowance.came());
        assert_eq!(allowance.adapt(JUDGED_OVER), 4, "40 a second, for a tenth");
        assert_eq!(
            allowance.budget(),
            2 * STACK_BUDGET,
            "30 a second are more than 20"
        );
    }

    #[test]
    fn chance_in_one_turn_decides_nothing() {
        let mut allowance = Allowance::user(Pace::Service);
        (0..8).for_each(|_| allowance.came());
        assert_eq!(allowance.adapt(TURN), 4, "twice the rate, for a turn");
        assert_eq!(allowance.budget(), STACK_BUDGET);
    }
}
