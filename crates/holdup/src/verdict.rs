//! From what was collected to the report: attribution is done, the rules judge, the report is built. Also the
//! pages that `holdup explain` prints, which come from the same rules and causes.

use crate::commands::run::Collected;
use crate::subject::{Command, Ended, Subject};
use holdup_analysis::report::{Backend, Report, SubjectKind};
use holdup_evidence::Cause;
use holdup_views::Style;
use holdup_views::report::{Subject as Observed, Verdicts};
use std::collections::BTreeSet;
use std::io::Write;

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
        Verdicts::default(),
        &collected.facts,
        env!("CARGO_PKG_VERSION"),
    )
}

/// Something that has a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic {
    /// What to type.
    pub(crate) id: &'static str,
    /// In a few words.
    pub(crate) about: &'static str,
    /// Its page, Markdown.
    pub(crate) page: &'static str,
}

impl Topic {
    /// Sets the page.
    pub(crate) fn write(&self, style: &Style, out: &mut dyn Write) -> std::io::Result<()> {
        let _ = style;
        out.write_all(self.page.as_bytes())
    }
}

/// Every rule.
pub(crate) fn rules() -> Vec<Topic> {
    Vec::new()
}

/// Every cause.
pub(crate) fn causes() -> Vec<Topic> {
    Cause::ALL
        .iter()
        .map(|cause| Topic {
            id: cause.id(),
            about: cause.phrase(),
            page: cause.phrase(),
        })
        .collect()
}
