//! Frames of interpreters, read from outside while their threads sleep.
//!
//! In: a thread that sleeps, of a process that may have an interpreter mapped ([`Interpreters::frames`]); or threads as they begin,
//! and files as they are mapped ([`looks`]). Out: frames, innermost first; none where the thread has run meanwhile, or its
//! interpreter is not one that can be read ([`refused`]). Reading can block, so a child does it that can be left behind
//! ([`super::behind`]). It keeps what it learnt of each interpreter.

mod global_locks;
mod looks;
mod node_waits;
mod refused;
mod running;
mod sightings;

use super::behind::{Answerer, Readers};
use global_locks::GlobalLocks;
use holdup_evidence::{
    EventLoop, InterpreterLock, NotMeasured, Ns, RuntimeLock, RuntimeLockKind, RuntimeLockSource, Seq,
    ThreadId, UserStackId, Wait,
};
use holdup_jvm::Running;
use holdup_knowledge::javascript;
use holdup_proc::{Root, clocks as clock, maps, memory, sampling::clocks};
use holdup_runtimes::interpreted::{
    self, AwaitedLock, Interpreted as Read, Interpreter, Kind, Lasting, LockKind, Place, Refused,
};
use holdup_runtimes::node::AllSuspended;
use holdup_runtimes::python::{self, AsyncTasks};
use holdup_symbols::{Interpreted, ProcessKey, UserStacks};
use looks::Looks;
pub(super) use looks::thread_cpu;
use refused::RefusedOnes;
use serde::{Deserialize, Serialize};
use sightings::Sightings;
use std::collections::HashMap;

/// Interpreters that a child keeps; then all are forgotten.
const KEPT: usize = 64;

/// Looks for an interpreter in a process: its library may be loaded later.
const LOOKS: u32 = 8;

/// Questions to an interpreter that is not what it will be once it has started.
const TRIES: u32 = 8;

/// How often a thread had run when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turns {
    /// Voluntary context switches.
    pub(super) switches: u64,
    /// How often it got a CPU, where the kernel counts that.
    pub(super) turns: Option<u64>,
}

