//! Which segments were unlike the others.
//!
//! In: of each segment how much thread time each cause had. Out: those that stand out, and what they had more or less of.
//!
//! Each segment is a vector: nanoseconds a second by cause, waiting for work left out. A cause's place among the others is its distance from the
//! median in robust standard deviations, 1.4826 times the median absolute deviation (Hampel, "The influence curve and its role in
//! robust estimation", 1974): unlike mean and standard deviation they don't follow the minutes that are looked for, up to half of all.
//! A segment stands out if one of its scores is beyond 3.5 (Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993), and
//! the length of its vector of scores is how far. Correlation between causes is not taken out, as a robust Mahalanobis
//! distance would: that takes many times more segments than there are causes.

use crate::Segment;
use holdup_evidence::{Cause, Ns};
use std::collections::BTreeMap;

/// Beyond which score a value is an outlier.
const CUTOFF: f64 = 3.5;

/// What makes the median absolute deviation of normal values their standard deviation.
const TO_DEVIATION: f64 = 1.4826;

/// The least deviation, nanoseconds a second: where a cause is nearly always the same, 10 ms a second (1 % of one thread) more of
/// it is still nothing that a person would call unlike. That is 3.5 times this.
const LEAST_DEVIATION: f64 = 10_000_000.0 / CUTOFF;

/// Of fewer segments none can be said to be unlike the others.
pub const MIN_SEGMENTS: usize = 5;

/// Thread time by cause, nanoseconds a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates(BTreeMap<Cause, f64>);

/// A segment that stands out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// Which of those that were given.
    pub number: usize,
    /// Length of its vector of scores.
    pub distance: f64,
    /// What it had more or less of, most unusual first.
    pub causes: Vec<Unusual>,
}

/// A cause that a segment had more or less of.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusual {
    /// Which.
    pub cause: Cause,
    /// Nanoseconds a second.
    pub rate: Ns,
    /// The median of all.
    pub usual: Ns,
    /// Robust standard deviations off; negative: less.
    pub score: f64,
}

impl Rates {
    /// Those of a segment.
    #[must_use]
    pub fn of(segment: &Segment) -> Rates {
        let seconds = segment.head.length.max(1) as f64 / 1e9;
        let mut rates = BTreeMap::new();
        for thread in &segment.attributed.threads {
            for (cause, tally) in &thread.causes {
                if *cause != Cause::Idle {
                    *rates.entry(*cause).or_default() += tally.ns as f64 / seconds;
                }
            }
        }
        Rates(rates)
    }

    fn rate(&self, cause: Cause) -> f64 {
        self.0.get(&cause).copied().unwrap_or_default()
    }
}

/// Those that stand out, farthest first.
#[must_use]
pub fn outliers(all: &[Rates]) -> Vec<Outlier> {
    if all.len() < MIN_SEGMENTS {
        return Vec::new();
    }
    let usual: Vec<(Cause, f64, f64)> = Cause::ALL
        .iter()
        .map(|cause| {
            let rates: Vec<f64> = all.iter().map(|rates| rates.rate(*cause)).collect();
            let middle = median(rates.clone());
            let off = rates.iter().map(|rate| (rate - middle).abs()).collect();
            (*cause, middle, (median(off) * TO_DEVIATION).max(LEAST_DEVIATION))
        })
        .collect();
    let mut outliers: Vec<Outlier> = all
        .iter()
        .enumerate()
        .filter_map(|(number, rates)| outlier(number, rates, &usual))
        .collect();
    outliers.sort_by(|one, other| other.distance.total_cmp(&one.distance));
    outliers
}

fn outlier(number: usize, rates: &Rates, usual: &[(Cause, f64, f64)]) -> Option<Outlier> {
    let scores = usual.iter().map(|(cause, middle, deviation)| Unusual {
        cause: *cause,
        rate: rates.rate(*cause) as Ns,
        usual: *middle as Ns,
        score: (rates.rate(*cause) - middle) / deviation,
    });
    let distance = scores
        .clone()
        .map(|one| one.score * one.score)
        .sum::<f64>()
        .sqrt();
    let mut causes: Vec<Unusual> = scores.filter(|one| one.score.abs() > CUTOFF).collect();
    causes.sort_by(|one, other| other.score.abs().total_cmp(&one.score.abs()));
    (!causes.is_empty()).then_some(Outlier {
        number,
        distance,
        causes,
    })
}

/// The middle one, or between the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Rates, outliers};
    use holdup_evidence::Cause;

    fn rates(disk: f64, cpu: f64) -> Rates {
        Rates([(Cause::DiskSync, disk), (Cause::CpuUser, cpu)].into())
    }

    #[test]
    fn the_minute_with_the_stall_stands_out_and_ordinary_ups_and_downs_do_not() {
        let mut all: Vec<Rates> = (0..60)
            .map(|at| rates(2e6, 3e8 + f64::from(at % 7) * 1e7))
            .collect();
        assert_eq!(outliers(&all), vec![]);
        all[41] = rates(7e8, 3e8);
        let found = outliers(&all);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].number, 41);
        assert_eq!(found[0].causes[0].cause, Cause::DiskSync);
        assert_eq!(
            (found[0].causes[0].rate, found[0].causes[0].usual),
            (700_000_000, 2_000_000)
        );
        assert!(found[0].causes[0].score > 0.0 && found[0].causes.len() == 1);
    }

    #[test]
    fn less_is_unusual_too_and_many_of_them_do_not_hide_each_other() {
        let mut all: Vec<Rates> = (0..60).map(|_| rates(5e8, 0.0)).collect();
        for minute in &mut all[..20] {
            *minute = rates(0.0, 0.0);
        }
        let found = outliers(&all);
        assert_eq!(found.len(), 20);
        assert!(found.iter().all(|one| one.causes[0].score < 0.0));
    }

    #[test]
    fn of_a_few_none_is_unlike_the_others() {
        let all = [rates(0.0, 0.0), rates(0.0, 0.0), rates(0.0, 0.0), rates(9e9, 0.0)];
        assert_eq!(outliers(&all), vec![]);
    }
}
