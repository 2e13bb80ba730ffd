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
mod askers;
mod blocked_on;
mod blocker;
mod booking;
mod calls_of_tasks;
mod causes_by_stack;
mod chain;
mod children_by_stack;
mod churn;
mod clients;
mod command_output;
mod cpu;
mod crowd;
mod datagrams;
mod deadlock;
mod earlier;
mod ended_wait;
mod estimates;
mod event_loops;
mod finish;
mod fold;
mod follow_blocker;
mod held_requests;
mod histogram;
mod holders;
mod idle;
mod implicit_handoffs;
mod interpreter_locks;
mod judges;
mod jvms;
mod keys;
mod ledger;
mod left_behind;
mod library_askers;
mod life;
mod listeners;
mod lock_queues;
mod loop_askers;
mod named_requests;
mod network;
mod numbers;
mod object_cache;
mod orders;
mod orphans;
mod other_side;
mod outstanding;
mod owned;
mod owners;
mod pace;
mod path;
mod pieces;
mod poller_askers;
mod queueing;
mod requests;
mod row_names;
mod rows;
mod run_path;
mod runtime_tasks;
mod shared_words;
mod site;
mod slow_requests;
mod spins;
mod stretch;
mod task_queues;
mod task_table;
mod thread;
mod timeline;
mod turns;
mod unread_tasks;
mod waits;
mod what;
mod windows;

#[cfg(test)]
mod tests;

pub use asker::{choose, frame as chosen_frame, is_applications};
pub use jvms::VM_THREAD;
pub use jvms::{collects, compiles, is_own_thread};
pub use owners::shared_lock_owner;

use crate::classify::{self, Classified, Site};
use crate::prediction::Recorder;
use blocker::Blockers;
use churn::Churning;
use fold::Ended;
use holdup_evidence::{Call, Cause, Event, Finish, Frame, Ns, Object, SystemFacts, ThreadId, Wait};
use holdup_model::attributed::{Attributed, AttributedWait, Resource, Source};
use holdup_model::prediction::Question;
use jvms::Jvms;
use keys::Keys;
use ledger::Book;
use network::Network;
use object_cache::ObjectCache;
use pieces::Pieces;
use requests::RequestState;
use run_path::{RunPath, Scope};
use std::collections::VecDeque;
use task_table::TaskTable;
use thread::Threads;
use what::Whats;
use windows::Axis;

/// What a running thread did: its call, whether in user mode, the call's object, the kernel stack.
pub type OnCpu = fn(Call, bool, Option<&Object>, Option<&[String]>) -> Classified;

/// What a wait was for by the user stack that asked: the cause that was reported so far, the call, the stack.
pub type ByUserStack = fn(Cause, Option<&str>, &[Frame]) -> Option<(Cause, Resource)>;

/// What the rows of one thread tell of each other.
pub type OfRuntime = fn(&mut [AttributedWait]);

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
    /// What a runtime's own threads wait for where no stack was taken.
    pub of_runtime: OfRuntime,
    /// Names what only the machine's facts can name.
    pub name_resource: fn(&mut Resource, Cause, &SystemFacts),
}

