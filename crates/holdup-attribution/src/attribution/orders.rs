//! Waiting for a word from the rest of one's own service: from the process that started one, or from a thread of one's own.
//!
//! The problem: the processes and threads of a service tell each other what to do by pipes, pairs of sockets, signals and joins, and between two
//! words they wait there. No socket of a client shows that this is a wait for work. The choice: who has the other end tells it.
//! An ancestor that has an end of a pipe gives orders there. A child of one's own, which has it alone, is waited for itself.
//!
//! In: waits, who serves, who has other ends, and whose child each process is. Out: for what work a wait was, in words.

use super::idle::Work;
use super::judges::Knowledge;
use crate::classify::awaits_room;
use holdup_evidence::{
    GoesOn, Ns, Object, ObjectId, ObjectKind, PolledFd, SocketAddress, ThreadId, Wait, WaitMemory, Waker,
};
use holdup_knowledge::system_calls::{self, Kind as Does};
use std::collections::HashMap;

/// What those wait for.
const ORDERS: &str = "a word from the process that started it";
const OWN_WORD: &str = "a word from another thread of its own";
const JOIN: &str = "the end of another thread of its own";

/// Shorter waits are between two words that follow each other, nanoseconds: what they are for is not worth a look at all requests.
const MIN_WAIT_NS: Ns = 10_000_000;

/// `FUTEX_CMD_MASK`, `FUTEX_WAIT`, `FUTEX_WAIT_BITSET`, `FUTEX_PRIVATE_FLAG`.
const OPERATION: u64 = 127;
const WAITS: [u64; 2] = [0, 9];
const PRIVATE: u64 = 128;

/// Epoll sets that are remembered: as many as there are sessions of a large database.
const MAX_SETS: usize = 4096;

/// What was in the epoll sets of waits that went on as observation began. Of a wait that something of its set ended, the record has that alone.
#[derive(Debug, Clone, Default)]
pub(super) struct Sets {
    by_epoll: HashMap<ObjectId, Box<WaitMemory>>,
}

impl Sets {
    pub(super) fn learn(&mut self, wait: &GoesOn) {
        let full = self.by_epoll.len() >= MAX_SETS;
        if let Some((epoll, set)) = wait.set.as_ref().filter(|_| !full) {
            self.by_epoll.insert(*epoll, set.clone());
        }
    }

    fn of(&self, epoll: ObjectId) -> Option<&WaitMemory> {
        self.by_epoll.get(&epoll).map(Box::as_ref)
    }
}

/// For what such work a wait was. A wait with a request to answer never is.
pub(super) fn awaited(known: &Knowledge<'_>, wait: &Wait, memory: Option<&WaitMemory>) -> Option<Work> {
    if wait.serves || wait.end.saturating_sub(wait.start) < MIN_WAIT_NS {
        return None;
    }
    let pid = known.tasks.pid(known.threads.get(&wait.thread)?.identity.process);
    if joins(known, pid, wait) {
        return Some(Work::Other(JOIN.to_owned()));
    }
    if reads_own_pipe(known, pid, wait) {
        return Some(Work::Other(OWN_WORD.to_owned()));
    }
    if stirred_by_newborn(known, pid, wait) {
        return Some(Work::Other(OWN_WORD.to_owned()));
    }
    from_ancestor(known, pid, wait, memory).then(|| Work::Ordered(ORDERS.to_owned()))
}

/// Whether what ended a server's poll is a pipe into which a process wrote that began only in the second half of the poll: another thread of the
/// server has started that one, or told a helper to, and until then the poll was for no word of it.
fn stirred_by_newborn(known: &Knowledge<'_>, pid: u32, wait: &Wait) -> bool {
    let polls = system_calls::is(&wait.call, Does::Polls | Does::WaitsForEpoll);
    let Some(pipe) = wait.ready.filter(|id| polls && is_channel(known, *id)) else {
        return false;
    };
    let half = wait.start.saturating_add(wait.end.saturating_sub(wait.start) / 2);
    let began_since = |id: ThreadId| {
        let thread = known.threads.get(&id);
        thread.is_some_and(|thread| !thread.adopted && thread.born > half)
    };
    let ends = known.tasks.other_ends(pipe);
    let mut others = ends.iter().filter(|other| **other != pid).peekable();
    let first = |other: &u32| known.tasks.lived(*other, wait.end);
    let wrote = match &wait.waker {
        Waker::Thread { thread, .. } => {
            let of = known.threads.get(thread);
            let of = of.map(|of| known.tasks.pid(of.identity.process));
            of.is_some_and(|of| of != pid) && began_since(*thread)
        }
        Waker::Outside { .. } | Waker::Interrupt { .. } | Waker::Unknown => false,
    };
    let newborn = others.peek().is_some() && others.all(|other| first(other).is_some_and(began_since));
    known.served.serves(pid) && (wrote || newborn)
}

