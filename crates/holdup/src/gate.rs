//! `--fail-on`: from conditions and a report to an exit status.
//!
//! In: what was asked for, found sound before anything runs. Out: the report with what its conditions came to, and 0, 1 or 3. CMD of `run` has
//! an exit status of its own, which is never changed: only a CMD that succeeded gets that of the conditions.

use crate::cli::GateArgs;
use crate::output::say;
use crate::saved;
use crate::usage::Usage;
use anyhow::bail;
use holdup_comparison::gate::{Conditions, Evidence, judge};
use holdup_model::report::{Gate as Outcome, GateOutcome, Report};

/// Exit status where a condition holds.
const FAILS: u8 = 1;

/// Exit status where it cannot be determined whether one holds.
const CANNOT_TELL: u8 = 3;

/// Conditions that the report is to be judged by.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    conditions: Conditions,
    baselines: Vec<Report>,
}

impl Gate {
    /// Reads what the conditions need. `None`: there are none.
    ///
    /// # Errors
    /// Bad usage: a baseline is missing, not needed, or no report.
    pub(crate) fn open(args: &GateArgs) -> anyhow::Result<Option<Gate>> {
        let Some(conditions) = args.fail_on.clone() else {
            return Ok(None);
        };
        match (conditions.need_baseline(), args.baseline.is_empty()) {
            (true, true) => bail!(Usage::Wrong(
                "--fail-on new-finding needs the findings that are known: --baseline FILE, a report that --json wrote"
                    .to_owned()
            )),
            (false, false) => bail!(Usage::Wrong(
                "--baseline is only for --fail-on new-finding; add that condition or remove --baseline".to_owned()
            )),
            _ => {}
        }
        let baselines: anyhow::Result<Vec<Report>> =
            args.baseline.iter().map(|path| saved::report_in(path)).collect();
        let baselines = baselines.map_err(|error| Usage::Wrong(format!("--baseline: {error:#}")))?;
        Ok(Some(Gate {
            conditions,
            baselines,
        }))
    }

    /// Conditions without a baseline.
    pub(crate) fn of(conditions: Option<&Conditions>) -> Option<Gate> {
        conditions.map(|conditions| Gate {
            conditions: conditions.clone(),
            baselines: Vec::new(),
        })
    }

    /// What the conditions come to.
    pub(crate) fn judge(&self, report: &Report) -> Outcome {
        let with = Evidence {
            report,
            baselines: &self.baselines,
            undecided: holdup_views::undecided,
        };
        judge(&self.conditions, with)
    }
}

/// The exit status of a report.
pub(crate) fn status(report: &Report) -> u8 {
    match report.gate.as_ref().map(|gate| gate.outcome) {
        None | Some(GateOutcome::Passed) => 0,
        Some(GateOutcome::Failed) => FAILS,
        Some(GateOutcome::CannotTell) => CANNOT_TELL,
    }
}

/// The exit status where there is no report: `otherwise` where nobody has set a condition.
pub(crate) fn status_without_report(gate: Option<&Gate>, otherwise: u8) -> u8 {
    match gate {
        None => otherwise,
        Some(_) => {
            say("--fail-on cannot tell: there is no report to judge");
            CANNOT_TELL
        }
    }
}

/// What the conditions came to in one sentence: those that decide the exit status.
pub(crate) fn sentence(gate: &Outcome) -> String {
    let decide = gate.checks.iter().filter(|check| check.outcome == gate.outcome);
    let texts: Vec<String> = decide
        .map(|check| format!("{} ({})", check.text, check.condition))
        .collect();
    let outcome = match gate.outcome {
        GateOutcome::Passed => "passed",
        GateOutcome::CannotTell => "cannot tell",
        GateOutcome::Failed => "failed",
    };
    format!("--fail-on {outcome}: {}", texts.join("; "))
}

/// The exit status of a run: CMD's own, unless it succeeded. `gated`: that of the conditions, where there are some.
pub(crate) fn status_of_run(command: u8, gated: Option<u8>) -> u8 {
    match gated {
        Some(gated) if command == 0 => gated,
        Some(_) => {
            say(&format!(
                "exit status {command} is that of the command, and not that of --fail-on"
            ));
            command
        }
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::{CANNOT_TELL, FAILS, status_of_run};

    #[test]
    fn a_command_that_fails_keeps_its_status() {
        assert_eq!(status_of_run(0, None), 0);
        assert_eq!(status_of_run(7, None), 7);
        for gated in [0, FAILS, CANNOT_TELL] {
            assert_eq!(status_of_run(0, Some(gated)), gated);
            assert_eq!(status_of_run(7, Some(gated)), 7);
        }
    }
}
