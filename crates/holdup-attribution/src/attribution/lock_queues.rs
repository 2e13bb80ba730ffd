//! Queues for locks beside the critical path.
//!
//! The problem: the path goes from the end of a wait to whoever ended it, and that thread had the lock and did not wait for it. Whoever waited is
//! on the path only by its last wait. A Python thread that is given a lock waits for the interpreter's lock next, for a moment and because of the
//! same thread: the walk backwards leaves it there, before it comes to the long wait. Then the lock has none of the path, although somebody stood
//! before it all the time. The choice: a thread that lets a lock go notes on its own path since when the other stood in the queue. The note is no part of the
//! tiling; it says for how much of what the path went through others waited for that lock. Stretches that several waiters have in common
//! count once. At the end the waits for the lock cost as much as that, if they were for a lock (its owner is known, or those who let it go had
//! stood in the same queue) and the run depends on one of the waiters.
//!
//! In: waits that a thread of the run ended, the path, rows. Out: rows of locks with what the path spent in others meanwhile.

use super::booking::Entry;
use super::ended_wait::EndedWait;
use super::ledger::{Ledger, Owner};
use super::path::Path;
use super::task_table::ProcessId;
use super::thread::Threads;
use super::timeline::Origin;
use super::what::WhatId;
use holdup_evidence::{Cause, Ns, Waker};
use holdup_knowledge::user_code::{self, Primitive};
use holdup_model::attributed::{AttributedWait, Holder, HowKnown};
use std::collections::{BTreeMap, BTreeSet};

/// Shorter waits leave no note: a lock that is passed on ten thousand times a second would make as many copies of a path's notes.
const MIN_WAIT_NS: Ns = 100_000;

/// Locks noted on one path; 32 bytes each. A longer queue takes the place of the shortest.
const MAX_LOCKS: usize = 64;

/// A lock: whose, and what the waits for it are called.
pub(super) type LockKey = (ProcessId, WhatId);

/// Queues for one lock.
#[derive(Debug, Clone, Copy)]
struct Queue {
    lock: LockKey,
    /// For how long somebody stood there.
    ns: Ns,
    /// Until when that is counted.
    until: Ns,
}

/// Queues for locks while a path went on.
#[derive(Debug, Clone, Default)]
pub(super) struct QueuesOnPath {
    list: Vec<Queue>,
}

impl QueuesOnPath {
    /// Somebody stood in a queue. Waits come in the order of their ends: what lies before an end that is counted counts no more.
    pub(super) fn add(&mut self, lock: LockKey, from: Ns, to: Ns) {
        if let Some(known) = self.list.iter_mut().find(|known| known.lock == lock) {
            known.ns = known.ns.saturating_add(to.saturating_sub(from.max(known.until)));
            known.until = known.until.max(to);
            return;
        }
        let queue = Queue {
            lock,
            ns: to.saturating_sub(from),
            until: to,
        };
        if self.list.len() < MAX_LOCKS {
            self.list.push(queue);
        } else if let Some(least) = self.list.iter_mut().min_by_key(|known| known.ns)
            && least.ns < queue.ns
        {
            *least = queue;
        }
    }

    /// Each lock, and for how long somebody stood there.
    pub(super) fn each(&self) -> impl Iterator<Item = (LockKey, Ns)> + '_ {
        self.list.iter().map(|queue| (queue.lock, queue.ns))
    }
}

/// Waits that others end by letting something go that they have.
fn is_for_lock(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::LockFutex | Cause::LockMonitor | Cause::LockFile | Cause::LockSysv | Cause::LockKernel
    )
}

/// Notes a wait for a lock on the path of the thread that ended it, and on the waiter's own, which was copied from that before.
pub(super) fn note(threads: &mut Threads, ended: &EndedWait, entry: &Entry) {
    let wait = ended.wait;
    if !ended.handed_on || ended.waited < MIN_WAIT_NS || !is_for_lock(entry.cause) {
        return;
    }
    let Waker::Thread { thread: waker, .. } = &wait.waker else {
        return;
    };
    let Some(thread) = threads.get_mut(&wait.thread) else {
        return;
    };
    let lock = (thread.identity.process, thread.ledger.sites[entry.site].what);
    let from = wait.end.saturating_sub(ended.waited);
    thread.path.queued(lock, from, wait.end);
    if let Some(waker) = threads.get_mut(waker) {
        waker.path.queued(lock, from, wait.end);
    }
}

/// What the rows of one thread are for, where each may be for a lock.
pub(super) fn of_rows(ledger: &Ledger, origins: &[Origin]) -> impl Iterator<Item = Option<LockKey>> {
    let process = match ledger.owner {
        Owner::Thread(identity) => Some(identity.process),
        Owner::Folded { .. } => None,
    };
    origins
        .iter()
        .map(move |origin| Some((process?, ledger.sites.get(origin.site)?.what)))
}

/// Lets the waits for each lock cost as much as the path spent in others while somebody stood in its queue. `locks`: what each row is for.
pub(super) fn tell(waits: &mut [AttributedWait], locks: &[Option<LockKey>], path: &Path) {
    let mut rows: BTreeMap<LockKey, Vec<usize>> = BTreeMap::new();
    for (at, (wait, lock)) in waits.iter().zip(locks).enumerate() {
        if let Some(lock) = lock.filter(|_| is_for_lock(wait.cause)) {
            rows.entry(lock).or_default().push(at);
        }
    }
    rows.retain(|_, rows| is_lock(waits, rows));
    if rows.is_empty() {
        return;
    }
    let queues: BTreeMap<LockKey, Ns> = path.queues().collect();
    let queued: BTreeSet<usize> = rows.values().flatten().copied().collect();
    let needed = needed(waits, &queued);
    let lives = lives(waits);
    for (lock, mut rows) in rows {
        rows.retain(|at| needed.contains(&thread(&waits[*at])));
        let kept = rows.iter().map(|at| kept(&waits[*at], &lives)).max();
        let queue = queues.get(&lock).copied().unwrap_or(0);
        share(waits, &rows, queue.max(kept.unwrap_or(0)));
    }
}

