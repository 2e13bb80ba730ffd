//! `--fail-on`: conditions that decide the exit status.

use clap::Args;
use holdup_comparison::gate::Conditions;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GateArgs {
    /// Exit with 1 if a condition holds, and with 3 if that cannot be determined
    ///
    /// Conditions, separated by commas: CAUSE>20% (share of the time), CAUSE>200ms, finding:RULE, severity>=warning, new-finding (with
    /// --baseline). CAUSE is a cause such as disk.sync, or a group such as disk, which is the sum of its causes. A condition holds only if it
    /// holds with all that is uncertain: time without a known cause may belong to any cause, and a sampled figure has an error. One line on
    /// stderr has the figures. If CMD of `run` fails itself, its exit status is kept.
    #[arg(long, value_name = "CONDITIONS", value_parser = conditions)]
    pub(crate) fail_on: Option<Conditions>,
    /// Report with known findings, written by --json, for --fail-on new-finding; may be repeated
    ///
    /// A finding is new if no baseline has one with the same rule, cause and resource, and its severity is warning or critical.
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    pub(crate) baseline: Vec<PathBuf>,
}

/// Reads conditions over a report.
fn conditions(text: &str) -> Result<Conditions, String> {
    let conditions = parse(text)?;
    match conditions.first_of(true) {
        Some(other) => Err(format!(
            "conditions over one report; {other} compares two, see `holdup diff`"
        )),
        None => Ok(conditions),
    }
}

/// Reads conditions over a comparison.
pub(crate) fn of_comparison(text: &str) -> Result<Conditions, String> {
    let conditions = parse(text)?;
    match conditions.first_of(false) {
        Some(_) => Err("regression, or a limit such as regression>5%".to_owned()),
        None => Ok(conditions),
    }
}

fn parse(text: &str) -> Result<Conditions, String> {
    Conditions::parse(text, |id| {
        holdup_diagnosis::rules::ALL.iter().any(|rule| rule.id.id() == id)
    })
}

#[cfg(test)]
mod tests {
    use super::{conditions, of_comparison};

    #[test]
    fn conditions_are_of_one_report_or_of_two() {
        assert!(conditions("disk.sync>20%,finding:crng-not-seeded").is_ok());
        assert!(conditions("finding:no-such-rule").is_err());
        assert!(conditions("regression").is_err_and(|said| said.contains("holdup diff")));
        assert!(of_comparison("regression>5%").is_ok());
        assert!(of_comparison("disk.sync>20%").is_err_and(|said| said.contains("regression>5%")));
    }
}
