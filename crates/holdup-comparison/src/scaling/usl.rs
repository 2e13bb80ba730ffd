//! The universal scalability law, relative to a control.
//!
//! The law (N. J. Gunther, "A new interpretation of Amdahl's law and geometric scalability", 2002; "Guerrilla capacity planning",
//! Springer 2007, chapters 4 to 6) says what becomes of the capacity of one as N share something:
//! C(N) = N / (1 + σ (N − 1) + κ N (N − 1)), σ for what only one at a time can do, κ for what all must tell all others.
//! Plain throughput would charge the machine to the subject: two CPUs that share a core make everything look contended. So what is
//! fitted is the subject's capacity over the control's at the same N: R(N) = 1 / (1 + σ (N − 1) + κ N (N − 1)), of which 1/R − 1 is
//! linear in both. The control's points must be no more than the CPUs: beyond these both queue, and R says nothing.
//!
//! In: throughputs of each repeat. Out: σ and κ with intervals, by drawing repeats again (bootstrap: Efron, Ann. Statist. 7, 1979).

use super::median;
use crate::comparison::chance::Draws;

/// Numbers of workers that a law with two coefficients needs at least: one of them is 1, which tells neither.
pub(super) const LEAST_POINTS: usize = 3;

/// How often repeats are drawn again: the ends of an interval then move by less than a tenth of its length.
const DRAWN: usize = 2_000;

/// What an interval leaves out at each end.
const TAIL: f64 = 0.025;

/// Throughputs at one number of workers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    pub(super) workers: u32,
    /// Of each repeat.
    pub(super) subject: Vec<f64>,
    pub(super) control: Vec<f64>,
}

/// The law's coefficients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    pub(super) sigma: f64,
    pub(super) kappa: f64,
    pub(super) sigma_interval: [f64; 2],
    pub(super) kappa_interval: [f64; 2],
}

impl Fit {
    /// What is left of the control's capacity with so many workers.
    pub(super) fn relative(&self, workers: u32) -> f64 {
        let n = f64::from(workers);
        1.0 / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }
}

/// Fits it to points that begin with one worker; `None` of fewer than [`LEAST_POINTS`], or where nothing was done.
pub(super) fn fit(points: &[Rates], seed: u64) -> Option<Fit> {
    if points.len() < LEAST_POINTS || points.first()?.workers != 1 {
        return None;
    }
    let own = |values: &[f64]| median(values);
    let (sigma, kappa) = solve(points, own)?;
    let mut draws = Draws::new(seed);
    let mut sigmas = Vec::with_capacity(DRAWN);
    let mut kappas = Vec::with_capacity(DRAWN);
    for _ in 0..DRAWN {
        let again = |values: &[f64]| drawn_median(values, &mut draws);
        if let Some((sigma, kappa)) = solve(points, again) {
            sigmas.push(sigma);
            kappas.push(kappa);
        }
    }
    Some(Fit {
        sigma,
        kappa,
        sigma_interval: interval(&mut sigmas)?,
        kappa_interval: interval(&mut kappas)?,
    })
}

/// The median of as many values, each drawn from all.
pub(super) fn drawn_median(values: &[f64], draws: &mut Draws) -> f64 {
    let drawn: Vec<f64> = values.iter().map(|_| values[draws.below(values.len())]).collect();
    median(&drawn)
}

/// What lies between the tails.
pub(super) fn interval(values: &mut [f64]) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |part: f64| values[(part * last as f64).round() as usize];
    Some([at(TAIL), at(1.0 - TAIL)])
}

