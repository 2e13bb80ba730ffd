//! Requests that were read before anybody looked: who has them.
//!
//! In: connections on which a client has had the last word, and waits that go on since. Out: threads that have such a
//! request to answer. The kernel does not note who reads; so it is the only one who began to wait within the same
//! moment, and has waited since, or whose event loop has the connection in its set. Where neither is so nobody is
//! named: a client also sends what is no request.

use super::idle::Work;
use super::owners;
use holdup_evidence::{Earlier, GoesOn, Ns, Object, ObjectId, ThreadId, Wait, WaitMemory};
use holdup_knowledge::system_calls::{self, Kind as Does};
use std::collections::{HashMap, HashSet};

/// Within this time of a request's coming in, whoever takes it up has done what comes before its wait, nanoseconds: it
/// parses it, or hands it to a worker.
const TAKEN_UP: Ns = 100_000_000;

/// So long after the server's last word a client's is more than a word about that: what an HTTP/2 client says of its
/// windows follows in a round trip, nanoseconds.
const ANEW: Ns = 1_000_000_000;

/// Connections that are remembered.
const MAX_CONNECTIONS: usize = 65_536;

/// What is known of them.
#[derive(Debug, Clone, Default)]
pub(super) struct EarlierRequests {
    /// By connection.
    open: HashMap<u64, Earlier>,
    /// Those with somebody who has them.
    taken: HashSet<u64>,
    /// Sockets (inodes) on which somebody else was asked, and has not answered.
    asked: HashSet<u64>,
    /// Threads that waited as observation had begun, but for those at the door: of which process, and since when.
    waiting: HashMap<ThreadId, (u32, Ns)>,
}

impl EarlierRequests {
    pub(super) fn add(&mut self, earlier: &Earlier) {
        if self.open.len() + self.asked.len() >= MAX_CONNECTIONS {
            return;
        }
        if earlier.by_client {
            self.open.insert(earlier.connection, earlier.clone());
        } else {
            self.asked.insert(earlier.inode);
        }
    }

    /// Who was asked there has answered, or will not.
    pub(super) fn answered(&mut self, inode: u64) {
        self.asked.remove(&inode);
    }

    /// A thread waits. Who waits for new connections, or for whichever of many, has no single request.
    pub(super) fn still_waits(&mut self, pid: u32, wait: &GoesOn) {
        let at_the_door = system_calls::is(&wait.call, Does::Accepts | Does::WaitsForEpoll);
        if !self.open.is_empty() && !at_the_door {
            self.waiting.entry(wait.thread).or_insert((pid, wait.start));
        }
    }

    /// Something was said there since.
    pub(super) fn over(&mut self, connection: u64) {
        self.open.remove(&connection);
        self.taken.remove(&connection);
    }

    /// How many there are that nobody is known to have.
    pub(super) fn untaken(&self) -> u64 {
        (self.open.len() - self.taken.len()) as u64
    }

    /// Which of them a thread of the process `pid` has, that waits so: those that came in as it began to.
    pub(super) fn of_waiter(
        &self,
        pid: u32,
        wait: &Wait,
        work: Option<&Work>,
        memory: Option<&WaitMemory>,
    ) -> Vec<Earlier> {
        let polls = memory.is_some_and(|memory| !memory.polled.is_empty());
        if polls || !matches!(work, Some(Work::Other(_))) {
            return Vec::new();
        }
        let only = |one: &Earlier| {
            let begin = one.said_at.saturating_sub(one.tick);
            let end = one.said_at.saturating_add(one.tick).saturating_add(TAKEN_UP);
            let mut since = self
                .waiting
                .iter()
                .filter(|(_, (of, start))| *of == pid && (begin..=end).contains(start));
            // Of two nobody knows which.
            let first = since.next().map(|(thread, _)| *thread);
            one.pid == pid && first == Some(wait.thread) && since.next().is_none()
        };
        take(&self.open, &self.taken, only)
    }

    /// A wait was judged: for this work, if for any, and with these requests.
    pub(super) fn judged(&mut self, wait: &Wait, work: Option<&Work>, found: &[Earlier]) {
        // Who polls the door stands there, too; that is known only now.
        let waits_since = self.waiting.get(&wait.thread).map(|(_, since)| *since);
        let same = waits_since.is_some_and(|since| (wait.start..=wait.end).contains(&since));
        if same && !wait.serves && owners::of(wait).is_none() && matches!(work, Some(Work::OfClients(_))) {
            self.waiting.remove(&wait.thread);
        }
        self.taken.extend(found.iter().map(|one| one.connection));
    }

