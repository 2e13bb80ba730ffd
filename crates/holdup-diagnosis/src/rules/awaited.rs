//! Who waits behind whom by the kernel's own tables: the verdict of `others-wait-behind` on a look at a machine.
//!
//! In: [`Observed`]. Out: findings, the root first in each title, then who waits behind it. A memory limit that a cgroup runs into again
//! and again is a root, too, if pages that were given back for it are read again.

use super::awaited_said::{cause, client, programs, sentence, title, way, what, who};
use super::awaited_short as short;
use super::list::cpu_quota_spent::{MIN_PERIODS, SPENT};
use super::{
    Extend, RuleId, awaited_disks, awaited_standby as standby, awaited_withheld as withheld, duration,
    fires_all, frozen, percent, quota_users, say,
};
use crate::machine::seen::{self, Behind, Key, Root};
use holdup_evidence::observed::{Awaited, Doing, Limited, SeenCgroup, SeenProcess, SeenWait, Short};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// Roots that are reported.
const MAX_ROOTS: usize = 5;

/// Programs that a list names.
const MAX_LISTED: usize = 5;

/// Pages that a cgroup at its memory limit reads again in a second, from which its processes are slowed: each is a wait for a disk, of a
/// tenth of a millisecond on a fast one.
const MIN_READ_AGAIN_PER_SECOND: f64 = 50.0;

/// From so long on one that waits for another of the same program stands by; before, it may be the next run of a job that hangs.
const MIN_STANDS_BY_NS: Ns = 600_000_000_000;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// The verdict; `None` where nobody looked.
pub(super) fn seen(observed: &Observed) -> Option<Verdict> {
    let mut waits = observed.waits.clone()?;
    waits.extend(short::frozen_waits(observed));
    frozen::without_waiters(&mut waits);
    let waits = waits.as_slice();
    let mut roots = seen::of(waits);
    roots.retain(|root| !waits_for_disk(observed, root));
    // Who takes turns at a lock may mean to: whatever else others wait behind comes first.
    let (queues, roots): (Vec<&Root<'_>>, Vec<&Root<'_>>) =
        (roots.iter().take(MAX_ROOTS)).partition(|root| takes_turns(root) || stands_by(root));
    let mut findings: Vec<Finding> = roots.into_iter().map(finding).collect();
    let limits = observed
        .cgroups
        .iter()
        .filter_map(|one| Some((one, read_again(one)?)));
    findings.extend(
        limits
            .take(MAX_ROOTS)
            .map(|(one, rate)| limit(&observed.place(&one.quote), waits, one, rate)),
    );
    let quotas = observed.cgroups.iter();
    findings.extend(quotas.filter_map(|one| throttled(&observed.place(&one.quote), waits, one)));
    findings.extend(awaited_disks::of(observed));
    findings.extend(withheld::of(waits));
    findings.extend(queues.into_iter().map(finding));
    Some(match findings.is_empty() {
        false => fires_all(findings),
        true => Verdict::Clear(format!(
            "{} for another process, and none behind a lock, a stopped one or a busy one",
            match waits.len() as u64 {
                1 => "1 process waits".to_owned(),
                count => format!("{} wait", say::several(count, "process")),
            }
        )),
    })
}

/// Whether sessions queue for a lock of which nobody knows who has it, while others of their server are blocked on a disk: whoever has it
/// makes that safe there, and the disk is another finding.
fn waits_for_disk(observed: &Observed, root: &Root<'_>) -> bool {
    let sessions = root
        .has
        .filter(|has| has.on == Awaited::SessionLock && has.holder.is_none());
    sessions.is_some_and(|has| awaited_disks::is_blocked(observed, &has.waiter.name))
}

/// Whether a file's lock is all that anybody waits for here, and nobody waits for those.
fn takes_turns(root: &Root<'_>) -> bool {
    let lock = root.has.is_some_and(|has| has.on == Awaited::FileLock);
    lock && matches!(root.key, Key::Has(_)) && root.behind.iter().all(|one| one.directly)
}

