//! When whoever watches live is given what is known so far.
//!
//! The problem: what is known so far has to be put together anew each time, and that costs more the more threads there are. The choice: the
//! dearer it is, the less often it is done, so that it keeps to its share of one CPU. In: what the last one cost. Out: whether the next one
//! is due.

use crate::own_cpu_time;
use std::time::{Duration, Instant};

/// How often somebody wants to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pulse {
    /// Not more often than this.
    pub interval: Duration,
    /// The part of one CPU that it may take, 0..1.
    pub share: f64,
    /// When the first one is due, since observation began.
    pub first: Duration,
}

impl Pulse {
    /// How long after one that has cost so much CPU time the next one is due.
    #[must_use]
    pub fn after(self, cost: Duration) -> Duration {
        let spread = cost.as_secs_f64() / self.share.max(f64::MIN_POSITIVE);
        Duration::try_from_secs_f64(spread)
            .unwrap_or(Duration::MAX)
            .max(self.interval)
    }
}

/// The next one.
#[derive(Debug)]
pub(super) struct Beats {
    pulse: Option<Pulse>,
    due: Option<Instant>,
}

impl Beats {
    /// From now on.
    pub(super) fn begin(pulse: Option<Pulse>) -> Beats {
        Beats {
            pulse,
            due: pulse.and_then(|pulse| Instant::now().checked_add(pulse.first)),
        }
    }

    /// Whether anybody is given any.
    pub(super) fn are_wanted(&self) -> bool {
        self.pulse.is_some()
    }

    /// Gives what is known so far if it is time to.
    pub(super) fn tell(&mut self, so_far: impl FnOnce()) {
        let Some(pulse) = self
            .pulse
            .filter(|_| self.due.is_some_and(|due| due <= Instant::now()))
        else {
            return;
        };
        let before = own_cpu_time();
        so_far();
        let cost = Duration::from_nanos(own_cpu_time().saturating_sub(before));
        self.due = Instant::now().checked_add(pulse.after(cost));
    }
}

#[cfg(test)]
mod tests {
    use super::{Beats, Pulse};
    use std::time::Duration;

    #[test]
    fn the_dearer_it_is_the_less_often_it_is_done() {
        let pulse = Pulse {
            interval: Duration::from_secs(2),
            share: 0.01,
            first: Duration::ZERO,
        };
        assert_eq!(pulse.after(Duration::from_millis(1)), Duration::from_secs(2));
        assert_eq!(pulse.after(Duration::from_millis(50)), Duration::from_secs(5));
        let nothing = Pulse { share: 0.0, ..pulse };
        assert!(nothing.after(Duration::from_secs(1)) > Duration::from_secs(1 << 40));
    }

    #[test]
    fn nobody_who_did_not_ask_is_given_any() {
        Beats::begin(None).tell(|| panic!("nobody asked"));
        let mut count = 0;
        let mut beats = Beats::begin(Some(Pulse {
            interval: Duration::from_secs(3_600),
            share: 1.0,
            first: Duration::ZERO,
        }));
        beats.tell(|| count += 1);
        beats.tell(|| count += 1);
        assert_eq!(count, 1);
    }
}
