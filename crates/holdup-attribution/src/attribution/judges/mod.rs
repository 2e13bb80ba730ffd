//! What a wait was for: each judge looks at one kind of evidence, and [`PRECEDENCE`] says who is believed.
//!
//! In: a wait that has ended, what the kernel shows of it, and what is known of threads, servers and runtimes. Out: a
//! [`Verdict`]. A judge changes nothing, and knows of no other judge but the kernel's reading, which is part of the case.
//! What follows from a verdict is booked later (`booking.rs`).

mod idle;
mod jvm;
mod kernel;
mod runtime_lock;
mod server_timer;
mod spent_on;
mod tls;

#[cfg(test)]
mod tests;

pub(super) use spent_on::spent_on;

use super::Attribution;
use super::churn::Churning;
use super::earlier::EarlierRequests;
use super::ended_wait::EndedWait;
use super::idle::{Served, Who, Work};
use super::jvms::Jvms;
use super::object_cache::{ObjectCache, Reading};
use super::orders::Sets;
use super::requests::Answering;
use super::task_table::TaskTable;
use super::thread::{Thread, Threads};
use super::turns::{self, Turns};
use super::{orders, owners};
use crate::classify::Classified;
use holdup_evidence::{Cause, Earlier, ThreadId, Wait, WaitMemory};
use holdup_model::attributed::{Certainty, Judge, JudgedBy, Reason};
use std::cell::OnceCell;

/// Judges in the order in which they are believed. The first that knows the purpose of a wait decides. A verdict that
/// shows only the mechanism stands if nobody knows the purpose.
const PRECEDENCE: [(Judge, JudgeFn); 6] = [
    // 1 to 4. The scheduler's states, memory, fsync, `/dev/random`, DNS: the kernel shows the purpose itself. Of a futex, a
    // poll, a receive or a sleep it shows the mechanism.
    (Judge::Kernel, kernel::judge),
    // 4. A TLS handshake beats receive and send.
    (Judge::Tls, tls::judge),
    // 5. Locks and pauses of a runtime need evidence from the runtime. A lock of the program beats a pause.
    (Judge::RuntimeLock, runtime_lock::judge),
    (Judge::Jvm, jvm::judge),
    // A request that waits for a timer is in flight: its server is not idle.
    (Judge::ServerTimer, server_timer::judge),
    // Idle is the last: only a wait that nothing else explains was for work.
    (Judge::Idle, idle::judge),
];

/// A judge: its verdict on a case, or nothing.
type JudgeFn = fn(&Case<'_>) -> Option<Verdict>;

/// What judges may know beside the wait itself.
#[derive(Clone, Copy)]
pub(super) struct Knowledge<'a> {
    pub(super) threads: &'a Threads,
    pub(super) tasks: &'a TaskTable,
    pub(super) objects: &'a ObjectCache,
    pub(super) served: &'a Served,
    pub(super) earlier: &'a EarlierRequests,
    pub(super) turns: &'a Turns,
    pub(super) sets: &'a Sets,
    pub(super) answering: &'a Answering,
    pub(super) jvms: &'a Jvms,
    pub(super) churning: &'a Churning,
}

/// A wait to be judged.
pub(super) struct Case<'a> {
    pub(super) wait: &'a Wait,
    /// Whether observation ended before it.
    pub(super) open: bool,
    /// The memory of its thread, or what the thread had asked for.
    pub(super) memory: Option<&'a WaitMemory>,
    /// What the kernel shows.
    pub(super) reading: Reading,
    /// By what evidence the kernel shows it, and how much that is.
    pub(super) shown: (Reason, Certainty),
    /// The thread that waited, and its process.
    pub(super) thread: &'a Thread,
    pub(super) pid: u32,
    pub(super) known: Knowledge<'a>,
    requests: OnceCell<Requests>,
}

/// What the thread had to do with requests, as this wait shows.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    /// The work that it may have waited for.
    pub(super) work: Option<Work>,
    /// Requests from before observation that it turns out to have.
    pub(super) taken: Vec<Earlier>,
    /// Whether it has a request to answer.
    pub(super) serves: bool,
}

/// What the time of a wait is booked under.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    /// What the kernel shows.
    AsRead,
    /// The peer that the kernel shows: all connections to it are one thing.
    Peer,
    /// What the judge names.
    Named(Classified),
}

