//! Waits, what their memory said, who asked, and CPU samples.

use super::Attribution;
use super::chain::{self, KeptWaiting, Link};
use super::deadlock::{self, Blocked, Circle, Futex};
use super::holders::{self, InTheWay, Meanwhile, Who};
use super::owners;
use super::thread::{Pending, Thread};
use super::what::Role;
use crate::attributed::HowKnown;
use holdup_evidence::{
    AskerSample, Cause, CpuSample, LockHolder, Ns, TaskState, ThreadId, UserStackId, Wait, WaitMemory, Waker,
};

/// Waits of one call that may wait to be told about together: a write-back waits so often for few.
const MAX_PENDING: usize = 256;

/// User stacks kept for a wait whose memory has not arrived.
const MAX_EARLY_ASKERS: usize = 4;

/// A wait whose thread has moved on to its end, on its way into the books.
#[derive(Clone, Copy)]
pub(super) struct Over<'a> {
    pub(super) wait: &'a Wait,
    /// Its length within the observed time.
    pub(super) waited: Ns,
    /// Whether the path went to the waker.
    pub(super) handed_on: bool,
    /// User stacks that came already: stack, weight.
    askers: &'a [(UserStackId, Ns)],
    memory: Option<&'a WaitMemory>,
    /// Whether observation ended before it.
    open: bool,
}

/// Where it was booked.
struct Entry {
    cause: Cause,
    site: usize,
    longest: bool,
}

impl Attribution {
    pub(super) fn wait(&mut self, wait: &Wait) {
        let id = wait.thread;
        // One copy of the memory may tell of several waits of one call. Where the path moves on, and without such a copy
        // to come, what is known now has to do.
        let more = wait.memory_follows && !matches!(wait.waker, Waker::Thread { .. });
        if !more
            || self
                .threads
                .get(&id)
                .is_some_and(|thread| thread.pending.len() >= MAX_PENDING)
        {
            self.settle(id);
        }
        self.meet(id, &wait.clock, wait.end);
        let theirs = match &wait.waker {
            Waker::Thread { thread, clock, .. } if *thread != id => self.path_of(*thread, clock, wait.end),
            _ => None,
        };
        let process = self.process_name(id);
        let Some(thread) = self.threads.get_mut(&id).filter(|thread| !thread.ended) else {
            return self.contradiction(wait.end.saturating_sub(wait.start));
        };
        thread.numbered(wait.seq);
        self.faults.late_askers += std::mem::take(&mut thread.early).len() as u64;
        // A record that comes too late says nothing of a path that has moved on.
        let theirs = theirs.filter(|_| thread.at <= wait.end);
        let handed_on = theirs.is_some();
        let span = Some((wait.start, wait.end));
        let spent = thread.advance(&wait.clock, wait.end, span, !handed_on, process, &mut self.book);
        if let Some(path) = theirs {
            thread.path = path;
        }
        thread.open_pieces();
        if wait.memory_follows {
            thread.pending.push(Pending {
                wait: wait.clone(),
                waited: spent.waited,
                handed_on,
                askers: Vec::new(),
            });
        } else {
            self.apply(&Over {
                wait,
                waited: spent.waited,
                handed_on,
                askers: &[],
                memory: None,
                open: false,
            });
        }
        if spent.contradicted > 0 {
            self.contradiction(spent.contradicted);
        }
    }

    pub(super) fn memory(&mut self, memory: &WaitMemory) {
        let Some(thread) = self.threads.get_mut(&memory.thread) else {
            return;
        };
        // Those after it are of a call that has not returned.
        let told = thread
            .pending
            .partition_point(|pending| pending.wait.seq <= memory.seq);
        for pending in thread.pending.drain(..told).collect::<Vec<_>>() {
            let of_it = pending.wait.seq >= memory.first;
            self.apply(&pending.over(of_it.then_some(memory)));
        }
    }

