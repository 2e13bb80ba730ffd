//! Requests that the subject answers: how long each took, and what the threads that had one to answer did meanwhile.
//!
//! In: requests as they are read and answered, and the time of threads that have one open. Out: how many, the median and
//! the slow ones, that time by cause, and what the slow ones waited for that the others did not. A request whose answer
//! another thread writes than the one that had read it counts, and its time is that of its reader.
//!
//! Of many requests a fair sample is kept (Vitter's algorithm R), so that memory does not grow with their number. At high
//! rates only a sample is reported to begin with, each for many; how many there were is known all the same.

use super::Attribution;
use super::earlier::EarlierRequests;
use super::held_requests::{Asked, Held};
use super::idle::Served;
use super::life::process_name;
use super::listeners::Listeners;
use super::named_requests::named;
use super::orders::Sets;
use super::slow_requests::slow;
use super::thread::{Thread, Threads};
use super::turns::Turns;
use super::windows::{AnsweredIn, Axis};
use holdup_evidence::{Cause, Earlier, Ns, Request, RequestStep, SaidSince, ThreadId, UntoldRequests};
use holdup_model::attributed::{AnsweredAtLast, NamedRequests, Requests, Tally};
use std::collections::{BTreeMap, HashMap};

/// Requests kept, some 200 bytes each: the 99th percentile of so many is known by the slowest forty.
const KEPT: usize = 4096;

/// A request for which nothing was done for so long waits for something else to come, nanoseconds: in less a client sends the rest of it.
const LONG_REST: Ns = 1_000_000;

/// Names of requests that are reported.
const MAX_NAMES: usize = 16;

/// Requests that are open at once.
const MAX_OPEN: usize = 65_536;

/// Time of a thread by cause: few causes occur, so a list is enough.
pub(super) type Spent = Vec<(Cause, Tally)>;

/// Adds a piece.
pub(super) fn spend(spent: &mut Spent, cause: Cause, ns: Ns, open: bool) {
    let at = spent.iter().position(|one| one.0 == cause).unwrap_or_else(|| {
        spent.push((cause, Tally::default()));
        spent.len() - 1
    });
    let tally = &mut spent[at].1;
    tally.ns = tally.ns.saturating_add(ns);
    tally.count += 1;
    tally.max = tally.max.max(ns);
    tally.open |= open;
}

/// A request that was read and not answered.
#[derive(Debug, Clone)]
struct Open {
    read_at: Ns,
    reader: ThreadId,
    /// Its reader waits for new connections since.
    left: bool,
    /// It was read before anybody looked.
    earlier: bool,
    /// As observation ended nothing had been done for it.
    resting: bool,
    /// What its reader had spent with requests open, until then.
    before: Vec<(Cause, Ns)>,
    line: Option<String>,
    port: u16,
    weight: u32,
}

impl Open {
    /// Whether nothing has been done for it: most of the time its reader waited for clients or for time to pass. `now`: what
    /// the reader has spent with requests until `at`.
    fn rests(&self, now: &[(Cause, Ns)], at: Ns) -> bool {
        self.is_mostly(&[Cause::Idle, Cause::TimerSleep], now, at)
    }

    /// Whether its reader waited for one of these for most of the time since it was read.
    fn is_mostly(&self, causes: &[Cause], now: &[(Cause, Ns)], at: Ns) -> bool {
        let of = |spent: &[(Cause, Ns)]| -> Ns {
            let such = spent.iter().filter(|(cause, _)| causes.contains(cause));
            such.map(|(_, ns)| ns).sum()
        };
        let so = of(now).saturating_sub(of(&self.before));
        so > at.saturating_sub(self.read_at) / 2
    }

    /// Whether it was answered at `at` when something else came: nothing had been done for it until then, for so long that it was no chance.
    /// A reader that sleeps is no such: it works on the request in its own way, and whoever asked waits for it.
    fn rested(&self, now: &[(Cause, Ns)], at: Ns, by_timer: bool) -> bool {
        let long = at.saturating_sub(self.read_at) >= LONG_REST;
        long && !self.earlier && !by_timer && self.is_mostly(&[Cause::Idle], now, at)
    }
}

