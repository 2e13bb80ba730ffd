//! A file system found an error in itself, or is read-only for one.

use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, logs};
use holdup_evidence::observed::KernelEvent;
use holdup_evidence::{Cause, Observed};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::FileSystemFailed,
    about: "a file system has an error, or is read-only for one",
    needs: &[Need::Artefacts],
    causes: &[Cause::DiskWrite],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let told = logs::told(observed, |event| match event {
        KernelEvent::FileSystemError { on, read_only } => Some((on.as_str(), *read_only)),
        _ => None,
    });
    let mut all: Vec<&str> = Vec::new();
    for (_, (on, _)) in &told {
        // A journal is told as its file system's device with its inode: `sda1-8`.
        let device = on.strip_suffix("-8").unwrap_or(on);
        if !all.contains(&device) {
            all.push(device);
        }
    }
    if all.is_empty() {
        return logs::kernel_silent(observed, "a failing file system");
    }
    let of_one = all.iter().filter_map(|device| {
        let of_it = |on: &str| on == *device || on.strip_suffix("-8") == Some(*device);
        let lines: Vec<_> = told.iter().filter(|(_, (on, _))| of_it(on)).collect();
        let (first, _) = lines.first()?;
        let read_only = lines.iter().find(|(_, (_, read_only))| *read_only);
        let title = match read_only {
            Some(_) => {
                format!("The file system on {device} is read-only since an error: no program can write to it")
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
        let text = format!("the kernel told of it {}", logs::times(lines.len()));
        Some(
            finding
                .and(logs::about(observed, first, text))
                .remedy(
                    Remedy::safe("look at the disk before the file system: what came before the first error")
                        .with_command(format!(
                            "dmesg | grep -B 20 -m 1 {device}; smartctl -a /dev/{}",
                            device.trim_end_matches(|c: char| c.is_ascii_digit())
                        )),
                )
                .remedy(Remedy::changing(
                    "copy what matters away, then unmount and check it (fsck, xfs_repair)",
                    "a check that repairs can lose files; on a failing disk it makes things worse",
                )),
        )
    });
    Verdict::Fires(of_one.collect())
}