    /// Whatever a thread was waiting to be told about its last waits will not come any more.
    pub(super) fn settle(&mut self, id: ThreadId) {
        let pending = self
            .threads
            .get_mut(&id)
            .map(|thread| std::mem::take(&mut thread.pending));
        for pending in pending.unwrap_or_default() {
            self.apply(&pending.over(None));
        }
    }

    /// Books a wait that was still open when observation ended.
    pub(super) fn apply_open(&mut self, thread: ThreadId, wait: &Wait, waited: Ns) -> Cause {
        let wait = Wait {
            thread,
            ..wait.clone()
        };
        let mut early = Vec::new();
        if let Some(thread) = self.threads.get_mut(&thread) {
            early = std::mem::take(&mut thread.early);
            early.retain(|sample| sample.seq == wait.seq);
            for sample in &early {
                thread.stacks.push(sample.stack, wait.start, wait.end);
            }
        }
        let askers: Vec<(UserStackId, Ns)> =
            early.iter().map(|sample| (sample.stack, sample.weight)).collect();
        self.apply(&Over {
            wait: &wait,
            waited,
            handed_on: false,
            askers: &askers,
            memory: None,
            open: true,
        })
    }

    fn apply(&mut self, over: &Over) -> Cause {
        let Some(entry) = self.enter(over) else {
            return Cause::Unknown;
        };
        let owner = self.in_the_way(over, &entry);
        let held_open = self.held_open(over, entry.cause);
        if held_open > 0
            && let Some(thread) = self.threads.get_mut(&over.wait.thread)
        {
            let site = &mut thread.ledger.sites[entry.site];
            site.held_open = site.held_open.saturating_add(held_open);
        }
        if entry.longest {
            let links = self.links(over.wait, entry.cause, owner);
            let signal = self.stopped_by(over.wait);
            if let Some(thread) = self.threads.get_mut(&over.wait.thread) {
                let site = &mut thread.ledger.sites[entry.site];
                if !site.deadlock {
                    site.chain = links;
                }
                site.signal = signal;
            }
        }
        entry.cause
    }

    /// Tells what a wait was for and books it.
    fn enter(&mut self, over: &Over) -> Option<Entry> {
        let wait = over.wait;
        let keep = self.remembered();
        let process = self.process_name(wait.thread);
        let thread = self.threads.get_mut(&wait.thread)?;
        let borrowed = match wait.kernel_stack {
            Some(_) => None,
            None => thread.borrowed_stack(&wait.call, wait.object),
        };
        let stack = wait.kernel_stack.or(borrowed.map(|seen| seen.stack));
        let whats = &mut self.book.whats;
        let joined = joined(over.memory, wait.asked.as_deref());
        let memory = joined.as_ref().or(over.memory).or(wait.asked.as_deref());
        let told = self
            .sights
            .tell(wait, memory, stack, self.classifier.wait, |classified| {
                whats.classified(Role::Wait, classified)
            });
        if let Some(stack) = wait.kernel_stack {
            thread.lend_stack(&wait.call, wait.object, stack, told.what);
        }
        let site = thread.ledger.site(told.what, process, &mut self.book);
        let waker = match &wait.waker {
            Waker::Thread { thread, .. } if over.handed_on => Some(*thread),
            _ => None,
        };
        let longest = thread.waited(site, told.cause, over, waker);
        thread
            .ledger
            .remember_wait(wait.seq, site, wait.start, wait.end, keep);
        let tally = &mut thread.ledger.sites[site];
        tally.tally.open |= over.open;
        tally.timed_out += u64::from(told.timed_out);
        if longest {
            tally.bytes = told.bytes;
        }
        if let Some(tcp) = self.network.take_tcp(wait) {
            tally.tcp.get_or_insert_default().add(&tcp, over.waited);
        }
        if let Some(stack) = wait.kernel_stack {
            tally.seen_in(stack, over.waited);
        }
        if let Some(seen) = borrowed {
            tally.borrowed = tally.borrowed.saturating_add(over.waited);
            if seen.varied {
                tally.doubtful = tally.doubtful.saturating_add(over.waited);
            }
        }
        for (stack, weight) in over.askers {
            tally.asked_by(*stack, *weight, wait.start, wait.end);
        }
        if told.cause == Cause::TimerSleep {
            self.network.slept(wait.thread, wait.start, wait.end);
        }
        Some(Entry {
            cause: told.cause,
            site,
            longest,
        })
    }

