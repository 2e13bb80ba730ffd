//! A file system found an error in itself, or is read-only for one.

use crate::rules::{Rule, RuleId, Run, logs, say};
use holdup_evidence::observed::{KernelEvent, SeenFileSystem};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::HashSet;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::FileSystemFailed, check)
    .about("a file system has an error, or is read-only because of one")
    .causes(&[Cause::DiskWrite]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let found = logs::happenings(observed, |event| match event {
        KernelEvent::FileSystemError { on, read_only } => Some((on.as_str(), *read_only)),
        _ => None,
    });
    let mut all: Vec<&str> = Vec::new();
    for (_, (on, _)) in &found {
        // A journal is reported as its file system's device with its inode: `sda1-8`.
        let device = on.strip_suffix("-8").unwrap_or(on);
        if !all.contains(&device) {
            all.push(device);
        }
    }
    if all.is_empty() {
        return by_mounts(observed);
    }
    let of_one = all.iter().filter_map(|device| {
        let of_it = |on: &str| on == *device || on.strip_suffix("-8") == Some(*device);
        let lines: Vec<_> = found.iter().filter(|(_, (on, _))| of_it(on)).collect();
        let (first, _) = lines.first()?;
        let read_only = lines.iter().find(|(_, (_, read_only))| *read_only);
        let title = match read_only {
            Some(_) => {
                format!("The file system on {device} is read-only after an error: no program can write to it")
            }
            None => format!("The file system on {device} has errors"),
        };
        let severity = if read_only.is_some() {
            Severity::Critical
        } else {
            Severity::Warning
        };
        let mut finding = Finding::without_duration(
            RULE.id.id(),
            severity,
            title,
            Cause::DiskWrite,
            logs::quote(observed, first),
        );
        if let Some((one, _)) = read_only.filter(|(one, _)| one.quote != first.quote) {
            finding = finding.and(logs::quote(observed, one));
        }
        let text = format!("the kernel reported it {}", logs::times(lines.len()));
        Some(
            finding
                .and(logs::about(observed, first, text))
                .remedy(
                    Remedy::safe("check the disk first: read the kernel log before the first error")
                        .with_command(format!(
                            "dmesg | grep -B 20 -m 1 {device}; smartctl -a /dev/{}",
                            device.trim_end_matches(|c: char| c.is_ascii_digit())
                        )),
                )
                .remedy(Remedy::changing(
                    "copy important data to another disk, then unmount and check it (fsck, xfs_repair)",
                    "a repair can lose files; on a failing disk it makes things worse",
                )),
        )
    });
    Verdict::Fires(of_one.collect())
}

/// Options that the kernel itself adds when it has stopped writing: ext4 since Linux 6.13 and 6.14, XFS.
const STOPPED: &[&str] = &["emergency_ro", "shutdown"];

/// What a list of mounts shows, where no log tells.
fn by_mounts(observed: &Observed) -> Verdict {
    let has = |one: &SeenFileSystem, name: &str| {
        let options = one.options.as_deref().unwrap_or_default();
        options.split(',').any(|option| option == name)
    };
    let listed: Vec<&SeenFileSystem> = observed
        .file_systems
        .iter()
        .filter(|one| one.options.is_some())
        .collect();
    let stopped = |one: &SeenFileSystem| STOPPED.iter().any(|option| has(one, option));
    // Mounted so that an error makes it read-only, and it is.
    let became = |one: &SeenFileSystem| has(one, "ro") && has(one, "errors=remount-ro");
    let mut found: Vec<Finding> = Vec::new();
    let mut sources: HashSet<&str> = HashSet::new();
    for one in &listed {
        if (stopped(one) || became(one)) && sources.insert(&one.source) {
            found.push(read_only(observed, one, stopped(one)));
        }
    }
    match (
        found.is_empty(),
        logs::kernel_silent(observed, "a failing file system"),
    ) {
        (false, _) => Verdict::Fires(found),
        (true, silent @ Verdict::Clear(_)) => silent,
        (true, silent) if listed.is_empty() => silent,
        (true, _) => Verdict::Clear(format!(
            "0 of {} are read-only because of errors=remount-ro",
            say::several(listed.len() as u64, "mount")
        )),
    }
}

fn read_only(observed: &Observed, one: &SeenFileSystem, stopped: bool) -> Finding {
    let (source, mount) = (&one.source, &one.mount);
    let title = match stopped {
        true => format!("The file system at {mount} is read-only after an error: no program can write to it"),
        false => format!("The file system at {mount} is read-only, as its options demand after an error"),
    };
    let options = one.options.as_deref().unwrap_or_default();
    let place = observed.place(&one.quote);
    let place = if place.is_empty() {
        "the list of mounts".to_owned()
    } else {
        place
    };
    let severity = if stopped {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let text = format!("{source} on {mount}: {options}");
    Finding::without_duration(
        RULE.id.id(),
        severity,
        title,
        Cause::DiskWrite,
        Evidence::new(text, place),
    )
    .confidence(if stopped {
        Confidence::Proved
    } else {
        Confidence::Suspect
    })
    .remedy(
        Remedy::safe("read the kernel log, and the lines before the error")
            .with_command("dmesg | grep -iE 'remount|I/O error|EXT4-fs|XFS'"),
    )
    .remedy(Remedy::changing(
        "copy important data to another disk, then unmount and check it (fsck, xfs_repair)",
        "a repair can lose files; on a failing disk it makes things worse",
    ))
}
