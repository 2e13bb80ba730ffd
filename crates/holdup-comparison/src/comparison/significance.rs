//! Is a difference more than chance? The unit is the run: what happens within one is alike, whatever it is.
//!
//! In: one amount for each run of BEFORE, of AFTER, and of more runs like BEFORE (noise). Out: how likely such a difference
//! is by chance, and an interval for it.
//!
//! - Several runs each: all ways to deal the runs out to two sides are tried, or 20,000 of them drawn where there are more
//!   (permutation test; Fisher, "The design of experiments", 1935; Pitman 1937; p of drawn ones is (hits + 1) / (draws + 1),
//!   Phipson and Smyth 2010). Four and four runs are the least that can come below 0.05: 2 of 70. The interval is that of all
//!   shifts which the same test would not refuse.
//! - The whole is one question, asked first and alone. Its parts are another: many lines are tested at once, and each is a
//!   chance to be wrong, so they are corrected together by Holm's procedure (Scand. J. Statist. 6, 1979). Of four and four
//!   runs no permutation could ever pass it: 2/70 times the number of lines. So what is corrected is p of Welch's test on the
//!   runs (Biometrika 34, 1947), and a line must pass that and the permutation.
//! - Too few runs for that, but others like BEFORE: how much runs vary is pooled over all groups, each around its own mean
//!   (Student's test, one run of a side may then be enough). It assumes that AFTER varies as BEFORE does.
//! - Else nothing can be reported: within one run waits are like their neighbours, and a test of them finds differences
//!   where there are none.

use super::chance::{Draws, SEED};
use super::student::{quantile, two_sided};

/// A difference counts as more than chance below this: the custom, and what the words of the report say.
pub const LEVEL: f64 = 0.05;

/// Ways to deal runs out that are all tried: those of eight and eight runs are 12,870.
const ALL_WAYS: u128 = 20_000;

/// Ways that are drawn where there are more: p is then within 0.003 of its true value.
const DRAWN: usize = 20_000;

/// Degrees of freedom that the variation between runs must have been reported with, where it comes from other runs: with two
/// of them t must be above 4.3, with one above 12.7.
const LEAST_FREEDOM: f64 = 2.0;

/// Two sums of the same numbers differ by less than this part of them.
const ROUNDING: f64 = 1e-9;

/// Halvings that find the end of an interval: to a millionth of where it began.
const HALVINGS: u32 = 24;

/// How it was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Runs were dealt out to two sides, in every way.
    Permutation,
    /// Runs beside those that are compared told how much runs vary.
    OtherRuns,
    /// There are not enough runs to tell.
    TooFew,
}

/// One amount of each run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amounts {
    /// Of BEFORE's.
    pub before: Vec<f64>,
    /// Of AFTER's.
    pub after: Vec<f64>,
    /// Of more runs like BEFORE.
    pub noise: Vec<f64>,
}

/// What can be said of one amount, before it is corrected for the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Single {
    /// How likely by chance; `None` where that cannot be determined.
    pub p: Option<f64>,
    /// What is to be corrected for the number of lines.
    to_correct: Option<f64>,
    /// Where the true change lies, with 95 %.
    pub interval: Option<[f64; 2]>,
}

impl Single {
    /// Nothing can be said.
    pub(super) const NOTHING: Single = Single {
        p: None,
        to_correct: None,
        interval: None,
    };
}

/// How a comparison of so many runs can be reported.
#[must_use]
pub fn basis(before: usize, after: usize, noise: usize) -> Basis {
    let ways = choose(before + after, after.min(before));
    let freedom = freedom(&[before, after, noise]);
    match () {
        () if before > 1 && after > 1 && 2.0 / ways as f64 <= LEVEL => Basis::Permutation,
        () if noise > 0 && before > 0 && after > 0 && freedom >= LEAST_FREEDOM => Basis::OtherRuns,
        () => Basis::TooFew,
    }
}

