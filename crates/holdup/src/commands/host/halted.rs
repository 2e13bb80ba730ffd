//! Processes that stand still for the whole look: a signal stopped them, a tracer holds them, or their cgroup is frozen.
//!
//! In: lists of tasks, and what children read of cgroups. Out: who stands still, and why. Who stood still in some of the lists only is left
//! out, and so is a traced process that ran between two lists: strace stops a program at each of its calls.

use super::close_looks::{Answers, Close, Question};
use super::served;
use holdup_evidence::observed::Doing;
use holdup_proc::Root;
use holdup_proc::root::text_if_there;
use holdup_proc::task_list::TaskList;
use std::collections::{BTreeMap, BTreeSet};

/// Traced processes that are followed.
const MAX_TRACED: usize = 500;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Halted {
    /// Processes that were stopped in every list so far.
    stopped: Option<BTreeSet<u32>>,
    /// Processes that a tracer held in every list so far, with how often they had gone to sleep by the first.
    traced: Option<BTreeMap<u32, u64>>,
}

/// Why a process stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Why {
    pub(super) doing: Doing,
    pub(super) tracer: Option<u32>,
    pub(super) cgroup: Option<String>,
}

impl Why {
    fn of(doing: Doing) -> Why {
        Why {
            doing,
            tracer: None,
            cgroup: None,
        }
    }
}

impl Halted {
    /// Looks at a list.
    pub(super) fn turn(&mut self, root: &Root, list: &TaskList) {
        let main = |state: char| {
            let tasks = list.busy.iter();
            tasks
                .filter(move |task| task.state == state && task.pid == task.tid)
                .map(|task| task.pid)
        };
        let stopped: BTreeSet<u32> = main('T').collect();
        self.stopped = Some(match self.stopped.take() {
            Some(before) => before.intersection(&stopped).copied().collect(),
            None => stopped,
        });
        let slept = |pid: u32| Some((pid, served::slept(&root.proc.join(pid.to_string()))?));
        let traced: BTreeMap<u32, u64> = main('t').take(MAX_TRACED).filter_map(slept).collect();
        self.traced = Some(match self.traced.take() {
            Some(mut before) => {
                before.retain(|pid, slept| traced.get(pid) == Some(slept));
                before
            }
            None => traced,
        });
    }

    /// Who stood still all the while. `before` has who was frozen when the look began.
    pub(super) fn finish(self, root: &Root, before: &Answers) -> BTreeMap<u32, Why> {
        let mut all: BTreeMap<u32, Why> = BTreeMap::new();
        let frozen = match before.frozen() {
            [] => Vec::new(),
            before => {
                let now = Close::start(root, vec![Question::Frozen]).take();
                let still = |one: &&(u32, String)| now.frozen().contains(one);
                before.iter().filter(still).cloned().collect()
            }
        };
        for (pid, cgroup) in frozen {
            let cgroup = Some(cgroup);
            all.insert(
                pid,
                Why {
                    cgroup,
                    ..Why::of(Doing::Frozen)
                },
            );
        }
        for pid in self.traced.unwrap_or_default().into_keys() {
            let tracer = tracer(root, pid);
            all.insert(
                pid,
                Why {
                    tracer,
                    ..Why::of(Doing::Traced)
                },
            );
        }
        for pid in self.stopped.unwrap_or_default() {
            // One that is frozen, too, does not run on by a signal.
            all.entry(pid).or_insert(Why::of(Doing::Stopped));
        }
        all
    }
}

/// Who traces a process.
fn tracer(root: &Root, pid: u32) -> Option<u32> {
    let status = text_if_there(&root.proc.join(pid.to_string()).join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    line.trim().parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::Halted;
    use crate::commands::host::close_looks::Answers;
    use holdup_evidence::observed::Doing;
    use holdup_proc::Root;
    use holdup_proc::task_list::{Task, TaskList};
    use std::path::Path;

    fn status(folder: &Path, pid: u32, tracer: u32, slept: u32) {
        let folder = folder.join("proc").join(pid.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("TracerPid:\t{tracer}\nvoluntary_ctxt_switches:\t{slept}\n");
        std::fs::write(folder.join("status"), text).unwrap();
    }

    fn list(tasks: &[(u32, char)]) -> TaskList {
        let task = |(pid, state): &(u32, char)| Task {
            pid: *pid,
            tid: *pid,
            state: *state,
            ..Task::default()
        };
        TaskList {
            busy: tasks.iter().map(task).collect(),
            ..TaskList::default()
        }
    }

    #[test]
    fn only_who_stands_still_all_the_while_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::below(folder.path());
        let mut halted = Halted::default();
        status(folder.path(), 7, 70, 3);
        status(folder.path(), 8, 80, 3);
        halted.turn(&root, &list(&[(5, 'T'), (6, 'T'), (7, 't'), (8, 't'), (9, 't')]));
        // One goes on, one runs between two lists, and of one nothing is known.
        status(folder.path(), 8, 80, 4);
        halted.turn(&root, &list(&[(5, 'T'), (6, 'S'), (7, 't'), (8, 't'), (9, 't')]));
        let all = halted.finish(&root, &Answers::default());
        let said: Vec<_> = all
            .iter()
            .map(|(pid, why)| (*pid, why.doing, why.tracer))
            .collect();
        assert_eq!(said, [(5, Doing::Stopped, None), (7, Doing::Traced, Some(70))]);
    }
}
