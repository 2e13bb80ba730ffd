//! Circles of threads that wait for each other's locks.
//!
//! The problem: that one thread waits for a lock of another which waits for a lock of the first proves a deadlock only
//! if both owned their locks at one and the same time, and an owner is read when a wait begins. The choice: each thread's
//! last wait for a lock with a known owner is kept, and when and by which futex waits were last ended, which is how a lock
//! with waiters changes hands. What runtimes tell is of the time at which they were looked at: all the owners of a circle must have
//! been seen at once. A circle counts if there was an instant at which all its threads waited and no lock in
//! it had been handed on since its owner was read. Whether it lasts, or a time limit or a signal broke it, is another
//! question: while it stood nobody in it could go on.
//!
//! In: each wait with an owner, each futex wait's end. Out: threads in a circle, and the time that it stood.

use super::chain::Link;
use super::holders::{Blocker, Who};
use super::task_table::{ProcessId, TaskTable};
use super::thread::Threads;
use holdup_evidence::{Cause, Ns, ThreadId};
use holdup_model::attributed::HowKnown;
use std::collections::HashMap;

/// Threads in a circle at most: a larger one is not looked for.
const MAX_CIRCLE: usize = 16;
/// Futexes of which the last hand-over is kept.
const MAX_FUTEXES: usize = 4096;

/// Which futex: the process that it is private to, and its address. Where processes share it, all count as one: each may
/// have it at another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Futex {
    /// Of one process.
    Private(ProcessId, u64),
    /// Of several.
    Shared,
}

/// A thread's wait for a lock with a known owner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocked {
    /// Who owned it when the wait began.
    pub(super) owner: Blocker,
    /// What the wait was for.
    pub(super) cause: Cause,
    /// When it began.
    pub(super) start: Ns,
    /// When it ended.
    pub(super) end: Ns,
    /// The time in which its owner is known to have had it.
    pub(super) owned: (Ns, Ns),
    /// Its site in the thread's ledger.
    pub(super) site: usize,
    /// The futex; `None` for other locks.
    pub(super) futex: Option<Futex>,
    /// Whether somebody let go of the lock, rather than that the wait was broken off or was still open.
    pub(super) let_go: bool,
}

/// When locks last changed hands.
#[derive(Debug, Clone, Default)]
pub(super) struct HandOvers {
    last: HashMap<Futex, Ns>,
    /// Nothing is known of those before.
    forgotten: Ns,
}

impl HandOvers {
    /// A wait for this futex was ended by someone who let go.
    pub(super) fn add(&mut self, futex: Futex, at: Ns) {
        if self.last.len() >= MAX_FUTEXES && !self.last.contains_key(&futex) {
            self.forgotten = self.last.values().copied().max().unwrap_or(self.forgotten);
            self.last.clear();
        }
        let last = self.last.entry(futex).or_insert(at);
        *last = at.max(*last);
    }

    /// Whether it may have changed hands after this instant.
    fn since(&self, futex: Futex, at: Ns) -> bool {
        self.forgotten > at || self.last.get(&futex).is_some_and(|last| *last > at)
    }
}

/// Threads that wait for each other, each for the next and the last for the first, and when all of them did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Circle {
    pub(super) members: Vec<ThreadId>,
    pub(super) from: Ns,
    pub(super) to: Ns,
}

/// What can be reported of a circle: only locks that name their owner.
pub(super) fn proves(how: HowKnown) -> bool {
    matches!(
        how,
        HowKnown::MutexOwner
            | HowKnown::PiFutex
            | HowKnown::RobustList
            | HowKnown::FileLock
            | HowKnown::Monitor
            | HowKnown::Interpreter
            | HowKnown::Vmstructs
    )
}

/// The circle that the last wait of this thread closes.
pub(super) fn find(threads: &Threads, hand_overs: &HandOvers, first: ThreadId) -> Option<Circle> {
    let mut circle = Circle {
        members: Vec::new(),
        from: 0,
        to: Ns::MAX,
    };
    let mut owned = (0, Ns::MAX);
    let mut next = first;
    loop {
        let thread = threads.get(&next)?;
        let blocked = thread.blocked.filter(|blocked| proves(blocked.owner.how))?;
        circle.from = circle.from.max(blocked.start);
        circle.to = circle.to.min(blocked.end);
        owned = (owned.0.max(blocked.owned.0), owned.1.min(blocked.owned.1));
        let handed_on = blocked
            .futex
            .is_some_and(|futex| hand_overs.since(futex, blocked.start));
        if circle.members.len() == MAX_CIRCLE || circle.from >= circle.to || owned.0 > owned.1 || handed_on {
            return None;
        }
        // A lock has one owner at a time: who seems to wait for it while the other does waited before or after.
        // A runtime's lock is not the futex that a thread sleeps at for it.
        let is_the_lock = matches!(
            blocked.owner.how,
            HowKnown::MutexOwner | HowKnown::PiFutex | HowKnown::RobustList
        );
        let private = |futex: &Futex| is_the_lock && matches!(futex, Futex::Private(..));
        let same = |member: &ThreadId| {
            let other = threads.get(member).and_then(|thread| thread.blocked);
            other.is_some_and(|other| other.futex == blocked.futex)
        };
        if blocked.futex.as_ref().is_some_and(private) && circle.members.iter().any(same) {
            return None;
        }
        circle.members.push(next);
        let Who::Thread(owner) = blocked.owner.who else {
            return None;
        };
        // The kernel names the process that has a file lock: its first thread is the owner if it is the only one.
        if blocked.owner.how == HowKnown::FileLock && !alone(threads, owner) {
            return None;
        }
        if owner == first {
            return Some(circle);
        }
        if circle.members.contains(&owner) {
            return None;
        }
        next = owner;
    }
}

/// Whether a thread is the only one of its process.
pub(super) fn alone(threads: &Threads, id: ThreadId) -> bool {
    let Some(process) = threads.get(&id).map(|thread| thread.identity.process) else {
        return false;
    };
    let mut others = threads
        .iter()
        .filter(|(other, thread)| **other != id && thread.identity.process == process);
    others.next().is_none()
}

/// The circle as a chain that begins and ends with this member.
pub(super) fn chain(circle: &Circle, member: ThreadId, threads: &Threads, tasks: &TaskTable) -> Vec<Link> {
    let begin = circle.members.iter().position(|one| *one == member).unwrap_or(0);
    let around = circle.members.iter().cycle().skip(begin);
    around
        .take(circle.members.len() + 1)
        .filter_map(|id| {
            let thread = threads.get(id)?;
            Some(Link {
                name: tasks.named(&thread.identity),
                cause: thread.blocked.map_or(Cause::LockFutex, |blocked| blocked.cause),
                ns: circle.to - circle.from,
                stack: None,
            })
        })
        .collect()
}
