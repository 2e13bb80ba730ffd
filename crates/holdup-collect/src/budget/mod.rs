//! Keeps an observation within a budget of CPU time.
//!
//! The problem: what holdup takes grows with what it observes, by a factor of thousands. The choice: all of it is measured while it goes
//! on (the programs in the kernel by [`meter`], and holdup's own processes), and when it is more than it may be, evidence is left
//! out, step by step in the order of [`STEPS`]. None of them touches a total of time. Where the person has set the budget, and how long
//! observation is to last, it ends once the budget of that time is used up. In: measurements. Out: steps, and what to say of them.

mod meter;
mod spending;

use holdup_evidence::Ns;
use holdup_evidence::budget::{Budget, STEPS, Step, Thinned};
use std::time::Duration;

use meter::Meter;
pub(crate) use spending::Spending;

/// Rates are judged over so long: a load may rise a thousandfold in an instant, and is to be answered within a second.
const JUDGED_OVER: Ns = 250_000_000;

/// Below this part of the budget something that was left out is taken in again, …
const MUCH_LESS: f64 = 0.4;

/// … after so many judgements in a row.
const CALM: u32 = 8;

/// From this multiple of the budget on, two steps are taken at once.
const MUCH_MORE: f64 = 3.0;

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// Of one CPU, or of the CPU time of what is observed where that is more.
    pub share: f64,
    /// A person set it: where it is known how long observation is to last, that ends once it is used up.
    pub firm: bool,
}

impl Ceiling {
    /// One that a person has set.
    #[must_use]
    pub fn set(share: f64) -> Ceiling {
        Ceiling { share, firm: true }
    }

    /// What became of it where less is looked at instead of leaving anything out: of a look at files. `lasted`: how long observation was;
    /// `start`, `spent`: CPU time before it, and of it.
    #[must_use]
    pub fn of_look(self, lasted: Ns, start: Ns, spent: Ns) -> Budget {
        Budget {
            share: self.share,
            firm: self.firm,
            allowed: (self.share * lasted as f64) as Ns,
            used: spent,
            programs: 0,
            own: spent,
            counted: false,
            start,
            steps: Vec::new(),
        }
    }

    /// What a person has set, if so, else `usual`.
    #[must_use]
    pub fn of(set: Option<f64>, usual: f64) -> Ceiling {
        Ceiling {
            share: set.unwrap_or(usual),
            firm: set.is_some(),
        }
    }
}

/// CPU time so far, since holdup began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Of the programs in the kernel.
    pub(crate) programs: Ns,
    /// Of holdup's own processes.
    pub(crate) own: Ns,
    /// Of what is observed.
    pub(crate) observed: Ns,
    /// Records that came; a number.
    pub(crate) records: u64,
}

impl Used {
    fn all(self) -> Ns {
        self.programs.saturating_add(self.own)
    }

    fn since(self, earlier: Used) -> Used {
        Used {
            programs: self.programs.saturating_sub(earlier.programs),
            own: self.own.saturating_sub(earlier.own),
            observed: self.observed.saturating_sub(earlier.observed),
            records: self.records.saturating_sub(earlier.records),
        }
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// As before.
    GoOn,
    /// From now on so many of the steps.
    Spare(usize),
    /// End observation.
    End,
}

/// Fewer records in a judgement's time cost next to nothing, and to leave some out would save nothing: what is used then is used by looks at
/// files, which are spaced by what they cost.
const MATTERS: u64 = 250;

/// Of one observation.
#[derive(Debug)]
pub(crate) struct Keeper {
    limit: Ceiling,
    /// How long observation is to last; `None`: for as long as it is let.
    lasts: Option<Ns>,
    began: Ns,
    start: Used,
    /// At the last judgement.
    judged: (Ns, Used),
    steps: usize,
    calm: u32,
    said: Vec<Step>,
}

impl Keeper {
    /// `used`: what the start has taken.
    pub(crate) fn begin(limit: Ceiling, lasts: Option<Duration>, now: Ns, used: Used) -> Keeper {
        Keeper {
            limit,
            lasts: lasts.map(|lasts| Ns::try_from(lasts.as_nanos()).unwrap_or(Ns::MAX)),
            began: now,
            start: used,
            judged: (now, used),
            steps: 0,
            calm: 0,
            said: Vec::new(),
        }
    }

