//! From raw records to evidence: addresses become stacks, a wait gets the kernel stack that came before it, a
//! thread's memory becomes what it polled and who asked.
//!
//! In: [`RawEvent`]s and [`Mapped`]s in the order of time. Out: [`Event`]s that `holdup-attribution` understands.

mod stacks;
mod tasks;
mod unread;

pub(super) use unread::not_measured as unread_not_measured;

use super::asleep;
use super::asyncio;
use super::database_locks::Awaited;
use super::dumps::Dumped;
use super::goroutines::{FirstLook, GoLooks};
use super::interpreters::{self, Interpreters};
use super::kernel_names::KernelNames;
use super::neighbours::{Neighbours, last_receiver, last_user};
use super::nodes::Engines;
use super::outsiders::{Met, Outsiders};
use super::own_ends::OwnEnds;
use super::paths::Paths;
use super::runtimes::Runtimes;
use super::task_looks::TaskLooks;
use super::{suspended, tokio, virtual_threads};
use holdup_bpf::{Change, Mapped, RawEvent, RawMemory};
use holdup_evidence::churn::{Made, MadeBy};
use holdup_evidence::{
    AskerSample, DeviceNumber, Event, GoesOn, KernelStackId, LockHolder, Loss, LossClass, Ns, Object,
    ObjectId, OpenState, Seq, ThreadId, Wait, WaitMemory, Waker,
};
use holdup_proc::maps;
use holdup_symbols::{Beside, Bounds, Mapping, ProcessKey, UserStacks};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Names raw records.
pub(crate) struct Naming {
    kernel: KernelNames,
    /// Where each file system is mounted, in holdup's own mount namespace.
    mounts: HashMap<DeviceNumber, String>,
    kernel_stacks: HashMap<Vec<u64>, KernelStackId>,
    user_stacks: UserStacks,
    /// Changes of address spaces whose time has not come yet.
    mapped: VecDeque<Mapped>,
    /// Which image a process id stands for now, and which process a thread belongs to.
    processes: HashMap<u32, ProcessKey>,
    /// Where goroutines stood at first.
    goroutines: FirstLook,
    /// Where goroutines wait for descriptors.
    goroutine_looks: GoLooks,
    task_looks: TaskLooks,
    /// The same of tasks of `asyncio`.
    asyncio: asyncio::FirstLook,
    /// The same of virtual threads of Java.
    virtual_threads: virtual_threads::FirstLook,
    tokio: tokio::FirstLook,
    /// The same of asynchronous functions of Node.js.
    suspended: suspended::Looks,
    threads: HashMap<ThreadId, (u32, ProcessKey)>,
    runtimes: Runtimes,
    next_process: u32,
    /// What came before the wait that it belongs to.
    kernel_stack_of: HashMap<ThreadId, (Seq, KernelStackId)>,
    asked_of: HashMap<ThreadId, Box<WaitMemory>>,
    memory_of: HashMap<ThreadId, Box<RawMemory>>,
    open_wait_of: HashMap<ThreadId, Box<Wait>>,
    own_ends: OwnEnds,
    /// Processes with polled sets of which the records hold a part, since somebody asked.
    large_sets: BTreeSet<u32>,
    neighbours: Neighbours,
    /// Thread ids.
    tids: HashMap<ThreadId, u32>,
    /// What calls name in which threads are stuck.
    paths: Paths,
    /// Reads the stacks of those that still sleep.
    asleep: asleep::Reader,
    /// Reads the frames of interpreters of those.
    interpreters: Interpreters,
    /// Reads the frames of JavaScript.
    engines: Engines,
    /// Processes whose threads are being adopted.
    adopting: BTreeSet<u32>,
    /// What processes had mapped that ran already.
    mapped_before: HashMap<u32, Vec<maps::Mapping>>,
    /// Waits that go on, of the subject and of neighbours.
    peeked: Vec<(u32, Wait)>,
    outsiders: Outsiders,
    /// Who must act before sessions of databases get their locks.
    in_databases: Awaited,
}

/// Where the kernel cannot read memory after a waking, a thread's memory is copied at some of the times it
/// leaves the CPU: each of the first so many, then one in 16.5 on average (see `leave_cpu` in trace.bpf.c).
const COPIED_ALWAYS: Seq = 64;
const COPIED_ONE_IN: f64 = 16.5;