/// Judges the whole: whether it is more than chance, `None` where that cannot be determined.
#[must_use]
pub fn whole(amounts: &Amounts) -> (Single, Option<bool>) {
    let found = single(amounts, true);
    (found, found.p.map(|p| p < LEVEL))
}

/// Judges parts, corrected for each other.
#[must_use]
pub fn together(all: &[Amounts]) -> Vec<(Single, Option<bool>)> {
    let singles: Vec<Single> = all.iter().map(|one| single(one, false)).collect();
    let raw: Vec<f64> = singles.iter().filter_map(|one| one.to_correct).collect();
    let mut corrected = holm(&raw).into_iter();
    singles
        .into_iter()
        .map(|one| {
            let corrected = one.to_correct.and_then(|_| corrected.next());
            let p = one.p.zip(corrected).map(|(p, corrected)| p.max(corrected));
            (Single { p, ..one }, p.map(|p| p < LEVEL))
        })
        .collect()
}

/// How much runs vary: the standard deviation within groups over the mean of BEFORE's; `None` where no group has two.
#[must_use]
pub fn variation(amounts: &Amounts) -> Option<f64> {
    let groups = [&amounts.before[..], &amounts.after, &amounts.noise];
    let centre = mean(&amounts.before);
    let freedom = freedom(&groups.map(<[f64]>::len));
    (freedom >= 1.0 && centre > 0.0).then(|| (squares(&groups) / freedom).sqrt() / centre)
}

/// The interval takes as long as all else, and only that of the whole is reported.
fn single(amounts: &Amounts, interval: bool) -> Single {
    let Amounts { before, after, noise } = amounts;
    match basis(before.len(), after.len(), noise.len()) {
        Basis::Permutation => {
            let ways = Ways::new(before, after);
            let p = ways.p(0.0);
            Single {
                p: Some(p),
                to_correct: Some(welch(before, after)),
                interval: interval.then(|| ways.interval()).flatten(),
            }
        }
        Basis::OtherRuns => {
            let groups = [&before[..], after, noise];
            let freedom = freedom(&groups.map(<[f64]>::len));
            let spread = squares(&groups) / freedom;
            let error = (spread * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
            let change = mean(after) - mean(before);
            let p = two_sided(ratio(change, error), freedom);
            let reach = quantile(LEVEL, freedom) * error;
            Single {
                p: Some(p),
                to_correct: Some(p),
                interval: interval.then_some([change - reach, change + reach]),
            }
        }
        Basis::TooFew => Single::NOTHING,
    }
}

/// Welch's test: how likely two means are so far apart, whatever each side's variation is.
fn welch(before: &[f64], after: &[f64]) -> f64 {
    let part = |values: &[f64]| squares(&[values]) / (values.len() - 1) as f64 / values.len() as f64;
    let (a, b) = (part(before), part(after));
    let error = (a + b).sqrt();
    let freedom =
        (a + b).powi(2) / (a.powi(2) / (before.len() - 1) as f64 + b.powi(2) / (after.len() - 1) as f64);
    let t = ratio(mean(after) - mean(before), error);
    two_sided(t, if freedom.is_finite() { freedom } else { 1.0 })
}

/// A change in standard errors. Of runs that do not vary at all, any change is beyond measure.
pub(super) fn ratio(change: f64, error: f64) -> f64 {
    match () {
        () if error > 0.0 => change / error,
        () if change == 0.0 => 0.0,
        () => f64::INFINITY,
    }
}

/// Holm's correction: each p as if it alone had been asked for.
#[must_use]
pub fn holm(raw: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..raw.len()).collect();
    order.sort_by(|a, b| raw[*a].total_cmp(&raw[*b]));
    let mut corrected = vec![1.0; raw.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max(raw[at] * (raw.len() - rank) as f64).min(1.0);
        corrected[at] = least;
    }
    corrected
}

/// Ways to deal runs out to two sides.
struct Ways<'a> {
    before: &'a [f64],
    after: &'a [f64],
    /// Which runs, of all in a row, are AFTER's; the way it really was is the first.
    dealt: Vec<Vec<usize>>,
    drawn: bool,
}