    /// When it is time to judge again.
    pub(crate) fn is_due(&self, now: Ns) -> bool {
        now.saturating_sub(self.judged.0) >= JUDGED_OVER
    }

    /// Judges what was used until now.
    pub(crate) fn judge(&mut self, now: Ns, used: Used) -> Advice {
        let (at, before) = std::mem::replace(&mut self.judged, (now, used));
        let lately = used.since(before);
        let rate = lately.all() as f64 / self.counts(now.saturating_sub(at), lately) as f64;
        let since = now.saturating_sub(self.began);
        if self.is_used_up(used) {
            if self.said.last().map(|step| step.what) != Some(Thinned::Time) {
                self.say(Thinned::Time, since);
            }
            return Advice::End;
        }
        let steps = if rate > self.limit.share && lately.records >= MATTERS {
            self.calm = 0;
            let more = if rate > MUCH_MORE * self.limit.share { 2 } else { 1 };
            (self.steps + more).min(STEPS.len())
        } else if rate < MUCH_LESS * self.limit.share {
            self.calm += 1;
            match self.calm >= CALM {
                true => {
                    self.calm = 0;
                    self.steps.saturating_sub(1)
                }
                false => self.steps,
            }
        } else {
            self.calm = 0;
            self.steps
        };
        if steps == self.steps {
            return Advice::GoOn;
        }
        for step in STEPS.iter().take(steps).skip(self.steps) {
            self.say(*step, since);
        }
        for step in STEPS.iter().take(self.steps).skip(steps) {
            let open = self.said.iter_mut().rev();
            if let Some(open) = open
                .into_iter()
                .find(|said| said.what == *step && said.until.is_none())
            {
                open.until = Some(since);
            }
        }
        self.steps = steps;
        Advice::Spare(steps)
    }

    /// What became of it.
    pub(crate) fn finish(self, now: Ns, used: Used, counted: bool) -> Budget {
        let all = used.since(self.start);
        let time = self.lasts.unwrap_or(0).max(now.saturating_sub(self.began));
        Budget {
            share: self.limit.share,
            firm: self.limit.firm,
            allowed: (self.limit.share * self.counts(time, all) as f64) as Ns,
            used: all.all(),
            programs: all.programs,
            own: all.own,
            counted,
            start: self.start.all(),
            steps: self.said,
        }
    }

    /// The time of which the budget is a share.
    fn counts(&self, time: Ns, used: Used) -> Ns {
        time.max(used.observed).max(1)
    }

    /// Only where it was set, and where it is known how long observation is to last: of the time that is asked for, no more than the share is
    /// to be used.
    fn is_used_up(&self, used: Used) -> bool {
        let Some(lasts) = self.lasts.filter(|_| self.limit.firm) else {
            return false;
        };
        let all = used.since(self.start);
        all.all() as f64 >= self.limit.share * self.counts(lasts, all) as f64
    }

