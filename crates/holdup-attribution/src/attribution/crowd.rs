//! Which thread of a process others wait for, and chains reported again when all is known.
//!
//! The problem: descriptors name a process at the other end of a pipe, a connection or a FUSE file system, and never the thread that has
//! the request; the first thread mostly takes in clients. And a chain is reported as the first of its waits ends: what those further on did
//! is known only later, where they wait for longer. The choice: at the end, chains are reported again, and of a process at another's other
//! end the one thread counts that everything which is not idle there leads to. Where there are several such, it stays the first.
//!
//! In: all threads, with what they did lately and who was in their way. Out: chains of the longest waits, and what the right thread did.

use super::blocker::meanwhile;
use super::chain::{self, Doing, Link};
use super::holders::{Blocker, Meanwhile, Who};
use super::task_table::TaskTable;
use super::thread::{Thread, Threads};
use holdup_evidence::{Cause, Ns, ThreadId};
use holdup_model::attributed::HowKnown;
use std::collections::HashMap;

/// Threads of one process that are looked at: of a server with more the first show what the rest do.
const MAX_THREADS: usize = 1024;

/// Waits within one process that are followed from one thread to the next.
const MAX_INSIDE: usize = 8;

/// Waits that are reported again: shorter ones are not what anybody asks about, nanoseconds.
const MIN_WAIT_NS: Ns = 50_000_000;

/// Where the chain of a site's longest wait goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Onward {
    /// The thread.
    pub(super) thread: ThreadId,
    /// It stands for its process: which of its threads is meant is not known.
    pub(super) process: bool,
}

/// Whether it is known only which process was in the way: the kernel notes the process that has locked a file, or that was the last to take
/// a semaphore, and none of its threads.
pub(super) fn names_process(how: HowKnown) -> bool {
    matches!(
        how,
        HowKnown::PipePeer
            | HowKnown::SocketPeer
            | HowKnown::FuseDaemon
            | HowKnown::Child
            | HowKnown::FileLock
            | HowKnown::Semaphore
    )
}

/// The threads of each process.
#[derive(Debug, Clone, Default)]
pub(super) struct Crowd {
    by_pid: HashMap<u32, Vec<ThreadId>>,
}

impl Crowd {
    /// Of all threads.
    pub(super) fn new(threads: &Threads, tasks: &TaskTable) -> Crowd {
        let mut by_pid: HashMap<u32, Vec<ThreadId>> = HashMap::new();
        for (id, thread) in threads.iter() {
            let pid = tasks.pid(thread.identity.process);
            by_pid.entry(pid).or_default().push(*id);
        }
        for members in by_pid.values_mut() {
            members.sort_unstable();
            members.truncate(MAX_THREADS);
        }
        Crowd { by_pid }
    }

    /// The thread of a process that others waited for between two instants; `None` where nobody of it was watched, or several may be meant.
    pub(super) fn at_work(&self, threads: &Threads, pid: u32, from: Ns, to: Ns) -> Option<ThreadId> {
        let members = self.by_pid.get(&pid)?;
        if let [only] = members.as_slice() {
            return Some(*only);
        }
        let did = |id: ThreadId| threads.get(&id)?.recent.doing(from, to);
        // Who waits for another thread of its process, of which it is not known, is not the one that others wait for.
        let stands_behind = |id: ThreadId, doing: &Doing| {
            let blocked = threads.get(&id).and_then(|thread| thread.blocked);
            blocked.is_some_and(|blocked| {
                let own = matches!(blocked.owner.who, Who::Thread(owner) if members.contains(&owner));
                own && blocked.cause == doing.cause && !blocked.let_go && names_process(blocked.owner.how)
            })
        };
        let busy = members
            .iter()
            .filter(|id| did(**id).is_some_and(|doing| works(&doing) && !stands_behind(**id, &doing)));
        let mut ends: Vec<(ThreadId, Doing)> = busy
            .map(|id| self.end_inside(threads, pid, *id, from, to))
            .filter_map(|id| Some((id, did(id)?)))
            .collect();
        ends.sort_unstable_by_key(|(id, _)| *id);
        ends.dedup_by_key(|(id, _)| *id);
        if ends.len() > 1 {
            // Those that wait for somebody else of the process wait for what these do.
            ends.retain(|(_, doing)| leads_out(doing.cause));
        }
        let (_, first) = ends.first()?;
        let alike = ends.iter().all(|(_, doing)| doing.cause == first.cause);
        let longest = ends.iter().max_by_key(|(_, doing)| doing.ns)?;
        alike.then_some(longest.0)
    }

    /// Where waits for owners of locks lead within a process.
    fn end_inside(&self, threads: &Threads, pid: u32, first: ThreadId, from: Ns, to: Ns) -> ThreadId {
        let mut id = first;
        for _ in 0..MAX_INSIDE {
            let next = threads.get(&id).and_then(|thread| {
                let doing = thread.recent.doing(from, to)?;
                chain::held_up(thread, doing.cause, from, to)
            });
            let members = self.by_pid.get(&pid);
            let inside = |id: &ThreadId| members.is_some_and(|members| members.contains(id));
            match next
                .map(|(next, ..)| next)
                .filter(|next| *next != first && inside(next))
            {
                Some(next) => id = next,
                None => break,
            }
        }
        id
    }

