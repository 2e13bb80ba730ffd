//! `holdup boot`: what the machine waited for while it came up.
//!
//! In: this machine's own logs, or files of another's. Out: the report; 1 when nothing was understood. Both go through the
//! readers and rules of `holdup read`. This machine is looked at only if no file is named: times and causes of two machines
//! must never meet.

mod collect;

use crate::cli::{BootArgs, Color};
use crate::commands::read::{NOTHING_UNDERSTOOD, nothing, read};
use crate::output::{Outputs, Place, say};
use crate::verdict::{self, artefacts};
use holdup_artefacts::attribute;
use holdup_diagnosis::boot;
use holdup_diagnosis::randomness::aspects;
use holdup_diagnosis::rules::Run;
use holdup_model::randomness::Aspect;
use holdup_model::report::SubjectKind;
use holdup_proc::Root;
use holdup_proc::randomness::{self, try_generator};
use holdup_readers::{Readers, Reading};
use std::path::PathBuf;

/// Collects or reads, judges, prints.
///
/// # Errors
/// When the report can't be written.
pub(crate) fn run(args: &BootArgs, color: Color) -> anyhow::Result<u8> {
    let outputs = Outputs::open(&args.report, Place::Stdout, color)?;
    let files: Vec<&PathBuf> = [&args.kernel_log, &args.journal, &args.critical_chain]
        .into_iter()
        .flatten()
        .collect();
    let mut readers = Readers::new();
    // What only this machine tells.
    let mut here = Here::default();
    let (reading, names) = if files.is_empty() {
        let root = Root::system();
        here.missing = collect::this_boot(&root, &mut readers);
        here.randomness = aspects(&randomness::read(&root, try_generator(), &mut Vec::new()));
        let mut reading = readers.finish();
        reading.facts = collect::facts(&root);
        if reading.observed.is_empty() {
            for sentence in &here.missing {
                say(sentence);
            }
        }
        (reading, vec!["this boot".to_owned()])
    } else {
        let mut unread = 0;
        for file in &files {
            if let Err(error) = read(&mut readers, file) {
                say(&format!("{error:#}"));
                unread += 1;
            }
        }
        let names = files.iter().map(|file| file.to_string_lossy().into_owned());
        let reading = readers.finish();
        if reading.observed.is_empty() && unread == files.len() {
            return Ok(NOTHING_UNDERSTOOD);
        }
        (reading, names.collect())
    };
    if reading.observed.is_empty() {
        say(&nothing(&reading));
        return Ok(NOTHING_UNDERSTOOD);
    }
    let mut report = report(names, &reading, here);
    report.machine = files.is_empty().then(verdict::this_machine).flatten();
    outputs.write(&report);
    Ok(0)
}

/// What is asked of the machine itself, where no file is named.
#[derive(Debug, Default)]
struct Here {
    /// What could not be seen of its boot, a sentence each.
    missing: Vec<String>,
    /// Where its randomness comes from.
    randomness: Vec<Aspect>,
}

fn report(names: Vec<String>, reading: &Reading, here: Here) -> holdup_model::report::Report {
    let mut found = boot::of(&reading.observed);
    // A log that no longer goes back to the boot does not tell it; the machine does, or another file.
    found.release = found.release.or_else(|| reading.facts.kernel_release.clone());
    found.missing = here.missing;
    found.randomness = here.randomness;
    let mut attributed = attribute(&reading.observed);
    boot::attribute(&reading.observed, &found, &mut attributed);
    let run = Run::of_boot(&attributed, &reading.facts, &reading.observed);
    let mut report = artefacts::report(SubjectKind::Boot, names, reading, &run);
    report.boot = Some(found);
    report
}
