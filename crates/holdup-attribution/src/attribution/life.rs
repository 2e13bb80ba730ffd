//! Births, execs, names and ends, and the clocks of threads that others meet.

use super::Attribution;
use super::ledger::{self, Owner};
use super::path::Path;
use super::run_path::Scope;
use super::task_table::{NameId, TaskTable};
use super::thread::{Thread, Threads, nobody};
use super::what::WhatId;
use holdup_evidence::{
    Adopted, Cause, Clock, End, Ns, OpenState, RanInstead, Role, SignalSent, Start, TaskName, ThreadId, Wait,
};

/// Ended threads that are still met as wakers: a parent or a joining thread is woken right after the end.
const KEPT_ENDED: usize = 512;

/// `SIGSTOP`, `SIGTSTP`, `SIGTTIN`, `SIGTTOU`.
const STOP_SIGNALS: std::ops::RangeInclusive<i32> = 19..=22;

impl Attribution {
    fn insert(
        &mut self,
        id: ThreadId,
        task: &TaskName,
        adopted: Option<&Adopted>,
        born: Ns,
        path: Path,
    ) -> &mut Thread {
        let identity = self.tasks.born(id, task, adopted);
        let name = self.tasks.process_name(identity.process);
        let own = self.book.keys.own(self.started);
        self.started += 1;
        let thread = Thread::born(id, identity, name, born, path, own, &mut self.book);
        self.threads.entry(id).or_insert(Box::new(thread))
    }

    pub(super) fn start(&mut self, start: &Start) {
        let run_start = self.run_path.began(start.at, &mut self.book.axis);
        let parent = start.parent.map(|(parent, _)| parent);
        self.network.born(start.thread, parent, start.task.pid, start.at);
        if let Some(thread) = self.threads.get_mut(&start.thread) {
            // It was met before its birth was reported: only its names are news.
            if thread.nameless {
                thread.nameless = false;
                thread.identity = self.tasks.born(start.thread, &start.task, None);
                thread.ledger.owner = Owner::Thread(thread.identity);
                if start.thread == ThreadId(0) {
                    self.run_path.cmd_is(thread.identity.process);
                }
            }
            return self.faults.contradiction(0);
        }
        let path = match &start.parent {
            None if start.at == run_start && self.run_path.scope == Scope::Run => Path::new(),
            None => self.run_path.unknown(run_start, start.at),
            Some((parent, clock)) => match self.path_of(*parent, clock, start.at) {
                Some(path) => path,
                None => self.run_path.unknown(run_start, start.at),
            },
        };
        self.churning.was_made(start, &self.threads, &mut self.tasks);
        let born = start.at.max(run_start);
        let creator = start.parent.and_then(|(parent, _)| self.threads.get(&parent));
        let creators_pid = creator.map(|creator| self.tasks.pid(creator.identity.process));
        self.requests.served.born(start.task.pid, creators_pid);
        let thread = self.insert(start.thread, &start.task, start.adopted.as_ref(), born, path);
        thread.ledger.role = start.role;
        thread.adopted = start.adopted.is_some();
        thread.creator = start.parent.map(|(parent, _)| parent);
        let Some(thread) = self.threads.get_mut(&start.thread) else {
            return;
        };
        if let Some(inside) = start.inside {
            self.tasks.is_inside(start.thread, &mut thread.identity, inside);
        }
        let process = thread.identity.process;
        if start.thread == ThreadId(0) {
            self.run_path.cmd_is(process);
        }
        let known = creators_pid == Some(start.task.pid);
        if self.run_path.scope == Scope::Threads && !known {
            let pid = start.task.pid;
            self.requests.serves_like_siblings(pid, creators_pid, &self.tasks);
        }
    }

    /// The path of a thread at an instant at which it did something to another, its clock being `clock`.
    /// `None` when the thread is long gone or contradicts itself.
    pub(super) fn path_of(&mut self, id: ThreadId, clock: &Clock, at: Ns) -> Option<Path> {
        self.settle(id);
        if self.ended.contains(id) {
            return None;
        }
        self.meet(id, clock, at);
        let process = process_name(&self.threads, &mut self.tasks, id);
        let thread = self.threads.get_mut(&id)?;
        let spent = thread.advance(clock, at, None, true, process, &mut self.book);
        // The path of a run is that of CMD and its children: at a wait that somebody else ended it stays with the wait.
        if self.run_path.scope == Scope::Run && thread.ledger.role == Role::Neighbour {
            return None;
        }
        let path = (thread.at == at).then(|| thread.path.clone());
        if spent.contradicted > 0 || path.is_none() {
            self.faults.contradiction(spent.contradicted);
        }
        path
    }

