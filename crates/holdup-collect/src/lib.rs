//! From a program to attributed evidence: the loop that stands beside it.
//!
//! In: a command ([`holdup_subject::subject`]) or processes that run ([`selection`]), and how to observe ([`How`]). Out:
//! [`Collected`]: the evidence, attributed, and the machine's facts.
//!
//! What is observed is a command that holdup starts ([`run`]) or what runs already ([`attach`]). The source of evidence is a
//! [`Tracer`] today; what it hands out is named ([`naming`]) and pushed into the attribution at once, so that memory does
//! not grow with the number of waits.

mod allowed;
mod asleep;
mod asyncio;
mod attach;
mod attributing;
mod awaited_peers;
mod behind;
pub mod budget;
mod clients;
mod connected;
mod database_files;
pub mod database_locks;
mod database_memory;
mod descriptors_left;
mod dumps;
mod elsewhere;
mod figures;
mod following;
mod full_file_systems;
mod full_outputs;
mod goroutines;
pub mod haste;
mod interpreters;
pub mod jvms;
mod kernel_names;
pub mod left_behind;
mod left_unread;
pub mod line;
mod lock_files;
mod look;
mod memory_limits;
mod moment;
mod moved;
mod name_servers;
mod naming;
mod neighbours;
mod nodes;
mod nothing;
mod outsiders;
mod owed;
mod own_cpu_time;
mod own_ends;
pub mod own_logs;
pub mod paths;
mod priority;
pub mod privileges;
mod programs;
mod pulse;
mod pushed;
mod queued;
mod queues;
mod resolvers;
mod run;
mod runtime_locks;
mod runtimes;
mod said_stacks;
mod sampled;
pub mod selection;
mod serving;
mod sessions;
mod sessions_answer;
mod set_aside;
mod shared_words;
mod standing;
mod suspended;
mod task_limits;
mod task_looks;
mod task_peers;
mod tokio;
mod unread_answers;
mod virtual_threads;
mod workers;

pub use allowed::to_trace as allowed_to_trace;
pub use attach::{EndedBefore, Kept, Notice, attach};
pub use attributing::{EventsCopy, EventsFile};
pub use dumps::Ask;
pub use figures::Figures;
pub use nothing::nothing;
pub use own_cpu_time::own_cpu_time;
pub use pulse::Pulse;
pub use run::{Cut, run, run_for, wait_for};
pub use sampled::{SampledHow, attach as sample_attached, run as sample, run_for as sample_for};
pub use sessions::clients as session_clients;

use crate::haste::Haste;
use crate::privileges::Part;
use attributing::Attributing;
use budget::{Ceiling, Spending};
use database_locks::Locks;
use dumps::{Closed, Dumps};
use holdup_bpf::{Loaded, Options, Pace, RawEvent, Tracer};
use holdup_evidence::facts::{CpuTime, LockFile, OwnLog};
use holdup_evidence::{
    Cause, DeviceNumber, Event, Finish, Loss, NotMeasured, Ns, RanInstead, Role, SystemFacts, ThreadId, Wait,
    Waker,
};
use holdup_jvm::{Structures, Unread};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, Elsewhere};
use holdup_proc::{Problem, Root, cgroup, clocks, cpu_times, facts, mountinfo};
use holdup_subject::subject::Ended;
use holdup_symbols::Bounds;
use jvms::Jvms;
use kernel_names::KernelNames;
use naming::Naming;
use own_logs::OwnLogs;
use priority::Priority;
use sessions::Sessions;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long a loop without news sleeps, milliseconds. At 400,000 waits a second it finds 1.5 MB in the ring of
/// 16 MB.
const PERIOD_MS: u16 = 20;

/// How long a turn may take before signals and CMD are looked at again.
const TURN: Duration = Duration::from_millis(100);

/// Names of others whose cgroups are looked up.
const OTHERS: usize = 64;

/// How long a reaped process's last switch is waited for: many turns of others on its CPU.
const LAST_SWITCH: Duration = Duration::from_millis(200);

