//! On a machine, others wait behind one process, lock, disk or limit: the root, who is behind it, and for how long.

use crate::machine::ends::Key;
use crate::machine::roots::{self, Root, Waiter};
use crate::rules::{Check, Generality, Need, Place, Rule, RuleId, Run, duration, fires_all, percent, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// Roots that are told.
const MAX_ROOTS: usize = 5;

/// Share of all threads' time with an unknown cause, above which a fault of a few threads may be in it.
const MAX_UNKNOWN_SHARE: f64 = 0.05;

/// Programs that a sentence names.
const MAX_NAMES: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::OthersWaitBehind,
    about: "threads of a machine wait behind one process, lock, disk or limit",
    needs: &[Need::SchedulerEvents],
    causes: &[
        Cause::SchedRunqueue,
        Cause::SchedThrottled,
        Cause::DiskSync,
        Cause::FsFuse,
        Cause::MemReclaim,
        Cause::LockFutex,
        Cause::LockFile,
        Cause::NetReceive,
        Cause::NetDns,
        Cause::ProcessStopped,
        Cause::ProcessFrozen,
    ],
    from: 0.0,
    generality: Generality::Consequence,
    explains: &[],
    place: Place::End,
    check: Check::Machine(check),
};

fn check(run: &Run<'_>) -> Verdict {
    let roots = roots::of(run.attributed);
    let path = &run.attributed.path;
    let unknown = path.get(&Cause::Unknown).map_or(0, |tally| tally.ns);
    let whole = path.values().map(|tally| tally.ns).fold(0, Ns::saturating_add);
    if roots.is_empty() && unknown as f64 > whole as f64 * MAX_UNKNOWN_SHARE {
        return Verdict::CannotTell(format!(
            "what {} of the threads' time was: the cause is unknown",
            percent(unknown as f64 / whole as f64)
        ));
    }
    if roots.is_empty() {
        return Verdict::Clear(format!(
            "0 of {} waited behind another one for a second",
            say::several(threads(run), "thread")
        ));
    }
    fires_all(roots.iter().take(MAX_ROOTS).map(finding).collect())
}

fn threads(run: &Run<'_>) -> u64 {
    let threads = run.attributed.threads.iter();
    threads.map(|thread| u64::from(thread.threads)).sum()
}

/// Programs by name, each with its number of threads, the one that waited longest first.
fn programs<'a>(waiters: impl Iterator<Item = &'a Waiter<'a>>) -> Vec<(&'a str, u64, Ns)> {
    let mut programs: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
    for waiter in waiters {
        let of = programs.entry(waiter.name.process.as_str()).or_default();
        *of = (of.0 + 1, of.1.saturating_add(waiter.ns));
    }
    let mut programs: Vec<(&str, u64, Ns)> = programs
        .into_iter()
        .map(|(name, (count, ns))| (name, count, ns))
        .collect();
    programs.sort_by_key(|(name, _, ns)| (std::cmp::Reverse(*ns), *name));
    programs
}

/// `nginx, 4 threads of python3 and 2 other programs`.
fn told<'a>(waiters: impl Iterator<Item = &'a Waiter<'a>>) -> String {
    let programs = programs(waiters);
    let mut names: Vec<String> = programs
        .iter()
        .take(MAX_NAMES)
        .map(|(name, count, _)| match count {
            1 => say::name_or(name, "a process").to_owned(),
            count => format!("{count} threads of {}", say::name_or(name, "a process")),
        })
        .collect();
    match programs.len().saturating_sub(MAX_NAMES) {
        0 => {}
        1 => names.push("1 other program".to_owned()),
        more => names.push(format!("{more} other programs")),
    }
    listed(&names)
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What the lock is that is waited for.
fn lock(root: &Root<'_>) -> String {
    let Some(lock) = &root.lock else {
        return "a lock".to_owned();
    };
    let name = lock.resource.map(|resource| resource.name.as_str());
    let name = name.filter(|name| !name.is_empty());
    match (lock.cause, name) {
        (Cause::LockFile, Some(name)) => format!("the lock on {name}"),
        (Cause::LockFile, None) => "a file lock".to_owned(),
        _ if lock.session => {
            let known = lock
                .resource
                .filter(|resource| resource.detail.database_lock.is_some());
            match known.and(name) {
                Some(name) => format!("the lock on {name}"),
                None => "a lock of the database".to_owned(),
            }
        }
        (Cause::LockKernel, Some(name)) => format!("the kernel's lock {name}"),
        (Cause::MemMmaplock, _) => "the lock of an address space".to_owned(),
        (_, Some(name)) => format!("the lock {name}"),
        (_, None) => "a lock".to_owned(),
    }
}

