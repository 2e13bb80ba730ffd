//! What is made anew: births by who made them, and connections by whom they lead to.
//!
//! In: births and ends, connections as they are made and closed, their first records, stacks of makers. Out: [`Churn`].
//!
//! How many questions a connection carried is known by the turns that it took: of a TLS connection, less those of its
//! handshake. Memory is bounded by the number of makers and ends, and of what is open.

mod endings;
mod handshakes;

use super::histogram::Histogram;
use super::numbers::NumberMap;
use super::task_table::{NameId, Named, TaskTable};
use super::thread::Threads;
use crate::handshake::Handshake;
use endings::Endings;
use handshakes::{Shaking, Tls};
use holdup_evidence::churn::{Closed, Closer, Conversation, Hello, Made, MadeBy, Turned};
use holdup_evidence::{
    End, Finish, Frame, Ns, ObjectId, Role, Start, ThreadId, UserStackId, Wait, WaitMemory, Waker,
};
use holdup_model::attributed::Asker;
use holdup_model::churn::{Births, Born, Called, Churn, Conversations, Handshakes};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Makers and ends distinguished; of further ones nothing is kept.
const MAX_ENTRIES: usize = 1024;

/// Of these, how many are in the report.
const LISTED: usize = 64;

/// Connections whose first records are being gathered, 4 KiB each at most.
const MAX_OPEN: usize = 4096;

/// Names of what is born, of one maker.
const NAMES: usize = 8;

/// Stacks distinguished of one maker.
const STACKS: usize = 64;

/// What somebody made.
#[derive(Debug, Clone, Default)]
struct Making {
    by: Option<Named>,
    made: u64,
    ended: u64,
    lives: Histogram,
    longest: Ns,
    names: Vec<(NameId, u64)>,
    stacks: Stacks,
}

/// How often each stack was seen.
#[derive(Debug, Clone, Default)]
struct Stacks(Vec<(UserStackId, u64)>);

/// Counts one more of these, as long as no more than `most` are distinguished.
fn count<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K, most: usize) {
    let known = counts.iter().position(|one| one.0 == key);
    match known {
        Some(at) => counts[at].1 += 1,
        None if counts.len() < most => counts.push((key, 1)),
        None => {}
    }
}

impl Stacks {
    fn add(&mut self, stack: UserStackId) {
        count(&mut self.0, stack, STACKS);
    }

    /// Who asked, by the most frequent.
    fn asker(&self, by: Option<Named>, tasks: &TaskTable, frames: &[Vec<Frame>]) -> Asker {
        let most = self.0.iter().max_by_key(|one| one.1);
        let stack = most.and_then(|one| frames.get(one.0.0 as usize));
        let stack = stack.cloned().unwrap_or_default();
        let asking = super::choose(&stack);
        Asker {
            name: by.map(|by| tasks.describe(&by)).unwrap_or_default(),
            frame: asking.frame,
            module: asking.module,
            stack,
        }
    }
}

/// Connections with one end.
#[derive(Debug, Clone, Default)]
struct Talks {
    by: Option<Named>,
    sums: Conversations,
    lives: Histogram,
    longest: Ns,
    stacks: Stacks,
}

type Maker = (Born, NameId, NameId);
type Place = (SocketAddr, bool, NameId);

/// A connection that is open.
#[derive(Debug, Clone)]
struct Open {
    place: Place,
    made: Ns,
    socket: Option<ObjectId>,
    shaking: Shaking,
}

/// What is kept of all this.
#[derive(Debug, Clone, Default)]
pub(super) struct Churning {
    makings: HashMap<Maker, Making>,
    born: NumberMap<ThreadId, Maker>,
    endings: Endings,
    talks: HashMap<Place, Talks>,
    open: HashMap<u64, Open>,
    /// Those of them that begin as TLS does, by their sockets.
    by_socket: NumberMap<ObjectId, u64>,
    /// Stacks of those who asked for connections that are not made yet.
    asked: HashMap<u64, UserStackId>,
}

