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

/// How far the beginning of a client's wait and that of the wait in which a thread then stays that has the request are from each other at most,
/// nanoseconds. On a busy machine either may be first: the request is read on another CPU before its sender sleeps.
const TAKES_UP_NS: Ns = 50_000_000;

/// Of what was said of another thread, so little may be missing: one part of this many.
const TAKEN_UP_SHARE: Ns = 10;

/// So many times as far from the request another thread's wait begins at least: else either of the two may have it.
const CLEARLY: Ns = 4;

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
            | HowKnown::QueueReceiver
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
        let stands_behind = |id: ThreadId| {
            let blocked = threads.get(&id).and_then(|thread| thread.blocked);
            blocked.is_some_and(|blocked| {
                let own = matches!(blocked.owner.who, Who::Thread(owner) if members.contains(&owner));
                let still = did(id).is_some_and(|doing| blocked.cause == doing.cause);
                own && still && !blocked.let_go && names_process(blocked.owner.how)
            })
        };
        let busy = self.busy(threads, pid, from, to).filter(|id| !stands_behind(*id));
        // A session that awaits the next word of its own client has nobody else's request: it counts where there is nobody else.
        let (resting, others): (Vec<ThreadId>, Vec<ThreadId>) =
            busy.partition(|id| did(*id).is_some_and(|doing| doing.of_client));
        let busy = if others.is_empty() { resting } else { others };
        let mut ends: Vec<(ThreadId, Doing)> = busy
            .into_iter()
            .map(|id| self.end_inside(threads, pid, id, from, to))
            .filter_map(|id| Some((id, did(id)?)))
            .collect();
        ends.sort_unstable_by_key(|(id, _)| *id);
        ends.dedup_by_key(|(id, _)| *id);
        let several = ends.clone();
        if ends.len() > 1 {
            // Those that wait for somebody else of the process wait for what these do.
            let outside = |id: ThreadId, doing: &Doing| {
                let held = threads
                    .get(&id)
                    .and_then(|thread| chain::held_up(thread, doing.cause, from, to));
                held.is_some_and(|(owner, ..)| !members.contains(&owner))
            };
            // So does one whose lock somebody of another process has, as the client of an idle session of a database has.
            ends.retain(|(id, doing)| leads_out(doing.cause) || outside(*id, doing));
        }
        let alike = |ends: &[(ThreadId, Doing)]| ends.windows(2).all(|two| two[0].1.cause == two[1].1.cause);
        let longest = ends.iter().max_by_key(|(_, doing)| doing.ns);
        longest
            .filter(|_| alike(&ends))
            .map(|(id, _)| *id)
            .or_else(|| began_with(threads, &several, from, to))
    }

    /// The threads of a process that did not rest between two instants.
    fn busy<'a>(
        &'a self,
        threads: &'a Threads,
        pid: u32,
        from: Ns,
        to: Ns,
    ) -> impl Iterator<Item = ThreadId> + 'a {
        let members = self.by_pid.get(&pid).into_iter().flatten().copied();
        let did = move |id: ThreadId| threads.get(&id)?.recent.doing(from, to);
        members.filter(move |id| did(*id).is_some_and(|doing| works(&doing)))
    }

    /// How many threads of a process may have a request that came at the first of two instants: those that wait for somebody outside or run, and
    /// those that began what they do since. A worker that stands in a lock of its pool since long before has none.
    fn may_have_it(&self, threads: &Threads, pid: u32, from: Ns, to: Ns) -> u64 {
        let may = |id: &ThreadId| {
            threads.get(id).is_some_and(|thread| {
                let out = thread
                    .recent
                    .doing(from, to)
                    .is_some_and(|doing| leads_out(doing.cause));
                let since = thread.recent.filled_since(from, to);
                out || since.is_some_and(|since| since != from && since.saturating_add(TAKES_UP_NS) >= from)
            })
        };
        self.busy(threads, pid, from, to).filter(may).count() as u64
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
        let Who::Thread(first) = blocker.who else {
            return meanwhile(known.0, blocker.who, from, to);
        };
        if !names_process(blocker.how) {
            return meanwhile(known.0, blocker.who, from, to);
        }
        let (threads, tasks) = known;
        let pid = threads
            .get(&first)
            .map(|thread| tasks.pid(thread.identity.process));
        let meant = pid.and_then(|pid| self.at_work(threads, pid, from, to));
        let others_busy = match (meant, pid) {
            (None, Some(pid)) => self.may_have_it(threads, pid, from, to),
            _ => 0,
        };
        Meanwhile {
            others_busy,
            ..meanwhile(threads, Who::Thread(meant.unwrap_or(first)), from, to)
        }
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

/// Of threads of which several may have a request: the one that began what it has done since just as the request came.
fn began_with(threads: &Threads, ends: &[(ThreadId, Doing)], from: Ns, to: Ns) -> Option<ThreadId> {
    let after = |id: ThreadId| {
        let away = threads.get(&id)?.recent.filled_since(from, to)?.abs_diff(from);
        // What begins at the very nanosecond begins with the observation.
        (away > 0 && away <= TAKES_UP_NS).then_some(away)
    };
    let mut near: Vec<(Ns, ThreadId, Cause)> = ends
        .iter()
        .filter_map(|(id, doing)| Some((after(*id)?, *id, doing.cause)))
        .collect();
    near.sort_unstable_by_key(|(after, id, _)| (*after, *id));
    match near.as_slice() {
        [(_, only, _)] => Some(*only),
        [(first, id, cause), (second, _, other), ..] => {
            let clear = cause == other || *second > first.saturating_mul(CLEARLY);
            clear.then_some(*id)
        }
        [] => None,
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
    // What is no longer remembered of a busy thread makes its part shorter; the time until a thread had the request does so by little.
    let whole = second(new) >= second(old).saturating_sub(second(old) / TAKEN_UP_SHARE);
    whole && (new.len() > old.len() || process && new.len() == old.len() && new.len() > 1)
}
