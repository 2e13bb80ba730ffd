//! Where the time of a way went: what stands at its end, and whether that holds anybody up.
//!
//! In: a way. Out: an end, or nothing where the end is ordinary work: a program that runs, sleeps or waits for whatever comes holds up
//! nobody who just waits for it; one that has a lock does.

use super::onward::{self, Onward};
use super::path::{Graph, Step};
use super::room;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, Peer, Resource, ResourceKind, ThreadName};

/// By what ends are one and the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A lock, and the process that has it.
    Lock(u32),
    /// A process that is stopped or frozen.
    Halted(u32),
    /// A thread that ran while others waited for its answer.
    Busy(u32),
    /// A disk.
    Disk(String),
    /// File systems that a process or a server answers for.
    Files(String),
    /// Memory, or a cgroup's limit of it.
    Memory(String),
    /// The CPUs.
    Cpus,
    /// A cgroup's CPU quota.
    Quota(String),
    /// A peer that does not answer.
    Silent(String),
    /// A process that does not read what others write to it.
    Reader(u32),
    /// The same on another machine, by its address.
    Unread(String),
    /// Anything else in the kernel.
    Kernel(Cause),
}

/// The end of a way.
#[derive(Debug, Clone)]
pub(crate) struct End<'a> {
    pub(crate) key: Key,
    /// The thread at the end.
    pub(crate) name: &'a ThreadName,
    /// What it was in.
    pub(crate) cause: Option<Cause>,
    /// What it waited for.
    pub(crate) resource: Option<&'a Resource>,
    /// Of a lock: the thread that waits for it directly, and for what.
    pub(crate) lock: Option<Lock<'a>>,
    /// How many steps the waiter is away from the end; 0 of the end itself.
    pub(crate) steps: usize,
    /// What the end itself waited for in turn, as far as it is known.
    pub(crate) beyond: Option<Step<'a>>,
    /// Where that leads to.
    pub(crate) onward: Option<Onward<'a>>,
    /// Of a process that does not read: what those are in that write to it.
    pub(crate) awaited: Option<Cause>,
    /// How long the end was so.
    pub(crate) ns: Ns,
    /// Whether it was asked to do something by whoever waits for it directly, or has what that one needs: somebody depends on it.
    pub(crate) asked: bool,
}

/// A lock that is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lock<'a> {
    pub(crate) cause: Cause,
    pub(crate) resource: Option<&'a Resource>,
    /// Whether it is one of a database's own, between its sessions.
    pub(crate) session: bool,
}

