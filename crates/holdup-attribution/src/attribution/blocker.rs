//! Who was in the way of a wait, in the books of the waiter.
//!
//! In: a wait that was reported and booked. Out: its holder with what that did meanwhile. Its stack may be known only later; it is
//! added then. Of locks with an owner `owned.rs` goes on.

use super::booking::Entry;
use super::chain::KeptWaiting;
use super::deadlock::HandOvers;
use super::ended_wait::EndedWait;
use super::fold::Ended;
use super::follow_blocker::Unsure;
use super::holders::{self, Blocker, Meanwhile, Who};
use super::idle::Served;
use super::object_cache::ObjectCache;
use super::orphans;
use super::owned::{links, onward};
use super::path::Path;
use super::task_table::TaskTable;
use super::thread::Threads;
use holdup_evidence::{Cause, Ns, ObjectId, TaskState, ThreadId, Wait, Waker};
use holdup_model::attributed::{HowKnown, Source};
use std::collections::BTreeSet;

/// Processes that are named of those that have an end of a pipe.
const MAX_ENDS: usize = 4;

/// Who blocks whom.
#[derive(Debug, Clone, Default)]
pub(super) struct Blockers {
    pub(super) hand_overs: HandOvers,
    /// How the events are taken.
    pub(super) source: Source,
}

/// Where blockers are looked for, and in whose books they are noted.
pub(super) struct Scene<'a> {
    pub(super) threads: &'a mut Threads,
    pub(super) tasks: &'a mut TaskTable,
    pub(super) served: &'a Served,
    pub(super) objects: &'a ObjectCache,
    /// Threads that ended long ago.
    pub(super) gone: &'a Ended,
}

impl Blockers {
    /// Books who blocked a wait, and what follows from that: the path of the waiter, for how long a pipe was held open, and the
    /// chain of blockers. `before`: the waiter's path without the wait, where that may be needed.
    pub(super) fn step(
        &mut self,
        ended: &EndedWait,
        entry: &Entry,
        before: Option<(Path, Unsure)>,
        scene: &mut Scene<'_>,
    ) {
        let (before, unsure) = before.unzip();
        let blocker = self.find(ended, entry, unsure.unwrap_or(0), scene);
        self.follow(ended, entry, blocker, before, scene.threads);
        let held_open = self.held_open(ended, entry.cause, blocker, scene);
        let known = (&*scene.threads, &*scene.tasks);
        let longest = entry.longest.then(|| {
            let onward = onward(ended.wait, blocker);
            let links = links(known, ended.wait, entry.cause, onward);
            (onward, links, stopped_by(ended.wait, known.0, known.1))
        });
        let Some(thread) = scene.threads.get_mut(&ended.wait.thread) else {
            return;
        };
        let site = &mut thread.ledger.sites[entry.site];
        site.held_open = site.held_open.saturating_add(held_open);
        if let Some((onward, links, signal)) = longest {
            (site.onward, site.cause) = (onward, Some(entry.cause));
            if !site.deadlock {
                site.chain = links;
            }
            site.signal = signal;
        }
    }

    /// Books who blocked a wait; returns who that was. `unsure`: how much of the wait's ends rests on samples.
    fn find(
        &mut self,
        ended: &EndedWait,
        entry: &Entry,
        unsure: Ns,
        scene: &mut Scene<'_>,
    ) -> Option<Blocker> {
        let wait = ended.wait;
        let (threads, tasks) = (&*scene.threads, &*scene.tasks);
        let waiter = threads.get(&wait.thread)?;
        // Whoever was born since has the id of another who is gone.
        let pid_of = |id: ThreadId| {
            let thread = threads.get(&id);
            let thread = thread.filter(|thread| thread.adopted || thread.born <= wait.start)?;
            Some(tasks.pid(thread.identity.process))
        };
        let pid = tasks.pid(waiter.identity.process);
        let found = holders::judge(wait, entry.cause, &waiter.identity, tasks, &pid_of);
        let others = scene.other_sides(ended, entry.cause);
        let could_end = || {
            let other = *others.first()?;
            let found = holders::process(other, wait, entry.cause, tasks)?;
            (found.who != Who::Thread(wait.thread)).then_some(found)
        };
        // Whoever of others sends a signal may end what was meant to end with a child.
        let broken_off = entry.cause == Cause::IpcSignal && matches!(wait.waker, Waker::Outside { .. });
        let found = match found {
            Some(sender) if broken_off => could_end().or(Some(sender)),
            found => found.or_else(could_end),
        };
        // A signal broke it off: whoever was at the other end before is still there.
        let peer = || {
            let to_a_peer = matches!(entry.cause, Cause::IpcPipe | Cause::IpcUnix);
            let site = waiter.ledger.sites.get(entry.site).filter(|_| to_a_peer)?;
            let peer = site.holders.peer()?;
            let lives = |id| {
                threads
                    .get(&id)
                    .is_some_and(|peer| !peer.ended || peer.at >= wait.end)
            };
            matches!(peer.who, Who::Thread(id) if lives(id)).then_some(peer)
        };
        let found = found.or_else(peer);
        if let Some(waiter) = scene.threads.get_mut(&wait.thread) {
            waiter.could_end = others;
        }
        let threads = &*scene.threads;
        let late = entry.late.map(|late| Blocker {
            who: Who::Thread(late),
            how: HowKnown::LastToStop,
        });
        let found = late.or(found);
        let found = found.filter(|found| match found.who {
            Who::Thread(id) => threads.contains_key(&id),
            Who::Task(..) => true,
        });
        if let Some(found) = found {
            let named = match found.who {
                Who::Thread(id) => threads.get(&id).map(|other| tasks.named(&other.identity)),
                Who::Task(..) => None,
            };
            let meanwhile = meanwhile(scene.threads, found.who, wait.start, wait.end);
            if let (Who::Thread(id), None) = (found.who, meanwhile.stack)
                && let Some(other) = scene.threads.get_mut(&id)
            {
                other.kept_waiting.push(KeptWaiting {
                    waiter: wait.thread,
                    site: entry.site,
                    blocker: found,
                    start: wait.start,
                    end: wait.end,
                });
            }
            let tasks = &mut *scene.tasks;
            let thread = scene.threads.get_mut(&wait.thread)?;
            thread.ledger.sites[entry.site]
                .holders
                .add(found, ended.waited, meanwhile, || {
                    named.unwrap_or_else(|| holders::name_task(wait, pid, found.who, tasks))
                });
        } else {
            several_ends(ended, entry, pid, scene);
        }
        self.owned(wait, entry, found, unsure, scene);
        orphaned(wait, entry, scene);
        let endless = ended.open && entry.cause == Cause::LockFutex && {
            let waiter = scene.threads.get(&wait.thread)?;
            orphans::by_own_threads(wait, &waiter.identity, scene.tasks, scene.threads)
        };
        if endless && let Some(thread) = scene.threads.get_mut(&wait.thread) {
            thread.ledger.sites[entry.site].endless = Some(wait.start);
        }
        found
    }
}