impl<'a> Ways<'a> {
    fn new(before: &'a [f64], after: &'a [f64]) -> Ways<'a> {
        let (all, size) = (before.len() + after.len(), after.len());
        let drawn = choose(all, size) > ALL_WAYS;
        let mut dealt: Vec<Vec<usize>> = vec![(before.len()..all).collect()];
        if drawn {
            let mut draws = Draws::new(SEED);
            let mut runs: Vec<usize> = (0..all).collect();
            for _ in 0..DRAWN {
                draws.shuffle(&mut runs, size);
                dealt.push(runs[..size].to_vec());
            }
        } else {
            dealt = every_way(all, size);
        }
        Ways {
            before,
            after,
            dealt,
            drawn,
        }
    }

    /// How likely a change at least as large is, if AFTER were BEFORE shifted by `shift`.
    fn p(&self, shift: f64) -> f64 {
        let after = self.after.iter().map(|value| value - shift);
        let values: Vec<f64> = self.before.iter().copied().chain(after).collect();
        let sum: f64 = values.iter().sum();
        let (a, b) = (self.after.len() as f64, self.before.len() as f64);
        let change = |part: f64| (part / a - (sum - part) / b).abs();
        let seen = change(values[self.before.len()..].iter().sum());
        let slack = ROUNDING * values.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let as_large = |way: &&Vec<usize>| change(way.iter().map(|run| values[*run]).sum()) >= seen - slack;
        // Of drawn ones the way it really was is among them once, as the first.
        let hits = self.dealt.iter().filter(as_large).count();
        hits as f64 / self.dealt.len() as f64
    }

    /// All shifts that are not refused.
    fn interval(&self) -> Option<[f64; 2]> {
        let change = mean(self.after) - mean(self.before);
        let values = || self.before.iter().chain(self.after).copied();
        let range = values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min);
        // Drawn ways are many, and every end takes all of them two dozen times.
        if self.drawn && self.dealt.len() * self.after.len() > ALL_WAYS as usize * 100 {
            return None;
        }
        let end = |side: f64| {
            let (mut inside, mut outside) = (0.0, 2.0 * range);
            if self.p(change + side * outside) >= LEVEL {
                return None;
            }
            for _ in 0..HALVINGS {
                let middle = (inside + outside) / 2.0;
                if self.p(change + side * middle) < LEVEL {
                    outside = middle;
                } else {
                    inside = middle;
                }
            }
            Some(change + side * outside)
        };
        if range == 0.0 {
            return Some([change, change]);
        }
        Some([end(-1.0)?, end(1.0)?])
    }
}

/// Every choice of `size` of `all`.
fn every_way(all: usize, size: usize) -> Vec<Vec<usize>> {
    let mut ways = Vec::new();
    let mut way: Vec<usize> = (0..size).collect();
    loop {
        ways.push(way.clone());
        // The last one that can still move on, and those behind it directly after it.
        let Some(at) = (0..size).rev().find(|at| way[*at] < all - size + at) else {
            return ways;
        };
        way[at] += 1;
        for next in at + 1..size {
            way[next] = way[next - 1] + 1;
        }
    }
}

/// How many choices of `size` of `all` there are.
fn choose(all: usize, size: usize) -> u128 {
    let mut ways: u128 = 1;
    for step in 0..size.min(all - size) as u128 {
        ways = ways.saturating_mul(all as u128 - step) / (step + 1);
    }
    ways
}

fn freedom(groups: &[usize]) -> f64 {
    groups.iter().map(|size| size.saturating_sub(1)).sum::<usize>() as f64
}

