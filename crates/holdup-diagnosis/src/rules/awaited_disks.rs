//! Who waits behind one program's reads or writes of a disk: a root of `others-wait-behind` on a look at a machine.
//!
//! In: [`Observed`]. Out: a finding for each disk that is short, if one program moves most of what it moves, and others are blocked on it
//! in lists of tasks. Who only uses a disk keeps nobody waiting.

use super::figures::{self, Intervals, mean, span};
use super::list::disk_busy::is_short;
use super::waiters::{self, Waiters};
use super::{RuleId, say};
use holdup_evidence::observed::{Awaited, Metric, SeenTransfer, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity};

/// Part of what a disk moves from which whoever moves it is the one that keeps it busy.
const MIN_LEADER_SHARE: f64 = 0.4;

/// Tasks of a program that wait at a time, from which that is no chance, and programs that a title names.
const MIN_TASKS_WAITING: f64 = 0.2;
const MAX_NAMES: usize = 3;

/// Part of the lists in which a program is blocked on a disk, from which it is that what its sessions wait for.
const MIN_BLOCKED_SHARE: f64 = 0.3;

/// A disk that moves less is busy with single requests, and whoever has most of these is not known.
const MIN_KIB_PER_SECOND: f64 = 1024.0;

/// Bytes of a KiB.
const BYTES_PER_KIB: f64 = 1024.0;

/// Roots that are disks.
pub(super) fn of(observed: &Observed) -> Vec<Finding> {
    let disks = figures::of(observed, Metric::DiskUtilPercent).filter(is_short);
    disks.filter_map(|disk| root(&disk)).collect()
}

fn root(disk: &Intervals<'_>) -> Option<Finding> {
    let moved = |metric| disk.beside(metric).map_or(0.0, |beside| mean(&beside.values()));
    let (read, written) = (
        moved(Metric::DiskReadKibPerSecond),
        moved(Metric::DiskWriteKibPerSecond),
    );
    let writes = written >= read;
    // Programs are counted over all disks, so that one must be most of this one's.
    let same = disk.observed.transfers.iter().filter(|one| one.writes == writes);
    let leader = same.max_by(|one, other| one.kib_per_second.total_cmp(&other.kib_per_second))?;
    let all = read + written;
    if all < MIN_KIB_PER_SECOND || leader.kib_per_second < all * MIN_LEADER_SHARE {
        return None;
    }
    let waiters = waiters::of(disk.observed, disk.of())?;
    let waits = |(name, tasks): &&(String, f64)| *name != leader.program && *tasks >= MIN_TASKS_WAITING;
    let others: Vec<&(String, f64)> = waiters.programs.iter().filter(waits).collect();
    (!others.is_empty()).then(|| finding(disk, leader, &waiters, &others))
}

