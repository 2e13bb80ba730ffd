//! Requests that were read before anybody looked: who has them.
//!
//! In: connections on which a client has had the last word, and waits that go on since. Out: threads that have such a
//! request to answer. The kernel does not note who reads; so it is the only one who began to wait within the same
//! moment, and has waited since, or whose event loop has the connection in its set: what a loop reads no other thread has. Where neither is so nobody is
//! named: a client also sends what is no request.

use super::idle::Work;
use super::owners;
use holdup_evidence::{Earlier, GoesOn, Ns, Object, ObjectId, ThreadId, Wait, WaitMemory, Words};
use holdup_knowledge::system_calls::{self, Kind as Does};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Within this time of a request's coming in, whoever takes it up has done what comes before its wait, nanoseconds: it
/// parses it, or hands it to a worker.
const TAKEN_UP: Ns = 100_000_000;

/// So long after the server's last word a client's is more than a word about that: what an HTTP/2 client says of its
/// windows follows in a round trip, nanoseconds.
const ANEW: Ns = 1_000_000_000;

/// A client that speaks so long after the server did speaks for itself, and does not only acknowledge, nanoseconds. It is more than a round
/// trip between hosts of one place.
pub(super) const PAUSE: Ns = 100_000_000;

/// `POLLIN`, and `EPOLLIN`.
const POLLIN: u16 = 1;

/// Connections that are remembered.
const MAX_CONNECTIONS: usize = 65_536;

/// What is known of them.
#[derive(Debug, Clone, Default)]
pub(super) struct EarlierRequests {
    /// By connection.
    open: HashMap<u64, Earlier>,
    /// Those of which it is not known who had the last word.
    unclear: Vec<Earlier>,
    /// Those with somebody who has them.
    taken: HashSet<u64>,
    /// Sockets (inodes) on which somebody else was asked, and has not answered.
    asked: HashSet<u64>,
    /// Connections (inodes) of those that an event loop reads: nobody else waits for what comes on them.
    in_loops: HashSet<u64>,
    /// Processes with an event loop that reads clients' connections, of which not all are known: any request may be its.
    crowded: HashSet<u32>,
    /// Threads that waited as observation had begun, but for those at the door: of which process, and since when.
    waiting: HashMap<ThreadId, (u32, Ns)>,
}