impl Churning {
    /// `kind`: the maker's name without its number.
    fn made(&mut self, start: &Start, what: Born, by: Named, kind: NameId) {
        let maker = (what, by.process, kind);
        if self.makings.len() >= MAX_ENTRIES && !self.makings.contains_key(&maker) {
            return;
        }
        let making = self.makings.entry(maker).or_default();
        making.made += 1;
        making.by = Some(by);
        self.born.insert(start.thread, maker);
    }

    fn ended(&mut self, end: &End, name: NameId) {
        let Some(making) = self
            .born
            .remove(&end.thread)
            .and_then(|maker| self.makings.get_mut(&maker))
        else {
            return;
        };
        let lived = end.at.saturating_sub(end.born);
        making.ended += 1;
        making.lives.record(lived);
        making.longest = making.longest.max(lived);
        count(&mut making.names, name, NAMES);
    }

    fn stack(&mut self, by: &MadeBy, what: Born, named: Named, kind: NameId) {
        if let Some(making) = self.makings.get_mut(&(what, named.process, kind)) {
            making.stacks.add(by.stack);
        }
    }

    fn conversation(&mut self, found: &Conversation, by: Named, for_request: bool) {
        let place = (found.end, found.accepted, by.process);
        if self.talks.len() >= MAX_ENTRIES && !self.talks.contains_key(&place) {
            return;
        }
        let talks = self.talks.entry(place).or_default();
        match &found.closed {
            None => {
                talks.by = Some(by);
                talks.sums.made += 1;
                talks.sums.for_requests += u64::from(for_request);
                if let Some(stack) = self.asked.remove(&found.connection) {
                    talks.stacks.add(stack);
                }
                if self.open.len() >= MAX_OPEN {
                    // What was never told to be closed would stay for ever.
                    self.open.clear();
                    self.by_socket.clear();
                }
                let open = Open {
                    place,
                    made: found.made,
                    socket: None,
                    shaking: Shaking::default(),
                };
                self.open.insert(found.connection, open);
            }
            Some(closed) => {
                let open = self.open.remove(&found.connection);
                if let Some(socket) = open.as_ref().and_then(|open| open.socket) {
                    self.by_socket.remove(&socket);
                }
                let shaking = open.map(|open| open.shaking).unwrap_or_default();
                talks.closed(found, closed, shaking);
            }
        }
    }

    /// The first bytes of a connection.
    pub(super) fn hello(&mut self, hello: &Hello) {
        let Some(open) = self.open.get_mut(&hello.connection) else {
            return;
        };
        if let Some(socket) = hello.socket {
            open.socket = Some(socket);
            self.by_socket.insert(socket, hello.connection);
        }
        if let Some(found) = open.shaking.hello(hello)
            && let Some(talks) = self.talks.get_mut(&open.place)
        {
            talks.sums.tls.count(found);
        }
    }

    /// A handshake went on.
    pub(super) fn turned(&mut self, turned: &Turned) {
        let Some(open) = self.open.get_mut(&turned.connection) else {
            return;
        };
        if let Some(took) = open.shaking.turned(turned, open.made)
            && let Some(talks) = self.talks.get_mut(&open.place)
        {
            talks.sums.tls.took(took);
        }
    }

    /// Whether a wait that began then on this socket was for a handshake with the server at its other end.
    fn shakes(&self, socket: ObjectId, at: Ns) -> bool {
        let connection = self.by_socket.get(&socket);
        let open = connection.and_then(|connection| self.open.get(connection));
        open.is_some_and(|open| !open.place.1 && open.shaking.lasts_at(at))
    }

