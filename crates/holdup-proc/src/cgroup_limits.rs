//! Limits of all cgroups, and how much of each is used.
//!
//! In: the cgroup trees of version 1 and 2, when a look begins and when it ends. Out: [`SeenCgroup`]s. What was refused is the
//! difference of two readings, never what was counted since the cgroup exists. Not for the main thread: the kernel's files of
//! a cgroup take locks that whoever makes cgroups holds.

use crate::root::{Root, text_if_there};
use holdup_evidence::observed::{Limited, Quote, SeenCgroup};
use std::path::{Path, PathBuf};

/// Cgroups of a tree that are looked at: a machine with some hundred containers has as many, and each takes some 30 µs.
const MOST: usize = 2_000;

/// In version 1 `memory.limit_in_bytes` is the largest multiple of a page where there is no limit.
const NO_MEMORY_LIMIT: u64 = i64::MAX as u64 & !0xffff;

/// Cgroups that have a limit.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    all: Vec<One>,
    /// Whether there were more cgroups than are looked at.
    pub cut: bool,
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
}

/// What the kernel counts.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
struct Counted {
    /// Times that somebody ran into it; periods in which CPU time was used up.
    refused: Option<u64>,
    /// Periods of CPU time.
    periods: Option<u64>,
}

/// Finds the limits.
#[must_use]
pub fn find(root: &Root) -> Limits {
    let top = root.sys.join("fs/cgroup");
    let mut limits = Limits::default();
    for (name, what) in [
        ("pids", Limited::Tasks),
        ("memory", Limited::Memory),
        ("cpu", Limited::CpuTime),
    ] {
        limits.walk(&top.join(name), &[what], true);
    }
    // Version 2 by itself, and beside version 1.
    for tree in [top.clone(), top.join("unified")] {
        if tree.join("cgroup.controllers").exists() {
            limits.walk(&tree, &[Limited::Tasks, Limited::Memory, Limited::CpuTime], false);
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
            if seen > MOST {
                self.cut = true;
                return;
            }
            for what in kinds.iter().copied() {
                if limit(&directory, what, is_v1).is_some() {
                    let path = directory.strip_prefix(tree).unwrap_or(&directory);
                    self.all.push(One {
                        cgroup: format!("/{}", path.display()),
                        before: counted(&directory, what, is_v1),
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
        self.all.iter().filter_map(|one| one.used(quote)).collect()
    }
}

impl One {
    fn used(&self, quote: &Quote) -> Option<SeenCgroup> {
        let limit = limit(&self.directory, self.what, self.is_v1)?;
        let now = counted(&self.directory, self.what, self.is_v1);
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        let refused = since(now.refused, self.before.refused);
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
        Some(SeenCgroup {
            cgroup: self.cgroup.clone(),
            what: self.what,
            used,
            limit,
            refused,
            cpus,
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
            periods: None,
        },
        (Limited::Memory, true) => Counted {
            refused: field("memory.oom_control", "oom_kill"),
            periods: None,
        },
        (Limited::Memory, false) => Counted {
            refused: field("memory.events", "oom_kill"),
            periods: None,
        },
        (Limited::CpuTime, _) => Counted {
            refused: field("cpu.stat", "nr_throttled"),
            periods: field("cpu.stat", "nr_periods"),
        },
    }
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
                "cache 1\ntotal_inactive_file 90000\ntotal_active_file 400000\n",
            ),
            (
                "sys/fs/cgroup/memory/m/n/memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
            ),
            ("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/cpu/c/cpu.stat",
                "nr_periods 100\nnr_throttled 10\n",
            ),
            ("sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n"),
        ]);
        let limits = find(&tree.root);
        for (file, text) in [
            ("pids/a/pids.events", "max 9\n"),
            ("cpu/c/cpu.stat", "nr_periods 150\nnr_throttled 40\n"),
        ] {
            std::fs::write(tree.path(&format!("sys/fs/cgroup/{file}")), text).unwrap();
        }
        let told: Vec<_> = limits
            .used(&Quote::default())
            .into_iter()
            .map(|one| (one.cgroup, one.what, one.used, one.limit, one.refused, one.cpus))
            .collect();
        assert_eq!(
            told,
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
        let told: Vec<_> = find(&tree.root)
            .used(&Quote::default())
            .into_iter()
            .map(|one| (one.cgroup, one.what, one.used, one.limit, one.cpus))
            .collect();
        assert_eq!(
            told,
            [
                ("/x".to_owned(), Limited::Memory, 550.0, 1000.0, None),
                ("/x/y".to_owned(), Limited::CpuTime, 0.0, 0.0, Some(2.0)),
            ]
        );
        assert!(find(&Tree::new(&[]).root).used(&Quote::default()).is_empty());
    }
}