/// Least squares of 1/R − 1, each weighed by R² so that relative errors of throughput count alike; neither coefficient below 0.
fn solve(points: &[Rates], mut middle: impl FnMut(&[f64]) -> f64) -> Option<(f64, f64)> {
    let rates: Vec<(f64, f64, f64)> = points
        .iter()
        .map(|one| (f64::from(one.workers), middle(&one.subject), middle(&one.control)))
        .collect();
    let (_, subject, control) = *rates.first()?;
    if rates.iter().any(|(_, s, c)| *s <= 0.0 || *c <= 0.0) {
        return None;
    }
    let [mut aa, mut ab, mut bb, mut ay, mut by] = [0.0; 5];
    for (n, s, c) in &rates[1..] {
        let relative = (s / subject) / (c / control);
        let (a, b, y) = (n - 1.0, n * (n - 1.0), 1.0 / relative - 1.0);
        let weight = relative * relative;
        aa += weight * a * a;
        ab += weight * a * b;
        bb += weight * b * b;
        ay += weight * a * y;
        by += weight * b * y;
    }
    let determinant = aa * bb - ab * ab;
    if determinant.abs() < f64::EPSILON * aa * bb {
        return None;
    }
    let sigma = (ay * bb - by * ab) / determinant;
    let kappa = (by * aa - ay * ab) / determinant;
    Some(match (sigma >= 0.0, kappa >= 0.0) {
        (true, true) => (sigma, kappa),
        (true, false) => ((ay / aa).max(0.0), 0.0),
        (false, true) => (0.0, (by / bb).max(0.0)),
        (false, false) => (0.0, 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::{Rates, fit};

    /// Points that follow the law on a machine whose control loses a part of each CPU, with some scatter.
    fn points(sigma: f64, kappa: f64, workers: &[u32], scatter: f64) -> Vec<Rates> {
        let machine = |n: f64| 1_000.0 * n / (1.0 + 0.3 * (n - 1.0));
        workers
            .iter()
            .map(|workers| {
                let n = f64::from(*workers);
                let relative = 1.0 / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
                let around = |rate: f64| {
                    (0..6)
                        .map(|at| rate * (1.0 + scatter * (f64::from(at) - 2.5)))
                        .collect::<Vec<f64>>()
                };
                Rates {
                    workers: *workers,
                    subject: around(machine(n) * relative / 7.0),
                    control: around(machine(n)),
                }
            })
            .collect()
    }

    #[test]
    fn what_was_planted_is_found_whatever_the_machine_does_to_both() {
        for (sigma, kappa) in [(0.0, 0.0), (0.1, 0.0), (0.05, 0.002), (0.4, 0.01)] {
            let found = fit(&points(sigma, kappa, &[1, 2, 4, 8], 0.0), 7).unwrap();
            assert!(
                (found.sigma - sigma).abs() < 1e-9 && (found.kappa - kappa).abs() < 1e-9,
                "{found:?}"
            );
        }
    }

    #[test]
    fn intervals_hold_the_truth_and_grow_with_the_scatter() {
        let narrow = fit(&points(0.1, 0.01, &[1, 2, 4, 8], 0.005), 7).unwrap();
        let wide = fit(&points(0.1, 0.01, &[1, 2, 4, 8], 0.03), 7).unwrap();
        for found in [narrow, wide] {
            let [low, high] = found.sigma_interval;
            assert!(low <= 0.1 && 0.1 <= high, "{found:?}");
        }
        let length = |[low, high]: [f64; 2]| high - low;
        assert!(length(wide.sigma_interval) > length(narrow.sigma_interval));
        assert_eq!(fit(&points(0.1, 0.01, &[1, 2, 4, 8], 0.03), 7), Some(wide));
    }

    #[test]
    fn two_numbers_of_workers_tell_no_law() {
        assert_eq!(fit(&points(0.1, 0.0, &[1, 2], 0.0), 7), None);
        assert_eq!(fit(&points(0.1, 0.0, &[2, 4, 8], 0.0), 7), None);
        let mut none = points(0.1, 0.0, &[1, 2, 4], 0.0);
        none[1].subject = vec![0.0; 6];
        assert_eq!(fit(&none, 7), None);
    }

    #[test]
    fn the_law_relates_to_the_control() {
        let found = fit(&points(0.5, 0.0, &[1, 2, 4], 0.0), 7).unwrap();
        assert!((found.relative(1) - 1.0).abs() < 1e-9);
        assert!((found.relative(3) - 0.5).abs() < 1e-9);
    }
}
