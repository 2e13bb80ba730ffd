//! `cargo xtask bench significance`: how often `holdup diff` claims a difference that is none, and finds one that is there, with real
//! processes.
//!
//! In: a program whose waits are planted (`workload/planted.rs`). Every run is a fresh process with a pace of its own, drawn around 1
//! with the planted run-to-run variation, and is recorded by `holdup run -o`. A pair is twelve such runs, one of each side in turn and
//! in any order, so that what the machine does meanwhile meets all sides alike: four are BEFORE, four AFTER, and four AFTER with a tenth
//! more planted in one place. No run is in two pairs. Out: of so many pairs without a difference how many claim one in any line, of so
//! many with one how many find it, and how often its cause is named. Not part of CI: it takes half an hour.

use super::workload::{now_ns, planted};
use crate::{process, workspace};
use anyhow::Context;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many pairs, and of what.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pairs of each kind
    #[arg(long, default_value_t = 200)]
    pairs: u64,
    /// Runs of each side
    #[arg(long, default_value_t = 4)]
    runs: u64,
    /// How much runs vary: the standard deviation, per cent
    #[arg(long, default_value_t = 2.0)]
    variation: f64,
    /// How much more there is to be found, per cent
    #[arg(long, default_value_t = 10.0)]
    more: f64,
    /// What the planted paces begin with
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// Pairs after which a word is said.
const WORD: u64 = 10;

/// Which of the three sides has the difference.
const MORE: usize = 2;

/// The cause in which the difference is planted: the answers of somebody outside.
const PLANTED: &str = "ipc.unix";

/// All of it comes before other work on the machine: what that takes is not planted. It is little itself, a third of a CPU. The lowest
/// real-time priority, for nice values count within a session only.
const PRIORITY: i32 = 1;

/// The part of a report that is read.
#[derive(Debug, Deserialize)]
struct Output {
    comparison: Comparison,
}

#[derive(Debug, Deserialize)]
struct Comparison {
    significant: Option<bool>,
    change_ns: Option<i64>,
    before_ns: Option<u64>,
    interval_ns: Option<[i64; 2]>,
    run_to_run: Option<f64>,
    causes: Vec<Line>,
    amounts: Vec<Amount>,
}

#[derive(Debug, Deserialize)]
struct Line {
    cause: String,
    significant: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Amount {
    significant: Option<bool>,
}

impl Comparison {
    /// Whether any line claims a difference.
    fn claims(&self) -> bool {
        let causes = self.causes.iter().map(|line| line.significant);
        let amounts = self.amounts.iter().map(|line| line.significant);
        causes
            .chain(amounts)
            .chain([self.significant])
            .any(|claimed| claimed == Some(true))
    }

    fn names(&self, cause: &str) -> bool {
        self.causes
            .iter()
            .any(|line| line.cause == cause && line.significant == Some(true))
    }
}

/// What has been counted.
#[derive(Debug, Default)]
struct Counts {
    pairs: u64,
    falsely: u64,
    false_of_whole: u64,
    found: u64,
    named: u64,
    covered: u64,
    variation: f64,
    change: f64,
}

/// Runs, compares, prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let folder = workspace::scratch("bench-significance")?;
    come_first()?;
    let answers = folder.join("answers");
    std::fs::remove_file(&answers).ok();
    planted::answer(answers.clone())?;
    let mut paces = Paces(args.seed);
    let mut counts = Counts::default();
    println!(
        "{} pairs of {} and {} fresh processes, which vary by {} % from run to run",
        args.pairs, args.runs, args.runs, args.variation
    );
    let began = now_ns()?;
    for pair in 0..args.pairs {
        let sides = ["before", "after", "more"].map(|side| folder.join(side));
        for side in &sides {
            std::fs::create_dir_all(side).with_context(|| format!("make {}", side.display()))?;
        }
        for number in 0..args.runs {
            for at in paces.order() {
                let pace = 1.0 + args.variation / 100.0 * paces.normal();
                let more = if at == MORE { args.more / 100.0 } else { 0.0 };
                let to = sides[at].join(format!("{number}.parquet"));
                record(&holdup, &to, [pace, more], &answers)?;
            }
        }
        let same = compare(&holdup, &sides[0], &sides[1])?;
        let other = compare(&holdup, &sides[0], &sides[MORE])?;
        counts.take(&same, &other, args.more / 100.0);
        if (pair + 1) % WORD == 0 {
            eprintln!("{}", counts.words());
        }
    }
    std::fs::remove_dir_all(&folder).context("remove what was made")?;
    let seconds = (now_ns()? - began) / 1_000_000_000;
    println!("{}", counts.words());
    println!(
        "the interval of the whole has the planted difference in it {} times; runs varied by {:.1} % (planted and the machine's); {} % planted were \
         reported as {:.1} % at the mean; {seconds} s",
        counts.covered,
        counts.variation / counts.pairs as f64 * 100.0,
        args.more,
        counts.change / counts.pairs as f64 * 100.0,
    );
    Ok(())
}

