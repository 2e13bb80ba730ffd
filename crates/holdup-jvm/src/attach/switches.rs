//! How often each thread of a process has been switched, and which have not been meanwhile.
//!
//! A thread whose counts are the same before and after a dump did not run in between: what the dump says of it is what it did all
//! the while.

use holdup_proc::root::text_if_there;
use holdup_proc::{Root, tasks};
use std::collections::{HashMap, HashSet};

/// Threads of which the counts are read; of more nothing is known.
const MAX_THREADS: usize = 16_384;

/// Counts at one instant, by the id that the kernel shows us.
#[derive(Debug)]
pub(super) struct Switches {
    threads: u32,
    of: HashMap<u32, Counts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// Its id in its own pid namespace.
    inside: u32,
    voluntary: u64,
    involuntary: u64,
    /// Whether it does not run, nor wants to.
    blocked: bool,
}

/// Threads that did not run, by their ids in their own pid namespace, as a dump has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unmoved(HashSet<u32>);

impl Unmoved {
    /// These.
    #[must_use]
    pub fn of(inside: impl IntoIterator<Item = u32>) -> Unmoved {
        Unmoved(inside.into_iter().collect())
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn has(&self, inside: u32) -> bool {
        self.0.contains(&inside)
    }
}

impl Switches {
    pub(super) fn count(root: &Root, pid: u32) -> Switches {
        let threads = tasks::threads(root, pid);
        let counted = threads.iter().take(MAX_THREADS);
        Switches {
            threads: u32::try_from(threads.len()).unwrap_or(u32::MAX),
            of: counted
                .filter_map(|tid| Some((*tid, Counts::read(root, *tid)?)))
                .collect(),
        }
    }

    pub(super) fn threads(&self) -> u32 {
        self.threads
    }

    /// Those whose counts are the same now.
    pub(super) fn unmoved(&self, root: &Root) -> Unmoved {
        let same = |(tid, before): (&u32, &Counts)| {
            (Counts::read(root, *tid) == Some(*before)).then_some(before.inside)
        };
        Unmoved::of(self.of.iter().filter_map(same))
    }
}

impl Counts {
    fn read(root: &Root, tid: u32) -> Option<Counts> {
        let text = text_if_there(&root.proc.join(tid.to_string()).join("status"))?;
        let of = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key))
                .map(str::trim)
        };
        Some(Counts {
            inside: of("NSpid:")?.split_whitespace().next_back()?.parse().ok()?,
            voluntary: of("voluntary_ctxt_switches:")?.parse().ok()?,
            involuntary: of("nonvoluntary_ctxt_switches:")?.parse().ok()?,
            blocked: !of("State:")?.starts_with('R'),
        })
    }
}

/// Whether a thread that is not the machine's own waits, and has since a moment ago: it was not switched between two looks.
/// `is_own` tells those by their names. The looks are `apart`.
#[must_use]
pub fn waits(root: &Root, pid: u32, apart: std::time::Duration, is_own: &dyn Fn(&str) -> bool) -> bool {
    let before = Switches::count(root, pid);
    std::thread::sleep(apart);
    let others = |tid: &u32| holdup_proc::names::comm(root, *tid).is_some_and(|name| !is_own(&name));
    before
        .of
        .iter()
        .any(|(tid, counts)| counts.blocked && others(tid) && Counts::read(root, *tid) == Some(*counts))
}

#[cfg(test)]
mod tests {
    use super::{Switches, waits};
    use holdup_proc::Root;
    use std::time::Duration;
    use tempfile::TempDir;

    fn write(folder: &TempDir, tid: u32, voluntary: u64, involuntary: u64) {
        let process = folder.path().join("proc").join(tid.to_string());
        std::fs::create_dir_all(folder.path().join(format!("proc/7/task/{tid}"))).unwrap();
        std::fs::create_dir_all(&process).unwrap();
        let inside = tid + 100;
        let text = format!(
            "State:\tS (sleeping)\nNSpid:\t{tid}\t{inside}\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{involuntary}\n"
        );
        std::fs::write(process.join("status"), text).unwrap();
        std::fs::write(process.join("comm"), format!("till-{tid}\n")).unwrap();
    }

    #[test]
    fn who_was_switched_either_way_ran_meanwhile() {
        let folder = TempDir::new().unwrap();
        for tid in 7..=9 {
            write(&folder, tid, 5, 3);
        }
        let root = Root::below(folder.path());
        let before = Switches::count(&root, 7);
        write(&folder, 8, 6, 3);
        write(&folder, 9, 5, 4);
        let unmoved = before.unmoved(&root);
        assert_eq!(before.threads(), 3);
        assert_eq!(
            [107, 108, 109, 7].map(|tid| unmoved.has(tid)),
            [true, false, false, false]
        );
    }

    #[test]
    fn the_machines_own_threads_wait_for_nobody() {
        let folder = TempDir::new().unwrap();
        write(&folder, 7, 5, 3);
        let root = Root::below(folder.path());
        assert!(waits(&root, 7, Duration::ZERO, &|_| false));
        assert!(!waits(&root, 7, Duration::ZERO, &|name| name == "till-7"));
        let status = folder.path().join("proc/7/status");
        let text = std::fs::read_to_string(&status).unwrap();
        std::fs::write(status, text.replace("S (sleeping)", "R (running)")).unwrap();
        assert!(!waits(&root, 7, Duration::ZERO, &|_| false), "it runs");
    }
}