/// An interpreter.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Which {
    pid: u32,
    /// No other has it: a process that begins another program has another interpreter, perhaps in the same place.
    number: u32,
    place: Place,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Question {
    which: Which,
    about: About,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum About {
    /// The frames of a thread.
    Thread(u32),
    /// The tasks of its event loops.
    Tasks,
    /// The asynchronous functions that wait.
    Suspended,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Answer {
    /// The frames, what was counted before and after, and an address within the function that executes, where it is known.
    Frames(Vec<Read>, Turns, Option<u64>),
    /// The tasks.
    Tasks(AsyncTasks),
    /// The asynchronous functions.
    Suspended(AllSuspended),
    /// Of this thread nothing could be read, or it ran.
    Nothing,
    /// Of no thread of this interpreter anything can be read.
    Refused(Refused),
}

/// What is known of a process.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "most that are kept have an interpreter")]
enum Known {
    /// No interpreter was found in so many looks.
    None(u32),
    /// One is there. It was refused so often, and is not looked at before an instant.
    There(Which, u32, Ns),
    /// It cannot be read.
    Refused,
}

/// Reads all of them.
#[derive(Debug)]
pub(super) struct Interpreters {
    readers: Readers<Question, Answer>,
    known: HashMap<ProcessKey, Known>,
    /// How many were found.
    found: u32,
    looks: Looks,
    sightings: Sightings,
    refused: RefusedOnes,
    global_locks: GlobalLocks,
}

impl Default for Interpreters {
    fn default() -> Interpreters {
        Interpreters {
            readers: Readers::new(answerer),
            known: HashMap::new(),
            found: 0,
            looks: Looks::default(),
            sightings: Sightings::default(),
            refused: RefusedOnes::default(),
            global_locks: GlobalLocks::default(),
        }
    }
}

/// Whether a function of an interpreter evaluates interpreted code.
pub(super) fn evaluates(symbol: &str) -> bool {
    interpreted::evaluates(symbol)
}

/// Whether a file may hold an interpreter: the program, or the library where it is embedded.
fn may_hold(file: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.may_be_in()(file))
}

impl Interpreters {
    /// The frames of a sleeping thread: of a process, by its id, and by its own. `still`: whether it sleeps as it did, by its counts.
    pub(super) fn frames(
        &mut self,
        stacks: &mut UserStacks,
        (process, pid, tid): (ProcessKey, u32, u32),
        still: impl Fn(&Turns) -> bool,
    ) -> Vec<Interpreted> {
        let Some((which, _)) = self.which(stacks, process, pid) else {
            return Vec::new();
        };
        let about = About::Thread(tid);
        match self.readers.ask(pid, Question { which, about }) {
            Some(Answer::Frames(frames, turns, executor)) if still(&turns) => {
                if let Some(executor) = executor {
                    stacks.executed_at(process, executor);
                }
                interpreted(frames).collect()
            }
            Some(Answer::Refused(refused)) => {
                self.refuse(process, refused);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The tasks of a process's event loops; `None` where it has no interpreter that can be read, or no tasks.
    pub(super) fn tasks(
        &mut self,
        stacks: &mut UserStacks,
        process: ProcessKey,
        pid: u32,
    ) -> Option<AsyncTasks> {
        let (which, _) = self.which(stacks, process, pid)?;
        let about = About::Tasks;
        match self.readers.ask(pid, Question { which, about })? {
            Answer::Tasks(tasks) => Some(tasks),
            Answer::Frames(..) | Answer::Suspended(_) | Answer::Nothing | Answer::Refused(_) => None,
        }
    }

    /// The asynchronous functions of a process that wait; `None` where it has no engine that can be read, or too much memory.
    pub(super) fn suspended(
        &mut self,
        stacks: &mut UserStacks,
        process: ProcessKey,
        pid: u32,
    ) -> Option<AllSuspended> {
        let (which, _) = self.which(stacks, process, pid)?;
        let about = About::Suspended;
        match self.readers.ask_patiently(pid, Question { which, about })? {
            Answer::Suspended(all) => Some(all),
            Answer::Frames(..) | Answer::Tasks(_) | Answer::Nothing | Answer::Refused(_) => None,
        }
    }

    /// Those of these processes that CPython runs in.
    pub(super) fn of_python(
        &mut self,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) -> Vec<(u32, ProcessKey)> {
        self.of(stacks, processes, |place| matches!(place, Place::Python(_)))
    }

    /// Those that Node.js runs in.
    pub(super) fn of_node(
        &mut self,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) -> Vec<(u32, ProcessKey)> {
        self.of(stacks, processes, |place| matches!(place, Place::Node(_)))
    }

    fn of(
        &mut self,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
        is: fn(&Place) -> bool,
    ) -> Vec<(u32, ProcessKey)> {
        let mut found = Vec::new();
        for (pid, process) in processes {
            let known = self.which(stacks, process, pid);
            if known.is_some_and(|(which, _)| is(&which.place)) {
                found.push((pid, process));
            }
        }
        found
    }

    /// A process begins with what another has mapped.
    pub(super) fn fork(&mut self, parent: ProcessKey, process: ProcessKey, pid: u32) {
        if self.looks.holds(parent) {
            self.looks.hold(process, pid);
        }
    }

    /// A process has mapped a file.
    pub(super) fn mapped(&mut self, process: ProcessKey, pid: u32, path: &str) {
        let file = path.rsplit('/').next().unwrap_or(path);
        if let Some(version) = python::version_of_file(file)
            && version < python::VERSION_MIN
        {
            // The oldest of them do not even export where their state is.
            self.refused
                .add(pid, python::Refused::Unsupported(version).into());
        } else if may_hold(file) {
            self.looks.hold(process, pid);
            if let Some(Known::None(looks)) = self.known.get_mut(&process) {
                *looks = 0;
            }
        }
    }

    /// A thread lives.
    pub(super) fn born(&mut self, process: ProcessKey, tid: u32, thread: ThreadId) {
        self.looks.born(process, tid, thread);
    }

    /// It is gone.
    pub(super) fn forget(&mut self, process: ProcessKey, tid: u32, thread: ThreadId) {
        self.looks.forget(process, tid, thread);
        self.sightings.forget(thread);
    }

    /// Has the threads of interpreters looked at if it is time to, and takes what earlier looks came to. Waits for nobody. `tid_of`: what
    /// the kernel calls a thread of a process, by its id in its own pid namespace.
    pub(super) fn look(&mut self, stacks: &mut UserStacks, tid_of: impl Fn(ProcessKey, u32) -> Option<u32>) {
        if self.looks.nothing_to_do() {
            return;
        }
        let (now, before) = (clock::monotonic(), thread_cpu());
        let known = (self.found, self.looks.starts());
        for (process, refused) in self.looks.gather(now, &mut self.sightings) {
            self.refuse(process, refused);
        }
        for (process, executor) in self.looks.executors() {
            stacks.executed_at(process, executor);
        }
        for (process, pid, held) in self.looks.held() {
            self.global_locks
                .looked(stacks, pid, held, |inside| tid_of(process, inside));
        }
        if self.looks.may_begin(now) {
            for round in self.looks.round(now) {
                if let Some((which, not_before)) = self.which(stacks, round.process, round.pid)
                    && not_before <= now
                {
                    self.looks.ask(which, round, now);
                }
            }
        }
        if known == (self.found, self.looks.starts()) {
            self.looks.charge(thread_cpu().saturating_sub(before));
        }
    }

    /// A wait is met; it may be so again. `by`: the inode of the descriptor that ended it.
    pub(super) fn meet(&mut self, wait: &Wait, by: Option<u64>) {
        self.sightings.meet(wait, by);
    }

    /// The lock that a wait was for, if its thread was seen in it.
    pub(super) fn lock_of(&self, wait: &Wait) -> Option<RuntimeLock> {
        let (AwaitedLock { kind, address, owner }, seen) = self.sightings.lock_of(wait)?;
        Some(RuntimeLock {
            kind: match kind {
                LockKind::Lock => RuntimeLockKind::Mutex,
                LockKind::Semaphore => RuntimeLockKind::Semaphore,
                LockKind::RLock => RuntimeLockKind::Recursive,
                LockKind::RubyMutex => RuntimeLockKind::Queued,
                LockKind::RubyGlobal => RuntimeLockKind::Global,
            },
            class: kind.name().to_owned(),
            identity: address,
            owner,
            source: RuntimeLockSource::Structures,
            seen,
        })
    }

    /// It has ended.
    pub(super) fn ended(&mut self, wait: &Wait) {
        self.looks.wait_ended(wait.thread, wait.start, wait.end);
    }

    /// A thread used a CPU at this instant: the frames in which it was seen to run about then; empty where it was not.
    pub(super) fn ran(&mut self, thread: ThreadId, at: Ns) -> Vec<Interpreted> {
        self.looks.ran(thread, at)
    }

    /// The frames in which a thread was seen in one of the waits of a call, if it was.
    pub(super) fn seen_in(&self, thread: ThreadId, first: Seq, last: Seq) -> Vec<Interpreted> {
        self.sightings
            .of(thread, first, last)
            .unwrap_or_default()
            .to_vec()
    }

    /// A wait of a thread has this native stack; whether waits in which it was seen stand for this one, in which it was not.
    pub(super) fn is_told_by_others(
        &mut self,
        thread: ThreadId,
        seq: Seq,
        native: UserStackId,
        seen: bool,
    ) -> bool {
        self.sightings.has_stack(thread, seq, native, seen);
        !seen && self.sightings.stand_for(thread, seq, native)
    }

    /// The process runs another program now, or none.
    pub(super) fn exit(&mut self, process: ProcessKey) {
        self.known.remove(&process);
        self.looks.release(process);
    }

    /// Processes whose memory could not be read in time.
    pub(super) fn stuck(&self) -> impl Iterator<Item = u32> {
        self.readers.stuck().chain(self.looks.stuck())
    }

    /// Who had the global locks.
    pub(super) fn global_locks(&self) -> Vec<InterpreterLock> {
        self.global_locks.locks()
    }

    /// Event loops that were kept from their events.
    pub(super) fn event_loops(&self) -> Vec<EventLoop> {
        let each = self.looks.busy_loops().iter();
        each.map(|(&(pid, tid), &tasks)| EventLoop { pid, tid, tasks })
            .collect()
    }

    /// Whose frames were refused, and why.
    pub(super) fn not_measured(&self) -> impl Iterator<Item = NotMeasured> {
        self.refused.not_measured()
    }

    /// An interpreter was refused. While it starts, it is not yet what it will be.
    fn refuse(&mut self, process: ProcessKey, refused: Refused) {
        let Some(Known::There(which, tries, _)) = self.known.get(&process).copied() else {
            return;
        };
        let now = match refused.lasting() {
            Lasting::ForEver => true,
            Lasting::Perhaps | Lasting::UntilItRuns => tries >= TRIES,
        };
        let known = if now {
            // What cannot be read of Node.js is reported with the frames on its stacks.
            if refused.kind() != Kind::Node {
                self.refused.add(which.pid, refused);
            }
            Known::Refused
        } else {
            Known::There(which, tries + 1, clock::monotonic() + (looks::OFTEN << tries))
        };
        self.known.insert(process, known);
    }

    /// Which interpreter a process has, and before which instant it need not be looked at.
    fn which(&mut self, stacks: &mut UserStacks, process: ProcessKey, pid: u32) -> Option<(Which, Ns)> {
        let known = self.known.entry(process).or_insert(Known::None(0));
        if let Known::None(looks) = known
            && *looks < LOOKS
        {
            let mut places = Kind::ALL.iter().filter_map(|kind| {
                let found = stacks.find(process, pid, kind.may_be_in(), kind.symbols())?;
                kind.place(&found.addresses, &found.file)
            });
            *known = match places.next() {
                Some(place) => {
                    let number = self.found;
                    self.found = self.found.wrapping_add(1);
                    Known::There(Which { pid, number, place }, 0, 0)
                }
                None => Known::None(*looks + 1),
            };
        }
        match *known {
            Known::There(which, _, not_before) => Some((which, not_before)),
            Known::None(_) | Known::Refused => None,
        }
    }
}

/// As they stand in a stack.
fn interpreted(frames: Vec<Read>) -> impl Iterator<Item = Interpreted> {
    frames
        .into_iter()
        .map(|Read { frame, entry }| Interpreted { frame, entry })
}

/// Interpreters that a child has found out about, by number.
type Kept = HashMap<u32, Interpreter<Running>>;

/// What a child does.
fn answerer() -> Answerer<Question, Answer> {
    let mut kept = Kept::new();
    let root = Root::system();
    Box::new(move |question| answer(&root, &mut kept, question))
}

/// An interpreter, found out about if it is new.
fn kept_one<'a>(
    root: &Root,
    kept: &'a mut Kept,
    which: Which,
) -> Result<&'a mut Interpreter<Running>, Refused> {
    // Where reading memory would end this process, it is not tried.
    if memory::is_refused(which.pid, which.place.address()) {
        return Err(which.place.refused_memory());
    }
    if !kept.contains_key(&which.number) {
        if kept.len() >= KEPT {
            kept.clear();
        }
        let main = memory::inside(root, which.pid).ok_or(which.place.refused_memory())?;
        let interpreter = Interpreter::find(Running(which.pid), which.place, main)?;
        kept.insert(which.number, interpreter);
    }
    kept.get_mut(&which.number).ok_or(which.place.refused_memory())
}

fn answer(root: &Root, kept: &mut Kept, Question { which, about }: Question) -> Answer {
    let interpreter = match kept_one(root, kept, which) {
        Ok(interpreter) => interpreter,
        Err(refused) => return Answer::Refused(refused),
    };
    let tid = match about {
        About::Thread(tid) => tid,
        About::Tasks => {
            let tasks = interpreter.python().and_then(|python| python.tasks().ok());
            return tasks.map_or(Answer::Nothing, Answer::Tasks);
        }
        About::Suspended => {
            let all = interpreter.node().and_then(|engine| {
                let heap = maps::anonymous(root, which.pid)?;
                engine.suspended(&heap, |file| !javascript::of_library(file))
            });
            return all.map_or(Answer::Nothing, Answer::Suspended);
        }
    };
    let mut read = || {
        let inside = memory::inside(root, tid)?;
        let before = turns(root, tid)?;
        let frames = match interpreter.node() {
            Some(engine) => node_waits::waiters(root, engine, which.pid, tid).frames,
            None => interpreter.frames(inside).ok()?,
        };
        let after = turns(root, tid)?;
        (before == after).then_some((frames, after))
    };
    match read() {
        Some((frames, turns)) => Answer::Frames(frames, turns, interpreter.executor()),
        None => Answer::Nothing,
    }
}

fn turns(root: &Root, tid: u32) -> Option<Turns> {
    let switches = memory::voluntary_switches(root, tid)?;
    let turns = turns_counted(root, tid);
    Some(Turns { switches, turns })
}

/// How often a thread got a CPU, where the kernel counts that.
fn turns_counted(root: &Root, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(root.proc.join(tid.to_string()).join("schedstat")).ok()?;
    clocks::turns(&text).map(|turns| turns.count)
}

#[cfg(test)]
mod tests;