    /// Whether the sockets of a wait were in such a handshake: of a poll all that were ready.
    pub(super) fn is_handshake(&self, wait: &Wait, memory: Option<&WaitMemory>) -> bool {
        if self.by_socket.is_empty() {
            return false;
        }
        let woken_by = match &wait.waker {
            Waker::Interrupt { socket, .. } => *socket,
            _ => None,
        };
        let shakes = |socket: ObjectId| self.shakes(socket, wait.start);
        let mut named = [wait.object, wait.ready, woken_by].into_iter().flatten();
        let polled = memory.map_or(&[][..], |memory| &memory.polled);
        let one = polled.len() == 1;
        let ready = || {
            polled
                .iter()
                .filter(|fd| one || fd.revents != 0)
                .filter_map(|fd| fd.object)
        };
        named.any(shakes) || ready().next().is_some() && ready().all(shakes)
    }

    /// What it comes to.
    pub(super) fn finish(mut self, tasks: &TaskTable, finish: &Finish) -> Churn {
        for (_, open) in std::mem::take(&mut self.open) {
            if let Some(talks) = self.talks.get_mut(&open.place) {
                talks.sums.tls.settle(open.shaking.tls);
            }
        }
        let mut made: Vec<Births> = self
            .makings
            .into_iter()
            .map(|((what, ..), making)| making.births(what, tasks, &finish.user_stacks))
            .collect();
        made.sort_by_cached_key(|one| (Reverse(one.made), one.what, one.by.name.thread.clone()));
        made.truncate(LISTED);
        let mut connections: Vec<Conversations> = self
            .talks
            .into_iter()
            .map(|((end, accepted, _), talks)| Conversations {
                end: end.to_string(),
                accepted,
                by: talks.stacks.asker(talks.by, tasks, &finish.user_stacks),
                p50: talks.lives.percentile(50, talks.longest),
                ..talks.sums
            })
            .collect();
        connections.sort_by_cached_key(|one| (Reverse(one.made), one.end.clone(), one.accepted));
        connections.truncate(LISTED);
        Churn {
            watched: finish.ended.saturating_sub(finish.started),
            made,
            connections,
            ends: self.endings.finish(tasks),
            traffic_told: finish.traffic_told,
        }
    }
}

impl Making {
    fn births(mut self, what: Born, tasks: &TaskTable, frames: &[Vec<Frame>]) -> Births {
        self.names.sort_by_key(|one| (Reverse(one.1), one.0));
        Births {
            what,
            by: self.stacks.asker(self.by, tasks, frames),
            made: self.made,
            ended: self.ended,
            p50: self.lives.percentile(50, self.longest),
            longest: self.longest,
            names: self
                .names
                .iter()
                .map(|one| Called {
                    name: tasks.text(one.0).to_owned(),
                    count: one.1,
                })
                .collect(),
        }
    }
}

/// How the handshakes of many connections are counted.
trait Counted {
    /// One is known.
    fn count(&mut self, handshake: Handshake);

    /// One came to its end.
    fn took(&mut self, ns: Ns);

    /// No more of it will come.
    fn settle(&mut self, tls: Tls);
}

impl Counted for Handshakes {
    fn count(&mut self, handshake: Handshake) {
        match handshake.resumed {
            true => self.resumed += 1,
            false => self.full += 1,
        }
        self.in_vain += u64::from(!handshake.resumed && handshake.offered == Some(true));
    }

    fn took(&mut self, ns: Ns) {
        self.ns = self.ns.saturating_add(ns);
        self.timed += 1;
    }

    fn settle(&mut self, tls: Tls) {
        self.untold += u64::from(tls == Tls::Begun);
    }
}

