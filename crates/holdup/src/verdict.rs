//! From what was collected to the report: the rules judge what attribution made of it, the report is built.

use crate::commands::run::Collected;
use crate::subject::{Command, Ended, Subject};
use holdup_analysis::report::{Backend, Report, SubjectKind};
use holdup_analysis::rules::{Judgement, RuleId, Run, judge};
use holdup_views::report::{Subject as Observed, Verdicts};
use std::collections::BTreeSet;

/// The report of a run.
pub(crate) fn report(command: &Command, subject: &Subject, collected: &Collected) -> Report {
    let attributed = &collected.attributed;
    let others: BTreeSet<u32> = attributed
        .threads
        .iter()
        .map(|thread| thread.name.pid)
        .filter(|pid| *pid != subject.pid())
        .collect();
    let observed = Observed {
        kind: SubjectKind::Run,
        backend: Backend::Bpf,
        command: command
            .argv
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        pids: std::iter::once(subject.pid()).chain(others).collect(),
        started: collected.started,
        exit: collected.ended.map(Ended::status).map(i32::from),
    };
    holdup_views::report::build(
        observed,
        attributed,
        verdicts(judge(&Run::new(attributed, &collected.facts))),
        &collected.facts,
        env!("CARGO_PKG_VERSION"),
    )
}

/// Rule ids are text in a report.
pub(crate) fn verdicts(judgement: Judgement) -> Verdicts {
    let by_id = |said: Vec<(RuleId, String)>| {
        said.into_iter()
            .map(|(rule, why)| (rule.id().to_owned(), why))
            .collect()
    };
    Verdicts {
        findings: judgement.findings,
        ruled_out: by_id(judgement.ruled_out),
        cannot_tell: by_id(judgement.cannot_tell),
    }
}
