//! Waiting for work: what a server does between two requests, and nobody's loss.
//!
//! In: who serves whom (which processes have listening sockets or connections that were accepted there), and waits that were
//! told already. Out: whether a wait was for the next request: for a new connection, for something to come on an
//! accepted one, or of a worker parked until such a thread hands it work. A process that serves nobody is never idle,
//! whatever it waits for; and neither is a wait that something else than a client ended.

use crate::classify::{awaits_room, is_over};
use holdup_evidence::{
    Cause, Object, ObjectId, ObjectKind, PolledFd, Serving, SocketAddress, Wait, WaitMemory, Waker,
};
use holdup_knowledge::system_calls::{self, Kind as Does};
use holdup_model::attributed::AwaitedClients;
use std::collections::HashSet;

/// `FUTEX_CMD_MASK`: the operation without its flags.
const OPERATION: u64 = 127;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
/// `FUTEX_PRIVATE_FLAG`: the futex is one of the process alone.
const PRIVATE: u64 = 128;
/// What a mutex holds that is locked and has waiters, in the C library's and in Rust's: who waits for it to be something else
/// waits for a lock. Condition variables, semaphores and parked threads have other numbers.
const LOCKED_WITH_WAITERS: u32 = 2;

/// What a parked worker waits for.
const WORK: &str = "work from another thread";

/// What the thread waits for that takes a server's signals.
const SIGNAL: &str = "a signal";

/// TCP's state `LISTEN`.
const LISTEN: u8 = 10;

/// Who serves, and where.
#[derive(Debug, Clone, Default)]
pub(super) struct Served {
    processes: HashSet<u32>,
    ports: HashSet<u16>,
    paths: HashSet<String>,
    /// Those whose children, which are not observed, do the serving for them.
    masters: HashSet<u32>,
    /// Those whose event loops nobody but clients, or they themselves, can stir: their sets were looked at.
    stirred_by_clients: HashSet<u32>,
}

/// A process whose waits are judged.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    pub(super) pid: u32,
    /// Looks after the house (writes back, cleans up, keeps time, starts workers) while others of the same program serve: it
    /// serves nobody and its parent does, or it has children that do the serving for it.
    pub(super) attends: &'a dyn Fn() -> bool,
}

/// Work that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing but what clients send.
    OfClients(String),
    /// Something that a client's request may be behind: what another thread has to do first, or a set of which not
    /// all is known.
    Other(String),
    /// A word of an ancestor alone: meanwhile the thread hears none of its clients.
    Ordered(String),
}

impl Work {
    /// For whom or what, in words.
    pub(super) fn phrase(self) -> String {
        match self {
            Work::OfClients(phrase) | Work::Other(phrase) | Work::Ordered(phrase) => phrase,
        }
    }
}

/// What kind of socket of a server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Listener,
    Accepted,
}

impl Served {
    /// More was found out.
    pub(super) fn add(&mut self, serving: &Serving) {
        self.processes.extend(&serving.processes);
        self.masters.extend(&serving.masters);
        for (pid, by_clients) in &serving.loops {
            match by_clients {
                true => self.stirred_by_clients.insert(*pid),
                false => self.stirred_by_clients.remove(pid),
            };
        }
        for address in &serving.addresses {
            match address {
                SocketAddress::Inet(address) => {
                    self.ports.insert(address.port());
                }
                SocketAddress::Unix(path) if !path.is_empty() => {
                    self.paths.insert(path.clone());
                }
                SocketAddress::Unix(_) | SocketAddress::Other(_) => {}
            }
        }
    }

    /// A process is born: it inherits what its creator has open.
    pub(super) fn born(&mut self, pid: u32, creator: Option<u32>) {
        if creator.is_some_and(|creator| self.processes.contains(&creator)) {
            self.processes.insert(pid);
        }
    }

    /// Whether a process serves.
    pub(super) fn serves(&self, pid: u32) -> bool {
        self.processes.contains(&pid)
    }

    /// Whether children of a process that are not observed serve for it.
    pub(super) fn is_master(&self, pid: u32) -> bool {
        self.masters.contains(&pid)
    }

