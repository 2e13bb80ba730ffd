//! Whether sleeps end at fixed times, or each begins when the last is over.
//!
//! In: a thread's sleeps of one kind, in order. Out: a [`Pace`]. A loop that sleeps for a length passes on whatever
//! delays it: a waking that is late, and what is done between two sleeps, put off all that follow. One that sleeps until the
//! next of its times passes on nothing. So the ends of four sleeps in a row are scattered four times as much (as variances) as
//! those of one in the first case, and no more than those of one in the second. Before that, what is done between two sleeps
//! tells, where it varies more than wakings are late: who sleeps for a length sleeps evenly, and at uneven times; who sleeps until
//! the next of its times is the other way about. Which call it is does not tell: Python sleeps
//! for a length by naming an instant, other programs work out for how long they have to sleep until one. Of a few sleeps until an
//! instant the shortest tells: what people ask for is round, and a timer is never early; the rest of a period is not round, and
//! shorter where the waking before was late.

use holdup_evidence::{Call, Ns};
use holdup_model::attributed::Pace;

/// So many sleeps in a row are compared with one.
const ROW: usize = 4;

/// Periods whose median is the usual one.
const FIRST: usize = 7;

/// Rows that are enough to tell: simulated with delays like those of timers (60 µs, some of a millisecond), of 32 ends one in
/// fifty is reported wrongly, of 50 one in two hundred.
const MIN_ROWS: u32 = 28;

/// From this ratio of the variances on delays are passed on: it is 1 where none is, 4 where all are, both with some chance.
const PASSED_ON: f64 = 1.75;

/// From this ratio of variances on, lengths are more even than the times between ends, or the other way about.
const MORE_EVEN: f64 = 2.0;

/// Lengths that people ask for, nanoseconds, and by how much the shortest of a few sleeps is longer: timers are 50 µs late on
/// purpose, and a waking takes its time.
const ROUND: Ns = 10_000_000;
const LATE: Ns = 150_000;

/// `TIMER_ABSTIME`: a sleep until an instant.
const UNTIL: u64 = 1;

/// What was seen of such sleeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Rhythm {
    /// Ends of the first sleeps, and then of the last ones; oldest first.
    ends: Vec<Ns>,
    /// Lengths of the first sleeps.
    first: Vec<Ns>,
    /// The median of the first periods, around which sums are taken.
    usual: Option<f64>,
    one: Sums,
    row: Sums,
    length: Sums,
    /// Whether any of them named an instant.
    until: bool,
    shortest: Option<Ns>,
    /// Whether there were some in between that were not reported one by one.
    gaps: bool,
}

/// Of deviations from the usual period.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u32,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// The mean square distance from a centre.
    fn around(&self, centre: f64) -> f64 {
        let count = f64::from(self.count);
        self.squares / count - 2.0 * centre * self.sum / count + centre * centre
    }
}

impl Rhythm {
    /// A sleep is over.
    pub(super) fn slept(&mut self, call: &Call, start: Ns, at: Ns) {
        let length = at.saturating_sub(start);
        self.shortest = Some(self.shortest.map_or(length, |shortest| shortest.min(length)));
        self.until |= call.name() == Some("clock_nanosleep") && call.args[1] & UNTIL != 0;
        if self.row.count >= u32::MAX / 2 {
            return;
        }
        if self.usual.is_some() {
            return self.add(at, length);
        }
        self.ends.push(at);
        self.first.push(length);
        if self.ends.len() > FIRST {
            let mut periods: Vec<Ns> = self
                .ends
                .windows(2)
                .map(|two| two[1].saturating_sub(two[0]))
                .collect();
            periods.sort_unstable();
            self.usual = Some(periods[FIRST / 2] as f64);
            let lengths = std::mem::take(&mut self.first);
            for (at, length) in std::mem::take(&mut self.ends).into_iter().zip(lengths) {
                self.add(at, length);
            }
        }
    }

    fn add(&mut self, at: Ns, length: Ns) {
        let usual = self.usual.unwrap_or_default();
        if let Some(last) = self.ends.last() {
            let off = at.saturating_sub(*last) as f64 - usual;
            // A time that was missed, or something else in between: the row begins anew.
            if off.abs() > usual / 2.0 {
                self.ends.clear();
            } else {
                self.one.add(off);
                self.length.add(length as f64 - usual);
            }
        }
        self.ends.push(at);
        if let Some(from) = self.ends.len().checked_sub(ROW + 1) {
            let row = at.saturating_sub(self.ends[from]) as f64;
            self.row.add(row - ROW as f64 * usual);
            self.ends.remove(0);
        }
    }

    /// Some followed of which only the number is known.
    pub(super) fn untold(&mut self) {
        self.gaps = true;
    }

