//! `holdup read`: the same verdict from artefacts that people already have.
//!
//! In: files, or stdin. Out: the report; 1 when nothing was understood. Nothing is observed, and no clock is read but to
//! date the report.

use crate::cli::{Color, ReadArgs};
use crate::output::{Asked, Outputs, Place, say};
use crate::verdict::verdicts;
use anyhow::Context;
use holdup_analysis::artefacts::attribute;
use holdup_analysis::report::{Artefact, Backend, Misunderstood, Report, SubjectKind};
use holdup_analysis::rules::{Run, judge};
use holdup_readers::{Account, Readers, Reading};
use holdup_views::report::Subject;
use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nothing was understood.
const NOTHING_UNDERSTOOD: u8 = 1;

/// Reads, judges, prints.
///
/// # Errors
/// When the report can't be written.
pub(crate) fn run(args: &ReadArgs, color: Color) -> anyhow::Result<u8> {
    let outputs = Outputs::open(
        &Asked {
            format: args.format,
            json: args.json.as_deref(),
            verbose: args.verbose,
            quiet: args.quiet,
        },
        Place::Stdout,
        color,
    )?;
    let mut readers = Readers::new();
    let mut unread = 0;
    for file in &args.files {
        if let Err(error) = read(&mut readers, file) {
            say(&format!("{error:#}"));
            unread += 1;
        }
    }
    let reading = readers.finish();
    if reading.observed.is_empty() {
        if unread < args.files.len() {
            say(&nothing(&reading));
        }
        return Ok(NOTHING_UNDERSTOOD);
    }
    outputs.write(&report(args, &reading));
    Ok(0)
}

fn read(readers: &mut Readers, file: &Path) -> anyhow::Result<()> {
    if file == Path::new("-") {
        readers.read("stdin", &mut std::io::stdin().lock());
        return Ok(());
    }
    let name = file.to_string_lossy().into_owned();
    let mut stream = File::open(file).with_context(|| format!("cannot read {file:?}"))?;
    readers.read(&name, &mut stream);
    Ok(())
}

/// What was tried, in a sentence.
fn nothing(reading: &Reading) -> String {
    let lines: u64 = reading.accounts.iter().map(|account| account.lines).sum();
    let formats: Vec<&str> = holdup_readers::FORMATS
        .iter()
        .map(|format| format.about)
        .collect();
    match lines {
        0 => "nothing to read: no line in it".to_owned(),
        1 => format!(
            "nothing understood of 1 line; it is none of: {}",
            formats.join(", ")
        ),
        _ => format!(
            "nothing understood of {lines} lines; they are none of: {}",
            formats.join(", ")
        ),
    }
}

fn report(args: &ReadArgs, reading: &Reading) -> Report {
    let attributed = attribute(&reading.observed);
    let run = Run::of_artefacts(&attributed, &reading.facts, &reading.observed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let subject = Subject {
        kind: SubjectKind::Read,
        backend: Backend::Artefact,
        command: args
            .files
            .iter()
            .map(|file| file.to_string_lossy().into_owned())
            .collect(),
        pids: Vec::new(),
        started: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
        exit: None,
    };
    let judgement = verdicts(judge(&run));
    let version = env!("CARGO_PKG_VERSION");
    let mut report = holdup_views::report::build(subject, &attributed, judgement, &reading.facts, version);
    report.artefacts = artefacts(reading);
    if attributed.elapsed == 0 {
        report.coverage.observed_ns = None;
        report.coverage.attributed_ns = None;
        report.coverage.unknown_ns = None;
    }
    report
}

fn artefacts(reading: &Reading) -> Vec<Artefact> {
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
        })
        .collect()
}
