//! Books a wait that has been judged.
//!
//! In: a wait that has ended, and the decision on it. Out: the thread's ledger, its requests, its path and what later waits
//! refer to. Nothing is decided here.

use super::Attribution;
use super::ended_wait::EndedWait;
use super::event_loops;
use super::judges::{self, Case, Decision, Subject};
use super::ledger::{self, Book};
use super::life::process_name;
use super::network::Network;
use super::object_cache;
use super::requests::{self, RequestState};
use super::task_table::TaskTable;
use super::thread::{BookedWait, KernelStackSeen, Threads};
use super::turns;
use super::what::{Role, WhatId};
use holdup_evidence::{Cause, ThreadId, Waker};

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
    /// Judges a wait and books it: first at its requests, then in the books of its thread.
    pub(super) fn enter(&mut self, ended: &EndedWait) -> Option<Entry> {
        let wait = ended.wait;
        let thread = self.threads.get(&wait.thread)?;
        let borrowed = match wait.kernel_stack {
            Some(_) => None,
            None => thread.borrowed_stack(&wait.call, wait.object),
        };
        let decision = self.decision(ended, borrowed)?;
        let turn = turns::turn(&self.knowledge(), wait);
        self.requests.book(ended, &decision, turn, &mut self.threads);
        let mut witnesses = Witnesses {
            threads: &mut self.threads,
            tasks: &mut self.tasks,
            network: &mut self.network,
        };
        let entry = self.book.step(ended, borrowed, decision, &mut witnesses)?;
        if let Some(graph) = &mut self.graph {
            graph.set_cause(wait.thread, wait.seq, entry.cause);
        }
        Some(entry)
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
}

impl RequestState {
    /// Books what a wait was to the requests of its thread. `turn`: the lock that is a turn at the next client, if it was for one.
    fn book(
        &mut self,
        ended: &EndedWait,
        decision: &Decision,
        turn: Option<turns::TurnLock>,
        threads: &mut Threads,
    ) {
        let (wait, verdict) = (ended.wait, &decision.verdict);
        if let Some(lock) = turn {
            self.turns.learn(lock);
        }
        // Requests from before observation that the thread turned out to have.
        if let Some(found) = &decision.requests {
            self.earlier.judged(wait, found.work.as_ref(), &found.taken);
        }
        let Some(thread) = threads.get_mut(&wait.thread) else {
            return;
        };
        if let Some(found) = &decision.requests {
            self.take_up(&found.taken, thread);
        }
        // What it asks of others as its time has run out, and waits for, belongs to what it does then.
        let asks = wait.unanswered.is_some();
        let timer_ran = verdict.timed_out && !ended.open && !asks && event_loops::polls(&wait.call);
        thread.timer_ran_since = match timer_ran {
            true => Some(wait.start),
            false => thread.timer_ran_since.filter(|_| asks),
        };
        if decision.serves {
            let cause = judges::spent_on(verdict);
            requests::spend(&mut thread.with_requests, cause, ended.waited, ended.open);
        }
    }
}

/// What the books need beside the wait: whose it was, and what was sent meanwhile.
struct Witnesses<'a> {
    threads: &'a mut Threads,
    tasks: &'a mut TaskTable,
    network: &'a mut Network,
}

impl Book {
    /// Books a wait that has been judged.
    fn step(
        &mut self,
        ended: &EndedWait,
        borrowed: Option<KernelStackSeen>,
        mut decision: Decision,
        witnesses: &mut Witnesses<'_>,
    ) -> Option<Entry> {
        let wait = ended.wait;
        let subject = std::mem::replace(&mut decision.verdict.subject, Subject::AsRead);
        let what = self.what(subject, decision.reading.what);
        let cause = decision.verdict.cause;
        let (site, longest) = self.book_site(ended, borrowed, &decision, what, witnesses)?;
        if cause == Cause::TimerSleep {
            witnesses.network.slept(wait.thread, wait.start, wait.end);
        }
        let in_time = cause == Cause::TimerSleep || decision.verdict.timed_out;
        self.keep_wait(ended, site, in_time, witnesses.threads, witnesses.tasks);
        Some(Entry {
            cause,
            site,
            longest,
            late: decision.verdict.late,
        })
    }

    /// The dictionary's number for what a wait was for. `read`: for what the kernel shows.
    fn what(&mut self, subject: Subject, read: WhatId) -> WhatId {
        match subject {
            Subject::AsRead => read,
            Subject::Peer => self.whats.of_handshake(read),
            Subject::Named(classified) => self.whats.classified(Role::Wait, classified),
        }
    }

    /// Books the wait in its thread's ledger: at which site, and whether it is the longest there.
    fn book_site(
        &mut self,
        ended: &EndedWait,
        borrowed: Option<KernelStackSeen>,
        decision: &Decision,
        what: WhatId,
        witnesses: &mut Witnesses<'_>,
    ) -> Option<(usize, bool)> {
        let (wait, verdict) = (ended.wait, &decision.verdict);
        let cause = verdict.cause;
        let keep = ledger::remembered(witnesses.threads);
        let process = process_name(witnesses.threads, witnesses.tasks, wait.thread);
        let thread = witnesses.threads.get_mut(&wait.thread)?;
        if let Some(stack) = wait.kernel_stack {
            thread.lend_stack(&wait.call, wait.object, stack, what);
        }
        let site = thread.ledger.site(what, process, self);
        let waker = match &wait.waker {
            Waker::Thread { thread, .. } if ended.handed_on => Some(*thread),
            _ => None,
        };
        let longest = thread.waited(site, cause, ended, waker, self);
        thread.booked = Some(BookedWait {
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
        tally.outstanding = tally.outstanding.max(ended.for_answer.unwrap_or(0));
        if longest {
            tally.bytes = decision.reading.bytes;
            tally.judged_by = Some(decision.by);
        }
        if let Some(tcp) = witnesses.network.take_tcp(wait) {
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