/// What stands at the end of a way.
pub(crate) fn of<'a>(graph: &Graph<'a>, way: &[Step<'a>]) -> Option<End<'a>> {
    let last = way.len().checked_sub(1)?;
    let end = way.get(last)?;
    let row = end.cause.and_then(|cause| graph.row(end.id(), cause));
    let resource = row.map(|row| &row.resource);
    let asked = last > 0 && way.get(last - 1).and_then(|step| step.cause).is_some_and(depends);
    let plain = |key| End {
        key,
        name: end.name,
        cause: end.cause,
        resource,
        lock: None,
        steps: last,
        beyond: None,
        onward: None,
        awaited: None,
        ns: end.ns,
        asked,
    };
    // Whoever has the lock that is waited for last is what one can change, whatever it does.
    let locked = (0..last).rev().find(|at| {
        let (Some(waiter), Some(next)) = (way.get(*at), way.get(at + 1)) else {
            return false;
        };
        graph.has_what_is_awaited(waiter, next)
    });
    let locked = locked.map(|at| to_last_session(graph, way, at));
    let hard = end
        .cause
        .and_then(|cause| hard(graph, cause, resource, end.name.pid))
        .filter(|_| last == 0 || end.cause != Some(Cause::SchedRunqueue) || end.ns >= MIN_QUEUED_NS);
    if hard.is_none()
        && let Some(owed) = owed_files(graph, way, locked)
    {
        return Some(owed);
    }
    if let Some(at) = locked {
        // A lock before a disk or a stopped process: those are the root, unless the one that has it is directly there.
        if let Some(key) = &hard
            && at + 1 < last
        {
            return Some(plain(key.clone()));
        }
        if hard.is_some() && !matches!(hard, Some(Key::Halted(_) | Key::Kernel(_))) {
            return hard.map(plain);
        }
        let (waiter, holder) = (&way[at], &way[at + 1]);
        let session = locked_by_session(graph, way, at);
        let row = match session {
            // Of several that queue, the lock of any that was looked at.
            true => way
                .iter()
                .take(at + 1)
                .rev()
                .find_map(|step| graph.lock_of_session(step.id())),
            false => graph.row(waiter.id(), waiter.cause?),
        };
        let cause = row.map(|row| row.cause).or(waiter.cause)?;
        return Some(End {
            key: match hard {
                Some(Key::Halted(pid)) => Key::Halted(pid),
                _ => Key::Lock(holder.name.pid),
            },
            name: holder.name,
            cause: holder.cause,
            resource: None,
            lock: Some(Lock {
                cause,
                resource: row.map(|row| &row.resource),
                session,
            }),
            steps: at + 1,
            beyond: way.get(at + 2).copied(),
            onward: onward::of(graph, way, at + 1),
            awaited: None,
            ns: holder.ns,
            asked: true,
        });
    }
    if works_between(graph, way) {
        return Some(plain(Key::Busy(end.name.tid)));
    }
    if let Some(key) = hard {
        return Some(plain(key));
    }
    if let Some(reader) = room::reader(graph, way) {
        return Some(reader);
    }
    let asks = last > 0 && way.get(last - 1).is_some_and(asks);
    if let Some(row) = row.filter(|row| asks && owes_answer(row)) {
        return Some(plain(Key::Silent(row.resource.name.clone())));
    }
    let runs = end.cause.is_some_and(Cause::on_cpu);
    let own = last > 0 && way.get(last - 1).is_some_and(|step| is_pair(graph, step));
    (runs && asks && !own).then(|| plain(Key::Busy(end.name.tid)))
}

/// A single wait for an answer from which the server that has run meanwhile is what takes so long, however often it had to queue for a CPU.
const MIN_WORKED_ON_NS: Ns = 10_000_000_000;

/// Part of such a wait for which the server must have run: with less it is the CPU that it lacks.
const RAN_PART: Ns = 5;

/// Whether the last one on a way, whom the one before has asked, works on that for long, and queues for a CPU between: others use CPUs, too,
/// and would not make an answer late by so much.
fn works_between(graph: &Graph<'_>, way: &[Step<'_>]) -> bool {
    let [.., waiter, server] = way else { return false };
    let queues = server.cause == Some(Cause::SchedRunqueue);
    if !queues || !asks(waiter) || is_pair(graph, waiter) || waiter.name.pid == server.name.pid {
        return false;
    }
    let row = waiter.cause.and_then(|cause| graph.row(waiter.id(), cause));
    let longest = row.map_or(0, |row| row.max.min(row.ns));
    // What other threads of the server run is for others.
    let its = graph.of_process(server.name.pid);
    let its = its.filter(|row| row.asker.name.tid == server.name.tid);
    let ran = its.filter(|row| row.cause.on_cpu());
    let ran = ran.map(|row| row.ns).fold(0, Ns::saturating_add);
    longest >= MIN_WORKED_ON_NS && ran.saturating_mul(RAN_PART) >= longest
}

/// Whether a thread waits at a socket without an address. Such a pair is passed on by inheritance, so both ends are of one program, and either
/// may wait for work from the other: a worker whose master computes does.
fn is_pair(graph: &Graph<'_>, step: &Step<'_>) -> bool {
    let row = (step.cause == Some(Cause::IpcUnix))
        .then(|| graph.row(step.id(), Cause::IpcUnix))
        .flatten();
    // The kernel shows a path, or an abstract address that begins with `@`.
    row.is_some_and(|row| !row.resource.name.starts_with(['/', '@']))
}

/// Whether a thread that waits so has asked for something.
fn asks(step: &Step<'_>) -> bool {
    matches!(
        step.cause,
        Some(Cause::NetReceive | Cause::IpcUnix | Cause::FsFuse)
    )
}

