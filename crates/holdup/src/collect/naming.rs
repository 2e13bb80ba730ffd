//! From raw records to evidence: addresses become stacks, a wait gets the kernel stack that came before it, a
//! thread's memory becomes what it polled and who asked.
//!
//! In: [`RawEvent`]s and [`Mapped`]s in the order of time. Out: [`Event`]s that `holdup-analysis` understands.

use super::own_ends::OwnEnds;
use holdup_analysis::attribution::shared_lock_owner;
use holdup_bpf::{Asleep, Change, Mapped, RawEvent, RawMemory, Registers};
use holdup_evidence::{
    AskerSample, DeviceNumber, Event, Frame, KernelStackId, LockHolder, Loss, LossClass, Ns, OpenState, Seq,
    TaskName, ThreadId, UserStackId, Wait, WaitMemory, Waker,
};
use holdup_proc::{Root, names};
use holdup_symbols::{KernelSymbols, Mapping, ProcessKey, RawStack, UserStacks};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Names raw records.
pub(crate) struct Naming {
    kernel: Option<KernelSymbols>,
    /// Where each file system is mounted, in holdup's own mount namespace.
    mounts: HashMap<DeviceNumber, String>,
    kernel_stacks: HashMap<Vec<u64>, KernelStackId>,
    user_stacks: UserStacks,
    /// Changes of address spaces whose time has not come yet.
    mapped: VecDeque<Mapped>,
    /// Which image a process id stands for now, and which process a thread belongs to.
    processes: HashMap<u32, ProcessKey>,
    threads: HashMap<ThreadId, (u32, ProcessKey)>,
    next_process: u32,
    /// What came before the wait that it belongs to.
    kernel_stack_of: HashMap<ThreadId, (Seq, KernelStackId)>,
    asked_of: HashMap<ThreadId, Box<WaitMemory>>,
    memory_of: HashMap<ThreadId, Box<RawMemory>>,
    open_wait_of: HashMap<ThreadId, Box<Wait>>,
    own_ends: OwnEnds,
    /// Names of processes outside the run, looked up when they were first met.
    outsiders: BTreeMap<u32, String>,
    /// Threads outside the run that own, or owned, a lock which the run shares.
    sharers: BTreeSet<u32>,
}

/// Such threads remembered: a lock has one owner at a time.
const MAX_SHARERS: usize = 1024;

/// Where the kernel cannot read memory after a waking, a thread's memory is copied at some of the times it
/// leaves the CPU: each of the first so many, then one in 16.5 on average (see `leave_cpu` in trace.bpf.c).
const COPIED_ALWAYS: Seq = 64;
const COPIED_ONE_IN: f64 = 16.5;

/// At most so much of a sleeping thread's stack is read from outside, bytes. The programs copy 16 KiB, because a
/// record needs room for the most; here nothing does, and one function of Node.js alone has 20 KiB.
const STACK_BYTES: usize = 64 * 1024;

impl Naming {
    /// `kernel` is `None` where symbols cannot be read.
    pub(crate) fn new(kernel: Option<KernelSymbols>, mounts: HashMap<DeviceNumber, String>) -> Naming {
        Naming {
            kernel,
            mounts,
            kernel_stacks: HashMap::new(),
            user_stacks: UserStacks::new(),
            mapped: VecDeque::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            next_process: 0,
            kernel_stack_of: HashMap::new(),
            asked_of: HashMap::new(),
            memory_of: HashMap::new(),
            open_wait_of: HashMap::new(),
            own_ends: OwnEnds::default(),
            outsiders: BTreeMap::new(),
            sharers: BTreeSet::new(),
        }
    }

    /// Changes of address spaces, in order of time, later than all given before.
    pub(crate) fn mapped(&mut self, changes: Vec<Mapped>) {
        self.mapped.extend(changes);
    }

