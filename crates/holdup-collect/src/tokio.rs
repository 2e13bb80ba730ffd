//! Tasks of tokio when observation ends, and which of them were in the same place at an earlier look.
//!
//! A task that waits has no thread. In: processes, and the types that debug information describes ([`holdup_symbols::Futures`]). Out: their tasks with
//! where each stands, what it awaits, and who has it. Debug information is read meanwhile, so the first look is once that is done. Reading memory can
//! block, so a child does it that can be left behind ([`super::behind`]).

#[cfg(test)]
mod tests;

use super::behind::{Answerer, Readers};
use super::goroutines::Parked;
use super::task_peers::Peers;
use holdup_evidence::{Frame, NotMeasured, Ns, RuntimeTask, TaskChannels, TaskDoes, TaskRuntime};
use holdup_jvm::Running;
use holdup_proc::{Root, clocks, maps, memory, names, tasks};
use holdup_runtimes::tokio::{Does, Place, Program, SLEEPERS_MAX, Sleeper, Task, Tasks};
use holdup_symbols::{FoundFutures, Futures, Interpreted, ProcessKey, UserStacks};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Processes that are asked: a sweep of what one has allocated takes some milliseconds.
const PROCESSES_MAX: usize = 16;

/// Tasks of all processes that are listed; each has a stack.
const LISTED_MAX: usize = 1_000;

/// Time between two questions for what is being read, nanoseconds.
const ASK_AGAIN_NS: Ns = 100_000_000;

/// How long debug information is waited for at the end, in all.
const PATIENCE: Duration = Duration::from_secs(4);

/// Where a task stood, and how often the thread that blocks on it had blocked by then: each future of a loop is in the same place of its stack.
#[derive(Debug)]
struct Stand {
    frames: Vec<Arc<Frame>>,
    turns: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    pid: u32,
    place: Place,
}

/// Tasks; nothing where they cannot be read.
type Answer = Option<Tasks>;

/// The first look at tasks that wait.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    /// When it is asked for next.
    due: Ns,
    /// When each process was looked at.
    looked: BTreeMap<u32, Ns>,
    /// Processes of which nothing is to be read.
    without: BTreeSet<ProcessKey>,
    /// By process and number.
    stands: BTreeMap<(u32, u64), Stand>,
}

impl FirstLook {
    /// Looks at the tasks of these processes whose types are known by now, where nobody has looked before.
    pub(super) fn look(
        &mut self,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) {
        let now = clocks::monotonic();
        if now < self.due {
            return;
        }
        self.due = now.saturating_add(ASK_AGAIN_NS);
        let mut readers: Option<Readers<Question, Answer>> = None;
        for (pid, process) in processes {
            if self.looked.len() >= PROCESSES_MAX
                || self.looked.contains_key(&pid)
                || self.without.contains(&process)
            {
                continue;
            }
            match stacks.futures(process, Duration::ZERO) {
                Futures::Pending => {}
                Futures::Nothing => {
                    self.without.insert(process);
                }
                Futures::Found(found) => {
                    let readers = readers.get_or_insert_with(|| Readers::new(answerer));
                    let read = ask(readers, pid, &found).unwrap_or_default();
                    let room = LISTED_MAX.saturating_sub(self.stands.len());
                    let waiting = read.all.into_iter().filter(|task| task.does == Does::Waits);
                    self.stands.extend(waiting.take(room).map(|task| {
                        let stand = Stand {
                            frames: task.frames,
                            turns: task.turns,
                        };
                        ((pid, task.id), stand)
                    }));
                    // When it is over: each stood there by then.
                    self.looked.insert(pid, clocks::monotonic());
                }
            }
        }
    }

    /// Since when this one is known to stand as it does now.
    fn stood_since(&self, pid: u32, now: &Task) -> Option<Ns> {
        let stand = self.stands.get(&(pid, now.id))?;
        let same = now.does == Does::Waits
            && stand.turns == now.turns
            && stand.frames == now.frames
            && !now.frames.is_empty();
        self.looked.get(&pid).copied().filter(|_| same)
    }
}

/// Adds the tasks of these processes.
pub(super) fn add(
    parked: &mut Parked,
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    first: &FirstLook,
) {
    let mut readers: Option<Readers<Question, Answer>> = None;
    let mut peers = Peers::default();
    let mut left = PATIENCE;
    for (pid, process) in processes {
        if first.without.contains(&process) || parked.tokio_read.len() >= PROCESSES_MAX {
            continue;
        }
        let began = std::time::Instant::now();
        let found = stacks.futures(process, left);
        left = left.saturating_sub(began.elapsed());
        let Futures::Found(found) = found else { continue };
        let readers = readers.get_or_insert_with(|| Readers::new(answerer));
        // Its tasks are described, so a reason other than that is said where they are not read.
        parked.tokio_read.push(pid);
        let name = names::comm(&Root::system(), pid).unwrap_or_else(|| found.file.clone());
        let Some(read) = ask(readers, pid, &found) else {
            parked.not_measured.push(NotMeasured {
                what: format!("what tasks of tokio in {name} (pid {pid}) wait for"),
                why: "its memory could not be read, or has more tasks than could be read in time".into(),
                fix: "observe again when the machine has a free CPU".into(),
            });
            continue;
        };
        let room = LISTED_MAX.saturating_sub(parked.tasks.len());
        let more = (read.all.len().saturating_sub(room) as u64).saturating_add(read.left_out);
        if more > 0 {
            parked.not_measured.push(NotMeasured {
                what: format!("places of {more} more tokio tasks of {name} (pid {pid})"),
                why: format!("a report lists {LISTED_MAX} tasks"),
                fix: "none is needed for causes".into(),
            });
        }
        for task in read.all.into_iter().take(room) {
            let stood_since = first.stood_since(pid, &task);
            let task = of_report(task, pid, &name, &found.file, stacks, &mut peers);
            parked.tasks.push(RuntimeTask { stood_since, ..task });
        }
    }
}

