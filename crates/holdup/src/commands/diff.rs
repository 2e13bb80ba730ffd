//! `holdup diff`: what got slower between BEFORE and AFTER, and whether that is more than chance.
//!
//! In: files. Out: a report with a comparison; or one sentence that says why there is none. What a file is is known by its
//! content ([`open`]); a folder's files are runs of their own.

mod open;

use crate::cli::{Color, DiffArgs};
use crate::gate::Gate;
use crate::output::{Outputs, Place, say};
use crate::usage::Usage;
use anyhow::bail;
use holdup_collect::privileges::{self, Part};
use holdup_comparison::comparison::source::Source;
use holdup_comparison::comparison::{Side, compare};
use holdup_evidence::SystemFacts;
use holdup_model::attributed::Attributed;
use holdup_model::finding::Verdicts;
use holdup_model::report::{Backend, Comparison, Report, SubjectKind};
use holdup_report::Subject;
use holdup_subject::subject::OWN_FAILURE;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Something could not be read. With a condition, 1 is a regression, and this is a failure.
const NOT_READ: u8 = 1;

/// Reads, compares, prints.
///
/// # Errors
/// When the two can't be compared, or the report can't be written.
pub(crate) fn run(args: &DiffArgs, color: Color) -> anyhow::Result<u8> {
    if let Some(format) = without_comparison(args) {
        bail!(Usage::Wrong(format!(
            "a comparison cannot be written as {format}: use terminal, json, markdown, html, github or junit"
        )));
    }
    let outputs = Outputs::open(&args.report, Place::Stdout, color)?;
    privileges::keep(Part::Read)?;
    let (before, after) = match args.both.as_slice() {
        [before, after] => (std::slice::from_ref(before), std::slice::from_ref(after)),
        _ => (&args.before[..], &args.after[..]),
    };
    let wanted = open::Wanted {
        under: args.under.as_deref(),
        // Only a page has a picture of the stacks.
        stacks: formats(args).any(|format| format == holdup_views::Format::Html),
    };
    let sides = open::all(&[before, after, &args.noise], wanted);
    let [before_read, after_read, noise] = match sides {
        Ok(sides) => sides,
        Err(error) => {
            say(&format!("{error:#}"));
            return Ok(if args.fail_on.is_some() {
                OWN_FAILURE
            } else {
                NOT_READ
            });
        }
    };
    let (before, after) = (side(before, before_read), side(after, after_read));
    let comparison = compare(&before, &after, &noise, args.per.as_ref());
    let mut comparison = comparison.map_err(|why| Usage::Wrong(why.0))?;
    comparison.stacks.take_if(|_| !wanted.stacks);
    let gate = Gate::of(args.fail_on.as_ref());
    Ok(outputs.write_judged(report(&before, &after, comparison), gate.as_ref()))
}

/// A format that was asked for and has no place for a comparison.
fn without_comparison(args: &DiffArgs) -> Option<&'static str> {
    use holdup_views::Format::{Github, Html, Json, Junit, Markdown};
    formats(args)
        .find(|format| !matches!(format, Json | Markdown | Html | Github | Junit))
        .map(holdup_views::Format::name)
}

/// Formats of files that were asked for.
fn formats(args: &DiffArgs) -> impl Iterator<Item = holdup_views::Format> {
    let page = args.report.html.iter().map(|_| holdup_views::Format::Html);
    let exports = args.report.export.iter().map(|export| export.format);
    args.report
        .format
        .of_file()
        .into_iter()
        .chain(exports)
        .chain(page)
}

fn side(files: &[PathBuf], sources: Vec<Source>) -> Side {
    let names: Vec<String> = files
        .iter()
        .map(|file| file.to_string_lossy().into_owned())
        .collect();
    Side {
        name: names.join(", "),
        sources,
    }
}

/// Nothing was observed: all there is is the comparison.
fn report(before: &Side, after: &Side, comparison: Comparison) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let subject = Subject {
        kind: SubjectKind::Diff,
        backend: Backend::Artefact,
        command: vec![before.name.clone(), after.name.clone()],
        pids: Vec::new(),
        started: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
        exit: None,
        elsewhere: Vec::new(),
    };
    let version = env!("CARGO_PKG_VERSION");
    let (nothing, facts) = (Attributed::default(), SystemFacts::default());
    let mut report = holdup_report::build(subject, &nothing, Verdicts::default(), &facts, version);
    report.coverage.observed_ns = None;
    report.coverage.attributed_ns = None;
    report.coverage.unknown_ns = None;
    report.comparison = Some(comparison);
    report
}