    /// Whether all clients come by TCP, as far as is known: of that the kernel tells when it was last used, and which way.
    pub(super) fn by_tcp_only(&self) -> bool {
        self.paths.is_empty() && !self.ports.is_empty()
    }

    /// Whether an object is where clients come in.
    pub(super) fn is_clients(&self, object: Option<&Object>) -> bool {
        object.is_some_and(|object| self.end(object).is_some())
    }

    /// What is awaited of a client's connection, in words.
    pub(super) fn awaits(&self, object: &Object) -> Option<String> {
        self.end(object).map(|(end, at)| phrase(end, at))
    }

    /// What work a wait was for, if it was for any.
    pub(super) fn idle<'a>(
        &self,
        who: Who<'_>,
        cause: Cause,
        wait: &Wait,
        memory: Option<&WaitMemory>,
        object: impl Fn(ObjectId) -> Option<&'a Object>,
    ) -> Option<Work> {
        // Who serves and sleeps outside of a poll may do so for a client.
        let sleeps = cause == Cause::TimerSleep && system_calls::is(&wait.call, Does::Sleeps);
        let may_rest = !(sleeps && self.serves(who.pid));
        if may_rest && rests(cause, wait, memory, &object) && (who.attends)() {
            return Some(Work::Other(
                "its next round, or a word from another process".to_owned(),
            ));
        }
        if !self.serves(who.pid) {
            return None;
        }
        match cause {
            // A thread that takes the signals of a process whose other threads serve: nobody's request is behind it.
            Cause::IpcSignal => Some(Work::Other(SIGNAL.to_owned())),
            Cause::LockFutex | Cause::TimerSleep if parked(wait) => Some(Work::Other(WORK.to_owned())),
            Cause::IpcQueue | Cause::IpcPipe | Cause::IpcUnix | Cause::PollWait | Cause::TimerSleep
                if stirred_by_itself(wait, memory, &object) || stirred_by_thread(wait, &object) =>
            {
                Some(Work::Other(WORK.to_owned()))
            }
            Cause::NetAccept | Cause::NetReceive | Cause::IpcUnix | Cause::PollWait | Cause::TimerSleep => {
                let ended_by = wait.ready.or(wait.object);
                if let Some((end, at)) = ended_by.and_then(|id| self.end(object(id)?)) {
                    return Some(Work::OfClients(phrase(end, at)));
                }
                // Whose end of a connection it was cannot be seen once that is over; one on which something was asked is known as that.
                let is_over = |id| object(id).is_some_and(is_over);
                if wait.unanswered.is_none() && ended_by.is_some_and(is_over) {
                    let port = self.ports.iter().min()?;
                    return Some(Work::OfClients(phrase(End::Accepted, format!("port {port}"))));
                }
                let ready = |fd: &&PolledFd| fd.revents != 0;
                let polled = memory.map_or(&[][..], |memory| &memory.polled);
                // What became ready decides; where nothing did, what was awaited.
                if polled.iter().any(|fd| ready(&fd)) || wait.ready.is_some() {
                    let first = polled
                        .iter()
                        .filter(ready)
                        .find_map(|fd| self.end(object(fd.object?)?));
                    return first.map(|(end, at)| Work::OfClients(phrase(end, at)));
                }
                let mut reads = polled.iter().filter(|fd| !awaits_room(fd));
                let awaited = reads.find_map(|fd| self.end(object(fd.object?)?));
                let awaited = awaited.map(|(end, at)| phrase(end, at))?;
                let of_clients = |fd: &PolledFd| {
                    let found = fd.object.and_then(&object).filter(|_| !awaits_room(fd));
                    fd.own
                        || found.is_some_and(|found| self.end(found).is_some() || stirs_itself(&found.kind))
                };
                // Of a large set a record holds a part. What it does not hold was looked at elsewhere, and where somebody was asked since is
                // known whatever is in the set.
                let looked_at = || {
                    system_calls::is(&wait.call, Does::WaitsForEpoll)
                        && self.stirred_by_clients.contains(&who.pid)
                        && wait.unanswered.is_none()
                };
                let known = memory.is_some_and(|memory| !memory.polled_truncated || looked_at());
                Some(if known && polled.iter().all(of_clients) {
                    Work::OfClients(awaited)
                } else {
                    Work::Other(awaited)
                })
            }
            _ => None,
        }
    }

    fn end(&self, object: &Object) -> Option<(End, String)> {
        let ObjectKind::Socket { state, local, .. } = &object.kind else {
            return None;
        };
        let end = match *state {
            LISTEN => End::Listener,
            _ => End::Accepted,
        };
        match local {
            SocketAddress::Inet(local) if self.ports.contains(&local.port()) => {
                Some((end, local.to_string()))
            }
            SocketAddress::Unix(path) if self.paths.contains(path) => Some((end, path.clone())),
            _ => None,
        }
    }
}