    /// Makes sure that there is a thread of this number. If its start was lost, its clock tells when that
    /// was, and nothing tells what the path was until then.
    pub(super) fn meet(&mut self, id: ThreadId, clock: &Clock, at: Ns) {
        if self.threads.contains_key(&id) || self.ended.contains(id) {
            return;
        }
        let lived = clock
            .cpu
            .saturating_add(clock.queued)
            .saturating_add(clock.blocked);
        let born = at.saturating_sub(lived);
        let run_start = self.run_path.began(born, &mut self.book.axis);
        let path = self.run_path.unknown(run_start, born.max(run_start));
        self.insert(id, &nobody(), None, born.max(run_start), path)
            .nameless = true;
    }

    pub(super) fn exec(&mut self, id: ThreadId, task: &TaskName) {
        self.settle(id);
        if let Some(thread) = self.threads.get_mut(&id) {
            self.tasks.is_now(id, &mut thread.identity, task);
            thread.ledger.owner = Owner::Thread(thread.identity);
            thread
                .ledger
                .renamed(self.tasks.process_name(thread.identity.process), &mut self.book);
        }
    }

    pub(super) fn end(&mut self, end: &End) {
        if !self.judged_later(end) {
            self.end_now(end);
        }
    }

    /// A thread's end, or that of observation, is judged.
    pub(super) fn end_now(&mut self, end: &End) {
        self.settle(end.thread);
        self.meet(end.thread, &end.clock, end.at);
        let id = end.thread;
        if end.open.is_none() {
            self.network.ended(id);
            self.churning.has_ended(end, &mut self.tasks);
        }
        let Some(thread) = self.threads.get_mut(&id).filter(|thread| !thread.ended) else {
            return self.faults.contradiction(0);
        };
        if thread.nameless {
            thread.nameless = false;
            thread.identity = self.tasks.born(id, &end.task, None);
            if id == ThreadId(0) {
                self.run_path.cmd_is(thread.identity.process);
            }
        } else {
            self.tasks.is_now(id, &mut thread.identity, &end.task);
        }
        thread.ledger.owner = Owner::Thread(thread.identity);
        let open = match &end.open {
            Some(OpenState::Blocked(wait)) => Some(wait),
            _ => None,
        };
        let process = self.tasks.process_name(thread.identity.process);
        let span = open.map(|wait| (wait.start, wait.end));
        let spent = thread.advance(&end.clock, end.at, span, true, process, &mut self.book);
        match open {
            Some(wait) => {
                thread.numbered(wait.seq);
                let cause = self.apply_open(id, wait, (spent.waited, spent.on_path, spent.until));
                self.close(end, Some(cause));
            }
            None => {
                let at = thread.at;
                thread.end_stretch(end.open.as_ref(), &mut self.book);
                thread.close_pieces(at, true);
                self.close(end, None);
            }
        }
        if spent.contradicted > 0 {
            self.faults.contradiction(spent.contradicted);
        }
    }

    /// A wait goes on as observation ends.
    pub(super) fn left_waiting(&mut self, wait: &Wait) {
        let Some(thread) = self.threads.get(&wait.thread).filter(|thread| !thread.ended) else {
            return;
        };
        let name = self.tasks.describe(&self.tasks.named(&thread.identity));
        let end = End {
            at: wait.end,
            thread: wait.thread,
            task: TaskName {
                pid: name.pid,
                tid: name.tid,
                name: name.thread,
                kernel: false,
            },
            born: thread.born,
            clock: wait.clock,
            blockings: u64::from(wait.seq),
            lost: (thread.ledger.tally(WhatId::LOST).ns, thread.lost_waits),
            interrupts: thread.ledger.interrupts,
            account: None,
            open: Some(OpenState::Blocked(Box::new(wait.clone()))),
            exit_code: 0,
        };
        self.end(&end);
    }

