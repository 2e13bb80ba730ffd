//! What a thread did lately, and the chain from a waiter to where the time really went.
//!
//! In: each thread's segments as they end. Out: what it mostly did in a window of time, and, following who
//! woke whom, the links of a chain. Only a short past is kept: a window that reaches further back is judged
//! by the part that is left.

use super::crowd::Crowd;
use super::holders::{Blocker, Who};
use super::task_table::{Named, TaskTable};
use super::thread::{Thread, Threads};
use holdup_evidence::{Cause, Ns, ThreadId, UserStackId};
use std::collections::VecDeque;

/// Segments kept of each thread: some twenty waits with the running and queueing between them.
const MAX_SEGMENTS: usize = 64;

/// Links after the waiter's own; whoever is further away than that is not what one would change.
const MAX_LINKS: usize = 8;

/// A stretch of a thread's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) cause: Cause,
    pub(super) start: Ns,
    pub(super) end: Ns,
    /// For a wait that a thread of the run ended: which.
    pub(super) waker: Option<ThreadId>,
    /// Whether it was a wait for the next word of a client of its own.
    pub(super) of_client: bool,
}

/// A link of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) name: Named,
    pub(super) cause: Cause,
    pub(super) ns: Ns,
    /// Its stack of that time, where one is known.
    pub(super) stack: Option<UserStackId>,
}

/// A thread's recent past.
#[derive(Debug, Clone, Default)]
pub(super) struct Segments {
    ring: VecDeque<Segment>,
}

impl Segments {
    /// The last one was a wait for the next word of a client.
    pub(super) fn last_is_of_client(&mut self) {
        if let Some(last) = self.ring.back_mut() {
            last.of_client = true;
        }
    }

    /// What the wait was for that ended at this instant by nobody of the run, if nothing has come since.
    pub(super) fn last_wait_ended_at(&self, at: Ns) -> Option<Cause> {
        let last = self.ring.back()?;
        (last.end == at && last.waker.is_none() && !last.cause.on_cpu()).then_some(last.cause)
    }
}

/// User stacks kept of each thread's recent past.
const MAX_STACKS: usize = 16;

/// User stacks of a thread's recent past, with the time in which each was its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Stacks {
    ring: VecDeque<(UserStackId, Ns, Ns)>,
}

impl Stacks {
    /// A stack was seen in a wait, or at one instant.
    pub(super) fn push(&mut self, stack: UserStackId, start: Ns, end: Ns) {
        if self.ring.len() == MAX_STACKS {
            self.ring.pop_front();
        }
        self.ring
            .push_back((stack, start, end.max(start.saturating_add(1))));
    }

    /// The stack that was the thread's own for longest between two instants, and for how long.
    pub(super) fn during(&self, from: Ns, to: Ns) -> Option<(UserStackId, Ns)> {
        let within = self.ring.iter().filter_map(|(stack, start, end)| {
            let common = (*end).min(to).checked_sub((*start).max(from))?;
            (common > 0).then_some((*stack, common))
        });
        within.max_by_key(|(_, common)| *common)
    }
}

/// Waits kept that a thread was in the way of and that lack its stack.
const MAX_KEPT_WAITING: usize = 4;

/// A wait that a thread was in the way of.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptWaiting {
    pub(super) waiter: ThreadId,
    /// The site of the wait in the waiter's ledger.
    pub(super) site: usize,
    pub(super) blocker: Blocker,
    pub(super) start: Ns,
    pub(super) end: Ns,
}

/// The last waits that a thread was in the way of, while its own stack of that time was not known: a thread that lets
/// a lock of the kernel go copies its stack only after that, as it returns to user mode.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptWaitingList {
    ring: VecDeque<KeptWaiting>,
}

impl KeptWaitingList {
    /// Another one.
    pub(super) fn push(&mut self, kept: KeptWaiting) {
        if self.ring.len() == MAX_KEPT_WAITING {
            self.ring.pop_front();
        }
        self.ring.push_back(kept);
    }

    /// Those that were under way between two instants, with the time that they have in common with them. They have
    /// their stack now.
    pub(super) fn take_during(&mut self, from: Ns, to: Ns) -> Vec<(KeptWaiting, Ns)> {
        let common = |kept: &KeptWaiting| kept.end.min(to).saturating_sub(kept.start.max(from));
        let found = self.ring.iter().map(|kept| (*kept, common(kept)));
        let found: Vec<(KeptWaiting, Ns)> = found.filter(|(_, common)| *common > 0).collect();
        self.ring.retain(|kept| common(kept) == 0);
        found
    }
}

/// What a thread mostly did in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doing {
    pub(super) cause: Cause,
    pub(super) ns: Ns,
    /// Who ended the longest stretch of it, and that stretch's part of the window.
    pub(super) next: Option<(ThreadId, Ns, Ns)>,
    /// Whether all of it was for the next word of clients.
    pub(super) of_client: bool,
}

impl Segments {
    /// A segment ended.
    pub(super) fn push(&mut self, segment: Segment) {
        if segment.end <= segment.start {
            return;
        }
        if self.ring.len() == MAX_SEGMENTS {
            self.ring.pop_front();
        }
        self.ring.push_back(segment);
    }

    /// When the one stretch began that goes on to the second instant and takes most of the time between both.
    pub(super) fn filled_since(&self, from: Ns, to: Ns) -> Option<Ns> {
        let last = self.ring.iter().rev().find(|segment| segment.start < to)?;
        let within = last.end.min(to).saturating_sub(last.start.max(from));
        (last.end >= to && within > to.saturating_sub(from) / 2).then_some(last.start)
    }

