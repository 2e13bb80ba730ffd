//! What a root of a machine is called in one sentence: who or what it is, what that waits for in turn, and who waits behind it.
//!
//! In: a root, names of programs, and facts of the machine. Out: the title of its finding.

use super::name_chain::Chain;
use super::{duration, frozen, percent, quota_users, say};
use crate::machine::ends::{Key, Lock};
use crate::machine::names::Names;
use crate::machine::roots::{self, Root, Waiter};
use holdup_evidence::facts::{FullFileSystem, SessionClient, SessionState};
use holdup_evidence::observed::{Awaited, FrozenVolume, Limited, SeenCgroup, SeenClient, VolumeUser};
use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::{AttributedWait, Holder, HowKnown, Resource, ResourceKind, ThreadName};
use holdup_model::title::Title;
use std::collections::{BTreeMap, HashMap};

/// Programs that a sentence names.
pub(super) const MAX_NAMES: usize = 4;

/// What sentences are made from.
#[derive(Debug)]
pub(super) struct Words<'a> {
    pub(super) names: Names<'a>,
    pub(super) facts: &'a SystemFacts,
    pub(super) waits: &'a [AttributedWait],
}

/// Programs by name, each with its number of threads, the one that waited longest first.
pub(super) type Programs = Vec<(String, u64, Ns)>;

impl<'a> Words<'a> {
    /// A program with its process id.
    pub(super) fn who(&self, name: &'a ThreadName) -> String {
        match self.names.program(name) {
            program if program == name.process => say::who_with_pid(name),
            program => format!("{program} (pid {})", name.pid),
        }
    }