/// Of each thread: all its time, and what of it is on the path.
type Lives = BTreeMap<(u32, u32), (Ns, Ns)>;

fn lives(waits: &[AttributedWait]) -> Lives {
    let mut lives = Lives::new();
    for wait in waits {
        let life = lives.entry(thread(wait)).or_default();
        life.0 = life.0.saturating_add(wait.ns);
        life.1 = life.1.saturating_add(wait.path_ns);
    }
    lives
}

/// What the path spent in the owners of a lock while this thread waited for it, at least: all that it spent in them, less what they did at
/// other times. Of waits that nobody was seen to end because they look again now and then, as those for monitors of Java, there is no note.
fn kept(wait: &AttributedWait, lives: &Lives) -> Ns {
    let owners = wait.holders.iter().filter(|holder| holder.how_known.holds());
    let with_lock = owners.filter_map(|owner| {
        let (all, on_path) = lives.get(&(owner.name.pid, owner.name.tid))?;
        Some(on_path.saturating_sub(all.saturating_sub(owner.ns)).min(owner.ns))
    });
    with_lock.fold(0, Ns::saturating_add)
}

fn thread(wait: &AttributedWait) -> (u32, u32) {
    (wait.asker.name.pid, wait.asker.name.tid)
}

/// Whether waits for one thing are for a lock: it names its owner, a function that takes one waits, or most of them were ended by threads that had
/// waited for it, too. Who waits for a thread's end, for work or for an answer is woken by somebody else.
fn is_lock(waits: &[AttributedWait], rows: &[usize]) -> bool {
    let of_rows = || rows.iter().map(|at| &waits[*at]);
    let members: BTreeSet<(u32, u32)> = of_rows().map(thread).collect();
    let holders = || of_rows().flat_map(|wait| &wait.holders);
    let sum =
        |which: &dyn Fn(&&Holder) -> bool| -> Ns { holders().filter(which).map(|holder| holder.ns).sum() };
    let member = |holder: &&Holder| members.contains(&(holder.name.pid, holder.name.tid));
    let takes = |wait: &AttributedWait| {
        let primitive = user_code::primitive(&wait.asker.stack);
        matches!(primitive, Some(Primitive::Mutex | Primitive::ReadWriteLock))
    };
    // Nobody has what these wait for, whatever a word holds. Interpreters make locks of semaphores, and name their owners; Java makes monitors of
    // conditions.
    let other = |wait: &AttributedWait| {
        let named = wait
            .holders
            .iter()
            .any(|holder| holder.how_known == HowKnown::Interpreter);
        let futex = wait.cause == Cause::LockFutex;
        let primitive = user_code::primitive(&wait.asker.stack).filter(|_| futex && !named);
        matches!(
            primitive,
            Some(
                Primitive::Condition
                    | Primitive::Barrier
                    | Primitive::ThreadEnd
                    | Primitive::Future
                    | Primitive::Queue
            )
        )
    };
    if of_rows().any(other) {
        return false;
    }
    holders().any(|holder| holder.how_known.holds())
        || of_rows().any(takes)
        || members.len() > 1 && sum(&member).saturating_mul(2) >= sum(&|_| true).max(1)
}

/// Threads that the run depends on: the path goes through them, or one of them waited for what they did, in a wait that cost something: with
/// time to spare it would have been the same without them. That somebody stood behind them in a queue for a lock is no such wait: two that have nothing else to do with each other get past each other so.
fn needed(waits: &[AttributedWait], queued: &BTreeSet<usize>) -> BTreeSet<(u32, u32)> {
    let on_path = |wait: &&AttributedWait| wait.path_ns > 0 || wait.handed_on_ns > 0;
    let mut needed: BTreeSet<(u32, u32)> = waits.iter().filter(on_path).map(thread).collect();
    let mut awaited: BTreeMap<(u32, u32), BTreeSet<(u32, u32)>> = BTreeMap::new();
    for (at, wait) in waits.iter().enumerate() {
        if !queued.contains(&at) && wait.cost_ns() > 0 {
            let others = wait
                .holders
                .iter()
                .map(|holder| (holder.name.pid, holder.name.tid));
            awaited.entry(thread(wait)).or_default().extend(others);
        }
    }
    let mut left: Vec<(u32, u32)> = needed.iter().copied().collect();
    while let Some(one) = left.pop() {
        let others = awaited.get(&one).into_iter().flatten();
        left.extend(others.filter(|other| needed.insert(**other)));
    }
    needed
}

/// Adds to rows what they lack to cost so much together, each by what it still has room for: a wait costs no more than it lasted.
fn share(waits: &mut [AttributedWait], rows: &[usize], queue: Ns) {
    let cost: Ns = rows
        .iter()
        .map(|at| waits[*at].cost_ns())
        .fold(0, Ns::saturating_add);
    let room = |wait: &AttributedWait| wait.ns.saturating_sub(wait.cost_ns());
    let rooms: Vec<Ns> = rows.iter().map(|at| room(&waits[*at])).collect();
    let all = rooms.iter().copied().fold(0, Ns::saturating_add);
    let lacks = queue.saturating_sub(cost).min(all);
    for (at, part) in rows.iter().zip(super::cpu::apportion(lacks, &rooms)) {
        let wait = &mut waits[*at];
        wait.handed_on_ns = wait.handed_on_ns.saturating_add(part);
    }
}
