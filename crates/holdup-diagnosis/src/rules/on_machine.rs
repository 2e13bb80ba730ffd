//! Findings of a whole machine: which of them stand for themselves, who depends on these, and in which order a person reads them.
//!
//! The problem: a share of all threads' time is no trouble on a machine, and only whom somebody waits behind is. But a server without
//! descriptors, a pool of which all workers wait, and sessions behind a row are known to be trouble by what the kernel and the programs
//! keep themselves, where no way of waits leads to a root. The choice: such a finding is a root like those, unless what is wrong there is
//! said by a root already, or by another one of them that it waits for. In: findings of all rules. Out: the same as a machine has them, with those
//! who wait behind each such one.

use super::list::RuleId;
use super::roots_said::Words;
use super::{Check, Place, Rule, Run, duration, say};
use crate::machine::behind::Ways;
use crate::machine::names::Names;
use crate::machine::roots::{MIN_LONGEST_NS, Waiter};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::{Confidence, Evidence, Finding, Severity};
use std::collections::BTreeSet;

/// Rules whose finding says by itself that somebody cannot go on, and because of whom, whatever share of the time that is.
const STAND_ALONE: [RuleId; 2] = [RuleId::Deadlock, RuleId::LockOwnerGone];

/// Rules about a whole service that stand for a root.
const STAND_FOR_ROOT: [RuleId; 9] = [
    RuleId::TaskLimitReached,
    RuleId::ConnectionRefusedRetried,
    RuleId::DatabaseLockHeld,
    RuleId::WholePoolWaits,
    RuleId::ClientsNotAccepted,
    RuleId::NoWorkerLeft,
    RuleId::ConnectionPoolEmpty,
    RuleId::WorkerPoolExhausted,
    RuleId::NoSpaceForWrites,
];

/// Rules about one program that stand for a root if somebody waited for it, or it waited itself, for a second at once: what they prove ends by
/// itself only if somebody else does something.
const STAND_IF_LONG: [RuleId; 7] = [
    RuleId::ConnectionCut,
    RuleId::MessageQueueFull,
    RuleId::SqliteBusy,
    RuleId::LogSocketFull,
    RuleId::UnixQueueFull,
    RuleId::LocalPortsUsedUp,
    RuleId::OutOfMemoryPaused,
];

fn stands(id: RuleId) -> bool {
    STAND_IF_LONG.contains(&id)
}

/// Whether a rule's finding is trouble of a machine if one thread stands so.
pub(super) fn judges_one_thread(id: RuleId) -> bool {
    stands(id) || id == RuleId::ConnectionRefusedRetried
}

/// A finding about a whole service.
struct Service<'a> {
    /// Its place among the findings.
    at: usize,
    pids: BTreeSet<u32>,
    behind: Vec<Waiter<'a>>,
}

impl Service<'_> {
    /// Time of those who wait.
    fn held(&self) -> Ns {
        let each = self.behind.iter().map(|one| one.ns);
        each.fold(0, Ns::saturating_add)
    }

    fn keeps(&self, other: &Service<'_>) -> bool {
        self.behind.iter().any(|one| other.pids.contains(&one.name.pid))
    }
}

fn is_root(rule: &Rule) -> bool {
    matches!(rule.check, Check::Machine(..))
}

/// Whether a note says that clients stand before a server with nobody free for them, or that a program has no process left. Alone that may be
/// meant so; on a machine it is known whether somebody waited there for long.
fn may_keep_clients(rule: &Rule, finding: &Finding) -> bool {
    matches!(rule.id, RuleId::ClientsNotAccepted | RuleId::TaskLimitReached)
        && finding.severity == Severity::Note
        && finding.confidence != Confidence::Suspect
        && finding.asker.name.pid != 0
}

/// Whether the program that a finding is about waited so for a second at once.
fn waited_long(run: &Run<'_>, finding: &Finding) -> bool {
    run.attributed.waits.iter().any(|wait| {
        wait.cause == finding.cause
            && wait.asker.name.pid == finding.asker.name.pid
            && wait.max.min(wait.ns) >= MIN_LONGEST_NS
    })
}

/// Longest mean sleep between two attempts that shows that a program cannot go on until one succeeds, nanoseconds: whoever can do without the
/// other side waits for longer.
const HASTE_NS: Ns = 2_000_000_000;

