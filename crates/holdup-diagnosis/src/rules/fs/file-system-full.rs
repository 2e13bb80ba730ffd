//! A file system without room, or without inodes.

use crate::rules::{Rule, RuleId, Run, say};
use holdup_evidence::observed::SeenFileSystem;
use holdup_evidence::{Cause, Observed};
use holdup_knowledge::file_systems;
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::HashSet;

/// Percent that is used from which little is left; `df` rounds up.
pub(crate) const NEARLY: f64 = 95.0;

/// KiB that are still enough for logs and temporary files of some days, whatever the percentage: 20 GiB.
pub(crate) const PLENTY_KIB: f64 = 20_971_520.0;

/// Inodes that are still enough for the files of some days, whatever the percentage.
const PLENTY_INODES: f64 = 1_000_000.0;

/// Served by FUSE, and made full all the same.
const SNAP_IMAGE: &str = "fuse.snapfuse";

/// Where file systems are mounted that are made full and never grow, where their type is not known.
const IMAGE_MOUNTS: &[&str] = &[
    "/snap/",
    "/var/lib/snapd/",
    "/run/live",
    "/rofs",
    "/cdrom",
    "/media/cdrom",
];

/// Findings about single file systems; more are counted.
const MAX_FINDINGS: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::FileSystemFull, check)
    .about("a file system has no space or no inodes left")
    .causes(&[Cause::DiskWrite]);

/// What there is too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Short {
    Room,
    Inodes,
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    // Lists of tens of thousands are read: each is looked up, and not looked for.
    let read_only: HashSet<&str> = observed
        .file_systems
        .iter()
        .filter(|one| {
            let options = one.options.as_deref();
            options.is_some_and(|options| options.split(',').any(|option| option == "ro"))
        })
        .map(|one| one.mount.as_str())
        .collect();
    let mut listed: Vec<&SeenFileSystem> = observed
        .file_systems
        .iter()
        .filter(|one| one.used_percent.is_some() || one.inodes_used_percent.is_some())
        .filter(|one| !is_image(one) && !read_only.contains(one.mount.as_str()))
        .collect();
    if listed.is_empty() {
        return Verdict::CannotTell("how full the file systems are: `df -h`, `df -i`".to_owned());
    }
    // One mounted in several places is one.
    listed.sort_by(|a, b| b.fullest().total_cmp(&a.fullest()));
    let mut found: Vec<(&SeenFileSystem, Short)> = Vec::new();
    let mut known: HashSet<(&str, Short)> = HashSet::new();
    for one in &listed {
        let short = [Short::Room, Short::Inodes];
        for short in short
            .into_iter()
            .filter(|short| level(one, *short) > Level::Enough)
        {
            if known.insert((one.source.as_str(), short)) {
                found.push((one, short));
            }
        }
    }
    if found.is_empty() {
        let fullest = listed
            .first()
            .map_or((String::new(), 0.0), |one| (one.mount.clone(), one.fullest()));
        return Verdict::Clear(format!(
            "{} is {:.0} % full, the fullest of {}",
            fullest.0,
            fullest.1,
            say::several(listed.len() as u64, "file system")
        ));
    }
    let findings = found.iter().take(MAX_FINDINGS);
    Verdict::Fires(
        findings
            .map(|(one, short)| finding(observed, one, *short))
            .collect(),
    )
}

/// How much is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Enough,
    Little,
    Nothing,
}

fn level(one: &SeenFileSystem, short: Short) -> Level {
    let (used, left) = match short {
        Short::Room => (one.used_percent, one.available_kib),
        Short::Inodes => (one.inodes_used_percent, one.inodes_free),
    };
    let Some(used) = used else { return Level::Enough };
    // 100 % is what is left of more than 99: an amount that is left says more.
    if left.map_or(used >= 100.0, |left| left <= 0.0) {
        return Level::Nothing;
    }
    let enough = match short {
        Short::Room => PLENTY_KIB,
        Short::Inodes => PLENTY_INODES,
    };
    let plenty = left.is_some_and(|left| left >= enough);
    if used >= NEARLY && !plenty {
        Level::Little
    } else {
        Level::Enough
    }
}

pub(crate) fn is_image(one: &SeenFileSystem) -> bool {
    let kind = one.kind.as_deref();
    let image = |kind: &str| file_systems::named(kind).is_some_and(|known| known.image);
    kind.is_some_and(|kind| kind == SNAP_IMAGE || image(kind))
        || kind.is_none() && {
            IMAGE_MOUNTS.iter().any(|start| one.mount.starts_with(start)) || one.source.starts_with("/dev/sr")
        }
        // Firmware's variables have room of their own.
        || one.mount.starts_with("/sys/")
}

