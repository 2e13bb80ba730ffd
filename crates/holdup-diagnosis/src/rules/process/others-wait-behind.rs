//! On a machine, others wait behind one process, lock, disk or limit: the root, who is behind it, and for how long.

use crate::machine::ends::Key;
use crate::machine::roots::{self, Root, Titled, Waiter};
use crate::rules::{
    Generality, Rule, RuleId, Run, awaited, duration, fires_all, live_sessions, percent, say,
};
use holdup_evidence::units::bytes as size;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, HashMap};

/// Roots that are told.
const MAX_ROOTS: usize = 5;

/// Share of all threads' time with an unknown cause, above which a fault of a few threads may be in it.
const MAX_UNKNOWN_SHARE: f64 = 0.05;

/// Programs that a sentence names.
const MAX_NAMES: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_machine(RuleId::OthersWaitBehind, check, awaited::seen)
    .about("threads of a machine wait behind one process, lock, disk or limit")
    .causes(&[
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
    ])
    .from(0.0)
    .generality(Generality::Consequence);

fn check(run: &Run<'_>) -> Verdict {
    let titled = titled(run);
    let roots = roots::of(run.attributed, &titled, &run.facts.stopped_children);
    let names = Names::of(run);
    let limits = awaited::limits_of(&run.facts.cgroups_at_limit);
    let path = &run.attributed.path;
    let unknown = path.get(&Cause::Unknown).map_or(0, |tally| tally.ns);
    let whole = path.values().map(|tally| tally.ns).fold(0, Ns::saturating_add);
    if roots.is_empty() && limits.is_empty() && unknown as f64 > whole as f64 * MAX_UNKNOWN_SHARE {
        return Verdict::CannotTell(format!(
            "what {} of the threads' time was: the cause is unknown",
            percent(unknown as f64 / whole as f64)
        ));
    }
    if roots.is_empty() && limits.is_empty() {
        return Verdict::Clear(format!(
            "0 of {} waited behind another one for a second",
            say::several(threads(run), "thread")
        ));
    }
    let found = roots.iter().take(MAX_ROOTS).map(|root| finding(root, &names));
    fires_all(found.chain(limits).collect())
}

/// What a person calls processes: interpreters with what they interpret.
#[derive(Debug)]
struct Names<'a>(HashMap<u32, &'a str>);

