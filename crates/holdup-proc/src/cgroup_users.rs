//! Who is in a cgroup, and who has most of what it limits.
//!
//! In: the folder of a cgroup. Out: its processes, and programs with what their processes have: tasks, memory, and of CPU time what they used
//! while it was watched. Reads arguments of processes, which may block: not for the main thread.

use crate::root::{Root, text_if_there};
use crate::{names, page, task_list, tasks, titles};
use holdup_evidence::observed::{CgroupUser, Limited, SeenProcess};
use holdup_knowledge::programs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Processes of a cgroup that are named.
const NAMED: usize = 3;

/// The first few processes of a cgroup. Reads their arguments, which may block.
pub(crate) fn processes(proc: &Path, directory: &Path) -> Vec<SeenProcess> {
    let list = text_if_there(&directory.join("cgroup.procs")).unwrap_or_default();
    let pids = list
        .lines()
        .filter_map(|line| line.parse::<u32>().ok())
        .take(NAMED);
    let root = Root {
        proc: proc.to_owned(),
        ..Root::system()
    };
    let named = pids.filter_map(|pid| {
        let comm = names::comm(&root, pid)?;
        let look_up = || programs::named(&comm, titles::arguments(&root, pid)?.iter().map(String::as_str));
        let name = programs::is_interpreter(&comm).then(look_up).flatten();
        Some(SeenProcess {
            pid,
            name: name.unwrap_or(comm),
            ..SeenProcess::default()
        })
    });
    named.collect()
}

/// Processes of a cgroup that are listed by their ids alone, and cgroups below it that are looked through.
const LISTED: usize = 512;
const BELOW: usize = 64;

/// The processes of a cgroup and of those below, which share its limit.
pub(crate) fn members(directory: &Path) -> Vec<u32> {
    let mut left: Vec<PathBuf> = vec![directory.to_owned()];
    let mut members: Vec<u32> = Vec::new();
    for _ in 0..BELOW {
        let Some(directory) = left.pop() else { break };
        let list = text_if_there(&directory.join("cgroup.procs")).unwrap_or_default();
        let room = LISTED.saturating_sub(members.len());
        members.extend(
            list.lines()
                .filter_map(|line| line.parse::<u32>().ok())
                .take(room),
        );
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(folders.map(|entry| entry.path()).take(BELOW));
    }
    members
}

/// Programs that are told.
const USERS: usize = 4;

/// The programs that have most of what a cgroup limits. Reads arguments, which may block.
pub(crate) fn users(proc: &Path, directory: &Path, what: Limited) -> Vec<CgroupUser> {
    let root = Root {
        proc: proc.to_owned(),
        ..Root::system()
    };
    let mut most: BTreeMap<u32, f64> = BTreeMap::new();
    for pid in members(directory) {
        let amount = match what {
            Limited::Memory => resident(&root, pid),
            Limited::Tasks | Limited::CpuTime => Some(tasks::threads(&root, pid).len() as f64),
        };
        most.extend(amount.map(|amount| (pid, amount)));
    }
    by_program(&root, most)
}

/// What programs have, by what their processes have; most first.
fn by_program(root: &Root, most: BTreeMap<u32, f64>) -> Vec<CgroupUser> {
    let mut users: BTreeMap<String, (CgroupUser, f64)> = BTreeMap::new();
    for (pid, amount) in most {
        let Some(comm) = names::comm(root, pid) else {
            continue;
        };
        let look_up = || programs::named(&comm, titles::arguments(root, pid)?.iter().map(String::as_str));
        let script = programs::is_interpreter(&comm).then(look_up).flatten();
        let name = script.unwrap_or(comm);
        let (user, largest) = users.entry(name.clone()).or_default();
        user.name = name;
        user.processes += 1;
        user.amount += amount;
        if user.pid == 0 || amount > *largest {
            (user.pid, *largest) = (pid, amount);
        }
    }
    let mut users: Vec<CgroupUser> = users.into_values().map(|(user, _)| user).collect();
    users.sort_by(|a, b| b.amount.total_cmp(&a.amount));
    users.truncate(USERS);
    users
}

/// Bytes of a process that are in memory, those that it shares with others left out.
fn resident(root: &Root, pid: u32) -> Option<f64> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("statm"))?;
    let mut pages = text.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let (all, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some((all.saturating_sub(shared)) as f64 * page::bytes() as f64)
}

/// Nanoseconds of a tick of `/proc/PID/stat`: on every Linux of today 100 a second (`USER_HZ`).
const TICK_NS: f64 = 1e7;

/// By how much more than a quota its tasks can use: what a period began with, and the grain of ticks.
const MAX_OVER: f64 = 1.25;

