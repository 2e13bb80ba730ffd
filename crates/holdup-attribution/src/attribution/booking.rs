//! Books a wait that has been judged.
//!
//! In: a wait that has ended, and the decision on it. Out: the thread's ledger, its requests, its path and what later waits
//! refer to. Nothing is decided here.

use super::Attribution;
use super::ended_wait::EndedWait;
use super::event_loops;
use super::judges::{self, Case, Decision, Requests, Subject};
use super::object_cache;
use super::requests;
use super::thread::{KernelStackSeen, Told};
use super::what::{Role, WhatId};
use holdup_evidence::{Cause, ThreadId, Wait, Waker};

/// Where a wait was booked.
pub(super) struct Entry {
    pub(super) cause: Cause,
    pub(super) site: usize,
    /// Whether it is the longest there.
    pub(super) longest: bool,
    /// Of threads that wait until all have stopped: the last one.
    pub(super) late: Option<ThreadId>,
}

impl Attribution {
    /// Judges a wait and books it.
    pub(super) fn enter(&mut self, ended: &EndedWait) -> Option<Entry> {
        let wait = ended.wait;
        let thread = self.threads.get(&wait.thread)?;
        let borrowed = match wait.kernel_stack {
            Some(_) => None,
            None => thread.borrowed_stack(&wait.call, wait.object),
        };
        let decision = self.decision(ended, borrowed)?;
        self.book(ended, borrowed, decision)
    }

    /// What a wait was for. Only the dictionary grows by it.
    fn decision(&mut self, ended: &EndedWait, borrowed: Option<KernelStackSeen>) -> Option<Decision> {
        let wait = ended.wait;
        let stack = wait.kernel_stack.or(borrowed.map(|seen| seen.stack));
        let joined = object_cache::joined(ended.memory, wait.asked.as_deref());
        let memory = joined.as_ref().or(ended.memory).or(wait.asked.as_deref());
        let whats = &mut self.book.whats;
        let reading = self
            .objects
            .tell(wait, memory, stack, self.classifier.wait, |classified| {
                whats.classified(Role::Wait, classified)
            });
        let case = Case::new(self.knowledge(), ended, memory, reading, borrowed.is_some())?;
        Some(judges::decide(case))
    }

    fn book(
        &mut self,
        ended: &EndedWait,
        borrowed: Option<KernelStackSeen>,
        mut decision: Decision,
    ) -> Option<Entry> {
        let wait = ended.wait;
        let subject = std::mem::replace(&mut decision.verdict.subject, Subject::AsRead);
        let what = self.what(subject, decision.reading.what);
        let cause = decision.verdict.cause;
        self.learn_turn(wait);
        if let Some(requests) = &decision.requests {
            self.book_taken(wait, requests);
        }
        self.book_request(ended, &decision);
        let (site, longest) = self.book_site(ended, borrowed, &decision, what)?;
        if let Some(graph) = &mut self.graph {
            graph.told(wait.thread, wait.seq, cause);
        }
        if cause == Cause::TimerSleep {
            self.network.slept(wait.thread, wait.start, wait.end);
        }
        let in_time = cause == Cause::TimerSleep || decision.verdict.timed_out;
        self.keep_wait(ended, site, in_time);
        Some(Entry {
            cause,
            site,
            longest,
            late: decision.verdict.late,
        })
    }

    /// The dictionary's number for what a wait was for. `read`: for what the kernel shows.
    fn what(&mut self, subject: Subject, read: WhatId) -> WhatId {
        let whats = &mut self.book.whats;
        match subject {
            Subject::AsRead => read,
            Subject::Peer => whats.of_handshake(read),
            Subject::Named(classified) => whats.classified(Role::Wait, classified),
        }
    }

    /// Books requests from before observation that the thread turned out to have.
    fn book_taken(&mut self, wait: &Wait, requests: &Requests) {
        let state = &mut self.requests;
        state
            .earlier
            .judged(wait, requests.work.as_ref(), &requests.taken);
        if let Some(thread) = self.threads.get_mut(&wait.thread) {
            state.take_up(&requests.taken, thread);
        }
    }

    /// Books what the wait was to the thread's requests.
    fn book_request(&mut self, ended: &EndedWait, decision: &Decision) {
        let (wait, verdict) = (ended.wait, &decision.verdict);
        let Some(thread) = self.threads.get_mut(&wait.thread) else {
            return;
        };
        let timer_ran = verdict.timed_out && !ended.open && event_loops::polls(&wait.call);
        thread.timer_ran_since = timer_ran.then_some(wait.start);
        if decision.serves {
            let cause = judges::spent_on(verdict);
            requests::spend(&mut thread.with_requests, cause, ended.waited, ended.open);
        }
    }

    /// Books the wait in its thread's ledger: at which site, and whether it is the longest there.
    fn book_site(
        &mut self,
        ended: &EndedWait,
        borrowed: Option<KernelStackSeen>,
        decision: &Decision,
        what: WhatId,
    ) -> Option<(usize, bool)> {
        let (wait, verdict) = (ended.wait, &decision.verdict);
        let cause = verdict.cause;
        let keep = self.remembered();
        let process = self.process_name(wait.thread);
        let thread = self.threads.get_mut(&wait.thread)?;
        if let Some(stack) = wait.kernel_stack {
            thread.lend_stack(&wait.call, wait.object, stack, what);
        }
        let site = thread.ledger.site(what, process, &mut self.book);
        let waker = match &wait.waker {
            Waker::Thread { thread, .. } if ended.handed_on => Some(*thread),
            _ => None,
        };
        let longest = thread.waited(site, cause, ended, waker, &mut self.book);
        thread.told = Some(Told {
            site,
            cause,
            timed_out: verdict.timed_out,
        });
        thread
            .ledger
            .remember_wait(wait.seq, site, wait.start, wait.end, keep);
        let tally = &mut thread.ledger.sites[site];
        tally.tally.open |= ended.open;
        tally.timed_out += u64::from(verdict.timed_out);
        if longest {
            tally.bytes = decision.reading.bytes;
            tally.judged_by = Some(decision.by);
        }
        if let Some(tcp) = self.network.take_tcp(wait) {
            tally.tcp.get_or_insert_default().add(&tcp, ended.waited);
        }
        if let Some(stack) = wait.kernel_stack {
            tally.seen_in(stack, ended.waited);
        }
        if let Some(seen) = borrowed {
            tally.borrowed = tally.borrowed.saturating_add(ended.waited);
            if seen.varied {
                tally.doubtful = tally.doubtful.saturating_add(ended.waited);
            }
        }
        for (stack, weight) in ended.askers {
            tally.asked_by(*stack, *weight, wait.start, wait.end);
        }
        if cause == Cause::TimerSleep && !ended.open {
            tally
                .rhythm
                .get_or_insert_default()
                .slept(&wait.call, wait.start, wait.end);
        }
        Some((site, longest))
    }
}