impl<'a> Names<'a> {
    fn of(run: &Run<'a>) -> Names<'a> {
        let programs = run.facts.programs.iter();
        Names(programs.map(|one| (one.pid, one.name.as_str())).collect())
    }

    /// The program of a thread. An id may have been another process's before.
    fn program(&self, name: &'a ThreadName) -> &'a str {
        let known = self.0.get(&name.pid).copied();
        known
            .filter(|known| known.starts_with(name.process.as_str()))
            .unwrap_or(&name.process)
    }

    /// The same with its id.
    fn who(&self, name: &'a ThreadName) -> String {
        match self.program(name) {
            program if program == name.process => say::who_with_pid(name),
            program => format!("{program} (pid {})", name.pid),
        }
    }
}

/// Sessions of databases, as roots need them.
fn titled(run: &Run<'_>) -> Vec<Titled> {
    let sessions = run.facts.database_sessions.iter();
    let titled = sessions.map(|one| Titled {
        name: ThreadName {
            pid: one.pid,
            tid: one.pid,
            process: one.process.clone(),
            thread: one.process.clone(),
        },
        server: one.server,
        state: one.state,
        client: one
            .client
            .as_ref()
            .and_then(live_sessions::client)
            .unwrap_or_default(),
    });
    titled.collect()
}

fn threads(run: &Run<'_>) -> u64 {
    let threads = run.attributed.threads.iter();
    threads.map(|thread| u64::from(thread.threads)).sum()
}

/// Programs by name, each with its number of threads, the one that waited longest first.
fn programs<'a>(names: &Names<'a>, waiters: impl Iterator<Item = &'a Waiter<'a>>) -> Vec<(&'a str, u64, Ns)> {
    let mut programs: BTreeMap<&str, (u64, Ns)> = BTreeMap::new();
    for waiter in waiters {
        let of = programs.entry(names.program(waiter.name)).or_default();
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
fn name_list<'a>(known: &Names<'a>, waiters: impl Iterator<Item = &'a Waiter<'a>>) -> String {
    let programs = programs(known, waiters);
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
fn title<'a>(root: &'a Root<'a>, names: &Names<'a>) -> String {
    let who = names.who(root.name);
    let up_to = duration(root.longest());
    let behind = name_list(names, root.behind.iter());
    let own = name_list(names, root.own.iter());
    let all = name_list(names, root.own.iter().chain(&root.behind));
    let has = match root.lock {
        Some(_) => format!(" and has {}", lock(root)),
        None => String::new(),
    };
    let what = |name: &str, of: &str| match name {
        "" => of.to_owned(),
        name => format!("{of} {name}"),
    };
    match &root.key {
        Key::Lock(_) if root.idle_of.is_some() => {
            let client = root.idle_of.filter(|client| !client.is_empty());
            let of = client.map_or_else(String::new, |client| format!(" of {client}"));
            format!(
                "{who} is idle in a transaction{of}, and has {}: {behind} waited behind it, up to {up_to}",
                lock(root)
            )
        }
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
        Key::Disk(disk) if root.crowd.is_some() => {
            let Some(crowd) = &root.crowd else { return who };
            let user = crowd.process.map_or_else(
                || say::name_or(crowd.user, "a process").to_owned(),
                |one| names.who(one),
            );
            format!(
                "{user} kept {} busy: {all} waited for it, {} in all, {} at a time",
                what(disk, "disk"),
                duration(root.held()),
                duration(crowd.typical)
            )
        }
        Key::Disk(disk) => format!(
            "{} held up {all}: up to {up_to} for one wait, mostly by {}",
            what(disk, "Disk"),
            most_of(root, names)
        ),
        Key::Files(files) => format!(
            "{}{}: {all} waited for files on it, up to {up_to}",
            what(files, "File system"),
            if root.open { " does not answer" } else { "" }
        ),
        Key::Memory(of) => format!(
            "{} was short: {all} waited for it, {} in all",
            if of.is_empty() {
                "Memory".to_owned()
            } else {
                what(of, "Memory of cgroup")
            },
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
                "{} has no CPU time left, which throttled {own} for {}{waited}",
                what(cgroup, "Cgroup"),
                duration(root.held())
            )
        }
        Key::Silent(peer) => format!(
            "{} {}: {all} waited, up to {up_to}",
            say::name_or(peer, "a peer"),
            match root.open || root.cause != Some(Cause::NetReceive) {
                true => "does not answer",
                false => "answers late",
            }
        ),
        Key::Kernel(cause) => format!("{all} waited, up to {up_to}: {}", cause.phrase()),
    }
}

/// The program that most of the time in a resource is of.
fn most_of<'a>(root: &'a Root<'a>, names: &Names<'a>) -> String {
    let programs = programs(names, root.own.iter());
    programs
        .first()
        .map_or_else(String::new, |(name, _, _)| (*name).to_owned())
}

