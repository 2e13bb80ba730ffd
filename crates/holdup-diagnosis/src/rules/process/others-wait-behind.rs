//! On a machine, others wait behind one process, lock, disk or limit: the root, who is behind it, and for how long.

use crate::machine::ends::Key;
use crate::machine::names::Names;
use crate::machine::roots::{self, Root, Waiter};
use crate::machine::sessions::Titled;
use crate::rules::name_chain::Chain;
use crate::rules::roots_said::{MAX_NAMES, Words};
use crate::rules::{
    Extend, Generality, Rule, RuleId, Run, awaited, awaited_instead, awaited_withheld, duration, fires_all,
    frozen, live_sessions, percent, quota_users, say,
};
use holdup_evidence::units::bytes as size;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Asker, Resource, ResourceKind, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::HashSet;

/// Roots that are reported.
const MAX_ROOTS: usize = 5;

/// The shortest wait for a server that does not work on it, as the kernel's tables have it when a segment ends: what is shorter may be work.
const MIN_OWED_NS: Ns = 5_000_000_000;

/// Such servers that are reported.
const MAX_OWING: usize = 3;

/// Share of all threads' time with an unknown cause, above which a fault of a few threads may be in it.
const MAX_UNKNOWN_SHARE: f64 = 0.05;

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
        Cause::NetSend,
        Cause::NetDns,
        Cause::IpcPipe,
        Cause::IpcUnix,
        Cause::ProcessStopped,
        Cause::ProcessFrozen,
    ])
    .from(0.0)
    .generality(Generality::Consequence);

fn check(run: &Run<'_>) -> Verdict {
    let titled = titled(run);
    let names = Names::of(run.facts);
    let roots = roots::of(run.attributed, run.facts, &names, &titled);
    let words = Words {
        names,
        facts: run.facts,
        waits: &run.attributed.waits,
    };
    let limits = awaited::limits_of(&run.facts.cgroups_at_limit);
    let (withheld, longest) = withheld(run, &roots);
    let path = &run.attributed.path;
    let unknown = path.get(&Cause::Unknown).map_or(0, |tally| tally.ns);
    let whole = path.values().map(|tally| tally.ns).fold(0, Ns::saturating_add);
    let nothing = roots.is_empty() && limits.is_empty() && withheld.is_empty();
    if nothing && unknown as f64 > whole as f64 * MAX_UNKNOWN_SHARE {
        return Verdict::CannotTell(format!(
            "what {} of the threads' time was: the cause is unknown",
            percent(unknown as f64 / whole as f64)
        ));
    }
    if nothing {
        return Verdict::Clear(format!(
            "0 of {} waited behind another one for a second",
            say::several(threads(run), "thread")
        ));
    }
    // What programs have in common, or take turns at, comes after what is one's own.
    let wall = run.attributed.wall;
    let (last, first): (Vec<&Root<'_>>, Vec<&Root<'_>>) = roots
        .iter()
        .take(MAX_ROOTS)
        .partition(|root| root.comes_last() || root.stands_by(&words.names, wall));
    // A server that answers nobody for longer than anything else lasted is graver.
    let (longer, first): (Vec<&Root<'_>>, Vec<&Root<'_>>) =
        first.into_iter().partition(|root| root.longest() >= longest);
    let told = |roots: Vec<&Root<'_>>| -> Vec<Finding> {
        roots
            .into_iter()
            .map(|root| weighed(root, &words, wall))
            .collect()
    };
    fires_all([told(longer), withheld, told(first), limits, told(last)].concat())
}

/// What is said of a root. That CPUs are used is no trouble where nobody's answer is late, and neither is a second instance that stands by.
fn weighed<'a>(root: &'a Root<'a>, words: &Words<'a>, wall: Ns) -> Finding {
    let mut finding = finding(root, words);
    let unneeded = root.key == Key::Cpus && !root.is_late(wall);
    if unneeded || root.stands_by(&words.names, wall) {
        finding.severity = Severity::Note;
    }
    finding
}

