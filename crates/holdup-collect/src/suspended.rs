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

/// Time between two looks at the shortest, nanoseconds: functions that stood a second ago are said to wait.
const LOOK_AGAIN_NS: Ns = 900_000_000;

/// Time until the next try where no process could be read, nanoseconds, and how many such tries there are.
const TRY_AGAIN_NS: Ns = 100_000_000;
const TRIES_MAX: u32 = 20;

/// How much longer than it took the time until the next look is at least, and which part of the time since the first one: of a long observation
/// there are few looks.
const SPARSELY: Ns = 5;
const PART_OF_ALL: Ns = 3;

/// Looks that are kept: the first and the last ones.
const LOOKS_MAX: usize = 16;

/// The looks at functions that wait.
///
/// V8 moves what is young: a function that waits has another address after that, and is taken for another one. What has been moved twice stays
/// where it is, so that a later look meets it again.
#[derive(Debug, Default)]
pub(super) struct Looks {
    all: Vec<Look>,
    /// When the next one is due.
    due: Ns,
    failed: u32,
}

/// One of them.
#[derive(Debug)]
struct Look {
    at: Ns,
    /// By process and number.
    stands: BTreeSet<(u32, u64)>,
}

impl Looks {
    /// Looks at the functions of these processes, if a look is due.
    pub(super) fn look(
        &mut self,
        interpreters: &mut Interpreters,
        stacks: &mut UserStacks,
        processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    ) {
        let begun = clocks::monotonic();
        if begun < self.due || self.failed >= TRIES_MAX {
            return;
        }
        let processes = interpreters.of_node(stacks, processes);
        let mut stands = BTreeSet::new();
        let mut read = processes.is_empty();
        for (pid, process) in processes.into_iter().take(PROCESSES_MAX) {
            let Some(found) = interpreters.suspended(stacks, process, pid) else {
                continue;
            };
            read = true;
            stands.extend(found.all.into_iter().map(|one| (pid, one.id)));
        }
        // When it is over: each stood there by then.
        let at = clocks::monotonic();
        if !read {
            self.failed += 1;
            self.due = at.saturating_add(TRY_AGAIN_NS);
            return;
        }
        let took = at.saturating_sub(begun).saturating_mul(SPARSELY);
        let since = self.all.first().map_or(0, |first| at.saturating_sub(first.at));
        self.due = at.saturating_add(took.max(LOOK_AGAIN_NS).max(since / PART_OF_ALL));
        if self.all.len() >= LOOKS_MAX {
            self.all.remove(1);
        }
        self.all.push(Look { at, stands });
    }

    /// Since when this one is known to stand: the first of the looks at which it was met, each time since.
    fn stood_since(&self, pid: u32, id: u64) -> Option<Ns> {
        let met = |look: &&Look| look.stands.contains(&(pid, id));
        let met = self.all.iter().rev().take_while(met);
        met.last().map(|look| look.at)
    }
}

/// Adds the functions of these processes.
pub(super) fn add(
    parked: &mut Parked,
    interpreters: &mut Interpreters,
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
    looks: &Looks,
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
            let stood_since = looks.stood_since(pid, one.id);
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
                stood_since,
                channels: TaskChannels::default(),
                stack: (!frames.is_empty()).then(|| stacks.intern_interpreted(&frames)),
                name: None,
                blocks: None,
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

#[cfg(test)]
mod tests {
    use super::{Look, Looks};

    fn looks(all: &[(u64, &[u64])]) -> Looks {
        let look = |(at, ids): &(u64, &[u64])| Look {
            at: *at,
            stands: ids.iter().map(|id| (7, *id)).collect(),
        };
        Looks {
            all: all.iter().map(look).collect(),
            ..Looks::default()
        }
    }

    #[test]
    fn a_wait_is_as_old_as_the_first_look_of_those_that_met_it_without_a_break() {
        let looks = looks(&[(10, &[1, 2]), (20, &[2, 3]), (30, &[1, 2, 3])]);
        assert_eq!(looks.stood_since(7, 2), Some(10));
        assert_eq!(looks.stood_since(7, 3), Some(20), "it was moved, or is new");
        assert_eq!(
            looks.stood_since(7, 1),
            Some(30),
            "another one had this address before"
        );
        assert_eq!(looks.stood_since(7, 4), None);
        assert_eq!(looks.stood_since(8, 2), None, "another process");
    }

    #[test]
    fn who_was_not_met_last_has_gone_on() {
        assert_eq!(looks(&[(10, &[1]), (20, &[])]).stood_since(7, 1), None);
    }
}
