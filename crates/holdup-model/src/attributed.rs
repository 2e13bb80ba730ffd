//! What attribution makes of the evidence: the input of every rule and of the report.
//!
//! All types deserialise with defaults, so that a page's example can state just what matters to it.

mod clients;
mod common;
mod datagrams;
mod detail;
mod fact;
mod judged;
mod requests;
mod source;
mod task;
mod task_queue;
mod uncertainty;

pub use clients::AwaitedClients;
pub use common::{Common, Interrupt};
pub use datagrams::{DatagramPeer, DatagramProtocol, Datagrams};
pub use detail::{Detail, Facts};
pub use fact::{
    Address, Awaits, Copies, DatabaseServer, Disk, FdKind, InterruptTime, JavaLock, Peer, Server, SleepsBy,
    Spin, SpinningLibrary, StopSignal,
};
pub use judged::{Certainty, Judge, JudgedBy, Reason};
pub use requests::{
    AnsweredAtLast, HeldByTimer, NamedRequests, OfListener, Requests, SlowRequest, Unanswered, Upstream,
};
pub use source::Source;
pub use task::{Task, TaskOthers, TaskState};
pub use task_queue::{TaskHas, TaskHolder, TaskQueue, TaskQueueFor};
pub use uncertainty::{Uncertainty, error_together};

use crate::churn::Churn;
use crate::connections::{Connections, TcpSeen};
use crate::host_figures::HostFigures;
use crate::prediction::Predictions;
use crate::timeline::{Timeline, Window};
use holdup_evidence::budget::Budget;
use holdup_evidence::{Cause, EventLoop, Frame, Ns, WorkerPool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run, attributed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attributed {
    /// From CMD's exec to its exit.
    pub elapsed: Ns,
    /// Whether the whole is the time of threads that ran already, added up: `path` is then all of it by cause, and `elapsed` what
    /// of it was not waiting for work.
    pub of_threads: bool,
    /// How the evidence was taken. Where it was sampled, how long threads were blocked is known, and what they waited for is an
    /// estimate.
    #[serde(rename = "by_looks")]
    pub source: Source,
    /// How long such threads were watched; 0 of a run.
    pub wall: Ns,
    /// The elapsed time along the critical path. Adds up to `elapsed`, to the nanosecond.
    pub path: BTreeMap<Cause, Tally>,
    /// Each thread's own time, never redirected.
    pub threads: Vec<ThreadLedger>,
    /// Threads' own waits and CPU time by thread, cause, resource and asker, longest first.
    pub waits: Vec<AttributedWait>,
    /// What was seen and what was not.
    pub coverage: Coverage,
    /// Requests for TCP connections by peer, most first.
    pub connections: Vec<Connections>,
    /// What was made anew; `None` where nobody looked.
    pub churn: Option<Churn>,
    /// Requests that were answered; `None` where they could not be known.
    pub requests: Option<Requests>,
    /// Clients that have had no answer since before observation, and that no thread is known to work for.
    pub unanswered: Unanswered,
    /// Datagrams over UDP, by peer; `None`: nobody could count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// When observation began, `CLOCK_MONOTONIC`: windows and the time line count from here.
    pub began: Ns,
    /// When the time passed. Empty where nothing was watched live.
    pub windows: Vec<Window>,
    /// The longest single pieces of it.
    pub timeline: Timeline,
    /// Figures of the whole machine meanwhile; empty where nobody looked.
    pub host_figures: HostFigures,
    /// What it would have taken without its waits; `None` where nobody asked.
    pub predictions: Option<Predictions>,
    /// Tasks of runtimes, as they were when observation ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// How many looks met tasks of runtimes while observation went on.
    #[serde(skip_serializing_if = "is_zero")]
    pub task_looks: u64,
    /// Queues of tasks for locks, by looks while observation went on; the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_queues: Vec<TaskQueue>,
    /// Event loops that were kept from their events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event_loops: Vec<EventLoop>,
    /// Pools of threads of runtimes, as they were when observation ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<WorkerPool>,
}

/// How much time, in how many pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Total.
    pub ns: Ns,
    /// How often a thread blocked (or, on CPU and queueing, how many pieces).
    pub count: u64,
    /// Longest piece.
    pub max: Ns,
    /// Whether a piece was still open when observation ended.
    pub open: bool,
}

/// A thread as the report names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadName {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The process's name: its main thread's comm.
    pub process: String,
    /// The thread's own comm.
    pub thread: String,
}

