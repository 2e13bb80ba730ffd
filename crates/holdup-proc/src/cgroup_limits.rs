//! Limits of all cgroups, and how much of each is used.
//!
//! In: the cgroup trees of version 1 and 2, when a look begins and when it ends. Out: [`SeenCgroup`]s. What was refused is the
//! difference of two readings, never what was counted since the cgroup exists. Not for the main thread: the kernel's files of
//! a cgroup take locks that whoever makes cgroups holds.

use crate::cgroup_users::{CpuTimes, members, processes, users};
use crate::clocks;
use crate::root::{Root, text_if_there};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Limited, Quote, SeenCgroup};
use std::path::{Path, PathBuf};

/// Cgroups of a tree that are looked at: a machine with some hundred containers has as many, and each takes some 30 µs.
const MAX_CGROUPS: usize = 2_000;

/// Processes of which it is read what they have used of the CPUs: each takes some 15 µs, and all cgroups together have little time.
const MAX_LISTED: usize = 8_192;

/// In version 1 `memory.limit_in_bytes` is the largest multiple of a page where there is no limit.
const NO_MEMORY_LIMIT: u64 = i64::MAX as u64 & !0xffff;

/// Cgroups that have a limit.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    all: Vec<One>,
    /// When they were found, `CLOCK_MONOTONIC`.
    began: Ns,
    root: PathBuf,
    /// Whether there were more cgroups than are looked at.
    pub cut: bool,
    /// Processes of which it was read what they have used.
    #[serde(default)]
    listed: usize,
}

/// A limit.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct One {
    directory: PathBuf,
    cgroup: String,
    what: Limited,
    is_v1: bool,
    /// What the kernel had counted when the look began.
    before: Counted,
    /// Of CPU time, what each of its processes had used then; `None` where nobody looked.
    #[serde(default)]
    times: Option<CpuTimes>,
}

/// What the kernel counts.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
struct Counted {
    /// Times that somebody ran into it; periods in which CPU time was used up.
    refused: Option<u64>,
    /// Periods of CPU time.
    periods: Option<u64>,
    /// Times that the limit of memory was reached, and pages that were read again.
    hits: Option<u64>,
    read_again: Option<u64>,
}

/// Finds the limits.
#[must_use]
pub fn find(root: &Root) -> Limits {
    find_of(root, &[Limited::Tasks, Limited::Memory, Limited::CpuTime])
}

/// Finds limits on processes and threads alone.
#[must_use]
pub fn find_of_tasks(root: &Root) -> Limits {
    find_of(root, &[Limited::Tasks])
}

/// Finds limits of memory and of CPU time alone.
#[must_use]
pub fn find_slowing(root: &Root) -> Limits {
    find_of(root, &[Limited::Memory, Limited::CpuTime])
}

fn find_of(root: &Root, kinds: &[Limited]) -> Limits {
    let top = root.sys.join("fs/cgroup");
    let mut limits = Limits {
        began: clocks::monotonic(),
        root: root.proc.clone(),
        ..Limits::default()
    };
    for (name, what) in [
        ("pids", Limited::Tasks),
        ("memory", Limited::Memory),
        ("cpu", Limited::CpuTime),
    ] {
        if kinds.contains(&what) {
            limits.walk(&top.join(name), &[what], true);
        }
    }
    // Version 2 by itself, and beside version 1.
    for tree in [top.clone(), top.join("unified")] {
        if tree.join("cgroup.controllers").exists() {
            limits.walk(&tree, kinds, false);
        }
    }
    limits
}

impl Limits {
    fn walk(&mut self, tree: &Path, kinds: &[Limited], is_v1: bool) {
        let mut left: Vec<PathBuf> = vec![tree.to_owned()];
        let mut seen = 0;
        while let Some(directory) = left.pop() {
            seen += 1;
            if seen > MAX_CGROUPS {
                self.cut = true;
                return;
            }
            for what in kinds.iter().copied() {
                if limit(&directory, what, is_v1).is_some() {
                    let path = directory.strip_prefix(tree).unwrap_or(&directory);
                    self.all.push(One {
                        cgroup: format!("/{}", path.display()),
                        before: counted(&directory, what, is_v1),
                        times: match what {
                            Limited::CpuTime if self.listed < MAX_LISTED => {
                                let members = members(&directory);
                                self.listed += members.len();
                                Some(CpuTimes::of(&self.root, &members))
                            }
                            Limited::CpuTime | Limited::Tasks | Limited::Memory => None,
                        },
                        directory: directory.clone(),
                        what,
                        is_v1,
                    });
                }
            }
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            left.extend(
                entries
                    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                    .map(|entry| entry.path()),
            );
        }
    }