/// How to observe.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// What the kernel's side does.
    pub tracing: Options,
    /// What this process keeps of its rights once the programs are loaded; `None`: all, because it starts other commands afterwards.
    pub keep: Option<Part>,
    /// Whether Java virtual machines may be asked for dumps.
    pub jvm_attach: Ask,
    /// Whether those who are in the way of what is observed are watched too.
    pub follow: bool,
    /// Whether logs that observed processes have open are read.
    pub logs: bool,
    /// Whether to predict what a command would take without its waits; of what runs already nothing is predicted.
    pub predict: Option<Predict>,
    /// How much CPU time it may take; `None`: whatever it takes.
    pub budget: Option<Ceiling>,
}

/// What to predict.
#[derive(Debug, Clone, Copy)]
pub struct Predict {
    /// Causes to take away together, beside each of those that cost most.
    pub together: &'static [Cause],
}

/// What observing came to.
#[derive(Debug)]
pub struct Collected {
    /// Where the evidence came from.
    pub backend: Backend,
    /// The evidence, attributed.
    pub attributed: Attributed,
    /// What the machine says of itself.
    pub facts: SystemFacts,
    /// When observation began, `CLOCK_MONOTONIC`.
    pub started: Ns,
    /// How CMD ended; `None` when the person wanted the report before that, and of what was not started here.
    pub ended: Option<Ended>,
    /// What of the machine could not be read, for `-v`.
    pub problems: Vec<Problem>,
    /// Processes in other namespaces than holdup's.
    pub elsewhere: Vec<Elsewhere>,
    /// Build ids of files that were mapped, by base name; at the end.
    pub build_ids: BTreeMap<String, String>,
    /// The copy of what went into attribution, if one was asked for; at the end.
    pub events: Option<EventsCopy>,
}

/// What the loop gathers.
struct Observation {
    tracer: Tracer,
    naming: Naming,
    jvms: Jvms,
    dumps: Dumps,
    attribution: Attributing,
    cgroup: cgroup::Watch,
    cpu_times: Vec<CpuTime>,
    /// Reused from one turn to the next.
    events: Vec<Event>,
    started: Option<Ns>,
    /// When the last thread of CMD's process seen to end did.
    ended: Option<Ns>,
    /// Whether the end of CMD's main thread has come.
    leader_ended: bool,
    /// Of those who ran instead, by name; `None`: in no cgroup of their own.
    cgroups: BTreeMap<String, Option<String>>,
    /// CMD; `None` where holdup started nothing.
    cmd: Option<u32>,
    /// Threads of the subject that live.
    living: HashSet<ThreadId>,
    /// Processes outside that ended waits, and how much time those waits were, nanoseconds.
    waited_for: HashMap<u32, Ns>,
    /// Whether the kernel tells of what is sent and received on sockets.
    requests_told: bool,
    last_turn: Instant,
    problems: Vec<Problem>,
    elsewhere: Vec<Elsewhere>,
    not_measured: Vec<NotMeasured>,
    sessions: Sessions,
    locks: Locks,
    /// Processes at whose listeners clients stand, when observation ends.
    pointed_at: Vec<u32>,
    /// Lock files beside sleeping processes.
    lock_files: Vec<LockFile>,
    queued: queued::Queued,
    /// What observed processes wrote in their logs.
    own_logs: Option<Vec<OwnLog>>,
    spending: Option<Spending>,
    /// When observation ended, if it has.
    frozen: Option<Ns>,
}

