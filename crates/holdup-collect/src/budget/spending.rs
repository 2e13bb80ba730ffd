//! What an observation uses, and what is done about it. In: the tracer, turn by turn. Out: the account at the end.

use super::{Advice, Ceiling, Keeper, Meter, Used};
use crate::own_cpu_time;
use holdup_bpf::Tracer;
use holdup_evidence::budget::Budget;
use holdup_proc::clocks;
use std::time::Duration;

/// Of one observation, from before the programs are loaded.
#[derive(Debug)]
pub(crate) struct Spending {
    limit: Ceiling,
    meter: Meter,
    /// Since observation began.
    keeper: Option<Keeper>,
    /// CPU samples of what is observed.
    samples: u64,
    records: u64,
    account: Option<Budget>,
    used_up: bool,
}

impl Spending {
    /// Call it while this process has all its rights.
    pub(crate) fn begin(limit: Ceiling) -> Spending {
        Spending {
            limit,
            meter: Meter::begin(clocks::monotonic()),
            keeper: None,
            samples: 0,
            records: 0,
            account: None,
            used_up: false,
        }
    }

    /// Observation begins, and is to last so long.
    pub(crate) fn observe(&mut self, tracer: &Tracer, lasts: Option<Duration>) {
        let now = clocks::monotonic();
        self.keeper = Some(Keeper::begin(self.limit, lasts, now, self.used(tracer)));
    }

    /// A running thread of what is observed was met by the clock.
    pub(crate) fn sampled(&mut self) {
        self.samples += 1;
    }

    /// Whether what a person has set is used up.
    pub(crate) fn is_used_up(&self) -> bool {
        self.used_up
    }

    /// Measures, judges, and leaves out what has to be left out. `records`: how many this turn has brought.
    pub(crate) fn turn(&mut self, tracer: &mut Tracer, records: usize) {
        self.records = self.records.saturating_add(records as u64);
        let now = clocks::monotonic();
        self.meter.turn(tracer, now);
        if !self.keeper.as_ref().is_some_and(|keeper| keeper.is_due(now)) {
            return;
        }
        let used = self.used(tracer);
        match self.keeper.as_mut().map(|keeper| keeper.judge(now, used)) {
            Some(Advice::Spare(steps)) => tracer.spare(steps),
            Some(Advice::End) => self.used_up = true,
            Some(Advice::GoOn) | None => {}
        }
    }

    /// Observation is over: what comes now is work on the report.
    pub(crate) fn end(&mut self, tracer: &Tracer) {
        let used = self.used(tracer);
        let counted = self.meter.has_counted();
        if let Some(keeper) = self.keeper.take() {
            self.account = Some(keeper.finish(clocks::monotonic(), used, counted));
        }
    }

    /// The account; nothing where observation never began.
    pub(crate) fn account(mut self, tracer: &Tracer) -> Option<Budget> {
        self.end(tracer);
        self.account
    }

    fn used(&self, tracer: &Tracer) -> Used {
        Used {
            programs: self.meter.taken(tracer.programs(), clocks::monotonic()),
            own: own_cpu_time(),
            records: self.records,
            observed: self.samples.saturating_mul(tracer.cpu_sample_period()),
        }
    }
}