/// One thread's time. `causes` + lost = `wall`, to the nanosecond; lost time is under `unknown`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadLedger {
    /// Which thread. For an entry that stands for several, the process and tid 0.
    pub name: ThreadName,
    /// How many threads this entry stands for (1 but for the smallest of many).
    pub threads: u32,
    /// From its birth (or CMD's exec) to its end (or the end of observation).
    pub wall: Ns,
    /// Its time by cause.
    pub causes: BTreeMap<Cause, Tally>,
    /// Of `causes[unknown]`: time whose records were lost.
    pub lost: Ns,
    /// Whether it lived on when observation ended.
    pub open: bool,
}

/// What a wait or a stretch of CPU time was about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Resource {
    /// What kind of thing.
    pub kind: ResourceKind,
    /// Its name: a path, an address, a function.
    pub name: String,
    /// More about it by stable keys: `device`, `file_system`, `mount`, `peer`, `server`, `port`, `call`,
    /// `fd_kind`, `address`, `symbol`, `signal`, `cpu`, `spins`, `spinlock` …
    pub detail: Detail,
}

impl Resource {
    /// A resource with a name and nothing else.
    #[must_use]
    pub fn named(kind: ResourceKind, name: impl Into<String>) -> Resource {
        Resource {
            kind,
            name: name.into(),
            detail: Detail::default(),
        }
    }

    /// The same with more known about it.
    #[must_use]
    pub fn with(mut self, add: impl FnOnce(&mut Facts)) -> Resource {
        add(&mut self.detail);
        self
    }

    /// The same, waited for in this call.
    #[must_use]
    pub fn in_call(self, call: &str) -> Resource {
        self.with(|facts| facts.call = Some(call.to_owned()))
    }

    /// Whether it stands for more of its kind than were distinguished, and is none of them.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.name == self.kind.many()
    }
}

/// Kinds of resources, as the contract has them.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ResourceKind {
    /// A file, by path.
    File,
    /// A device, by path or name.
    Device,
    /// A socket, by address.
    Socket,
    /// A lock.
    Lock,
    /// A process.
    Process,
    /// A cgroup and its limit.
    Cgroup,
    /// Something of the kernel's own.
    #[default]
    Kernel,
    /// A name: a function, a host name.
    Name,
}

impl ResourceKind {
    /// The name of a resource that stands for more of its kind than were distinguished.
    #[must_use]
    pub fn many(self) -> &'static str {
        match self {
            ResourceKind::File => "many files",
            ResourceKind::Device => "many devices",
            ResourceKind::Socket => "many sockets",
            ResourceKind::Lock => "many locks",
            ResourceKind::Process => "many processes",
            ResourceKind::Cgroup => "many cgroups",
            ResourceKind::Kernel => "many places in the kernel",
            ResourceKind::Name => "many functions",
        }
    }
}

/// Whether a figure is exact or rests on samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Every piece was seen and has its own evidence.
    #[default]
    Exact,
    /// Split or named by samples.
    Sampled,
}

/// How the one in the way is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HowKnown {
    /// Owner tid in the glibc mutex, or writer's in the glibc reader-writer lock.
    MutexOwner,
    /// Owner tid in a priority-inheritance futex.
    PiFutex,
    /// The kernel's list of file locks.
    FileLock,
    /// The kernel's note of who used a System V semaphore last.
    Semaphore,
    /// The database server's own table of locks: it has what the session waits for, or is the client of the session that has it.
    SessionLock,
    /// It used the other end of the pipe.
    PipePeer,
    /// It is the peer of the socket.
    SocketPeer,
    /// The kernel's note of who received from a System V message queue last.
    QueueReceiver,
    /// It answered the FUSE request.
    FuseDaemon,
    /// It traces the waiter.
    Tracer,
    /// It is the child that is waited for.
    Child,
    /// Kernel lock owner.
    KernelLock,
    /// Robust list.
    RobustList,
    /// The JVM's structures.
    Vmstructs,
    /// A dump.
    Dump,
    /// A Java monitor.
    Monitor,
    /// An interpreter's own structures.
    Interpreter,
    /// It came last, when all threads of a machine were to stop.
    LastToStop,
    /// It did the wake-up; nothing more is known.
    Waker,
}

impl HowKnown {
    /// Whether it has what is waited for, and did not only end the wait.
    #[must_use]
    pub fn holds(self) -> bool {
        matches!(
            self,
            HowKnown::MutexOwner
                | HowKnown::PiFutex
                | HowKnown::FileLock
                | HowKnown::Semaphore
                | HowKnown::SessionLock
                | HowKnown::KernelLock
                | HowKnown::RobustList
                | HowKnown::Vmstructs
                | HowKnown::Dump
                | HowKnown::Monitor
                | HowKnown::Interpreter
        )
    }
}