/// What the root did while others waited.
fn meanwhile<'a>(root: &'a Root<'a>, names: &Names<'a>) -> Option<Evidence> {
    let who = names.who(root.name);
    let beyond = root.beyond.map_or_else(String::new, |step| {
        let doing = step
            .cause
            .map_or_else(String::new, |cause| format!(", which was {}", cause.phrase()));
        format!(", for {}{doing}", names.who(step.name))
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

/// Steps of a way that a line has.
const MAX_STEPS: usize = 8;

/// From the longest wait to its end, with what each was in, where others stand between them.
fn way<'a>(root: &'a Root<'a>, names: &Names<'a>) -> Option<Evidence> {
    if root.way.len() < 3 {
        return None;
    }
    let steps = root.way.iter().take(MAX_STEPS).map(|step| {
        let doing = step
            .cause
            .map_or_else(String::new, |cause| format!(" was {}", cause.phrase()));
        format!("{}{doing}", names.who(step.name))
    });
    let steps: Vec<String> = steps.collect();
    Some(Evidence::new(
        format!("the longest wait leads through: {}", steps.join("; ")),
        say::SCHEDULER,
    ))
}

/// Who used a disk while others waited for it.
fn used(root: &Root<'_>) -> Option<Evidence> {
    let crowd = root.crowd.as_ref()?;
    let call = match crowd.call {
        Some((call, Some(bytes))) => format!(", mostly in {call} of {}", size(bytes)),
        Some((call, None)) => format!(", mostly in {call}"),
        None => String::new(),
    };
    let busy = crowd.busy.map_or_else(String::new, |busy| {
        format!("; the disk was busy for {} of the time", percent(busy))
    });
    Some(Evidence::new(
        format!(
            "{} waited for its own use of the disk: {}, {} in all{call}{busy}",
            say::name_or(crowd.user, "a process"),
            say::several(crowd.waits, "wait"),
            duration(crowd.used)
        ),
        say::SCHEDULER,
    ))
}

fn waited<'a>(waiters: &'a [Waiter<'a>], verb: &str, known: &Names<'a>) -> Option<Evidence> {
    if waiters.is_empty() {
        return None;
    }
    let directly = waiters.iter().filter(|one| one.directly).count();
    let all: Ns = waiters.iter().map(|one| one.ns).fold(0, Ns::saturating_add);
    let names: Vec<String> = programs(known, waiters.iter())
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

fn finding<'a>(root: &'a Root<'a>, names: &Names<'a>) -> Finding {
    let cause = root.lock.map(|lock| lock.cause).or(root.cause);
    let cause = cause.unwrap_or(Cause::Unknown);
    let in_it = match root.key {
        Key::Halted(_) | Key::Lock(_) | Key::Busy(_) => None,
        _ => waited(&root.own, "waited for it", names),
    };
    let mut evidence: Vec<Evidence> = waited(&root.behind, "waited behind it", names)
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
    evidence.extend(used(root));
    if matches!(root.key, Key::Lock(_) | Key::Halted(_) | Key::Busy(_)) {
        evidence.extend(meanwhile(root, names));
    }
    evidence.extend(way(root, names));
    let mut evidence = evidence.into_iter();
    let first = evidence
        .next()
        .unwrap_or_else(|| Evidence::new(duration(root.held()), say::SCHEDULER));
    let mut finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        title(root, names),
        cause,
        root.held(),
        first,
    );
    for more in evidence {
        finding = finding.and(more);
    }
    // A title says that a session is idle in a transaction, and not what it has locked.
    let known = matches!(root.key, Key::Lock(_) | Key::Halted(_)) && root.idle_of.is_none();
    let resource = match root.lock.and_then(|lock| lock.resource).or(root.resource) {
        Some(resource) => resource.clone(),
        None => Resource::named(ResourceKind::Process, root.name.process.clone()),
    };
    // Of a disk that somebody keeps busy, who waits for that one asked, and not who waits for its own use.
    let crowded = root.own.iter().filter(|_| root.crowd.is_some());
    let asker = match crowded.max_by_key(|waiter| waiter.ns) {
        Some(waiter) => Asker {
            name: waiter.name.clone(),
            ..Asker::default()
        },
        None => Asker {
            name: root.name.clone(),
            frame: root.function.map(str::to_owned),
            ..Asker::default()
        },
    };
    finding
        .about(resource, asker)
        .confidence(match known {
            true => Confidence::Proved,
            false => Confidence::Strong,
        })
        .remedy(remedy(root, names))
}

fn remedy<'a>(root: &'a Root<'a>, names: &Names<'a>) -> Remedy {
    let pid = root.name.pid;
    let who = names.who(root.name);
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
        Key::Lock(_) if root.idle_of.is_some() => Remedy::changing(
            format!("have the client of {who} commit or roll back, or end that session"),
            "the transaction that is ended is rolled back",
        )
        .with_command(format!("psql -c \"select pg_terminate_backend({pid})\"")),
        Key::Lock(_) => Remedy::safe(format!("find out why {who} keeps the lock for so long"))
            .with_command(format!("holdup attach -p {pid}")),
        Key::Cpus => Remedy::safe("run what can wait at a lower priority, or on another machine"),
        Key::Disk(_) => Remedy::safe("limit who uses the disk most, or give the others another disk")
            .with_command("holdup host"),
        _ => Remedy::safe(format!("look at {who}")).with_command(format!("holdup attach -p {pid}")),
    }
}