/// Whether one other process of the same program is all that waits, for a lock of a database by its session: a second instance that stands by.
fn stands_by(root: &Root<'_>) -> bool {
    let session = root.has.filter(|has| has.on == Awaited::SessionLock);
    let Some(owner) = session.and(root.holder).and_then(|holder| holder.client.as_ref()) else {
        return false;
    };
    let idle = root
        .holder
        .is_some_and(|holder| holder.doing == Doing::IdleInTransaction);
    let (sessions, clients): (Vec<&Behind<'_>>, Vec<&Behind<'_>>) =
        root.behind.iter().partition(|one| one.directly);
    let twin = |one: &&Behind<'_>| one.process.name == owner.name;
    !idle && sessions.len() == 1 && clients.len() == 1 && clients.iter().all(twin)
}

/// Commits that wait for a standby, as a recording has them.
pub(super) fn standbys(waits: &[SeenWait]) -> Vec<(Vec<u32>, Ns, Finding)> {
    let roots = seen::of(waits).into_iter();
    let standby = roots.filter(|root| root.has.is_some_and(|has| has.on == Awaited::Standby));
    let told = standby.take(MAX_ROOTS).map(|root| {
        let behind = root.behind.iter().map(|one| one.process.pid).collect();
        (behind, root.longest(), finding(&root))
    });
    told.collect()
}

/// Those of a recording.
pub(super) fn limits_of(cgroups: &[SeenCgroup]) -> Vec<Finding> {
    let limits = cgroups.iter().filter_map(|one| Some((one, read_again(one)?)));
    limits
        .take(MAX_ROOTS)
        .map(|(one, rate)| limit("", &[], one, rate))
        .collect()
}

/// Pages a second that a cgroup at its memory limit reads again, if that is much.
fn read_again(one: &SeenCgroup) -> Option<f64> {
    let seconds = one.watched.filter(|watched| *watched > 0)? as f64 / SECOND;
    let rate = one.read_again? as f64 / seconds;
    let hit = one.what == Limited::Memory && one.hits? > 0;
    (hit && rate >= MIN_READ_AGAIN_PER_SECOND).then_some(rate)
}

/// How it is known, by what is waited for.
fn source(on: Awaited) -> &'static str {
    match on {
        Awaited::FileLock => "/proc/locks",
        Awaited::TriedLock => "/proc/locks, /proc/PID/fdinfo, /proc/PID/wchan",
        Awaited::Frozen => "lists of tasks",
        Awaited::Files => "/proc/PID/task/TID/wchan",
        Awaited::SessionLock => "titles of the server's processes (/proc/PID/cmdline)",
        Awaited::Answer => "TCP sockets (sock_diag): sent something, and received nothing since",
        Awaited::Peer => "/proc/PID/syscall",
        Awaited::Room => "/proc/PID/wchan, /proc/PID/syscall",
        Awaited::Child => "/proc/PID/task/TID/children",
        Awaited::Names => "UDP sockets (sock_diag): connected to a name server, with nothing received",
        Awaited::Turn => "TCP sockets (sock_diag): sent something that the other end has not read",
        Awaited::Cpu => "lists of tasks, /proc/PID/task/TID/schedstat",
        Awaited::Memory => "memory.oom_control, cgroup.procs, /proc/PID/statm",
        Awaited::OwnPool => "queues of listeners and connections (sock_diag), /proc/PID/fd, /proc/PID/wchan",
        Awaited::Standby => "titles of the servers' processes (/proc/PID/cmdline), TCP sockets (sock_diag)",
        Awaited::Device => "queues of network devices (rtnetlink), sockets (sock_diag)",
    }
}