/// Squared distances of values from the mean of their group.
fn squares(groups: &[&[f64]]) -> f64 {
    let of = |group: &&[f64]| {
        let centre = mean(group);
        group.iter().map(|value| (value - centre).powi(2)).sum::<f64>()
    };
    groups.iter().map(of).sum()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    match values.len() {
        0 => 0.0,
        count => values.iter().sum::<f64>() / count as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::{Amounts, Basis, basis, choose, every_way, holm, together, variation, whole};

    fn amounts(before: &[f64], after: &[f64], noise: &[f64]) -> Amounts {
        Amounts {
            before: before.to_vec(),
            after: after.to_vec(),
            noise: noise.to_vec(),
        }
    }

    #[test]
    fn four_and_four_are_the_least() {
        assert_eq!(basis(4, 4, 0), Basis::Permutation);
        assert_eq!(basis(3, 4, 0), Basis::TooFew);
        assert_eq!(basis(3, 5, 0), Basis::Permutation);
        assert_eq!(basis(1, 1, 0), Basis::TooFew);
        assert_eq!(basis(1, 1, 3), Basis::OtherRuns);
        assert_eq!(basis(1, 1, 2), Basis::TooFew);
        assert_eq!(basis(3, 3, 1), Basis::OtherRuns);
        assert_eq!(basis(0, 4, 9), Basis::TooFew);
    }

    #[test]
    fn every_way_is_there_once() {
        let ways = every_way(8, 4);
        let distinct: std::collections::BTreeSet<&Vec<usize>> = ways.iter().collect();
        assert_eq!((ways.len(), distinct.len()), (70, 70));
        assert_eq!((choose(8, 4), choose(16, 8), choose(5, 0)), (70, 12_870, 1));
    }

    #[test]
    fn runs_that_lie_apart_differ_and_the_interval_leaves_nothing_out() {
        let (one, significant) = whole(&amounts(&[10.0, 10.2, 9.9, 10.1], &[11.0, 11.2, 10.9, 11.1], &[]));
        assert_eq!(significant, Some(true));
        assert!((one.p.unwrap() - 2.0 / 70.0).abs() < 1e-9);
        let [low, high] = one.interval.unwrap();
        assert!(
            low > 0.6 && low < 0.95 && high > 1.05 && high < 1.4,
            "{low} {high}"
        );
    }

    #[test]
    fn runs_that_lie_among_each_other_do_not_differ() {
        let (one, significant) = whole(&amounts(&[10.0, 12.0, 9.0, 11.0], &[10.5, 11.5, 9.5, 12.5], &[]));
        assert_eq!(significant, Some(false));
        let [low, high] = one.interval.unwrap();
        assert!(low < 0.0 && high > 0.0, "{low} {high}");
    }

    #[test]
    fn runs_that_never_vary() {
        let same = [5.0; 4];
        let look_up = |after: &[f64]| together(&[amounts(&same, after, &[])])[0];
        assert_eq!(look_up(&same).1, Some(false));
        assert_eq!(look_up(&[6.0; 4]).1, Some(true));
    }

    #[test]
    fn many_runs_are_drawn_and_say_the_same_each_time() {
        let before: Vec<f64> = (0..12).map(|run| 100.0 + f64::from(run * 7 % 12)).collect();
        let after: Vec<f64> = before.iter().map(|value| value + 9.0).collect();
        let both = [amounts(&before, &after, &[]), amounts(&before, &before, &[])];
        let found = together(&both);
        assert_eq!(found, together(&both));
        assert_eq!((found[0].1, found[1].1), (Some(true), Some(false)));
        let [low, high] = whole(&both[0]).0.interval.unwrap();
        assert!(
            low > 4.0 && low < 9.0 && high > 9.0 && high < 14.0,
            "{low} {high}"
        );
    }

    #[test]
    fn one_run_each_is_nothing_and_other_runs_tell() {
        assert_eq!(together(&[amounts(&[10.0], &[20.0], &[])])[0].1, None);
        let noise = [10.0, 10.2, 9.8, 10.1];
        assert_eq!(together(&[amounts(&[10.0], &[11.5], &noise)])[0].1, Some(true));
        assert_eq!(together(&[amounts(&[10.0], &[10.3], &noise)])[0].1, Some(false));
        let relative = variation(&amounts(&[10.0], &[11.0], &noise)).unwrap();
        assert!((relative - 0.017).abs() < 0.001, "{relative}");
    }

    #[test]
    fn holm_is_as_in_the_books() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
