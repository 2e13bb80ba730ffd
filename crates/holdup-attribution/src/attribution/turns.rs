//! Ways of waiting for work that no socket of a client shows: one's turn at the next client, and a word from one's own workers.
//!
//! The problem: of several processes or threads that serve at one place (Postfix, Apache's prefork, uWSGI), one waits for a client and
//! has a file or a mutex locked meanwhile, and the others wait for that lock; their parent waits for its workers by pairs of sockets. The choice:
//! such a lock is known by its having been waited for while its holder, who serves too, was idle itself. Once it is known,
//! each wait for it of one who serves and has no request is for a turn, however busy the others are: they take the
//! clients.
//!
//! In: waits, who serves, and what the holder did meanwhile. Out: for what work a wait was, in words.

use super::Attribution;
use super::idle::{Served, Work};
use super::judges::Knowledge;
use super::requests::RequestState;
use super::task_table::TaskTable;
use super::{orders, owners};
use holdup_evidence::{
    Cause, DeviceNumber, End, LockHolder, Object, ObjectKind, OpenState, Serving, SocketAddress, ThreadId,
    Wait, WaitMemory,
};
use holdup_knowledge::system_calls::{self, Kind as Does};
use std::collections::HashSet;

/// What those wait for.
const TURN: &str = "its turn at the next client, for which another process or thread of the server waits";
const WORD: &str = "a word from one of its workers";

/// Locks kept: more than there are services on a machine.
const MAX_LOCKS: usize = 1024;

/// What one locks who waits for the next client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TurnLock {
    /// A file, by device and inode.
    File(DeviceNumber, u64),
    /// A mutex of the C library's, by its address in this process.
    Mutex(u32, u64),
}

/// Locks of which it is known that who has them waits for a client.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    locks: HashSet<TurnLock>,
    /// Ends of threads that may have waited for their turn until observation ended: the holder's is to be reported first.
    late: Vec<End>,
}

impl Turns {
    /// Remembers the lock of a wait for a turn.
    pub(super) fn learn(&mut self, lock: TurnLock) {
        if self.locks.len() < MAX_LOCKS {
            self.locks.insert(lock);
        }
    }
}

impl RequestState {
    /// A process has come into view. Nobody has looked whether it serves if it was born since: it does what its siblings do.
    pub(super) fn serves_like_siblings(&mut self, pid: u32, creator: Option<u32>, tasks: &TaskTable) {
        let serves = |other: u32| self.served.serves(other);
        let siblings = || match creator {
            Some(creator) => tasks.has_child_of_any_program(creator, serves),
            None => tasks.has_sibling(pid, serves),
        };
        if !serves(pid) && siblings() {
            self.served.add(&Serving {
                processes: vec![pid],
                addresses: Vec::new(),
                ..Serving::default()
            });
        }
    }
}

impl Attribution {
    /// Keeps the end of a thread for later, if it can be judged only when others have been. Whether it was kept.
    pub(super) fn judged_later(&mut self, end: &End) -> bool {
        let Some(OpenState::Blocked(wait)) = &end.open else {
            return false;
        };
        let later = lock_of_server(&self.knowledge(), wait).is_some();
        if later {
            self.requests.turns.late.push(end.clone());
        }
        later
    }

    /// The ends that were kept.
    pub(super) fn judge_late(&mut self) {
        for end in std::mem::take(&mut self.requests.turns.late) {
            self.end_now(&end);
        }
    }
}

/// For what work this wait was, if it was for some of these. A wait with a request to answer never is.
pub(super) fn work_aside(known: &Knowledge<'_>, wait: &Wait, memory: Option<&WaitMemory>) -> Option<Work> {
    let phrase = if turn(known, wait).is_some() {
        TURN
    } else if heard_from_worker(known, wait) {
        WORD
    } else {
        return orders::awaited(known, wait, memory);
    };
    Some(Work::Other(phrase.to_owned()))
}

/// The lock that is a turn at the next client, if this wait is for one.
pub(super) fn turn(known: &Knowledge<'_>, wait: &Wait) -> Option<TurnLock> {
    let (holder, lock) = lock_of_server(known, wait)?;
    if known.turns.locks.contains(&lock) {
        return Some(lock);
    }
    let doing = known.threads.get(&holder?)?.recent.doing(wait.start, wait.end)?;
    (doing.cause == Cause::Idle).then_some(lock)
}

/// Of a wait of one who serves and has no request, for a lock that another who serves has: that one if it is observed, and the lock.
fn lock_of_server(known: &Knowledge<'_>, wait: &Wait) -> Option<(Option<ThreadId>, TurnLock)> {
    let waiter = &known.threads.get(&wait.thread)?.identity;
    let pid = known.tasks.pid(waiter.process);
    if wait.serves || !known.served.serves(pid) {
        return None;
    }
    match &wait.holder {
        Some(LockHolder::FileLock { pid: holder }) => {
            let object = known.objects.object(wait.object)?;
            let lock = TurnLock::File(object.device, object.inode);
            let other = pid != *holder && known.served.serves(*holder);
            other.then(|| (known.tasks.lived(*holder, wait.start), lock))
        }
        Some(LockHolder::FutexWords(_)) => {
            let owner = owners::of(wait)?;
            let holder = known.tasks.as_seen_by(waiter, owner.tid, wait.start)?;
            let its = known.tasks.pid(known.threads.get(&holder)?.identity.process);
            let other = holder != wait.thread && known.served.serves(its);
            other.then_some((Some(holder), TurnLock::Mutex(pid, wait.call.args[0])))
        }
        _ => None,
    }
}

/// Whether a wait of a process was ended by a word from one of its workers: it made the pair of sockets by which that
/// came, and it has children that do the serving for it.
fn heard_from_worker(known: &Knowledge<'_>, wait: &Wait) -> bool {
    let Some(thread) = known.threads.get(&wait.thread) else {
        return false;
    };
    let pid = known.tasks.pid(thread.identity.process);
    system_calls::is(&wait.call, Does::Polls | Does::WaitsForEpoll)
        && !wait.serves
        && known.served.serves(pid)
        && wait
            .ready
            .is_some_and(|ready| own_pair(pid, known.objects.object(Some(ready))))
        && known
            .tasks
            .has_child_of_any_program(pid, |child| known.served.serves(child))
}

/// Whether an object is one of a pair of sockets that this process made.
fn own_pair(pid: u32, object: Option<&Object>) -> bool {
    let unnamed = |address: &SocketAddress| matches!(address, SocketAddress::Unix(path) if path.is_empty());
    matches!(
        object.map(|object| &object.kind),
        Some(ObjectKind::Socket { local, peer, peer_pid: Some(maker), .. })
            if *maker == pid && unnamed(local) && unnamed(peer)
    )
}

/// Whether a process looks after the house while others of the same program serve: its parent does, or its children do, whether it has
/// their listener open itself or not.
pub(super) fn attends(pid: u32, served: &Served, tasks: &TaskTable) -> bool {
    if tasks.has_child(pid, |child| served.serves(child)) {
        return true;
    }
    if served.serves(pid) {
        return served.is_master(pid);
    }
    let parent = tasks.same_program_as(pid);
    parent.is_some_and(|parent| served.serves(parent))
}
