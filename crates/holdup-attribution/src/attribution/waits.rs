//! Waits, what their memory said, and CPU samples.

use super::Attribution;
use super::event_loops;
use super::idle;
use super::jvms::OfJvm;
use super::owners;
use super::requests;
use super::sights;
use super::thread::{Pending, Told};
use super::turns;
use super::what::Role;
use crate::classify::Classified;
use holdup_evidence::{Cause, CpuSample, LockHolder, Ns, ThreadId, UserStackId, Wait, WaitMemory, Waker};

/// Waits of one call that may wait to be told about together: a write-back waits so often for few.
const MAX_PENDING: usize = 256;

/// A wait whose thread has moved on to its end, on its way into the books.
#[derive(Clone, Copy)]
pub(super) struct Over<'a> {
    pub(super) wait: &'a Wait,
    /// Its length within the observed time.
    pub(super) waited: Ns,
    /// Of it: what the path has, where it did not go to the waker.
    pub(super) on_path: Ns,
    /// When it ended, in the thread's books.
    pub(super) until: Ns,
    /// Whether the path went to the waker.
    pub(super) handed_on: bool,
    /// User stacks that came already: stack, weight.
    askers: &'a [(UserStackId, Ns)],
    pub(super) memory: Option<&'a WaitMemory>,
    /// Whether observation ended before it.
    pub(super) open: bool,
    /// Whether it is one of an event loop that waits for an answer, whoever stirred it.
    pub(super) for_answer: bool,
}

/// Where it was booked.
pub(super) struct Entry {
    pub(super) cause: Cause,
    pub(super) site: usize,
    longest: bool,
    /// Of threads that wait until all have come to a stop: who came last.
    pub(super) late: Option<ThreadId>,
}