impl EarlierRequests {
    pub(super) fn add(&mut self, earlier: &Earlier) {
        if self.open.len() + self.asked.len() + self.unclear.len() >= MAX_CONNECTIONS {
            return;
        }
        if earlier.unclear {
            self.unclear.push(earlier.clone());
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
        let some = !self.open.is_empty() || !self.unclear.is_empty();
        if some && !at_the_door {
            self.waiting.entry(wait.thread).or_insert((pid, wait.start));
        }
    }

    /// What is open on a connection, if that is from before anybody looked.
    pub(super) fn asked(&self, connection: u64) -> Option<&Earlier> {
        self.open.get(&connection)
    }

    /// Something was said there since.
    pub(super) fn over(&mut self, connection: u64) {
        if let Some(over) = self.open.remove(&connection) {
            self.in_loops.remove(&over.inode);
        }
        self.taken.remove(&connection);
    }

    /// How many there are that nobody is known to have.
    pub(super) fn untaken(&self) -> u64 {
        (self.open.len() - self.taken.len()) as u64
    }

    /// Clients that were answered on the same connection before, and whose last word, from before `began`, nobody has answered or works on until
    /// `end`: of the process with most of them, how many, and how long the one that waits longest does. A word that follows the server's own at
    /// once is one about that, and what is said where the server has not answered each message until then needs no answer.
    pub(super) fn unanswered(&self, began: Ns, end: Ns) -> Option<(u32, u64, Ns)> {
        let mut by_process: BTreeMap<u32, (u64, Ns)> = BTreeMap::new();
        let free = self
            .open
            .values()
            .filter(|one| !self.taken.contains(&one.connection));
        let asks = |one: &&Earlier| {
            let anew = one.after.is_some_and(|after| after >= PAUSE);
            let answers = one.words.is_some_and(Words::answers_each);
            anew && answers && one.said_at.saturating_add(one.tick) <= began
        };
        for one in free.filter(asks) {
            let (clients, longest) = by_process.entry(one.pid).or_default();
            *clients += 1;
            *longest = end.saturating_sub(one.said_at).max(*longest);
        }
        let most = by_process.into_iter().max_by_key(|(_, found)| *found)?;
        let (pid, (clients, longest)) = most;
        Some((pid, clients, longest))
    }

    /// Which of them a thread of the process `pid` has, that waits so: those that came in as it began to. `open`: it waits until observation ends.
    /// Who has answered goes on to hear its client, and not to wait for its ancestor: so one that still does has not answered yet.
    pub(super) fn of_waiter(
        &self,
        pid: u32,
        wait: &Wait,
        work: Option<&Work>,
        memory: Option<&WaitMemory>,
        open: bool,
    ) -> Vec<Earlier> {
        let polls = memory.is_some_and(|memory| !memory.polled.is_empty());
        let deaf = match work {
            Some(Work::Other(_)) if !polls => false,
            Some(Work::Ordered(_)) => true,
            _ => return Vec::new(),
        };
        let only = |one: &Earlier| {
            let begin = one.said_at.saturating_sub(one.tick);
            let end = one.said_at.saturating_add(one.tick).saturating_add(TAKEN_UP);
            let mut since = self
                .waiting
                .iter()
                .filter(|(_, (of, start))| *of == pid && (begin..=end).contains(start));
            // Of two nobody knows which.
            let first = since.next().map(|(thread, _)| *thread);
            let read_by_loop = self.in_loops.contains(&one.inode) || self.crowded.contains(&pid);
            one.pid == pid && !read_by_loop && first == Some(wait.thread) && since.next().is_none()
        };
        let mut found = take(&self.open, &self.taken, deaf, only);
        if found.is_empty() && deaf && open {
            found.extend(self.unclear.iter().find(|one| only(one)).cloned());
        }
        found
    }

    /// A wait was judged: for this work, if for any, and with these requests.
    pub(super) fn judged(&mut self, wait: &Wait, work: Option<&Work>, found: &[Earlier]) {
        // Who polls the door stands there, too; that is known only now.
        let waits_since = self.waiting.get(&wait.thread).map(|(_, since)| *since);
        let same = waits_since.is_some_and(|since| (wait.start..=wait.end).contains(&since));
        if same && !wait.serves && owners::of(wait).is_none() && matches!(work, Some(Work::OfClients(_))) {
            self.waiting.remove(&wait.thread);
        }
        for one in found {
            if one.unclear {
                self.unclear.retain(|other| other.connection != one.connection);
            } else {
                self.taken.insert(one.connection);
            }
        }
    }

    /// An event loop of the process `pid` waits for more to come on these: it reads them, and a worker that is parked meanwhile does
    /// not. `of_clients`: whether such an object is where clients come in.
    pub(super) fn polled_by_loop<'a>(
        &mut self,
        pid: u32,
        set: &WaitMemory,
        object: impl Fn(ObjectId) -> Option<&'a Object>,
        of_clients: impl Fn(&Object) -> bool,
    ) {
        let read = set.polled.iter().filter(|fd| fd.events & POLLIN != 0);
        let read: Vec<&Object> = read.filter_map(|fd| object(fd.object?)).collect();
        if set.polled_truncated && read.iter().any(|object| of_clients(object)) {
            self.crowded.insert(pid);
        }
        let inodes: HashSet<u64> = read.iter().map(|object| object.inode).collect();
        let open = self.open.values().map(|one| one.inode);
        self.in_loops.extend(open.filter(|inode| inodes.contains(inode)));
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
        let found = take(&self.open, &self.taken, false, has);
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

/// Those that nobody has, and that are more than a word about an answer. `deaf`: whoever has them hears no client, as no thread does that is to
/// read words about its answers. There a word is a question if each before it was answered, however soon it followed.
fn take(
    open: &HashMap<u64, Earlier>,
    taken: &HashSet<u64>,
    deaf: bool,
    has: impl Fn(&Earlier) -> bool,
) -> Vec<Earlier> {
    let free = open.values().filter(|one| !taken.contains(&one.connection));
    let asks = |one: &&Earlier| {
        let anew = one.after.is_none_or(|after| after >= ANEW);
        anew || deaf && one.words.is_some_and(Words::answers_each)
    };
    free.filter(asks).filter(|one| has(one)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{ANEW, Earlier, EarlierRequests, PAUSE, POLLIN, Words};
    use crate::attribution::idle::Work;
    use holdup_evidence::{
        Call, DeviceNumber, GoesOn, Object, ObjectId, ObjectKind, PolledFd, ThreadId, Wait, WaitMemory,
    };

    const SECOND: u64 = 1_000_000_000;
    const POLL: i32 = 7;

    /// What a client asked of process 7 at ten seconds.
    fn request(after: Option<u64>) -> Earlier {
        Earlier {
            pid: 7,
            connection: 1,
            inode: 5,
            said_at: 10 * SECOND,
            tick: 4_000_000,
            by_client: true,
            after,
            words: None,
            unclear: false,
        }
    }

    fn parked(start: u64) -> Wait {
        Wait::new(
            ThreadId(1),
            1,
            (start, 20 * SECOND),
            Call {
                number: 202,
                args: [0; 4],
            },
        )
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
        earlier.add(&request(after));
        let mut still_waits = |thread, start, number| {
            let wait = GoesOn {
                thread: ThreadId(thread),
                start,
                call: Call { number, args: [0; 4] },
                set: None,
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
            assert!(
                earlier
                    .of_waiter(pid, &polls, Some(&clients), None, true)
                    .is_empty()
            );
            earlier.judged(&polls, Some(&clients), &[]);
        }
        let taken = earlier.of_waiter(pid, &parked(start), Some(work), None, true);
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

    /// The connection of the request, in the set of an event loop of the process.
    fn polled(events: u16) -> WaitMemory {
        WaitMemory {
            polled: vec![PolledFd {
                fd: 9,
                events,
                revents: 0,
                object: Some(ObjectId(1)),
                own: false,
            }],
            ..WaitMemory::empty(ThreadId(3), 1)
        }
    }

    fn parked_worker_takes(set: Option<WaitMemory>, inode: u64) -> bool {
        let connection = Object {
            kind: ObjectKind::Other(0),
            path: None,
            file_system: String::new(),
            device: DeviceNumber { major: 0, minor: 0 },
            inode,
        };
        let mut earlier = EarlierRequests::default();
        earlier.add(&request(None));
        let since = 10 * SECOND + 1_000_000;
        let call = Call {
            number: 202,
            args: [0; 4],
        };
        let thread = ThreadId(1);
        earlier.still_waits(
            7,
            &GoesOn {
                thread,
                start: since,
                call,
                set: None,
            },
        );
        if let Some(set) = set {
            earlier.polled_by_loop(7, &set, |_| Some(&connection), |_| true);
        }
        let work = Work::Other("work from another thread".to_owned());
        !earlier
            .of_waiter(7, &parked(since), Some(&work), None, true)
            .is_empty()
    }

    #[test]
    fn a_parked_worker_does_not_have_what_an_event_loop_reads() {
        assert!(parked_worker_takes(None, 5));
        assert!(!parked_worker_takes(Some(polled(POLLIN)), 5));
        assert!(parked_worker_takes(Some(polled(POLLIN)), 6), "another connection");
    }

    #[test]
    fn a_worker_may_have_what_its_loop_reads_no_more_meanwhile() {
        const ONE_SHOT_IS_OVER: u16 = 0;
        assert!(parked_worker_takes(Some(polled(ONE_SHOT_IS_OVER)), 5));
    }

    #[test]
    fn where_a_loop_reads_more_than_is_known_nobody_knows_who_has_it() {
        let more = WaitMemory {
            polled_truncated: true,
            ..polled(POLLIN)
        };
        assert!(!parked_worker_takes(Some(more), 6));
    }

    /// Whether who waits for such work has the request of a client that spoke again within a millisecond.
    fn takes_at_once(work: &Work, words: Option<Words>) -> bool {
        let mut earlier = EarlierRequests::default();
        earlier.add(&Earlier {
            pid: 7,
            connection: 1,
            inode: 5,
            said_at: 10 * SECOND,
            tick: 4_000_000,
            by_client: true,
            after: Some(1_000_000),
            words,
            unclear: false,
        });
        let since = 10 * SECOND + 1_000_000;
        earlier.still_waits(
            7,
            &GoesOn {
                thread: ThreadId(1),
                start: since,
                call: Call {
                    number: 45,
                    args: [0; 4],
                },
                set: None,
            },
        );
        !earlier
            .of_waiter(7, &parked(since), Some(work), None, true)
            .is_empty()
    }

    #[test]
    fn who_hears_no_client_has_the_question_that_followed_at_once() {
        let words = |received, sent| Some(Words { received, sent });
        let ordered = Work::Ordered("a word".to_owned());
        assert!(
            takes_at_once(&ordered, words(6, 6)),
            "a command after each answer"
        );
        assert!(!takes_at_once(&ordered, words(60, 3)), "publications");
        assert!(!takes_at_once(&ordered, words(1, 0)), "the first word");
        assert!(!takes_at_once(&ordered, None), "nothing is known");
        let other = Work::Other("work".to_owned());
        assert!(
            !takes_at_once(&other, words(6, 6)),
            "its loop may hear the client"
        );
    }

    #[test]
    fn who_waits_for_its_ancestor_until_the_end_has_not_answered_the_last_word_of_its_client() {
        let since = 10 * SECOND + 1_000_000;
        let takes = |work: &Work, start: u64, open: bool| {
            let mut earlier = EarlierRequests::default();
            earlier.add(&Earlier {
                pid: 7,
                connection: 5,
                inode: 5,
                said_at: 10 * SECOND,
                tick: 4_000_000,
                by_client: true,
                after: None,
                words: None,
                unclear: true,
            });
            let call = Call {
                number: 0,
                args: [0; 4],
            };
            let wait = GoesOn {
                thread: ThreadId(1),
                start,
                call,
                set: None,
            };
            earlier.still_waits(7, &wait);
            assert_eq!(
                (earlier.untaken(), earlier.unanswered(SECOND, 20 * SECOND)),
                (0, None)
            );
            !earlier
                .of_waiter(7, &parked(start), Some(work), None, open)
                .is_empty()
        };
        let ordered = Work::Ordered("a word".to_owned());
        assert!(takes(&ordered, since, true));
        assert!(!takes(&ordered, since, false), "it went on to something else");
        assert!(!takes(&ordered, 5 * SECOND, true), "it rested before");
        assert!(
            !takes(&ordered, 12 * SECOND, true),
            "it did something else in between"
        );
        let other = Work::Other("work".to_owned());
        assert!(!takes(&other, since, true), "another thread may hear the client");
    }

    #[test]
    fn a_client_that_was_answered_before_and_spoke_for_itself_has_no_answer() {
        const BEGAN: u64 = 12 * SECOND;
        let unanswered = |after: Option<u64>, said_at: u64, words: Option<Words>| {
            let mut earlier = EarlierRequests::default();
            earlier.add(&Earlier {
                said_at,
                words,
                ..request(after)
            });
            let found = earlier.unanswered(BEGAN, 15 * SECOND);
            earlier.over(1);
            assert_eq!(earlier.unanswered(BEGAN, 15 * SECOND), None, "it has its answer");
            found
        };
        let each = |received, sent| unanswered(Some(2 * PAUSE), 10 * SECOND, Some(Words { received, sent }));
        assert_eq!(each(400, 3), None, "a publisher, whose pings alone are answered");
        assert_eq!(each(9, 0), None, "statistics");
        assert_eq!(each(2, 1), None, "a subscription, after a greeting");
        assert_eq!(each(5, 900), None, "events that are delivered");
        assert_eq!(
            each(12, 11),
            Some((7, 1, 5 * SECOND)),
            "each was answered, but the last"
        );
        let unanswered = |after: Option<u64>, said_at: u64| {
            unanswered(
                after,
                said_at,
                Some(Words {
                    received: 12,
                    sent: 11,
                }),
            )
        };
        assert_eq!(unanswered(Some(2 * PAUSE), 10 * SECOND), Some((7, 1, 5 * SECOND)));
        assert_eq!(
            unanswered(Some(PAUSE / 2), 10 * SECOND),
            None,
            "an acknowledgement"
        );
        assert_eq!(
            unanswered(None, 10 * SECOND),
            None,
            "where the server never spoke"
        );
        assert_eq!(unanswered(Some(2 * PAUSE), 13 * SECOND), None, "met on the way");
    }

    #[test]
    fn who_has_answered_is_asked_no_more() {
        let mut earlier = EarlierRequests::default();
        earlier.add(&Earlier {
            by_client: false,
            ..request(None)
        });
        assert!(earlier.asked.contains(&5));
        earlier.answered(5);
        assert!(earlier.asked.is_empty());
    }
}