/// Who was in the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// Which thread.
    #[serde(default)]
    pub name: ThreadName,
    /// How that is known.
    pub how_known: HowKnown,
    /// What it did meanwhile, mostly; `None` when it was not observed.
    #[serde(default)]
    pub doing: Option<Cause>,
    /// How much of the waits it was in the way of.
    #[serde(default)]
    pub ns: Ns,
    /// Its stack meanwhile, where one is known.
    #[serde(default)]
    pub stack: Vec<Frame>,
    /// Where in the application's code that stack stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Frame>,
    /// Threads of its process that did not rest, where only the process is known to be in the way and any of them may have been meant; 0
    /// otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others_busy: u64,
}

/// Whether a count says nothing, so that it is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A wait for a lock or condition that no thread which there is could have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Orphaned {
    /// The owner that the lock names and that can't let go of it; of process 0 where no thread of that id lives. `None` where
    /// the lock names nobody.
    pub owner: Option<ThreadName>,
    /// Whether the waiter is the only thread of those that can reach the lock.
    pub alone: bool,
    /// How many threads its process has, where all of them wait so for each other as observation ends; 0 otherwise.
    pub all_of: u64,
    /// How many processes have the file mapped in which the lock is, where all of them wait for it; 0 otherwise.
    pub sharers: u64,
    /// How many processes share the queue whose lock this is, where none of them is in what it is held for; 0 otherwise.
    pub queue_sharers: u64,
}

/// One link from a waiter to where the time really went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Which thread.
    pub name: ThreadName,
    /// What it was in.
    pub cause: Cause,
    /// For how long of the wait.
    pub ns: Ns,
    /// The function in which it was, where one is known.
    #[serde(default)]
    pub frame: Option<Frame>,
}

/// Who asked: the code that made the thread wait or used the CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asker {
    /// The thread.
    pub name: ThreadName,
    /// The function that a reader should look at: the innermost named one outside the C library.
    pub frame: Option<String>,
    /// Its module.
    pub module: Option<String>,
    /// The whole user stack, innermost first; empty when none was sampled.
    pub stack: Vec<Frame>,
}

/// How sleeps of one kind follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// There were too few to tell, or it was no sleep.
    #[default]
    #[serde(rename = "not-told")]
    Unknown,
    /// The same, of sleeps until an instant: it may be one of fixed times, or so much after the last sleep.
    Until,
    /// Each begins when the last is over and what follows it is done: what delays one delays the others.
    OneAfterTheOther,
    /// They end at fixed times: what delays one does not delay the others.
    FixedTimes,
}

