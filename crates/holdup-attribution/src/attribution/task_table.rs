//! Who is who: processes, names and ids as they are at the moment.
//!
//! A process is named by its first thread, whose name changes with every exec, so threads refer to their
//! process and ask for its name when they need one. In: births, execs, new names, ends. Out: [`ThreadName`]s.

use super::numbers::NumberMap;
use holdup_evidence::{Adopted, Inside, Ns, ObjectId, OtherEnd, TaskName, ThreadId};
use holdup_model::attributed::ThreadName;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Tasks outside the run kept by thread id: those that a lock of the run's names.
const MAX_OUTSIDERS: usize = 1024;

/// A name that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameId(u32);

/// A process of the run; unlike its pid never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProcessId(u32);

/// A task as it was named at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) process: NameId,
    pub(super) thread: NameId,
}

/// A thread's place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    /// Its process.
    pub(super) process: ProcessId,
    /// Its thread id at the moment.
    pub(super) tid: u32,
    /// Its own name.
    pub(super) name: NameId,
    /// What it calls itself, where it is in a pid namespace of its own.
    pub(super) inside: Option<Inside>,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    pid: u32,
    name: NameId,
}

/// Who stopped a process, and with which signal.
#[derive(Debug, Clone)]
pub(super) struct Stopper {
    /// Signal number.
    pub(super) signal: i32,
    /// Who sent it.
    pub(super) by: TaskName,
}

/// Everybody.
#[derive(Debug, Clone, Default)]
pub(super) struct TaskTable {
    names: Vec<Arc<str>>,
    name_ids: HashMap<Arc<str>, NameId>,
    processes: Vec<Process>,
    by_pid: NumberMap<u32, ProcessId>,
    by_tid: NumberMap<u32, ThreadId>,
    /// The same ids as threads in pid namespaces of their own have them.
    by_inside: HashMap<Inside, ThreadId>,
    /// Threads that ended lately, and when.
    lately: NumberMap<u32, (ThreadId, Ns)>,
    /// Tasks outside the run by thread id.
    outsiders: HashMap<u32, TaskName>,
    /// Ids that locks name, and under which no thread of the machine lives.
    nobody: BTreeSet<u32>,
    stoppers: HashMap<u32, Stopper>,
    /// Processes that have the other end of a pipe or socket.
    other_ends: HashMap<ObjectId, Vec<u32>>,
    /// Of those, connections that stand in the queue of a listener.
    in_queues: HashSet<ObjectId>,
    /// The parent of each process that was there when observation found it.
    parents: HashMap<u32, u32>,
}

/// How far up ancestors are looked for: ids that are used again can make a circle.
const MAX_ANCESTORS: usize = 16;

/// Ids of owners that are gone that are kept: a program has few locks that processes share.
const MAX_NOBODY: usize = 1024;

/// Pipes and sockets whose other ends are kept.
const MAX_OTHER_ENDS: usize = 4096;

impl TaskTable {
    /// The id of a name.
    pub(super) fn name_id(&mut self, name: &str) -> NameId {
        if let Some(id) = self.name_ids.get(name) {
            return *id;
        }
        let id = NameId(u32::try_from(self.names.len()).expect("fewer names than threads"));
        let name: Arc<str> = Arc::from(name);
        self.names.push(Arc::clone(&name));
        self.name_ids.insert(name, id);
        id
    }

    /// The name with this id.
    pub(super) fn text(&self, name: NameId) -> &str {
        &self.names[name.0 as usize]
    }

    /// A thread is born, or first heard of.
    pub(super) fn born(&mut self, thread: ThreadId, task: &TaskName, adopted: Option<&Adopted>) -> Identity {
        if let Some(adopted) = adopted {
            self.adopted(task.pid, adopted);
        }
        let name = self.name_id(&task.name);
        if task.pid == 0 {
            // It stands for some whose ids nobody knows.
            self.processes.push(Process { pid: 0, name });
            let process =
                ProcessId(u32::try_from(self.processes.len() - 1).expect("fewer processes than threads"));
            return Identity {
                process,
                tid: 0,
                name,
                inside: None,
            };
        }
        let known = self.by_pid.get(&task.pid).copied();
        let process = match known {
            // A process's first thread has its id: whoever had the id before is gone.
            Some(process) if task.tid != task.pid || adopted.is_some() => process,
            _ => self.new_process(task.pid, name),
        };
        self.by_tid.insert(task.tid, thread);
        Identity {
            process,
            tid: task.tid,
            name,
            inside: None,
        }
    }

    /// A process is there of which none of the threads was born under observation.
    fn adopted(&mut self, pid: u32, adopted: &Adopted) {
        self.parents.insert(pid, adopted.parent);
        if !self.by_pid.contains_key(&pid) {
            let name = self.name_id(&adopted.process);
            self.new_process(pid, name);
        }
    }

