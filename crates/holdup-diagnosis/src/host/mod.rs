//! How a whole machine does: the load average taken apart, each resource with who uses it, facts that wait to hurt.
//!
//! In: what the kernel's files show ([`Observed`], read by the readers of `holdup read`), [`SystemFacts`], and a [`HostSight`]. Out:
//! [`Host`]. Nothing is judged here: what is short is what a rule finds ([`mark_short`]), so that it is said once.

mod load;
mod resources;
#[cfg(test)]
mod tests;

use crate::rules::{RuleId, duration, percent, say};
use holdup_evidence::host::{HostSight, ProcessLimit};
use holdup_evidence::{Observed, SystemFacts};
use holdup_knowledge::file_systems;
use holdup_model::finding::{Finding, Severity};
use holdup_model::report::HostResourceName;
use holdup_model::report::{Host, HostFact};

/// Bytes of a deleted file that is held open from which it is worth a word: less explains no full disk.
const NOTABLE: u64 = 64 << 20;

/// Deleted files, frozen cgroups and mounts that are named; more are counted.
const NAMED: usize = 3;

/// Part of a limit from which it is nearly reached, as the rules about single limits have it.
const NEAR: f64 = 0.8;

/// What a machine shows.
#[must_use]
pub fn of(observed: &Observed, facts: &SystemFacts, sight: &HostSight) -> Host {
    let load = load::of(observed);
    let blocked = load::blocked(observed);
    Host {
        // The sentence says what is short, and rules find that.
        verdict: load::sentence(load.as_ref(), &blocked, facts.cpus),
        release: facts.kernel_release.clone(),
        cpus: facts.cpus,
        threads: sight.threads,
        lists: sight.lists,
        resources: resources::of(observed, facts, sight),
        facts: waiting_to_hurt(observed, facts, sight),
        randomness: Vec::new(),
        load,
        blocked,
    }
}

/// Marks the resources that findings are about, and says in the sentence whether anything is short.
pub fn mark_short(host: &mut Host, findings: &[Finding]) {
    let trouble: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note)
        .collect();
    for resource in &mut host.resources {
        resource.short = trouble.iter().any(|finding| is_about(finding, &resource.name));
    }
    // A note about a resource is no trouble, and not nothing either.
    let names: Vec<&HostResourceName> = host.resources.iter().map(|one| &one.name).collect();
    let noted = findings
        .iter()
        .any(|finding| names.iter().any(|name| is_about(finding, name)));
    // Who waits without a reason that is known may wait for something that is short.
    let waits = findings
        .iter()
        .any(|finding| finding.rule == RuleId::AnswerStillAwaited.id());
    if trouble.is_empty() && !noted && !waits {
        host.verdict.push_str(": nothing is short");
    }
}

/// Whether a finding is about a resource.
fn is_about(finding: &Finding, resource: &HostResourceName) -> bool {
    let rule = |id: RuleId| finding.rule == id.id();
    let any = |ids: &[RuleId]| ids.iter().any(|id| rule(*id));
    match resource {
        HostResourceName::Cpu => any(&[
            RuleId::CpuContended,
            RuleId::CpuLockedUp,
            RuleId::InterruptsTakeTheCpu,
            RuleId::SlowClocksource,
        ]),
        HostResourceName::Memory => any(&[
            RuleId::MemoryShort,
            RuleId::SwapThrash,
            RuleId::TasksStallForMemory,
            RuleId::KilledForMemory,
        ]),
        HostResourceName::Swap => any(&[RuleId::SwapNotSwitchedOn, RuleId::SwapThrash]),
        HostResourceName::FileSystems => any(&[RuleId::FileSystemFull, RuleId::FileSystemFailed]),
        HostResourceName::Tasks => any(&[
            RuleId::ThreadsNearLimit,
            RuleId::TasksPileUp,
            RuleId::LoadIsNotCpu,
        ]),
        HostResourceName::OpenFiles => rule(RuleId::FileTableFull),
        HostResourceName::CgroupLimits => any(&[
            RuleId::CgroupLimitNear,
            RuleId::CgroupLimitsDisk,
            RuleId::CpuQuotaSpent,
        ]),
        HostResourceName::Network => any(&[
            RuleId::SegmentsSentAgain,
            RuleId::AcceptQueueFull,
            RuleId::LinkSaturated,
            RuleId::DeviceQueueFull,
        ]),
        HostResourceName::Connections => any(&[RuleId::ConnectionTableFull, RuleId::LocalPortsUsedUp]),
        HostResourceName::AllDisks | HostResourceName::Other(_) => false,
        HostResourceName::Disk(disk) => {
            any(&[
                RuleId::DiskBusy,
                RuleId::DiskAnswersSlowly,
                RuleId::DeviceFailsRequests,
            ]) && finding.resource.name.trim_start_matches("/dev/") == disk.as_str()
        }
    }
}