    fn close(&mut self, end: &End, open: Option<Cause>) {
        let id = end.thread;
        let keep = ledger::remembered(&self.threads);
        // The program of a JVM ends with a thread of its own; those of the machine are ended with it.
        let ends_with_others = self.jvms.has_own_thread(id, &self.threads, &self.tasks);
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        self.faults.late_askers += std::mem::take(&mut thread.early).len() as u64;
        thread.ledger.interrupts = end.interrupts;
        let found = thread.ledger.tally(WhatId::LOST).ns;
        // Nothing came after the last ones lost that could have shown a gap. Those that the kernel side knows of it has counted; it
        // blocks more often than it waits, for who leaves as if to sleep may be runnable all along.
        let after_last = end
            .blockings
            .saturating_sub(u64::from(thread.last_seq).saturating_add(end.clock.repeats));
        let gaps = thread
            .lost_waits
            .saturating_add(if found > end.lost.0 { after_last } else { 0 });
        self.faults.lost_waits.0 = self.faults.lost_waits.0.saturating_add(gaps.max(end.lost.1));
        self.faults.lost_waits.1 = self.faults.lost_waits.1.saturating_add(found);
        if found != end.lost.0 {
            self.faults.unequal_losses.0 += 1;
            self.faults.unequal_losses.1 = self
                .faults
                .unequal_losses
                .1
                .saturating_add(found.abs_diff(end.lost.0));
        }
        let wall = thread.at.saturating_sub(thread.born);
        thread.ledger.ended(wall, keep.min(256));
        thread.ledger.open = end.open.is_some();
        if let Some(open) = &end.open {
            thread.mark_open(open);
        }
        thread.ended = true;
        let of_cmd = self.run_path.is_of_cmd(thread) && !ends_with_others;
        if let Some(graph) = self.graph.as_mut().filter(|_| of_cmd) {
            graph.ends_cmd(id, end.open.is_some());
        }
        if of_cmd {
            self.run_path.step(thread, thread.at, open);
        }
        let spent = std::mem::take(&mut thread.with_requests);
        self.requests
            .answering
            .add(id, &spent, thread.at, thread.answers_by_timer);
        self.tasks.gone(id, &thread.identity, thread.at);
        self.ending.push_back(id);
        if self.ending.len() > KEPT_ENDED
            && let Some(oldest) = self.ending.pop_front()
            && let Some(thread) = self.threads.remove(&oldest)
        {
            self.tasks.forgotten(oldest, &thread.identity);
            self.ended
                .add(oldest, thread.ledger, &mut self.tasks, &mut self.book);
        }
    }
}

/// The name of a thread's process.
pub(super) fn process_name(threads: &Threads, tasks: &mut TaskTable, id: ThreadId) -> NameId {
    match threads.get(&id) {
        Some(thread) => tasks.process_name(thread.identity.process),
        None => tasks.name_id("?"),
    }
}

/// A thread has another name now.
pub(super) fn renamed(threads: &mut Threads, tasks: &mut TaskTable, id: ThreadId, name: &str) {
    if let Some(thread) = threads.get_mut(&id) {
        tasks.renamed(&mut thread.identity, name);
        thread.ledger.owner = Owner::Thread(thread.identity);
    }
}

/// Another task ran while a thread was queued.
pub(super) fn ran_instead(threads: &mut Threads, tasks: &mut TaskTable, ran: &RanInstead) {
    if let Some(thread) = threads.get_mut(&ran.thread) {
        thread.ledger.queueing.add(ran);
    }
    let Some(by) = &ran.by else { return };
    let named = tasks.named_task(by);
    let name = if tasks.text(named.process).is_empty() {
        named.thread
    } else {
        named.process
    };
    if let Some(thread) = threads.get_mut(&ran.thread) {
        thread.ledger.ran_instead(name, ran.ns);
    }
}

/// A thread got a signal: one that stops its process is kept.
pub(super) fn signal(threads: &Threads, tasks: &mut TaskTable, signal: &SignalSent) {
    if STOP_SIGNALS.contains(&signal.signal)
        && let Some(thread) = threads.get(&signal.thread)
    {
        let pid = tasks.pid(thread.identity.process);
        tasks.stopped(pid, signal.signal, &signal.by);
    }
}
