//! The truth is planted: runs that differ by chance, and runs that differ by more. No clock: waits come from a generator.

use super::super::chance::Draws;
use super::{Changes, Part, Run, Sides, compare};
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use std::collections::BTreeMap;

/// Pairs of each kind.
const PAIRS: u64 = 200;

/// Of those without a difference, so many may claim one: 9 %, where 5 % are expected of a perfect test, so that a test that
/// is right passes with whatever seed.
const MOST_FALSE: usize = 18;

/// Of those with a difference of 10 %, so many must be found.
const LEAST_FOUND: usize = 170;

/// How much runs vary.
const RUN_TO_RUN: f64 = 0.02;

/// Requests of a run.
const REQUESTS: u32 = 200;

/// What a request waits for and how long on the mean, ms.
const CAUSES: [(&str, f64); 8] = [
    ("net.receive", 9.0),
    ("disk.sync", 4.0),
    ("cpu.user", 3.0),
    ("lock.futex", 2.0),
    ("sched.runqueue", 0.8),
    ("cpu.kernel", 0.7),
    ("net.tls", 0.4),
    ("disk.read", 0.1),
];

/// Near enough to a normal distribution: three draws.
fn normal(draws: &mut Draws) -> f64 {
    let sum: f64 = (0..3).map(|_| draws.next() as f64 / u64::MAX as f64).sum();
    2.0 * sum - 3.0
}

/// A run in which each wait is like the one before it, and all of which is faster or slower than other runs.
fn run(draws: &mut Draws, run_to_run: f64, more: f64) -> Run {
    let pace = 1.0 + run_to_run * normal(draws);
    let mut run = Run {
        units: f64::from(REQUESTS),
        ..Run::default()
    };
    let mut state = [0.0; CAUSES.len()];
    for _ in 0..REQUESTS {
        let mut request = 0.0;
        for ((name, mean), state) in CAUSES.iter().zip(&mut state) {
            // Ties neighbours together over some five requests.
            *state = 0.8 * *state + 0.6 * normal(draws);
            let planted = if *name == "disk.sync" { more } else { 0.0 };
            let wait = (mean + planted) * pace * (1.0 + 0.1 * *state).max(0.0);
            *run.parts.entry(Part::own(*name)).or_default() += wait;
            request += wait;
        }
        run.total += request;
        run.stretches.push((1.0, request));
    }
    run
}

fn runs(draws: &mut Draws, count: usize, run_to_run: f64, more: f64) -> Vec<Run> {
    (0..count).map(|_| run(draws, run_to_run, more)).collect()
}

fn pair(seed: u64, count: usize, noise: usize, more: f64) -> Changes {
    let mut draws = Draws::new(seed);
    let before = runs(&mut draws, count, RUN_TO_RUN, 0.0);
    let after = runs(&mut draws, count, RUN_TO_RUN, more);
    let noise = runs(&mut draws, noise, RUN_TO_RUN, 0.0);
    compare(Sides {
        before: &before,
        after: &after,
        noise: &noise,
    })
}

/// Whether any line claims a difference.
fn claims(changes: &Changes) -> bool {
    let parts = changes.parts.values().map(|part| part.significant);
    parts
        .chain([changes.total.significant])
        .any(|one| one == Some(true))
}

/// Tenth of a run's time, ms.
fn tenth() -> f64 {
    CAUSES.iter().map(|(_, mean)| mean).sum::<f64>() / 10.0
}

#[test]
fn what_differs_by_chance_is_rarely_claimed_to_differ() {
    for (count, noise) in [(4, 0), (1, 6), (6, 0)] {
        let falsely = (0..PAIRS)
            .filter(|seed| claims(&pair(*seed, count, noise, 0.0)))
            .count();
        assert!(
            falsely <= MOST_FALSE,
            "{count} and {count}, noise {noise}: {falsely} of {PAIRS}"
        );
    }
}

