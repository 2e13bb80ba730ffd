//! `cargo xtask scenarios --backend proc`: what sampling says of the same stalls, beside what tracing says.
//!
//! In: the scenarios of `holdup run`, made by root under tracing, and once more with holdup and the command as an ordinary user
//! and holdup sampling. Out: a table; an error where sampling is worse than it promises. A command that an ordinary user can't
//! run at all is no test of it.

use super::stage::{Side, Stage};
use super::verdict::{self, Observed, Row};
use super::{REAL, Scenario};
use anyhow::{Context, bail};
use std::path::Path;

/// Of the scenarios that sampling must name the right cause of, in hundredths.
const RIGHT: usize = 85;

/// Percentage points by which its shares may be off.
const POINTS: f64 = 10.0;

/// How sampling is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sampled {
    /// Beside tracing
    Proc,
    /// Alone
    ProcAlone,
}

/// What came of a scenario.
enum Outcome {
    Judged(Box<Row>),
    /// An ordinary user can't run it.
    NotHis,
    Failed(String),
}

/// Runs all that are of `holdup run`, and prints the table.
pub(super) fn judge(
    mut stage: Stage,
    scenarios: &[Scenario],
    how: Sampled,
    keep: Option<&Path>,
) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for scenario in scenarios.iter().filter(|scenario| of_run(scenario)) {
        eprintln!("scenario {}: {}", scenario.name, scenario.about.shows);
        stage.unprivileged = false;
        let traced = (how == Sampled::Proc).then(|| outcome(&stage, scenario, keep));
        stage.unprivileged = true;
        let mut sampled = outcome(&stage, scenario, keep);
        if let Outcome::Failed(_) = sampled {
            let holdup = stage.holdup.take();
            if stage.run(scenario, Side::Stall).is_err() {
                sampled = Outcome::NotHis;
            }
            stage.holdup = holdup;
        }
        println!("{}", line(&scenario.name, traced.as_ref(), &sampled));
        rows.push((scenario.name.clone(), traced, sampled));
    }
    println!("\n{}", heading(how));
    for (name, traced, sampled) in &rows {
        println!("{}", line(name, traced.as_ref(), sampled));
    }
    sum_up(rows.iter().map(|(_, _, sampled)| sampled))
}

/// Whether it is about a command that holdup runs: what is attached to, and whole machines, are for root.
fn of_run(scenario: &Scenario) -> bool {
    let script = scenario.folder.join("scenario.sh");
    std::fs::read_to_string(script).is_ok_and(|text| text.contains("observe "))
}

fn outcome(stage: &Stage, scenario: &Scenario, keep: Option<&Path>) -> Outcome {
    let side = |side: Side| -> anyhow::Result<Observed> {
        let outcome = stage.run(scenario, side)?;
        if let Some(keep) = keep.filter(|_| stage.unprivileged) {
            let file = keep.join(format!("{}.{}.json", scenario.name, side.word()));
            std::fs::write(&file, outcome.json).with_context(|| format!("write {}", file.display()))?;
        }
        Ok(Observed {
            report: outcome.report.context("holdup wrote no report")?,
            truth: outcome.truth,
            machine_queued_ns: outcome.machine_queued_ns,
        })
    };
    let both = side(Side::Stall).and_then(|stall| Ok((stall, side(Side::Healthy)?)));
    match both {
        // What makes it stall was root's, and out of his reach.
        Ok((stall, _)) if stage.unprivileged && stall.truth.trouble() < REAL => Outcome::NotHis,
        Ok((stall, twin)) => {
            let mut expect = scenario.about.expect.clone();
            if stage.unprivileged {
                expect.tolerance = expect.tolerance.max(POINTS);
            }
            Outcome::Judged(Box::new(verdict::judge(&expect, &stall, &twin)))
        }
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn heading(how: Sampled) -> String {
    let traced = match how {
        Sampled::Proc => format!(" {:<24} {:<19}", "traced: cause", "share / truth"),
        Sampled::ProcAlone => String::new(),
    };
    format!(
        "{:<32}{traced} {:<34} {:<19} false alarms",
        "scenario", "sampled: cause", "share / truth"
    )
}

fn line(name: &str, traced: Option<&Outcome>, sampled: &Outcome) -> String {
    let traced = traced.map_or_else(String::new, |traced| match traced {
        Outcome::Judged(row) => format!(" {:<24} {:<19}", cell(&row.cause), cell(&row.share)),
        _ => format!(" {:<44}", "failed"),
    });
    let sampled = match sampled {
        Outcome::Judged(row) => format!(
            "{:<34} {:<19} {}",
            cell(&row.cause),
            cell(&row.share),
            of_twin(row).unwrap_or_else(|| "none".to_owned())
        ),
        Outcome::NotHis => "can't be made by an ordinary user".to_owned(),
        Outcome::Failed(why) => format!("failed: {}", why.lines().next().unwrap_or_default()),
    };
    format!("{name:<32}{traced} {sampled}")
}

fn cell(check: &verdict::Check) -> String {
    let seen: String = check
        .seen
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if check.right { seen } else { format!("NO: {seen}") }
}

/// What was said of the twin and should not have been.
fn of_twin(row: &Row) -> Option<String> {
    let alarms: Vec<&str> = row
        .alarms
        .seen
        .split(", ")
        .filter(|alarm| alarm.starts_with("twin: "))
        .collect();
    (!alarms.is_empty()).then(|| alarms.join(", "))
}

fn sum_up<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> anyhow::Result<()> {
    let (mut judged, mut causes, mut shares, mut quiet, mut others) = (0, 0, 0, 0, 0);
    for outcome in outcomes {
        match outcome {
            Outcome::Judged(row) => {
                judged += 1;
                causes += usize::from(row.cause.right);
                shares += usize::from(row.cause.right && row.share.right);
                quiet += usize::from(of_twin(row).is_none());
            }
            Outcome::Failed(_) => judged += 1,
            Outcome::NotHis => others += 1,
        }
    }
    println!(
        "\nsampled: {judged} scenarios, the cause right in {causes}, its share within {POINTS:.0} points in {shares} of these, no \
         false alarm on the twin in {quiet}; {others} can't be made by an ordinary user"
    );
    if causes * 100 < judged * RIGHT || quiet < judged {
        bail!("sampling is to name the cause in {RIGHT} of 100, and to say nothing of the twins");
    }
    Ok(())
}