    /// Names one record; `out` gets what it means, in order.
    pub(crate) fn event(&mut self, raw: RawEvent, out: &mut Vec<Event>) {
        match raw {
            RawEvent::Start(start) => {
                self.catch_up(start.at);
                self.born(
                    start.thread,
                    start.task.pid,
                    start.parent.as_ref().map(|(parent, _)| *parent),
                );
                out.push(Event::Start(start));
            }
            RawEvent::Exec {
                at,
                thread,
                task,
                program,
            } => {
                self.catch_up(at);
                out.push(Event::Exec {
                    at,
                    thread,
                    task,
                    program,
                });
            }
            RawEvent::Renamed { thread, name } => out.push(Event::Renamed { thread, name }),
            RawEvent::Object {
                id,
                mut object,
                in_file_system,
                peer_inode,
            } => {
                self.own_ends.described(id, &object, peer_inode);
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
                }
                self.asked_of.insert(asked.thread, Box::new(asked));
            }
            RawEvent::Tcp(tcp) => out.push(Event::Tcp(tcp)),
            RawEvent::Connection(connection) => out.push(Event::Connection(connection)),
            RawEvent::NameAsked(asked) => out.push(Event::NameAsked(asked)),
            RawEvent::Wait(wait) => self.wait(wait, out),
            RawEvent::OpenWait(mut wait) => {
                self.attach(&mut wait);
                self.meet(&wait, out);
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
                if let Some(wait) = self.open_wait_of.remove(&thread) {
                    let stack = asleep
                        .and_then(|asleep| self.sleeping_stack(&wait, end.task.pid, end.task.tid, &asleep));
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

    /// Frames of all user stacks, and names of the outsiders met.
    pub(crate) fn finish(self) -> (Vec<Vec<Frame>>, BTreeMap<u32, String>) {
        (self.user_stacks.finish(), self.outsiders)
    }

    fn born(&mut self, thread: ThreadId, pid: u32, parent: Option<ThreadId>) {
        let parent = parent.and_then(|parent| self.threads.get(&parent).copied());
        let key = match parent {
            Some((parent_pid, key)) if parent_pid == pid => key,
            _ => {
                let key = ProcessKey(self.next_process);
                self.next_process += 1;
                if let Some((parent_pid, parent)) = parent {
                    self.own_ends.has_child(parent_pid);
                    self.user_stacks.fork(parent, key);
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
        if let Some((pid, key)) = self.threads.remove(&thread)
            && !self.threads.values().any(|(_, other)| *other == key)
        {
            if self.processes.get(&pid) == Some(&key) {
                self.processes.remove(&pid);
            }
            self.user_stacks.exit(key);
        }
    }

    /// Applies the changes of address spaces up to this instant.
    fn catch_up(&mut self, at: Ns) {
        while let Some(change) = self.mapped.pop_front_if(|change| change.at <= at) {
            let Some(key) = self.processes.get(&change.pid) else {
                continue;
            };
            match change.change {
                Change::Exec => self.user_stacks.exec(*key),
                Change::Map(mapping) => self.user_stacks.map(
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
                ),
            }
        }
    }

    fn wait(&mut self, mut wait: Box<Wait>, out: &mut Vec<Event>) {
        self.attach(&mut wait);
        self.meet(&wait, out);
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
        self.told(*memory, weight, out);
    }

    fn attach(&mut self, wait: &mut Wait) {
        if let Some((seq, stack)) = self.kernel_stack_of.remove(&wait.thread)
            && seq == wait.seq
        {
            wait.kernel_stack = Some(stack);
        }
        wait.asked = self
            .asked_of
            .remove(&wait.thread)
            .filter(|asked| asked.seq == wait.seq);
    }

    fn memory(&mut self, memory: Box<RawMemory>, out: &mut Vec<Event>) {
        self.catch_up(memory.at);
        if !memory.on_cpu && memory.wait.returned.is_none() {
            // Copied as it left the CPU: what it stands for is known when the wait has ended.
            self.memory_of.insert(memory.wait.thread, memory);
            return;
        }
        let weight = memory.weight;
        self.told(*memory, weight, out);
    }

    fn told(&mut self, mut memory: RawMemory, weight: Ns, out: &mut Vec<Event>) {
        let (thread, on_cpu) = (memory.wait.thread, memory.on_cpu);
        let (first, seq) = (memory.wait.first, memory.wait.seq);
        let stack = self.user_stack(thread, memory.pid, memory.at, &memory.registers, &memory.stack);
        if !on_cpu {
            self.own_ends.mark(memory.pid, &mut memory.wait.polled);
            out.push(Event::WaitMemory(Box::new(memory.wait)));
        }
        if let Some(stack) = stack {
            out.push(Event::Asker(AskerSample {
                thread,
                first,
                seq,
                on_cpu,
                stack,
                weight,
            }));
        }
    }

    fn user_stack(
        &mut self,
        thread: ThreadId,
        pid: u32,
        at: Ns,
        registers: &Registers,
        bytes: &[u8],
    ) -> Option<UserStackId> {
        let (_, process) = *self.threads.get(&thread)?;
        Some(self.user_stacks.intern(&RawStack {
            process,
            pid,
            at,
            ip: registers.ip,
            sp: registers.sp,
            bp: registers.bp,
            callee_saved: registers.callee_saved,
            bytes,
        }))
    }

    /// Reads the stack of a thread that still sleeps, and throws it away if the thread has run meanwhile.
    fn sleeping_stack(&mut self, wait: &Wait, pid: u32, tid: u32, asleep: &Asleep) -> Option<UserStackId> {
        self.catch_up(wait.end);
        let bytes = holdup_proc::memory::read(tid, asleep.registers.sp, STACK_BYTES)?;
        if holdup_proc::memory::voluntary_switches(&Root::system(), tid)? != asleep.switches {
            return None;
        }
        self.user_stack(wait.thread, pid, wait.end, &asleep.registers, &bytes)
    }

    fn kernel_stack(&mut self, addresses: Vec<u64>, out: &mut Vec<Event>) -> KernelStackId {
        if let Some(known) = self.kernel_stacks.get(&addresses) {
            return *known;
        }
        let id = KernelStackId(u32::try_from(self.kernel_stacks.len()).unwrap_or(u32::MAX));
        let names = |symbols: &KernelSymbols| {
            addresses
                .iter()
                .filter_map(|address| symbols.name(*address).map(str::to_owned))
                .collect()
        };
        let frames = self.kernel.as_ref().map(names).unwrap_or_default();
        self.kernel_stacks.insert(addresses, id);
        out.push(Event::KernelStack { id, frames });
        id
    }

    /// Remembers the names of those in the way while they are likely to be there still.
    fn meet(&mut self, wait: &Wait, out: &mut Vec<Event>) {
        let owner = match &wait.holder {
            Some(LockHolder::FileLock { pid }) => Some(*pid),
            Some(LockHolder::PiFutex(owner) | LockHolder::Tracer(owner)) => Some(owner.pid),
            Some(LockHolder::KernelLock(lock)) => lock.owner.map(|owner| owner.pid),
            Some(LockHolder::FutexWords(_)) => {
                self.meet_sharer(wait, out);
                None
            }
            None => None,
        };
        if let Some(pid) = owner.filter(|pid| *pid != 0) {
            self.name_outsider(pid);
        }
        if let Waker::Outside { task, .. } = &wait.waker {
            self.outsiders
                .entry(task.pid)
                .or_insert_with(|| task.name.clone());
        }
    }

    fn name_outsider(&mut self, pid: u32) {
        if !self.outsiders.contains_key(&pid)
            && !self.processes.contains_key(&pid)
            && let Some(name) = names::comm(&Root::system(), pid)
        {
            self.outsiders.insert(pid, name);
        }
    }

    /// A lock that processes share names its owner by thread id alone: which process that is, if it is none of the
    /// run, only the kernel knows.
    fn meet_sharer(&mut self, wait: &Wait, out: &mut Vec<Event>) {
        let Some(tid) = shared_lock_owner(wait).filter(|tid| !self.sharers.contains(tid)) else {
            return;
        };
        let root = Root::system();
        let Some(pid) = names::process_of(&root, tid) else {
            return;
        };
        if self.processes.contains_key(&pid) {
            return;
        }
        if self.sharers.len() >= MAX_SHARERS {
            self.sharers.clear();
        }
        self.sharers.insert(tid);
        self.name_outsider(pid);
        out.push(Event::Outsider(TaskName {
            pid,
            tid,
            name: names::comm(&root, tid).unwrap_or_default(),
            kernel: false,
        }));
    }
}