/// `postgres, redis-server and 2 other programs`.
fn names<'a>(others: impl Iterator<Item = &'a str>) -> String {
    let others: Vec<&str> = others.collect();
    let mut all: Vec<String> = (others.iter().take(MAX_NAMES))
        .map(|name| say::name_or(name, "a program").to_owned())
        .collect();
    match others.len().saturating_sub(MAX_NAMES) {
        0 => {}
        more => all.push(say::several(more as u64, "other program")),
    }
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Others that wait for a disk beside the one that uses it most, and who waits for an answer of those: `: postgres waits for it, too, and nginx
/// behind it`. Nothing where there are none.
pub(super) fn beside(observed: &Observed, disk: &str, leader: &str) -> Option<String> {
    let waiters = waiters::of(observed, disk)?;
    let waits = |(name, tasks): &&(String, f64)| name != leader && *tasks >= MIN_TASKS_WAITING;
    let others: Vec<&str> = waiters
        .programs
        .iter()
        .filter(waits)
        .map(|one| one.0.as_str())
        .collect();
    let verb = match others.as_slice() {
        [] => return None,
        [_] => "waits",
        _ => "wait",
    };
    Some(format!(
        "{} {verb} for it, too{}",
        names(others.iter().copied()),
        clients(observed, &others)
    ))
}

/// Steps from a client to the program that waits for a disk.
const MAX_STEPS: usize = 4;

/// Who waits for an answer of these programs, or of one who does: `, and gunicorn and nginx behind it`.
fn clients(observed: &Observed, programs: &[&str]) -> String {
    let is = |name: &str, program: &str| {
        let rest = name.strip_prefix(program);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let mut known: Vec<&str> = programs.to_vec();
    let mut found: Vec<&str> = Vec::new();
    for _ in 0..MAX_STEPS {
        let waits = observed
            .waits
            .iter()
            .flatten()
            .filter(|wait| wait.on == Awaited::Answer);
        let behind = waits.filter(|wait| {
            let of = wait.holder.as_ref();
            of.is_some_and(|of| known.iter().any(|program| is(&of.name, program)))
        });
        let mut new: Vec<&str> = behind
            .map(|wait| wait.waiter.name.as_str())
            .filter(|name| !known.iter().any(|program| is(name, program)))
            .collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            break;
        }
        known.extend(&new);
        found.extend(&new);
    }
    match found.is_empty() {
        true => String::new(),
        false => format!(", and {} behind", names(found.into_iter())),
    }
}

/// Whether processes of this name were blocked on a disk in a good part of the lists: then it is the disk that their sessions wait for.
pub(super) fn is_blocked(observed: &Observed, program: &str) -> bool {
    let kernel = |list: &&Snapshot| list.kind == SnapshotKind::Kernel && list.states;
    let lists: Vec<&Snapshot> = observed.snapshots.iter().filter(kernel).collect();
    let blocked = |list: &&&Snapshot| {
        let mut threads = list.threads.iter();
        threads.any(|one| one.name == program && one.state == State::Uninterruptible)
    };
    let count = lists.iter().filter(blocked).count();
    count > 0 && count as f64 >= lists.len() as f64 * MIN_BLOCKED_SHARE
}

fn finding(
    disk: &Intervals<'_>,
    leader: &SeenTransfer,
    waiters: &Waiters,
    others: &[&(String, f64)],
) -> Finding {
    let name = disk.of();
    let (verb, cause) = match leader.writes {
        true => ("writes", Cause::DiskWrite),
        false => ("reads", Cause::DiskRead),
    };
    let rate = say::bytes((leader.kib_per_second * BYTES_PER_KIB) as u64);
    let wait = if others.len() == 1 { "waits" } else { "wait" };
    let programs: Vec<&str> = others.iter().map(|one| one.0.as_str()).collect();
    let title = format!(
        "{} {verb} {rate}/s and keeps {name} {} % busy: {} {wait} for that disk{}",
        leader.who,
        span(&disk.values(), 0),
        names(programs.iter().copied()),
        clients(disk.observed, &programs)
    );
    let tasks: Vec<String> = others
        .iter()
        .take(MAX_NAMES)
        .map(|(name, tasks)| format!("{} ({tasks:.1} tasks at a time)", say::name_or(name, "a program")))
        .collect();
    let first = Evidence::new(
        format!("blocked on {name}, beside it: {}", tasks.join(", ")),
        "the lists of tasks",
    );
    let resource = Resource {
        kind: ResourceKind::Device,
        name: name.to_owned(),
        ..Resource::default()
    };
    let mut asker = Asker::default();
    asker.name.process.clone_from(&leader.program);
    Finding::without_duration(
        RuleId::OthersWaitBehind.id(),
        Severity::Warning,
        title,
        cause,
        first,
    )
    .and(Evidence::new(
        format!("{name} is waited for by {}", waiters.sentence()),
        "the lists of tasks",
    ))
    .about(resource, asker)
    .confidence(Confidence::Strong)
    .remedy(Remedy::safe(format!(
        "let {} {} less at once, or in the idle I/O class (ionice -c 3), or under a limit of its cgroup (io.max)",
        leader.who,
        if leader.writes { "write" } else { "read" }
    )))
    .remedy(Remedy::safe("give the others another disk"))
    .remedy(Remedy::pointless("more CPUs: they wait for the same disk"))
}