/// Who is the root, what it has or is, as the begin of a title; then who waits.
fn title(root: &Root<'_>) -> String {
    let who = say::who_with_pid(root.name);
    let up_to = duration(root.longest());
    let behind = told(root.behind.iter());
    let own = told(root.own.iter());
    let all = told(root.own.iter().chain(&root.behind));
    let has = match root.lock {
        Some(_) => format!(" and has {}", lock(root)),
        None => String::new(),
    };
    let what = |name: &str, of: &str| match name {
        "" => of.to_owned(),
        name => format!("{of} {name}"),
    };
    match &root.key {
        Key::Lock(_) => format!(
            "{who} has {}: {behind} waited behind it, up to {up_to}",
            lock(root)
        ),
        Key::Halted(_) => {
            let state = match root.cause {
                Some(Cause::ProcessFrozen) => "frozen",
                _ => "stopped",
            };
            format!("{who} was {state}{has}: {behind} waited behind it, up to {up_to}")
        }
        Key::Busy(_) => {
            let ran = root
                .function
                .map_or_else(String::new, |function| format!(" {function}"));
            format!("{who} ran{ran}: {behind} waited for its answer, up to {up_to}")
        }
        Key::Disk(disk) => format!(
            "{} held up {all}: up to {up_to} for one wait, mostly by {}",
            what(disk, "disk"),
            most_of(root)
        ),
        Key::Files(files) => format!(
            "{}: {all} waited for files on it, up to {up_to}",
            what(files, "the file system")
        ),
        Key::Memory(of) => format!(
            "{}: {all} waited for memory, {} in all",
            what(of, "memory was short"),
            duration(root.held())
        ),
        Key::Cpus => {
            let ran: Vec<String> = roots::named_of(&root.ran)
                .into_iter()
                .take(MAX_NAMES)
                .map(|(name, _)| name.clone())
                .collect();
            let ran = match ran.is_empty() {
                true => "many programs".to_owned(),
                false => listed(&ran),
            };
            format!("{ran} had the CPUs: {all} were runnable and waited for one")
        }
        Key::Quota(cgroup) => {
            let waited = match behind.is_empty() {
                true => String::new(),
                false => format!(", and {behind} waited behind"),
            };
            format!(
                "{} has no CPU time left: {own} was throttled for {}{waited}",
                what(cgroup, "cgroup"),
                duration(root.held())
            )
        }
        Key::Silent(peer) => format!(
            "{} does not answer: {all} waited, up to {up_to}",
            say::name_or(peer, "a peer")
        ),
        Key::Kernel(cause) => format!("{all} waited, up to {up_to}: {}", cause.phrase()),
    }
}

/// The program that most of the time in a resource is of.
fn most_of(root: &Root<'_>) -> String {
    let programs = programs(root.own.iter());
    programs
        .first()
        .map_or_else(String::new, |(name, _, _)| (*name).to_owned())
}

/// What the root did while others waited.
fn meanwhile(root: &Root<'_>) -> Option<Evidence> {
    let who = say::who_with_pid(root.name);
    let beyond = root.beyond.map_or_else(String::new, |step| {
        let doing = step
            .cause
            .map_or_else(String::new, |cause| format!(", which was {}", cause.phrase()));
        format!(", for {}{doing}", say::who_with_pid(step.name))
    });
    let cause = root.cause?;
    let ran = root
        .function
        .filter(|_| cause.on_cpu())
        .map_or_else(String::new, |function| format!(", mostly in {function}"));
    Some(Evidence::new(
        format!("{who} was mostly {} ({cause}){ran}{beyond}", cause.phrase()),
        say::SCHEDULER,
    ))
}

