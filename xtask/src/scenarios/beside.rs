//! `cargo xtask scenarios --backend proc`: what sampling says of the same stalls, beside what tracing says.
//!
//! In: the scenarios of `holdup run`, made once more with holdup and the command as an ordinary user and holdup sampling; and those of
//! `holdup attach`, made by such a user from end to end, what runs already among it. Tracing's
//! part is made by root in turn with it (`proc`), or read from the page that the traced scenarios keep (`proc-alone`). Out: a
//! table; an error where sampling is worse than it promises. What an ordinary user can't make is no test of it: each is named with the
//! reason.

use super::report::Truth;
use super::stage::{self, Ordinary, Side, Stage};
use super::verdict::{self, Observed, Row};
use super::{REAL, Scenario, table};
use crate::workspace;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Of the scenarios that sampling must name the right cause of, in hundredths.
const RIGHT: usize = 85;

/// Percentage points by which its shares may be off.
const POINTS: f64 = 10.0;

/// The page of the traced scenarios.
const PAGE: &str = "docs/accuracy.md";

/// How sampling is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sampled {
    /// Beside tracing, made now
    Proc,
    /// Beside what docs/accuracy.md has of tracing
    ProcAlone,
}

/// What came of a scenario.
enum Outcome {
    Judged(Box<Row>),
    /// An ordinary user can't run it.
    NotHis,
    Failed(String),
}

/// A row: a scenario, what tracing says, what sampling does.
struct Line {
    name: String,
    traced: [String; 2],
    sampled: Outcome,
}

const HEADINGS: [&str; 10] = [
    "scenario",
    "traced: cause",
    "share / truth",
    "sampled: cause",
    "resource",
    "holder",
    "share / truth",
    "false alarms",
    "tolerance",
    "allowed",
];

/// Runs all that are of `holdup run`, and prints the table; keeps each sampled report in `keep`, and the table as a page in `table`.
pub(super) fn judge(
    mut stage: Stage,
    scenarios: &[Scenario],
    how: Sampled,
    keep: Option<&Path>,
    table: Option<&Path>,
) -> anyhow::Result<()> {
    let page = match how {
        Sampled::Proc => BTreeMap::new(),
        Sampled::ProcAlone => {
            let file = workspace::root().join(PAGE);
            let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
            rows_of(&text)
        }
    };
    let mut lines = Vec::new();
    let mut left_out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for scenario in scenarios {
        let attaches = match of_command(scenario)? {
            OfCommand::Run => false,
            OfCommand::Attach => true,
            OfCommand::Other(why) => {
                left_out.entry(why).or_default().push(&scenario.name);
                continue;
            }
        };
        eprintln!("scenario {}: {}", scenario.name, scenario.about.shows);
        stage.ordinary = Ordinary::Nothing;
        let traced = match how {
            Sampled::Proc => cells(&outcome(&stage, scenario, keep)),
            Sampled::ProcAlone => of_page(&page, &scenario.name),
        };
        // What runs already and is to be looked at is the user's, too.
        stage.ordinary = match attaches {
            true => Ordinary::Everything,
            false => Ordinary::Command,
        };
        let mut sampled = outcome(&stage, scenario, keep);
        if let Outcome::Failed(why) = &sampled {
            eprintln!("{}: {why}", scenario.name);
            let holdup = stage.holdup.take();
            if stage.run(scenario, Side::Stall).is_err() {
                sampled = Outcome::NotHis;
            }
            stage.holdup = holdup;
        }
        let line = Line {
            name: scenario.name.clone(),
            traced,
            sampled,
        };
        println!("{}", row(&line).join("  "));
        lines.push(line);
    }
    let sum = sum(lines.iter().map(|line| &line.sampled));
    print!("\n{}", columns(&lines));
    for (why, names) in &left_out {
        println!("\nNot for this backend, {why}: {}", names.join(", "));
    }
    println!("\n{}", sum.text());
    if let Some(file) = table {
        std::fs::write(file, as_page(&lines, &left_out, &sum, &workspace::kernel()?))
            .with_context(|| format!("write {}", file.display()))?;
    }
    if sum.causes * 100 < sum.judged * RIGHT || sum.quiet < sum.judged {
        bail!("sampling is to name the cause in {RIGHT} of 100, and to say nothing of the twins");
    }
    Ok(())
}