    /// What was done most between two instants.
    pub(super) fn doing(&self, from: Ns, to: Ns) -> Option<Doing> {
        // Few causes occur in so short a past: a list is enough.
        let mut causes: Vec<Doing> = Vec::new();
        let mut longest: Vec<Ns> = Vec::new();
        for segment in self.ring.iter().rev() {
            let (start, end) = (segment.start.max(from), segment.end.min(to));
            if segment.end <= from {
                break;
            }
            if end <= start {
                continue;
            }
            let at = causes
                .iter()
                .position(|doing| doing.cause == segment.cause)
                .unwrap_or_else(|| {
                    causes.push(Doing {
                        cause: segment.cause,
                        ns: 0,
                        next: None,
                        of_client: true,
                    });
                    longest.push(0);
                    causes.len() - 1
                });
            causes[at].ns = causes[at].ns.saturating_add(end - start);
            causes[at].of_client &= segment.of_client;
            if end - start > longest[at] {
                longest[at] = end - start;
                causes[at].next = segment.waker.map(|waker| (waker, start, end));
            }
        }
        causes.into_iter().max_by_key(|doing| doing.ns)
    }
}

/// The links after the waiter's: what its waker did while it waited, what the one did that this was for, and
/// so on, until somebody did something that no thread of the run ended, or the chain comes back to itself. Whether it came
/// back to the waiter, by nothing but waits that nobody has ended: then all in it wait for each other. `crowd`: all threads, once they are
/// all known to the end.
fn follow(
    (threads, tasks): (&Threads, &TaskTable),
    (waiter, waker): (ThreadId, ThreadId),
    (from, to): (Ns, Ns),
    crowd: Option<&Crowd>,
) -> (Vec<Link>, bool) {
    let mut links: Vec<Link> = Vec::new();
    let of = threads
        .get(&waiter)
        .map(|thread| tasks.pid(thread.identity.process));
    let mut passed: Vec<u32> = of.into_iter().collect();
    let mut seen = vec![waiter];
    let mut all_go_on = true;
    let mut next = Some((waker, from, to));
    while let Some((id, from, to)) = next.take() {
        let Some(thread) = threads
            .get(&id)
            .filter(|_| !seen.contains(&id) && links.len() < MAX_LINKS)
        else {
            break;
        };
        let Some(doing) = thread.recent.doing(from, to) else {
            break;
        };
        links.push(Link {
            name: tasks.named(&thread.identity),
            cause: doing.cause,
            ns: doing.ns,
            stack: thread.stacks.during(from, to).map(|(stack, _)| stack),
        });
        seen.push(id);
        passed.push(tasks.pid(thread.identity.process));
        all_go_on &= doing.next.is_none();
        let held = || {
            let held = held_up(thread, doing.cause, from, to)?;
            match crowd {
                Some(crowd) => crowd.onward((threads, tasks), thread, held, &passed),
                None => Some(held),
            }
        };
        next = doing.next.or_else(held);
        if let Some((back, ..)) = next
            && back == waiter
        {
            return (links, all_go_on);
        }
    }
    (links, false)
}

/// Who is in the way of a thread that waits for its lock, or its answer, to this moment.
pub(super) fn held_up(thread: &Thread, cause: Cause, from: Ns, to: Ns) -> Option<(ThreadId, Ns, Ns)> {
    let blocked = thread
        .blocked
        .filter(|blocked| !blocked.let_go && blocked.cause == cause)?;
    let Who::Thread(owner) = blocked.owner.who else {
        return None;
    };
    let (start, end) = (blocked.start.max(from), blocked.end.min(to));
    (start < end).then_some((owner, start, end))
}

/// The chain from a waiter to where the time went, with the waiter's own link first; empty where it goes no further than the waiter.
pub(super) fn links_to(
    known: (&Threads, &TaskTable),
    (waiter, next): (ThreadId, ThreadId),
    cause: Cause,
    (start, end): (Ns, Ns),
    crowd: Option<&Crowd>,
) -> Vec<Link> {
    let (mut links, comes_back) = follow(known, (waiter, next), (start, end), crowd);
    let (threads, tasks) = known;
    if let (false, Some(thread)) = (links.is_empty(), threads.get(&waiter)) {
        let own = Link {
            name: tasks.named(&thread.identity),
            cause,
            ns: end.saturating_sub(start),
            stack: None,
        };
        links.insert(0, own);
        if comes_back {
            links.push(own);
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::{Doing, Segment, Segments};
    use holdup_evidence::{Cause, ThreadId};

    #[test]
    fn the_most_of_a_window_wins_and_only_its_part_of_a_segment_counts() {
        let mut past = Segments::default();
        for (cause, start, end, waker) in [
            (Cause::DiskSync, 0, 100, None),
            (Cause::CpuUser, 100, 130, None),
            (Cause::LockFutex, 130, 160, Some(ThreadId(7))),
            (Cause::CpuUser, 160, 165, None),
        ] {
            past.push(Segment {
                cause,
                start,
                end,
                waker,
                of_client: false,
            });
        }
        let of_client = false;
        let doing = |cause, ns, next| {
            Some(Doing {
                cause,
                ns,
                next,
                of_client,
            })
        };
        assert_eq!(past.doing(0, 165), doing(Cause::DiskSync, 100, None));
        assert_eq!(past.doing(90, 165), doing(Cause::CpuUser, 35, None));
        assert_eq!(
            past.doing(125, 165),
            doing(Cause::LockFutex, 30, Some((ThreadId(7), 130, 160)))
        );
        assert_eq!(past.doing(165, 200), None);
    }
}
