//! Tasks of `asyncio`.
//!
//! A task that waits has no thread: it is a chain of coroutines, each of which awaits the next, and the last of them a future. In: the
//! library's own set of tasks. Out: each task with its name, where it stands, and what it awaits: a task, a descriptor ([`selector`]), a
//! lock and who has it ([`coroutines`]), a pool and who has something of it ([`pools`]), and
//! whose code uses what it awaits ([`uses`]); and those that have ended with an exception while others wait beside them ([`failed`]). CPython 3.8 to 3.13 is read. Tasks whose class is not the one in C (of tests, mostly) are left
//! out and counted.

mod coroutines;
mod failed;
mod pools;
mod selector;
mod uses;

use super::{Interpreter, PythonFrame, Unread};
use crate::memory::Source;
use coroutines::Chain;
pub use failed::FailedTask;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Tasks that are read.
const TASKS_MAX: usize = 10_000;

/// Tasks that a gathering future waits for, of which one is looked for that has not ended.
const GATHERED_MAX: u64 = 64;

/// The module, and what it calls its set of tasks, to 3.11 and from 3.12, and the task that each loop runs.
const MODULE: &str = "asyncio.tasks";
const ALL: [&str; 2] = ["_all_tasks", "_scheduled_tasks"];
const CURRENT: &str = "_current_tasks";

/// Classes, as the interpreter names them.
pub(super) const TASK: &str = "_asyncio.Task";
pub(super) const FUTURE: &str = "_asyncio.Future";

/// Of a module its dictionary; of a weak reference its object; of a set in Python that holds those, the set in C; of a future its loop.
const DICTIONARY: u64 = 16;
pub(super) const REFERS_TO: u64 = 16;
const MEMBERS: &str = "data";
const LOOP: u64 = 16;

/// Of a small number: its digits.
pub(super) const DIGITS: u64 = 24;

/// The state of a future that has no result yet.
const PENDING: u8 = 0;

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskStatus {
    /// Its loop runs it.
    Running,
    /// Its loop will run it.
    Ready,
    /// It awaits something.
    Waiting,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsyncTask {
    /// Its address.
    pub id: u64,
    /// Its name.
    pub name: Option<String>,
    /// What it does.
    pub status: TaskStatus,
    /// Where it stands, innermost first. Of one that runs only the outermost coroutine.
    pub frames: Vec<PythonFrame>,
    /// The task that it awaits.
    pub awaits: Option<u64>,
    /// The descriptor that it awaits.
    pub descriptor: Option<u32>,
    /// The task that is in a block of `async with` for the lock that it awaits.
    pub holder: Option<u64>,
    /// The lock that it awaits, by address.
    pub lock: Option<u64>,
    /// Those for which it is in a block of `async with`, of the locks that tasks await.
    pub holds: Vec<u64>,
    /// The pool for a thing of which it waits, by address, and its class ([`pools`]).
    pub pool: Option<(u64, String)>,
    /// Those pools of which it has something.
    pub has: Vec<u64>,
    /// The lock, event, condition or queue that it awaits, by address ([`uses`]).
    pub object: Option<u64>,
    /// Those of them that other tasks await and that its code names.
    pub uses: Vec<u64>,
}

/// All tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsyncTasks {
    /// Those that were read.
    pub all: Vec<AsyncTask>,
    /// Those beyond the limit.
    pub left_out: u64,
    /// Those that changed during the read, or are of another class.
    pub torn: u64,
    /// Those that have ended with an exception, and beside which others wait.
    pub failed: Vec<FailedTask>,
}

/// What is found first of a task.
struct Found {
    task: AsyncTask,
    chain: Chain,
    /// The future that it awaits, and its loop.
    future: u64,
    of_loop: u64,
}

impl<S: Source> Interpreter<S> {
    /// All tasks that have not ended; none where the program does not use `asyncio`.
    ///
    /// # Errors
    /// When the set of tasks does not hold together.
    pub fn tasks(&mut self) -> Result<AsyncTasks, Unread> {
        self.memory.forget();
        let mut read = AsyncTasks::default();
        let Some(set) = self.task_set().ok_or(Unread::Torn)? else {
            return Ok(read);
        };
        let (tasks, running) = (set.tasks, set.running);
        read.left_out = u64::try_from(tasks.len().saturating_sub(TASKS_MAX)).unwrap_or(u64::MAX);
        let mut found = Vec::new();
        let mut ended = Vec::new();
        for task in tasks.into_iter().take(TASKS_MAX) {
            match self.task(task, running.contains(&task)) {
                Some(Some(one)) => found.push(one),
                Some(None) => ended.push(task),
                None => read.torn += 1,
            }
        }
        self.find_holders(&mut found);
        self.find_descriptors(&mut found);
        self.find_pools(&mut found);
        let mut failed = self.failed(&ended);
        self.find_uses(&mut found, &mut failed);
        read.failed = self.beside(failed, &found);
        read.all = found.into_iter().map(|one| one.task).collect();
        Ok(read)
    }

    /// How many tasks the loops have that run one now.
    ///
    /// # Errors
    /// When the set of tasks does not hold together.
    pub fn tasks_of_busy_loops(&mut self) -> Result<u64, Unread> {
        self.memory.forget();
        let Some(set) = self.task_set().ok_or(Unread::Torn)? else {
            return Ok(0);
        };
        let mut count = 0;
        for task in set.tasks.into_iter().take(TASKS_MAX) {
            let of_loop = self.at(task, LOOP);
            let busy = of_loop.is_some_and(|of_loop| set.busy.contains(&of_loop));
            count += u64::from(busy && self.is_pending(task) == Some(true));
        }
        Ok(count)
    }

