//! How much work holdup does on what an observed process has written, while it observes.
//!
//! The problem: the process chooses how much work its files are. Sixty kilobytes of unwinding instructions, run for each address,
//! used up a CPU for half a minute. The choice: all such work is charged here, to the process whose stack asked for it. A process
//! has an amount at once and a small share of a CPU for as long as it is observed; all processes together have some times as much.
//! What is beyond that is not done, and the process is named in the report. Work that others have paid for (a rule that is known
//! already) is free, so that a costly neighbour in the same library takes nothing from anybody.
//!
//! Work is counted in steps and not in time, so that the same stacks have the same names on every machine. In: work that was done,
//! by whom and when. Out: whether more may be done.

use crate::stacks::ProcessKey;
use holdup_evidence::Ns;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Steps that a process has at once. A step is some 10 ns: 0.2 s. All of a large compiler or browser takes a tenth of that: a rule for
/// each of 50,000 addresses, and an index of 500,000 functions.
const STEPS_AT_ONCE: u64 = 20_000_000;

/// Steps a second that come on top while it is observed: 2 % of a CPU.
const STEPS_A_SECOND: u64 = 2_000_000;

/// How many such processes may use up all of theirs.
const PROCESSES_AT_COST: u64 = 8;

/// So many processes that had no more are known by their ids; of others there is only the number.
const KNOWN_MAX: usize = 16;

/// So many steps a microsecond of CPU time is: 0.5 s of work by the clock is what a process has at once. On a machine with slow CPUs, or whose
/// CPUs have others on them, the same work takes four times as long as on one of today; with 0.2 s such a machine named none of Node.js'
/// functions, whose symbols take 0.13 s on a quick one. Of a build that is not optimised half as many, because it takes longer still: 0.65 s.
const STEPS_A_MICROSECOND: u64 = if cfg!(debug_assertions) { 20 } else { 40 };

const NS_A_SECOND: u64 = 1_000_000_000;

/// Who asks for work: a process, its id, and when its stack was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) process: ProcessKey,
    pub(crate) pid: u32,
    pub(crate) at: Ns,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    /// When its first work was done; 0 while that is not known.
    since: Ns,
    spent: u64,
}

impl Account {
    fn charge(&mut self, at: Ns, steps: u64) {
        if self.since == 0 {
            self.since = at;
        }
        self.spent = self.spent.saturating_add(steps);
    }

    fn has_left(&self, at: Ns, times: u64) -> bool {
        let observed = match self.since {
            0 => 0,
            since => u128::from(at.saturating_sub(since)),
        };
        let more = observed * u128::from(STEPS_A_SECOND) / u128::from(NS_A_SECOND);
        u128::from(self.spent) < u128::from(times) * (u128::from(STEPS_AT_ONCE) + more)
    }
}

/// The accounts.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    processes: HashMap<ProcessKey, Account>,
    all: Account,
    /// Processes that had no more.
    beyond: BTreeSet<u32>,
}

impl Budget {
    /// Whether more may be done for a process; if not, that is noted. The piece that uses up the last of it is done whole.
    pub(crate) fn allows(&mut self, asker: &Asker) -> bool {
        let own = self.processes.get(&asker.process);
        let own = own.is_none_or(|account| account.has_left(asker.at, 1));
        let allowed = own && self.all.has_left(asker.at, PROCESSES_AT_COST);
        if !allowed && self.beyond.len() < KNOWN_MAX {
            self.beyond.insert(asker.pid);
        }
        allowed
    }

    /// Takes off what was done.
    pub(crate) fn charge(&mut self, asker: &Asker, steps: u64) {
        let own = self.processes.entry(asker.process);
        own.or_default().charge(asker.at, steps);
        self.all.charge(asker.at, steps);
    }

    /// The same by a clock: work whose steps nobody can count. Ordinary work is charged nothing here.
    pub(crate) fn charge_time(&mut self, asker: &Asker, cpu: Duration) {
        let microseconds = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        if microseconds > 0 {
            self.charge(asker, microseconds.saturating_mul(STEPS_A_MICROSECOND));
        }
    }

    /// The process is gone.
    pub(crate) fn exit(&mut self, process: ProcessKey) {
        self.processes.remove(&process);
    }

    /// Some of the processes that had no more, lowest first.
    pub(crate) fn beyond(&self) -> impl Iterator<Item = u32> {
        self.beyond.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(number: u32, seconds: u64) -> Asker {
        Asker {
            process: ProcessKey(number),
            pid: 100 + number,
            at: 7 + seconds * NS_A_SECOND,
        }
    }

    #[test]
    fn a_process_that_has_used_up_its_steps_gets_more_with_time_and_takes_none_from_others() {
        let mut budget = Budget::default();
        assert!(budget.allows(&asker(1, 0)));
        budget.charge(&asker(1, 0), STEPS_AT_ONCE - 1);
        assert!(budget.allows(&asker(1, 0)));
        budget.charge(&asker(1, 0), 1 + STEPS_A_SECOND);
        assert!(!budget.allows(&asker(1, 0)) && !budget.allows(&asker(1, 1)));
        assert!(budget.allows(&asker(1, 2)) && budget.allows(&asker(2, 0)));
        assert_eq!(budget.beyond().collect::<Vec<_>>(), [101]);
    }

    #[test]
    fn many_processes_together_are_bounded_too() {
        let mut budget = Budget::default();
        let allowed = (0..100).filter(|number| {
            let asker = asker(*number, 0);
            let allowed = budget.allows(&asker);
            if allowed {
                budget.charge(&asker, STEPS_AT_ONCE);
            }
            allowed
        });
        assert_eq!(allowed.count() as u64, PROCESSES_AT_COST);
        assert_eq!(budget.beyond().count(), KNOWN_MAX);
    }

    #[test]
    fn a_charge_beyond_all_numbers_stays_a_charge() {
        let mut budget = Budget::default();
        budget.charge(&asker(1, 0), u64::MAX);
        budget.charge(&asker(1, 0), u64::MAX);
        assert!(!budget.allows(&asker(1, u64::MAX / NS_A_SECOND - 8)));
    }
}