impl Observation {
    /// Makes everything ready; nothing is watched yet. `loaded`: the programs, if they were kept; `cmd`: the process that holdup has
    /// started.
    fn begin(
        how: How,
        loaded: Option<Loaded>,
        attribution: Attributing,
        cmd: Option<u32>,
    ) -> anyhow::Result<Observation> {
        allowed::to_trace()?;
        let root = Root::system();
        let mut problems = Vec::new();
        let mounts = mountinfo::read(&root, &mut problems);
        let cgroup = cgroup::Watch::new(&root, &mounts);
        let cpu_times = cpu_times::read(&root, &mut problems);
        let tracer = match loaded {
            Some(loaded) => Tracer::with(loaded)?,
            None => Tracer::load(how.tracing)?,
        };
        let bounds = match how.tracing.pace {
            Pace::Record => Bounds::SMALL,
            Pace::Command | Pace::Service => Bounds::LARGE,
        };
        let mut naming = Naming::new(
            KernelNames::new(tracer.kernel_functions()),
            whole_mounts(&mounts),
            bounds,
        );
        Ok(Observation {
            tracer,
            jvms: Jvms::read_by(naming.runtimes().machines()),
            naming,
            dumps: Dumps::new(how.jvm_attach),
            attribution,
            cgroup,
            cpu_times,
            events: Vec::new(),
            started: None,
            ended: None,
            leader_ended: false,
            cgroups: BTreeMap::new(),
            cmd,
            living: HashSet::new(),
            waited_for: HashMap::new(),
            requests_told: false,
            last_turn: Instant::now(),
            problems,
            elsewhere: Vec::new(),
            not_measured: Vec::new(),
            sessions: Sessions::default(),
            locks: Locks::default(),
            pointed_at: Vec::new(),
            lock_files: Vec::new(),
            queued: queued::Queued::default(),
            own_logs: None,
            spending: how.budget.map(Spending::begin),
            frozen: None,
        })
    }

    /// From now on the budget counts. `lasts`: how long observation is to last.
    fn begin_spending(&mut self, lasts: Option<Duration>) {
        if let Some(spending) = &mut self.spending {
            spending.observe(&self.tracer, lasts);
        }
    }

    /// What comes from now on is work on the report, and no part of the budget.
    fn end_spending(&mut self) {
        if let Some(spending) = &mut self.spending {
            spending.end(&self.tracer);
        }
    }

    /// Whether observation has to end, because the budget that a person has set is used up.
    fn is_over_budget(&self) -> bool {
        self.spending.as_ref().is_some_and(Spending::is_used_up)
    }

    /// Takes what the logs of these processes say; nothing where nobody asked for it.
    fn take_logs(&mut self, logs: Option<OwnLogs>, asked: &BTreeSet<u32>, in_the_way: &BTreeSet<u32>) {
        let Some(logs) = logs else { return };
        let (logs, unread) = logs.finish(asked, in_the_way);
        self.own_logs = Some(logs);
        self.not_measured.extend(unread);
    }

    /// What it would come to if observation ended now, with these waits under way; without stacks, which are named at the
    /// end.
    fn so_far(&mut self, waits: &[Wait]) -> Collected {
        let mut problems = Vec::new();
        let mut facts = facts::collect(&Root::system(), &facts::Question::default(), &mut problems);
        facts.jvms = self.jvms.so_far();
        let started = self.started.unwrap_or_default();
        let finish = Finish {
            started,
            ended: clocks::monotonic(),
            requests_told: self.requests_told,
            untold_requests: self.tracer.untold_requests(),
            traffic_told: self.tracer.tells_traffic(),
            upstreams: self.tracer.upstreams(clocks::monotonic()),
            datagrams: self.tracer.datagrams(),
            ..Finish::default()
        };
        Collected {
            backend: Backend::Bpf,
            attributed: self.attribution.so_far(waits, &finish, &facts),
            started,
            facts,
            ended: None,
            problems,
            elsewhere: self.elsewhere.clone(),
            build_ids: BTreeMap::new(),
            events: None,
        }
    }

