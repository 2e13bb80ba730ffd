//! How exact CPU time splits into what it was for.
//!
//! Time on a CPU is exact; what it went into is known from samples. A path carries the samples that were
//! taken on it, so that the part of the time on the path and the part off it are split each by its own
//! samples. A thread without any sample is split by causes alone, as its process is, or the run, or, with no
//! sample at all, is taken to run its own code; all of such time is in doubt, and said to be.

use super::path::Share;
use holdup_evidence::Ns;

/// Splits a total by weights so that the parts add up to it exactly: the units left over by rounding down go
/// to the largest remainders. Without any weight all goes to the first part.
pub(super) fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        let mut parts = vec![0; weights.len()];
        if let Some(first) = parts.first_mut() {
            *first = total;
        }
        return parts;
    }
    let exact = |weight: u64| u128::from(total) * u128::from(weight);
    let mut parts: Vec<u64> = weights
        .iter()
        .map(|weight| u64::try_from(exact(*weight) / sum).expect("a part is at most the total"))
        .collect();
    let left = total - parts.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|part| std::cmp::Reverse(exact(weights[*part]) % sum));
    for part in order
        .into_iter()
        .take(usize::try_from(left).unwrap_or(usize::MAX))
    {
        parts[part] += 1;
    }
    parts
}

/// One class of CPU time: its samples in all, and those of them on the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples {
    pub(super) all: u64,
    pub(super) on_path: u64,
}

/// What a class gets of the CPU time: time, and its part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) ns: Ns,
    pub(super) count: u64,
    pub(super) path: Share,
}

/// Splits a thread's CPU time, of which `path` is on the path, among its classes.
pub(super) fn split(ns: Ns, count: u64, path: Share, classes: &[Samples]) -> Vec<Part> {
    let all: Vec<u64> = classes.iter().map(|class| class.all).collect();
    let seen = |own: Vec<u64>| {
        if own.iter().any(|samples| *samples > 0) {
            own
        } else {
            all.clone()
        }
    };
    let on = seen(classes.iter().map(|class| class.on_path).collect());
    let off = seen(
        classes
            .iter()
            .map(|class| class.all.saturating_sub(class.on_path))
            .collect(),
    );
    let within = apportion(path.ns.min(ns), &on);
    let on_path = apportion(path.ns, &on);
    let elsewhere = apportion(ns.saturating_sub(path.ns), &off);
    let counts = apportion(count, &all);
    let path_counts = apportion(path.count, &on);
    (0..classes.len())
        .map(|class| Part {
            ns: within[class] + elsewhere[class],
            count: counts[class],
            path: Share {
                ns: on_path[class],
                count: path_counts[class],
                handed_on: 0,
            },
        })
        .collect()
}

/// One standard error of a part of a total that was split by this many samples.
pub(super) fn standard_error(part: Ns, total: Ns, samples: u64) -> Ns {
    if samples == 0 || total == 0 {
        return part;
    }
    let share = part as f64 / total as f64;
    ((share * (1.0 - share).max(0.0) / samples as f64).sqrt() * total as f64).round() as Ns
}

#[cfg(test)]
mod tests {
    use super::{Part, Samples, apportion, split, standard_error};
    use crate::attribution::path::Share;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_add_up_and_are_a_unit_off_at_most(total in 0u64..u64::MAX / 4, weights in proptest::collection::vec(0u64..1 << 40, 1..20)) {
            let parts = apportion(total, &weights);
            prop_assert_eq!(parts.iter().sum::<u64>(), total);
            let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
            for (part, weight) in parts.iter().zip(&weights).filter(|_| sum > 0) {
                let (wanted, got) = (u128::from(total) * u128::from(*weight), u128::from(*part) * sum);
                prop_assert!(wanted.abs_diff(got) < sum);
            }
        }

        #[test]
        fn a_split_conserves_time_and_path(
            on in 0u64..1 << 40, off in 0u64..1 << 40, samples in proptest::collection::vec((0u64..50, 0u64..50), 1..8),
        ) {
            let classes: Vec<Samples> = samples.iter().map(|(on, off)| Samples { all: on + off, on_path: *on }).collect();
            let parts = split(on + off, 10, Share { ns: on, count: 3, handed_on: 0 }, &classes);
            prop_assert_eq!(parts.iter().map(|part| part.ns).sum::<u64>(), on + off);
            prop_assert_eq!(parts.iter().map(|part| part.path.ns).sum::<u64>(), on);
            prop_assert!(parts.iter().all(|part| part.path.ns <= part.ns));
        }
    }

    #[test]
    fn the_path_is_split_by_its_own_samples() {
        let classes = [Samples { all: 10, on_path: 4 }, Samples { all: 30, on_path: 0 }];
        let parts = split(
            400,
            1,
            Share {
                ns: 40,
                count: 0,
                handed_on: 0,
            },
            &classes,
        );
        let rows: Vec<(u64, u64)> = parts.iter().map(|part: &Part| (part.ns, part.path.ns)).collect();
        assert_eq!(rows, [(40 + 60, 40), (300, 0)]);
    }

    #[test]
    fn the_error_of_half_and_half_shrinks_with_samples() {
        assert_eq!(standard_error(500_000, 1_000_000, 100), 50_000);
        assert_eq!(standard_error(500_000, 1_000_000, 10_000), 5_000);
        assert_eq!(standard_error(77, 77, 0), 77);
    }
}