    /// Whose request a server worked on when a segment ended, while those of others were not read.
    pub(super) fn works_for(&self, pid: u32) -> Option<&'a SeenClient> {
        let waits = self.facts.answers_awaited.iter();
        let mut of = waits.filter_map(|wait| wait.holder.as_ref().filter(|holder| holder.pid == pid));
        of.find_map(|holder| holder.client.as_ref())
    }

    /// Of a server of files: who waits for another machine that it is connected with, as the kernel's tables had it when a segment ended.
    fn away(&self, server: u32) -> Option<String> {
        let waits = || self.facts.answers_awaited.iter();
        let mut ends = waits().filter(|wait| wait.waiter.pid == server && wait.on == Awaited::Peer);
        let end = ends.find_map(|wait| wait.holder.as_ref())?;
        let asked = waits()
            .find(|wait| wait.waiter.pid == end.pid && wait.holder.is_none() && wait.on == Awaited::Answer)?;
        let name = say::name_or(&end.name, "a process");
        Some(format!(
            ", while {name} (pid {}) behind it waits for {} to answer",
            end.pid, asked.name
        ))
    }

    /// Who traces a process, and so keeps it stopped.
    pub(super) fn tracer(&self, pid: u32) -> Option<&'a ThreadName> {
        let stops =
            |wait: &&AttributedWait| wait.asker.name.pid == pid && wait.cause == Cause::ProcessStopped;
        let longest = self.waits.iter().filter(stops).max_by_key(|wait| wait.ns)?;
        let tracer = |holder: &&Holder| holder.how_known == HowKnown::Tracer;
        Some(&longest.holders.iter().find(tracer)?.name)
    }

    /// Programs of these waiters. A shell and its command that waits are one: `sh job.sh (flock)`.
    pub(super) fn programs(&self, root: &Root<'a>, waiters: &[&Waiter<'a>]) -> Programs {
        self.programs_of(&root.jobs(), waiters)
    }

    /// The same with the parents of those that wait for their child.
    fn programs_of(&self, jobs: &HashMap<u32, &'a ThreadName>, waiters: &[&Waiter<'a>]) -> Programs {
        let mut programs: BTreeMap<String, (u64, Ns)> = BTreeMap::new();
        for waiter in roots::apart(waiters.iter().copied()) {
            let own = self.names.program(waiter.name);
            // A shell's name alone says nothing.
            let job = jobs
                .get(&waiter.name.pid)
                .map(|parent| (self.names.program(parent), *parent));
            let name = match job {
                Some((script, parent)) if script != parent.process => format!("{script} ({own})"),
                _ => own.to_owned(),
            };
            let of = programs.entry(name).or_default();
            *of = (of.0 + 1, of.1.saturating_add(waiter.ns));
        }
        let mut programs: Programs = programs
            .into_iter()
            .map(|(name, (count, ns))| (name, count, ns))
            .collect();
        programs.sort_by(|one, other| (other.2, &one.0).cmp(&(one.2, &other.0)));
        programs
    }

    /// `nginx, 4 threads of python3 and 2 other programs`; and the verb, or a form of it, for one and for several.
    fn list(&self, root: &Root<'a>, waiters: &[&Waiter<'a>]) -> (String, bool) {
        listed_programs(&self.programs(root, waiters))
    }

    /// Those behind a process of which another rule tells, and the verb.
    pub(super) fn behind(&self, waiters: &[Waiter<'a>]) -> Option<(String, Programs)> {
        let waiters: Vec<&Waiter<'_>> = waiters.iter().collect();
        let programs = self.programs_of(&HashMap::new(), &waiters);
        let (list, several) = listed_programs(&programs);
        let verb = if several { "wait" } else { "waits" };
        (!programs.is_empty()).then(|| (format!("{list} {verb} behind it"), programs))
    }

    /// What the lock is that is waited for.
    fn lock(lock: Lock<'_>) -> String {
        let name = lock.resource.map(|resource| resource.name.as_str());
        let name = name.filter(|name| !name.is_empty());
        let of_database = lock
            .resource
            .is_some_and(|resource| resource.detail.database_lock.is_some());
        match (lock.cause, name) {
            (Cause::LockFile, Some(name)) => format!("the lock on {name}"),
            (Cause::LockFile, None) => "a file lock".to_owned(),
            _ if lock.session || of_database => match name.filter(|_| of_database) {
                Some(name) => format!("the lock on {name}"),
                None => "a lock of the database".to_owned(),
            },
            (Cause::LockKernel, Some(name)) => format!("the kernel's lock {name}"),
            (Cause::MemMmaplock, _) => "the lock of an address space".to_owned(),
            (_, Some(name)) => format!("the lock {name}"),
            (_, None) => "a lock".to_owned(),
        }
    }

    /// What a holder does while others wait, or waits for itself: ` and waits for curl (pid 7)`.
    fn onward(&self, root: &Root<'a>) -> String {
        let Some(onward) = root.onward else {
            return String::new();
        };
        let Some(before) = onward.before else {
            return match onward.last.cause {
                Some(Cause::TimerSleep) => ", and sleeps".to_owned(),
                Some(Cause::IpcTty) => ", and waits for input at its terminal".to_owned(),
                Some(Cause::NetReceive) => match address(onward.resource) {
                    Some(address) => format!(", and waits for {address} to answer"),
                    None => String::new(),
                },
                Some(cause) if cause.on_cpu() => match root.function {
                    Some(function) => format!(", and runs {function}"),
                    None => ", and runs".to_owned(),
                },
                _ => String::new(),
            };
        };
        let last = self.who(onward.last.name);
        let at = address(onward.resource).map_or_else(String::new, |address| format!(" at {address}"));
        let awaited = match before.cause {
            Some(Cause::NetReceive | Cause::IpcUnix) => format!("{last}{at} to answer"),
            Some(Cause::NetSend) => format!("{last}{at} to read"),
            Some(Cause::ProcessChild) => match onward.last.cause {
                Some(Cause::TimerSleep) => format!("its child {last}, which sleeps"),
                Some(cause) if cause.on_cpu() => format!("its child {last}, which runs"),
                _ => format!("its child {last}"),
            },
            Some(Cause::IpcPipe) => format!("{last} at the other end of a pipe"),
            Some(cause) if is_lock(cause) => format!("a lock of {last}"),
            Some(Cause::Idle) if root.lock.is_some_and(|lock| lock.session) => format!("its client {last}"),
            _ => last,
        };
        match onward.through {
            true => format!(
                ", while its {} waits for {awaited}",
                self.names.program(before.name)
            ),
            false => format!(", and waits for {awaited}"),
        }
    }

    /// Whether a root's lock is that of a session whose transaction is open while it waits for its client: the session itself, or the client.
    fn is_idle_in_transaction(&self, root: &Root<'a>) -> bool {
        let pid = root.name.pid;
        let of_database = |lock: Lock<'_>| {
            let resource = lock.resource.filter(|one| one.detail.database_lock.is_some());
            lock.session || resource.is_some()
        };
        let is = |own: u32, client: Option<&SessionClient>| {
            own == pid || client.is_some_and(|client| client.pid == Some(pid))
        };
        let by_memory = self.facts.lock_sessions.iter();
        let by_title = self.facts.database_sessions.iter();
        let states = by_memory
            .filter(|one| one.waits.is_none() && is(one.pid, one.client.as_ref()))
            .filter_map(|one| one.state)
            .chain(
                by_title
                    .filter(|one| is(one.pid, one.client.as_ref()))
                    .map(|one| one.state),
            );
        pid > 0
            && root.lock.is_some_and(of_database)
            && states
                .into_iter()
                .any(|state| state == SessionState::IdleInTransaction)
    }

    /// The full file system that keeps a root from going on: it does not read, or has a lock and sleeps, and has a file open there to write to.
    pub(super) fn full(&self, root: &Root<'_>) -> Option<&'a FullFileSystem> {
        let retries = match root.key {
            Key::Reader(_) => true,
            Key::Lock(_) | Key::Busy(_) => root.cause == Some(Cause::TimerSleep),
            _ => false,
        };
        let full = self.facts.full_file_systems.iter().filter(|_| retries);
        let mut full = full.filter(|one| one.writers.iter().any(|writer| writer.pid == root.name.pid));
        full.next()
    }

    /// Who uses the frozen file system that a root is, and does not wait.
    pub(super) fn users(&self, root: &Root<'_>) -> Vec<VolumeUser> {
        let waits = |volume: &&FrozenVolume| {
            let mut pids = root.own.iter().chain(&root.behind).map(|one| one.name.pid);
            pids.any(|pid| volume.waiters.contains(&pid))
        };
        let volume = self.facts.frozen_volumes.iter().find(waits);
        let waits = |pid: u32| root.own.iter().chain(&root.behind).any(|one| one.name.pid == pid);
        let users = volume.into_iter().flat_map(|volume| &volume.users);
        let users = users.filter(|one| one.waits || !waits(one.process.pid));
        users.cloned().collect()
    }

    /// The limit of CPU time that a root is.
    pub(super) fn quota(&self, cgroup: &str) -> Option<&'a SeenCgroup> {
        let limits = self.facts.cgroups_at_limit.iter();
        let mut limits = limits.filter(|one| one.what == Limited::CpuTime && one.cgroup == cgroup);
        limits.next()
    }

    /// Who is the root, what it has or is, as the begin of a title; then who waits.
    pub(super) fn title(&self, root: &Root<'a>) -> Title {
        let who = self.who(root.name);
        let up_to = duration(root.longest());
        let behind: Vec<&Waiter<'_>> = root.behind.iter().collect();
        let every: Vec<&Waiter<'_>> = root.own.iter().chain(&root.behind).collect();
        let (all, _) = self.list(root, &every);
        let (behind, _) = self.list(root, &behind);
        let has = match root.lock {
            Some(lock) => format!(" and has {}", Words::lock(lock)),
            None => String::new(),
        };
        match &root.key {
            Key::Lock(_) if root.idle_of.is_some() => {
                let client = root.idle_of.filter(|client| !client.is_empty());
                let of = client.map_or_else(String::new, |client| format!(" of {client}"));
                let lock = root.lock.map_or_else(|| "a lock".to_owned(), Words::lock);
                Title::from(format!("{who} is idle in a transaction{of}, and has {lock}"))
                    .with(format!(": {behind} waited behind it, up to {up_to}"))
            }
            Key::Lock(_) => {
                let lock = root.lock.map_or_else(|| "a lock".to_owned(), Words::lock);
                let onward = match self.full(root) {
                    Some(full) => format!(", and cannot write to the full file system {}", full.mount),
                    None => self.onward(root),
                };
                let idle = match self.is_idle_in_transaction(root) {
                    true => "is idle in a transaction, and has",
                    false => "has",
                };
                Title::from(format!("{who} {idle} {lock}{onward}"))
                    .with(format!(": {behind} waited behind it, up to {up_to}"))
            }
            Key::Halted(_) => {
                let state = match root.cause {
                    Some(Cause::ProcessFrozen) => "frozen",
                    _ => "stopped",
                };
                let by = match self.tracer(root.name.pid) {
                    Some(tracer) => format!(" by its tracer {}", self.who(tracer)),
                    None => String::new(),
                };
                Title::from(format!("{who} was {state}{by}{has}"))
                    .with(format!(": {behind} waited behind it, up to {up_to}"))
            }
            Key::Busy(_) => {
                let ran = root
                    .function
                    .map_or_else(String::new, |function| format!(" {function}"));
                let of = self.works_for(root.name.pid);
                let of = of.map_or_else(String::new, |one| {
                    format!(
                        " for the request of {} (pid {})",
                        say::name_or(&one.name, "a process"),
                        one.pid
                    )
                });
                Title::from(format!("{who} ran{ran}{of}"))
                    .with(format!(": {behind} waited for its answer, up to {up_to}"))
            }
            Key::Disk(disk) => self.disk(root, disk, &all),
            Key::Files(files) if root.cause == Some(Cause::FsFrozen) => Title::from(format!(
                "{} {} frozen{}",
                what(files, frozen_at(root)),
                if root.open { "is" } else { "was" },
                frozen::by(&self.users(root))
            ))
            .with(format!(": {all} waited to write there, up to {up_to}")),
            Key::Files(files) => {
                let server = root.server().map_or_else(String::new, |server| {
                    let away = self.away(server.pid).unwrap_or_else(|| self.onward(root));
                    format!("; {} serves it{away}", self.who(server))
                });
                Title::from(format!(
                    "{}{}",
                    what(files, "File system"),
                    if root.open { " does not answer" } else { "" }
                ))
                .with(format!(": {all} waited for files on it, up to {up_to}"))
                .with(server)
            }
            Key::Memory(of) => self.memory(root, of, &all),
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
                Title::from(format!("{ran} had the CPUs"))
                    .with(format!(": {all} were runnable and waited for one"))
            }
            Key::Quota(cgroup) => self.throttled(root, cgroup),
            Key::Silent(peer) => self.silent(root, peer),
            Key::Reader(_) => self.reader(root),
            Key::Unread(peer) => Title::from(format!(
                "{} does not read what it is sent",
                say::name_or(plain(peer), "a peer")
            ))
            .with(format!(": {all} waited to send there, up to {up_to}")),
            Key::Kernel(cause) => {
                Title::from(format!("{all} waited, up to {up_to}")).with(format!(": {}", cause.phrase()))
            }
        }
    }

    /// A disk, and who uses it most.
    fn disk(&self, root: &Root<'a>, disk: &str, all: &str) -> Title {
        let Some(crowd) = &root.crowd else {
            let own: Vec<&Waiter<'_>> = root.own.iter().collect();
            let most = self.programs(root, &own);
            let most = most.first().map_or("", |(name, _, _)| name.as_str());
            let by = match most {
                "" => String::new(),
                most => format!(", mostly by {most}"),
            };
            return Title::from(format!("{} held up {all}", what(disk, "Disk")))
                .with(format!(": up to {} for one wait{by}", duration(root.longest())));
        };
        let user = match crowd.process {
            Some(one) => self.who(one),
            None if crowd.processes > 1 => format!(
                "{} ({} processes)",
                say::name_or(crowd.user, "a program"),
                crowd.processes
            ),
            None => say::name_or(crowd.user, "a process").to_owned(),
        };
        Title::from(format!("{user} kept {} busy", what(disk, "disk"))).with(format!(
            ": {all} waited for it, {} in all, {} at a time",
            duration(root.held()),
            duration(crowd.typical)
        ))
    }

    /// Memory, of a cgroup with its limit and the program that has most of it.
    fn memory(&self, root: &Root<'a>, of: &str, all: &str) -> Title {
        let mut at_limit = self.facts.cgroups_at_limit.iter();
        let known = at_limit.find(|one| one.what == Limited::Memory && one.cgroup == of && !of.is_empty());
        let waited = format!(": {all} waited for it, {} in all", duration(root.held()));
        let Some(one) = known else {
            return match of {
                "" => Title::from("Memory was short").with(waited),
                of => Title::from(format!("{} was short", what(of, "Memory of cgroup"))).with(waited),
            };
        };
        let paused = if one.paused {
            ", and its OOM killer is disabled"
        } else {
            ""
        };
        let most = one.users.first().map_or_else(String::new, |user| {
            format!(
                "; {} (pid {}) has {} of it",
                say::name_or(&user.name, "a process"),
                user.pid,
                say::bytes(user.amount as u64)
            )
        });
        Title::from(format!(
            "Cgroup {of} was at its limit of {} of memory{paused}",
            say::bytes(one.limit as u64)
        ))
        .with(most)
        .with(waited)
    }

    /// A cgroup whose CPU time was used up.
    fn throttled(&self, root: &Root<'a>, cgroup: &str) -> Title {
        let own: Vec<&Waiter<'_>> = root.own.iter().collect();
        let behind: Vec<&Waiter<'_>> = root.behind.iter().collect();
        let (throttled, several) = self.list(root, &own);
        let verb = if several { "were" } else { "was" };
        let waited = match behind.is_empty() {
            true => String::new(),
            false => format!(", and {} waited behind", self.list(root, &behind).0),
        };
        let limit = self.quota(cgroup).map_or_else(String::new, |one| {
            let cpus = one
                .cpus
                .map_or_else(String::new, |cpus| format!(" of {cpus:.2} CPUs"));
            let part = match one.limit > 0.0 {
                true => format!(" in {} of its periods", percent(one.used / one.limit)),
                false => String::new(),
            };
            format!("{cpus}{part}")
        });
        let users = self.quota(cgroup).map_or_else(String::new, quota_users::clause);
        Title::from(format!("{} used up its CPU limit{limit}", what(cgroup, "Cgroup")))
            .with(users)
            .with(format!(
                ": {throttled} {verb} throttled, {} in all{waited}",
                duration(root.own.iter().map(|one| one.ns).fold(0, Ns::saturating_add))
            ))
    }

    /// A peer that does not answer; of names the server, and whom that asks.
    fn silent(&self, root: &Root<'a>, peer: &str) -> Title {
        let every: Vec<&Waiter<'_>> = root.own.iter().chain(&root.behind).collect();
        let up_to = duration(root.longest());
        if root.cause == Some(Cause::NetDns) {
            let own: Vec<&Waiter<'_>> = root.own.iter().collect();
            let behind: Vec<&Waiter<'_>> = root.behind.iter().collect();
            let asked = match own.is_empty() {
                true => self.list(root, &every).0,
                false => self.list(root, &own).0,
            };
            let through = match own.is_empty() || behind.is_empty() {
                true => String::new(),
                false => format!(", and {} waited behind", self.list(root, &behind).0),
            };
            let chain = root
                .resource
                .map_or_else(String::new, |resource| Chain::of(self.facts, resource).clause());
            let end = if chain.is_empty() { ":" } else { ";" };
            return Title::from(format!(
                "Name server {} does not answer",
                say::name_or(plain(peer), "of this machine")
            ))
            .with(chain)
            .with(format!(
                "{end} name lookups of {asked} waited up to {up_to}{through}"
            ));
        }
        Title::from(format!(
            "{} {}",
            say::name_or(plain(peer), "a peer"),
            match root.open || root.cause != Some(Cause::NetReceive) {
                true => "does not answer",
                false => "answers late",
            }
        ))
        .with(format!(": {} waited, up to {up_to}", self.list(root, &every).0))
    }

    /// A process that does not read what others write to it.
    fn reader(&self, root: &Root<'a>) -> Title {
        let who = self.who(root.name);
        let behind: Vec<&Waiter<'_>> = root.behind.iter().collect();
        let (list, _) = self.list(root, &behind);
        let named = |resource: &Resource| match resource.kind {
            _ if resource.name.starts_with('/') => resource.name.clone(),
            ResourceKind::Socket if !resource.name.is_empty() => {
                format!("what it is sent at {}", plain(&resource.name))
            }
            _ => "its pipe".to_owned(),
        };
        let from = root.resource.map_or_else(|| "what it is sent".to_owned(), named);
        let reads = match self.full(root) {
            Some(full) => format!(
                "cannot write to the full file system {}, and does not read {from}",
                full.mount
            ),
            None => format!("does not read {from}{}", self.onward(root)),
        };
        // Who stands between them, if that is not among those who waited.
        let between = root.way.iter().skip(1).filter(|step| {
            let same = |name: &ThreadName| name.pid == step.name.pid;
            !same(root.name) && !behind.iter().any(|one| same(one.name))
        });
        let mut between: Vec<String> = between.map(|step| self.who(step.name)).collect();
        between.dedup();
        between.truncate(MAX_NAMES);
        let through = match between.is_empty() {
            true => String::new(),
            false => format!(" through {}", listed(&between)),
        };
        Title::from(format!("{who} {reads}")).with(format!(
            ": {list} waited behind it{through}, up to {}",
            duration(root.longest())
        ))
    }
}