impl Default for Classifier {
    fn default() -> Self {
        Classifier {
            wait: classify::wait,
            on_cpu: classify::on_cpu,
            by_user_stack: classify::by_user_stack,
            of_runtime: classify::machines_own,
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

impl Faults {
    /// A record contradicts others; `ns`: the time that it is about.
    fn contradiction(&mut self, ns: Ns) {
        self.contradictory.0 += 1;
        self.contradictory.1 = self.contradictory.1.saturating_add(ns);
    }
}

/// Attributes a run.
#[derive(Debug, Clone)]
pub struct Attribution {
    run_path: RunPath,
    requests: RequestState,
    churning: Churning,
    classifier: Classifier,
    /// Threads that live, and those that ended so lately that others may still be woken by them.
    threads: Threads,
    /// Those of `threads` that have ended, oldest first.
    ending: VecDeque<ThreadId>,
    ended: Ended,
    started: u64,
    tasks: TaskTable,
    book: Book,
    objects: ObjectCache,
    network: Network,
    faults: Faults,
    blockers: Blockers,
    jvms: Jvms,
    /// The graph of waits, where something is to be predicted from it.
    graph: Option<Box<Recorder>>,
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

    /// For threads that run already, and are looked at for a while: the whole is their time, added up.
    #[must_use]
    pub fn of_threads() -> Attribution {
        Attribution {
            run_path: RunPath::new(Scope::Threads),
            ..Attribution::new()
        }
    }

    /// The same, keeping so many single pieces of time at the most; never more than [`holdup_model::timeline::MAX_PIECES`].
    #[must_use]
    pub fn keeping(mut self, pieces: usize) -> Attribution {
        self.book.pieces = Pieces::at_most(pieces);
        self
    }

    /// The same, from events that were taken in this way.
    #[must_use]
    pub fn observed_by(mut self, source: Source) -> Attribution {
        self.blockers.source = source;
        self
    }

    /// The same, and it is to be predicted what the run would take without a wait.
    #[must_use]
    pub fn predicting(self, question: Question) -> Attribution {
        Attribution {
            graph: Some(Box::new(Recorder::new(question))),
            ..self
        }
    }

    /// The same with other judgements.
    #[must_use]
    pub fn with(classifier: Classifier) -> Attribution {
        Attribution {
            run_path: RunPath::new(Scope::Run),
            requests: RequestState::default(),
            churning: Churning::default(),
            classifier,
            threads: Threads::default(),
            ending: VecDeque::new(),
            ended: Ended::default(),
            started: 0,
            tasks: TaskTable::default(),
            book: Book {
                whats: Whats::new(),
                keys: Keys::new(),
                axis: Axis::default(),
                pieces: Pieces::default(),
            },
            objects: ObjectCache::new(),
            network: Network::default(),
            faults: Faults::default(),
            blockers: Blockers::default(),
            jvms: Jvms::default(),
            graph: None,
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: &Event) {
        if let Some(graph) = &mut self.graph {
            graph.push(event);
        }
        match event {
            Event::Start(start) => self.start(start),
            Event::Exec { thread, task, .. } => self.exec(*thread, task),
            Event::Renamed { thread, name } => {
                life::renamed(&mut self.threads, &mut self.tasks, *thread, name)
            }
            Event::Orphan { at, thread } => left_behind::orphan(&mut self.threads, *thread, *at),
            Event::Object { id, object } => self.objects.object_seen(*id, object.clone()),
            Event::KernelStack { id, frames } => self.objects.kernel_stack_seen(*id, frames.clone()),
            Event::Tcp(tcp) => self.network.tcp(tcp),
            Event::Connection(connection) => self.network.connection(connection, &self.threads, &self.tasks),
            Event::MadeBy(by) => self.churning.made_by(by, &self.threads, &mut self.tasks),
            Event::Hello(hello) => self.churning.hello(hello),
            Event::Conversation(turn) => self.churning.talked(turn, &self.threads, &self.tasks),
            Event::Turned(turned) => self.churning.turned(turned),
            Event::NameAsked(asked) => self.objects.name_asked(asked),
            Event::Estimated(estimated) => estimates::estimated(&mut self.threads, estimated),
            Event::Wait(wait) => self.wait(wait),
            Event::OtherEnd(end) => self.tasks.has_other_end(end),
            Event::Serving(serving) => self.requests.served.add(serving),
            Event::GoesOn(wait) => {
                self.requests.sets.learn(wait);
                if let Some(thread) = self.threads.get(&wait.thread) {
                    self.requests
                        .earlier
                        .still_waits(self.tasks.pid(thread.identity.process), wait);
                }
            }
            Event::Earlier(earlier) => self.requests.earlier.add(earlier),
            Event::SaidSince(said) => self.requests.said_since(said, &mut self.threads),
            Event::Request(request)
                if self
                    .jvms
                    .answers_tools(request.thread, &self.threads, &self.tasks) => {}
            Event::Request(request) => self.request(request),
            Event::WaitMemory(memory) => self.memory(memory),
            Event::Asker(sample) => self.asker(sample),
            Event::Cpu(sample) => self.cpu(sample),
            Event::RanInstead(ran) => life::ran_instead(&mut self.threads, &mut self.tasks, ran),
            Event::Signal(signal) => life::signal(&self.threads, &mut self.tasks, signal),
            Event::Outsider(task) => self.tasks.met(task),
            Event::OwnerGone { tid } => self.tasks.nobody_has(*tid),
            Event::IsJvm { pid } => self.jvms.is(*pid),
            Event::JvmPause(pause) => self
                .jvms
                .step(pause, &mut self.threads, &self.tasks, &self.book.whats),
            Event::End(end) => self.end(end),
        }
    }

    /// What it would come to if observation ended now, with these waits under way. Observation goes on.
    #[must_use]
    pub fn so_far(&self, waits: &[Wait], finish: &Finish, facts: &SystemFacts) -> Attributed {
        let mut now = self.clone();
        for wait in waits {
            now.left_waiting(wait);
        }
        now.finish(finish, facts)
    }

    /// Observation is over: makes the whole of it.
    #[must_use]
    pub fn finish(self, finish: &Finish, facts: &SystemFacts) -> Attributed {
        finish::attributed(self, finish, facts)
    }
}