/// Whether a program does little but try again and again.
fn is_haste(run: &Run<'_>, finding: &Finding) -> bool {
    let theirs = run.attributed.connections.iter();
    let mut theirs = theirs.filter(|peer| peer.by.pid == finding.asker.name.pid && peer.refused > 0);
    theirs.any(|peer| peer.slept_ns / peer.refused < HASTE_NS)
}

/// Whether a finding says what is wrong with a service. A suspicion does not: of a hundred programs one may have all its threads asleep at that
/// moment.
fn is_of_service(rule: &Rule, finding: &Finding) -> bool {
    (STAND_FOR_ROOT.contains(&rule.id) || stands(rule.id))
        && finding.severity > Severity::Note
        && finding.confidence != Confidence::Suspect
        && finding.asker.name.pid != 0
}

/// These findings as a machine has them.
pub(super) fn judged<'r>(run: &Run<'_>, mut found: Vec<(&'r Rule, Finding)>) -> Vec<(&'r Rule, Finding)> {
    let any = found
        .iter()
        .any(|(rule, finding)| is_of_service(rule, finding) || may_keep_clients(rule, finding));
    let mut led = BTreeSet::new();
    if any {
        let ways = Ways::of(run.attributed, run.facts);
        let services = services(run, &ways, &found);
        for service in leading(&services) {
            led.insert(service.at);
            let names = Names::of(run.facts);
            let words = Words {
                names,
                facts: run.facts,
                waits: &run.attributed.waits,
            };
            let (_, finding) = &mut found[service.at];
            finding.severity = finding.severity.max(Severity::Warning);
            tell(finding, service, &words);
        }
    }
    for (at, (rule, finding)) in found.iter_mut().enumerate() {
        let alone = STAND_ALONE.contains(&rule.id) && finding.confidence != Confidence::Suspect;
        // What a root tells already, or whoever has others behind it.
        let counts = finding.ns.is_some() || rule.id == RuleId::NoSpaceForWrites;
        if !is_root(rule) && !alone && !led.contains(&at) && counts {
            finding.severity = Severity::Note;
        }
    }
    found.retain(|(rule, finding)| finding.severity != Severity::Note || !is_ordinary(rule, finding));
    found
}

/// Findings about services of which no root says what is wrong.
fn services<'a>(run: &Run<'a>, ways: &Ways<'a>, found: &[(&Rule, Finding)]) -> Vec<Service<'a>> {
    let of_service = |(at, (rule, finding)): (usize, &(&Rule, Finding))| {
        // Why its threads sleep says more than that nobody is free.
        let own = finding.asker.name.pid;
        let says_why = |(of, other): &(&Rule, Finding)| {
            let of_limit = of.id == RuleId::TaskLimitReached && rule.id != RuleId::TaskLimitReached;
            (is_of_service(of, other) || of_limit) && other.asker.name.pid == own
        };
        let may_keep = may_keep_clients(rule, finding) && !found.iter().any(says_why);
        if !is_of_service(rule, finding) && !may_keep {
            return None;
        }
        let (pids, except) = processes(run, rule, finding);
        let met = ways.met(&pids);
        let explained = found
            .iter()
            .any(|(rule, root)| is_root(rule) && (pids.contains(&root.asker.name.pid) || is_met(root, &met)));
        let behind = ways.behind(&pids, &except);
        // A program that tries a closed port now and then may do so for ever, if nobody waits for it.
        let needs_waiters =
            may_keep || (rule.id == RuleId::ConnectionRefusedRetried && !is_haste(run, finding));
        let is_short = stands(rule.id) && !waited_long(run, finding);
        (!explained && !((needs_waiters || is_short) && behind.is_empty())).then_some(Service {
            at,
            pids,
            behind,
        })
    };
    found.iter().enumerate().filter_map(of_service).collect()
}

/// Whether a service waits, at last, for what a root is. All programs have the CPUs in common.
fn is_met(root: &Finding, met: &[(Cause, Option<&str>)]) -> bool {
    met.iter().any(|(cause, of)| {
        *cause == root.cause
            && match cause {
                Cause::SchedRunqueue => false,
                // Two that wait for an answer need not wait for the same.
                Cause::NetReceive
                | Cause::NetConnect
                | Cause::LockFutex
                | Cause::IpcPipe
                | Cause::IpcUnix => of.is_some_and(|of| !of.is_empty() && of == root.resource.name),
                _ => true,
            }
    })
}