/// Whether a thread that waits so has asked for something, or needs something that another one has.
pub(super) fn depends(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::NetReceive
            | Cause::IpcUnix
            | Cause::FsFuse
            | Cause::LockFutex
            | Cause::LockFile
            | Cause::LockKernel
            | Cause::LockMonitor
    )
}

/// Whether a thread waits for a peer that is on no process of this machine: somebody else waits for it, so this is no waiting for work.
fn owes_answer(row: &AttributedWait) -> bool {
    row.cause == Cause::NetReceive && is_elsewhere(row)
}

/// Whether the other end of what is waited for is on no process of this machine.
pub(super) fn is_elsewhere(row: &AttributedWait) -> bool {
    let remote = match row.resource.detail.peer {
        Some(Peer::Address(address)) => !address.ip().is_loopback(),
        _ => false,
    };
    remote && row.holders.is_empty()
}

/// Files that a process or a server answers for. A call for one is over as soon as that has answered: unlike a connection, it is no waiting
/// for whatever may come. So it holds somebody up, even where nobody knows what the one that answers waits for. `locked`: where on the way
/// a lock is; what its holder waits for is the root.
fn owed_files<'a>(graph: &Graph<'a>, way: &[Step<'a>], locked: Option<usize>) -> Option<End<'a>> {
    let last = way.len().checked_sub(1)?;
    let at = way.iter().take(last).rposition(waits_for_files)?;
    if locked.is_some_and(|locked| locked > at) {
        return None;
    }
    let (waiter, server) = (way.get(at)?, way.get(at + 1)?);
    // What it runs for the file is its answer.
    if at + 1 == last && server.cause.is_some_and(Cause::on_cpu) {
        return None;
    }
    let resource = graph.row(waiter.id(), waiter.cause?).map(|row| &row.resource);
    Some(End {
        key: Key::Files(files(resource)),
        name: server.name,
        cause: waiter.cause,
        resource,
        lock: None,
        steps: at,
        beyond: way.get(at + 2).copied(),
        onward: onward::of(graph, way, at + 1),
        awaited: None,
        ns: waiter.ns,
        asked: true,
    })
}

/// Whether the lock before this step is one between sessions: directly, or as the last of several that queue.
fn locked_by_session(graph: &Graph<'_>, way: &[Step<'_>], at: usize) -> bool {
    let pairs = way.windows(2).take(at + 1);
    let ours = |pair: &[Step<'_>]| match pair {
        [waiter, next] => {
            graph.is_session(waiter, next)
                && way
                    .get(at)
                    .is_some_and(|last| last.name.process == next.name.process)
        }
        _ => false,
    };
    pairs.rev().any(ours)
}

/// Of sessions that queue behind each other, the last one that waits. Not each of them was looked at closely enough to say that it waits for a
/// lock; one that others wait for, and that waits for another session in turn, does.
fn to_last_session(graph: &Graph<'_>, way: &[Step<'_>], mut at: usize) -> usize {
    let session = |at: usize| match (way.get(at), way.get(at + 1)) {
        (Some(waiter), Some(next)) => graph.is_session(waiter, next),
        _ => false,
    };
    let queues = |at: usize| match (way.get(at), way.get(at + 1)) {
        (Some(waiter), Some(next)) => {
            let asleep = matches!(
                waiter.cause,
                Some(Cause::IpcQueue | Cause::LockFutex | Cause::PollWait)
            );
            asleep && waiter.name.process == next.name.process && waiter.name.pid != next.name.pid
        }
        _ => false,
    };
    if session(at) {
        while queues(at + 1) {
            at += 1;
        }
    }
    at
}

/// The protocol of sockets without a connection, as the kernel names it.
const DATAGRAM: &str = "udp";

/// Time in a queue for a CPU, on the way of a single wait, below which it is what any machine has.
const MIN_QUEUED_NS: Ns = 100_000_000;