fn waiting_to_hurt(observed: &Observed, facts: &SystemFacts, sight: &HostSight) -> Vec<HostFact> {
    let mut all = Vec::new();
    let mut add = |kind: &str, text: String| {
        all.push(HostFact {
            kind: kind.to_owned(),
            text,
        });
    };
    if !sight.frozen.is_empty() {
        let names = named(sight.frozen.iter().map(String::as_str));
        let verb = if sight.frozen.len() == 1 { "is" } else { "are" };
        add(
            "frozen-cgroup",
            format!("{names} {verb} frozen: no task in it runs until it is thawed"),
        );
    }
    for text in deleted(sight) {
        add("deleted-file-open", text);
    }
    for text in disk_order(facts, sight) {
        add("disk-order", text);
    }
    if let Some(text) = read_only(observed, facts) {
        add("read-only", text);
    }
    for (what, used, limit) in resources::limits(observed, facts) {
        if used >= NEAR * limit {
            add(
                "limit-near",
                format!(
                    "{used:.0} {what} of at most {limit:.0}, {}",
                    percent(used / limit)
                ),
            );
        }
    }
    for text in descriptors(sight) {
        add("limit-near", text);
    }
    for older in &sight.older {
        add(
            "kernel-log",
            format!(
                "{} in the kernel's log, the last one {} ago: {}",
                say::several(older.count, &older.what),
                duration(older.ago),
                older.text
            ),
        );
    }
    all
}

/// Large deleted files, and how many there are whose size is not known.
fn deleted(sight: &HostSight) -> Vec<String> {
    let mut large: Vec<_> = sight
        .deleted
        .iter()
        .filter(|file| file.size.is_some_and(|size| size >= NOTABLE))
        .collect();
    large.sort_by_key(|file| std::cmp::Reverse(file.size));
    let mut texts: Vec<String> = large
        .iter()
        .take(NAMED)
        .map(|file| {
            format!(
                "{} is deleted and held open by {} (pid {}): its {} are not free",
                file.path,
                file.process,
                file.pid,
                say::bytes(file.size.unwrap_or(0))
            )
        })
        .collect();
    if let Some(more) = large.len().checked_sub(NAMED).filter(|more| *more > 0) {
        let bytes = large
            .iter()
            .skip(NAMED)
            .filter_map(|file| file.size)
            .fold(0, u64::saturating_add);
        texts.push(format!(
            "{} more of {} together",
            say::several(more as u64, "such file"),
            say::bytes(bytes)
        ));
    }
    texts
}

/// Processes that soon can open no more.
fn descriptors(sight: &HostSight) -> Vec<String> {
    let part = |one: &ProcessLimit| one.used as f64 / one.limit.max(1) as f64;
    let mut near: Vec<&ProcessLimit> = sight.descriptors.iter().filter(|one| part(one) >= NEAR).collect();
    near.sort_by(|a, b| part(b).total_cmp(&part(a)));
    let found = near.iter().take(NAMED).map(|one| {
        format!(
            "{} (pid {}) has {} files open, of at most {}, {}",
            one.process,
            one.pid,
            one.used,
            one.limit,
            percent(part(one))
        )
    });
    let mut texts: Vec<String> = found.collect();
    if let Some(more) = near.len().checked_sub(NAMED).filter(|more| *more > 0) {
        texts.push(format!(
            "{} near it, too",
            say::several(more as u64, "other process")
        ));
    }
    texts
}

/// Disks whose requests are put in order as does not suit them. What a virtual machine's disk says of itself is not what it
/// is, and its requests are put in order below.
fn disk_order(facts: &SystemFacts, sight: &HostSight) -> Vec<String> {
    if facts.random.virtual_machine != Some(false) {
        return Vec::new();
    }
    let unfit = sight.schedulers.iter().filter_map(|disk| {
        let (name, chosen) = (&disk.disk, disk.chosen.as_str());
        let better = |names: &[&str]| {
            let offered = disk.offered.iter().map(String::as_str);
            offered
                .filter(|one| names.contains(one))
                .collect::<Vec<_>>()
                .join(" or ")
        };
        match (disk.rotational?, chosen) {
            (true, "none" | "noop") => {
                let better = better(&["mq-deadline", "bfq", "deadline"]);
                (!better.is_empty()).then(|| {
                    format!(
                        "{name} is a rotating disk, and its requests are not sorted ({chosen}): {better} \
                     would save head movement"
                    )
                })
            }
            (false, "cfq") => Some(format!(
                "{name} is not a rotating disk, but its requests are sorted as for one ({chosen}): use {} \
                 instead",
                better(&["none", "noop", "mq-deadline", "deadline"])
            )),
            (false, "bfq") if name.starts_with("nvme") => Some(format!(
                "{name} handles many requests at once, and {chosen} sorts them first, which costs CPU time \
                 and throughput: use {} instead",
                better(&["none", "mq-deadline"])
            )),
            _ => None,
        }
    });
    unfit.collect()
}

/// Local file systems that are read-only and whose kind is usually written to: after an error the kernel makes them so.
fn read_only(observed: &Observed, facts: &SystemFacts) -> Option<String> {
    let written = |name: &str| file_systems::named(name).is_some_and(|known| known.written);
    let listed = |target: &str| observed.file_systems.iter().any(|one| one.mount == target);
    let mut targets: Vec<&str> = facts
        .mounts
        .iter()
        .filter(|mount| written(&mount.file_system) && listed(&mount.target))
        // The mount may be read-only by choice; the file system itself is behind an error, or was mounted so.
        .filter(|mount| mount.options.split(',').any(|option| option == "ro"))
        .map(|mount| mount.target.as_str())
        .collect();
    targets.dedup();
    let verb = if targets.len() == 1 { "is" } else { "are" };
    (!targets.is_empty()).then(|| {
        format!(
            "{} {verb} mounted read-only, by choice or after an error",
            named(targets.iter().copied())
        )
    })
}

/// Names, the first few of them.
fn named<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let count = names.clone().count();
    let first: Vec<&str> = names.take(NAMED).collect();
    match count.saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {}", first.join(", "), say::several(more as u64, "other")),
    }
}