/// Waits (or CPU time) of one thread with one cause, resource and asker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributedWait {
    /// What the time was for.
    pub cause: Cause,
    /// Total, counted within the observed time.
    #[serde(default)]
    pub ns: Ns,
    /// Of the run's elapsed time, how much of the critical path these waits themselves are.
    #[serde(default)]
    pub path_ns: Ns,
    /// How much of the elapsed time the path spent elsewhere while, on the path, this thread waited here
    /// for another thread of the run. `path_ns + handed_on_ns` is what a finding may call the wait's share.
    #[serde(default)]
    pub handed_on_ns: Ns,
    /// How often the thread blocked.
    #[serde(default)]
    pub count: u64,
    /// Longest single wait; for one that was open at the start it includes the time before.
    #[serde(default)]
    pub max: Ns,
    /// Median of single waits.
    #[serde(default)]
    pub p50: Ns,
    /// 99th percentile of single waits.
    #[serde(default)]
    pub p99: Ns,
    /// When the longest began, `CLOCK_MONOTONIC`.
    #[serde(default)]
    pub max_started: Ns,
    /// When the longest ended, `CLOCK_MONOTONIC`.
    #[serde(default)]
    pub max_ended: Ns,
    /// Exact or sampled.
    #[serde(default)]
    pub how: How,
    /// One standard error of `ns` when sampled, 0 when exact.
    #[serde(default)]
    pub error: Ns,
    /// Whether one was still open when observation ended.
    #[serde(default)]
    pub open: bool,
    /// Of `ns`, for a pipe that was read: how long a process that had outlived its creator kept it open and wrote
    /// nothing.
    #[serde(default)]
    pub held_open_ns: Ns,
    /// Of sleeps: how they follow each other.
    #[serde(default)]
    pub pace: Pace,
    /// Of `count`, how many ended because their time ran out (poll, select, futex, semaphore with a limit)
    /// rather than by what they waited for.
    #[serde(default)]
    pub timed_out: u64,
    /// The system call, by name; `None` in a fault or in user mode.
    #[serde(default)]
    pub call: Option<String>,
    /// The bytes asked for, where the call has a length (getrandom, read, write …): of the longest wait.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// What was waited for.
    #[serde(default)]
    pub resource: Resource,
    /// Who asked.
    #[serde(default)]
    pub asker: Asker,
    /// Who was in the way, longest first.
    #[serde(default)]
    pub holders: Vec<Holder>,
    /// From the waiter to where the time really went.
    #[serde(default)]
    pub chain: Vec<Link>,
    /// Whether it waited for the lock of a thread that waited, at the same time, for a lock of its own, directly or
    /// through others; then `chain` is that circle, the waiter at both ends.
    #[serde(default)]
    pub deadlock: bool,
    /// Of futexes: why nobody could have ended the wait.
    #[serde(default)]
    pub orphaned: Option<Orphaned>,
    /// For `sched.runqueue`: who ran instead, by name, and for how long, longest first.
    #[serde(default)]
    pub ran_instead: Vec<(String, Ns)>,
    /// For `sched.runqueue`: how that came about.
    #[serde(default)]
    pub queue: Option<Queue>,
    /// The kernel stack that the most of this time was seen in, innermost first.
    #[serde(default)]
    pub kernel_stack: Vec<String>,
    /// For `unknown`: why it could not be known.
    #[serde(default)]
    pub why_unknown: Option<String>,
    /// What the state of the TCP connections said, where these waits were for some.
    #[serde(default)]
    pub tcp: Option<TcpSeen>,
    /// The place in an artefact (`file:line`) that tells of these waits; empty for what holdup saw itself.
    #[serde(default)]
    pub read_at: String,
    /// Who judged the longest of these waits, and by what evidence. `None` for CPU time, for an artefact's waits, and in earlier
    /// recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<JudgedBy>,
    /// Of event loops: how long the oldest connection or answer had been outstanding, as the last of these waits for it ended. It spans
    /// all that the loop did meanwhile. 0: not known.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub outstanding: Ns,
}

fn is_nothing(ns: &Ns) -> bool {
    *ns == 0
}

/// How a thread came to queue for a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// How much of the queueing the following is known of.
    #[serde(rename = "told")]
    pub known: Ns,
    /// Of `known`: behind a real-time task, while it was none itself.
    pub real_time: Ns,
    /// Of `known`: behind a task of a better nice value, or, of a thread of the idle class, behind any other; of the
    /// same cgroup or session, since ranks do not count between groups.
    pub outranked: Ns,
    /// Its nice value, where it is scheduled by one.
    pub nice: Option<i8>,
    /// Whether it is of the idle class (`SCHED_IDLE`).
    pub idle_class: bool,
    /// On how many CPUs it may run; 0: not known.
    pub allowed_count: u32,
    /// On which of the first 64 it may run.
    pub allowed: Vec<u32>,
    /// On which of them it queued.
    pub queued_on: Vec<u32>,
}

/// What was seen and what was not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// Sum over threads of the time each existed while observed.
    pub observed: Ns,
    /// Of that, under a cause other than unknown.
    pub attributed: Ns,
    /// Of that, unknown.
    pub unknown: Ns,
    /// Dropped records by class: words, count, thread time.
    pub lost: Vec<(String, u64, Ns)>,
    /// What could not be seen: what, why, fix.
    pub not_measured: Vec<(String, String, String)>,
    /// CPU time of holdup and run time of its BPF programs.
    pub own_cost: Ns,
    /// How much observation might take, and what was left out for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl AttributedWait {
    /// The share of the run's elapsed time that these waits cost: what is on the critical path itself and
    /// what the path spent in others that they waited for.
    #[must_use]
    pub fn cost_ns(&self) -> Ns {
        self.path_ns + self.handed_on_ns
    }

    /// The part that it has in the error of several together; `of_these`: whether it is one of them.
    #[must_use]
    pub fn uncertainty(&self, of_these: bool) -> Uncertainty {
        Uncertainty {
            thread: (self.asker.name.pid, self.asker.name.tid),
            of_these,
            on_cpu: self.cause.on_cpu(),
            error: self.error,
        }
    }
}
