//! Runs scenarios under holdup: those that may run beside others side by side, then the rest one after the other.
//!
//! In: scenarios and the stage. Out: the table; an error where something is not right. What was not right beside others does not count:
//! it is made again alone.

use super::scenario::Company;
use super::stage::{Outcome, Side, Stage};
use super::table::{self, Line};
use super::verdict::{self, Observed};
use super::{Args, REAL, Scenario};
use crate::process::minutes;
use crate::workspace;
use anyhow::{Context, bail};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// There are machines whose kernel now and then shows a waking to no program at all (ARCHITECTURE.md, "The ledger"); holdup
/// counts them. A run that is not right and of which holdup itself says so, or that had no stall, is made again, so often at most.
const TRIES: usize = 3;

/// One that is not right is judged by majority: so often more, and it must be right each time. What else the machine does at that
/// moment may disturb one run, so the further ones are made after all other scenarios, when that moment has passed; the table says
/// below which scenarios needed this, for they want looking at.
const FURTHER: usize = 2;

/// How many of the slowest scenarios are named.
const SLOWEST: usize = 10;

/// What came of a scenario.
struct Judged {
    name: String,
    line: Line,
    /// What an earlier run had that was not right, when later ones were.
    outvoted: Option<String>,
    took: Duration,
}

/// A scenario that was not right beside others, and why.
type Again<'a> = (&'a Scenario, String);

/// Runs every scenario under holdup and prints the table.
pub(super) fn judge(stage: &Stage, scenarios: &[Scenario], args: &Args) -> anyhow::Result<()> {
    let with = |company| {
        let of_it = |one: &&Scenario| one.about.company == company;
        scenarios.iter().filter(of_it).collect::<Vec<&Scenario>>()
    };
    let began = Instant::now();
    let mut judged = Vec::new();
    let mut again = Vec::new();
    for company in [Company::Two, Company::One] {
        let (right, not_right) = side_by_side(stage, &with(company), company, args)?;
        judged.extend(right);
        again.extend(not_right);
    }
    let together = began.elapsed();
    let mut alone = with(Company::None);
    let sharing = scenarios.len() - alone.len();
    alone.extend(again.iter().map(|(scenario, _)| *scenario));
    alone.sort_by(|one, other| one.name.cmp(&other.name));
    let mut doubtful = Vec::new();
    for scenario in alone {
        eprintln!("scenario {}: {}", scenario.name, scenario.about.shows);
        let one = one_alone(stage, scenario, args);
        match one.line.right() {
            true => judged.push(one),
            false => doubtful.push((scenario, one)),
        }
    }
    for (scenario, one) in doubtful {
        judged.push(vote(stage, scenario, one, args)?);
    }
    judged.sort_by(|one, other| one.name.cmp(&other.name));
    eprintln!(
        "scenarios: {} side by side in {}, {} alone in {}",
        sharing,
        minutes(together),
        scenarios.len() - sharing + again.len(),
        minutes(began.elapsed().saturating_sub(together))
    );
    eprintln!("scenarios: the slowest: {}", slowest(&judged));

    let outvoted: Vec<(String, String)> = judged
        .iter()
        .filter_map(|one| Some((one.name.clone(), one.outvoted.clone()?)))
        .collect();
    let lines: Vec<(String, Line)> = judged.into_iter().map(|one| (one.name, one.line)).collect();
    let kernel = workspace::kernel()?;
    print!("{}", table::printed(&lines, &kernel));
    list("Right in two of three runs only:", &outvoted);
    let not_beside: Vec<(String, String)> = again
        .into_iter()
        .map(|(scenario, why)| (scenario.name.clone(), why))
        .collect();
    list("Not right beside others, and so made again alone:", &not_beside);
    if let Some(file) = &args.table {
        std::fs::write(file, table::page(&lines, &kernel))
            .with_context(|| format!("write {}", file.display()))?;
    }
    let wrong = lines.iter().filter(|(_, line)| !line.right()).count();
    if wrong > 0 {
        bail!("{wrong} of {} scenarios are not right", lines.len());
    }
    Ok(())
}

/// Prints what is to be said of some scenarios, unless there are none.
fn list(heading: &str, scenarios: &[(String, String)]) {
    if scenarios.is_empty() {
        return;
    }
    println!("{heading}");
    for (name, why) in scenarios {
        println!("  {name}: {why}");
    }
}

fn slowest(judged: &[Judged]) -> String {
    let mut by_time: Vec<&Judged> = judged.iter().collect();
    by_time.sort_by_key(|one| std::cmp::Reverse(one.took));
    let words: Vec<String> = by_time
        .into_iter()
        .take(SLOWEST)
        .map(|one| format!("{} {:.1} s", one.name, one.took.as_secs_f64()))
        .collect();
    words.join(", ")
}