impl Talks {
    fn closed(&mut self, conversation: &Conversation, closed: &Closed, mut shaking: Shaking) {
        let lived = conversation.at.saturating_sub(conversation.began);
        self.sums.tls.settle(shaking.tls);
        if let Some(took) = shaking.closed(closed, conversation.made) {
            self.sums.tls.took(took);
        }
        let setup = conversation
            .made
            .saturating_sub(conversation.began)
            .saturating_add(shaking.took.unwrap_or(0));
        let before = shaking.turns(closed);
        let sums = &mut self.sums;
        sums.closed += 1;
        let questions = before.map(|before| (closed.turns as usize).saturating_sub(before));
        match questions {
            None => sums.untold += 1,
            Some(0) => {}
            Some(1) => sums.once += 1,
            Some(_) => sums.more += 1,
        }
        match closed.closer {
            Some(Closer::Here) => sums.closed_here += 1,
            Some(Closer::Peer) => sums.closed_by_peer += 1,
            None => {}
        }
        sums.open_ns = sums.open_ns.saturating_add(lived);
        sums.setup_ns = sums.setup_ns.saturating_add(setup.min(lived));
        self.lives.record(lived);
        self.longest = self.longest.max(lived);
    }
}

/// A thread of the subject, as it is named now.
fn of_subject(thread: ThreadId, threads: &Threads, tasks: &TaskTable) -> Option<Named> {
    let thread = threads.get(&thread)?;
    (thread.ledger.role == Role::Subject).then(|| tasks.named(&thread.identity))
}

/// What a thread is called without its number: those of a pool make the same things.
fn kind_of(named: Named, tasks: &mut TaskTable) -> NameId {
    let name = tasks.text(named.thread);
    let kind = name.trim_end_matches(|last: char| last.is_ascii_digit());
    match kind.len() {
        0 => named.thread,
        len if len == name.len() => named.thread,
        _ => {
            let kind = kind.to_owned();
            tasks.name_id(&kind)
        }
    }
}

impl Churning {
    /// A thread is born, and its maker is known.
    pub(super) fn was_made(&mut self, start: &Start, threads: &Threads, tasks: &mut TaskTable) {
        let maker = start
            .parent
            .and_then(|(parent, _)| of_subject(parent, threads, tasks));
        if let Some(by) = maker.filter(|_| start.adopted.is_none()) {
            let what = match by.pid == start.task.pid {
                true => Born::Thread,
                false => Born::Process,
            };
            let kind = kind_of(by, tasks);
            self.made(start, what, by, kind);
            if what == Born::Process {
                self.endings.started(start.thread, by);
            }
        }
    }

    /// A thread has ended.
    pub(super) fn has_ended(&mut self, end: &End, tasks: &mut TaskTable) {
        let name = tasks.name_id(&end.task.name);
        self.ended(end, name);
        self.endings.ended(end, name);
    }

    /// Where somebody was who made something.
    pub(super) fn made_by(&mut self, by: &MadeBy, threads: &Threads, tasks: &mut TaskTable) {
        let Some(named) = of_subject(by.thread, threads, tasks) else {
            return;
        };
        match by.what {
            Made::Thread => {
                let kind = kind_of(named, tasks);
                self.stack(by, Born::Thread, named, kind);
            }
            Made::Process => {
                let kind = kind_of(named, tasks);
                self.stack(by, Born::Process, named, kind);
            }
            Made::Connection => {
                if self.asked.len() >= MAX_OPEN {
                    self.asked.clear();
                }
                self.asked.insert(by.connection, by.stack);
            }
        }
    }

    /// A connection was made or closed.
    pub(super) fn talked(&mut self, found: &Conversation, threads: &Threads, tasks: &TaskTable) {
        // Whoever made it may be gone when it is closed.
        let open = self.open.get(&found.connection);
        let place = open.map(|open| open.place);
        let by = match (of_subject(found.thread, threads, tasks), place) {
            (Some(by), None) => by,
            (by, Some(place)) => {
                let known = self.talks.get(&place).and_then(|talks| talks.by);
                let Some(by) = known.or(by) else { return };
                Named {
                    process: place.2,
                    ..by
                }
            }
            (None, None) => return,
        };
        let asker = threads.get(&found.thread);
        let for_request = asker.is_some_and(|thread| thread.requests > 0);
        self.conversation(found, by, for_request);
    }
}

#[cfg(test)]
mod tests;