/// Of a session of a server that is known by a signal, as the processes of PostgreSQL tell each other: it listens to its client all the while,
/// so whatever it was reported, it has nothing to answer. One that is to answer first awaits the word alone.
pub(super) fn of_session(
    known: &Knowledge<'_>,
    pid: u32,
    wait: &Wait,
    memory: Option<&WaitMemory>,
) -> Option<Work> {
    let object = |id| known.objects.object(Some(id));
    let is_told = |id: Option<ObjectId>| {
        id.and_then(object)
            .is_some_and(|object| object.kind == ObjectKind::Signalfd)
    };
    let polls = system_calls::is(&wait.call, Does::Polls | Does::WaitsForEpoll);
    let whole = |memory: &&WaitMemory| polls && !memory.polled_truncated && !memory.polled.is_empty();
    let memory = memory
        .filter(whole)
        .or_else(|| known.sets.of(wait.object?).filter(whole))?;
    // What a remembered set returned was another wait's.
    let successful = memory.seq == wait.seq && memory.returned.is_some_and(|value| value > 0);
    let mut ready = memory.polled.iter().filter(|fd| successful && fd.revents != 0);
    let known_object = match wait.ready.or_else(|| ready.next()?.object) {
        Some(ready) => is_told(Some(ready)),
        None => wait.serves && memory.polled.iter().any(|fd| is_told(fd.object)),
    };
    if !known_object || !known.served.serves(pid) {
        return None;
    }
    let mut client = None;
    for fd in &memory.polled {
        let found = fd.object.and_then(object)?;
        let is_client = known.served.is_clients(Some(found)) && !awaits_room(fd);
        if is_client {
            client = Some(found);
        } else if !(fd.own || is_word(found) || started_it(known, pid, fd)) {
            return None;
        }
    }
    client
        .and_then(|client| known.served.awaits(client))
        .map(Work::OfClients)
}

/// What a process is known by, or knows the time by.
fn is_word(object: &Object) -> bool {
    matches!(object.kind, ObjectKind::Signalfd | ObjectKind::Timerfd)
}

/// Whether a descriptor is a pipe from a process that this one descends from, or, where nobody knows whose it is, one beside which it runs the
/// program of its parent: it shows that one's end.
fn started_it(known: &Knowledge<'_>, pid: u32, fd: &PolledFd) -> bool {
    let pipe = |id: ObjectId| {
        known
            .objects
            .object(Some(id))
            .is_some_and(|object| object.kind == ObjectKind::Pipe)
    };
    let Some(id) = fd.object.filter(|id| pipe(*id)) else {
        return false;
    };
    match known.tasks.other_ends(id) {
        [] => known
            .tasks
            .same_program_as(pid)
            .is_some_and(|parent| known.served.serves(parent)),
        ends => given_by_ancestor(known, pid, ends),
    }
}

/// Whether an ancestor is among those who have an end, and nobody who descends from this process: a child's output it would wait for.
fn given_by_ancestor(known: &Knowledge<'_>, pid: u32, ends: &[u32]) -> bool {
    let descends = |other: &u32| known.tasks.ancestors(*other).any(|above| above == pid);
    known.tasks.ancestors(pid).any(|above| ends.contains(&above)) && !ends.iter().any(descends)
}