fn finding(root: &Root<'_>) -> Finding {
    let list: Vec<String> = programs(&root.behind)
        .into_iter()
        .take(MAX_LISTED)
        .map(|(name, count, ns)| {
            let count = say::several(count, "process");
            format!("{} ({count}, {})", say::name_or(name, "a program"), duration(ns))
        })
        .collect();
    let count = say::several(root.behind.len() as u64, "process");
    let verb = if root.behind.len() == 1 { "waits" } else { "wait" };
    let on = match root.key {
        Key::Busy(_) => Awaited::Turn,
        _ => root.has.map_or(Awaited::Answer, |has| has.on),
    };
    let first = Evidence::new(
        format!("{count} {verb} behind it: {}", list.join(", ")),
        source(on),
    );
    // Nobody gets past a full disk.
    let full = root.holder.is_some_and(|holder| holder.full.is_some());
    let mut finding = Finding::without_duration(
        RuleId::OthersWaitBehind.id(),
        match full {
            true => Severity::Critical,
            false if stands_by(root) && root.longest() >= MIN_STANDS_BY_NS => Severity::Note,
            false => Severity::Warning,
        },
        title(root),
        cause(root),
        first,
    );
    if let Some(beyond) = root.beyond {
        let of = beyond
            .holder
            .as_ref()
            .map_or_else(String::new, |holder| format!(" of {}", who(holder)));
        let holder = root.holder.map_or_else(String::new, who);
        let text = format!(
            "{holder} itself waits for {}{of}, for {}",
            what(beyond),
            duration(beyond.ns)
        );
        finding = finding.and(Evidence::new(text, source(beyond.on)));
    }
    if let Some((text, source)) = root
        .has
        .and_then(|has| Some((short::evidence(has)?, source(has.on))))
    {
        finding = finding.and(Evidence::new(text, source));
    }
    if let Some(Short::Standby(one)) = root.has.map(|has| &has.short)
        && one.replay.pid != 0
    {
        finding = finding.and(Evidence::new(standby::NOT_MEASURED, source(Awaited::Standby)));
    }
    if let Some(text) = way(root) {
        finding = finding.and(Evidence::new(text, source(on)));
    }
    if let Some(evidence) = root.has.and_then(|has| frozen::evidence(&has.users)) {
        finding = finding.and(evidence);
    }
    if let Some(evidence) = root.holder.and_then(stands_still) {
        finding = finding.and(evidence);
    }
    if let (Key::Busy(_), Some(load)) = (&root.key, root.holder.and_then(|holder| holder.load)) {
        let text = format!(
            "it ran or was runnable in {} of {} lists of tasks, and had unread requests in {} of them, on {} at most",
            load.ran,
            load.lists,
            load.queued,
            say::several(u64::from(load.most), "connection")
        );
        finding = finding.and(Evidence::new(text, "/proc/PID/stat, TCP sockets (sock_diag)"));
    }
    let known = match (&root.key, on) {
        // One look does not tell whether somebody is answered a moment later.
        (_, Awaited::OwnPool) => Confidence::Suspect,
        // Nor a title which standby has to confirm what.
        (_, Awaited::Standby) => Confidence::Suspect,
        (Key::Busy(_), _)
        | (_, Awaited::SessionLock | Awaited::Names | Awaited::TriedLock)
        | (Key::Nobodys(_), _) => Confidence::Strong,
        _ => Confidence::Proved,
    };
    let name = root.holder.map_or("", |holder| holder.name.as_str());
    let resource = match root.has.filter(|has| !has.name.is_empty()) {
        Some(has) => short::resource(has).unwrap_or_else(|| Resource::named(ResourceKind::File, &has.name)),
        None => Resource::named(ResourceKind::Process, name),
    };
    let asker = Asker {
        name: ThreadName {
            pid: root.holder.map_or(0, |holder| holder.pid),
            tid: root.holder.map_or(0, |holder| holder.pid),
            process: name.to_owned(),
            ..ThreadName::default()
        },
        ..Asker::default()
    };
    let finding = finding.about(resource, asker).confidence(known);
    if let (Key::Busy(_), Some(holder)) = (&root.key, root.holder) {
        return busy_remedies(finding, holder);
    }
    if let Some(remedies) = root
        .has
        .zip(root.holder)
        .and_then(|(has, holder)| short::remedies(has, holder))
        && !matches!(root.key, Key::Halted(_))
    {
        return remedies.into_iter().fold(finding, Finding::remedy);
    }
    if on == Awaited::Frozen {
        // Without users it may be a file that is named.
        let (mount, users) = match root.has {
            Some(has) if !has.users.is_empty() => (has.name.as_str(), has.users.as_slice()),
            _ => ("", [].as_slice()),
        };
        return finding.remedy(frozen::remedy(mount, users));
    }
    match root.holder {
        Some(holder) => finding.remedy(remedy(root, holder)),
        None => finding.remedy(
            Remedy::safe(match on {
                Awaited::Names => "ask that name server, and see whether it can be reached",
                Awaited::Room => "find out why the other end does not read",
                _ => "find out who has it",
            })
            .with_command(match on {
                Awaited::FileLock => "lslocks",
                Awaited::Room => "ss -tnp",
                Awaited::SessionLock => {
                    "psql -c \"select pid, pg_blocking_pids(pid), query from pg_stat_activity where wait_event_type = 'Lock'\""
                }
                Awaited::Names => "resolvectl query example.com || dig +tries=1 example.com",
                _ => "findmnt -t fuse",
            }),
        ),
    }
}