    /// Ends observation, and makes the whole of it.
    fn finish(mut self, ended: Option<Ended>, mut haste: Haste<'_>) -> Collected {
        self.naming.runtimes().look_at_locks_now();
        self.ask_jvms(true);
        // While its threads are known.
        let parked = self.naming.parked();
        self.not_measured.extend(parked.not_measured);
        let budget = self
            .spending
            .take()
            .and_then(|spending| spending.account(&self.tracer));
        let frozen = self.freeze();
        let started = self.started.unwrap_or_default();
        let refused: Vec<Loss> = self.naming.losses().collect();
        let unread: Vec<String> = self.naming.unread().map(|pid| pid.to_string()).collect();
        if !unread.is_empty() {
            self.not_measured.push(NotMeasured {
                what: format!("askers and files, in sleeping threads of {}", unread.join(", ")),
                why: "its memory could not be read in time: its address space is locked, or a page of it does not come"
                    .into(),
                fix: "none is needed for causes".into(),
            });
        }
        if self.naming.went_without_tables() {
            self.not_measured.push(NotMeasured {
                what: "askers, in code of files with very large unwind tables".into(),
                why: "a recorder keeps 6 MB of such tables at a time; callers there are found by frame pointers only".into(),
                fix: "`holdup attach` keeps all of them".into(),
            });
        }
        let unnamed = self.naming.unnamed_functions();
        self.not_measured
            .extend(self.naming.refused_interpreters().chain(unnamed));
        let (interpreter_locks, event_loops) = (self.naming.global_locks(), self.naming.event_loops());
        let (user_stacks, known) = self.naming.finish();
        // Everything from here on is work on what others have written, or on what they chose to do.
        Priority::end();
        let build_ids = user_stacks.build_ids();
        let named = user_stacks.finish_unless(&mut || haste.is_wanted());
        haste.over();
        let unread = naming::unread_not_measured(&named.unread);
        self.not_measured.extend(unread);
        let user_stacks = named.stacks;
        let question = facts::Question {
            cgroup: Some(self.cgroup),
            cpu_times: self.cpu_times,
            cgroups: self
                .cgroups
                .into_iter()
                .filter_map(|(name, cgroup)| Some((name, cgroup?)))
                .collect(),
            known: known.names,
            ..facts::Question::default()
        };
        let mut problems = self.problems;
        let mut facts = facts::collect(&Root::system(), &question, &mut problems);
        facts.stopped = known.stopped;
        facts.own_logs = self.own_logs;
        facts.failed_tasks = parked.failed;
        facts.database_sessions = self.sessions.finish();
        facts.lock_sessions = self.locks.finish();
        facts.lock_files = self.lock_files;
        self.queued.tell(&mut facts);
        facts.jvms = self.jvms.finish();
        for jvm in &mut facts.jvms {
            jvm.dumps = self.dumps.made(jvm.pid);
        }
        let mut report = self.tracer.report();
        report.losses.extend(refused);
        let mut not_measured = self.not_measured;
        not_measured.extend(self.dumps.not_measured());
        not_measured.extend(report.not_measured);
        drop(self.dumps);
        not_measured.extend(left_behind::not_measured());
        let finish = Finish {
            started,
            ended: self.ended.filter(|_| ended.is_some()).unwrap_or(frozen),
            user_stacks,
            losses: report.losses,
            not_measured,
            own_cost: own_cpu_time() + report.programs,
            budget,
            kernel_stack_budget: report.kernel_stack_budget,
            user_stack_budget: report.user_stack_budget,
            cpu_sample_period: report.cpu_sample_period,
            requests_told: self.requests_told,
            untold_requests: self.tracer.untold_requests(),
            traffic_told: self.tracer.tells_traffic(),
            tasks: parked.tasks,
            task_looks: parked.looks,
            awaited_descriptors: parked.descriptors,
            tokio_read: parked.tokio_read,
            pools: parked.pools,
            shared_words: parked.shared_words,
            event_loops,
            interpreter_locks,
            upstreams: self.tracer.upstreams(frozen),
            datagrams: self.tracer.datagrams(),
            pointed_at: self.pointed_at,
        };
        let (attributed, events) = self.attribution.finish(finish, &facts);
        Collected {
            backend: Backend::Bpf,
            attributed,
            started,
            facts,
            ended,
            problems,
            elsewhere: self.elsewhere,
            build_ids,
            events,
        }
    }

    /// Ends observation, if it has not ended before: what happens later is no part of it. When that was.
    fn freeze(&mut self) -> Ns {
        if let Some(frozen) = self.frozen {
            return frozen;
        }
        self.tracer.prepare_end();
        let frozen = clocks::monotonic();
        self.tracer.freeze(frozen);
        while self.take() > 0 {}
        *self.frozen.insert(frozen)
    }