impl Naming {
    /// `bounds`: how much of observed files is kept in memory.
    pub(crate) fn new(kernel: KernelNames, mounts: HashMap<DeviceNumber, String>, bounds: Bounds) -> Naming {
        let runtimes = Runtimes::default();
        let engines = Engines::default();
        Naming {
            kernel,
            mounts,
            kernel_stacks: HashMap::new(),
            user_stacks: UserStacks::new()
                .within(bounds)
                .ready()
                .told_by(runtimes.reader())
                .told_by(Box::new(engines.clone()))
                .interpreted_by(interpreters::evaluates),
            mapped: VecDeque::new(),
            processes: HashMap::new(),
            goroutines: FirstLook::default(),
            goroutine_looks: GoLooks::default(),
            task_looks: TaskLooks::default(),
            asyncio: asyncio::FirstLook::default(),
            virtual_threads: virtual_threads::FirstLook::default(),
            tokio: tokio::FirstLook::default(),
            suspended: suspended::Looks::default(),
            threads: HashMap::new(),
            runtimes,
            next_process: 0,
            kernel_stack_of: HashMap::new(),
            asked_of: HashMap::new(),
            memory_of: HashMap::new(),
            open_wait_of: HashMap::new(),
            own_ends: OwnEnds::default(),
            large_sets: BTreeSet::new(),
            neighbours: Neighbours::default(),
            tids: HashMap::new(),
            paths: Paths::default(),
            asleep: asleep::Reader::default(),
            interpreters: Interpreters::default(),
            engines,
            adopting: BTreeSet::new(),
            mapped_before: HashMap::new(),
            peeked: Vec::new(),
            outsiders: Outsiders::default(),
            in_databases: Awaited::default(),
        }
    }

    /// Changes of address spaces, in order of time, later than all given before.
    pub(crate) fn mapped(&mut self, changes: Vec<Mapped>) {
        self.mapped.extend(changes);
    }

