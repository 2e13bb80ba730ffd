//! Tasks wait for a disk that could do more: a limit of their cgroup holds them back.

use crate::rules::figures::{Intervals, mean};
use crate::rules::{Extend, Rule, RuleId, Run, awaited_disks, blocked, figures, fires, say, waiters};
use holdup_evidence::facts::IoLimit;
use holdup_evidence::observed::{Metric, SeenThread, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::CgroupLimitsDisk, check)
    .about("a cgroup limit throttles tasks at a disk that could do more")
    .causes(&[Cause::DiskSync, Cause::DiskWrite, Cause::DiskRead])
    .explains(&[RuleId::LoadIsNotCpu]);

/// Percent of the time from which a disk is busy itself, as the rule about that has it.
const MIN_BUSY_PERCENT: f64 = 80.0;

/// Part of what the limit allows from which it is used up: the kernel grants it in slices of a tenth of a second, and what is
/// measured begins and ends within one.
const MIN_USED_SHARE: f64 = 0.7;

/// Part of the lists in which somebody waits there: less is a moment's burst, which the limit is there to smooth.
const MIN_LISTS_SHARE: f64 = 0.5;

/// Tasks that wait under a limit.
struct Held<'a> {
    disk: &'a str,
    limit: &'a IoLimit,
    cause: Cause,
    tasks: Vec<&'a SeenThread>,
    lists: usize,
}

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let kernel = |list: &&Snapshot| list.kind == SnapshotKind::Kernel && list.states;
    let lists: Vec<&Snapshot> = observed.snapshots.iter().filter(kernel).collect();
    let looked_up = |task: &SeenThread| task.file.is_some();
    if !lists.is_empty()
        && lists
            .iter()
            .all(|list| list.threads.iter().all(|one| !waits(one)))
    {
        return Verdict::Clear("0 tasks are blocked in the lists".to_owned());
    }
    if !lists.iter().flat_map(|list| &list.threads).any(looked_up) {
        return Verdict::CannotTell(
            "which files and disks blocked tasks wait for: `holdup host` as root".into(),
        );
    }
    let held = held(observed, &lists);
    let often: Vec<&Held<'_>> = held
        .iter()
        .filter(|held| held.lists as f64 >= MIN_LISTS_SHARE * lists.len() as f64)
        .collect();
    let Some(most) = often.iter().max_by_key(|held| (held.lists, held.tasks.len())) else {
        return Verdict::Clear(format!(
            "in {} of {} a task waits for a disk on which its cgroup has a limit",
            held.iter().map(|held| held.lists).max().unwrap_or(0),
            say::several(lists.len() as u64, "list")
        ));
    };
    let Some(rate) = rate(observed, most) else {
        return Verdict::CannotTell(format!("how much is read from and written to {}", most.disk));
    };
    let done = mean(&rate.values()) * unit(most.limit);
    let allowed = most.limit.value as f64;
    if done < MIN_USED_SHARE * allowed {
        return Verdict::Clear(format!(
            "{} of the {} that the limit of cgroup {} allows are used",
            amount(most.limit, done),
            amount(most.limit, allowed),
            most.limit.cgroup
        ));
    }
    let busy = figures::of(observed, Metric::DiskUtilPercent).find(|disk| disk.of() == most.disk);
    if let Some(busy) = busy.filter(|busy| mean(&busy.values()) >= MIN_BUSY_PERCENT) {
        return Verdict::Clear(format!(
            "{} is {:.0} % busy itself",
            most.disk,
            mean(&busy.values())
        ));
    }
    fires(finding(observed, most, &rate, busy, lists.len()))
}

fn waits(task: &SeenThread) -> bool {
    task.state == State::Uninterruptible
}

/// Whether a limit is on what such a wait is for.
fn is_on(limit: &IoLimit, cause: Cause) -> bool {
    let starts = |letter: char| limit.setting.starts_with(&format!("io.max {letter}"));
    match cause {
        Cause::DiskRead | Cause::MemPagefault => limit.setting.contains("read_") || starts('r'),
        Cause::DiskSync | Cause::DiskWrite | Cause::DiskWriteback | Cause::DiskJournal => {
            limit.setting.contains("write_") || starts('w')
        }
        _ => false,
    }
}