fn busy_remedies(finding: Finding, holder: &SeenProcess) -> Finding {
    let finding = finding.remedy(
        Remedy::safe(format!("find out what {} runs", who(holder)))
            .with_command(format!("holdup attach -p {}", holder.pid)),
    );
    let one = holder.load.is_none_or(|load| load.threads <= 1);
    let finding = match &holder.client {
        Some(one) => finding.remedy(Remedy::safe(format!(
            "make the requests of {} smaller or rarer, or send them to another server",
            client(one)
        ))),
        None => finding,
    };
    match one {
        true => finding.remedy(Remedy::pointless("more CPUs: one thread runs on one CPU")),
        false => finding,
    }
}

/// How it is known that a process does nothing until it is let go on.
fn stands_still(holder: &SeenProcess) -> Option<Evidence> {
    let (how, source) = match holder.doing {
        Doing::Stopped => ("state T in all lists of tasks", "/proc/PID/stat"),
        Doing::Traced => (
            "state t in all lists of tasks, and it did not run between them",
            "/proc/PID/stat, /proc/PID/status",
        ),
        Doing::Frozen => (
            "in a frozen cgroup from the beginning of the look to its end",
            "cgroup.freeze, freezer.state",
        ),
        Doing::Unknown | Doing::IdleInTransaction | Doing::Running => return None,
    };
    Some(Evidence::new(format!("{how}: {}", who(holder)), source))
}

fn remedy(root: &Root<'_>, holder: &SeenProcess) -> Remedy {
    let (pid, name) = (holder.pid, who(holder));
    match holder.doing {
        Doing::Stopped => Remedy::changing(
            format!("find out why {name} is stopped, and continue it"),
            "it may have been stopped for a reason",
        )
        .with_command(format!("kill -CONT {pid}")),
        Doing::Traced => {
            let by = holder.tracer.as_ref();
            let remedy = Remedy::changing(
                match by {
                    Some(one) => format!("detach the debugger or tracer {}", client(one)),
                    None => "detach the debugger or tracer".to_owned(),
                },
                "it may be in use",
            );
            remedy.with_command(match by {
                Some(one) => format!("ps -o pid,ppid,user,lstart,args -p {}", one.pid),
                None => format!("grep TracerPid /proc/{pid}/status"),
            })
        }
        Doing::Frozen => Remedy::changing(
            match &holder.cgroup {
                Some(cgroup) => format!(
                    "find out who froze the cgroup {cgroup} (a paused container, a snapshot?), and thaw it"
                ),
                None => {
                    "find out who froze its cgroup (a paused container, a snapshot?), and thaw it".to_owned()
                }
            },
            "it may have been frozen for a reason",
        )
        .with_command(format!("cat /proc/{pid}/cgroup")),
        Doing::IdleInTransaction => {
            let whose = holder
                .client
                .as_ref()
                .map_or_else(|| "its client".to_owned(), client);
            Remedy::changing(
                format!("have {whose} commit or roll back, or end that session"),
                "the transaction that is ended is rolled back",
            )
            .with_command(format!("psql -c \"select pg_terminate_backend({pid})\""))
        }
        Doing::Unknown | Doing::Running if holder.full.is_some() => {
            let mount = holder.full.as_deref().unwrap_or_default();
            Remedy::changing(
                format!("free space on {mount}: delete or move what fills it, or enlarge it"),
                "deleted files are lost",
            )
            .with_command(format!("du -xah {} | sort -h | tail", say::quoted(mount)))
        }
        Doing::Unknown | Doing::Running => {
            let does = if root
                .has
                .is_some_and(|has| matches!(has.on, Awaited::Files | Awaited::Names))
            {
                "does not answer"
            } else if root.has.is_some_and(|has| has.on == Awaited::Room) {
                "does not read"
            } else {
                "keeps it for so long"
            };
            Remedy::safe(format!("find out why {name} {does}"))
                .with_command(format!("holdup attach -p {pid}"))
        }
    }
}