/// Whether a thread of a server waits for another one of the same process to end. The word that it waits on has that one's id.
fn joins(known: &Knowledge<'_>, pid: u32, wait: &Wait) -> bool {
    let [_, operation, value, _] = wait.call.args;
    let waits = system_calls::is(&wait.call, Does::WaitsForFutex)
        && operation & PRIVATE == 0
        && WAITS.contains(&(operation & OPERATION));
    let Some(tid) = u32::try_from(value)
        .ok()
        .filter(|_| waits && known.served.serves(pid))
    else {
        return false;
    };
    let joined = || {
        let waiter = &known.threads.get(&wait.thread)?.identity;
        let other = known.tasks.as_seen_by(waiter, tid, wait.start)?;
        Some(other != wait.thread && known.threads.get(&other)?.identity.process == waiter.process)
    };
    joined().unwrap_or(false)
}

/// Whether a thread of a server reads a pipe of which its process has both ends. Children inherit them, too, and do not mean to.
fn reads_own_pipe(known: &Knowledge<'_>, pid: u32, wait: &Wait) -> bool {
    let both = |id: ObjectId| is_channel(known, id) && known.tasks.other_ends(id).contains(&pid);
    known.served.serves(pid) && system_calls::is(&wait.call, Does::Reads) && wait.object.is_some_and(both)
}

/// Whether a thread of a service waits for a pipe, or an unnamed pair of sockets, from a process that its own descends from, which has no request
/// to answer either.
fn from_ancestor(known: &Knowledge<'_>, pid: u32, wait: &Wait, memory: Option<&WaitMemory>) -> bool {
    let serves = |pid: u32| known.served.serves(pid);
    if !serves(pid) && !known.tasks.ancestors(pid).any(serves) {
        return false;
    }
    let polls = system_calls::is(&wait.call, Does::Polls | Does::WaitsForEpoll);
    let reads = system_calls::is(&wait.call, Does::Reads | Does::Receives);
    let ends: Vec<&[u32]> = match memory.filter(|_| polls) {
        Some(memory) => {
            // Beside a signal or an event of somebody's it may await that word, as sessions of a database do for a lock.
            let others = memory.polled.iter().filter(|fd| !fd.own);
            let all: Option<Vec<ObjectId>> = others
                .map(|fd| fd.object.filter(|id| !awaits_room(fd) && is_channel(known, *id)))
                .collect();
            all.unwrap_or_default()
                .into_iter()
                .map(|id| known.tasks.other_ends(id))
                .collect()
        }
        None => {
            let channel = wait
                .object
                .filter(|id| (reads || polls) && is_channel(known, *id));
            channel.into_iter().map(|id| known.tasks.other_ends(id)).collect()
        }
    };
    // A helper that has forked into helpers of its own passes orders on to them, and takes what comes back.
    let of_own_kind = |ends: &[u32]| {
        let is_fork = |other: &u32| known.tasks.has_child(pid, |child| child == *other);
        ends.iter().all(|other| *other == pid || is_fork(other))
    };
    let known_ends = || ends.iter().filter(|ends| !ends.is_empty());
    known_ends().any(|ends| given_by_ancestor(known, pid, ends))
        && known_ends().all(|ends| given_by_ancestor(known, pid, ends) || of_own_kind(ends))
        && !known_ends().any(|ends| answers_since(known, ends, wait))
}

/// A pipe, or one of a pair of sockets that have no names.
fn is_channel(known: &Knowledge<'_>, id: ObjectId) -> bool {
    let unnamed = |address: &SocketAddress| matches!(address, SocketAddress::Unix(path) if path.is_empty());
    match known.objects.object(Some(id)).map(|object| &object.kind) {
        Some(ObjectKind::Pipe) => true,
        Some(ObjectKind::Socket { local, peer, .. }) => unnamed(local) && unnamed(peer),
        _ => false,
    }
}

/// Whether a thread of one of these processes has a request to answer that it had as the wait began: whoever it gives orders to may be waited
/// for.
fn answers_since(known: &Knowledge<'_>, pids: &[u32], wait: &Wait) -> bool {
    let of_these = |reader: ThreadId| {
        let thread = known.threads.get(&reader);
        thread.is_some_and(|thread| pids.contains(&known.tasks.pid(thread.identity.process)))
    };
    known.answering.has_since(wait.start, of_these)
}