    fn new_process(&mut self, pid: u32, name: NameId) -> ProcessId {
        let process = ProcessId(u32::try_from(self.processes.len()).expect("fewer processes than threads"));
        self.processes.push(Process { pid, name });
        self.by_pid.insert(pid, process);
        process
    }

    /// Who has the other end of something.
    pub(super) fn has_other_end(&mut self, end: &OtherEnd) {
        if self.other_ends.len() >= MAX_OTHER_ENDS {
            self.other_ends.clear();
            self.in_queues.clear();
        }
        match end.listens {
            true => self.in_queues.insert(end.object),
            false => self.in_queues.remove(&end.object),
        };
        self.other_ends.insert(end.object, end.processes.clone());
    }

    /// The one process beside `own` that has the other end; `None` where none is known, or several are. Nobody waits for himself: many a
    /// reader of a pipe was left the end to write to as well.
    pub(super) fn other_end(&self, object: ObjectId, own: Option<u32>) -> Option<u32> {
        let mut others = self.other_ends(object).iter().filter(|pid| Some(**pid) != own);
        let first = others.next()?;
        others.next().is_none().then_some(*first)
    }

    /// All processes that are known to have the other end.
    pub(super) fn other_ends(&self, object: ObjectId) -> &[u32] {
        self.other_ends.get(&object).map_or(&[], Vec::as_slice)
    }