/// `nginx, 4 threads of python3 and 2 other programs`, and whether these are several.
fn listed_programs(programs: &Programs) -> (String, bool) {
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
    let several = programs.len() > 1 || programs.iter().any(|(_, count, _)| *count > 1);
    (listed(&names), several)
}

/// A thing with its kind before it, if it has a name.
fn what(name: &str, of: &str) -> String {
    match name {
        "" => of.to_owned(),
        name => format!("{of} {name}"),
    }
}

/// What stands before the name of a frozen file system, which may be known by the path of a file on it alone.
fn frozen_at(root: &Root<'_>) -> &'static str {
    match root.resource {
        Some(resource) if resource.detail.mount.is_none() && !resource.name.is_empty() => {
            "The file system of"
        }
        _ => "File system",
    }
}

/// The address of a socket.
fn address(resource: Option<&Resource>) -> Option<&str> {
    let resource = resource.filter(|resource| resource.kind == ResourceKind::Socket)?;
    let name = plain(&resource.name);
    (!name.is_empty()).then_some(name)
}

/// An address without its protocol.
fn plain(name: &str) -> &str {
    let without = name
        .strip_suffix(" (tcp)")
        .or_else(|| name.strip_suffix(" (udp)"));
    without.unwrap_or(name)
}

fn is_lock(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::LockFutex | Cause::LockFile | Cause::LockKernel | Cause::LockMonitor | Cause::LockSysv
    )
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