    /// The tasks that there are and those that run; `Some(None)` where `asyncio` was not imported.
    fn task_set(&mut self) -> Option<Option<TaskSet>> {
        let (layout, runtime) = (self.layout, self.place.runtime);
        let Some(objects) = layout.objects else {
            return Some(None);
        };
        let interpreter = self.memory.pointer(runtime.checked_add(layout.interpreters)?)?;
        let modules = self.at(interpreter, objects.modules)?;
        let Some(module) = self.item(modules, MODULE) else {
            return Some(None);
        };
        let dictionary = self.at(module, DICTIONARY)?;
        let set = ALL.iter().find_map(|name| self.item(dictionary, name))?;
        let set = self.attribute(set, MEMBERS)?;
        let mut tasks = Vec::new();
        for reference in self.members(set)? {
            // What was taken out leaves something else behind.
            let is_reference = |name: String| name.starts_with("weakref");
            if self.type_name(reference).is_some_and(is_reference) {
                tasks.extend(self.at(reference, REFERS_TO));
            }
        }
        tasks.retain(|task| *task != 0);
        tasks.sort_unstable();
        tasks.dedup();
        let current = self.item(dictionary, CURRENT);
        let current = current
            .and_then(|current| self.items(current))
            .unwrap_or_default();
        let (busy, running) = current.into_iter().unzip();
        Some(Some(TaskSet { tasks, running, busy }))
    }

    /// One of them; `Some(None)` if it has ended.
    fn task(&mut self, task: u64, runs: bool) -> Option<Option<Found>> {
        let fields = self.layout.objects?.tasks;
        if !self.is_a(task, TASK) {
            return None;
        }
        if !self.is_pending(task)? {
            return Some(None);
        }
        let future = self.at(task, fields.waiter)?;
        let coroutine = self.at(task, fields.coroutine)?;
        let name = self.at(task, fields.name)?;
        let name = self.task_name(name);
        let waits = future != 0 && self.is_pending(future).unwrap_or(true);
        let status = match (runs, waits) {
            (true, _) => TaskStatus::Running,
            (false, true) => TaskStatus::Waiting,
            (false, false) => TaskStatus::Ready,
        };
        let chain = self.chain(coroutine)?;
        let awaits = match status {
            TaskStatus::Waiting => self.awaited_task(future),
            TaskStatus::Running | TaskStatus::Ready => None,
        };
        let task = AsyncTask {
            id: task,
            name,
            status,
            frames: chain.shown.clone(),
            awaits,
            descriptor: None,
            holder: None,
            lock: chain.lock,
            holds: Vec::new(),
            pool: None,
            has: Vec::new(),
            object: None,
            uses: Vec::new(),
        };
        let of_loop = self.at(task.id, LOOP)?;
        Some(Some(Found {
            task,
            chain,
            future,
            of_loop,
        }))
    }

    /// A name; from 3.12 on a name that nobody has asked for is a number so far.
    fn task_name(&mut self, name: u64) -> Option<String> {
        if self.type_name(name)? == "int" {
            let number = self.memory.int(name.checked_add(DIGITS)?)?;
            return Some(format!("Task-{number}"));
        }
        self.str_at(name).filter(|name| !name.is_empty())
    }

    /// Whether a future, which a task is too, has no result yet; `None` of one of another class.
    fn is_pending(&mut self, future: u64) -> Option<bool> {
        let fields = self.layout.objects?.tasks;
        if !self.is_a(future, FUTURE) && !self.is_a(future, TASK) {
            return None;
        }
        Some(self.memory.byte(future.checked_add(fields.state)?)? == PENDING)
    }

    /// The task that a future is, or that it gathers.
    fn awaited_task(&mut self, future: u64) -> Option<u64> {
        if self.is_a(future, TASK) {
            return Some(future);
        }
        if !self.is_a(future, "_GatheringFuture") {
            return None;
        }
        let children = self.attribute(future, "_children")?;
        // A list: how many, and where they are.
        let (count, items) = (self.at(children, 16)?, self.at(children, 24)?);
        (0..count.min(GATHERED_MAX)).find_map(|number| {
            let child = self.at(items, number * 8)?;
            (self.is_a(child, TASK) && self.is_pending(child) == Some(true)).then_some(child)
        })
    }

    /// Finds out who has the locks that tasks await.
    fn find_holders(&mut self, found: &mut [Found]) {
        let mut wanted: HashMap<u64, Option<u64>> = HashMap::new();
        for one in found.iter() {
            wanted.extend(one.chain.lock.map(|lock| (lock, None)));
        }
        if wanted.is_empty() {
            return;
        }
        let mut several = HashSet::new();
        for one in found.iter_mut() {
            for frame in &one.chain.frames {
                for value in self.below_blocks(*frame).unwrap_or_default() {
                    let Some(lock) = self.bound(value, "__aexit__") else {
                        continue;
                    };
                    // Who waits has it bound, too, in a block of the library's own from 3.12 on.
                    let Some(holder) = wanted.get_mut(&lock).filter(|_| one.chain.lock != Some(lock)) else {
                        continue;
                    };
                    if !one.task.holds.contains(&lock) {
                        one.task.holds.push(lock);
                    }
                    let other = holder.replace(one.task.id);
                    if other.is_some_and(|other| other != one.task.id) {
                        // A semaphore lets several in.
                        several.insert(lock);
                    }
                }
            }
        }
        for one in found.iter_mut() {
            let lock = one.chain.lock.filter(|lock| !several.contains(lock));
            one.task.holder = lock.and_then(|lock| wanted.get(&lock).copied().flatten());
        }
    }
}

/// Tasks as the library lists them.
struct TaskSet {
    tasks: Vec<u64>,
    /// Those that run, and their loops.
    running: HashSet<u64>,
    busy: HashSet<u64>,
}