/// Who waits for answers of a cgroup's processes.
fn clients_of<'a>(waits: &'a [SeenWait], one: &SeenCgroup) -> Vec<Behind<'a>> {
    let is_in = |pid: u32| one.processes.iter().any(|process| process.pid == pid);
    let mut behind: Vec<Behind<'a>> = Vec::new();
    for wait in waits.iter().filter(|wait| wait.on == Awaited::Answer) {
        let of = wait.holder.as_ref().is_some_and(|holder| is_in(holder.pid));
        if of && !is_in(wait.waiter.pid) && !behind.iter().any(|one| one.process.pid == wait.waiter.pid) {
            behind.push(Behind {
                process: &wait.waiter,
                ns: wait.ns,
                directly: true,
                steps: 0,
            });
        }
    }
    behind
}

fn answers_of(behind: &[Behind<'_>]) -> Option<Evidence> {
    let longest = behind.iter().map(|one| one.ns).max()?;
    let text = format!(
        "{} for answers of it, when the look ended for up to {}",
        sentence(behind),
        duration(longest)
    );
    Some(Evidence::new(text, source(Awaited::Answer)))
}

/// A cgroup whose CPU time is used up in many of its periods, while others wait for its answers; without these it is its own affair, and
/// another rule's.
fn throttled(place: &str, waits: &[SeenWait], one: &SeenCgroup) -> Option<Finding> {
    let part = one.used / one.limit;
    if one.what != Limited::CpuTime || one.limit < MIN_PERIODS || part < SPENT {
        return None;
    }
    let behind = clients_of(waits, one);
    let longest = answers_of(&behind)?;
    let cpus = one
        .cpus
        .map_or_else(String::new, |cpus| format!(" of {cpus:.2} CPUs"));
    let who: Vec<String> = one.processes.iter().take(MAX_LISTED).map(who).collect();
    let verb = if who.len() == 1 { "is" } else { "are" };
    let title = Title::from(format!(
        "cgroup {} uses up its CPU limit{cpus} in {} of its periods",
        one.cgroup,
        percent(part)
    ))
    .with(quota_users::clause(one))
    .with(format!(
        ": {} {verb} throttled, and {} for answers",
        who.join(", "),
        sentence(&behind)
    ));
    let text = format!(
        "{:.0} of {:.0} observed periods ended with its tasks throttled",
        one.used, one.limit
    );
    let place = say::name_or(place, "cpu.stat");
    let finding = Finding::without_duration(
        RuleId::OthersWaitBehind.id(),
        Severity::Warning,
        title,
        Cause::SchedThrottled,
        Evidence::new(text, place),
    );
    Some(
        quota_users::told(finding.and(longest), one)
            .about(
                Resource::named(ResourceKind::Cgroup, &one.cgroup),
                Asker::default(),
            )
            .confidence(Confidence::Strong)
            .remedy(Remedy::changing(
                "raise the quota or take it away",
                "other programs on this machine get less CPU",
            ))
            .remedy(Remedy::pointless(
                "a faster machine or more CPUs: the quota is the limit",
            )),
    )
}

/// A cgroup that reads again and again what it had to give back.
fn limit(place: &str, waits: &[SeenWait], one: &SeenCgroup, rate: f64) -> Finding {
    let limit = say::bytes(one.limit as u64);
    let who: Vec<String> = one.processes.iter().map(who).collect();
    let slowed = match who.as_slice() {
        [] => "its processes read".to_owned(),
        [one] => format!("{one} reads"),
        several => format!("{} read", several.join(", ")),
    };
    let behind = clients_of(waits, one);
    let and = match behind.is_empty() {
        true => String::new(),
        false => format!(", and {} for answers", sentence(&behind)),
    };
    let title = format!(
        "cgroup {} is at its memory limit of {limit}: {slowed} {rate:.0} pages a second again from the disk{and}",
        one.cgroup
    );
    let place = say::name_or(place, "memory.stat");
    let hits = one.hits.unwrap_or(0);
    let mut text = format!(
        "the limit was reached {}",
        if hits == 1 {
            "once".to_owned()
        } else {
            format!("{hits} times")
        }
    );
    if let Some(watched) = one.watched {
        text.push_str(&format!(" in {}", duration(watched)));
    }
    if let Some(whole) = one.whole {
        text.push_str(&format!(
            "; {} in use, of it {} of cached files",
            say::bytes(whole as u64),
            say::bytes((whole - one.used).max(0.0) as u64)
        ));
    }
    let finding = Finding::without_duration(
        RuleId::OthersWaitBehind.id(),
        Severity::Warning,
        title,
        Cause::MemReclaim,
        Evidence::new(text, place),
    );
    let finding = finding.and_if(answers_of(&behind));
    let resource = Resource::named(ResourceKind::Cgroup, &one.cgroup)
        .with(|facts| facts.setting = Some("memory.max, or memory.limit_in_bytes".to_owned()));
    finding
        .about(resource, Asker::default())
        .confidence(Confidence::Strong)
        .remedy(Remedy::changing(
            "raise its limit to what it works on (memory.max, or memory.limit_in_bytes)",
            "its neighbours have less memory for cached files",
        ))
        .remedy(Remedy::pointless(
            "a faster disk: the limit would slow it just the same",
        ))
}

#[cfg(test)]
mod tests {
    use super::{finding, seen};
    use holdup_evidence::observed::{Awaited, SeenClient, SeenProcess, SeenWait};
    use holdup_model::finding::Severity;

    /// How grave it is that a job of this name has waited for so many seconds behind the session of the job nightly.
    fn severity(waiter: &str, seconds: u64) -> Severity {
        let process = |pid: u32, name: &str, client: u32| SeenProcess {
            pid,
            name: name.to_owned(),
            client: (client > 0).then(|| SeenClient {
                pid: client,
                name: "nightly".to_owned(),
            }),
            ..SeenProcess::default()
        };
        let wait = |waiter: SeenProcess, on: Awaited, holder: SeenProcess| SeenWait {
            waiter,
            on,
            holder: Some(holder),
            ns: seconds * 1_000_000_000,
            ..SeenWait::default()
        };
        let (session, owner) = (process(30, "postgres", 0), process(31, "postgres", 20));
        let waits = [
            wait(session.clone(), Awaited::SessionLock, owner),
            wait(process(21, waiter, 0), Awaited::Answer, session),
        ];
        let roots = seen::of(&waits);
        finding(&roots[0]).severity
    }

    #[test]
    fn one_that_stands_by_does_so_for_long() {
        assert_eq!(severity("nightly", 700), Severity::Note);
        assert_eq!(
            severity("nightly", 30),
            Severity::Warning,
            "the next run of one that hangs"
        );
        assert_eq!(severity("shop", 700), Severity::Warning);
    }
}