/// Which command a scenario is for.
enum OfCommand {
    Run,
    Attach,
    /// Sampling is no matter of it: why.
    Other(&'static str),
}

/// The stage's functions that look at what runs already.
const ATTACH: [&str; 4] = ["attach ", "attach_and_end ", "look_at ", "look_at_stuck "];

fn of_command(scenario: &Scenario) -> anyhow::Result<OfCommand> {
    let script = scenario.folder.join("scenario.sh");
    let text = std::fs::read_to_string(&script).with_context(|| format!("read {}", script.display()))?;
    // An experiment observes its twin; the others observe nothing.
    Ok(if text.contains("experiment ") {
        OfCommand::Other("of `holdup try`")
    } else if text.contains("observe ") {
        OfCommand::Run
    } else if ATTACH.iter().any(|function| text.contains(function)) {
        OfCommand::Attach
    } else if text.contains("host") {
        OfCommand::Other("of `holdup host`")
    } else {
        OfCommand::Other("of another command")
    })
}

fn outcome(stage: &Stage, scenario: &Scenario, keep: Option<&Path>) -> Outcome {
    let sampled = stage.ordinary != Ordinary::Nothing;
    let run = |side: Side| -> anyhow::Result<(Observed, stage::Outcome)> {
        let outcome = stage.run(scenario, side)?;
        let observed = Observed {
            report: outcome.report.clone().context("holdup wrote no report")?,
            truth: outcome.truth,
            machine_queued_ns: outcome.machine_queued_ns,
        };
        Ok((observed, outcome))
    };
    let both = run(Side::Stall).and_then(|stall| Ok((stall, run(Side::Healthy)?)));
    match both {
        // What makes it stall was root's, and out of his reach.
        Ok(((stall, _), _)) if stage.ordinary == Ordinary::Command && !was_made(&stall.truth) => {
            Outcome::NotHis
        }
        Ok(((stall, of_stall), (twin, of_twin))) => {
            // Only of what was made: the rest is a command that failed at once.
            if let Some(keep) = keep.filter(|_| sampled) {
                let sides = [(Side::Stall, of_stall), (Side::Healthy, of_twin)];
                let kept = sides
                    .iter()
                    .try_for_each(|(side, outcome)| outcome.keep(keep, scenario, *side, "sampled"));
                if let Err(error) = kept {
                    return Outcome::Failed(format!("{error:#}"));
                }
            }
            let mut expect = scenario.about.expect.clone();
            if sampled {
                expect.tolerance = expect.tolerance.max(POINTS);
            }
            Outcome::Judged(Box::new(verdict::judge(&expect, &stall, &twin)))
        }
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// Whether there was a stall. A command that fails at once for want of a right has nothing but queueing to tell of on a busy machine, of
/// which no part is a small part.
fn was_made(truth: &Truth) -> bool {
    /// No stall of a scenario is this short, nanoseconds: of those that were made the shortest took 109 ms.
    const SHORT: u64 = 30_000_000;
    truth.trouble() >= REAL && truth.waited_ns >= SHORT
}

/// The traced scenarios of the page: cause and share, by name.
fn rows_of(page: &str) -> BTreeMap<String, [String; 2]> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let rows = page.lines().filter(|line| line.starts_with("| ")).map(cells);
    rows.filter_map(|row| Some((row.first()?.clone(), [row.get(1)?.clone(), row.get(5)?.clone()])))
        .collect()
}

/// That of a scenario; of one about Java that of any JDK.
fn of_page(page: &BTreeMap<String, [String; 2]>, name: &str) -> [String; 2] {
    let plain = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let found = page.get(name).or_else(|| {
        let mut others = page.iter().filter(|(other, _)| plain(other) == plain(name));
        others.next().map(|(_, row)| row)
    });
    found.cloned().unwrap_or_else(|| ["-".to_owned(), "-".to_owned()])
}

/// Cause and share.
fn cells(outcome: &Outcome) -> [String; 2] {
    match outcome {
        Outcome::Judged(row) => [cell(&row.cause), cell(&row.share)],
        Outcome::NotHis => ["not made".to_owned(), "-".to_owned()],
        Outcome::Failed(why) => [
            format!("failed: {}", why.lines().next().unwrap_or_default()),
            "-".to_owned(),
        ],
    }
}

fn row(line: &Line) -> [String; HEADINGS.len()] {
    let [cause, share] = cells(&line.sampled);
    let rest = |check: Option<&verdict::Check>| match check {
        Some(check) if check.right => "right".to_owned(),
        Some(_) => "NO".to_owned(),
        None => "-".to_owned(),
    };
    let (resource, holder, alarms) = match &line.sampled {
        Outcome::Judged(row) => (
            rest(Some(&row.resource)),
            match &row.holder {
                Some(holder) if !holder.right && row.says_unseen => "said to be unseen".to_owned(),
                holder => rest(holder.as_ref()),
            },
            alarms(row).join(", "),
        ),
        Outcome::NotHis | Outcome::Failed(_) => ("-".to_owned(), "-".to_owned(), String::new()),
    };
    let cause = match &line.sampled {
        Outcome::NotHis => "can't be made by an ordinary user".to_owned(),
        Outcome::Judged(_) | Outcome::Failed(_) => cause,
    };
    let none = if alarms.is_empty() { "none" } else { &alarms };
    let [traced, of_traced] = line.traced.clone();
    let [tolerance, allowed] = match &line.sampled {
        Outcome::Judged(row) => table::leeway(row),
        Outcome::NotHis | Outcome::Failed(_) => ["-".to_owned(), "-".to_owned()],
    };
    [
        line.name.clone(),
        traced,
        of_traced,
        cause,
        resource,
        holder,
        share,
        none.to_owned(),
        tolerance,
        allowed,
    ]
}

fn cell(check: &verdict::Check) -> String {
    let seen: String = check
        .seen
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if check.right { seen } else { format!("NO: {seen}") }
}

/// Findings that should not be there, of the stall and of its twin.
fn alarms(row: &Row) -> Vec<&str> {
    let of_sides = |alarm: &&str| alarm.starts_with("twin: ") || alarm.starts_with("stall: ");
    row.alarms.seen.split(", ").filter(of_sides).collect()
}

fn columns(lines: &[Line]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(lines.iter().map(row));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let padded: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "{}", padded.join("  ").trim_end());
    }
    text
}