fn held<'a>(observed: &'a Observed, lists: &[&'a Snapshot]) -> Vec<Held<'a>> {
    let mut all: BTreeMap<(&str, &str, &str), Held<'a>> = BTreeMap::new();
    for list in lists {
        let mut here = Vec::new();
        for task in list.threads.iter().filter(|task| waits(task)) {
            let Some(file) = task.file.as_ref().filter(|file| !file.limits.is_empty()) else {
                continue;
            };
            let cause = waiters::cause(observed, task);
            for limit in file.limits.iter().filter(|limit| is_on(limit, cause)) {
                let key = (limit.cgroup.as_str(), file.disk.as_str(), limit.setting.as_str());
                let held = all.entry(key).or_insert_with(|| Held {
                    disk: &file.disk,
                    limit,
                    cause,
                    tasks: Vec::new(),
                    lists: 0,
                });
                held.tasks.push(task);
                if !here.contains(&key) {
                    here.push(key);
                    held.lists += 1;
                }
            }
        }
    }
    all.into_values().collect()
}

fn is_of_requests(limit: &IoLimit) -> bool {
    limit.setting.contains("iops")
}

/// Of the figure, what the limit counts: bytes of KiB.
fn unit(limit: &IoLimit) -> f64 {
    const KIB: f64 = 1024.0;
    if is_of_requests(limit) { 1.0 } else { KIB }
}

fn amount(limit: &IoLimit, value: f64) -> String {
    match is_of_requests(limit) {
        true => format!("{value:.0} requests/s"),
        false => format!("{}/s", say::bytes(value as u64)),
    }
}

/// What is done of that which the limit is on.
fn rate<'a>(observed: &'a Observed, held: &Held<'_>) -> Option<Intervals<'a>> {
    let reads = matches!(held.cause, Cause::DiskRead | Cause::MemPagefault);
    let metric = match (reads, is_of_requests(held.limit)) {
        (true, true) => Metric::DiskReadsPerSecond,
        (true, false) => Metric::DiskReadKibPerSecond,
        (false, true) => Metric::DiskWritesPerSecond,
        (false, false) => Metric::DiskWriteKibPerSecond,
    };
    figures::of(observed, metric).find(|disk| disk.of() == held.disk)
}

fn finding(
    observed: &Observed,
    held: &Held<'_>,
    rate: &Intervals<'_>,
    busy: Option<Intervals<'_>>,
    lists: usize,
) -> Finding {
    let (disk, limit) = (held.disk, held.limit);
    let allowed = amount(limit, limit.value as f64);
    let done = amount(limit, mean(&rate.values()) * unit(limit));
    let itself = busy.as_ref().map_or_else(String::new, |busy| {
        format!(", and {disk} itself is {:.0} % busy", mean(&busy.values()))
    });
    let who = blocked::most_named(&held.tasks);
    let beside = awaited_disks::beside(observed, disk, who);
    let beside = beside.map_or_else(String::new, |beside| format!("; {beside}"));
    let title = format!(
        "{who} is throttled by its cgroup on {disk}: the limit of {allowed} is used up{itself}{beside}"
    );
    let first = Evidence::new(
        format!(
            "cgroup {} may do {allowed} on {disk} ({})",
            limit.cgroup, limit.setting
        ),
        limit.setting.clone(),
    );
    let files: Vec<&str> = held
        .tasks
        .iter()
        .filter_map(|task| task.file.as_ref())
        .map(|file| file.path.as_str())
        .filter(|path| !path.is_empty())
        .collect();
    let at = files
        .first()
        .map(|file| format!(", at {file}"))
        .unwrap_or_default();
    let waits = Evidence::new(
        format!(
            "{who} waits there in {} of {}: {}{at}",
            held.lists,
            say::several(lists as u64, "list"),
            held.cause.phrase()
        ),
        held.tasks
            .first()
            .map_or_else(String::new, |task| blocked::read_at(observed, &task.quote)),
    );
    let mut asker = Asker::default();
    asker.name.process = who.to_owned();
    let resource = Resource::named(ResourceKind::Cgroup, &limit.cgroup).with(|facts| {
        facts.setting = Some(limit.setting.clone());
        facts.device = Some(disk.into());
    });
    Finding::without_duration(RULE.id.id(), Severity::Warning, title, held.cause, first)
        .and(rate.evidence(format!("{done} are done on {disk}")))
        .and_if(busy.map(|busy| {
            busy.evidence(format!(
                "{disk} has a request in flight {} % of the time: throttled requests do not reach it",
                figures::span(&busy.values(), 0)
            ))
        }))
        .and(waits)
        .about(resource, asker)
        .confidence(Confidence::Proved)
        .remedy(Remedy::changing(
            format!("raise the limit of cgroup {} ({})", limit.cgroup, limit.setting),
            "the limit protects other users of the same disk",
        ))
        .remedy(Remedy::safe(
            "use the disk less: fewer syncs, larger requests, fewer workers at a time",
        ))
        .remedy(Remedy::pointless("a faster disk: the limit stays what it is"))
}