/// A request that was answered.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    pub(super) ns: Ns,
    /// The port that is listened on; 0: none.
    pub(super) port: u16,
    pub(super) reader: ThreadId,
    /// None that its reader read later was answered before it, as far as all of them were reported.
    pub(super) alone: bool,
    pub(super) causes: Vec<(Cause, Ns)>,
    pub(super) line: Option<String>,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Answering {
    open: HashMap<u64, Open>,
    /// Since when threads have left what they had read.
    left: HashMap<ThreadId, Ns>,
    /// Of those that a thread read and that were answered, when the latest was read.
    read_last: HashMap<ThreadId, Ns>,
    /// How many were reported, and how many they stand for.
    count: u64,
    stand_for: u64,
    longest: Ns,
    /// Time of those that were read under observation and answered.
    total: Ns,
    kept: Vec<Answered>,
    random: u64,
    /// Of threads that are gone.
    spent: BTreeMap<Cause, Tally>,
    listeners: Listeners,
    held: Held,
    at_last: AnsweredAtLast,
    /// When they were answered: how many that is, and how long they took.
    pub(super) answered_in: AnsweredIn,
}

/// Servers, their requests, and who answers them.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestState {
    pub(super) served: Served,
    pub(super) earlier: EarlierRequests,
    pub(super) answering: Answering,
    pub(super) turns: Turns,
    pub(super) sets: Sets,
}

impl Attribution {
    /// A request was read or answered.
    pub(super) fn request(&mut self, request: &Request) {
        let id = request.thread;
        self.settle(id);
        self.meet(id, &request.clock, request.at);
        let process = process_name(&self.threads, &mut self.tasks, id);
        let Some(thread) = self.threads.get_mut(&id).filter(|thread| !thread.ended) else {
            return;
        };
        let spent = thread.advance(&request.clock, request.at, None, true, process, &mut self.book);
        self.requests
            .step(request, &mut self.threads, &mut self.book.axis);
        if spent.contradicted > 0 {
            self.faults.contradiction(spent.contradicted);
        }
    }
}

impl RequestState {
    /// A request was read or answered by a thread whose time is booked until then.
    fn step(&mut self, request: &Request, threads: &mut Threads, axis: &mut Axis) {
        let id = request.thread;
        let Some(thread) = threads.get_mut(&id) else {
            return;
        };
        match &request.step {
            RequestStep::Read { begins, port } => {
                thread.requests += 1;
                // What it does from now on it may do for this one.
                thread.timer_ran_since = None;
                let before = totals(&thread.with_requests);
                // If one is open there still, its end was lost.
                self.over(request.connection, threads);
                self.answering.read(request, before, begins, *port);
            }
            RequestStep::Answered => {
                let (timer, tid) = (thread.timer_ran_since, thread.identity.tid);
                let before = self.earlier.asked(request.connection).map(Asked::earlier);
                let over = self.over(request.connection, threads);
                // One that was read before anybody looked, and that nobody was known to have, is answered now.
                let asked = before.or_else(|| {
                    let (open, _) = over.as_ref()?;
                    let after = self.answering.held.since_last(request.connection, open.read_at);
                    Some(Asked::new(open.read_at, open.weight, open.line.as_deref(), after))
                });
                let ran_out = |asked: &Asked| timer.is_some_and(|since| asked.at <= since);
                if let Some(asked) = asked.filter(|asked| asked.wants_answer && ran_out(asked)) {
                    self.answering.held.add(&asked, request.at, tid);
                    if let Some(thread) = threads.get_mut(&id) {
                        thread.answers_by_timer = true;
                    }
                }
                self.answering.held.answered(request, timer.is_some());
                if let Some((open, after)) = over {
                    let ns = request.at.saturating_sub(open.read_at);
                    let by_timer = threads
                        .get(&open.reader)
                        .is_some_and(|reader| reader.answers_by_timer);
                    if open.rested(&after, request.at, by_timer) {
                        self.answering.answered_at_last(&open, ns);
                        return;
                    }
                    let answered_in = &mut self.answering.answered_in;
                    answered_in.add(axis, request.at, ns, open.weight);
                    self.answering.answered(request.at, open, after);
                }
            }
            RequestStep::ReadOn => {
                let spent = totals(&thread.with_requests);
                self.answering.read_on(request, spent);
            }
            RequestStep::Dropped => {
                self.answering.held.closed(request.connection);
                self.over(request.connection, threads);
            }
            RequestStep::Left => {
                thread.requests = 0;
                self.answering.left.insert(id, request.at);
                let of_thread = self.answering.open.values_mut();
                of_thread
                    .filter(|open| open.reader == id)
                    .for_each(|open| open.left = true);
            }
        }
    }

