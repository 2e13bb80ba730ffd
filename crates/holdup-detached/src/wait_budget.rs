//! How long an observer waits, in all, for readers that do not answer.
//!
//! The problem: each process that can't be read costs the time until its reader is given up. With a fixed number of readers a few hostile
//! processes use them up, and nothing of anybody else is read any more, in a recorder for as long as it runs. The choice: what is limited
//! is the share of time that waiting takes, so a recorder gets its readers back. Readers that even SIGKILL does not end are limited in
//! number. In: times waited. Out: whether another reader may be started.

use crate::children::left_behind;
use std::time::{Duration, Instant};

/// So much may be waited from the first moment.
const AT_FIRST: Duration = Duration::from_secs(2);

/// One part in so many of the time since then may be waited too.
const ONE_PART_IN: u32 = 10;

/// What starting a reader counts as: a fork of a large process, and its confinement, take some milliseconds.
const START: Duration = Duration::from_millis(5);

/// So many children may be left behind. Each holds some megabytes until the file system that it is stuck in answers.
const LEFT_BEHIND_MAX: usize = 64;

/// The budget.
#[derive(Debug)]
pub struct WaitBudget {
    began: Instant,
    spent: Duration,
}

impl Default for WaitBudget {
    fn default() -> WaitBudget {
        WaitBudget::new()
    }
}

impl WaitBudget {
    /// Begins now.
    #[must_use]
    pub fn new() -> WaitBudget {
        WaitBudget {
            began: Instant::now(),
            spent: Duration::ZERO,
        }
    }

    /// Whether another reader may be started; charges what that takes.
    pub fn may_start(&mut self) -> bool {
        let may = self.spent < allowed(self.began.elapsed()) && left_behind().len() < LEFT_BEHIND_MAX;
        if may {
            self.spent += START;
        }
        may
    }

    /// So long was waited for one that did not answer.
    pub fn charge(&mut self, waited: Duration) {
        self.spent += waited;
    }
}

/// What may have been waited by then.
fn allowed(elapsed: Duration) -> Duration {
    AT_FIRST + elapsed / ONE_PART_IN
}

#[cfg(test)]
mod tests {
    use super::{WaitBudget, allowed};
    use std::time::Duration;

    #[test]
    fn what_is_used_up_comes_back_with_time() {
        let mut budget = WaitBudget::new();
        assert!(budget.may_start());
        budget.charge(Duration::from_hours(1));
        assert!(!budget.may_start());
        assert!(allowed(Duration::from_hours(11)) > budget.spent);
    }
}
