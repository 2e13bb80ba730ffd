//! Waits, what their memory said, and CPU samples.

use super::Attribution;
use super::blocker::Scene;
use super::clients;
use super::ended_wait::EndedWait;
use super::holders;
use super::implicit_handoffs;
use super::ledger;
use super::life::process_name;
use super::lock_queues;
use super::owned::path_at_end_of;
use super::thread::Pending;
use super::what::Role;
use holdup_evidence::{Cause, CpuSample, Ns, ThreadId, UserStackId, Wait, WaitMemory, Waker};

/// Waits of one call that may wait to be reported together: a write-back waits so often for few.
const MAX_PENDING: usize = 256;

impl Attribution {
    pub(super) fn wait(&mut self, wait: &Wait) {
        let id = wait.thread;
        // One copy of the memory may tell of several waits of one call. Where the path moves on, and without such a copy
        // to come, what is known now has to do.
        let more = wait.memory_follows && !matches!(wait.waker, Waker::Thread { .. });
        if !more
            || self.threads.get(&id).is_some_and(|thread| {
                // What was not known is like what was reported before: that must be booked first.
                thread.pending.len() >= MAX_PENDING || wait.clock.repeats > thread.clock.repeats
            })
        {
            self.settle(id);
        }
        self.meet(id, &wait.clock, wait.end);
        let beforehand = self
            .waker_knew_only_the_time(wait)
            .then(|| self.keeps_its_path(wait));
        let by_runtime = self.jvms.ended(wait, &self.threads, &self.tasks);
        let theirs = match &wait.waker {
            _ if by_runtime || holders::breaks_off(wait) => None,
            Waker::Thread { thread, clock, .. } if *thread != id => self.path_of(*thread, clock, wait.end),
            Waker::Outside { task, .. } => path_at_end_of((&self.threads, &self.tasks), task, wait),
            _ => None,
        };
        if let (Some(path), Waker::Thread { thread, call, .. }) = (&theirs, &wait.waker)
            && call.name() == Some("exit_group")
        {
            implicit_handoffs::process_ends(&mut self.threads, (*thread, id), wait.end, path);
        }
        let process = process_name(&self.threads, &mut self.tasks, id);
        let Some(thread) = self.threads.get_mut(&id).filter(|thread| !thread.ended) else {
            return self.faults.contradiction(wait.end.saturating_sub(wait.start));
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
                Waker::Outside { task, .. } => self.tasks.lived(task.tid, wait.start),
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
            self.apply(&EndedWait {
                wait,
                waited: spent.waited,
                on_path: spent.on_path,
                until: spent.until,
                handed_on,
                askers: &[],
                memory: None,
                open: false,
                for_answer: None,
            });
        }
        if spent.contradicted > 0 {
            self.faults.contradiction(spent.contradicted);
        }
    }

    pub(super) fn memory(&mut self, memory: &WaitMemory) {
        let Some(thread) = self.threads.get_mut(&memory.thread) else {
            return;
        };
        // Those after it are of a call that has not returned.
        let found = thread
            .pending
            .partition_point(|pending| pending.wait.seq <= memory.seq);
        for pending in thread.pending.drain(..found).collect::<Vec<_>>() {
            let of_it = pending.wait.seq >= memory.first;
            self.apply(&pending.ended(of_it.then_some(memory)));
        }
    }

    /// Whatever a thread was waiting for, its last waits will not come any more.
    pub(super) fn settle(&mut self, id: ThreadId) {
        let pending = self
            .threads
            .get_mut(&id)
            .map(|thread| std::mem::take(&mut thread.pending));
        for pending in pending.unwrap_or_default() {
            self.apply(&pending.ended(None));
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
        self.apply(&EndedWait {
            wait: &wait,
            waited: waited.0,
            on_path: waited.1,
            until: waited.2,
            handed_on: false,
            askers: &askers,
            memory: None,
            open: true,
            for_answer: None,
        })
    }

    fn apply(&mut self, ended: &EndedWait) -> Cause {
        self.requests
            .take_up_in_loop(ended, &mut self.threads, &self.tasks, &self.objects);
        match self.requests.unanswered(ended, &mut self.threads, &self.objects) {
            // What else is in the set does not matter.
            Some((wait, outstanding)) => self.apply_as_told(&EndedWait {
                wait: &wait,
                memory: None,
                for_answer: Some(outstanding),
                ..*ended
            }),
            None => self.apply_as_told(ended),
        }
    }

    fn apply_as_told(&mut self, ended: &EndedWait) -> Cause {
        let before = self.blockers.path_without(ended, &self.threads);
        let Some(entry) = self.enter(ended) else {
            return Cause::Unknown;
        };
        if clients::awaits_word(entry.cause, ended.wait, |id| self.objects.object(Some(id)))
            && let Some(thread) = self.threads.get_mut(&ended.wait.thread)
        {
            thread.recent.last_is_of_client();
        }
        let mut scene = Scene {
            threads: &mut self.threads,
            tasks: &mut self.tasks,
            served: &self.requests.served,
            objects: &self.objects,
            gone: &self.ended,
        };
        self.blockers.step(ended, &entry, before, &mut scene);
        lock_queues::note(&mut self.threads, ended, &entry);
        entry.cause
    }

    pub(super) fn cpu(&mut self, sample: &CpuSample) {
        // A woken thread's memory comes before it runs user code; it may be seen in the kernel on its way there.
        if sample.user {
            self.settle(sample.thread);
        }
        let keep = ledger::remembered(&self.threads);
        let process = process_name(&self.threads, &mut self.tasks, sample.thread);
        self.objects.used(sample.object);
        let Some(thread) = self
            .threads
            .get_mut(&sample.thread)
            .filter(|thread| !thread.ended)
        else {
            return;
        };
        let stack = sample
            .kernel_stack
            .and_then(|stack| self.objects.kernel_stack(stack));
        let object = self.objects.object(sample.object);
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
