//! File systems that a process serves (FUSE), and threads that wait for one.
//!
//! In: the tree. Out: mounts, who answers for each, and threads that sleep in a function of FUSE. They sleep in state S, so no list of
//! blocked tasks has them.

use holdup_evidence::Cause;
use holdup_knowledge::file_systems;
use holdup_knowledge::functions::{self, Meaning};
use holdup_proc::descriptors::FuseServer;
use holdup_proc::mountinfo::Line;
use holdup_proc::root::text_if_there;
use holdup_proc::{Root, mountinfo, tasks};
use std::collections::HashMap;

/// Threads that are looked through for those that wait for a file system of a process.
const MAX_THREADS: usize = 20_000;

/// The process that answers for a mount: by the device, where the kernel tells it, else the only one that there is.
pub(super) fn daemon(servers: &[FuseServer], mount: &Line) -> Option<u32> {
    let exact = servers.iter().find(|one| one.device == Some(mount.device));
    let only = || match servers {
        [one] if one.device.is_none() => Some(one),
        _ => None,
    };
    exact.or_else(only).map(|one| one.pid)
}

/// The only one of these for whose answers somebody waits, as the kernel counts them: a path that leads over a link does not tell.
pub(super) fn only_awaited<'a>(root: &Root, mounts: &'a [Line]) -> Option<&'a Line> {
    let awaited = |mount: &&Line| {
        let folder = root
            .sys
            .join("fs/fuse/connections")
            .join(mount.device.minor.to_string());
        let count = text_if_there(&folder.join("waiting")).unwrap_or_default();
        count.trim().parse::<u64>().is_ok_and(|count| count > 0)
    };
    let mut awaited = mounts.iter().filter(awaited);
    awaited.next().filter(|_| awaited.next().is_none())
}

/// File systems that processes of this machine serve.
pub(super) fn mounts(root: &Root) -> Vec<Line> {
    let mounts = mountinfo::read(root, &mut Vec::new());
    let served = |mount: &Line| file_systems::is_served_here(&mount.file_system);
    mounts.into_iter().filter(served).collect()
}

/// Threads that sleep in a wait for a file system of a process, with how often they have gone to sleep. Looked for only where there is such
/// a file system: it is one file for each thread.
pub(super) fn waiters(root: &Root) -> HashMap<(u32, u32), u64> {
    let mut waiters = HashMap::new();
    if mounts(root).is_empty() {
        return waiters;
    }
    let mut seen = 0;
    for pid in tasks::processes(root) {
        for tid in tasks::threads(root, pid) {
            seen += 1;
            if seen > MAX_THREADS {
                return waiters;
            }
            let folder = root.proc.join(pid.to_string()).join("task").join(tid.to_string());
            let function = text_if_there(&folder.join("wchan")).unwrap_or_default();
            let meaning = functions::meaning(functions::plain(function.trim()));
            let waits = matches!(
                meaning,
                Some(Meaning::Is(_, Cause::FsFuse) | Meaning::Innermost(_, Cause::FsFuse))
            );
            if let Some(slept) = waits.then(|| slept(&folder)).flatten() {
                waiters.insert((pid, tid), slept);
            }
        }
    }
    waiters
}

/// How often a thread has gone to sleep.
pub(super) fn slept(folder: &std::path::Path) -> Option<u64> {
    let status = text_if_there(&folder.join("status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}