/// The processes that a finding is about, and those that keep them from going on, where they are clients as well.
fn processes(run: &Run<'_>, rule: &Rule, finding: &Finding) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let own = finding.asker.name.pid;
    let mut pids = BTreeSet::from([own]);
    let mut except = BTreeSet::new();
    match rule.id {
        RuleId::DatabaseLockHeld => {
            let sessions = &run.facts.lock_sessions;
            let server = sessions.iter().find(|one| one.pid == own).map(|one| one.server);
            let ours = || sessions.iter().filter(|one| Some(one.server) == server);
            let waiting = ours().filter(|one| one.waits.is_some());
            pids.extend(waiting.map(|one| one.pid));
            let free = ours().filter(|one| one.waits.is_none());
            except.extend(free.filter_map(|one| one.client.as_ref()?.pid));
        }
        // Who is bound by it cannot go on, whichever of them is named.
        RuleId::TaskLimitReached => {
            let limits = run.facts.task_limits.iter().flatten();
            let mut limits = limits.filter(|limit| limit.binds.contains(&own));
            pids.extend(
                limits
                    .next()
                    .into_iter()
                    .flat_map(|limit| limit.binds.iter().copied()),
            );
        }
        _ => {
            let workers = run.facts.workers.iter();
            let workers = workers.filter(|one| one.pids.contains(&own));
            pids.extend(workers.flat_map(|one| one.pids.iter().copied()));
        }
    }
    (pids, except)
}

/// Those of them that wait for no other one; of two that wait for each other, the one that more wait for.
fn leading<'s, 'a>(services: &'s [Service<'a>]) -> Vec<&'s Service<'a>> {
    let before = |one: &Service<'_>, other: &Service<'_>| {
        one.keeps(other) && (!other.keeps(one) || (one.held(), other.at) > (other.held(), one.at))
    };
    let kept = |one: &&Service<'_>| {
        !services
            .iter()
            .any(|other| other.at != one.at && before(other, one))
    };
    services.iter().filter(kept).collect()
}

/// Says in a finding who waits behind it.
fn tell<'a>(finding: &mut Finding, service: &Service<'a>, words: &Words<'a>) {
    let Some((sentence, programs)) = words.behind(&service.behind) else {
        return;
    };
    finding.title.push(format!("; {sentence}"));
    let longest = service.behind.iter().map(|one| one.longest).max().unwrap_or(0);
    let each: Vec<String> = programs
        .iter()
        .map(|(name, count, ns)| {
            let count = say::several(*count, "thread");
            format!("{} ({count}, {})", say::name_or(name, "a process"), duration(*ns))
        })
        .collect();
    let waited = Evidence::new(
        format!(
            "these waited behind it, up to {} at a time: {}",
            duration(longest),
            each.join(", ")
        ),
        say::SCHEDULER,
    );
    *finding = finding.clone().and(waited);
}

/// Whether a finding of a whole machine tells of what all programs do until something comes. Where somebody waits for one that does so, and
/// should not, that is another finding.
fn is_ordinary(rule: &Rule, finding: &Finding) -> bool {
    let cause = finding.cause;
    // Who is waited for is reported with the roots, for those that somebody waits behind.
    let is_way = rule.place == Place::Intermediate;
    finding.ns.is_some() && (is_way || cause.rests() || cause == Cause::PollWait)
}

/// Puts findings about services among the roots, which have an order of their own: before the first one that fewer waited for, or
/// that all programs have in common.
pub(super) fn ordered(found: Vec<(&Rule, Finding)>) -> Vec<(&Rule, Finding)> {
    let (services, mut found): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(rule, finding)| is_of_service(rule, finding));
    for (rule, service) in services.into_iter().rev() {
        let before = |(rule, other): &(&Rule, Finding)| {
            other.severity < service.severity
                || !is_root(rule)
                || other.cause == Cause::SchedRunqueue
                || other.ns < service.ns
        };
        let at = found.iter().position(before).unwrap_or(found.len());
        found.insert(at, (rule, service));
    }
    found
}