/// What processes of a cgroup had used of the CPUs at an instant.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct CpuTimes(BTreeMap<u32, Used>);

/// What a process has used, in ticks since it began.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Used {
    began: u64,
    parent: u32,
    own: u64,
    /// Of children that have ended.
    children: u64,
}

impl CpuTimes {
    /// What these processes have used until now.
    pub(crate) fn of(proc: &Path, members: &[u32]) -> CpuTimes {
        let used = members.iter().filter_map(|pid| {
            let process = task_list::process(&proc.join(pid.to_string()))?;
            let used = Used {
                began: process.began,
                parent: process.parent,
                own: process.ticks,
                children: process.children_ticks,
            };
            Some((*pid, used))
        });
        CpuTimes(used.collect())
    }

    /// The programs that used most since then, in nanoseconds. What children used that have ended since then counts for who started them: a
    /// compiler lives for a moment, and its `make` for the hour. `most`: what all can have used together, nanoseconds. Whose children used more
    /// had them in other cgroups, or from long before.
    pub(crate) fn users(&self, proc: &Path, members: &[u32], most: f64) -> Vec<CgroupUser> {
        let now = CpuTimes::of(proc, members);
        let most = (most * MAX_OVER / TICK_NS) as u64;
        let since = now
            .0
            .iter()
            .map(|(pid, used)| (*pid, self.since(*pid, *used, (&now, most))));
        let since = since.filter(|(_, ticks)| *ticks > 0);
        let root = Root {
            proc: proc.to_owned(),
            ..Root::system()
        };
        by_program(
            &root,
            since.map(|(pid, ticks)| (pid, ticks as f64 * TICK_NS)).collect(),
        )
    }

    /// What a process used since then, in ticks.
    fn since(&self, pid: u32, used: Used, (now, most): (&CpuTimes, u64)) -> u64 {
        // An id may be another process by now.
        let before = self.0.get(&pid).filter(|before| before.began == used.began);
        let own = used.own.saturating_sub(before.map_or(0, |before| before.own));
        // Its children's time has all that those used who ended, also before it was watched.
        let counted = self
            .0
            .iter()
            .filter(|(child, one)| one.parent == pid && !now.0.contains_key(child));
        let counted: u64 = counted.map(|(_, one)| one.own.saturating_add(one.children)).sum();
        let children = used
            .children
            .saturating_sub(before.map_or(0, |before| before.children));
        Some(own.saturating_add(children.saturating_sub(counted)))
            .filter(|all| *all <= most)
            .unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuTimes;
    use crate::root::Tree;

    /// A `stat` with parent, own and children's ticks, and when it began.
    fn stat(pid: u32, name: &str, parent: u32, [own, children, began]: [u64; 3]) -> String {
        format!("{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {children} 0 20 0 1 0 {began} 0 9\n")
    }

    #[test]
    fn what_was_used_meanwhile_by_processes_and_by_children_that_ended() {
        let tree = Tree::new(&[
            ("proc/7/stat", &stat(7, "make", 1, [5, 100, 50])),
            ("proc/7/comm", "make\n"),
            ("proc/8/stat", &stat(8, "server", 1, [9_000, 0, 50])),
            ("proc/8/comm", "server\n"),
            // A child that ends meanwhile: what it had used before is none of the watched time.
            ("proc/9/stat", &stat(9, "cc1", 7, [400, 0, 60])),
        ]);
        let proc = tree.path("proc");
        let before = CpuTimes::of(&proc, &[7, 8, 9]);
        std::fs::remove_dir_all(tree.path("proc/9")).unwrap();
        for (file, text) in [
            ("proc/7/stat", stat(7, "make", 1, [6, 560, 50])),
            ("proc/8/stat", stat(8, "server", 1, [9_002, 0, 50])),
        ] {
            std::fs::write(tree.path(file), text).unwrap();
        }
        let said = |before: &CpuTimes| {
            let users = before.users(&proc, &[7, 8], 1e9);
            let told = users.into_iter().map(|one| (one.name, one.pid, one.amount / 1e7));
            told.collect::<Vec<_>>()
        };
        let of = |name: &str, pid, ticks| (name.to_owned(), pid, ticks);
        assert_eq!(said(&before), [of("make", 7, 61.0), of("server", 8, 2.0)]);
        // More than all can have used together: children of elsewhere.
        let few = before.users(&proc, &[7, 8], 1e7);
        assert!(few.iter().all(|one| one.amount <= 2e7), "{few:?}");
        // The id is another process's by now, whose whole life is in the watched time.
        std::fs::write(tree.path("proc/8/stat"), stat(8, "server", 1, [3, 0, 90])).unwrap();
        assert_eq!(said(&before), [of("make", 7, 61.0), of("server", 8, 3.0)]);
    }
}