/// Whether a cause holds up whoever is in it, whatever it does: something is slow, short, silent or stopped.
fn hard(graph: &Graph<'_>, cause: Cause, resource: Option<&Resource>, pid: u32) -> Option<Key> {
    let name = || resource.map_or_else(String::new, |resource| resource.name.clone());
    Some(match cause {
        Cause::ProcessStopped | Cause::ProcessFrozen => Key::Halted(pid),
        cause if is_of_disk(cause) => Key::Disk(disk(resource)),
        Cause::FsFuse | Cause::FsNetwork | Cause::FsFrozen => Key::Files(files(resource)),
        Cause::MemSwapin | Cause::MemReclaim | Cause::MemLimit => {
            let known = graph.short_in(pid).map(str::to_owned);
            // What the kernel looks for is not where it looks.
            let of_cgroup =
                resource.filter(|one| one.kind == ResourceKind::Cgroup || one.detail.cgroup.is_some());
            Key::Memory(known.unwrap_or_else(|| cgroup(of_cgroup)))
        }
        Cause::SchedRunqueue | Cause::SchedSteal => Key::Cpus,
        Cause::SchedThrottled => {
            let known = graph.throttled_by(pid).map(str::to_owned);
            Key::Quota(known.unwrap_or_else(|| cgroup(resource)))
        }
        Cause::NetDns | Cause::NetConnect => Key::Silent(name()),
        Cause::NetReceive if is_datagram(resource) => Key::Silent(name()),
        Cause::SecurityDecision | Cause::MemUserfault | Cause::RandomUnseeded => Key::Kernel(cause),
        _ => return None,
    })
}

/// Whether a disk is waited for.
pub(super) fn is_of_disk(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::DiskRead
            | Cause::DiskWrite
            | Cause::DiskSync
            | Cause::DiskWriteback
            | Cause::DiskDiscard
            | Cause::DiskJournal
            | Cause::MemPagefault
    )
}

/// Whether an answer to a datagram is waited for: there is no connection on which a peer may be silent for as long as it likes.
fn is_datagram(resource: Option<&Resource>) -> bool {
    resource.is_some_and(|resource| {
        let facts = &resource.detail;
        facts.protocol.as_deref() == Some(DATAGRAM) && facts.peer.is_some()
    })
}

/// Whether a server waits for datagrams of whoever sends some.
pub(super) fn takes_in(row: &AttributedWait) -> bool {
    let facts = &row.resource.detail;
    row.cause == Cause::NetReceive && facts.protocol.as_deref() == Some(DATAGRAM) && facts.peer.is_none()
}

/// The disk of a wait: its name, its number, or what it was waited for.
pub(super) fn disk(resource: Option<&Resource>) -> String {
    let Some(resource) = resource else {
        return String::new();
    };
    let facts = &resource.detail;
    let named = facts.device_name.clone().or_else(|| facts.disk.clone());
    let number = facts.device.as_ref().and_then(|disk| disk.number());
    named
        .or_else(|| number.map(|number| number.to_string()))
        .unwrap_or_default()
}

fn files(resource: Option<&Resource>) -> String {
    let mount = resource.and_then(|resource| resource.detail.mount.clone());
    mount.unwrap_or_else(|| resource.map_or_else(String::new, |resource| resource.name.clone()))
}

fn cgroup(resource: Option<&Resource>) -> String {
    let cgroup = resource.and_then(|resource| resource.detail.cgroup.clone());
    cgroup.unwrap_or_else(|| resource.map_or_else(String::new, |resource| resource.name.clone()))
}

/// Whether a thread waits for a file that somebody else answers for.
pub(super) fn waits_for_files(step: &Step<'_>) -> bool {
    matches!(step.cause, Some(Cause::FsFuse | Cause::FsNetwork))
}

/// The file system that a way leads through, if it goes on from there.
pub(super) fn through_files<'a>(graph: &Graph<'a>, way: &[Step<'a>]) -> Option<Key> {
    let last = way.len().checked_sub(1)?;
    let at = way.iter().take(last).rposition(waits_for_files)?;
    let row = graph.row(way[at].id(), way[at].cause?);
    Some(Key::Files(files(row.map(|row| &row.resource))))
}