    /// What runtimes say of their threads.
    pub(super) fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }

    /// A machine has said what its threads do.
    pub(super) fn dumped(&mut self, dumped: Dumped, out: &mut Vec<Event>) {
        if let Some(process) = self.processes.get(&dumped.pid) {
            out.extend(self.runtimes.dumped(*process, dumped));
        }
    }

    /// What a process had mapped when it was looked at; its threads are about to be adopted.
    pub(super) fn was_mapped(&mut self, pid: u32, mappings: Vec<maps::Mapping>) {
        self.mapped_before.insert(pid, mappings);
        self.adopting.insert(pid);
    }

    /// Whether threads of this process are watched.
    pub(super) fn watches(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// All that could be adopted has been, and was reported. Until then a process is there although all its threads so far have ended.
    pub(super) fn adopted(&mut self) {
        for pid in std::mem::take(&mut self.adopting) {
            if let Some(key) = self.processes.get(&pid).copied() {
                self.forget_process(pid, key);
            }
        }
    }

    /// Processes whose sleeping threads could not be read in time, lowest first.
    pub(super) fn unread(&self) -> impl Iterator<Item = u32> {
        let stuck: BTreeSet<u32> = self
            .asleep
            .stuck()
            .chain(self.paths.stuck())
            .chain(self.interpreters.stuck())
            .chain(self.goroutine_looks.stuck())
            .chain(self.engines.stuck())
            .collect();
        stuck.into_iter()
    }

    /// Processes that have polled more than is reported of it, since the last time.
    pub(super) fn take_large_sets(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.large_sets)
    }

    /// The waits that were found to go on, and whose they are.
    pub(super) fn take_peeked(&mut self) -> Vec<(u32, Wait)> {
        std::mem::take(&mut self.peeked)
    }

    /// Reads the paths that these waits name; what was read is reported with the waits when they are met again. Says whether there
    /// was any.
    pub(super) fn read_paths(&mut self, waits: &[(u32, Wait)]) -> bool {
        let tids = &self.tids;
        let with_tids = waits
            .iter()
            .filter_map(|(pid, wait)| Some((*pid, *tids.get(&wait.thread)?, wait)));
        self.paths.look(with_tids)
    }

    /// What is known of other ends.
    pub(super) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Names one record; `out` gets what it means, in order.
    pub(crate) fn event(&mut self, raw: RawEvent, out: &mut Vec<Event>) {
        match raw {
            RawEvent::Start(start) => {
                self.catch_up(start.at);
                self.tids.insert(start.thread, start.task.tid);
                self.born(
                    start.thread,
                    start.task.pid,
                    start.parent.as_ref().map(|(parent, _)| *parent),
                );
                if let Some((_, process)) = self.threads.get(&start.thread) {
                    self.interpreters.born(*process, start.task.tid, start.thread);
                    let tid = start.inside.map_or(start.task.tid, |inside| inside.tid);
                    self.runtimes.born(*process, tid, start.thread);
                }
                out.push(Event::Start(start));
            }
            RawEvent::Exec {
                at,
                thread,
                task,
                program,
            } => {
                self.catch_up(at);
                self.tids.insert(thread, task.tid);
                out.push(Event::Exec {
                    at,
                    thread,
                    task,
                    program,
                });
            }
            RawEvent::Renamed { thread, name } => {
                if self.runtimes.renamed(thread, &name) {
                    out.push(Event::Renamed { thread, name });
                }
            }
            RawEvent::Object {
                id,
                mut object,
                in_file_system,
                peer_inode,
            } => {
                self.own_ends.described(id, &object, peer_inode);
                self.neighbours.described(id, &object, peer_inode);
                self.goroutine_looks.described(id, &object);
                if in_file_system {
                    object.path = object
                        .path
                        .as_deref()
                        .map(|path| self.below_its_mount(object.device, path));
                }
                out.push(Event::Object { id, object });
            }
            RawEvent::KernelStack {
                thread,
                seq,
                addresses,
            } => {
                let stack = self.kernel_stack(addresses, out);
                self.kernel_stack_of.insert(thread, (seq, stack));
            }
            RawEvent::Asked(mut asked) => {
                if let Some((pid, _)) = self.threads.get(&asked.thread) {
                    self.own_ends.mark(*pid, &mut asked.polled);
                    if asked.polled_truncated {
                        self.large_sets.insert(*pid);
                    }
                }
                self.asked_of.insert(asked.thread, Box::new(asked));
            }
            RawEvent::Tcp(tcp) => out.push(Event::Tcp(tcp)),
            RawEvent::Connection(connection) => out.push(Event::Connection(connection)),
            RawEvent::Earlier(earlier) => out.push(Event::Earlier(earlier)),
            RawEvent::Request(request) => out.push(Event::Request(request)),
            RawEvent::MadeBy(what, memory) => {
                let made = self.made_by(what, &memory, out);
                out.extend(made);
            }
            RawEvent::Hello(hello) => out.push(Event::Hello(hello)),
            RawEvent::Conversation(found) => out.push(Event::Conversation(found)),
            RawEvent::Turned(turned) => out.push(Event::Turned(turned)),
            RawEvent::NameAsked(asked) => out.push(Event::NameAsked(asked)),
            RawEvent::Wait(wait) => self.wait(wait, out),
            RawEvent::Peek(mut wait) => {
                self.attach(&mut wait, out);
                out.push(Event::GoesOn(GoesOn {
                    thread: wait.thread,
                    start: wait.start,
                    call: wait.call,
                    set: wait.object.zip(wait.asked.clone()),
                }));
                if let Some((pid, _)) = self.threads.get(&wait.thread) {
                    self.peeked.push((*pid, *wait));
                }
            }
            RawEvent::OpenWait(mut wait) => {
                self.attach(&mut wait, out);
                let process = self.threads.get(&wait.thread).copied();
                self.goroutine_looks.meet(&wait, process, false);
                self.open_wait_of.insert(wait.thread, wait);
            }
            RawEvent::Memory(memory) => self.memory(memory, out),
            RawEvent::Cpu {
                mut sample,
                addresses,
            } => {
                if !addresses.is_empty() {
                    sample.kernel_stack = Some(self.kernel_stack(addresses, out));
                }
                out.push(Event::Cpu(sample));
            }
            RawEvent::RanInstead(ran) => out.push(Event::RanInstead(ran)),
            RawEvent::Signal(signal) => out.push(Event::Signal(signal)),
            RawEvent::End { mut end, asleep } => {
                let thread = end.thread;
                let mut asker = None;
                if let Some(mut wait) = self.open_wait_of.remove(&thread) {
                    let (pid, tid) = (end.task.pid, end.task.tid);
                    if let Some(asleep) = &asleep {
                        let named = self.paths.complete_last(pid, tid, &mut wait, asleep.switches);
                        self.describe(named, out);
                    }
                    let stack = asleep.and_then(|asleep| self.sleeping_stack(&wait, pid, tid, &asleep, out));
                    asker = stack.map(|stack| AskerSample {
                        thread,
                        first: wait.seq,
                        seq: wait.seq,
                        on_cpu: false,
                        stack,
                        weight: wait.end.saturating_sub(wait.start),
                    });
                    end.open = Some(OpenState::Blocked(wait));
                }
                let found = self.runtimes.name(thread).map(str::to_owned);
                end.task.name = found.unwrap_or(end.task.name);
                out.push(Event::End(end));
                // A stack belongs to a wait that is known, and an open wait becomes known with the end.
                out.extend(asker.map(Event::Asker));
                self.forget(thread);
            }
        }
    }

    /// A path below the root of its file system, as a path of the machine.
    fn below_its_mount(&self, device: DeviceNumber, path: &str) -> String {
        match self
            .mounts
            .get(&device)
            .map(|target| target.trim_end_matches('/'))
        {
            Some(target) => format!("{target}{path}"),
            None => format!("…{path}"),
        }
    }

    /// What was left out of stacks because there was too much of it.
    pub(crate) fn losses(&self) -> impl Iterator<Item = Loss> {
        let refused = self.user_stacks.refused();
        let loss = |class, count| Loss { class, count, ns: 0 };
        [
            loss(LossClass::Mapping, refused.mappings + refused.modules),
            loss(LossClass::StackSample, refused.stacks),
        ]
        .into_iter()
        .filter(|loss| loss.count > 0)
    }

    /// Whether files' tables of callers were too large to be kept.
    pub(crate) fn went_without_tables(&self) -> bool {
        self.user_stacks.refused().tables > 0
    }

    /// The user stacks, and the outsiders met.
    pub(crate) fn finish(self) -> (UserStacks, Met) {
        (self.user_stacks, self.outsiders.finish())
    }

    fn born(&mut self, thread: ThreadId, pid: u32, parent: Option<ThreadId>) {
        let parent = parent.and_then(|parent| self.threads.get(&parent).copied());
        let key = match parent {
            Some((parent_pid, key)) if parent_pid == pid => key,
            None if self.processes.contains_key(&pid) && !self.mapped_before.contains_key(&pid) => {
                self.processes[&pid]
            }
            _ => {
                let key = ProcessKey(self.next_process);
                self.next_process += 1;
                self.goroutine_looks.begin(key, pid);
                for one in self.mapped_before.remove(&pid).into_iter().flatten() {
                    let mapping = Mapping {
                        start: one.start,
                        end: one.end,
                        offset: one.offset,
                        path: one.path,
                        device: one.device,
                        inode: one.inode,
                    };
                    self.interpreters.mapped(key, pid, &mapping.path);
                    self.user_stacks.map(key, pid, mapping);
                }
                if let Some((parent_pid, parent)) = parent {
                    self.own_ends.has_child(parent_pid);
                    self.user_stacks.fork(parent, key);
                    self.interpreters.fork(parent, key, pid);
                }
                self.processes.insert(pid, key);
                key
            }
        };
        self.threads.insert(thread, (pid, key));
    }

    fn forget(&mut self, thread: ThreadId) {
        self.kernel_stack_of.remove(&thread);
        self.memory_of.remove(&thread);
        self.asked_of.remove(&thread);
        let tid = self.tids.remove(&thread);
        self.paths.forget(thread);
        self.runtimes.forget(thread);
        self.goroutine_looks.forget(thread);
        let Some((pid, key)) = self.threads.remove(&thread) else {
            return;
        };
        if let Some(tid) = tid {
            self.interpreters.forget(key, tid, thread);
        }
        if !self.adopting.contains(&pid) {
            self.forget_process(pid, key);
        }
    }

    /// Unless it has threads.
    fn forget_process(&mut self, pid: u32, key: ProcessKey) {
        if self.threads.values().any(|(_, other)| *other == key) {
            return;
        }
        if self.processes.get(&pid) == Some(&key) {
            self.processes.remove(&pid);
        }
        self.user_stacks.exit(key);
        self.interpreters.exit(key);
        self.goroutine_looks.exit(key);
        self.runtimes.exit(key);
    }

    /// Applies the changes of address spaces up to this instant.
    fn catch_up(&mut self, at: Ns) {
        while let Some(change) = self.mapped.pop_front_if(|change| change.at <= at) {
            let Some(key) = self.processes.get(&change.pid) else {
                continue;
            };
            match change.change {
                Change::Exec => {
                    self.user_stacks.exec(*key);
                    self.interpreters.exit(*key);
                    self.goroutine_looks.exit(*key);
                }
                Change::Map(mapping) => {
                    self.interpreters.mapped(*key, change.pid, &mapping.path);
                    self.user_stacks.map(
                        *key,
                        change.pid,
                        Mapping {
                            start: mapping.start,
                            end: mapping.end,
                            offset: mapping.offset,
                            path: mapping.path,
                            device: mapping.device,
                            inode: mapping.inode,
                        },
                    );
                }
            }
        }
    }

    fn wait(&mut self, mut wait: Box<Wait>, out: &mut Vec<Event>) {
        self.attach(&mut wait, out);
        self.interpreters.ended(&wait);
        let process = self.threads.get(&wait.thread).copied();
        self.goroutine_looks.meet(&wait, process, true);
        let memory = self
            .memory_of
            .remove(&wait.thread)
            .filter(|memory| memory.wait.seq == wait.seq);
        let Some(memory) = memory else {
            out.push(Event::Wait(wait));
            return;
        };
        let length = wait.end.saturating_sub(wait.start);
        let weight = if wait.seq <= COPIED_ALWAYS {
            length
        } else {
            (length as f64 * COPIED_ONE_IN) as Ns
        };
        wait.memory_follows = true;
        out.push(Event::Wait(wait));
        self.name_stacks(*memory, weight, out);
    }

    fn attach(&mut self, wait: &mut Wait, out: &mut Vec<Event>) {
        if let Some((seq, stack)) = self.kernel_stack_of.remove(&wait.thread)
            && seq == wait.seq
        {
            wait.kernel_stack = Some(stack);
        }
        let by = self.goroutine_looks.ended_by(wait);
        self.interpreters.meet(wait, by);
        // Once it has what it waited for, it is the last user itself.
        let waiter = self.threads.get(&wait.thread).map(|(pid, _)| *pid);
        if let (None, Waker::Unknown, Some(pid)) = (&wait.holder, &wait.waker, waiter) {
            let user = last_user(pid, wait).map(|pid| LockHolder::Semaphore { pid });
            let receiver = || last_receiver(pid, wait).map(|pid| LockHolder::QueueReceiver { pid });
            wait.holder = user.or_else(receiver);
        }
        let of_database = self
            .tids
            .get(&wait.thread)
            .and_then(|tid| self.in_databases.by(*tid, wait.start));
        if let (None | Some(LockHolder::FutexWords(_)), Some(owner)) = (&wait.holder, of_database) {
            wait.holder = Some(LockHolder::Session(owner));
        }
        let processes = &self.processes;
        self.outsiders
            .meet(waiter, wait, &|pid| processes.contains_key(&pid), out);
        let of_interpreter = self.interpreters.lock_of(wait);
        if let Some(lock) = self.runtimes.lock_of(wait).or(of_interpreter) {
            wait.holder = Some(LockHolder::Runtime(lock));
        }
        wait.asked = self
            .asked_of
            .remove(&wait.thread)
            .filter(|asked| asked.seq == wait.seq);
        let named = self.paths.complete(wait);
        self.describe(named, out);
    }

    /// An object that is known by its path.
    fn describe(&mut self, named: Option<(ObjectId, Object)>, out: &mut Vec<Event>) {
        if let Some((id, object)) = named {
            self.neighbours.described(id, &object, None);
            out.push(Event::Object { id, object });
        }
    }

    fn memory(&mut self, memory: Box<RawMemory>, out: &mut Vec<Event>) {
        self.catch_up(memory.at);
        if !memory.on_cpu && memory.wait.returned.is_none() {
            // Copied as it left the CPU: what it stands for is known when the wait has ended.
            self.memory_of.insert(memory.wait.thread, memory);
            return;
        }
        let weight = memory.weight;
        self.name_stacks(*memory, weight, out);
    }

    fn made_by(&mut self, what: Made, memory: &RawMemory, out: &mut Vec<Event>) -> Option<Event> {
        self.catch_up(memory.at);
        let thread = memory.wait.thread;
        let stack = self.user_stack(
            thread,
            memory.pid,
            memory.at,
            &memory.registers,
            &memory.stack,
            None,
            Beside::default(),
            out,
        )?;
        Some(Event::MadeBy(MadeBy {
            thread,
            what,
            connection: memory.weight,
            stack,
        }))
    }
}