/// The same as a page to keep.
fn as_page(lines: &[Line], left_out: &BTreeMap<&str, Vec<&str>>, sum: &Sum, kernel: &str) -> String {
    let mut text = format!(
        "# Accuracy of both backends\n\nWhat `holdup run` and `holdup attach` say of the same stalls when they trace, as root, and when they sample `/proc`, holdup and the command being \
         an\nordinary user's; of `attach` all else, too. A holder that is \"said to be unseen\" is one that such a user may not see, and the report says that and\nwhat would \
         name it. Made by `cargo xtask scenarios --backend proc-alone --table docs/accuracy-sampled.md` on Linux {kernel}; what tracing says \
         is\nfrom [accuracy.md](accuracy.md). A cause followed by an arrow is what the waiter waited for, and what the time on the critical path \
         then went to.\n\"Tolerance\" is how many percentage points the share may be off, \"allowed\" are findings that may stand beside the \
         expected ones; + marks\none that did.\n\n"
    );
    let mut line = |cells: &[String]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&HEADINGS.map(str::to_owned));
    line(&HEADINGS.map(|_| "---".to_owned()));
    for one in lines {
        line(&row(one));
    }
    for (why, names) in left_out {
        let _ = writeln!(text, "\nNot for this backend, {why}: {}.", names.join(", "));
    }
    let _ = writeln!(text, "\n{}.", sum.text());
    text
}

/// What all rows come to.
#[derive(Debug, Default)]
struct Sum {
    judged: usize,
    causes: usize,
    shares: usize,
    quiet: usize,
    quiet_stalls: usize,
    others: usize,
}

fn sum<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Sum {
    let mut sum = Sum::default();
    for outcome in outcomes {
        match outcome {
            Outcome::Judged(row) => {
                let alarms = alarms(row);
                let of = |side: &str| alarms.iter().any(|alarm| alarm.starts_with(side));
                sum.judged += 1;
                sum.causes += usize::from(row.cause.right);
                sum.shares += usize::from(row.cause.right && row.share.right);
                sum.quiet += usize::from(!of("twin: "));
                sum.quiet_stalls += usize::from(!of("stall: "));
            }
            Outcome::Failed(_) => sum.judged += 1,
            Outcome::NotHis => sum.others += 1,
        }
    }
    sum
}

impl Sum {
    fn text(&self) -> String {
        let Sum {
            judged,
            causes,
            shares,
            quiet,
            quiet_stalls,
            others,
        } = self;
        format!(
            "sampled: {judged} scenarios, the cause right in {causes}, its share within {POINTS:.0} points in {shares} of these; no false \
             alarm on the twin in {quiet}, on the stall in {quiet_stalls}; {others} can't be made by an ordinary user"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{of_page, rows_of};

    #[test]
    fn the_page_has_cause_and_share_by_name() {
        let page = "# Accuracy\n\n| scenario | cause | resource | asker | holder | share / truth | finding | false alarms |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- |\n\
                    | sleep | timer.sleep | right | right | - | 99.6 / 99.6 % | sleeps-on-purpose | none |\n\
                    | java-a-17 | lock.monitor → cpu.user | right | right | - | 1.0 / 2.0 % | deadlock | none |\n";
        let rows = rows_of(page);
        assert_eq!(of_page(&rows, "sleep"), ["timer.sleep", "99.6 / 99.6 %"]);
        assert_eq!(of_page(&rows, "java-a-25")[0], "lock.monitor → cpu.user");
        assert_eq!(of_page(&rows, "none")[0], "-");
    }
}