/// Servers that withhold their service, by the kernel's tables when the recording ended, where nobody behind one waits for a root that events tell;
/// and the longest wait behind them.
fn withheld(run: &Run<'_>, roots: &[Root<'_>]) -> (Vec<Finding>, Ns) {
    let waits = &run.facts.answers_awaited;
    let own = roots.iter().filter(|root| !root.comes_last());
    let waiters = own.flat_map(|root| root.behind.iter().chain(&root.own));
    let mut told: HashSet<u32> = waiters.map(|one| one.name.pid).collect();
    let standbys = awaited::standbys(waits);
    told.extend(standbys.iter().flat_map(|(behind, ..)| behind.iter().copied()));
    let is_told = |behind: &[u32]| behind.iter().any(|pid| told.contains(pid));
    let known = awaited_withheld::servers_but(waits, |one| is_told(&one.behind));
    let servers: HashSet<u32> = known.iter().map(|one| one.server).collect();
    let others = awaited_instead::of(waits, RULE.id, MIN_OWED_NS);
    let others = others
        .into_iter()
        .filter(|one| !is_told(&one.behind) && !one.servers.iter().any(|pid| servers.contains(pid)));
    let known = known.into_iter().map(|one| (one.longest, one.finding));
    let found: Vec<(Ns, Finding)> = known
        .chain(others.map(|one| (one.longest, one.finding)).take(MAX_OWING))
        .collect();
    // What merely sleeps is no trouble that goes before a root.
    let graves = found.iter().filter(|(_, one)| one.severity > Severity::Note);
    let graves = graves
        .map(|(longest, _)| *longest)
        .chain(standbys.iter().map(|one| one.1));
    let longest = graves.max().unwrap_or(0);
    let standbys = standbys.into_iter().map(|(.., one)| one);
    (
        standbys.chain(found.into_iter().map(|(_, one)| one)).collect(),
        longest,
    )
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

/// What the root did while others waited.
fn meanwhile<'a>(root: &'a Root<'a>, words: &Words<'a>) -> Option<Evidence> {
    let who = words.who(root.name);
    let beyond = root.beyond.map_or_else(String::new, |step| {
        let doing = step
            .cause
            .map_or_else(String::new, |cause| format!(", which was {}", cause.phrase()));
        format!(", for {}{doing}", words.who(step.name))
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
fn way<'a>(root: &'a Root<'a>, words: &Words<'a>) -> Option<Evidence> {
    if root.way.len() < 3 {
        return None;
    }
    let steps = root.way.iter().take(MAX_STEPS).map(|step| {
        let doing = step
            .cause
            .map_or_else(String::new, |cause| format!(" was {}", cause.phrase()));
        format!("{}{doing}", words.who(step.name))
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

fn waited<'a>(root: &Root<'a>, waiters: &[Waiter<'a>], verb: &str, words: &Words<'a>) -> Option<Evidence> {
    let each = roots::apart(waiters.iter());
    if each.is_empty() {
        return None;
    }
    let all: Ns = each.iter().map(|one| one.ns).fold(0, Ns::saturating_add);
    let names: Vec<String> = (words.programs(root, &each).into_iter())
        .take(MAX_NAMES + 2)
        .map(|(name, count, ns)| {
            let count = say::several(count, "thread");
            format!("{} ({count}, {})", say::name_or(&name, "a process"), duration(ns))
        })
        .collect();
    Some(Evidence::new(
        format!(
            "{} {verb}, {} in all: {}",
            say::several(each.len() as u64, "thread"),
            duration(all),
            names.join(", ")
        ),
        say::SCHEDULER,
    ))
}

fn finding<'a>(root: &'a Root<'a>, words: &Words<'a>) -> Finding {
    let cause = root.lock.map(|lock| lock.cause).or(root.awaited).or(root.cause);
    let cause = cause.unwrap_or(Cause::Unknown);
    let in_it = match root.key {
        _ if root.is_one_process() => None,
        _ => waited(root, &root.own, "waited for it", words),
    };
    let mut evidence: Vec<Evidence> = waited(root, &root.behind, "waited behind it", words)
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
    if root.is_one_process() {
        evidence.extend(meanwhile(root, words));
    }
    evidence.extend(way(root, words));
    evidence.extend(full(root, words));
    evidence.extend(frozen::evidence(&words.users(root)).filter(|_| cause == Cause::FsFrozen));
    let mut evidence = evidence.into_iter();
    let first = evidence
        .next()
        .unwrap_or_else(|| Evidence::new(duration(root.held()), say::SCHEDULER));
    let mut finding = Finding::new(
        RULE.id.id(),
        Severity::Warning,
        words.title(root),
        cause,
        root.held(),
        first,
    );
    for more in evidence {
        finding = finding.and(more);
    }
    // A title says that a session is idle in a transaction, and not what it has locked.
    let known = matches!(root.key, Key::Lock(_) | Key::Halted(_)) && root.idle_of.is_none();
    let known_resource = root.lock.and_then(|lock| lock.resource).or(root.resource);
    let resource = match (&root.key, known_resource) {
        // Of a throttled thread no event says which cgroup it is.
        (Key::Quota(cgroup), _) if !cgroup.is_empty() => Resource::named(ResourceKind::Cgroup, cgroup),
        (_, Some(resource)) => resource.clone(),
        (_, None) => Resource::named(ResourceKind::Process, root.name.process.clone()),
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
    let names = (root.cause == Some(Cause::NetDns)).then(|| Chain::of(words.facts, &resource));
    let finding = finding
        .and_if(names.as_ref().and_then(Chain::evidence))
        .about(resource, asker)
        .confidence(match known {
            true => Confidence::Proved,
            false => Confidence::Strong,
        });
    let quota = match &root.key {
        Key::Quota(cgroup) => words.quota(cgroup),
        _ => None,
    };
    let finding = match quota {
        Some(quota) => quota_users::told(finding, quota),
        None => finding,
    };
    let at_end = names.as_ref().and_then(Chain::remedy);
    finding.remedy(at_end.unwrap_or_else(|| remedy(root, words)))
}

/// The full file system that a process writes to.
fn full(root: &Root<'_>, words: &Words<'_>) -> Option<Evidence> {
    let pid = root.name.pid;
    let full = words.full(root)?;
    let file = full.writers.iter().find(|writer| writer.pid == pid)?;
    let left = match full.inodes {
        true => "no inodes left".to_owned(),
        false => format!("{} of {} left", size(full.left), size(full.size)),
    };
    Some(Evidence::new(
        format!(
            "{} on {}: {left}; open there to write to: {}",
            full.mount, full.source, file.file
        ),
        "statvfs and /proc/PID/fd",
    ))
}

fn remedy<'a>(root: &'a Root<'a>, words: &Words<'a>) -> Remedy {
    let pid = root.name.pid;
    let who = words.who(root.name);
    let halted = matches!(root.key, Key::Halted(_));
    if let Some(tracer) = words.tracer(pid).filter(|_| halted) {
        return Remedy::changing(
            format!("detach the debugger or tracer {}", words.who(tracer)),
            "it may be in use",
        )
        .with_command(format!("holdup attach -p {}", tracer.pid));
    }
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
        _ if words.full(root).is_some() => {
            let mount = words.full(root).map_or("", |full| full.mount.as_str());
            Remedy::changing(
                format!("free space on {mount}: delete or move what fills it, or enlarge it"),
                "deleted files are lost",
            )
            .with_command(format!("du -xah {} | sort -h | tail", say::quoted(mount)))
        }
        Key::Files(files) if root.cause == Some(Cause::FsFrozen) => {
            // Else it is the path of a file.
            let mount = root.resource.filter(|one| one.detail.mount.is_some());
            frozen::remedy(mount.map_or("", |_| files), &words.users(root))
        }
        Key::Reader(_) => Remedy::safe(format!("find out why {who} does not read"))
            .with_command(format!("holdup attach -p {pid}")),
        Key::Unread(_) => Remedy::safe(
            "find out why the other end does not read, and let programs log without waiting for it",
        ),
        Key::Busy(_) if words.works_for(pid).is_some() => {
            let client = words.works_for(pid).map(|one| (one.name.as_str(), one.pid));
            let (name, client) = client.unwrap_or_default();
            Remedy::safe(format!(
                "look at what {} (pid {client}) asks: make its requests smaller or rarer, or send them to another server",
                say::name_or(name, "its client")
            ))
            .with_command(format!("holdup attach -p {pid}"))
        }
        Key::Lock(_) => Remedy::safe(format!("find out why {who} keeps the lock for so long"))
            .with_command(format!("holdup attach -p {pid}")),
        Key::Cpus => Remedy::safe("run what can wait at a lower priority, or on another machine"),
        Key::Disk(_) => Remedy::safe("limit who uses the disk most, or give the others another disk")
            .with_command("holdup host"),
        _ => Remedy::safe(format!("look at {who}")).with_command(format!("holdup attach -p {pid}")),
    }
}