    /// How much of each is used now; those that are gone are left out. What was read is of this source.
    #[must_use]
    pub fn used(&self, quote: &Quote) -> Vec<SeenCgroup> {
        let watched = clocks::monotonic().saturating_sub(self.began);
        self.all
            .iter()
            .filter_map(|one| one.used(&self.root, watched, quote))
            .collect()
    }
}

impl One {
    fn used(&self, proc: &Path, watched: Ns, quote: &Quote) -> Option<SeenCgroup> {
        let limit = limit(&self.directory, self.what, self.is_v1)?;
        let now = counted(&self.directory, self.what, self.is_v1);
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        let refused = since(now.refused, self.before.refused);
        let hits = since(now.hits, self.before.hits);
        let is_hit = refused.unwrap_or(0) > 0 || hits.unwrap_or(0) > 0;
        let paused = self.what == Limited::Memory && is_paused(&self.directory, self.is_v1);
        let (used, limit, cpus) = match self.what {
            Limited::Tasks => (number(&self.directory.join("pids.current"))? as f64, limit, None),
            Limited::Memory => (memory(&self.directory, self.is_v1)?, limit, None),
            // Without a period nobody in there wanted a CPU.
            Limited::CpuTime => (
                refused? as f64,
                since(now.periods, self.before.periods)? as f64,
                Some(limit),
            ),
        };
        let near = is_hit || paused || used >= NEAR * limit;
        Some(SeenCgroup {
            users: match self.what {
                Limited::CpuTime if is_hit => {
                    let most = watched as f64 * cpus.unwrap_or_default();
                    let times = self.times.as_ref();
                    times.map_or_else(Vec::new, |times| {
                        times.users(proc, &members(&self.directory), most)
                    })
                }
                Limited::Tasks | Limited::Memory if near => users(proc, &self.directory, self.what),
                Limited::CpuTime | Limited::Tasks | Limited::Memory => Vec::new(),
            },
            paused,
            cgroup: self.cgroup.clone(),
            what: self.what,
            used,
            limit,
            refused,
            cpus,
            whole: (self.what == Limited::Memory)
                .then(|| whole(&self.directory, self.is_v1))
                .flatten(),
            hits,
            read_again: since(now.read_again, self.before.read_again),
            watched: Some(watched),
            processes: if is_hit {
                processes(proc, &self.directory)
            } else {
                Vec::new()
            },
            members: match self.what {
                Limited::CpuTime | Limited::Tasks if is_hit => members(&self.directory),
                Limited::Memory if is_hit || paused => members(&self.directory),
                _ => Vec::new(),
            },
            quote: quote.clone(),
        })
    }
}

/// The limit of a cgroup itself: tasks, bytes, CPUs. `None` where there is none.
fn limit(directory: &Path, what: Limited, is_v1: bool) -> Option<f64> {
    match (what, is_v1) {
        (Limited::Tasks, _) => number(&directory.join("pids.max")).map(|most| most as f64),
        (Limited::Memory, true) => number(&directory.join("memory.limit_in_bytes"))
            .filter(|limit| *limit < NO_MEMORY_LIMIT)
            .map(|limit| limit as f64),
        (Limited::Memory, false) => number(&directory.join("memory.max")).map(|limit| limit as f64),
        (Limited::CpuTime, true) => {
            let quota = number(&directory.join("cpu.cfs_quota_us"))?;
            let period = number(&directory.join("cpu.cfs_period_us"))?;
            (period > 0).then(|| quota as f64 / period as f64)
        }
        (Limited::CpuTime, false) => {
            let text = text_if_there(&directory.join("cpu.max"))?;
            let (quota, period) = text.trim().split_once(' ')?;
            let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
            (period > 0.0).then(|| quota / period)
        }
    }
}