impl Counts {
    fn take(&mut self, same: &Comparison, other: &Comparison, more: f64) {
        self.pairs += 1;
        self.falsely += u64::from(same.claims());
        self.false_of_whole += u64::from(same.significant == Some(true));
        self.found += u64::from(other.significant == Some(true) && other.change_ns > Some(0));
        self.named += u64::from(other.names(PLANTED));
        self.variation += same.run_to_run.unwrap_or(0.0);
        let before = other.before_ns.unwrap_or(0) as f64;
        if before > 0.0 {
            self.change += other.change_ns.unwrap_or(0) as f64 / before;
        }
        let planted = more * before;
        let within = |[low, high]: [i64; 2]| (low as f64..=high as f64).contains(&planted);
        self.covered += u64::from(other.interval_ns.is_some_and(within));
    }

    fn words(&self) -> String {
        let Counts {
            pairs,
            falsely,
            false_of_whole,
            found,
            named,
            ..
        } = self;
        format!(
            "{pairs} pairs that do not differ: {falsely} claim a difference in any line ({false_of_whole} in the whole); {pairs} that do: {found} are \
             found, {named} with their cause"
        )
    }
}

/// This program and all that it starts.
fn come_first() -> anyhow::Result<()> {
    // SAFETY: a structure of numbers, of which zero is one.
    let mut asked: nix::libc::sched_param = unsafe { std::mem::zeroed() };
    asked.sched_priority = PRIORITY;
    // SAFETY: reads the structure, which outlives the call.
    let done = unsafe { nix::libc::sched_setscheduler(0, nix::libc::SCHED_RR, &raw const asked) };
    nix::errno::Errno::result(done).context("take a real-time priority; it takes root")?;
    Ok(())
}

/// One fresh process, recorded.
fn record(holdup: &Path, to: &Path, [pace, more]: [f64; 2], answers: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("the path of this program")?;
    let mut command = Command::new(holdup);
    command
        .args(["run", "-q", "-o"])
        .arg(to)
        .arg("--")
        .arg(program)
        .args([
            "bench",
            "workload",
            "planted",
            &pace.to_string(),
            &more.to_string(),
        ])
        .arg(answers)
        .stderr(Stdio::null());
    process::run(&mut command)
}

fn compare(holdup: &Path, before: &Path, after: &Path) -> anyhow::Result<Comparison> {
    let mut command = Command::new(holdup);
    command.args(["diff", "--format", "json"]).arg(before).arg(after);
    let output: Output =
        serde_json::from_str(&process::output(&mut command)?).context("understand the comparison")?;
    Ok(output.comparison)
}

/// Draws paces: Vigna's splitmix64, and three of its numbers for one that is near enough to normal.
struct Paces(u64);

impl Paces {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as f64 / u64::MAX as f64
    }

    /// The three sides in any order: which is first must not matter.
    fn order(&mut self) -> [usize; 3] {
        let mut order = [0, 1, MORE];
        for at in (1..order.len()).rev() {
            order.swap(at, (self.uniform() * (at + 1) as f64) as usize % (at + 1));
        }
        order
    }

    /// Mean 0, standard deviation 1.
    fn normal(&mut self) -> f64 {
        2.0 * (self.uniform() + self.uniform() + self.uniform()) - 3.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Counts, Line, PLANTED, Paces};

    #[test]
    fn paces_have_the_deviation_that_is_planted() {
        let mut paces = Paces(7);
        let drawn: Vec<f64> = (0..10_000).map(|_| paces.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e4;
        let spread = drawn.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 1e4;
        assert!(
            mean.abs() < 0.05 && (spread - 1.0).abs() < 0.05,
            "{mean} {spread}"
        );
    }

    #[test]
    fn each_side_is_as_often_first() {
        let mut paces = Paces(3);
        let mut first = [0_u32; 3];
        for _ in 0..3_000 {
            let mut order = paces.order();
            first[order[0]] += 1;
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2]);
        }
        assert!(
            first.iter().all(|count| (900..1_100).contains(count)),
            "{first:?}"
        );
    }

    #[test]
    fn a_claim_of_any_line_counts() {
        let comparison = |whole: Option<bool>, cause: Option<bool>| Comparison {
            significant: whole,
            change_ns: Some(9),
            before_ns: Some(100),
            interval_ns: Some([8, 12]),
            run_to_run: Some(0.02),
            causes: vec![Line {
                cause: PLANTED.to_owned(),
                significant: cause,
            }],
            amounts: vec![],
        };
        let mut counts = Counts::default();
        counts.take(
            &comparison(Some(false), Some(true)),
            &comparison(Some(true), Some(true)),
            0.1,
        );
        counts.take(
            &comparison(Some(false), Some(false)),
            &comparison(Some(true), Some(false)),
            0.5,
        );
        assert_eq!(
            (
                counts.falsely,
                counts.false_of_whole,
                counts.found,
                counts.named,
                counts.covered
            ),
            (1, 0, 2, 1, 1)
        );
    }
}
