//! Tasks of Python's `asyncio` when observation ends, and which of them were in the same place at an earlier look.
//!
//! A task that waits has no thread. In: processes that may have an interpreter. Out: their tasks with where each stands and what it awaits.
//! The reading is that of interpreters ([`super::interpreters`]).

use super::goroutines::Parked;
use super::interpreters::Interpreters;
use super::task_peers::Peers;
use holdup_evidence::facts::FailedTask;
use holdup_evidence::{Frame, NotMeasured, Ns, RuntimeTask, TaskChannels, TaskDoes, TaskRuntime};
use holdup_knowledge::asyncio::DRAINS;
use holdup_proc::{Root, clocks, names};
use holdup_runtimes::python::{self, AsyncTask, PythonFrame, TaskStatus};
use holdup_symbols::{Interpreted, ProcessKey, UserStacks};
use std::collections::BTreeMap;

/// Processes that are asked.
const PROCESSES_MAX: usize = 64;

/// Tasks of all processes that are listed; each has a stack.
const LISTED_MAX: usize = 1_000;

/// Tasks of a process that have failed and are listed, and frames of each.
const FAILED_MAX: usize = 8;
const FAILED_FRAMES_MAX: usize = 16;

/// One that has failed, as facts have it.
fn failed_task(pid: u32, one: python::FailedTask) -> FailedTask {
    let frames = one.frames.iter().map(|one| Frame::clone(&one.frame));
    let mut frames: Vec<Frame> = frames.collect();
    // The outermost is its own function.
    let own = frames.pop();
    frames.truncate(FAILED_FRAMES_MAX - 1);
    frames.extend(own);
    FailedTask {
        pid,
        name: one.name,
        exception: one.exception,
        frames,
        unasked: one.unasked,
        waiting: one.waiting,
        by_name: one.by_name,
    }
}

/// The first look at tasks that wait.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    at: Ns,
    /// By process and number.
    stands: BTreeMap<(u32, u64), Vec<PythonFrame>>,
}

impl FirstLook {
    /// Looks at the tasks of these processes, where nobody has looked before.
    pub(super) fn look(
        &mut self,
        interpreters: &mut Interpreters,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) {
        if self.at > 0 {
            return;
        }
        let processes = interpreters.of_python(stacks, processes);
        for (pid, process) in processes.into_iter().take(PROCESSES_MAX) {
            let tasks = interpreters.tasks(stacks, process, pid).unwrap_or_default();
            let room = LISTED_MAX.saturating_sub(self.stands.len());
            let waiting = tasks
                .all
                .into_iter()
                .filter(|one| one.status == TaskStatus::Waiting);
            self.stands
                .extend(waiting.take(room).map(|one| ((pid, one.id), one.frames)));
        }
        // When it is over: each stood there by then.
        self.at = clocks::monotonic();
    }

    /// Since when this one is known to stand as it does now.
    fn stood_since(&self, pid: u32, now: &AsyncTask) -> Option<Ns> {
        let stand = self.stands.get(&(pid, now.id))?;
        let same = now.status == TaskStatus::Waiting && *stand == now.frames && !now.frames.is_empty();
        same.then_some(self.at)
    }
}

/// Adds the tasks of these processes.
pub(super) fn add(
    parked: &mut Parked,
    interpreters: &mut Interpreters,
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    first: &FirstLook,
) {
    let processes = interpreters.of_python(stacks, processes);
    let more = processes.len().saturating_sub(PROCESSES_MAX);
    if more > 0 {
        parked.not_measured.push(NotMeasured {
            what: format!("asyncio tasks of {more} more Python processes"),
            why: format!("tasks of {PROCESSES_MAX} processes are read"),
            fix: "observe fewer processes (-p PID --only)".into(),
        });
    }
    let mut peers = Peers::default();
    for (pid, process) in processes.into_iter().take(PROCESSES_MAX) {
        let Some(read) = interpreters.tasks(stacks, process, pid) else {
            continue;
        };
        let name = names::comm(&Root::system(), pid).unwrap_or_default();
        let room = LISTED_MAX.saturating_sub(parked.tasks.len());
        let more = u64::try_from(read.all.len().saturating_sub(room)).unwrap_or(u64::MAX);
        let unlisted = read.left_out.saturating_add(read.torn).saturating_add(more);
        if unlisted > 0 {
            parked.not_measured.push(NotMeasured {
                what: format!("{unlisted} more asyncio tasks of {name} (pid {pid})"),
                why: format!(
                    "a report lists {LISTED_MAX} tasks, and those that did not change while they were read"
                ),
                fix: "none is needed for causes".into(),
            });
        }
        let failed = read.failed.into_iter().take(FAILED_MAX);
        parked.failed.extend(failed.map(|one| failed_task(pid, one)));
        for task in read.all.into_iter().take(room) {
            let stood_since = first.stood_since(pid, &task);
            let innermost = task.frames.first().and_then(|one| one.frame.symbol.as_deref());
            let sends = innermost == Some(DRAINS);
            let (pool, reason) = task.pool.unzip();
            let object = task.object.filter(|object| task.lock != Some(*object));
            let frames: Vec<Interpreted> = task
                .frames
                .into_iter()
                .map(|PythonFrame { frame, entry }| Interpreted { frame, entry })
                .collect();
            let peer = task.descriptor.and_then(|number| match sends {
                true => peers.of_any(pid, number),
                false => peers.of(pid, number),
            });
            let opened = task.descriptor.and_then(|number| match peer {
                Some(_) => peers.of_process(pid, number),
                None => peers.opened(pid, number),
            });
            parked.tasks.push(RuntimeTask {
                runtime: TaskRuntime::Asyncio,
                pid,
                process: name.clone(),
                id: task.id,
                does: match task.status {
                    TaskStatus::Running => TaskDoes::Runs,
                    TaskStatus::Ready => TaskDoes::Ready,
                    TaskStatus::Waiting => TaskDoes::Waits,
                },
                reason,
                since: None,
                stood_since,
                stack: (!frames.is_empty()).then(|| stacks.intern_interpreted(&frames)),
                name: task.name,
                blocks: None,
                started_by: None,
                awaits: task.awaits,
                descriptor: task.descriptor,
                peer,
                opened,
                called_in: None,
                holder: task.holder,
                holder_thread: None,
                datagrams: false,
                channels: TaskChannels {
                    awaits: task.lock.into_iter().chain(object).chain(pool).collect(),
                    refers: task.holds.into_iter().chain(task.has).collect(),
                    uses: task.uses,
                    timed: false,
                },
            });
        }
    }
}