    /// More was said on a connection where somebody had been asked before.
    pub(super) fn said_since(&mut self, said: &SaidSince, threads: &mut Threads) {
        self.earlier.answered(said.inode);
        self.over(said.connection, threads);
    }

    /// A thread turned out to have these requests since before observation.
    pub(super) fn take_up(&mut self, requests: &[Earlier], thread: &mut Thread) {
        for request in requests {
            thread.has_earlier();
            self.answering.taken_up(request, thread.id);
        }
    }

    /// What was open on a connection is over. Returns it with what its reader has spent with requests since it was met;
    /// nothing where none is known to be open: its begin was lost, or another thread has answered in the same instant.
    fn over(&mut self, connection: u64, threads: &mut Threads) -> Option<(Open, Vec<(Cause, Ns)>)> {
        self.earlier.over(connection);
        let open = self.answering.open.remove(&connection)?;
        let Some(thread) = threads.get_mut(&open.reader) else {
            return Some((open, Vec::new()));
        };
        if !open.left {
            thread.requests = thread.requests.saturating_sub(1);
        }
        if open.earlier {
            thread.earlier = thread.earlier.saturating_sub(1);
        }
        Some((open, totals(&thread.with_requests)))
    }
}

fn totals(spent: &Spent) -> Vec<(Cause, Ns)> {
    spent.iter().map(|(cause, tally)| (*cause, tally.ns)).collect()
}

impl Answering {
    fn read(&mut self, request: &Request, before: Vec<(Cause, Ns)>, begins: &[u8], port: u16) {
        if self.open.len() >= MAX_OPEN {
            self.open.clear();
        }
        let open = Open {
            read_at: request.at,
            reader: request.thread,
            left: false,
            earlier: false,
            resting: false,
            before,
            line: named(begins),
            port,
            weight: request.weight,
        };
        self.open.insert(request.connection, open);
    }

    /// Somebody has a request since before anybody looked.
    fn taken_up(&mut self, request: &Earlier, reader: ThreadId) {
        let open = Open {
            read_at: request.said_at,
            reader,
            left: false,
            earlier: true,
            resting: false,
            before: Vec::new(),
            line: None,
            port: 0,
            weight: 1,
        };
        self.open.insert(request.connection, open);
    }

    /// What had been read was no request where its reader has waited for nothing but its clients since: it begins here.
    fn read_on(&mut self, request: &Request, now: Vec<(Cause, Ns)>) {
        let Some(open) = self.open.get_mut(&request.connection) else {
            return;
        };
        if open.rests(&now, request.at) {
            open.read_at = request.at;
            open.before = now;
        }
    }

    /// Whether one of these readers has had a request since then that is not answered.
    pub(super) fn has_since(&self, at: Ns, of: impl Fn(ThreadId) -> bool) -> bool {
        let mut open = self.open.values();
        open.any(|open| open.read_at <= at && !open.left && of(open.reader))
    }

    /// It was answered as something else had come, for which it had waited by itself: it says nothing of how quickly others are answered.
    fn answered_at_last(&mut self, open: &Open, ns: Ns) {
        self.at_last.count += u64::from(open.weight);
        self.at_last.longest = self.at_last.longest.max(ns);
    }

    fn answered(&mut self, at: Ns, open: Open, after: Vec<(Cause, Ns)>) {
        let ns = at.saturating_sub(open.read_at);
        let since = |(cause, ns): (Cause, Ns)| {
            let before = open.before.iter().find(|one| one.0 == cause);
            (cause, ns.saturating_sub(before.map_or(0, |one| one.1)))
        };
        self.count += 1;
        self.stand_for += u64::from(open.weight);
        self.longest = self.longest.max(ns);
        if !open.earlier {
            self.listeners.answered(open.port, ns, open.weight);
            self.total = self
                .total
                .saturating_add(ns.saturating_mul(u64::from(open.weight)));
        }
        let last = self.read_last.entry(open.reader).or_default();
        let overtaken = *last > open.read_at;
        *last = open.read_at.max(*last);
        let answered = Answered {
            ns,
            port: open.port,
            reader: open.reader,
            alone: !overtaken && open.weight == 1,
            causes: after.into_iter().map(since).filter(|one| one.1 > 0).collect(),
            line: open.line,
        };
        if self.kept.len() < KEPT {
            self.kept.push(answered);
        } else {
            let weight = u64::from(open.weight.max(1));
            let place = self.next_random() % self.stand_for.max(1) / weight;
            if let Some(kept) = usize::try_from(place)
                .ok()
                .and_then(|place| self.kept.get_mut(place))
            {
                *kept = answered;
            }
        }
    }

