//! From what artefacts show to the report of `holdup read` and `holdup boot`.
//!
//! In: a reading, and the run that rules are to judge of it. Out: the report, with an account of each artefact. No clock is
//! read but to date it.

use holdup_diagnosis::account;
use holdup_diagnosis::rules::{Run, judge};
use holdup_model::finding::Severity;
use holdup_model::report::{
    AccountOutcome, Artefact, Backend, FilesWithin, Misunderstood, Report, SubjectKind,
};
use holdup_readers::{Account, Reading};
use holdup_report::Subject;
use std::time::{SystemTime, UNIX_EPOCH};

/// Judges it.
pub(crate) fn report(kind: SubjectKind, names: Vec<String>, reading: &Reading, run: &Run<'_>) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let subject = Subject {
        kind,
        backend: Backend::Artefact,
        command: names,
        pids: Vec::new(),
        started: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
        exit: None,
        elsewhere: vec![],
    };
    let judgement = judge(run).into();
    let version = env!("CARGO_PKG_VERSION");
    // Its date is that of the report: what the artefacts tell of are other instants.
    let facts = holdup_evidence::SystemFacts::default();
    let mut report = holdup_report::build(subject, run.attributed, judgement, &facts, version);
    report.artefacts = accounts(reading);
    if kind == SubjectKind::Read {
        let (lines, outcome) = account::judged(&reading.observed);
        let trouble = report.findings.iter().any(|one| one.severity > Severity::Note);
        report.account = Some(lines);
        report.outcome = match outcome {
            _ if trouble => Some(AccountOutcome::HoldsUp),
            // What was not read may be where the trouble stands.
            Some(_) if report.artefacts.iter().any(is_partly_read) => Some(AccountOutcome::CannotTell),
            outcome => outcome,
        };
    }
    if run.attributed.coverage.observed == 0 {
        report.coverage.observed_ns = None;
        report.coverage.attributed_ns = None;
        report.coverage.unknown_ns = None;
    }
    report
}

/// Whether more than a tenth of the lines of an artefact were not understood.
fn is_partly_read(artefact: &Artefact) -> bool {
    artefact.not_understood.saturating_mul(10) > artefact.lines
}

fn accounts(reading: &Reading) -> Vec<Artefact> {
    let sources = reading.observed.sources.iter().zip(&reading.accounts);
    sources
        .map(|(source, account): (_, &Account)| Artefact {
            name: source.name.clone(),
            format: Some(source.format.clone()).filter(|format| !format.is_empty()),
            host: source.host.clone(),
            bytes: account.bytes,
            lines: account.lines,
            understood: account.evidence + account.ignorable,
            not_understood: account.not_understood,
            misunderstood: account
                .misunderstood
                .iter()
                .map(|one| Misunderstood {
                    line: one.line,
                    text: one.text.clone(),
                })
                .collect(),
            left_out: account.left_out,
            problems: account.problems.clone(),
            files: account.files.as_ref().map(|files| FilesWithin {
                read: files.read,
                not_recognised: files.not_recognised,
                names: files.names.clone(),
                links: files.links,
            }),
        })
        .collect()
}
