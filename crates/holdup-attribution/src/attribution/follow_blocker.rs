//! Where the path of a wait goes on that nobody was seen to end.
//!
//! The problem: a source that looks now and then sees no wakings, so no wait hands the path to anybody, and all of it would stay with the
//! one that waited. The choice: where it was seen who was in the way (the owner of a lock, the one process at the other end of
//! a pipe or connection), what that one did during the wait takes the wait's place on the path, as far as it has been reported. What it
//! were not known, and all waits of which nobody is known to have been in the way, stay the waiter's own. Unlike
//! a waking this says nothing of the time before the wait: that stays the waiter's, too.
//!
//! In: a wait that was booked, and who was in its way. Out: the waiter's path.

use super::blocker::Blockers;
use super::booking::Entry;
use super::deadlock;
use super::ended_wait::EndedWait;
use super::holders::{Blocker, Who};
use super::path::{Key, Path, Share};
use super::thread::Threads;
use holdup_evidence::{Ns, ThreadId, Wait, Waker};
use holdup_model::attributed::HowKnown;
use std::collections::VecDeque;

/// Pieces kept of each thread's recent way; what is older than that stays the waiter's.
const MAX_PIECES: usize = 128;

/// A thread's way of late: what its path was spent on, and when.
#[derive(Debug, Clone, Default)]
pub(super) struct Way {
    pieces: VecDeque<(Key, Ns, Ns)>,
}

impl Way {
    /// It went on so from one instant to another.
    pub(super) fn push(&mut self, key: Key, start: Ns, end: Ns) {
        if end <= start {
            return;
        }
        if let Some(last) = self.pieces.back_mut()
            && last.0 == key
            && last.2 == start
        {
            last.2 = end;
            return;
        }
        if self.pieces.len() == MAX_PIECES {
            self.pieces.pop_front();
        }
        self.pieces.push_back((key, start, end));
    }

    /// What it was between two instants, oldest first.
    fn between(&self, from: Ns, to: Ns) -> Vec<(Key, Ns, Ns)> {
        let within = self
            .pieces
            .iter()
            .map(|(key, start, end)| (*key, (*start).max(from), (*end).min(to)));
        within.filter(|(_, start, end)| start < end).collect()
    }
}

/// How much of a wait's ends rests on looks.
pub(super) type Unsure = Ns;

impl Blockers {
    /// The waiter's path without a wait that nobody was seen to end; `None` where wakers are recorded, or this one was.
    pub(super) fn path_without(&self, ended: &EndedWait, threads: &Threads) -> Option<(Path, Unsure)> {
        let unseen = !self.source.records_wakers() && !ended.handed_on;
        let unseen = unseen && matches!(ended.wait.waker, Waker::Unknown);
        let thread = threads.get(&ended.wait.thread).filter(|_| unseen)?;
        let unsure = thread.estimated.map_or(0, |(_, doubt)| doubt);
        Some((thread.path.clone(), unsure))
    }

    /// Lets what the blocker did take the place of the wait. `before`: the waiter's path without it.
    pub(super) fn follow(
        &self,
        ended: &EndedWait,
        entry: &Entry,
        found: Option<Blocker>,
        before: Option<Path>,
        threads: &mut Threads,
    ) {
        if self.source.records_wakers() {
            return;
        }
        let wait = ended.wait;
        if ended.handed_on {
            return goes_with(wait, threads);
        }
        let (from, to) = (ended.until.saturating_sub(ended.on_path), ended.until);
        let theirs = before
            .zip(found.and_then(|found| followed(threads, wait.thread, found)))
            .map(|(path, other)| (path, threads.get(&other).map(|other| other.way.between(from, to))));
        let Some(thread) = threads.get_mut(&wait.thread) else {
            return;
        };
        let own = thread.ledger.sites[entry.site].key;
        let Some((mut path, Some(pieces))) =
            theirs.filter(|(_, pieces)| pieces.as_ref().is_some_and(|all| !all.is_empty()))
        else {
            return thread.way.push(own, from, to);
        };
        let handed_on: Ns = pieces.iter().map(|(_, start, end)| end - start).sum();
        path.add(
            own,
            Share {
                ns: (to - from).saturating_sub(handed_on),
                count: u64::from(handed_on < to - from),
                handed_on,
            },
        );
        let mut at = from;
        for (key, start, end) in pieces {
            thread.way.push(own, at, start);
            path.spend(key, end - start, 1);
            thread.way.push(key, start, end);
            at = end;
        }
        thread.way.push(own, at, to);
        thread.path = path;
    }
}

/// Whose path is another's since then: what that one did meanwhile is on its way, too.
fn goes_with(wait: &Wait, threads: &mut Threads) {
    let Waker::Thread { thread: waker, .. } = &wait.waker else {
        return;
    };
    let theirs = threads.get(waker);
    let pieces = theirs.map(|waker| waker.way.between(wait.start, wait.end));
    if let Some(thread) = threads.get_mut(&wait.thread) {
        for (key, start, end) in pieces.unwrap_or_default() {
            thread.way.push(key, start, end);
        }
    }
}

/// The thread of the run whose doings a wait was for. The kernel names a process where a lock on a file or the other end of a
/// pipe or connection is meant: its first thread is the one if it is the only one.
fn followed(threads: &Threads, waiter: ThreadId, found: Blocker) -> Option<ThreadId> {
    let Who::Thread(other) = found.who else {
        return None;
    };
    let listed = match found.how {
        HowKnown::MutexOwner
        | HowKnown::PiFutex
        | HowKnown::RobustList
        | HowKnown::Monitor
        | HowKnown::Interpreter
        | HowKnown::Vmstructs => true,
        HowKnown::FileLock
        | HowKnown::Semaphore
        | HowKnown::SessionLock
        | HowKnown::PipePeer
        | HowKnown::QueueReceiver
        | HowKnown::SocketPeer => deadlock::alone(threads, other),
        _ => false,
    };
    (listed && other != waiter).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::{MAX_PIECES, Way};
    use crate::attribution::path::Key;

    #[test]
    fn a_way_is_cut_to_the_time_that_is_asked_for() {
        let mut way = Way::default();
        way.push(Key(1), 0, 10);
        way.push(Key(1), 10, 20);
        way.push(Key(2), 20, 30);
        way.push(Key(3), 30, 30);
        assert_eq!(way.between(5, 25), [(Key(1), 5, 20), (Key(2), 20, 25)]);
        assert_eq!(way.between(30, 40), []);
        for at in 0..2 * MAX_PIECES as u64 {
            way.push(Key(at as u32 % 2), 30 + at, 31 + at);
        }
        assert_eq!(way.between(0, 30), [], "only the last ones are kept");
    }
}