    /// Books who was in the way; returns who that was.
    fn in_the_way(&mut self, over: &Over, entry: &Entry) -> Option<InTheWay> {
        let wait = over.wait;
        let (threads, people) = (&self.threads, &self.people);
        let waiter = threads.get(&wait.thread)?;
        // Whoever was born since has the id of another who is gone.
        let pid_of = |id: ThreadId| {
            let thread = threads.get(&id).filter(|thread| thread.born <= wait.start)?;
            Some(people.pid(thread.identity.process))
        };
        let pid = people.pid(waiter.identity.process);
        let found = holders::judge(wait, entry.cause, &waiter.identity, people, &pid_of);
        let found = found.filter(|found| match found.who {
            Who::Thread(id) => threads.contains_key(&id),
            Who::Task(..) => true,
        });
        if let Some(found) = found {
            let named = match found.who {
                Who::Thread(id) => threads.get(&id).map(|other| people.named(&other.identity)),
                Who::Task(..) => None,
            };
            let meanwhile = self.meanwhile(found.who, wait.start, wait.end);
            if let (Who::Thread(id), None) = (found.who, meanwhile.stack)
                && let Some(other) = self.threads.get_mut(&id)
            {
                other.kept_waiting.push(KeptWaiting {
                    waiter: wait.thread,
                    site: entry.site,
                    in_the_way: found,
                    start: wait.start,
                    end: wait.end,
                });
            }
            let people = &mut self.people;
            let thread = self.threads.get_mut(&wait.thread)?;
            thread.ledger.sites[entry.site]
                .holders
                .add(found, over.waited, meanwhile, || {
                    named.unwrap_or_else(|| holders::name_task(wait, pid, found.who, people))
                });
        }
        self.owned(wait, entry, found);
        found
    }

    /// What a thread of the run did between two instants, as far as it has been told.
    pub(super) fn meanwhile(&self, who: Who, from: Ns, to: Ns) -> Meanwhile {
        let Who::Thread(id) = who else {
            return Meanwhile::default();
        };
        let thread = self.threads.get(&id);
        let doing = thread.and_then(|thread| thread.recent.doing(from, to));
        Meanwhile {
            doing: doing.map(|doing| (doing.cause, doing.ns)),
            stack: thread.and_then(|thread| thread.stacks.during(from, to)),
        }
    }

    /// Keeps a wait for a lock with a known owner, and sees whether it closes a circle.
    fn owned(&mut self, wait: &Wait, entry: &Entry, found: Option<InTheWay>) {
        let Some(thread) = self.threads.get_mut(&wait.thread) else {
            return;
        };
        let of_futex = matches!(
            wait.holder,
            Some(LockHolder::FutexWords(_) | LockHolder::PiFutex(_))
        );
        let futex = of_futex.then(|| match owners::shared(&wait.call) {
            true => Futex::Shared,
            false => Futex::Private(thread.identity.process, wait.call.args[0]),
        });
        let let_go = of_futex && holders::let_go(&wait.waker);
        let by_owner = |owner: InTheWay| match &wait.waker {
            Waker::Thread { thread, .. } => owner.who == Who::Thread(*thread),
            Waker::Outside { task, .. } => owner.who == Who::Task(task.pid, task.tid),
            Waker::Interrupt { .. } | Waker::Unknown => false,
        };
        // A lock that another than its owner lets go is used for something else.
        let owner = found.filter(|found| found.how != HowKnown::Waker && (!let_go || by_owner(*found)));
        if let Some(owner) = owner {
            thread.blocked = Some(Blocked {
                owner,
                cause: entry.cause,
                start: wait.start,
                end: wait.end,
                site: entry.site,
                futex,
                let_go,
            });
        }
        if owner.is_some()
            && let Some(circle) = deadlock::find(&self.threads, &self.hand_overs, wait.thread)
        {
            self.stands_still(&circle);
        }
        if let (true, Some(futex)) = (let_go, futex) {
            self.hand_overs.add(futex, wait.end);
        }
    }

