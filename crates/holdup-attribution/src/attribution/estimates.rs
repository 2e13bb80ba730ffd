//! How sure it is what a thread waited in, where that was looked at now and then.
//!
//! How long a thread was blocked between two looks is known; to which of the things that it was seen in that time belongs is as
//! good as a draw. So a site's time is a sum of draws, each of the size of the time in doubt, and its standard error that of such a
//! sum: the root of `p (1 - p)` times the sum of their squares, where `p` is the site's part of the thread's draws. With few
//! draws `p` is not known well itself: one more is taken to have gone either way.
//!
//! In: what the source says of single waits. Out: an error for each site.

use super::site::Site;
use super::thread::Threads;
use holdup_evidence::{Estimated, Ns};

/// Time of a site that rests on looks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Doubt {
    /// How much.
    pub(super) ns: Ns,
    /// The squares of the single pieces, nanoseconds squared.
    squares: f64,
    /// How many pieces.
    draws: u64,
}

impl Doubt {
    /// A piece of so much time.
    pub(super) fn add(&mut self, ns: Ns) {
        if ns > 0 {
            self.ns = self.ns.saturating_add(ns);
            self.squares += (ns as f64).powi(2);
            self.draws += 1;
        }
    }

    /// That of another site.
    pub(super) fn absorb(&mut self, other: Doubt) {
        self.ns = self.ns.saturating_add(other.ns);
        self.squares += other.squares;
        self.draws += other.draws;
    }

    /// One standard error of this site's time, of all that a thread's sites have.
    pub(super) fn error(&self, all: &Doubt) -> Ns {
        if self.draws == 0 {
            return 0;
        }
        let part = (self.draws + 1) as f64 / (all.draws + 2) as f64;
        (part * (1.0 - part).max(0.0) * all.squares).sqrt().round() as Ns
    }
}

/// That of all sites of a thread.
pub(super) fn all(sites: &[Site]) -> Doubt {
    let mut all = Doubt::default();
    for site in sites {
        all.absorb(site.doubt);
    }
    all
}

/// What is to be known of a thread's next wait.
pub(super) fn estimated(threads: &mut Threads, estimated: &Estimated) {
    if let Some(thread) = threads.get_mut(&estimated.thread) {
        thread.estimated = Some((estimated.count.max(1), estimated.doubt));
    }
}

#[cfg(test)]
mod tests {
    use super::Doubt;

    fn doubt(draws: u64, ns: u64) -> Doubt {
        let mut doubt = Doubt::default();
        (0..draws).for_each(|_| doubt.add(ns));
        doubt
    }

    #[test]
    fn an_error_is_that_of_a_sum_of_draws() {
        let (one, other) = (doubt(50, 1_000), doubt(50, 1_000));
        let mut all = one;
        all.absorb(other);
        // Half of 100 draws: a standard error of five draws.
        assert_eq!(one.error(&all), 5_000);
        assert_eq!(Doubt::default().error(&all), 0);
    }

    #[test]
    fn who_was_seen_in_one_thing_only_is_not_beyond_doubt() {
        let only = doubt(2, 1_000);
        assert!(only.error(&only) > 500, "{}", only.error(&only));
        let often = doubt(10_000, 1_000);
        assert!(often.error(&often) < often.ns / 1_000);
    }
}
