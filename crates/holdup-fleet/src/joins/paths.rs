//! From a process that waits, over hosts, to where its time really went.
//!
//! In: waits, whom each is for, and the findings of hosts. Out: paths that end where some host has found trouble. A path that comes back to where it
//! was says nothing of where it began, and is left out. So is one of which no host finds anything wrong: programs that ask others
//! wait all the time.

use super::reasons::{Group, Reasons};
use super::sockets::{Server, peer};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::Severity;
use holdup_model::report::{Finding, FleetPath, PathStep, Reached, ReachedBy, Wait};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Steps from one host to another.
const MAX_HOPS: usize = 8;

/// A path begins with no less than this, nanoseconds: what is shorter troubles nobody.
const LEAST_START_NS: Ns = 100_000_000;

/// Paths that are reported; what ends elsewhere stays with the findings of its hosts.
const MAX_PATHS: usize = 50;

/// Where a path ends: host, process, and what that did.
type End<'a> = (&'a str, u32, Option<Cause>);

/// A process on a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step<'a> {
    pub(super) host: &'a str,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) process: &'a str,
    /// What it did; `None`: nothing that explains the wait for it.
    pub(super) cause: Option<Cause>,
    pub(super) ns: Ns,
    /// Its waits, the longest first; none of a link of a host's own chain.
    pub(super) waits: Vec<usize>,
    pub(super) wait: Option<&'a Wait>,
    pub(super) by: ReachedBy,
    pub(super) at: Option<SocketAddr>,
    /// Whether its time is of threads that are known to serve the one who asked.
    pub(super) serves: bool,
}

impl Step<'_> {
    fn reported(&self) -> PathStep {
        let name = self.wait.map(|wait| wait.resource.name.clone());
        PathStep {
            host: self.host.to_owned(),
            pid: self.pid,
            process: self.process.to_owned(),
            cause: self.cause,
            ns: self.ns,
            resource: name.filter(|name| !name.is_empty()),
            reached: Reached {
                by: self.by,
                address: self.at.map(|at| at.to_string()),
            },
        }
    }
}

/// Where a wait leads.
#[derive(Debug)]
pub(super) struct Followed<'a> {
    pub(super) steps: Vec<Step<'a>>,
    /// Whether it came back to a process that is in it already.
    pub(super) circle: bool,
}

/// Paths that end at the same place.
#[derive(Debug)]
pub(super) struct Found<'a> {
    /// The one over most hosts.
    pub(super) steps: Vec<Step<'a>>,
    /// The others.
    pub(super) others: Vec<Vec<Step<'a>>>,
    /// What hosts have found on it, worst first.
    pub(super) findings: Vec<&'a Finding>,
}

impl Found<'_> {
    /// As the report has it.
    pub(super) fn path(&self) -> FleetPath {
        FleetPath {
            steps: self.steps.iter().map(Step::reported).collect(),
            dependants: self.others.iter().map(|steps| steps[0].reported()).collect(),
        }
    }

    /// The worst of it.
    pub(super) fn severity(&self) -> Severity {
        let worst = self.findings.iter().map(|finding| finding.severity);
        worst.max().unwrap_or(Severity::Warning)
    }
}

/// Follows waits of a process.
pub(super) fn follow<'a>(reasons: &Reasons<'a>, start: Group) -> Followed<'a> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    let mut seen: BTreeSet<(&str, u32)> = BTreeSet::new();
    let mut next = Some((start, ReachedBy::Start, None));
    let mut hops = 0;
    while let Some((group, by, at)) = next.take() {
        let first = group.waits[0];
        steps.push(step(reasons.wait(first), &group, by, at));
        let Some(server) = reasons.server_of(&group) else {
            next = locally(reasons, &group, &mut steps).map(|group| (group, ReachedBy::Host, None));
            continue;
        };
        seen.extend(steps.last().map(|last| (last.host, last.pid)));
        let back = server.pids.iter().any(|pid| seen.contains(&(server.host, *pid)));
        if back || hops == MAX_HOPS {
            return Followed { steps, circle: back };
        }
        hops += 1;
        match reasons.reason(&server, &group) {
            Some(group) => next = Some((group, server.by, Some(server.at))),
            None => steps.extend(without_reason(&server)),
        }
    }
    Followed { steps, circle: false }
}

fn step<'a>(wait: &'a Wait, group: &Group, by: ReachedBy, at: Option<SocketAddr>) -> Step<'a> {
    Step {
        host: wait.host.as_deref().unwrap_or_default(),
        pid: wait.asker.pid,
        tid: wait.asker.tid,
        process: &wait.asker.process,
        cause: Some(wait.cause),
        ns: group.ns,
        waits: group.waits.clone(),
        wait: Some(wait),
        by,
        at,
        serves: group.serves,
    }
}

/// A process of which nothing explains the wait for it.
fn without_reason<'a>(server: &Server<'a>) -> Option<Step<'a>> {
    let pid = *server.pids.first()?;
    let thread = server.serving.first().filter(|(of, _)| *of == pid);
    Some(Step {
        host: server.host,
        pid,
        tid: thread.map_or(pid, |(_, tid)| *tid),
        process: server.process,
        cause: None,
        ns: 0,
        waits: vec![],
        wait: None,
        by: server.by,
        at: Some(server.at),
        serves: false,
    })
}