/// What a judge says of a wait.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub(super) cause: Cause,
    pub(super) subject: Subject,
    pub(super) certainty: Certainty,
    pub(super) reason: Reason,
    /// Whether the wait ended because its time ran out.
    pub(super) timed_out: bool,
    /// Of threads that wait until all have stopped: the last one.
    pub(super) late: Option<ThreadId>,
}

/// The decision on a case.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) by: JudgedBy,
    /// What the kernel shows.
    pub(super) reading: Reading,
    /// Whether the thread has a request to answer.
    pub(super) serves: bool,
    /// What was found out about requests, where a judge had to ask.
    pub(super) requests: Option<Requests>,
}

/// Decides a case.
pub(super) fn decide(case: Case<'_>) -> Decision {
    let (judge, verdict) = first_that_knows(&PRECEDENCE, &case);
    let requests = case.requests.into_inner();
    let serves = match &requests {
        Some(requests) => requests.serves,
        None => case.wait.serves || case.thread.earlier > 0,
    };
    Decision {
        by: JudgedBy {
            judge,
            reason: verdict.reason,
            certainty: verdict.certainty,
        },
        verdict,
        reading: case.reading,
        serves,
        requests,
    }
}

/// The verdict of the first judge that knows the purpose; without one, of the first that knows the mechanism.
fn first_that_knows(judges: &[(Judge, JudgeFn)], case: &Case<'_>) -> (Judge, Verdict) {
    let mut mechanism = None;
    for (judge, look) in judges {
        match look(case) {
            Some(verdict) if verdict.certainty == Certainty::Purpose => return (*judge, verdict),
            Some(verdict) => _ = mechanism.get_or_insert((*judge, verdict)),
            None => {}
        }
    }
    mechanism.unwrap_or_else(|| (Judge::Kernel, kernel::verdict(case)))
}

impl<'a> Case<'a> {
    /// The case of a wait; nothing if its thread is gone.
    pub(super) fn new(
        known: Knowledge<'a>,
        ended: &EndedWait<'a>,
        memory: Option<&'a WaitMemory>,
        reading: Reading,
        borrowed_stack: bool,
    ) -> Option<Case<'a>> {
        let wait = ended.wait;
        let thread = known.threads.get(&wait.thread)?;
        Some(Case {
            wait,
            open: ended.open,
            memory,
            reading,
            shown: (
                kernel::reason(wait, borrowed_stack),
                kernel::certainty(reading.cause),
            ),
            thread,
            pid: known.tasks.pid(thread.identity.process),
            known,
            requests: OnceCell::new(),
        })
    }

    /// What the thread had to do with requests.
    pub(super) fn requests(&self) -> &Requests {
        self.requests.get_or_init(|| {
            let Knowledge {
                objects,
                served,
                tasks,
                earlier,
                ..
            } = self.known;
            let who = Who {
                pid: self.pid,
                attends: &|| turns::attends(self.pid, served, tasks),
            };
            let object = |id| objects.object(Some(id));
            let work = orders::of_session(&self.known, self.pid, self.wait, self.memory)
                .or_else(|| served.idle(who, self.reading.cause, self.wait, self.memory, object))
                .or_else(|| turns::work_aside(&self.known, self.wait, self.memory));
            // A thread that waits for the owner of a lock does not wait for a client.
            let taken = match self.wait.serves || owners::of(self.wait).is_some() {
                true => Vec::new(),
                false => earlier.of_waiter(self.pid, self.wait, work.as_ref(), self.memory, self.open),
            };
            Requests {
                serves: self.wait.serves || self.thread.earlier > 0 || !taken.is_empty(),
                work,
                taken,
            }
        })
    }

    /// A verdict with a resource that the judge names.
    fn named(&self, reason: Reason, classified: Classified) -> Verdict {
        Verdict {
            cause: classified.cause,
            subject: Subject::Named(classified),
            certainty: Certainty::Purpose,
            reason,
            timed_out: self.reading.timed_out,
            late: None,
        }
    }
}

impl Attribution {
    /// What judges may know.
    pub(super) fn knowledge(&self) -> Knowledge<'_> {
        Knowledge {
            threads: &self.threads,
            tasks: &self.tasks,
            objects: &self.objects,
            served: &self.requests.served,
            earlier: &self.requests.earlier,
            turns: &self.requests.turns,
            sets: &self.requests.sets,
            answering: &self.requests.answering,
            jvms: &self.jvms,
            churning: &self.churning,
        }
    }
}