    /// What that comes to.
    pub(super) fn pace(&self) -> Pace {
        let round = |length: Ns| length >= ROUND && length % ROUND < LATE;
        let untold = match self.until {
            false => Pace::Unknown,
            true if self.shortest.is_some_and(round) => Pace::OneAfterTheOther,
            true => Pace::Until,
        };
        if self.gaps || self.row.count < MIN_ROWS {
            return untold;
        }
        let centre = self.one.sum / f64::from(self.one.count);
        let (one, row) = (self.one.around(centre), self.row.around(ROW as f64 * centre));
        let lengths = self.length.around(self.length.sum / f64::from(self.length.count));
        if lengths * MORE_EVEN < one {
            return Pace::OneAfterTheOther;
        }
        if one * MORE_EVEN < lengths {
            return Pace::FixedTimes;
        }
        match row / one {
            ratio if !ratio.is_finite() => untold,
            ratio if ratio < PASSED_ON => Pace::FixedTimes,
            _ => Pace::OneAfterTheOther,
        }
    }

    /// Of several threads the one that slept most often tells.
    pub(super) fn absorb(&mut self, other: Rhythm) {
        let until = self.until | other.until;
        let shortest = self.shortest.into_iter().chain(other.shortest).min();
        if other.row.count > self.row.count {
            *self = other;
        }
        self.until = until;
        self.shortest = shortest;
    }
}

#[cfg(test)]
mod tests {
    use super::Rhythm;
    use holdup_evidence::{Call, Ns};
    use holdup_model::attributed::Pace;

    const PERIOD: Ns = 200_000_000;

    /// A waking's delay, as timers have it: 60 µs, and now and then much more.
    fn delay(index: u64) -> Ns {
        // Knuth's multiplier spreads the numbers evenly.
        let spread = index
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407)
            >> 40;
        60_000 + spread % 50_000 + if spread.is_multiple_of(11) { 2_000_000 } else { 0 }
    }

    fn pace(count: u64, until: bool, end: impl Fn(u64, Ns) -> Ns) -> Pace {
        let call = Call {
            args: [1, u64::from(until), 0, 0],
            ..Call::named("clock_nanosleep")
        };
        let mut rhythm = Rhythm::default();
        let mut at = 0;
        for index in 0..count {
            let start = at + 7_000;
            at = end(index, at);
            rhythm.slept(&call, start, at);
        }
        rhythm.pace()
    }

    fn fixed(index: u64, _: Ns) -> Ns {
        (index + 1) * PERIOD + delay(index)
    }

    fn one_after_the_other(index: u64, last: Ns) -> Ns {
        last + PERIOD + delay(index)
    }

    #[test]
    fn what_is_late_delays_the_others_or_it_does_not() {
        for until in [false, true] {
            assert_eq!(pace(60, until, fixed), Pace::FixedTimes);
            assert_eq!(pace(60, until, one_after_the_other), Pace::OneAfterTheOther);
        }
        // With a time missed now and then, because what is done took longer.
        let missed = |index: u64, last| fixed(index + index / 10, last);
        assert_eq!(pace(80, false, missed), Pace::FixedTimes);
        // With something else before.
        let other = |index: u64, last: Ns| if index < 2 { last + 7 } else { fixed(index, last) };
        assert_eq!(pace(60, false, other), Pace::FixedTimes);
        // On a busy machine, which comes late to the first, and misses others.
        let busy = |index: u64, last| {
            fixed(index + index / 12, last)
                + if index == 0 {
                    0
                } else {
                    70_000_000 * u64::from(index == 1)
                }
        };
        assert_eq!(pace(80, false, busy), Pace::FixedTimes);
    }

    #[test]
    fn work_that_varies_tells_whatever_its_pattern() {
        // In turn of another length, so that those of any four sleeps in a row come to about the same.
        let work = |index: u64| index * 7 % 10 * 50_000;
        let series = |paced: bool| {
            let mut rhythm = Rhythm::default();
            let mut end = 0;
            for index in 0..60 {
                let start = end + work(index);
                let due = if paced {
                    (index + 1) * PERIOD
                } else {
                    start + PERIOD
                };
                end = due + delay(index) % 20_000;
                rhythm.slept(&Call::named("clock_nanosleep"), start, end);
            }
            rhythm.pace()
        };
        assert_eq!(series(true), Pace::FixedTimes);
        assert_eq!(series(false), Pace::OneAfterTheOther);
    }

    #[test]
    fn a_few_tell_only_what_was_asked_for() {
        assert_eq!(pace(20, false, one_after_the_other), Pace::Unknown);
        assert_eq!(pace(20, true, fixed), Pace::Until);
        assert_eq!(pace(20, true, one_after_the_other), Pace::OneAfterTheOther);
        // As on a clock of ticks: nothing is scattered.
        assert_eq!(pace(60, false, |index, _| index * PERIOD), Pace::Unknown);
    }

    #[test]
    fn the_longest_series_tells() {
        let series = |count, end: fn(u64, Ns) -> Ns| {
            let mut rhythm = Rhythm::default();
            let mut at = 0;
            for index in 0..count {
                let start = at;
                at = end(index, at);
                rhythm.slept(&Call::named("nanosleep"), start, at);
            }
            rhythm
        };
        let mut both = series(40, one_after_the_other);
        both.absorb(series(60, fixed));
        assert_eq!(both.pace(), Pace::FixedTimes);
        both.absorb(series(50, one_after_the_other));
        assert_eq!(both.pace(), Pace::FixedTimes);
    }
}