impl Attribution {
    pub(super) fn wait(&mut self, wait: &Wait) {
        let id = wait.thread;
        // One copy of the memory may tell of several waits of one call. Where the path moves on, and without such a copy
        // to come, what is known now has to do.
        let more = wait.memory_follows && !matches!(wait.waker, Waker::Thread { .. });
        if !more
            || self.threads.get(&id).is_some_and(|thread| {
                // What was not told is like what was told before: that must be booked first.
                thread.pending.len() >= MAX_PENDING || wait.clock.repeats > thread.clock.repeats
            })
        {
            self.settle(id);
        }
        self.meet(id, &wait.clock, wait.end);
        let beforehand = self
            .waker_knew_only_the_time(wait)
            .then(|| self.keeps_its_path(wait));
        let by_runtime = self.ended_by_jvm(wait);
        let theirs = match &wait.waker {
            _ if by_runtime => None,
            Waker::Thread { thread, clock, .. } if *thread != id => self.path_of(*thread, clock, wait.end),
            Waker::Outside { task, .. } => self.path_at_end_of(task, wait),
            _ => None,
        };
        if let (Some(path), Waker::Thread { thread, call, .. }) = (&theirs, &wait.waker)
            && call.name() == Some("exit_group")
        {
            self.process_ends(*thread, id, wait.end, path);
        }
        let process = self.process_name(id);
        let Some(thread) = self.threads.get_mut(&id).filter(|thread| !thread.ended) else {
            return self.contradiction(wait.end.saturating_sub(wait.start));
        };
        thread.numbered(wait.seq);
        self.faults.late_askers += std::mem::take(&mut thread.early).len() as u64;
        // A record that comes too late says nothing of a path that has moved on.
        let theirs = theirs.filter(|_| thread.at <= wait.end);
        let handed_on = theirs.is_some();
        if let Some(graph) = &mut self.graph {
            let by = match &wait.waker {
                _ if !handed_on => None,
                Waker::Thread { thread, .. } => Some(*thread),
                Waker::Outside { task, .. } => self.people.lived(task.tid, wait.start),
                Waker::Interrupt { .. } | Waker::Unknown => None,
            };
            graph.waited(wait, by);
        }
        let span = Some((wait.start, wait.end));
        let spent = beforehand.flatten().unwrap_or_else(|| {
            thread.advance(&wait.clock, wait.end, span, !handed_on, process, &mut self.book)
        });
        if let Some(path) = theirs {
            thread.path = path;
        }
        thread.open_pieces();
        if wait.memory_follows {
            thread.pending.push(Pending {
                wait: wait.clone(),
                waited: spent.waited,
                on_path: spent.on_path,
                until: spent.until,
                handed_on,
                askers: Vec::new(),
            });
        } else {
            self.apply(&Over {
                wait,
                waited: spent.waited,
                on_path: spent.on_path,
                until: spent.until,
                handed_on,
                askers: &[],
                memory: None,
                open: false,
                for_answer: false,
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
    /// `waited`: its length within the observed time, what of it the path has, and when observation ended.
    pub(super) fn apply_open(&mut self, thread: ThreadId, wait: &Wait, waited: (Ns, Ns, Ns)) -> Cause {
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
            waited: waited.0,
            on_path: waited.1,
            until: waited.2,
            handed_on: false,
            askers: &askers,
            memory: None,
            open: true,
            for_answer: false,
        })
    }

    fn apply(&mut self, over: &Over) -> Cause {
        self.take_up_in_loop(over);
        match self.unanswered(over) {
            // What else is in the set does not matter.
            Some(wait) => self.apply_as_told(&Over {
                wait: &wait,
                memory: None,
                for_answer: true,
                ..*over
            }),
            None => self.apply_as_told(over),
        }
    }

    fn apply_as_told(&mut self, over: &Over) -> Cause {
        let (before, unsure) = self.without(over).unzip();
        let Some(entry) = self.enter(over) else {
            return Cause::Unknown;
        };
        let owner = self.in_the_way(over, &entry, unsure.unwrap_or(0));
        self.goes_on(over, &entry, owner, before);
        let held_open = self.held_open(over, entry.cause, owner);
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
        let aside = self.work_aside(wait);
        let of_jvm = self.of_jvm(wait);
        let thread = self.threads.get_mut(&wait.thread)?;
        let borrowed = match wait.kernel_stack {
            Some(_) => None,
            None => thread.borrowed_stack(&wait.call, wait.object),
        };
        let stack = wait.kernel_stack.or(borrowed.map(|seen| seen.stack));
        let whats = &mut self.book.whats;
        let joined = sights::joined(over.memory, wait.asked.as_deref());
        let memory = joined.as_ref().or(over.memory).or(wait.asked.as_deref());
        let mut told = self
            .sights
            .tell(wait, memory, stack, self.classifier.wait, |classified| {
                whats.classified(Role::Wait, classified)
            });
        if self.churning.is_handshake(wait, told.cause, memory) {
            told.cause = Cause::NetTls;
            told.what = whats.of_handshake(told.what);
        }
        if let Some(LockHolder::Runtime(lock)) = &wait.holder {
            let classified = Classified::runtime_lock(&wait.call, lock);
            told.cause = classified.cause;
            told.what = whats.classified(Role::Wait, classified);
        }
        // What the kernel shows of memory and stops beats it, and so does a lock of the program's own.
        let of_jvm = of_jvm.filter(|of_jvm| of_jvm.tells_more_than(told.cause));
        if let Some(of_jvm) = &of_jvm {
            let classified = of_jvm.classified(&wait.call);
            told.cause = classified.cause;
            told.timed_out = false;
            told.what = whats.classified(Role::Wait, classified);
        }
        let pid = self.people.pid(thread.identity.process);
        let sights = &self.sights;
        let (served, people) = (&self.served, &self.people);
        let attends = || turns::attends(pid, served, people);
        let who = idle::Who {
            pid,
            attends: &attends,
        };
        let work = self
            .served
            .idle(who, told.cause, wait, memory, |id| sights.object(Some(id)))
            .or(aside);
        // Who owns a lock that is waited for is no client. Nor is anybody idle who has a request to answer, unless there is
        // nothing but its clients that it waits for: what was read last is then no request, or not yet a whole one.
        if owners::of(wait).is_none() && !wait.serves {
            for request in self.earlier.taken_by(pid, wait, work.as_ref(), memory) {
                thread.has_earlier();
                self.answering.taken_up(&request, wait.thread);
            }
        }
        let serves = wait.serves || thread.earlier > 0;
        let idles = |work: &idle::Work| {
            owners::of(wait).is_none() && (!serves || matches!(work, idle::Work::OfClients(_)))
        };
        let timer_ran = told.timed_out && !over.open && event_loops::polls(&wait.call);
        // Whom it has asked for what a request needs, it waits for, however often it looks meanwhile.
        let holds = timer_ran && thread.answers_by_timer && serves && wait.unanswered.is_none();
        if holds && matches!(told.cause, Cause::PollWait | Cause::TimerSleep) {
            told.cause = Cause::TimerSleep;
            told.what = whats.classified(Role::Wait, Classified::sleep(&wait.call));
        } else if let Some(work) = work.filter(idles) {
            told.cause = Cause::Idle;
            told.what = whats.classified(Role::Wait, Classified::idle(&wait.call, work.phrase()));
        }
        thread.timer_ran_since = timer_ran.then_some(wait.start);
        if serves {
            // A time-out may be the request's own.
            let for_time = told.cause == Cause::Idle && told.timed_out;
            let cause = if for_time { Cause::TimerSleep } else { told.cause };
            requests::spend(&mut thread.with_requests, cause, over.waited, over.open);
        }
        if let Some(stack) = wait.kernel_stack {
            thread.lend_stack(&wait.call, wait.object, stack, told.what);
        }
        if let Some(graph) = &mut self.graph {
            graph.told(wait.thread, wait.seq, told.cause);
        }
        let site = thread.ledger.site(told.what, process, &mut self.book);
        let waker = match &wait.waker {
            Waker::Thread { thread, .. } if over.handed_on => Some(*thread),
            _ => None,
        };
        let longest = thread.waited(site, told.cause, over, waker, &mut self.book);
        thread.told = Some(Told {
            site,
            cause: told.cause,
            timed_out: told.timed_out,
        });
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
        if told.cause == Cause::TimerSleep && !over.open {
            tally
                .rhythm
                .get_or_insert_default()
                .slept(&wait.call, wait.start, wait.end);
        }
        if told.cause == Cause::TimerSleep {
            self.network.slept(wait.thread, wait.start, wait.end);
        }
        self.keep_wait(over, site, told.cause == Cause::TimerSleep || told.timed_out);
        Some(Entry {
            cause: told.cause,
            site,
            longest,
            late: match of_jvm {
                Some(OfJvm::Stopped { late, .. }) => late,
                Some(OfJvm::AtRest | OfJvm::Unasked) | None => None,
            },
        })
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
        thread.sampled(site, call, sample.at, &mut self.book.axis);
        thread.ledger.remember_sample(sample.seq, site, sample.at, keep);
        let class = &mut thread.ledger.sites[site];
        class.bytes = class.bytes.or(bytes);
        if let Some(stack) = sample.kernel_stack {
            class.seen_in(stack, 1);
        }
    }
}

impl Pending {
    fn over<'a>(&'a self, memory: Option<&'a WaitMemory>) -> Over<'a> {
        Over {
            wait: &self.wait,
            waited: self.waited,
            on_path: self.on_path,
            until: self.until,
            handed_on: self.handed_on,
            askers: &self.askers,
            memory,
            open: false,
            for_answer: false,
        }
    }
}