    fn say(&mut self, what: Thinned, since: Ns) {
        // A load that comes and goes is not listed time after time: then its last stretch goes on, which says rather too much than too little.
        const MAX_STEPS_SAID: usize = 32;
        let full = self.said.len() >= MAX_STEPS_SAID;
        match self.said.iter_mut().rev().find(|step| full && step.what == what) {
            Some(last) => last.until = None,
            None => self.said.push(Step {
                what,
                since,
                until: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Advice, CALM, Ceiling, JUDGED_OVER, Keeper, Used};
    use holdup_evidence::Ns;
    use holdup_evidence::budget::{STEPS, Thinned};
    use std::time::Duration;

    const SECOND: Ns = 1_000_000_000;

    /// A record for each 10 µs of it.
    fn used(own: Ns) -> Used {
        Used {
            own,
            records: own / 10_000,
            ..Used::default()
        }
    }

    /// Turns of JUDGED_OVER each of which takes this share of a CPU.
    fn turns(keeper: &mut Keeper, at: &mut Ns, all: &mut Ns, share: f64, count: u32) -> Vec<Advice> {
        (0..count)
            .map(|_| {
                *at += JUDGED_OVER;
                *all += (share * JUDGED_OVER as f64) as Ns;
                keeper.judge(*at, used(*all))
            })
            .collect()
    }

    fn keeper(firm: bool, seconds: Option<u64>) -> Keeper {
        let limit = Ceiling { share: 0.03, firm };
        Keeper::begin(limit, seconds.map(Duration::from_secs), 0, used(400_000_000))
    }

    #[test]
    fn nothing_is_left_out_within_the_budget_and_the_start_is_none_of_it() {
        let mut keeper = keeper(true, Some(5));
        let (mut at, mut all) = (0, 400_000_000);
        let advice = turns(&mut keeper, &mut at, &mut all, 0.025, 20);
        assert!(advice.iter().all(|one| *one == Advice::GoOn), "{advice:?}");
        let budget = keeper.finish(at, used(all), true);
        assert!(budget.steps.is_empty());
        assert_eq!((budget.start, budget.allowed), (400_000_000, 150_000_000));
        assert_eq!(budget.used, 125_000_000);
    }

    #[test]
    fn steps_come_in_order_and_go_in_order() {
        let mut keeper = keeper(false, None);
        let (mut at, mut all) = (0, 400_000_000);
        assert_eq!(
            turns(&mut keeper, &mut at, &mut all, 0.05, 2),
            [Advice::Spare(1), Advice::Spare(2)]
        );
        assert_eq!(
            turns(&mut keeper, &mut at, &mut all, 0.02, 1),
            [Advice::GoOn],
            "neither much nor little"
        );
        let calm = turns(&mut keeper, &mut at, &mut all, 0.005, CALM);
        assert_eq!(calm.last(), Some(&Advice::Spare(1)));
        let budget = keeper.finish(at, used(all), true);
        let what: Vec<Thinned> = budget.steps.iter().map(|step| step.what).collect();
        assert_eq!(what, STEPS[..2]);
        assert_eq!(budget.steps[0].until, None, "still left out");
        assert_eq!(budget.steps[1].until, Some(at));
    }

    #[test]
    fn a_sudden_load_is_answered_in_a_second() {
        let mut keeper = keeper(true, None);
        let (mut at, mut all) = (0, 400_000_000);
        turns(&mut keeper, &mut at, &mut all, 0.001, 40);
        turns(
            &mut keeper,
            &mut at,
            &mut all,
            0.5,
            u32::try_from(SECOND / JUDGED_OVER).unwrap(),
        );
        assert_eq!(keeper.steps, STEPS.len());
    }

    #[test]
    fn a_budget_that_was_set_ends_observation_and_one_that_was_not_does_not() {
        let (mut at, mut all) = (0, 400_000_000);
        let mut firm = keeper(true, Some(10));
        let advice = turns(&mut firm, &mut at, &mut all, 0.2, 8);
        assert_eq!(
            advice.iter().position(|one| *one == Advice::End),
            Some(5),
            "0.3 s of 10 s"
        );
        let budget = firm.finish(at, used(all), true);
        assert_eq!(budget.steps.last().map(|step| step.what), Some(Thinned::Time));
        let (mut at, mut all) = (0, 400_000_000);
        let mut usual = keeper(false, Some(10));
        let advice = turns(&mut usual, &mut at, &mut all, 0.2, 40);
        assert!(!advice.contains(&Advice::End));
    }

    #[test]
    fn where_hardly_anything_comes_nothing_is_left_out() {
        let mut keeper = keeper(false, None);
        for turn in 1..=20 {
            let looks = Used {
                own: 400_000_000 + turn * JUDGED_OVER / 10,
                records: turn * 20,
                ..Used::default()
            };
            assert_eq!(keeper.judge(turn * JUDGED_OVER, looks), Advice::GoOn);
        }
    }

    #[test]
    fn who_observes_many_cpus_may_use_as_much_more() {
        let mut keeper = keeper(true, Some(10));
        for turn in 1..=20 {
            let all = Used {
                own: 400_000_000 + turn * JUDGED_OVER / 10,
                observed: turn * JUDGED_OVER * 8,
                ..used(0)
            };
            assert_eq!(keeper.judge(turn * JUDGED_OVER, all), Advice::GoOn);
        }
    }
}
