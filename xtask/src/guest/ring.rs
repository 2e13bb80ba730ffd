//! The scenarios in a guest: the list that it is given, and what is made of what it left.

use super::table::Cell;
use crate::scenarios::report::Truth;
use crate::scenarios::stage::Side;
use crate::scenarios::verdict::{self, Observed};
use crate::scenarios::{Scenario, scenario::Expect};
use anyhow::{Context, bail};
use std::path::Path;

/// Sides of a scenario, in the order in which they run.
const SIDES: [Side; 2] = [Side::Stall, Side::Healthy];

/// Nanoseconds in one of the microseconds in which the kernel counts pressure.
const MICROSECOND: u64 = 1_000;

/// What to run, a line each: the scenario's folder below `scenarios/`, and the side.
pub(super) fn runs(folder: &Path, scenarios: &[Scenario]) -> Vec<String> {
    let below = |scenario: &Scenario| {
        let below = scenario.folder.strip_prefix(folder);
        below.unwrap_or(&scenario.folder).to_string_lossy().into_owned()
    };
    scenarios
        .iter()
        .flat_map(|scenario| SIDES.map(|side| format!("{} {}", below(scenario), side.word())))
        .collect()
}

/// How many CPUs the guest has.
const CPUS: u32 = 1;

/// Why nothing can be judged.
fn inapplicable(out: &Path, scenario: &Scenario) -> Option<String> {
    if scenario.about.cpus > CPUS {
        return Some(format!(
            "it takes {} CPUs, the guest has {CPUS}",
            scenario.about.cpus
        ));
    }
    let doctor = std::fs::read_to_string(out.join("doctor.txt")).unwrap_or_default();
    scenario
        .about
        .sees_with
        .iter()
        .find(|sight| lacks(&doctor, sight))
        .map(|sight| format!("this kernel has no {sight}, says holdup doctor"))
}

/// Whether `holdup doctor` said NO to something.
fn lacks(doctor: &str, sight: &str) -> bool {
    doctor.lines().any(|line| {
        line.trim_start()
            .strip_prefix(sight)
            .is_some_and(|rest| rest.starts_with(' ') && rest.trim_start().starts_with("NO"))
    })
}

/// Judges the scenario that was the `number`th in the list, from 0.
pub(super) fn judge(out: &Path, number: usize, scenario: &Scenario) -> Cell {
    if let Some(why) = inapplicable(out, scenario) {
        return Cell::NotApplicable(why);
    }
    let first = number * SIDES.len() + 1;
    let sides = SIDES.iter().enumerate().map(|(at, side)| {
        observed(&out.join((first + at).to_string())).with_context(|| format!("the {} side", side.word()))
    });
    match sides.collect::<anyhow::Result<Vec<Observed>>>() {
        Ok(sides) => said(&scenario.about.expect, &sides),
        Err(error) => Cell::Wrong(vec![format!("{error:#}")]),
    }
}

fn said(expect: &Expect, sides: &[Observed]) -> Cell {
    let row = verdict::judge(expect, &sides[0], &sides[1]);
    let wrong: Vec<String> = row
        .cells()
        .into_iter()
        .filter(|(_, check)| !check.right)
        .map(|(heading, check)| format!("{heading}: {}", check.seen))
        .collect();
    if wrong.is_empty() {
        let loose = if row.loose() { ", loose" } else { "" };
        Cell::Right(format!("{}{loose}", row.share.seen))
    } else {
        Cell::Wrong(wrong)
    }
}

/// What one run left.
fn observed(folder: &Path) -> anyhow::Result<Observed> {
    let read = |name: &str| {
        let file = folder.join(name);
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))
    };
    let status = read("status")?;
    if status.trim() != "0" {
        bail!("it ended with {}:\n{}", status.trim(), read("stderr")?.trim_end());
    }
    let truth = read("truth")?;
    let queued: u64 = read("queued")?.trim().parse().unwrap_or(0);
    Ok(Observed {
        report: serde_json::from_str(&read("report.json")?).context("understand the report")?,
        truth: Truth::parse(&truth).with_context(|| format!("understand the truth:\n{truth}"))?,
        machine_queued_ns: queued * MICROSECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::lacks;

    #[test]
    fn what_doctor_says_no_to_is_lacking() {
        let doctor =
            "  tracepoint sk_data_ready         NO          this kernel has none\n  CPU samples    yes\n";
        assert!(lacks(doctor, "tracepoint sk_data_ready"));
        assert!(!lacks(doctor, "CPU samples") && !lacks(doctor, "tracepoint sk"));
    }
}