/// The only one of the descriptors of a poll whose other end somebody has. An event loop polls it beside what it wakes itself with.
fn polled_channel(wait: &Wait, tasks: &TaskTable) -> Option<ObjectId> {
    let polled = wait.asked.iter().flat_map(|asked| &asked.polled);
    let others: BTreeSet<ObjectId> = polled
        .filter(|fd| !fd.own)
        .filter_map(|fd| fd.object)
        .filter(|object| !tasks.other_ends(*object).is_empty())
        .collect();
    let mut others = others.into_iter();
    others.next().filter(|_| others.next().is_none())
}

/// Books those that have the other end of a pipe open, where they are several and nobody knows which of them is meant: the wait goes on
/// until one of them acts, or all have closed it.
fn several_ends(ended: &EndedWait, entry: &Entry, own: u32, scene: &mut Scene<'_>) {
    let wait = ended.wait;
    if !ended.open || entry.cause != Cause::IpcPipe {
        return;
    }
    // A set of epoll is an object of its own, without another end.
    let has_ends = |object: &ObjectId| !scene.tasks.other_ends(*object).is_empty();
    let ends = wait
        .object
        .filter(has_ends)
        .or_else(|| polled_channel(wait, scene.tasks))
        .map_or(&[][..], |object| scene.tasks.other_ends(object));
    let ends = ends.to_vec();
    let others = ends.iter().copied().filter(|pid| *pid != own);
    let mut others: Vec<u32> = others.take(MAX_ENDS).collect();
    // Who waits for a child that has an end, too, can do nothing with what it keeps.
    others.sort_by_key(|pid| {
        scene
            .tasks
            .has_child_of_any_program(*pid, |child| ends.contains(&child))
    });
    for pid in others {
        let Some(blocker) = holders::process(pid, wait, entry.cause, scene.tasks) else {
            continue;
        };
        let named = match blocker.who {
            Who::Thread(id) => scene
                .threads
                .get(&id)
                .map(|other| scene.tasks.named(&other.identity)),
            Who::Task(..) => None,
        };
        let doing = meanwhile(scene.threads, blocker.who, wait.start, wait.end);
        let tasks = &mut *scene.tasks;
        if let Some(thread) = scene.threads.get_mut(&wait.thread) {
            thread.ledger.sites[entry.site]
                .holders
                .add(blocker, ended.waited, doing, || {
                    named.unwrap_or_else(|| holders::name_task(wait, own, blocker.who, tasks))
                });
        }
    }
}

/// Books why nobody could have ended a wait for a futex.
fn orphaned(wait: &Wait, entry: &Entry, scene: &mut Scene<'_>) {
    if entry.cause != Cause::LockFutex {
        return;
    }
    let Some(thread) = scene.threads.get(&wait.thread) else {
        return;
    };
    let orphan = orphans::judge(wait, &thread.identity, scene.tasks, scene.threads);
    if let (Some(orphan), Some(thread)) = (orphan, scene.threads.get_mut(&wait.thread)) {
        thread.ledger.sites[entry.site].orphan = Some(orphan);
    }
}

/// What a thread of the run did between two instants, as far as it has been reported.
pub(super) fn meanwhile(threads: &Threads, who: Who, from: Ns, to: Ns) -> Meanwhile {
    let Who::Thread(id) = who else {
        return Meanwhile::default();
    };
    let thread = threads.get(&id);
    let doing = thread.and_then(|thread| thread.recent.doing(from, to));
    Meanwhile {
        doing: doing.map(|doing| (doing.cause, doing.ns)),
        stack: thread.and_then(|thread| thread.stacks.during(from, to)),
        others_busy: 0,
    }
}

/// The signal that a wait in a stopped state began with.
fn stopped_by(wait: &Wait, threads: &Threads, tasks: &TaskTable) -> Option<i32> {
    let thread = threads.get(&wait.thread)?;
    let pid = tasks.pid(thread.identity.process);
    let stopper = tasks.stopper(pid);
    stopper
        .filter(|_| wait.state == TaskState::Stopped)
        .map(|stopper| stopper.signal)
}