#[test]
fn a_tenth_more_is_found_and_so_is_its_cause() {
    for (count, noise, least) in [(4, 0, LEAST_FOUND), (6, 0, LEAST_FOUND)] {
        let pairs: Vec<Changes> = (0..PAIRS)
            .map(|seed| pair(1_000 + seed, count, noise, tenth()))
            .collect();
        let total = pairs
            .iter()
            .filter(|pair| pair.total.significant == Some(true))
            .count();
        assert!(total >= least, "{count} and {count}: {total} of {PAIRS}");
        let sync = Part::own("disk.sync");
        let cause = pairs
            .iter()
            .filter(|pair| pair.parts[&sync].significant == Some(true))
            .count();
        assert!(
            cause >= least,
            "{count} and {count}, its cause: {cause} of {PAIRS}"
        );
        // The interval has the truth in it as often as it says.
        let inside = |pair: &&Changes| {
            let interval = pair.total.interval;
            interval.is_some_and(|[low, high]| low <= tenth() && tenth() <= high)
        };
        let covered = pairs.iter().filter(inside).count();
        assert!(
            covered >= 180,
            "{covered} of {PAIRS} intervals have the truth in them"
        );
    }
}

#[test]
fn one_run_each_claims_nothing_and_says_where_it_lies_within_them() {
    for seed in 0..20 {
        let changes = pair(seed, 1, 0, tenth());
        assert!(!claims(&changes) && changes.total.significant.is_none());
        let [low, high] = changes.total.interval.unwrap();
        assert!(changes.interval_within && low < high && low > 0.0, "{low} {high}");
    }
}

#[test]
fn without_variation_between_runs_blocks_are_wrong_no_more_often_than_they_say() {
    let mut outside = 0;
    for seed in 0..PAIRS {
        let mut draws = Draws::new(5_000 + seed);
        let (before, after) = (runs(&mut draws, 1, 0.0, 0.0), runs(&mut draws, 1, 0.0, 0.0));
        let changes = compare(Sides {
            before: &before,
            after: &after,
            noise: &[],
        });
        let [low, high] = changes.total.interval.unwrap();
        outside += usize::from(low > 0.0 || high < 0.0);
    }
    // 5 % are expected; twenty blocks are few, so some more.
    assert!(outside <= 24, "{outside} of {PAIRS}");
}

fn simple(parts: &[(String, u32)], units: u32) -> Run {
    let parts: BTreeMap<Part, f64> = parts
        .iter()
        .map(|(name, amount)| (Part::own(name.clone()), f64::from(*amount)))
        .collect();
    Run {
        units: f64::from(units),
        total: parts.values().sum(),
        parts,
        stretches: vec![],
    }
}

proptest! {
    #[test]
    fn nothing_differs_from_itself_however_long(parts in proptest::collection::vec(("[a-e]", 0_u32..1_000), 1..8), units in 1_u32..50, runs in 1_usize..6) {
        let once = simple(&parts, units);
        let twice = Run {
            units: once.units * 2.0,
            total: once.total * 2.0,
            parts: once.parts.iter().map(|(part, amount)| (part.clone(), amount * 2.0)).collect(),
            ..Run::default()
        };
        let changes = compare(Sides { before: &vec![once; runs], after: &vec![twice; runs], noise: &[] });
        prop_assert!(!claims(&changes));
        prop_assert!((changes.total.after - changes.total.before).abs() < 1e-9 * (1.0 + changes.total.before));
        for part in changes.parts.values() {
            prop_assert!((part.after - part.before).abs() < 1e-9 * (1.0 + part.before));
        }
    }

    #[test]
    fn the_other_way_round_all_changes_are_the_other_way(one in proptest::collection::vec(proptest::collection::vec(("[a-e]", 0_u32..1_000), 1..6), 1..5), other in proptest::collection::vec(proptest::collection::vec(("[a-e]", 0_u32..1_000), 1..6), 1..5)) {
        let runs = |all: &[Vec<(String, u32)>]| all.iter().map(|parts| simple(parts, 3)).collect::<Vec<Run>>();
        let (one, other) = (runs(&one), runs(&other));
        let there = compare(Sides { before: &one, after: &other, noise: &[] });
        let back = compare(Sides { before: &other, after: &one, noise: &[] });
        prop_assert_eq!(there.parts.len(), back.parts.len());
        for (part, change) in &there.parts {
            let other = &back.parts[part];
            prop_assert_eq!((change.before, change.after), (other.after, other.before));
            prop_assert_eq!(change.significant, other.significant);
        }
        if let (Some([low, high]), Some([low_back, high_back])) = (there.total.interval, back.total.interval) {
            prop_assert!((low + high_back).abs() < 1e-3 * (1.0 + low.abs()));
            prop_assert!((high + low_back).abs() < 1e-3 * (1.0 + high.abs()));
        }
    }
}
