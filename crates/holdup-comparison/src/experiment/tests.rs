//! Experiments of which the truth is known.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use super::{Arm, Design, Pair, judge, not_there, nothing_to_take, predict_by_path};
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{Outcome, PredictedBy};

const MS: Ns = 1_000_000;

fn arm(sync: Ns, cpu: Ns) -> Arm {
    let path = [(Cause::DiskSync, sync), (Cause::CpuUser, cpu)];
    Arm {
        elapsed: sync + cpu,
        path: path.into_iter().filter(|(_, ns)| *ns > 0).collect(),
    }
}

fn pair(as_is: Arm, without: Arm) -> Pair {
    Pair { as_is, without }
}

fn design() -> Design {
    Design {
        without: "disk.sync".to_owned(),
        causes: vec![Cause::DiskSync],
        escapes: "O_SYNC".to_owned(),
        ..Design::default()
    }
}

#[test]
fn the_factor_is_that_of_the_means_and_the_interval_has_it() {
    let pairs: Vec<Pair> = [(900, 100), (880, 104), (930, 97), (905, 101)]
        .map(|(sync, cpu)| pair(arm(sync * MS, 100 * MS), arm(0, cpu * MS)))
        .into();
    let first = predict_by_path(&pairs[0].as_is, &design().causes);
    let judged = judge(&design(), &pairs, Some((first, PredictedBy::CriticalPath)));
    let speedup = judged.speedup.unwrap();
    assert!((speedup - judged.baseline_ns as f64 / judged.measured_ns.unwrap() as f64).abs() < 1e-6);
    // By hand: logarithms of 10, 980/104, 1030/97, 1005/101; their mean 2.3015, standard deviation 0.0488, t(3) = 3.1825.
    let [low, high] = judged.interval.unwrap();
    assert!(
        (low - 9.242).abs() < 0.01 && (high - 10.796).abs() < 0.01,
        "{low} {high}"
    );
    assert_eq!(judged.outcome, Outcome::Faster);
    assert_eq!((judged.remaining_ns, judged.runs), (Some(0), 4));
    // 100 of 1,000 ms would be left of the first run, so a tenth of the mean.
    assert_eq!(
        judged.predicted_ns.unwrap(),
        (judged.baseline_ns as f64 / 10.0).round() as Ns
    );
    assert_eq!(judged.bottleneck, Some(Cause::CpuUser));
    assert!(
        judged.verdict[0].starts_with("Without disk.sync it takes 100 ms instead of"),
        "{:?}",
        judged.verdict
    );
}

#[test]
fn a_steady_drift_cancels_out_of_an_even_number_of_pairs() {
    // Every run takes 10 % longer than the one before, and there is no difference: A B, B A.
    let at = |place: i32| (1e8 * 1.1_f64.powi(place)).round() as Ns;
    let pairs = [
        pair(arm(0, at(0)), arm(0, at(1))),
        pair(arm(0, at(3)), arm(0, at(2))),
    ];
    let judged = judge(&design(), &pairs, None);
    assert!((judged.speedup.unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(judged.outcome, Outcome::NoDifference);
}

#[test]
fn what_does_not_go_away_gives_no_verdict() {
    let left = |ms: Ns| {
        judge(
            &design(),
            &vec![pair(arm(900 * MS, 100 * MS), arm(ms * MS, 100 * MS)); 4],
            None,
        )
    };
    let found = left(101);
    assert_eq!(found.outcome, Outcome::Remains);
    assert_eq!(
        (found.speedup, found.interval, found.remaining_ns),
        (None, None, Some(101 * MS))
    );
    assert!(found.verdict[0].starts_with("No verdict") && found.verdict[1].contains("O_SYNC"));
    let found = left(99);
    assert_eq!(found.outcome, Outcome::Faster);
    assert!(found.speedup.is_some());
}

#[test]
fn one_run_each_way_is_not_sure_and_slower_is_slower() {
    let one = judge(
        &design(),
        &[pair(arm(900 * MS, 100 * MS), arm(0, 100 * MS))],
        None,
    );
    assert_eq!((one.outcome, one.interval), (Outcome::NotSure, None));
    let pairs: Vec<Pair> = [100, 101, 99, 100]
        .map(|ms| pair(arm(0, ms * MS), arm(0, 2 * ms * MS)))
        .into();
    let slower = judge(&design(), &pairs, None);
    assert_eq!(slower.outcome, Outcome::Slower);
    assert!(
        slower.verdict[0].contains("slower, 2.00 times as long"),
        "{:?}",
        slower.verdict
    );
}

#[test]
fn what_is_hardly_there_is_not_taken_away() {
    assert!(not_there(&arm(9 * MS, 991 * MS), &design()));
    assert!(!not_there(&arm(11 * MS, 989 * MS), &design()));
    let found = nothing_to_take(&design(), &arm(0, MS));
    assert_eq!((found.outcome, found.measured_ns), (Outcome::NotThere, None));
    assert!(found.verdict[0].contains("there is nothing to remove"));
}

#[test]
fn a_prediction_that_was_off_is_called_so_and_what_changed_is_named() {
    let pairs: Vec<Pair> = (0..4)
        .map(|run| pair(arm((900 + run) * MS, 100 * MS), arm(0, (400 + run) * MS)))
        .collect();
    let judged = judge(&design(), &pairs, Some((100 * MS, PredictedBy::Replay)));
    let off = judged.verdict.last().unwrap();
    assert!(
        off.starts_with("This is less than predicted: saved 600 ms, predicted 90"),
        "{off}"
    );
    assert!(
        off.ends_with("(cpu.user) was 302 ms longer than unchanged."),
        "{off}"
    );
    // Seldom is it right to the millisecond: within 15 % nothing is said.
    let near = judge(&design(), &pairs, Some((380 * MS, PredictedBy::Replay)));
    assert!(
        !near.verdict.iter().any(|line| line.contains("predicted")),
        "{:?}",
        near.verdict
    );
}