    /// Marks the waits of a circle.
    fn stands_still(&mut self, circle: &Circle) {
        for member in &circle.members {
            let chain = deadlock::chain(circle, *member, &self.threads, &self.people);
            let Some(blocked) = self.threads.get(member).and_then(|thread| thread.blocked) else {
                continue;
            };
            let mut meanwhile = self.meanwhile(blocked.owner.who, circle.from, circle.to);
            if let Who::Thread(owner) = blocked.owner.who
                && let Some(its) = self.threads.get(&owner).and_then(|owner| owner.blocked)
            {
                meanwhile.doing = Some((its.cause, circle.to - circle.from));
            }
            if let Some(thread) = self.threads.get_mut(member) {
                let site = &mut thread.ledger.sites[blocked.site];
                site.deadlock = true;
                site.chain = chain;
                site.holders.learn(blocked.owner, meanwhile);
            }
        }
    }

    /// What the owners of locks did that nobody had let go when they were last waited for: it was not known yet when
    /// those waits were told.
    pub(super) fn complete_unfinished(&mut self) {
        let unfinished: Vec<(ThreadId, Blocked)> = self
            .threads
            .iter()
            .filter_map(|(id, thread)| Some((*id, thread.blocked.filter(|blocked| !blocked.let_go)?)))
            .collect();
        for (id, blocked) in unfinished {
            let meanwhile = self.meanwhile(blocked.owner.who, blocked.start, blocked.end);
            let links = match blocked.owner.who {
                Who::Thread(owner) => self.links_to(id, owner, blocked.cause, blocked.start, blocked.end),
                Who::Task(..) => Vec::new(),
            };
            if let Some(thread) = self.threads.get_mut(&id) {
                let site = &mut thread.ledger.sites[blocked.site];
                site.holders.learn(blocked.owner, meanwhile);
                if site.longest == (blocked.start, blocked.end) && !site.deadlock && !links.is_empty() {
                    site.chain = links;
                }
            }
        }
    }

    /// The signal that a wait in a stopped state began with.
    fn stopped_by(&self, wait: &Wait) -> Option<i32> {
        let thread = self.threads.get(&wait.thread)?;
        let pid = self.people.pid(thread.identity.process);
        let stopper = self.people.stopper(pid);
        stopper
            .filter(|_| wait.state == TaskState::Stopped)
            .map(|stopper| stopper.signal)
    }

    /// From the waiter to where the time went; nothing where it went no further than the waiter. Who ended the wait is
    /// followed, and where no thread of the run did, its owner.
    fn links(&self, wait: &Wait, cause: Cause, owner: Option<InTheWay>) -> Vec<Link> {
        let next = match (&wait.waker, owner.map(|owner| owner.who)) {
            (Waker::Thread { thread, .. }, _) => *thread,
            (_, Some(Who::Thread(owner))) => owner,
            _ => return Vec::new(),
        };
        self.links_to(wait.thread, next, cause, wait.start, wait.end)
    }

    fn links_to(&self, waiter: ThreadId, next: ThreadId, cause: Cause, start: Ns, end: Ns) -> Vec<Link> {
        let (threads, people) = (&self.threads, &self.people);
        let mut links = chain::follow(threads, people, waiter, next, start, end);
        if let (false, Some(thread)) = (links.is_empty(), threads.get(&waiter)) {
            let own = Link {
                name: people.named(&thread.identity),
                cause,
                ns: end.saturating_sub(start),
            };
            links.insert(0, own);
        }
        links
    }