    /// Takes what has come since the last turn; after that, or when a turn's time is used up, the loop looks at
    /// signals and CMD again.
    /// Returns how many records there were.
    fn turn(&mut self) -> usize {
        let elapsed = self.last_turn.elapsed();
        self.last_turn = Instant::now();
        self.tracer
            .adapt(Ns::try_from(elapsed.as_nanos()).unwrap_or(Ns::MAX));
        let mut found = 0;
        loop {
            let taken = self.take();
            found += taken;
            if taken == 0 || self.last_turn.elapsed() >= TURN {
                break;
            }
        }
        self.ask_jvms(false);
        if let Some(spending) = &mut self.spending {
            spending.turn(&mut self.tracer, found);
        }
        found
    }

    /// Has those Java virtual machines asked whose structures can't be read, if it is time to, and takes what they have said.
    fn ask_jvms(&mut self, last: bool) {
        let Some(started) = self.started else { return };
        let now = clocks::monotonic();
        for (pid, jvm) in self.jvms.known() {
            let unread = match self.naming.runtimes().structures(pid) {
                None => Unread::NoLibrary,
                Some(Structures::Unread(why)) => why,
                Some(Structures::Untold | Structures::Read) => continue,
            };
            let closed = Closed { pid, unread, jvm };
            self.dumps.consider(&closed, started, now, last);
        }
        let said = match last {
            true => self.dumps.take_last(),
            false => self.dumps.take(),
        };
        for said in said {
            self.naming.dumped(said, &mut self.events);
            for event in self.events.drain(..) {
                self.attribution.push(&event);
            }
        }
    }

    /// Takes a batch; returns how many records that were.
    fn take(&mut self) -> usize {
        let (mapped, raw) = self.tracer.drain();
        let taken = raw.len();
        self.naming.runtimes().look_at_locks();
        self.naming.look_at_interpreters();
        self.jvms.mapped(&mapped);
        self.naming.mapped(mapped);
        for event in self.jvms.before(&raw) {
            self.attribution.push(&event);
        }
        for raw in raw {
            self.note(&raw);
            self.naming.event(raw, &mut self.events);
            for event in self.events.drain(..) {
                self.attribution.push(&event);
            }
        }
        taken
    }

    /// Remembers the cgroup of one who ran instead while it is likely to be there still.
    fn meet(&mut self, ran: &RanInstead) {
        let Some(by) = ran.by.as_ref().filter(|by| !by.kernel) else {
            return;
        };
        if self.cgroups.len() < OTHERS && !self.cgroups.contains_key(&by.name) {
            self.cgroups
                .insert(by.name.clone(), self.cgroup.of_process(by.pid));
        }
    }

    fn note(&mut self, raw: &RawEvent) {
        match raw {
            // A program that moves itself into another cgroup mostly does so before it execs.
            RawEvent::Exec { task, .. } => self.cgroup.look(task.pid),
            RawEvent::RanInstead(ran) => self.meet(ran),
            RawEvent::Cpu { .. } => {
                if let Some(spending) = &mut self.spending {
                    spending.sampled();
                }
            }
            RawEvent::Start(start) => {
                self.started.get_or_insert(start.at);
                if start.role == Role::Subject {
                    self.living.insert(start.thread);
                }
            }
            RawEvent::Wait(wait) => {
                if let Waker::Outside { task, .. } = &wait.waker
                    && !task.kernel
                {
                    let waited = self.waited_for.entry(task.pid).or_default();
                    *waited = waited.saturating_add(wait.end.saturating_sub(wait.start));
                }
            }
            RawEvent::End { end, .. } => {
                self.living.remove(&end.thread);
                if Some(end.task.pid) == self.cmd {
                    self.ended = self.ended.max(Some(end.at));
                    self.leader_ended |= end.task.tid == end.task.pid;
                }
            }
            _ => {}
        }
    }
}

/// Where each file system's own root is mounted; of several places the first.
fn whole_mounts(mounts: &[mountinfo::Line]) -> HashMap<DeviceNumber, String> {
    // Of two with one key the last one stays.
    let whole = mounts.iter().rev().filter(|mount| mount.root == "/");
    let targets = whole.map(|mount| (mount.device, mount.target.clone()));
    targets.collect()
}