    /// The parent of a process that observation found, that one's parent, and so on.
    pub(super) fn ancestors(&self, pid: u32) -> impl Iterator<Item = u32> + '_ {
        let parent = |pid: &u32| self.parents.get(pid).copied().filter(|parent| parent != pid);
        std::iter::successors(parent(&pid), parent).take(MAX_ANCESTORS)
    }

    /// The only child of a process among those that observation found.
    pub(super) fn only_child(&self, pid: u32) -> Option<u32> {
        let mut children = self.parents.iter().filter(|(_, parent)| **parent == pid);
        let (child, _) = children.next()?;
        children.next().is_none().then_some(*child)
    }

    /// Whether one process is the child of the other one, among those that observation found.
    pub(super) fn is_child_of(&self, child: u32, pid: u32) -> bool {
        self.parents.get(&child) == Some(&pid)
    }

    /// The parent of a process that observation found, where both have one name: it forked, and runs the same program.
    pub(super) fn same_program_as(&self, pid: u32) -> Option<u32> {
        let parent = *self.parents.get(&pid)?;
        let name = |pid| Some(self.processes[self.by_pid.get(&pid)?.0 as usize].name);
        (name(pid)? == name(parent)?).then_some(parent)
    }

    /// Whether a connection stands in the queue of a listener, as far as that is known.
    pub(super) fn is_in_queue(&self, object: ObjectId) -> bool {
        self.in_queues.contains(&object)
    }

    /// Whether two processes have different names, as far as those are known.
    pub(super) fn differ_by_program(&self, one: u32, other: u32) -> bool {
        let name = |pid| Some(self.processes[self.by_pid.get(&pid)?.0 as usize].name);
        name(one)
            .zip(name(other))
            .is_some_and(|(one, other)| one != other)
    }

    /// Whether a process has such a child, that runs the same program, among those that observation found.
    pub(super) fn has_child(&self, pid: u32, which: impl Fn(u32) -> bool) -> bool {
        self.has_child_of_any_program(pid, |child| {
            which(child) && self.same_program_as(child) == Some(pid)
        })
    }

    /// The same, whatever program the child runs.
    pub(super) fn has_child_of_any_program(&self, pid: u32, which: impl Fn(u32) -> bool) -> bool {
        let children = self.parents.iter().filter(|(_, parent)| **parent == pid);
        children.map(|(child, _)| *child).any(which)
    }

    /// Whether a process has such a sibling, that runs the same program, among those that observation found.
    pub(super) fn has_sibling(&self, pid: u32, which: impl Fn(u32) -> bool) -> bool {
        let of = |pid: u32| {
            let name = self.processes[self.by_pid.get(&pid)?.0 as usize].name;
            Some((*self.parents.get(&pid)?, name))
        };
        let own = of(pid);
        let mut others = self.parents.keys().filter(|other| **other != pid);
        own.is_some() && others.any(|other| which(*other) && of(*other) == own)
    }

    /// A thread is in a pid namespace of its own.
    pub(super) fn is_inside(&mut self, thread: ThreadId, identity: &mut Identity, inside: Inside) {
        identity.inside = Some(inside);
        self.by_inside.insert(inside, thread);
    }

    /// A task outside the run lives.
    pub(super) fn met(&mut self, task: &TaskName) {
        if self.outsiders.len() >= MAX_OUTSIDERS {
            self.outsiders.clear();
        }
        self.outsiders.insert(task.tid, task.clone());
    }

    /// Who lived at this instant under a thread id, as a thread of the run has it in its memory.
    pub(super) fn as_seen_by(&self, waiter: &Identity, tid: u32, at: Ns) -> Option<ThreadId> {
        match waiter.inside {
            None => self.lived(tid, at),
            Some(inside) => self.by_inside.get(&Inside { tid, ..inside }).copied(),
        }
    }

    /// No thread of the machine lives under this id, which a lock names.
    pub(super) fn nobody_has(&mut self, tid: u32) {
        if self.nobody.len() < MAX_NOBODY {
            self.outsiders.remove(&tid);
            self.nobody.insert(tid);
        }
    }

    /// Whether no thread of the machine lived under this id when it was last looked for.
    pub(super) fn is_nobody(&self, tid: u32) -> bool {
        self.nobody.contains(&tid)
    }

    /// The task outside the run that lives under a thread id.
    pub(super) fn outsider(&self, tid: u32) -> Option<&TaskName> {
        self.outsiders.get(&tid)
    }

    /// A thread has these ids and this name now.
    pub(super) fn is_now(&mut self, thread: ThreadId, identity: &mut Identity, task: &TaskName) {
        if self.by_tid.get(&identity.tid) == Some(&thread) {
            self.by_tid.remove(&identity.tid);
        }
        self.by_tid.insert(task.tid, thread);
        identity.tid = task.tid;
        self.renamed(identity, &task.name);
    }

    /// A thread has another name now.
    pub(super) fn renamed(&mut self, identity: &mut Identity, name: &str) {
        identity.name = self.name_id(name);
        let process = &mut self.processes[identity.process.0 as usize];
        if process.pid == identity.tid {
            process.name = identity.name;
        }
    }

    /// A thread is gone, its ids are free; waits from before may still name it.
    pub(super) fn gone(&mut self, thread: ThreadId, identity: &Identity, at: Ns) {
        if self.by_tid.get(&identity.tid) == Some(&thread) {
            self.by_tid.remove(&identity.tid);
        }
        self.lately.insert(identity.tid, (thread, at));
    }

    /// Nothing is kept any more of a thread that is gone.
    pub(super) fn forgotten(&mut self, thread: ThreadId, identity: &Identity) {
        if self
            .lately
            .get(&identity.tid)
            .is_some_and(|gone| gone.0 == thread)
        {
            self.lately.remove(&identity.tid);
        }
        if let Some(inside) = identity.inside
            && self.by_inside.get(&inside) == Some(&thread)
        {
            self.by_inside.remove(&inside);
        }
    }

    /// Who lived under a thread id at this instant, if it has not been long ago.
    pub(super) fn lived(&self, tid: u32, at: Ns) -> Option<ThreadId> {
        let gone = self.lately.get(&tid).filter(|(_, ended)| *ended >= at);
        self.living(tid).or(gone.map(|gone| gone.0))
    }

    /// Who lives under a thread id.
    pub(super) fn living(&self, tid: u32) -> Option<ThreadId> {
        self.by_tid.get(&tid).copied()
    }

    /// The process's id as the kernel has it.
    pub(super) fn pid(&self, process: ProcessId) -> u32 {
        self.processes[process.0 as usize].pid
    }

    /// Whether a process of the run has, or had, this id.
    pub(super) fn of_run(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    /// The name of the process of the run that has, or had last, this id.
    pub(super) fn name_of(&self, pid: u32) -> Option<&str> {
        let process = self.by_pid.get(&pid)?;
        Some(self.text(self.process_name(*process)))
    }

    /// The process's name.
    pub(super) fn process_name(&self, process: ProcessId) -> NameId {
        self.processes[process.0 as usize].name
    }

    /// A thread as it is named now.
    pub(super) fn named(&self, identity: &Identity) -> Named {
        let process = self.processes[identity.process.0 as usize];
        Named {
            pid: process.pid,
            tid: identity.tid,
            process: process.name,
            thread: identity.name,
        }
    }

    /// A name as the report has it.
    pub(super) fn describe(&self, named: &Named) -> ThreadName {
        ThreadName {
            pid: named.pid,
            tid: named.tid,
            process: self.text(named.process).to_owned(),
            thread: self.text(named.thread).to_owned(),
        }
    }

    /// Any task as it is named now; its process's name is empty where only facts can tell it.
    pub(super) fn named_task(&mut self, task: &TaskName) -> Named {
        let thread = self.name_id(&task.name);
        let process = match self.by_pid.get(&task.pid) {
            Some(process) => self.process_name(*process),
            None if task.pid == task.tid => thread,
            None => self.name_id(""),
        };
        Named {
            pid: task.pid,
            tid: task.tid,
            process,
            thread,
        }
    }

    /// A process was sent a signal that stops it.
    pub(super) fn stopped(&mut self, pid: u32, signal: i32, by: &TaskName) {
        let by = by.clone();
        self.stoppers.insert(pid, Stopper { signal, by });
    }

    /// Who stopped a process last.
    pub(super) fn stopper(&self, pid: u32) -> Option<&Stopper> {
        self.stoppers.get(&pid)
    }
}
