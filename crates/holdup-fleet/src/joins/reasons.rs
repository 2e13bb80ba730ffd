//! What a process did while somebody waited for it.
//!
//! In: waits of all hosts, each with the process that it is for where that is on another host. Out: for a process the largest thing that it did or waited
//! for. Threads that are known to serve the one who asks come first; of the others, what a program does at rest is no reason. What is
//! too short to explain the wait is none either.

use super::sockets::{Server, peer};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::ResourceKind;
use holdup_model::report::{ReachedBy, Wait};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// How much of a wait the reason for it must be, one part in this many.
const LEAST_PART: Ns = 2;

/// Waits, and whom they are for.
#[derive(Debug)]
pub(super) struct Reasons<'a> {
    waits: &'a [Wait],
    servers: BTreeMap<usize, Server<'a>>,
    of_process: BTreeMap<(&'a str, u32), Vec<usize>>,
}

/// Waits of one process for the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Which, the longest first.
    pub(super) waits: Vec<usize>,
    /// All of them.
    pub(super) ns: Ns,
    /// Those of the thread that waited longest.
    pub(super) of_thread: Ns,
    /// Whether they are of threads that are known to serve the one who asked.
    pub(super) serves: bool,
}

/// What tells one thing that is waited for from another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing<'a> {
    Peer(SocketAddr),
    Cpu(Cause),
    Resource(Cause, ResourceKind, &'a str),
}

impl<'a> Reasons<'a> {
    pub(super) fn of(waits: &'a [Wait], server: impl Fn(&'a Wait) -> Option<Server<'a>>) -> Reasons<'a> {
        let mut of_process: BTreeMap<(&str, u32), Vec<usize>> = BTreeMap::new();
        let mut servers = BTreeMap::new();
        for (at, wait) in waits.iter().enumerate() {
            if let Some(host) = wait.host.as_deref() {
                of_process.entry((host, wait.asker.pid)).or_default().push(at);
            }
            if let Some(server) = server(wait) {
                servers.insert(at, server);
            }
        }
        Reasons {
            waits,
            servers,
            of_process,
        }
    }

    pub(super) fn wait(&self, at: usize) -> &'a Wait {
        &self.waits[at]
    }

    /// Whom a wait is for.
    pub(super) fn server(&self, at: usize) -> Option<&Server<'a>> {
        self.servers.get(&at)
    }

    /// Whom waits of one process for one address are for: each connection may be served by a process of its own.
    pub(super) fn server_of(&self, group: &Group) -> Option<Server<'a>> {
        let mut all = group.waits.iter().filter_map(|at| self.server(*at));
        let mut server = all.next()?.clone();
        for other in all.filter(|other| other.host == server.host && other.process == server.process) {
            server.pids.extend(&other.pids);
            server.serving.extend(&other.serving);
            server.by = server.by.max(other.by);
        }
        Some(server)
    }

    /// Waits for a process of another host.
    pub(super) fn joined(&self) -> impl Iterator<Item = usize> {
        self.servers.keys().copied()
    }

    /// Processes that wait for one of another host: host and process.
    pub(super) fn askers(&self) -> BTreeSet<(&'a str, u32)> {
        let of = |at: usize| Some((self.wait(at).host.as_deref()?, self.wait(at).asker.pid));
        self.joined().filter_map(of).collect()
    }

    /// Waits as one.
    pub(super) fn group(&self, mut waits: Vec<usize>) -> Group {
        waits.sort_by_key(|at| std::cmp::Reverse(self.wait(*at).ns));
        let mut threads: BTreeMap<(u32, u32), Ns> = BTreeMap::new();
        for at in &waits {
            let wait = self.wait(*at);
            let sum = threads.entry((wait.asker.pid, wait.asker.tid)).or_default();
            *sum = sum.saturating_add(wait.ns);
        }
        Group {
            waits,
            ns: threads.values().copied().fold(0, Ns::saturating_add),
            of_thread: threads.values().copied().max().unwrap_or_default(),
            serves: false,
        }
    }

    /// What a process did most, resting apart.
    pub(super) fn most(&self, host: &'a str, pid: u32) -> Option<Group> {
        self.largest(host, &BTreeSet::from([pid]), |wait| !wait.cause.rests())
    }

    /// All that a process waits for at an address of another host.
    pub(super) fn for_peer(&self, host: &'a str, pid: u32, at: SocketAddr) -> Option<Group> {
        let all = self.of_process.get(&(host, pid))?.iter().copied();
        let waits: Vec<usize> = all
            .filter(|one| self.server(*one).is_some_and(|server| server.at == at))
            .collect();
        (!waits.is_empty()).then(|| self.group(waits))
    }

    /// Why somebody had to wait for a process for so long.
    pub(super) fn reason(&self, server: &Server<'a>, waited: &Group) -> Option<Group> {
        // Threads that serve the address, and not this connection, may all have served others.
        let of_asker = |group: &Group| match server.by {
            ReachedBy::FourTuple => group.ns,
            _ => group.of_thread,
        };
        let enough = |group: &Group| of_asker(group) >= waited.of_thread / LEAST_PART;
        let serves = |wait: &Wait| {
            let thread = (wait.asker.pid, wait.asker.tid);
            // A thread that sleeps between a question and its answer does not rest.
            server.serving.contains(&thread) && !matches!(wait.cause, Cause::Idle | Cause::NetAccept)
        };
        let serving = self.largest(server.host, &server.pids, serves).filter(enough);
        if let Some(group) = serving {
            return Some(Group {
                serves: true,
                ..group
            });
        }
        self.largest(server.host, &server.pids, |wait| !wait.cause.rests())
            .filter(enough)
    }

    fn largest(&self, host: &'a str, pids: &BTreeSet<u32>, counts: impl Fn(&Wait) -> bool) -> Option<Group> {
        let mut things: BTreeMap<Thing<'a>, Vec<usize>> = BTreeMap::new();
        let all = pids.iter().filter_map(|pid| self.of_process.get(&(host, *pid)));
        for at in all.flatten().copied() {
            let wait = self.wait(at);
            if counts(wait) && wait.cause != Cause::Unknown {
                things.entry(self.thing(at)).or_default().push(at);
            }
        }
        let groups = things.into_values().map(|waits| self.group(waits));
        groups.max_by_key(|group| group.ns)
    }

    fn thing(&self, at: usize) -> Thing<'a> {
        let wait = self.wait(at);
        match peer(wait) {
            Some(address) if self.server(at).is_some() => Thing::Peer(address),
            _ if wait.cause.on_cpu() || wait.cause == Cause::SchedRunqueue => Thing::Cpu(wait.cause),
            _ => Thing::Resource(wait.cause, wait.resource.kind, &wait.resource.name),
        }
    }
}