fn of_report(
    task: Task,
    pid: u32,
    process: &str,
    file: &str,
    stacks: &mut UserStacks,
    peers: &mut Peers,
) -> RuntimeTask {
    let frames: Vec<Interpreted> = task
        .frames
        .into_iter()
        .map(|frame| Interpreted {
            frame: Arc::new(Frame {
                module: Some(file.to_owned()),
                ..(*frame).clone()
            }),
            entry: true,
        })
        .collect();
    let peer = task.descriptor.and_then(|number| peers.of(pid, number));
    let opened = task
        .descriptor
        .filter(|_| peer.is_none())
        .and_then(|number| peers.opened(pid, number));
    RuntimeTask {
        runtime: TaskRuntime::Tokio,
        pid,
        process: process.to_owned(),
        id: task.id,
        does: match task.does {
            Does::Runs => TaskDoes::Runs,
            Does::Ready => TaskDoes::Ready,
            Does::Waits => TaskDoes::Waits,
        },
        reason: match task.several {
            true => None,
            false => task.reason,
        },
        since: None,
        stood_since: None,
        channels: TaskChannels {
            awaits: task.objects,
            refers: task.has,
            uses: task.sends_to,
            timed: false,
        },
        stack: (!frames.is_empty()).then(|| stacks.intern_interpreted(&frames)),
        name: task.thread.map(|tid| blocking_name(pid, tid)),
        blocks: task.thread,
        started_by: None,
        awaits: task.awaits,
        descriptor: task.descriptor,
        peer,
        opened,
        called_in: None,
        holder: None,
        holder_thread: None,
        datagrams: false,
    }
}

/// What the future is called on which a thread blocks: futures have no names.
fn blocking_name(pid: u32, tid: u32) -> String {
    let name = || names::comm(&Root::system(), tid).unwrap_or_else(|| tid.to_string());
    match tid == pid {
        true => "main".to_owned(),
        false => format!("block_on of {}", name()),
    }
}

fn ask(readers: &mut Readers<Question, Answer>, pid: u32, found: &FoundFutures) -> Answer {
    let place = Place {
        layouts: Arc::clone(&found.layouts),
        moved: found.moved,
        mapped: found.mapped.clone(),
    };
    readers.ask_patiently(pid, Question { pid, place }).flatten()
}

/// What a child does.
fn answerer() -> Answerer<Question, Answer> {
    Box::new(|Question { pid, place }| {
        let root = Root::system();
        let mut allocated = maps::anonymous(&root, pid)?;
        allocated.extend(maps::heap(&root, pid));
        let first = allocated.first()?.start;
        // Where reading memory would end this process, it is not tried.
        if memory::is_refused(pid, first) {
            return None;
        }
        let blocks = !place.layouts.blocking.is_empty();
        let mut program = Program::find(Running(pid), place)?;
        let asleep = match blocks {
            true => asleep(&root, pid, &allocated),
            false => Vec::new(),
        };
        let sleepers: Vec<Sleeper> = asleep.iter().map(|(sleeper, _)| sleeper.clone()).collect();
        let mut tasks = program.tasks(&allocated, &sleepers)?;
        // What was read of the stack of one that has run meanwhile may be parts of two states.
        tasks.all.retain_mut(|task| {
            let thread = asleep.iter().find(|(one, _)| Some(one.tid) == task.thread);
            task.turns = thread.map(|(_, turns)| *turns);
            thread.is_none_or(|(one, turns)| turns_asleep(&root, one.tid, one.stack.start) == Some(*turns))
        });
        Some(tasks)
    })
}

/// The threads of a process that sleep in a call, with how often each had blocked by then.
fn asleep(root: &Root, pid: u32, allocated: &[Range<u64>]) -> Vec<(Sleeper, u64)> {
    let main = maps::main_stack(root, pid);
    let one = |tid: u32| {
        let start = tasks::stack_pointer(root, tid)?;
        let turns = turns_asleep(root, tid, start)?;
        let mut stacks = allocated.iter().chain(&main);
        let end = stacks.find(|stack| stack.contains(&start))?.end;
        let stack = start..end;
        Some((Sleeper { tid, stack }, turns))
    };
    tasks::threads(root, pid)
        .into_iter()
        .filter_map(one)
        .take(SLEEPERS_MAX)
        .collect()
}

/// How often a thread has blocked that sleeps in a call with this stack pointer.
fn turns_asleep(root: &Root, tid: u32, sp: u64) -> Option<u64> {
    let turns = memory::voluntary_switches(root, tid)?;
    let sleeps = tasks::stack_pointer(root, tid) == Some(sp);
    sleeps.then_some(turns)
}