    /// A number that has nothing to do with requests (Knuth's linear congruential generator, its upper half).
    fn next_random(&mut self) -> u64 {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        const SUMMAND: u64 = 1_442_695_040_888_963_407;
        self.random = self.random.wrapping_mul(FACTOR).wrapping_add(SUMMAND);
        self.random >> 32
    }

    /// A thread's time with requests open: it is gone at `at`. `by_timer`: it answers requests as timers run out, so that what waits for
    /// time to pass is one of them.
    pub(super) fn add(&mut self, reader: ThreadId, spent: &Spent, at: Ns, by_timer: bool) {
        let now = totals(spent);
        for open in self.open.values_mut().filter(|open| open.reader == reader) {
            open.resting = !open.earlier && !by_timer && open.rests(&now, at);
        }
        for (cause, tally) in spent {
            let sum = self.spent.entry(*cause).or_default();
            sum.ns = sum.ns.saturating_add(tally.ns);
            sum.count += tally.count;
            sum.max = sum.max.max(tally.max);
            sum.open |= tally.open;
        }
    }

    /// What it comes to at `end`.
    /// `untaken`: connections with something that was read before, and nobody is known to have.
    pub(super) fn finish(mut self, end: Ns, untold: &UntoldRequests, untaken: u64) -> Requests {
        self.kept.sort_by_key(|one| one.ns);
        let at = |percent: usize| {
            let rank = (self.kept.len() * percent).div_ceil(100).max(1) - 1;
            self.kept.get(rank).map_or(0, |one| one.ns)
        };
        let found = self.open.values().filter(|open| !open.left);
        let was_left =
            |reader: &ThreadId, read_at: Ns| self.left.get(reader).is_some_and(|at| *at >= read_at);
        let untold_open = untold.open.iter();
        let untold_open = untold_open.filter(|(reader, read_at)| !was_left(reader, *read_at));
        let untold_open: Vec<Ns> = untold_open.map(|(_, read_at)| *read_at).collect();
        let (rest, open): (Vec<&Open>, Vec<&Open>) = found.partition(|open| open.resting);
        let ports: Vec<u16> = open
            .iter()
            .filter(|open| !open.earlier)
            .map(|open| open.port)
            .collect();
        let unfinished = open.iter().filter(|open| !open.earlier).map(|open| {
            let ns = end.saturating_sub(open.read_at);
            ns.saturating_mul(u64::from(open.weight))
        });
        let total = unfinished.fold(self.total, Ns::saturating_add);
        let named = self.by_name(rest.iter().chain(&open).copied());
        let mut resting = rest.len() as u64 + untaken;
        let mut open: Vec<Ns> = open.into_iter().map(|open| open.read_at).collect();
        // Those that were not known are like those that were.
        if rest.is_empty() {
            open.extend(untold_open);
        } else {
            resting += untold_open.len() as u64;
        }
        let oldest = open.iter().map(|read_at| end.saturating_sub(*read_at)).max();
        Requests {
            count: self.count.saturating_add(untold.answered),
            p50: at(50),
            p99: at(99),
            longest: self.longest.max(untold.longest),
            open: open.len() as u64,
            oldest_open: oldest.unwrap_or(0),
            resting,
            earlier_told: false,
            causes: self.spent,
            slow: slow(&self.kept),
            listeners: self.listeners.finish(&self.kept, &ports),
            held: self.held.by_timer,
            at_last: self.at_last,
            total,
            upstreams: Vec::new(),
            named,
        }
    }

    /// How many of each name, of the answered ones that were kept and of these.
    fn by_name<'a>(&'a self, unanswered: impl Iterator<Item = &'a Open>) -> Vec<NamedRequests> {
        let mut names: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for line in unanswered.filter_map(|open| open.line.as_deref()) {
            names.entry(line).or_default().0 += 1;
        }
        for line in self.kept.iter().filter_map(|one| one.line.as_deref()) {
            names.entry(line).or_default().1 += 1;
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_by_key(|(_, counts)| std::cmp::Reverse(*counts));
        names.truncate(MAX_NAMES);
        let named = |(line, (unanswered, answered)): (&str, (u64, u64))| NamedRequests {
            line: line.to_owned(),
            answered,
            unanswered,
        };
        names.into_iter().map(named).collect()
    }
}

#[cfg(test)]
mod tests;