/// What a process makes for itself to be woken by, or to know the time.
fn stirs_itself(kind: &ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Eventfd | ObjectKind::Timerfd | ObjectKind::Signalfd
    )
}

fn phrase(end: End, at: String) -> String {
    match end {
        End::Listener => AwaitedClients::Connection(at),
        End::Accepted => AwaitedClients::Request(at),
    }
    .to_string()
}

/// Whether a thread waits on a futex as parked workers do, and not for a lock. Only threads of one process hand each other
/// work by a futex: those in memory that processes share are semaphores and locks, which PostgreSQL makes of them.
fn parked(wait: &Wait) -> bool {
    let [_, operation, value, _] = wait.call.args;
    let waits = matches!(operation & OPERATION, FUTEX_WAIT | FUTEX_WAIT_BITSET);
    let private = operation & PRIVATE != 0;
    wait.call.name() == Some("futex") && waits && private && value as u32 != LOCKED_WITH_WAITERS
}

/// Whether a thread polls nothing but what its own process stirs it by.
fn stirred_by_itself<'a>(
    wait: &Wait,
    memory: Option<&WaitMemory>,
    object: impl Fn(ObjectId) -> Option<&'a Object>,
) -> bool {
    let own = |fd: &PolledFd| {
        let kind = fd.object.and_then(&object).map(|object| &object.kind);
        fd.own || matches!(kind, Some(ObjectKind::Eventfd | ObjectKind::Timerfd))
    };
    let known = |id: ObjectId, memory: &WaitMemory| memory.polled.iter().any(|fd| fd.object == Some(id));
    memory.is_some_and(|memory| {
        let complete = !memory.polled_truncated && !memory.polled.is_empty();
        complete && memory.polled.iter().all(own) && wait.ready.is_none_or(|ready| known(ready, memory))
    })
}

/// Whether a thread that polls was woken by another thread, by an eventfd: what it may await beside that, clients, did not come.
fn stirred_by_thread<'a>(wait: &Wait, object: impl Fn(ObjectId) -> Option<&'a Object>) -> bool {
    let ready = wait.ready.and_then(object).map(|object| &object.kind);
    matches!(wait.waker, Waker::Thread { .. }) && matches!(ready, Some(ObjectKind::Eventfd))
}

