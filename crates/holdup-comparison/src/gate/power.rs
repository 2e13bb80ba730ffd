//! How often a program fails against itself, and how often +10 % is found, with the number of runs that docs/pipelines.md recommends: over run
//! times of real programs, recorded once. Drawn with fixed seeds, so the test has no chance of its own, and no clock.

use super::super::comparison::chance::Draws;
use super::super::comparison::runs::{Changes, Run, Sides, compare};
use super::super::comparison::significance::{Amounts, variation};
use super::runs_needed;

/// Microseconds of a hundred runs of each program, in the order in which they ran, the programs in turn.
const RECORDED: &str = include_str!("run-times.txt");

/// Pairs of each kind, of all programs together.
const PAIRS: usize = 200;

/// Of those without a difference, so many may fail: 5 %.
const MOST_FALSE: usize = 10;

/// Of those with +10 %, so many must be found: 85 %.
const LEAST_FOUND: usize = 170;

/// Runs of each side that a person records: what varies more needs a quieter machine, and the page says so.
const MOST_RUNS: u32 = 30;

/// Programs and their run times.
fn recorded() -> Vec<(&'static str, Vec<f64>)> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let of = |line: &'static str| {
        let (name, times) = line.split_once(':').expect("a program has a name");
        let times = times
            .split_whitespace()
            .map(|time| time.parse().expect("a time is a number"));
        (name, times.collect())
    };
    lines.map(of).collect()
}

fn varies(times: &[f64]) -> f64 {
    let amounts = Amounts {
        before: times.to_vec(),
        ..Amounts::default()
    };
    variation(&amounts).expect("there are a hundred")
}

/// Any runs of these, as many on each side, none on both; AFTER takes so many times as long.
fn pair(times: &[f64], runs: u32, factor: f64, seed: u64) -> Changes {
    let mut times = times.to_vec();
    let runs = runs as usize;
    Draws::new(seed).shuffle(&mut times, 2 * runs);
    let run = |total: f64| Run {
        units: 1.0,
        total,
        ..Run::default()
    };
    let before: Vec<Run> = times[..runs].iter().map(|time| run(*time)).collect();
    let after: Vec<Run> = times[runs..2 * runs]
        .iter()
        .map(|time| run(*time * factor))
        .collect();
    compare(Sides {
        before: &before,
        after: &after,
        noise: &[],
    })
}

/// As `regression` judges it.
fn fails(changes: &Changes) -> bool {
    changes.total.significant == Some(true) && changes.total.after > changes.total.before
}

#[test]
fn the_recommended_runs_find_a_tenth_and_fail_nothing_else() {
    let programs: Vec<(&str, Vec<f64>, u32)> = recorded()
        .into_iter()
        .map(|(name, times)| {
            let runs = runs_needed(varies(&times), 0.10);
            (name, times, runs)
        })
        .filter(|(_, _, runs)| *runs <= MOST_RUNS)
        .collect();
    assert!(programs.len() >= 3, "{programs:?}");
    let (mut falsely, mut found, mut report) = (0, 0, Vec::new());
    for at in 0..PAIRS {
        let (name, times, runs) = &programs[at % programs.len()];
        let same = fails(&pair(times, *runs, 1.0, at as u64));
        let slower = fails(&pair(times, *runs, 1.1, (PAIRS + at) as u64));
        falsely += usize::from(same);
        found += usize::from(slower);
        if same || !slower {
            report.push(format!(
                "{name} ({runs} runs): fails against itself {same}, +10 % found {slower}"
            ));
        }
    }
    assert!(
        falsely <= MOST_FALSE && found >= LEAST_FOUND,
        "{falsely} false, {found} found of {PAIRS}\n{report:#?}"
    );
    println!("{falsely} false, {found} found of {PAIRS}");
}

#[test]
fn a_program_that_varies_by_half_needs_more_runs_than_anybody_records() {
    let all = recorded();
    let (_, times) = all
        .iter()
        .find(|(name, _)| *name == "write-sync")
        .expect("it was recorded");
    assert!(runs_needed(varies(times), 0.10) > MOST_RUNS);
}

#[test]
fn the_page_has_the_numbers_of_the_function() {
    let page = include_str!("../../../../docs/pipelines.md");
    for (percent, words) in [(3, "up to 3 %"), (5, "5 %"), (8, "8 %"), (10, "10 %")] {
        let runs = runs_needed(f64::from(percent) / 100.0, 0.10);
        assert!(
            page.contains(&format!("| {words} | {runs} |")),
            "| {words} | {runs} |"
        );
    }
}