    /// Which of them an event loop of the process `pid` has, with such a set: those of its connections.
    pub(super) fn taken_in_set<'a>(
        &mut self,
        pid: u32,
        set: Option<&WaitMemory>,
        object: impl Fn(ObjectId) -> Option<&'a Object>,
    ) -> Vec<Earlier> {
        let polled = set.map_or(&[][..], |set| &set.polled);
        let polled = polled.iter().filter_map(|fd| object(fd.object?));
        let inodes: HashSet<u64> = polled.map(|object| object.inode).collect();
        let has = |one: &Earlier| one.pid == pid && inodes.contains(&one.inode);
        let found = take(&self.open, &self.taken, has);
        self.taken.extend(found.iter().map(|one| one.connection));
        found
    }

    /// Of what an event loop polls: where somebody else was asked.
    pub(super) fn asked_of<'a>(
        &self,
        memory: Option<&WaitMemory>,
        object: impl Fn(ObjectId) -> Option<&'a Object>,
    ) -> Option<ObjectId> {
        let mut polled = memory?.polled.iter().filter_map(|fd| fd.object);
        polled.find(|id| object(*id).is_some_and(|object| self.asked.contains(&object.inode)))
    }
}

/// Those that nobody has, and that are more than a word about an answer.
fn take(open: &HashMap<u64, Earlier>, taken: &HashSet<u64>, has: impl Fn(&Earlier) -> bool) -> Vec<Earlier> {
    let free = open.values().filter(|one| !taken.contains(&one.connection));
    let anew = |one: &&Earlier| one.after.is_none_or(|after| after >= ANEW);
    free.filter(anew).filter(|one| has(one)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{ANEW, Earlier, EarlierRequests};
    use crate::attribution::idle::Work;
    use holdup_evidence::{Call, GoesOn, TaskState, ThreadId, Wait, Waker};

    const SECOND: u64 = 1_000_000_000;
    const POLL: i32 = 7;

    fn parked(start: u64) -> Wait {
        Wait {
            thread: ThreadId(1),
            seq: 1,
            start,
            end: 20 * SECOND,
            clock: Default::default(),
            state: TaskState::Interruptible,
            iowait: false,
            call: Call {
                number: 202,
                args: [0; 4],
            },
            object: None,
            ready: None,
            waker: Waker::Unknown,
            holder: None,
            kernel_stack: None,
            serves: false,
            unanswered: None,
            memory_follows: false,
            asked: None,
        }
    }

    fn takes(pid: u32, after: Option<u64>, start: u64, work: &Work) -> bool {
        takes_beside(pid, after, start, work, None)
    }

    /// `other`: since when another thread waits, and in which call.
    fn takes_beside(
        pid: u32,
        after: Option<u64>,
        start: u64,
        work: &Work,
        other: Option<(u64, i32)>,
    ) -> bool {
        let mut earlier = EarlierRequests::default();
        earlier.add(&Earlier {
            pid: 7,
            connection: 1,
            inode: 5,
            said_at: 10 * SECOND,
            tick: 4_000_000,
            by_client: true,
            after,
        });
        let mut still_waits = |thread, start, number| {
            let wait = GoesOn {
                thread: ThreadId(thread),
                start,
                call: Call { number, args: [0; 4] },
            };
            earlier.still_waits(pid, &wait);
        };
        still_waits(1, start, 202);
        if let Some((start, number)) = other {
            still_waits(2, start, number);
        }
        // A poll of its listening socket has ended meanwhile.
        if let Some((start, POLL)) = other {
            let clients = Work::OfClients("a client".to_owned());
            let polls = Wait {
                thread: ThreadId(2),
                ..parked(start)
            };
            assert!(earlier.of_waiter(pid, &polls, Some(&clients), None).is_empty());
            earlier.judged(&polls, Some(&clients), &[]);
        }
        let taken = earlier.of_waiter(pid, &parked(start), Some(work), None);
        earlier.judged(&parked(start), Some(work), &taken);
        assert_eq!(taken.is_empty(), earlier.untaken() == 1);
        !taken.is_empty()
    }

    #[test]
    fn who_waits_since_the_moment_it_came_in_has_it() {
        let work = Work::Other("work from another thread".to_owned());
        let since = 10 * SECOND + 1_000_000;
        assert!(takes(7, None, since, &work));
        assert!(takes(7, Some(ANEW), since, &work));
        assert!(!takes(7, Some(2_000_000), since, &work), "a word about an answer");
        assert!(!takes(8, None, since, &work), "another process");
        let beside = |number| takes_beside(7, None, since, &work, Some((since + 5, number)));
        assert!(!beside(202), "two wait since then");
        assert!(!beside(45), "the other may have it");
        assert!(beside(288), "the other waits for the next connection");
        assert!(beside(POLL), "the other has polled for the next connection");
        assert!(!takes(7, None, 9 * SECOND, &work), "parked before");
        assert!(!takes(7, None, 11 * SECOND, &work), "parked long after");
        let clients = Work::OfClients("a client".to_owned());
        assert!(!takes(7, None, since, &clients), "waits for the next client");
    }

    #[test]
    fn who_has_answered_is_asked_no_more() {
        let mut earlier = EarlierRequests::default();
        earlier.add(&Earlier {
            pid: 7,
            connection: 1,
            inode: 5,
            said_at: 10 * SECOND,
            tick: 4_000_000,
            by_client: false,
            after: None,
        });
        assert!(earlier.asked.contains(&5));
        earlier.answered(5);
        assert!(earlier.asked.is_empty());
    }
}