/// Goes on on the same host, by the chain that its own report has; and where that ends at a wait for another host, with that.
fn locally<'a>(reasons: &Reasons<'a>, group: &Group, steps: &mut Vec<Step<'a>>) -> Option<Group> {
    let chained = group.waits.iter().map(|at| reasons.wait(*at));
    let wait = chained.max_by_key(|wait| (wait.chain.len() > 1, wait.ns))?;
    let host = wait.host.as_deref()?;
    let links = wait.chain.get(1..).unwrap_or_default();
    for link in links {
        steps.push(Step {
            host,
            pid: link.pid,
            tid: link.tid,
            process: &link.process,
            cause: Some(link.cause),
            ns: link.ns,
            waits: vec![],
            wait: None,
            by: ReachedBy::Host,
            at: None,
            serves: group.serves,
        });
    }
    let last = links.last()?;
    let own = reasons.most(host, last.pid).filter(|group| {
        let asks = &reasons.wait(group.waits[0]).asker;
        let is_it = reasons.wait(group.waits[0]).cause == last.cause && asks.tid == last.tid;
        is_it && reasons.server(group.waits[0]).is_some()
    })?;
    // It is the same process: the link is replaced by what it waits for.
    steps.pop();
    Some(own)
}

/// Paths that end where a host has found trouble, the worst first.
pub(super) fn found<'a>(reasons: &Reasons<'a>, findings: &'a [Finding]) -> Vec<Found<'a>> {
    let followed = starts(reasons, findings)
        .into_iter()
        .map(|start| follow(reasons, start))
        .filter(|followed| !followed.circle && followed.steps.len() > 1);
    let all: Vec<Vec<Step<'a>>> = followed.map(|followed| followed.steps).collect();
    let later = all.iter().flat_map(|steps| &steps[1..]);
    let passed: BTreeSet<(&str, u32)> = later.map(|step| (step.host, step.pid)).collect();
    let mut by_end: BTreeMap<End<'_>, Vec<Vec<Step<'a>>>> = BTreeMap::new();
    for steps in all {
        let (first, last) = (&steps[0], &steps[steps.len() - 1]);
        if !passed.contains(&(first.host, first.pid)) {
            let end = (last.host, last.pid, last.cause);
            by_end.entry(end).or_default().push(steps);
        }
    }
    let found = by_end.into_values().filter_map(|paths| together(paths, findings));
    let mut found: Vec<Found<'a>> = found.collect();
    found.sort_by_key(|one| std::cmp::Reverse((one.severity(), one.steps[0].ns)));
    found.truncate(MAX_PATHS);
    found
}

/// Processes that mostly wait for another host, and those that their host's finding says wait for it.
fn starts(reasons: &Reasons<'_>, findings: &[Finding]) -> Vec<Group> {
    let mut told: BTreeMap<(&str, u32), SocketAddr> = BTreeMap::new();
    for finding in findings.iter().filter(|one| is_trouble(one)) {
        let address = match &finding.resource.detail.peer {
            Some(holdup_model::attributed::Peer::Address(address)) => Some(*address),
            _ => None,
        };
        if let (Some(host), Some(address)) = (finding.host.as_deref(), address) {
            told.entry((host, finding.asker.pid)).or_insert(address);
        }
    }
    let mut groups = Vec::new();
    for (host, pid) in reasons.askers() {
        let named = told.get(&(host, pid));
        let named = named.and_then(|at| reasons.for_peer(host, pid, *at));
        let mostly = || {
            let most = reasons.most(host, pid)?;
            reasons.server(most.waits[0]).map(|_| most)
        };
        let start = named.or_else(mostly);
        groups.extend(start.filter(|group| group.ns >= LEAST_START_NS));
    }
    groups
}

/// Those that end at one place, where some host has found something wrong on the way.
fn together<'a>(mut paths: Vec<Vec<Step<'a>>>, findings: &'a [Finding]) -> Option<Found<'a>> {
    let hosts = |steps: &[Step<'_>]| {
        let all: BTreeSet<&str> = steps.iter().map(|step| step.host).collect();
        all.len()
    };
    paths.sort_by_key(|steps| std::cmp::Reverse((hosts(steps), steps[0].ns)));
    let on_it = |finding: &&Finding| paths.iter().flatten().any(|step| is_about(finding, step));
    let mut findings: Vec<&Finding> = findings
        .iter()
        .filter(|one| is_trouble(one))
        .filter(on_it)
        .collect();
    // What is nearest to the end says most.
    let end = paths.first()?.last()?.host;
    findings.sort_by_key(|one| (one.host.as_deref() != Some(end), std::cmp::Reverse(one.severity)));
    let mut paths = paths.into_iter();
    let steps = paths.next()?;
    (!findings.is_empty()).then(|| Found {
        steps,
        others: paths.collect(),
        findings,
    })
}

fn is_trouble(finding: &Finding) -> bool {
    finding.severity != Severity::Note
}

/// Whether a host's finding is about what a process on the path did.
fn is_about(finding: &Finding, step: &Step<'_>) -> bool {
    if finding.host.as_deref() != Some(step.host) || Some(finding.cause) != step.cause {
        return false;
    }
    let found = &finding.resource;
    let same_thing = step.wait.is_some_and(|wait| {
        let (own, its) = (&wait.resource, &found.detail.device);
        let named = !own.name.is_empty() && own.kind == found.kind && own.name == found.name;
        let peers = peer(wait).is_some() && wait.resource.detail.peer == found.detail.peer;
        named || peers || its.is_some() && own.detail.device == *its
    });
    finding.asker.pid == step.pid && !is_elsewhere(finding, step) || same_thing
}

/// Whether both are about a peer, and not the same one.
fn is_elsewhere(finding: &Finding, step: &Step<'_>) -> bool {
    let own = step.wait.and_then(|wait| wait.resource.detail.peer.as_ref());
    let its = finding.resource.detail.peer.as_ref();
    own.is_some() && its.is_some() && own != its
}
