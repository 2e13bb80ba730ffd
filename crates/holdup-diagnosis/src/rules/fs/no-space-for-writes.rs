//! An observed process writes to a file system that has no space left.

use crate::rules::{Generality, Rule, RuleId, Run, say};
use holdup_evidence::Cause;
use holdup_evidence::facts::{FileWriter, FullFileSystem};
use holdup_evidence::units::bytes;
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Full file systems that become findings.
const FINDINGS_MAX: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_full_file_systems(RuleId::NoSpaceForWrites, check)
    .about("a process writes to a file system that has no space left")
    .causes(Cause::ALL)
    .from(0.0)
    .generality(Generality::Consequence);

fn check(run: &Run<'_>) -> Verdict {
    let full = &run.facts.full_file_systems;
    let findings: Vec<Finding> = full
        .iter()
        .filter_map(|one| finding(run, one))
        .take(FINDINGS_MAX)
        .collect();
    match findings.is_empty() {
        false => Verdict::Fires(findings),
        true => Verdict::Clear(format!(
            "{} full, and 0 observed processes have a file open there to write to",
            match full.len() {
                1 => "1 file system was".to_owned(),
                count => format!("{count} file systems were"),
            }
        )),
    }
}

fn finding(run: &Run<'_>, full: &FullFileSystem) -> Option<Finding> {
    let writes = |writer: &&FileWriter| {
        let mut waits = run.attributed.waits.iter();
        waits.any(|wait| wait.asker.name.pid == writer.pid)
    };
    let writer = full.writers.iter().find(writes)?;
    let theirs = run.waits(|wait| wait.asker.name.pid == writer.pid)?;
    let main = theirs.main();
    let who = match say::script(run, writer.pid) {
        Some(script) => format!("{script} (pid {})", writer.pid),
        None => say::who_with_pid(&main.asker.name),
    };
    let (lacks, command) = match full.inodes {
        true => ("inode".to_owned(), "du --inodes -x"),
        false => (
            match full.left {
                0 => "space".to_owned(),
                left => format!("space ({} of {})", bytes(left), bytes(full.size)),
            },
            "du -xh",
        ),
    };
    let title = format!(
        "{who} writes to a file system with no {lacks} left: {} on {}",
        say::name_or(&writer.file, "a file"),
        full.mount
    );
    let evidence = Evidence::new(
        format!(
            "{} ({}, {}) was full when observation ended; processes with files open there to write to: {}",
            full.mount,
            full.source,
            bytes(full.size),
            full.writers.len()
        ),
        "statvfs and /proc/PID/fd",
    );
    let look = format!("{command} {} | sort -h | tail", say::quoted(&full.mount));
    Some(
        Finding::without_duration(RULE.id.id(), Severity::Warning, title, main.cause, evidence)
            .about(Resource::named(ResourceKind::File, &full.mount), main.asker.clone())
            .confidence(Confidence::Strong)
            .remedy(Remedy::safe("see what fills it").with_command(look))
            .remedy(Remedy::pointless(
                "deleting a file that a process still has open: its space comes back when the process closes it",
            )),
    )
}
