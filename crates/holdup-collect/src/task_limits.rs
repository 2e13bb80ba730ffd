//! Limits on processes and threads that observed processes run into.
//!
//! The problem: a program that cannot fork sleeps and tries again; no event of the scheduler tells why. In: what the kernel had counted of
//! cgroups when observation begins; when it ends, the same once more, and who has how many processes. Out: limits that are used up. The kernel's
//! files of a cgroup, and arguments of processes, are read by a child that can be abandoned ([`super::behind`]).

use super::behind::Readers;
use holdup_evidence::facts::{TaskLimit, TaskUser, TasksOf};
use holdup_evidence::observed::{Quote, SeenCgroup};
use holdup_knowledge::programs;
use holdup_proc::cgroup_limits::{self, Limits};
use holdup_proc::{Root, names, task_limits, tasks, titles};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Limits that are kept, processes of each that are named, and programs that are kept.
const KEPT_MAX: usize = 16;
const NAMED_MAX: usize = 256;
const PROGRAMS_MAX: usize = 8;

/// What was counted when observation began.
#[derive(Debug, Default)]
pub(super) struct TaskLimits(Option<Limits>);

impl TaskLimits {
    /// Begins.
    pub(super) fn begin() -> TaskLimits {
        let mut reader: Readers<(), Limits> =
            Readers::new(|| Box::new(|()| cgroup_limits::find_of_tasks(&Root::system())));
        TaskLimits(reader.ask_patiently(0, ()))
    }

    /// Limits of these processes that are used up.
    pub(super) fn finish(self, observed: &BTreeSet<u32>) -> Vec<TaskLimit> {
        let root = Root::system();
        let mut found: Vec<TaskLimit> = self.cgroups(observed);
        for user in task_limits::used_up(&root, observed.iter()) {
            found.push(TaskLimit {
                of: TasksOf::User(task_limits::user(&root, user.uid)),
                limit: user.limit,
                used: user.used,
                refused: None,
                binds: user.binds,
                programs: programs(&user.processes),
            });
        }
        found.truncate(KEPT_MAX);
        found
    }

    fn cgroups(self, observed: &BTreeSet<u32>) -> Vec<TaskLimit> {
        let Some(limits) = self.0 else {
            return Vec::new();
        };
        let mut reader: Readers<Limits, Vec<SeenCgroup>> =
            Readers::new(|| Box::new(|limits: Limits| limits.used(&Quote::default())));
        let seen = reader.ask_patiently(0, limits).unwrap_or_default();
        let hit = seen.into_iter().filter(|one| one.refused.unwrap_or(0) > 0);
        let root = Root::system();
        let limit = |one: SeenCgroup| {
            let binds: Vec<u32> = one
                .members
                .iter()
                .copied()
                .filter(|pid| observed.contains(pid))
                .collect();
            let counted = one.members.iter().take(NAMED_MAX);
            let counted = counted.map(|pid| (*pid, tasks::threads(&root, *pid).len() as u64));
            let processes: Vec<(u32, u64)> = counted.collect();
            (!binds.is_empty()).then(|| TaskLimit {
                of: TasksOf::Cgroup(one.cgroup),
                limit: one.limit as u64,
                used: one.used as u64,
                refused: one.refused,
                binds,
                programs: programs(&processes),
            })
        };
        hit.filter_map(limit).collect()
    }
}

/// Processes with their threads, by program, the one with most first.
fn programs(processes: &[(u32, u64)]) -> Vec<TaskUser> {
    let root = Root::system();
    let mut readers: Readers<u32, Option<Vec<String>>> =
        Readers::new(|| Box::new(|pid| titles::arguments(&Root::system(), pid)));
    let mut by_name: BTreeMap<String, TaskUser> = BTreeMap::new();
    for (pid, threads) in processes.iter().take(NAMED_MAX) {
        let Some(comm) = names::comm(&root, *pid) else {
            continue;
        };
        let script = programs::is_interpreter(&comm).then(|| {
            let arguments = readers.ask(*pid, *pid).flatten()?;
            programs::named(&comm, arguments.iter().map(String::as_str))
        });
        let name = script.flatten().unwrap_or(comm);
        let one = by_name.entry(name.clone()).or_insert_with(|| TaskUser {
            name,
            pid: *pid,
            tasks: 0,
        });
        one.pid = one.pid.min(*pid);
        one.tasks = one.tasks.saturating_add(*threads);
    }
    let mut programs: Vec<TaskUser> = by_name.into_values().collect();
    programs.sort_by_key(|one| (Reverse(one.tasks), one.pid));
    programs.truncate(PROGRAMS_MAX);
    programs
}
