//! Attribution: from the stream of what was seen to where every nanosecond went.
//!
//! In: [`Event`]s one by one, in the order in which the source delivers them, and at the end [`Finish`] and
//! the machine's facts. Out: [`Attributed`]: each thread's ledger, the run's critical path, and waits by
//! thread, cause, resource and asker with who was in the way.
//!
//! The critical path is found without looking back. Each thread carries the path that a walk backwards from
//! its own now would give (see `path.rs`): running and queueing append to it; a wait that a thread of the run
//! ended replaces it by a copy of that thread's; a birth copies the creator's; any other wait appends its
//! own cause. What CMD's last thread carries when it ends is the path of the run.
//!
//! Memory is bounded by the number of threads that live and of things they wait for, never by the number of
//! waits: see the constants of each module for what is kept of how much.

mod asker;
mod chain;
mod cpu;
mod deadlock;
mod finish;
mod fold;
mod histogram;
mod holders;
mod keys;
mod ledger;
mod left_behind;
mod life;
mod network;
mod numbers;
mod owners;
mod path;
mod people;
mod queueing;
mod rows;
mod sights;
mod site;
mod spins;
mod thread;
mod waits;
mod what;

#[cfg(test)]
mod tests;

pub(crate) use asker::choose;
pub use owners::shared_lock_owner;

use crate::attributed::{Attributed, Resource};
use crate::classify::{self, Classified, Site};
use deadlock::HandOvers;
use fold::Ended;
use holdup_evidence::{Call, Cause, Event, Finish, Frame, Ns, Object, SystemFacts, ThreadId};
use keys::Keys;
use ledger::Book;
use network::Network;
use numbers::NumberMap;
use path::Path;
use people::{People, ProcessId};
use sights::Sights;
use std::collections::VecDeque;
use thread::Thread;
use what::Whats;

/// What a running thread did: its call, whether in user mode, the call's object, the kernel stack.
pub type OnCpu = fn(Call, bool, Option<&Object>, Option<&[String]>) -> Classified;

/// What a wait was for by the user stack that asked: the cause that was told so far, the call, the stack.
pub type ByUserStack = fn(Cause, Option<&str>, &[Frame]) -> Option<(Cause, Resource)>;

/// The judgements that attribution leaves to others: what a wait was for, what a running thread did, and
/// how its resource is named at the end.
#[derive(Debug, Clone, Copy)]
pub struct Classifier {
    /// What a wait was for.
    pub wait: fn(&Site) -> Classified,
    /// What a running thread did.
    pub on_cpu: OnCpu,
    /// What only the user stack of a wait can tell.
    pub by_user_stack: ByUserStack,
    /// Names what only the machine's facts can name.
    pub name_resource: fn(&mut Resource, Cause, &SystemFacts),
}

impl Default for Classifier {
    fn default() -> Self {
        Classifier {
            wait: classify::wait,
            on_cpu: classify::on_cpu,
            by_user_stack: classify::by_user_stack,
            name_resource: classify::name_resource,
        }
    }
}

/// What went wrong with the stream, counted.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// Records that contradict others, and the time they are about.
    contradictory: (u64, Ns),
    /// Waits without a record, and their time.
    lost_waits: (u64, Ns),
    /// User stacks of waits that were no longer remembered.
    late_askers: u64,
    /// Threads of which the kernel side counts other losses than were found here, and the difference.
    unequal_losses: (u64, Ns),
    /// Threads whose end never came, and the time from their last record to the end of observation.
    endless: (u64, Ns),
}

/// The end of CMD's process so far.
#[derive(Debug)]
struct LastOfCmd {
    at: Ns,
    path: Path,
    /// What it was waiting for when observation ended.
    open: Option<Cause>,
}

/// Attributes a run.
#[derive(Debug)]
pub struct Attribution {
    classifier: Classifier,
    run_start: Option<Ns>,
    /// Threads that live, and those that ended so lately that others may still be woken by them.
    threads: NumberMap<ThreadId, Box<Thread>>,
    /// Those of `threads` that have ended, oldest first.
    ending: VecDeque<ThreadId>,
    ended: Ended,
    started: u64,
    people: People,
    book: Book,
    sights: Sights,
    network: Network,
    cmd: Option<ProcessId>,
    last_of_cmd: Option<LastOfCmd>,
    faults: Faults,
    hand_overs: HandOvers,
}

impl Default for Attribution {
    fn default() -> Self {
        Attribution::new()
    }
}

impl Attribution {
    /// For a run of which nothing was seen yet.
    #[must_use]
    pub fn new() -> Attribution {
        Attribution::with(Classifier::default())
    }

    /// The same with other judgements.
    #[must_use]
    pub fn with(classifier: Classifier) -> Attribution {
        Attribution {
            classifier,
            run_start: None,
            threads: NumberMap::default(),
            ending: VecDeque::new(),
            ended: Ended::default(),
            started: 0,
            people: People::default(),
            book: Book {
                whats: Whats::new(),
                keys: Keys::new(),
            },
            sights: Sights::new(),
            network: Network::default(),
            cmd: None,
            last_of_cmd: None,
            faults: Faults::default(),
            hand_overs: HandOvers::default(),
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: &Event) {
        match event {
            Event::Start(start) => self.start(start),
            Event::Exec { thread, task, .. } => self.exec(*thread, task),
            Event::Renamed { thread, name } => self.renamed(*thread, name),
            Event::Object { id, object } => self.sights.object_seen(*id, object.clone()),
            Event::KernelStack { id, frames } => self.sights.kernel_stack_seen(*id, frames.clone()),
            Event::Tcp(tcp) => self.network.tcp(tcp),
            Event::Connection(connection) => self.connection(connection),
            Event::NameAsked(asked) => self.sights.name_asked(asked),
            Event::Wait(wait) => self.wait(wait),
            Event::WaitMemory(memory) => self.memory(memory),
            Event::Asker(sample) => self.asker(sample),
            Event::Cpu(sample) => self.cpu(sample),
            Event::RanInstead(ran) => self.ran_instead(ran),
            Event::Signal(signal) => self.signal(signal),
            Event::Outsider(task) => self.people.met(task),
            Event::End(end) => self.end(end),
        }
    }

    /// Observation is over: makes the whole of it.
    #[must_use]
    pub fn finish(self, finish: &Finish, facts: &SystemFacts) -> Attributed {
        finish::attributed(self, finish, facts)
    }
}
