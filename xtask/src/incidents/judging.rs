//! Judges what holdup said of an incident, by the first sentence that a person reads.
//!
//! In: the report and the truth. Out: right or wrong for each column that the truth has.

use super::incident::{Column, Incident};
use crate::report::Report;

/// What came of an incident.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    /// Each column that the truth has, and whether it is right.
    pub(crate) columns: Vec<(Column, bool)>,
    /// The title of the first finding.
    pub(crate) said: String,
    /// Why it could not be judged.
    pub(crate) failed: Option<String>,
}

impl Judged {
    /// Nothing is wrong but what is not expected yet.
    pub(crate) fn passed(&self, not_yet: &[Column]) -> bool {
        self.failed.is_none()
            && self
                .columns
                .iter()
                .all(|(column, right)| *right || not_yet.contains(column))
    }

    /// It could not be made or asked.
    pub(crate) fn failed(why: &anyhow::Error) -> Judged {
        Judged {
            failed: Some(format!("{why:#}")),
            ..Judged::default()
        }
    }
}

/// Judges the report.
pub(crate) fn judge(incident: &Incident, report: &Report) -> Judged {
    let truth = &incident.truth;
    let first = report.findings.first();
    let said = first
        .map(|finding| finding.title().to_owned())
        .unwrap_or_default();
    let words = first.map(crate::report::Finding::words).unwrap_or_default();
    let mut columns = Vec::new();
    if incident.about.healthy {
        // A note is information; what accuses is at least a warning.
        let quiet = report.findings.iter().all(|finding| finding.severity == "note");
        columns.push((Column::Quiet, quiet));
    } else {
        let thing = !said.is_empty() && truth.names.iter().all(|name| name.is_match(&said));
        columns.push((Column::Thing, thing));
    }
    if let Some(function) = &truth.function {
        columns.push((Column::Function, function.is_match(&said)));
    }
    if !truth.line.is_empty() {
        columns.push((Column::Line, truth.line.iter().any(|line| line.is_match(&words))));
    }
    if let Some(holder) = &truth.holder {
        columns.push((Column::Holder, holder.is_match(&words)));
    }
    if !truth.accuses.is_empty() {
        let accused = truth.accuses.iter().any(|pattern| pattern.is_match(&said));
        columns.push((Column::Innocent, !accused));
    }
    Judged {
        columns,
        failed: None,
        said,
    }
}
