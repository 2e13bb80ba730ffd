//! Waits for locks whose owner is known: what the owner did meanwhile, and circles of such waits.
//!
//! In: a wait that has been booked, and who was found in its way. Out: deadlocks in the books of all that are in them, and what
//! owners did that had not let go when the wait was reported.

use super::blocker::{Blockers, Scene, meanwhile};
use super::booking::Entry;
use super::chain::{Link, links_to};
use super::crowd::{Crowd, Onward, names_process};
use super::deadlock::{self, Blocked, Circle, Futex};
use super::holders::{self, Blocker, Who};
use super::owners;
use super::path::Path;
use super::task_table::TaskTable;
use super::thread::Threads;
use super::what::WhatId;
use holdup_evidence::{Cause, LockHolder, Ns, RuntimeLockKind, TaskName, ThreadId, Wait, Waker};
use holdup_model::attributed::HowKnown;

/// The path of a thread of the run that had ended when it ended this wait: who joins a thread is woken by the last of its end, and
/// by then it may be watched no more.
pub(super) fn path_at_end_of(
    (threads, tasks): (&Threads, &TaskTable),
    task: &TaskName,
    wait: &Wait,
) -> Option<Path> {
    let id = tasks.lived(task.tid, wait.start)?;
    let thread = threads.get(&id)?;
    let same = tasks.pid(thread.identity.process) == task.pid;
    let of_run = thread.ended && same && thread.at <= wait.end;
    let own = *thread.ledger.index_of(WhatId::CPU).filter(|_| of_run)?;
    let mut path = thread.path.clone();
    path.spend(thread.ledger.sites[own].key, wait.end - thread.at, 0);
    Some(path)
}

impl Blockers {
    /// Keeps a wait for a lock with a known owner, and sees whether it closes a circle. `unsure`: how much of the wait's ends rests on
    /// looks; that much less at either end is certain.
    pub(super) fn owned(
        &mut self,
        wait: &Wait,
        entry: &Entry,
        found: Option<Blocker>,
        unsure: Ns,
        scene: &mut Scene<'_>,
    ) {
        let Some(thread) = scene.threads.get_mut(&wait.thread) else {
            return;
        };
        let of_futex = matches!(
            wait.holder,
            Some(LockHolder::FutexWords(_) | LockHolder::PiFutex(_) | LockHolder::Runtime(_))
        );
        let futex = of_futex.then(|| match owners::shared(&wait.call) {
            true => Futex::Shared,
            false => Futex::Private(thread.identity.process, wait.call.args[0]),
        });
        let let_go = of_futex && holders::let_go(&wait.waker);
        let by_owner = |owner: Blocker| match &wait.waker {
            Waker::Thread { thread, .. } => owner.who == Who::Thread(*thread),
            Waker::Outside { task, .. } => owner.who == Who::Task(task.pid, task.tid),
            Waker::Interrupt { .. } | Waker::Unknown => false,
        };
        // A lock that another than its owner lets go is used for something else.
        let owner = found.filter(|found| found.how != HowKnown::Waker && (!let_go || by_owner(*found)));
        if let Some(owner) = owner {
            thread.blocked = Some(Blocked {
                owner,
                cause: entry.cause,
                start: wait.start.saturating_add(unsure),
                end: wait.end.saturating_sub(unsure),
                owned: match &wait.holder {
                    Some(LockHolder::Runtime(lock)) => match lock.kind {
                        // The waiter sleeps on the lock's own word: it cannot change hands without ending a wait for it.
                        RuntimeLockKind::Mutex | RuntimeLockKind::Recursive => (lock.seen.0, wait.end),
                        RuntimeLockKind::Monitor
                        | RuntimeLockKind::Lock
                        | RuntimeLockKind::Class
                        | RuntimeLockKind::Queued
                        | RuntimeLockKind::Global
                        | RuntimeLockKind::Semaphore => lock.seen,
                    },
                    _ => (wait.start, wait.end),
                },
                site: entry.site,
                futex,
                let_go,
            });
        }
        if owner.is_some()
            && let Some(circle) = deadlock::find(scene.threads, &self.hand_overs, wait.thread)
        {
            stands_still(&circle, scene);
        }
        if let (true, Some(futex)) = (let_go, futex) {
            self.hand_overs.add(futex, wait.end);
        }
    }
}

/// Marks the waits of a circle.
fn stands_still(circle: &Circle, scene: &mut Scene<'_>) {
    for member in &circle.members {
        let chain = deadlock::chain(circle, *member, scene.threads, scene.tasks);
        let Some(blocked) = scene.threads.get(member).and_then(|thread| thread.blocked) else {
            continue;
        };
        let mut meanwhile = meanwhile(scene.threads, blocked.owner.who, circle.from, circle.to);
        if let Who::Thread(owner) = blocked.owner.who
            && let Some(its) = scene.threads.get(&owner).and_then(|owner| owner.blocked)
        {
            meanwhile.doing = Some((its.cause, circle.to - circle.from));
        }
        if let Some(thread) = scene.threads.get_mut(member) {
            let site = &mut thread.ledger.sites[blocked.site];
            site.deadlock = true;
            site.chain = chain;
            site.holders.learn(blocked.owner, meanwhile);
        }
    }
}

/// What the owners of locks did that nobody had let go when they were last waited for: it was not known yet when
/// those waits were reported.
pub(super) fn complete_unfinished(threads: &mut Threads, tasks: &TaskTable, crowd: &Crowd) {
    let unfinished: Vec<(ThreadId, Blocked)> = threads
        .iter()
        .filter_map(|(id, thread)| Some((*id, thread.blocked.filter(|blocked| !blocked.let_go)?)))
        .collect();
    for (id, blocked) in unfinished {
        let known = (&*threads, tasks);
        let meanwhile = crowd.meanwhile(known, blocked.owner, blocked.start, blocked.end);
        let links = match blocked.owner.who {
            Who::Thread(owner) => links_to(
                known,
                (id, owner),
                blocked.cause,
                (blocked.start, blocked.end),
                None,
            ),
            Who::Task(..) => Vec::new(),
        };
        if let Some(thread) = threads.get_mut(&id) {
            let site = &mut thread.ledger.sites[blocked.site];
            site.holders.learn(blocked.owner, meanwhile);
            if site.longest == (blocked.start, blocked.end) && !site.deadlock && !links.is_empty() {
                site.chain = links;
            }
        }
    }
}

/// Where the chain of a wait goes on: to who ended it, and where no thread of the run did, to its owner.
pub(super) fn onward(wait: &Wait, owner: Option<Blocker>) -> Option<Onward> {
    match (&wait.waker, owner) {
        (Waker::Thread { thread, .. }, _) => Some(Onward {
            thread: *thread,
            process: false,
        }),
        (_, Some(owner)) => match owner.who {
            Who::Thread(thread) => Some(Onward {
                thread,
                process: names_process(owner.how),
            }),
            Who::Task(..) => None,
        },
        _ => None,
    }
}

/// From the waiter to where the time went; nothing where it went no further than the waiter.
pub(super) fn links(
    known: (&Threads, &TaskTable),
    wait: &Wait,
    cause: Cause,
    onward: Option<Onward>,
) -> Vec<Link> {
    let Some(onward) = onward else { return Vec::new() };
    let span = (wait.start, wait.end);
    links_to(known, (wait.thread, onward.thread), cause, span, None)
}