fn counted(directory: &Path, what: Limited, is_v1: bool) -> Counted {
    let field = |file: &str, name: &str| field(&text_if_there(&directory.join(file))?, name);
    match (what, is_v1) {
        (Limited::Tasks, _) => Counted {
            refused: field("pids.events", "max"),
            ..Counted::default()
        },
        (Limited::Memory, true) => Counted {
            refused: field("memory.oom_control", "oom_kill"),
            hits: number(&directory.join("memory.failcnt")),
            read_again: read_again(directory, "total_"),
            ..Counted::default()
        },
        (Limited::Memory, false) => Counted {
            refused: field("memory.events", "oom_kill"),
            hits: field("memory.events", "max"),
            read_again: read_again(directory, ""),
            ..Counted::default()
        },
        (Limited::CpuTime, _) => Counted {
            refused: field("cpu.stat", "nr_throttled"),
            periods: field("cpu.stat", "nr_periods"),
            ..Counted::default()
        },
    }
}

/// Pages that came back from a disk after they were given back; major faults where the kernel does not count those. `before`: what stands
/// before the names where a cgroup and those below it are added up.
fn read_again(directory: &Path, before: &str) -> Option<u64> {
    let stat = text_if_there(&directory.join("memory.stat"))?;
    let value = |name: &str| field(&stat, &format!("{before}{name}"));
    let refaults = value("workingset_refault_file").or_else(|| value("workingset_refault"));
    refaults.or_else(|| value("pgmajfault"))
}

/// Bytes with cached files.
fn whole(directory: &Path, is_v1: bool) -> Option<f64> {
    let file = if is_v1 {
        "memory.usage_in_bytes"
    } else {
        "memory.current"
    };
    number(&directory.join(file)).map(|bytes| bytes as f64)
}

/// Part of a limit from which it is told who has used it.
const NEAR: f64 = 0.9;

/// Whether somebody has no memory, and nobody may be killed for it: only version 1 can be told so.
fn is_paused(directory: &Path, is_v1: bool) -> bool {
    let control = || text_if_there(&directory.join("memory.oom_control"));
    let is_set = |text: &str, name| field(text, name) == Some(1);
    is_v1 && control().is_some_and(|text| is_set(&text, "oom_kill_disable") && is_set(&text, "under_oom"))
}

/// Bytes that can't be given back: what is there without cached files, which the kernel drops before it refuses anything.
fn memory(directory: &Path, is_v1: bool) -> Option<f64> {
    let (file, names): (_, &[&str]) = match is_v1 {
        true => (
            "memory.usage_in_bytes",
            &["total_inactive_file", "total_active_file"],
        ),
        false => (
            "memory.current",
            &["inactive_file", "active_file", "slab_reclaimable"],
        ),
    };
    let all = number(&directory.join(file))?;
    let stat = text_if_there(&directory.join("memory.stat"))?;
    let cached: u64 = names.iter().filter_map(|name| field(&stat, name)).sum();
    Some(all.saturating_sub(cached) as f64)
}

/// `None` for "max", for -1 and for no file: no limit.
fn number(file: &Path) -> Option<u64> {
    text_if_there(file)?.trim().parse().ok()
}