    /// Who stands for this thread where only its process is known to be in the way.
    fn right_one(&self, known: (&Threads, &TaskTable), of: ThreadId, from: Ns, to: Ns) -> ThreadId {
        let (threads, tasks) = known;
        let pid = threads.get(&of).map(|thread| tasks.pid(thread.identity.process));
        pid.and_then(|pid| self.at_work(threads, pid, from, to))
            .unwrap_or(of)
    }

    /// What the one in the way did meanwhile: of a process the thread that others waited for.
    pub(super) fn meanwhile(
        &self,
        known: (&Threads, &TaskTable),
        blocker: Blocker,
        from: Ns,
        to: Ns,
    ) -> Meanwhile {
        let who = match blocker.who {
            Who::Thread(id) if names_process(blocker.how) => Who::Thread(self.right_one(known, id, from, to)),
            who => who,
        };
        meanwhile(known.0, who, from, to)
    }

    /// Where the chain goes on from a thread whose wait nobody has ended: to a process that the chain has not passed, of those that
    /// could end it.
    pub(super) fn onward(
        &self,
        known: (&Threads, &TaskTable),
        thread: &Thread,
        held: (ThreadId, Ns, Ns),
        passed: &[u32],
    ) -> Option<(ThreadId, Ns, Ns)> {
        let (threads, tasks) = known;
        let (owner, from, to) = held;
        let by_process = thread
            .blocked
            .is_some_and(|blocked| names_process(blocked.owner.how));
        if !by_process {
            return Some(held);
        }
        let first = threads.get(&owner).map(|owner| tasks.pid(owner.identity.process));
        let could = thread.could_end.iter().copied();
        let new = |pid: &u32| !passed.contains(pid) && self.by_pid.contains_key(pid);
        let own = tasks.pid(thread.identity.process);
        // Its parent gives it orders, and none of those is what others wait for, unless nobody else could end the wait.
        let parent = |pid: &u32| tasks.has_child_of_any_program(*pid, |child| child == own);
        let new: Vec<u32> = first.into_iter().chain(could).filter(new).collect();
        let pid = new.iter().find(|pid| !parent(pid)).or(new.first()).copied()?;
        let fallback = || tasks.lived(pid, to).filter(|id| threads.contains_key(id));
        let next = self.at_work(threads, pid, from, to).or_else(fallback)?;
        Some((next, from, to))
    }
}

/// Whether a thread that did this may have a request of somebody.
fn works(doing: &Doing) -> bool {
    !matches!(doing.cause, Cause::Idle | Cause::NetAccept)
}

/// Whether what a thread does is not for another thread of its own process, nor for time to pass, nor for what a driver has for it next, as
/// the daemon of a FUSE file system waits for requests.
fn leads_out(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::LockFutex
            | Cause::LockMonitor
            | Cause::IpcQueue
            | Cause::IpcSignal
            | Cause::TimerSleep
            | Cause::PollWait
            | Cause::DeviceWait
            | Cause::RuntimeInterpreter
            | Cause::RuntimeSafepoint
            | Cause::RuntimeGc
            | Cause::Unknown
    )
}

/// Tells the chains of the longest waits again, now that all that is known of those further on has come. A chain that says less than what was
/// told before stays as it was.
pub(super) fn complete_chains(threads: &mut Threads, tasks: &TaskTable, crowd: &Crowd) {
    let mut rows: Vec<(ThreadId, usize, Vec<Link>)> = Vec::new();
    for (id, thread) in threads.iter() {
        for (place, site) in thread.ledger.sites.iter().enumerate() {
            let (from, to) = site.longest;
            // Where the thread was known all along, what it had done was known by then.
            let open = |onward: &Onward| !site.deadlock && (onward.process || site.chain.is_empty());
            let Some(onward) = site.onward.filter(open) else {
                continue;
            };
            if to.saturating_sub(from) < MIN_WAIT_NS {
                continue;
            }
            let known = (&*threads, tasks);
            let next = match onward.process {
                true => crowd.right_one(known, onward.thread, from, to),
                false => onward.thread,
            };
            let Some(cause) = site.cause else { continue };
            let links = chain::links_to(known, (*id, next), cause, (from, to), Some(crowd));
            if says_more(&links, &site.chain, onward.process) {
                rows.push((*id, place, links));
            }
        }
    }
    for (id, place, links) in rows {
        if let Some(site) = threads
            .get_mut(&id)
            .and_then(|thread| thread.ledger.sites.get_mut(place))
        {
            site.chain = links;
        }
    }
}

/// Whether a chain says more than another of the same wait. `process`: only the process at its second place was known, which may be another
/// thread of it now.
fn says_more(new: &[Link], old: &[Link], process: bool) -> bool {
    let second = |links: &[Link]| links.get(1).map_or(0, |link| link.ns);
    // What is no longer remembered of a busy thread makes its part shorter.
    let whole = second(new) >= second(old);
    whole && (new.len() > old.len() || process && new.len() == old.len() && new.len() > 1)
}