fn waited<'a>(waiters: &'a [Waiter<'a>], verb: &str) -> Option<Evidence> {
    if waiters.is_empty() {
        return None;
    }
    let directly = waiters.iter().filter(|one| one.directly).count();
    let all: Ns = waiters.iter().map(|one| one.ns).fold(0, Ns::saturating_add);
    let names: Vec<String> = programs(waiters.iter())
        .into_iter()
        .take(MAX_NAMES + 2)
        .map(|(name, count, ns)| {
            let count = say::several(count, "thread");
            format!("{} ({count}, {})", say::name_or(name, "a process"), duration(ns))
        })
        .collect();
    let through = match waiters.len() - directly {
        0 => String::new(),
        others => format!(", {others} of them through others"),
    };
    Some(Evidence::new(
        format!(
            "{} {verb}, {} in all{through}: {}",
            say::several(waiters.len() as u64, "thread"),
            duration(all),
            names.join(", ")
        ),
        say::SCHEDULER,
    ))
}

fn finding(root: &Root<'_>) -> Finding {
    let cause = root.lock.map(|lock| lock.cause).or(root.cause);
    let cause = cause.unwrap_or(Cause::Unknown);
    let in_it = match root.key {
        Key::Halted(_) | Key::Lock(_) | Key::Busy(_) => None,
        _ => waited(&root.own, "waited for it"),
    };
    let mut evidence: Vec<Evidence> = waited(&root.behind, "waited behind it")
        .into_iter()
        .chain(in_it)
        .collect();
    if !root.ran.is_empty() && root.key == Key::Cpus {
        let ran: Vec<String> = root
            .ran
            .iter()
            .take(MAX_NAMES + 2)
            .map(|(name, ns)| format!("{name} {}", duration(*ns)))
            .collect();
        evidence.push(Evidence::new(
            format!("meanwhile these ran: {}", ran.join(", ")),
            say::SCHEDULER,
        ));
    }
    if matches!(root.key, Key::Lock(_) | Key::Halted(_) | Key::Busy(_)) {
        evidence.extend(meanwhile(root));
    }
    let mut evidence = evidence.into_iter();
    let first = evidence
        .next()
        .unwrap_or_else(|| Evidence::new(duration(root.held()), say::SCHEDULER));
    let mut finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title(root),
        cause,
        root.held(),
        first,
    );
    for more in evidence {
        finding = finding.and(more);
    }
    let known = matches!(root.key, Key::Lock(_) | Key::Halted(_));
    let resource = match root.lock.and_then(|lock| lock.resource).or(root.resource) {
        Some(resource) => resource.clone(),
        None => Resource::named(ResourceKind::Process, root.name.process.clone()),
    };
    let asker = Asker {
        name: root.name.clone(),
        frame: root.function.map(str::to_owned),
        ..Asker::default()
    };
    finding
        .about(resource, asker)
        .confidence(match known {
            true => Confidence::Proved,
            false => Confidence::Strong,
        })
        .remedy(remedy(root))
}

fn remedy(root: &Root<'_>) -> Remedy {
    let pid = root.name.pid;
    let who = say::who_with_pid(root.name);
    match &root.key {
        Key::Halted(_) if root.cause == Some(Cause::ProcessFrozen) => Remedy::changing(
            format!("find out what froze the cgroup of {who} (a paused container?), and thaw it"),
            "it may have been frozen for a reason",
        )
        .with_command(format!("cat /proc/{pid}/cgroup")),
        Key::Halted(_) => Remedy::changing(
            format!("find out why {who} is stopped, and continue it"),
            "it may have been stopped for a reason",
        )
        .with_command(format!("kill -CONT {pid}")),
        Key::Quota(_) => Remedy::changing(
            "raise the CPU quota of that cgroup, or let it do less",
            "its neighbours get less CPU time",
        )
        .with_command(format!("cat /proc/{pid}/cgroup")),
        Key::Lock(_) => Remedy::safe(format!("find out why {who} keeps the lock for so long"))
            .with_command(format!("holdup attach -p {pid}")),
        Key::Cpus => Remedy::safe("run what can wait at a lower priority, or on another machine"),
        Key::Disk(_) => Remedy::safe("limit who uses the disk most, or give the others another disk")
            .with_command("holdup host"),
        _ => Remedy::safe(format!("look at {who}")).with_command(format!("holdup attach -p {pid}")),
    }
}