/// The number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::root::Tree;
    use holdup_evidence::observed::{Limited, Quote};

    #[test]
    fn version_1_and_what_happened_meanwhile() {
        let tree = Tree::new(&[
            ("sys/fs/cgroup/pids/a/pids.max", "20\n"),
            ("sys/fs/cgroup/pids/a/pids.current", "19\n"),
            ("sys/fs/cgroup/pids/a/pids.events", "max 7\n"),
            ("sys/fs/cgroup/pids/b/pids.max", "max\n"),
            ("sys/fs/cgroup/pids/b/pids.current", "9\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/m/n/memory.limit_in_bytes", "1000000\n"),
            ("sys/fs/cgroup/memory/m/n/memory.usage_in_bytes", "990000\n"),
            (
                "sys/fs/cgroup/memory/m/n/memory.stat",
                "cache 1\ntotal_inactive_file 90000\ntotal_active_file 400000\ntotal_pgmajfault 100\n",
            ),
            (
                "sys/fs/cgroup/memory/m/n/memory.oom_control",
                "oom_kill_disable 1\nunder_oom 1\noom_kill 1\n",
            ),
            ("sys/fs/cgroup/memory/m/n/memory.failcnt", "20\n"),
            ("sys/fs/cgroup/memory/m/n/cgroup.procs", "7\n8\n"),
            ("proc/7/comm", "python3\n"),
            ("proc/7/cmdline", "python3\0/srv/app.py\0"),
            ("proc/7/statm", "900 20 4 1 0 9 0\n"),
            ("proc/8/comm", "cc1\n"),
            ("proc/8/statm", "900 120 20 1 0 9 0\n"),
            ("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/cpu/c/cpu.stat",
                "nr_periods 100\nnr_throttled 10\n",
            ),
            ("sys/fs/cgroup/cpu/c/cgroup.procs", "7\n"),
            ("sys/fs/cgroup/cpu/c/below/cgroup.procs", "9\n10\n"),
            ("sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n"),
        ]);
        let limits = find(&tree.root);
        for (file, text) in [
            ("pids/a/pids.events", "max 9\n"),
            ("cpu/c/cpu.stat", "nr_periods 150\nnr_throttled 40\n"),
            ("memory/m/n/memory.failcnt", "95\n"),
            (
                "memory/m/n/memory.stat",
                "cache 1\ntotal_inactive_file 90000\ntotal_active_file 400000\ntotal_pgmajfault 600\n",
            ),
        ] {
            std::fs::write(tree.path(&format!("sys/fs/cgroup/{file}")), text).unwrap();
        }
        let memory = limits.used(&Quote::default()).swap_remove(1);
        assert_eq!(
            (memory.hits, memory.read_again, memory.whole),
            (Some(75), Some(500), Some(990_000.0))
        );
        assert!(memory.paused);
        assert_eq!(memory.members, [7, 8]);
        let users: Vec<_> = (memory.users.iter())
            .map(|one| (one.name.as_str(), one.pid, one.amount))
            .collect();
        assert_eq!(users, [("cc1", 8, 409_600.0), ("python3 app.py", 7, 65_536.0)]);
        assert_eq!(
            (memory.processes.len(), memory.processes[0].name.as_str()),
            (2, "python3 app.py")
        );
        let all = limits.used(&Quote::default());
        assert_eq!(all[2].members, [7, 9, 10]);
        let listed: Vec<_> = all
            .into_iter()
            .map(|one| (one.cgroup, one.what, one.used, one.limit, one.refused, one.cpus))
            .collect();
        assert_eq!(
            listed,
            [
                ("/a".to_owned(), Limited::Tasks, 19.0, 20.0, Some(2), None),
                ("/m/n".to_owned(), Limited::Memory, 500_000.0, 1e6, Some(0), None),
                ("/c".to_owned(), Limited::CpuTime, 30.0, 50.0, Some(30), Some(0.5)),
            ]
        );
        assert!(!limits.cut);
    }

    #[test]
    fn version_2_has_all_in_one_tree() {
        let tree = Tree::new(&[
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n"),
            ("sys/fs/cgroup/x/pids.max", "max\n"),
            ("sys/fs/cgroup/x/memory.max", "1000\n"),
            ("sys/fs/cgroup/x/memory.current", "900\n"),
            (
                "sys/fs/cgroup/x/memory.stat",
                "anon 5\ninactive_file 100\nactive_file 200\nslab_reclaimable 50\n",
            ),
            ("sys/fs/cgroup/x/memory.events", "low 0\noom_kill 3\n"),
            ("sys/fs/cgroup/x/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/x/y/cpu.max", "200000 100000\n"),
            (
                "sys/fs/cgroup/x/y/cpu.stat",
                "usage_usec 5\nnr_periods 10\nnr_throttled 1\n",
            ),
        ]);
        let listed: Vec<_> = find(&tree.root)
            .used(&Quote::default())
            .into_iter()
            .map(|one| (one.cgroup, one.what, one.used, one.limit, one.cpus))
            .collect();
        assert_eq!(
            listed,
            [
                ("/x".to_owned(), Limited::Memory, 550.0, 1000.0, None),
                ("/x/y".to_owned(), Limited::CpuTime, 0.0, 0.0, Some(2.0)),
            ]
        );
        assert!(find(&Tree::new(&[]).root).used(&Quote::default()).is_empty());
    }
}