/// Whether a wait is for nothing but time, a signal or a word to the process itself.
fn rests<'a>(
    cause: Cause,
    wait: &Wait,
    memory: Option<&WaitMemory>,
    object: impl Fn(ObjectId) -> Option<&'a Object>,
) -> bool {
    let word = |kind: &ObjectKind| {
        matches!(
            kind,
            ObjectKind::Signalfd | ObjectKind::Eventfd | ObjectKind::Timerfd
        )
    };
    let what = |id: Option<ObjectId>| object(id?).map(|object| &object.kind);
    match cause {
        Cause::TimerSleep => true,
        // A master's: whatever happens to its workers or is asked of it comes as a signal.
        Cause::IpcSignal => true,
        Cause::IpcUnix | Cause::IpcPipe => {
            let polled = memory.map_or(&[][..], |memory| &memory.polled);
            !polled.is_empty()
                && polled
                    .iter()
                    .all(|fd| fd.own || what(fd.object).is_some_and(&word))
        }
        // Beside these a worker awaits the end of who started it, by a pipe.
        Cause::IpcQueue | Cause::PollWait => {
            let polled = memory.map_or(&[][..], |memory| &memory.polled);
            let set_rests = polled
                .iter()
                .all(|fd| what(fd.object).is_some_and(|kind| word(kind) || *kind == ObjectKind::Pipe));
            let by_time = matches!(wait.waker, Waker::Interrupt { socket: None, .. });
            match what(wait.ready) {
                Some(kind) => word(kind),
                None if polled.is_empty() => by_time,
                None => set_rests,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Served, Who, Work, parked};
    use holdup_evidence::{
        Call, Cause, Object, ObjectId, ObjectKind, PolledFd, Serving, SocketAddress, ThreadId, Wait,
        WaitMemory, Waker,
    };

    fn wait(number: i32, args: [u64; 4], object: Option<u32>) -> Wait {
        Wait {
            object: object.map(ObjectId),
            ..Wait::new(ThreadId(1), 1, (0, 10), Call { number, args })
        }
    }

    fn socket(local: &str, state: u8) -> Object {
        Object {
            kind: ObjectKind::Socket {
                family: 2,
                kind: 1,
                protocol: 6,
                state,
                local: SocketAddress::Inet(local.parse().unwrap()),
                peer: SocketAddress::Inet("127.0.0.1:50000".parse().unwrap()),
                peer_pid: None,
            },
            path: None,
            inode: 1,
            device: Default::default(),
            file_system: "sockfs".into(),
        }
    }

    fn server() -> Served {
        let mut served = Served::default();
        served.add(&Serving {
            processes: vec![7],
            addresses: vec![SocketAddress::Inet("0.0.0.0:80".parse().unwrap())],
            ..Serving::default()
        });
        served
    }

    fn serving(pid: u32) -> Who<'static> {
        Who {
            pid,
            attends: &|| false,
        }
    }

    /// An object that is no file and no socket.
    fn thing(kind: ObjectKind) -> Object {
        Object {
            kind,
            file_system: "anon_inodefs".into(),
            ..socket("0.0.0.0:0", 0)
        }
    }

    #[test]
    fn who_looks_after_the_house_rests_between_two_rounds_and_waits_for_a_disk_nevertheless() {
        let served = server();
        let things = [
            thing(ObjectKind::Signalfd),
            thing(ObjectKind::Pipe),
            socket("10.0.0.1:40000", 1),
        ];
        let polled = |object: u32| PolledFd {
            fd: 3,
            events: 1,
            revents: 0,
            object: Some(ObjectId(object)),
            own: false,
        };
        let memory = |objects: &[u32]| WaitMemory {
            polled: objects.iter().map(|object| polled(*object)).collect(),
            ..WaitMemory::empty(ThreadId(1), 1)
        };
        let rests = |attends: bool, cause, wait: &Wait, objects: &[u32]| {
            let who = Who {
                pid: 30,
                attends: &|| attends,
            };
            let object = |id: ObjectId| things.get(id.0 as usize);
            served
                .idle(who, cause, wait, Some(&memory(objects)), object)
                .is_some()
        };
        let polls = wait(232, [5, 0, 1, 0], None);
        assert!(rests(true, Cause::IpcQueue, &polls, &[0, 1]));
        assert!(
            !rests(false, Cause::IpcQueue, &polls, &[0, 1]),
            "a session, or a stranger"
        );
        assert!(!rests(true, Cause::PollWait, &polls, &[0, 2]), "a peer too");
        assert!(!rests(true, Cause::PollWait, &polls, &[]), "nothing is known");
        assert!(!rests(true, Cause::DiskSync, &polls, &[]));
        let own = WaitMemory {
            polled: vec![PolledFd {
                own: true,
                ..polled(1)
            }],
            ..memory(&[])
        };
        let by_itself = |memory: &WaitMemory| {
            let object = |id: ObjectId| things.get(id.0 as usize);
            served.idle(serving(7), Cause::PollWait, &polls, Some(memory), object)
        };
        assert!(
            by_itself(&own).is_some(),
            "what another thread of a server writes to"
        );
        assert_eq!(by_itself(&memory(&[1])), None, "a pipe from elsewhere");
        let answered = Wait {
            ready: Some(ObjectId(2)),
            ..polls.clone()
        };
        assert!(!rests(true, Cause::PollWait, &answered, &[0, 1]));
    }

    #[test]
    fn who_is_woken_by_an_eventfd_of_another_thread_had_no_client() {
        let served = server();
        let things = [thing(ObjectKind::Eventfd), thing(ObjectKind::Timerfd)];
        let work = |ready: u32, waker: Waker| {
            let polls = Wait {
                ready: Some(ObjectId(ready)),
                waker,
                ..wait(232, [5, 0, 1, 0], None)
            };
            let object = |id: ObjectId| things.get(id.0 as usize);
            served.idle(serving(7), Cause::IpcQueue, &polls, None, object)
        };
        let thread = || Waker::Thread {
            thread: ThreadId(2),
            clock: Default::default(),
            call: Call::none(),
        };
        assert_eq!(
            work(0, thread()),
            Some(Work::Other("work from another thread".to_owned()))
        );
        assert_eq!(work(0, Waker::Unknown), None, "it may be from elsewhere");
        assert_eq!(work(1, thread()), None);
    }

    #[test]
    fn a_client_is_waited_for_where_one_can_come_and_a_backend_never() {
        let served = server();
        let receive = wait(45, [3, 0, 0, 0], Some(1));
        let idle =
            |pid, cause, object: &Object| served.idle(serving(pid), cause, &receive, None, |_| Some(object));
        let accepted = socket("10.0.0.1:80", 1);
        assert_eq!(
            idle(7, Cause::NetReceive, &accepted),
            Some(Work::OfClients("the next request on 10.0.0.1:80".to_owned()))
        );
        assert_eq!(
            idle(7, Cause::NetAccept, &socket("0.0.0.0:80", 10)),
            Some(Work::OfClients("a client on 0.0.0.0:80".to_owned()))
        );
        assert_eq!(idle(7, Cause::NetReceive, &socket("10.0.0.1:40000", 1)), None);
        let over = Some(Work::OfClients("the next request on port 80".to_owned()));
        assert_eq!(idle(7, Cause::NetReceive, &socket("10.0.0.1:0", 7)), over);
        assert_eq!(idle(8, Cause::NetReceive, &accepted), None, "who serves nobody");
        assert_eq!(idle(7, Cause::DiskRead, &accepted), None);
    }

    #[test]
    fn who_awaits_room_for_an_answer_awaits_no_request() {
        let served = server();
        let client = socket("10.0.0.1:80", 1);
        let polls = wait(232, [5, 0, 1, 0], None);
        let work = |events: &[u16]| {
            let polled = events.iter().map(|events| PolledFd {
                fd: 3,
                events: *events,
                revents: 0,
                object: Some(ObjectId(0)),
                own: false,
            });
            let memory = WaitMemory {
                polled: polled.collect(),
                ..WaitMemory::empty(ThreadId(1), 1)
            };
            served.idle(serving(7), Cause::PollWait, &polls, Some(&memory), |_| {
                Some(&client)
            })
        };
        let request = || "the next request on 10.0.0.1:80".to_owned();
        assert_eq!(work(&[1]), Some(Work::OfClients(request())));
        assert_eq!(
            work(&[5]),
            Some(Work::OfClients(request())),
            "both, as an edge tells"
        );
        assert_eq!(work(&[4]), None);
        assert_eq!(
            work(&[4, 1]),
            Some(Work::Other(request())),
            "an answer to one client is not out"
        );
    }

    #[test]
    fn a_parked_worker_is_told_from_one_that_wants_a_lock() {
        // A condition variable's wait, and a locked mutex's.
        assert!(parked(&wait(202, [0x1000, 393, 0, 0], None)));
        assert!(!parked(&wait(202, [0x1000, 128, 2, 0], None)));
        assert!(
            !parked(&wait(202, [0x1000, 265, 0, 0], None)),
            "shared between processes: a semaphore"
        );
        assert!(
            !parked(&wait(202, [0x1000, 6, 0, 0], None)),
            "inherits priority: a lock"
        );
        let mut served = server();
        let parked = wait(202, [0x1000, 393, 0, 0], None);
        assert!(
            served
                .idle(serving(7), Cause::LockFutex, &parked, None, |_| None)
                .is_some()
        );
        assert_eq!(
            served.idle(serving(9), Cause::LockFutex, &parked, None, |_| None),
            None
        );
        served.born(9, Some(7));
        assert!(
            served
                .idle(serving(9), Cause::LockFutex, &parked, None, |_| None)
                .is_some()
        );
    }
}
