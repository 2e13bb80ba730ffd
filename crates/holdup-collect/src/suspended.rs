//! Asynchronous functions of Node.js programs that stand at an `await` when observation ends, and which of them stood there at an earlier look.
//!
//! Such a function has no thread. In: processes that may have an engine. Out: their functions that wait, as tasks. The reading is that of
//! interpreters ([`super::interpreters`]).

use super::goroutines::Parked;
use super::interpreters::Interpreters;
use holdup_evidence::{NotMeasured, Ns, RuntimeTask, TaskChannels, TaskDoes, TaskRuntime};
use holdup_proc::{Root, clocks, names};
use holdup_symbols::{Interpreted, ProcessKey, UserStacks};
use std::collections::BTreeSet;

/// Processes that are asked: a sweep of a heap takes some milliseconds.
const PROCESSES_MAX: usize = 16;

/// Functions of all processes that are listed; each has a stack.
const LISTED_MAX: usize = 1_000;

/// The first look at functions that wait.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    at: Ns,
    /// By process and number.
    stands: BTreeSet<(u32, u64)>,
}

impl FirstLook {
    /// Looks at the functions of these processes, where nobody has looked before.
    pub(super) fn look(
        &mut self,
        interpreters: &mut Interpreters,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) {
        if self.at > 0 {
            return;
        }
        for (pid, process) in interpreters
            .of_node(stacks, processes)
            .into_iter()
            .take(PROCESSES_MAX)
        {
            let found = interpreters.suspended(stacks, process, pid).unwrap_or_default();
            self.stands.extend(found.all.into_iter().map(|one| (pid, one.id)));
        }
        // When it is over: each stood there by then.
        self.at = clocks::monotonic();
    }
}

/// Adds the functions of these processes.
pub(super) fn add(
    parked: &mut Parked,
    interpreters: &mut Interpreters,
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    first: &FirstLook,
) {
    let processes = interpreters.of_node(stacks, processes);
    let mut unlisted: u64 = processes.len().saturating_sub(PROCESSES_MAX) as u64;
    for (pid, process) in processes.into_iter().take(PROCESSES_MAX) {
        let Some(read) = interpreters.suspended(stacks, process, pid) else {
            unlisted += 1;
            continue;
        };
        let name = names::comm(&Root::system(), pid).unwrap_or_default();
        let room = LISTED_MAX.saturating_sub(parked.tasks.len());
        let more = (read.all.len().saturating_sub(room) as u64).saturating_add(read.left_out);
        if more > 0 {
            parked.not_measured.push(NotMeasured {
                what: format!("{more} more calls of async functions of {name} (pid {pid})"),
                why: format!("a report lists {LISTED_MAX} tasks"),
                fix: "none is needed for causes".into(),
            });
        }
        for one in read.all.into_iter().take(room) {
            let stood = first.at > 0 && first.stands.contains(&(pid, one.id));
            let (reason, called_in) = one
                .awaited
                .map_or((None, None), |awaited| (Some(awaited.expression), awaited.file));
            let frames: Vec<Interpreted> = one
                .frames
                .into_iter()
                .map(|one| Interpreted {
                    frame: one.frame,
                    entry: one.entry,
                })
                .collect();
            parked.tasks.push(RuntimeTask {
                runtime: TaskRuntime::Node,
                pid,
                process: name.clone(),
                id: one.id,
                does: TaskDoes::Waits,
                reason,
                since: None,
                stood_since: stood.then_some(first.at),
                channels: TaskChannels::default(),
                stack: (!frames.is_empty()).then(|| stacks.intern_interpreted(&frames)),
                name: None,
                started_by: None,
                awaits: None,
                descriptor: None,
                peer: None,
                opened: None,
                called_in,
                holder: None,
                holder_thread: None,
                datagrams: false,
            });
        }
    }
    if unlisted > 0 {
        parked.not_measured.push(NotMeasured {
            what: format!("which async functions of {unlisted} Node.js processes wait"),
            why: format!("heaps of {PROCESSES_MAX} processes are read, if they are small and lie still"),
            fix: "observe fewer processes (-p PID --only)".into(),
        });
    }
}
