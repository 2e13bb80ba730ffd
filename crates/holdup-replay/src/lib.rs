//! From a file of events to the report that holdup would make of it.

use anyhow::Context;
use holdup_diagnosis::rules::{Run, judge};
use holdup_model::report::Report;
use holdup_report::{Subject, build};
use std::path::Path;

/// Attributes the events, asks the rules, and builds the report.
///
/// # Errors
/// When the file is no file of events, or does not say what was observed.
pub fn report(path: &Path) -> anyhow::Result<Report> {
    let file = std::fs::File::open(path).with_context(|| format!("open {}", path.display()))?;
    let replayed = holdup_events::replay(std::io::BufReader::new(file))
        .with_context(|| format!("read {}", path.display()))?;
    let observed = replayed
        .ending
        .observed
        .with_context(|| format!("{} does not say what was observed", path.display()))?;
    let subject = Subject {
        kind: observed.kind,
        backend: observed.backend,
        command: observed.command,
        pids: observed.pids,
        started: observed.started,
        exit: observed.exit,
        elsewhere: observed.elsewhere,
    };
    let facts = &replayed.ending.facts;
    let judgement = judge(&Run::new(&replayed.attributed, facts));
    // The version of who recorded it: that of who replays it is no change.
    let version = &replayed.head.holdup;
    Ok(build(
        subject,
        &replayed.attributed,
        judgement.into(),
        facts,
        version,
    ))
}
