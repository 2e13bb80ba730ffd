//! `holdup read`: the same verdict from artefacts that people already have.
//!
//! In: files, or stdin. Out: the report; 1 when nothing was understood. Nothing is observed, and no clock is read but to
//! date the report.

use crate::cli::{Color, ReadArgs};
use crate::output::{Asked, Outputs, Place, print, say};
use crate::verdict::verdicts;
use anyhow::Context;
use holdup_analysis::artefacts::attribute;
use holdup_analysis::report::{Artefact, Backend, FilesWithin, Misunderstood, Report, SubjectKind};
use holdup_analysis::rules::{Run, judge};
use holdup_readers::{Account, Readers, Reading};
use holdup_views::report::Subject;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nothing was understood.
const NOTHING_UNDERSTOOD: u8 = 1;

/// Problems that the sentence names where nothing was understood; more are counted.
const PROBLEMS: usize = 3;

/// Reads, judges, prints.
///
/// # Errors
/// When the report can't be written.
pub(crate) fn run(args: &ReadArgs, color: Color) -> anyhow::Result<u8> {
    if args.collect_script {
        print(holdup_readers::COLLECT_SCRIPT.as_bytes())?;
        return Ok(0);
    }
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
    readers
        .read_path(file)
        .with_context(|| format!("cannot read {}", file.display()))
}

/// What was tried and what is wrong with it, in a sentence.
fn nothing(reading: &Reading) -> String {
    let formats: Vec<&str> = holdup_readers::FORMATS
        .iter()
        .map(|format| format.about)
        .collect();
    let formats = formats.join(", ");
    let sum = |of: fn(&Account) -> u64| reading.accounts.iter().map(of).sum::<u64>();
    let files = sum(|account| account.files.as_ref().map_or(0, |files| files.not_recognised));
    let mut sentence = match (sum(|account| account.lines), files) {
        (0, 0) if sum(|account| account.bytes) == 0 => "nothing to read: no line in it".to_owned(),
        (0, 0) => "nothing understood".to_owned(),
        (0, 1) => format!("nothing understood of 1 file; it is none of: {formats}"),
        (0, files) => format!("nothing understood of {files} files; they are none of: {formats}"),
        (1, _) => format!("nothing understood of 1 line; it is none of: {formats}"),
        (lines, _) => format!("nothing understood of {lines} lines; they are none of: {formats}"),
    };
    let sources = reading.observed.sources.iter().zip(&reading.accounts);
    let mut problems = sources.flat_map(|(source, account)| {
        let problems = account.problems.iter();
        problems.map(|problem| format!("; {}: {problem}", source.name))
    });
    sentence.extend(problems.by_ref().take(PROBLEMS));
    match problems.count() {
        0 => {}
        more => sentence.push_str(&format!("; and {more} more")),
    }
    sentence
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
            files: account.files.as_ref().map(|files| FilesWithin {
                read: files.read,
                not_recognised: files.not_recognised,
                names: files.names.clone(),
                links: files.links,
            }),
        })
        .collect()
}
