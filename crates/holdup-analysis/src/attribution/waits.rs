//! Waits, what their memory said, who asked, and CPU samples.

use super::Attribution;
use super::chain::{self, Link};
use super::holders::{self, Who};
use super::thread::{Pending, Thread};
use super::what::Role;
use holdup_evidence::{
    AskerSample, Cause, CpuSample, Ns, TaskState, ThreadId, UserStackId, Wait, WaitMemory, Waker,
};

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
        self.settle(id);
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
            thread.pending = Some(Box::new(Pending {
                wait: wait.clone(),
                waited: spent.waited,
                handed_on,
                askers: Vec::new(),
            }));
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
        if let Some(pending) = thread.pending.take_if(|pending| pending.wait.seq == memory.seq) {
            self.apply(&pending.over(Some(memory)));
        }
    }

    /// Whatever a thread was waiting to be told about its last wait will not come any more.
    pub(super) fn settle(&mut self, id: ThreadId) {
        if let Some(thread) = self.threads.get_mut(&id)
            && let Some(pending) = thread.pending.take()
        {
            self.apply(&pending.over(None));
        }
    }

    /// Books a wait that was still open when observation ended.
    pub(super) fn apply_open(&mut self, thread: ThreadId, wait: &Wait, waited: Ns) -> Cause {
        let wait = Wait {
            thread,
            ..wait.clone()
        };
        self.apply(&Over {
            wait: &wait,
            waited,
            handed_on: false,
            askers: &[],
            memory: None,
            open: true,
        })
    }

    fn apply(&mut self, over: &Over) -> Cause {
        let Some(entry) = self.enter(over) else {
            return Cause::Unknown;
        };
        self.in_the_way(over, &entry);
        if entry.longest {
            let links = self.links(over.wait, entry.cause);
            let signal = self.stopped_by(over.wait);
            if let Some(thread) = self.threads.get_mut(&over.wait.thread) {
                let site = &mut thread.ledger.sites[entry.site];
                site.chain = links;
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
        let memory = over.memory.or(wait.asked.as_deref());
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
        Some(Entry {
            cause: told.cause,
            site,
            longest,
        })
    }

    fn in_the_way(&mut self, over: &Over, entry: &Entry) {
        let wait = over.wait;
        let (threads, people) = (&self.threads, &self.people);
        let Some(waiter) = threads.get(&wait.thread) else {
            return;
        };
        let pid_of = |id: ThreadId| threads.get(&id).map(|thread| people.pid(thread.identity.process));
        let pid = people.pid(waiter.identity.process);
        let Some(found) = holders::judge(wait, entry.cause, &waiter.identity, people, &pid_of) else {
            return;
        };
        let other = match found.who {
            Who::Thread(id) => threads.get(&id),
            Who::Task(..) => None,
        };
        let named = match (found.who, other) {
            (Who::Thread(_), Some(other)) => Some(people.named(&other.identity)),
            (Who::Thread(_), None) => return,
            (Who::Task(..), _) => None,
        };
        let doing = other
            .and_then(|thread| thread.recent.doing(wait.start, wait.end))
            .map(|doing| (doing.cause, doing.ns));
        let people = &mut self.people;
        if let Some(thread) = self.threads.get_mut(&wait.thread) {
            thread.ledger.sites[entry.site]
                .holders
                .add(found, over.waited, doing, || {
                    named.unwrap_or_else(|| holders::name_task(wait, pid, found.who, people))
                });
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

    /// From the waiter to where the time went; nothing where it went no further than the waiter.
    fn links(&self, wait: &Wait, cause: Cause) -> Vec<Link> {
        let (Some(waiter), Waker::Thread { thread: waker, .. }) =
            (self.threads.get(&wait.thread), &wait.waker)
        else {
            return Vec::new();
        };
        let (threads, people) = (&self.threads, &self.people);
        let mut links = chain::follow(threads, people, wait.thread, *waker, wait.start, wait.end);
        if !links.is_empty() {
            let own = Link {
                name: people.named(&waiter.identity),
                cause,
                ns: wait.end.saturating_sub(wait.start),
            };
            links.insert(0, own);
        }
        links
    }

    pub(super) fn asker(&mut self, sample: &AskerSample) {
        let AskerSample {
            thread: id,
            seq,
            on_cpu,
            stack,
            weight,
        } = *sample;
        let found = match self.threads.get_mut(&id) {
            Some(thread) => early(thread, sample) || thread.ledger.asked_by(on_cpu, seq, stack, weight),
            None => self.ended.asked_by(id, on_cpu, seq, stack, weight),
        };
        self.faults.late_askers += u64::from(!found);
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
        thread.sampled(site, sample.at);
        thread.ledger.remember_sample(sample.seq, site, sample.at, keep);
        let class = &mut thread.ledger.sites[site];
        class.bytes = class.bytes.or(bytes);
        if let Some(stack) = sample.kernel_stack {
            class.seen_in(stack, 1);
        }
    }
}

/// A stack of the wait that is still pending is kept with it.
fn early(thread: &mut Thread, sample: &AskerSample) -> bool {
    match &mut thread.pending {
        Some(pending)
            if !sample.on_cpu
                && pending.wait.seq == sample.seq
                && pending.askers.len() < MAX_EARLY_ASKERS =>
        {
            pending.askers.push((sample.stack, sample.weight));
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