    pub(super) fn asker(&mut self, sample: &AskerSample) {
        let found = match self.threads.get_mut(&sample.thread) {
            Some(thread) => match thread.ledger.asked_by(sample) {
                Some((start, end)) => {
                    thread.stacks.push(sample.stack, start, end);
                    let kept_waiting = thread.kept_waiting.take_during(start, end);
                    self.learn_stack(&kept_waiting, sample.stack);
                    true
                }
                None => early(thread, sample),
            },
            None => self.ended.asked_by(sample),
        };
        self.faults.late_askers += u64::from(!found);
    }

    /// The stack of one who was in the way of these waits is known now.
    fn learn_stack(&mut self, kept_waiting: &[(KeptWaiting, Ns)], stack: UserStackId) {
        for (kept, ns) in kept_waiting {
            if let Some(waiter) = self.threads.get_mut(&kept.waiter) {
                let meanwhile = Meanwhile {
                    doing: None,
                    stack: Some((stack, *ns)),
                };
                waiter.ledger.sites[kept.site]
                    .holders
                    .learn(kept.in_the_way, meanwhile);
            }
        }
    }

    pub(super) fn cpu(&mut self, sample: &CpuSample) {
        // A woken thread's memory comes before it runs user code; it may be seen in the kernel on its way there.
        if sample.user {
            self.settle(sample.thread);
        }
        let keep = self.remembered();
        let process = self.process_name(sample.thread);
        self.sights.used(sample.object);
        let Some(thread) = self
            .threads
            .get_mut(&sample.thread)
            .filter(|thread| !thread.ended)
        else {
            return;
        };
        let stack = sample
            .kernel_stack
            .and_then(|stack| self.sights.kernel_stack(stack));
        let object = self.sights.object(sample.object);
        let classified = (self.classifier.on_cpu)(sample.call, sample.user, object, stack);
        let bytes = classified.bytes;
        let what = self.book.whats.classified(Role::CpuClass, classified);
        let site = thread.ledger.site(what, process, &mut self.book);
        let call = (!sample.user).then_some(sample.call.number);
        thread.sampled(site, call, sample.at);
        thread.ledger.remember_sample(sample.seq, site, sample.at, keep);
        let class = &mut thread.ledger.sites[site];
        class.bytes = class.bytes.or(bytes);
        if let Some(stack) = sample.kernel_stack {
            class.seen_in(stack, 1);
        }
    }
}

/// What an epoll awaited is not in the thread's memory, and what it returned is nowhere else.
fn joined(memory: Option<&WaitMemory>, asked: Option<&WaitMemory>) -> Option<WaitMemory> {
    let (memory, asked) = (memory.filter(|memory| memory.polled.is_empty())?, asked?);
    Some(WaitMemory {
        polled: asked.polled.clone(),
        polled_truncated: asked.polled_truncated,
        ..memory.clone()
    })
}

/// A stack of a wait that is still pending is kept with it; so is one of a wait that is not told yet, because it is
/// open.
fn early(thread: &mut Thread, sample: &AskerSample) -> bool {
    if sample.on_cpu {
        return false;
    }
    match thread.pending.last_mut() {
        Some(pending) if pending.wait.seq == sample.seq => {
            let kept = pending.askers.len() < MAX_EARLY_ASKERS;
            if kept {
                thread
                    .stacks
                    .push(sample.stack, pending.wait.start, pending.wait.end);
                pending.askers.push((sample.stack, sample.weight));
            }
            kept
        }
        _ if sample.seq > thread.last_seq && thread.early.len() < MAX_EARLY_ASKERS => {
            thread.early.push(*sample);
            true
        }
        _ => false,
    }
}

impl Pending {
    fn over<'a>(&'a self, memory: Option<&'a WaitMemory>) -> Over<'a> {
        Over {
            wait: &self.wait,
            waited: self.waited,
            handed_on: self.handed_on,
            askers: &self.askers,
            memory,
            open: false,
        }
    }
}