/// Runs each once, some at a time: what was right, and what must be made again with the reason.
fn side_by_side<'a>(
    stage: &Stage,
    scenarios: &[&'a Scenario],
    company: Company,
    args: &Args,
) -> anyhow::Result<(Vec<Judged>, Vec<Again<'a>>)> {
    // One has no company.
    let company = if scenarios.len() > 1 {
        company
    } else {
        Company::None
    };
    let queue = Mutex::new(scenarios.iter());
    let finished = Mutex::new((Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..company.side_by_side() {
            scope.spawn(|| {
                // A statement of its own, so that the queue is free again while the scenario runs.
                while let Some(scenario) = {
                    let mut queue = queue.lock().expect("no holder panics");
                    queue.next()
                } {
                    eprintln!("scenario {}: {}", scenario.name, scenario.about.shows);
                    let began = Instant::now();
                    let (line, _) = judge_once(stage, scenario, args, company);
                    let mut finished = finished.lock().expect("no holder panics");
                    if line.right() {
                        finished.0.push(Judged {
                            name: scenario.name.clone(),
                            line,
                            outvoted: None,
                            took: began.elapsed(),
                        });
                    } else {
                        let why = line.why_not().join("; ");
                        eprintln!("  {} not right beside others: {why}; again, alone", scenario.name);
                        finished.1.push((*scenario, why));
                    }
                }
            });
        }
    });
    let (judged, again) = finished.into_inner().expect("no holder panics");
    for (scenario, _) in &again {
        put_aside(args.keep.as_deref(), &scenario.name)?;
    }
    Ok((judged, again))
}

/// Runs one with nothing beside it, and again where the kernel hid something.
fn one_alone(stage: &Stage, scenario: &Scenario, args: &Args) -> Judged {
    let began = Instant::now();
    let once = || judge_once(stage, scenario, args, Company::None);
    let mut judged = once();
    for _ in 1..TRIES {
        match &judged {
            (Line::Judged(row), Some(why)) if !row.right() => eprintln!("  again: {why}"),
            _ => break,
        }
        judged = once();
    }
    let (line, _) = judged;
    if !line.right() {
        let why = line.why_not().join("; ");
        eprintln!("  not right: {why}; twice more, after the others");
    }
    Judged {
        name: scenario.name.clone(),
        line,
        outvoted: None,
        took: began.elapsed(),
    }
}

/// Runs one that was not right twice more: right by majority, or wrong as it was.
fn vote(stage: &Stage, scenario: &Scenario, mut first: Judged, args: &Args) -> anyhow::Result<Judged> {
    let began = Instant::now();
    eprintln!("scenario {}: twice more", scenario.name);
    put_aside(args.keep.as_deref(), &scenario.name)?;
    let mut more = [(); FURTHER].map(|()| judge_once(stage, scenario, args, Company::None).0);
    for line in more.iter().filter(|line| !line.right()) {
        eprintln!("  not right: {}", line.why_not().join("; "));
    }
    if more.iter().all(Line::right) {
        first.outvoted = Some(first.line.why_not().join("; "));
        std::mem::swap(&mut first.line, &mut more[FURTHER - 1]);
    }
    first.took += began.elapsed();
    Ok(first)
}

/// Keeps the reports of a run that was not right from being written over by the next.
fn put_aside(keep: Option<&Path>, name: &str) -> anyhow::Result<()> {
    for side in [Side::Stall, Side::Healthy] {
        let Some(file) = keep.map(|keep| keep.join(format!("{name}.{}.json", side.word()))) else {
            continue;
        };
        if file.exists() {
            std::fs::rename(&file, file.with_extension("not-right.json"))
                .with_context(|| format!("put {} aside", file.display()))?;
        }
    }
    Ok(())
}

/// Runs a scenario and judges it; also why it may be no test of holdup after all: the kernel hid something from it, or
/// there was no stall by the workload's own measure.
fn judge_once(stage: &Stage, scenario: &Scenario, args: &Args, company: Company) -> (Line, Option<String>) {
    match both(stage, scenario, args, company) {
        Ok((stall, twin)) => {
            let row = verdict::judge(&scenario.about.expect, &stall, &twin);
            let hidden = stall.report.hidden() + twin.report.hidden();
            let why = if hidden > 0 {
                Some(format!("the kernel hid {hidden} of its wakings and waits"))
            } else if stall.truth.trouble() < REAL {
                Some("there was no stall by the workload's own measure".to_owned())
            } else {
                None
            };
            (Line::Judged(Box::new(row)), why)
        }
        Err(error) => (Line::Failed(format!("{error:#}")), None),
    }
}

/// Runs a scenario's two sides under holdup.
fn both(
    stage: &Stage,
    scenario: &Scenario,
    args: &Args,
    company: Company,
) -> anyhow::Result<(Observed, Observed)> {
    let mut sides = Vec::new();
    for side in [Side::Stall, Side::Healthy] {
        let outcome = stage
            .run(scenario, side)
            .with_context(|| format!("run the {} side", side.word()))?;
        if let Some(keep) = &args.keep {
            outcome.keep(keep, scenario, side, "traced")?;
        }
        let Outcome {
            report,
            truth,
            machine_queued_ns,
            stderr,
            ..
        } = outcome;
        if args.verbose {
            eprint!("{stderr}");
        }
        sides.push(Observed {
            report: report.context("holdup wrote no report")?,
            truth,
            // What the scenarios beside this one queue for excuses nothing in its report.
            machine_queued_ns: match company {
                Company::None => machine_queued_ns,
                Company::One | Company::Two => 0,
            },
        });
    }
    let twin = sides.pop().expect("two sides were pushed");
    let stall = sides.pop().expect("two sides were pushed");
    Ok((stall, twin))
}