trait Fullest {
    fn fullest(&self) -> f64;
}

impl Fullest for SeenFileSystem {
    fn fullest(&self) -> f64 {
        let both = [self.used_percent, self.inodes_used_percent];
        both.into_iter().flatten().fold(0.0, f64::max)
    }
}

/// Of which device, how many are used and how many are left, as far as it is known: ` (/dev/sdb1: 98 of 100 are used, 2 are left)`.
fn inodes(one: &SeenFileSystem) -> String {
    let used = one.inodes.zip(one.inodes_free).map(|(all, free)| all - free);
    let used = used.zip(one.inodes).filter(|(used, _)| *used >= 0.0);
    let used = used.map(|(used, all)| format!("{used:.0} of {all:.0} are used"));
    let left = one.inodes_free.filter(|left| *left > 0.0);
    let left = left.map(|left| format!("{left:.0} are left"));
    let figures: Vec<String> = used.into_iter().chain(left).collect();
    match (one.source.as_str(), figures.join(", ")) {
        ("", figures) if figures.is_empty() => String::new(),
        ("", figures) => format!(" ({figures})"),
        (source, figures) if figures.is_empty() => format!(" ({source})"),
        (source, figures) => format!(" ({source}: {figures})"),
    }
}

fn finding(observed: &Observed, one: &SeenFileSystem, short: Short) -> Finding {
    let full = level(one, short) == Level::Nothing;
    let mount = &one.mount;
    let kib = |kib: f64| say::bytes((kib.max(0.0) * 1024.0) as u64);
    let title = match (short, full) {
        (Short::Room, true) => {
            format!("The file system at {mount} is full: writes fail")
        }
        (Short::Room, false) => match one.available_kib {
            Some(left) => format!(
                "The file system at {mount} is nearly full: {} are left",
                kib(left)
            ),
            None => format!("The file system at {mount} is nearly full"),
        },
        (Short::Inodes, true) => {
            format!(
                "The file system at {mount} has no inodes left{}: no files can be created",
                inodes(one)
            )
        }
        (Short::Inodes, false) => {
            format!("The file system at {mount} has few inodes left{}", inodes(one))
        }
    };
    let text = match short {
        Short::Room => {
            let of = one
                .size_kib
                .map(|size| format!(" of {}", kib(size)))
                .unwrap_or_default();
            let left = one.available_kib.map(|left| format!(", {} are left", kib(left)));
            format!(
                "{}: {:.0} %{of} are used{}",
                one.source,
                one.used_percent.unwrap_or(0.0),
                left.unwrap_or_default()
            )
        }
        Short::Inodes => {
            let left = one.inodes_free.map(|left| format!(", {left:.0} are free"));
            format!(
                "{}: {:.0} % of the inodes are used{}",
                one.source,
                one.inodes_used_percent.unwrap_or(0.0),
                left.unwrap_or_default()
            )
        }
    };
    let place = observed.place(&one.quote);
    let place = if place.is_empty() { "df".to_owned() } else { place };
    let resource = Resource {
        kind: ResourceKind::File,
        name: mount.clone(),
        ..Resource::default()
    };
    let severity = match short {
        _ if full => Severity::Critical,
        Short::Room => Severity::Note,
        // Nothing gives them back by itself, as logs that are rotated give back room.
        Short::Inodes => Severity::Warning,
    };
    let look = match short {
        Short::Room => Remedy::safe(
            "find what uses the space, also deleted files that are still open (their space is not free)",
        )
        .with_command(format!(
            "du -xh --max-depth=2 {0} | sort -h | tail; lsof +L1 {0}",
            say::quoted(mount)
        )),
        Short::Inodes => Remedy::safe("find the directory with the most files").with_command(format!(
            "du -x --inodes --max-depth=3 {} | sort -n | tail",
            say::quoted(mount)
        )),
    };
    let finding = Finding::without_duration(
        RULE.id.id(),
        severity,
        title,
        Cause::DiskWrite,
        Evidence::new(text, place),
    )
    .about(resource, Asker::default())
    .confidence(Confidence::Proved)
    .remedy(look);
    match short {
        Short::Room => finding.remedy(Remedy::changing(
            "delete or compress unneeded files (old logs, core dumps, package caches), or enlarge the file \
             system",
            "deleted files are lost",
        )),
        Short::Inodes => finding
            .remedy(Remedy::changing(
                "delete unneeded small files (sessions, mail queues, caches)",
                "deleted files are lost",
            ))
            .remedy(Remedy::pointless(
                "deleting large files: their number is what counts",
            )),
    }
}
