//! What a cgroup's memory controller counts.
//!
//! In: where a process is. Out: [`MemoryCgroup`], of the nearest level that has a limit: what is above or below says
//! nothing of it.

use super::{Membership, NO_MEMORY_LIMIT, Place, file_number};
use crate::page;
use crate::root::text_if_there;
use holdup_evidence::facts::MemoryCgroup;
use std::path::{Path, PathBuf};

/// The counters as they are now.
pub(super) fn read(membership: &Membership) -> MemoryCgroup {
    let old = |directory: &Path| {
        let limit = file_number(&directory.join("memory.limit_in_bytes"));
        limit.is_some_and(|limit| limit < NO_MEMORY_LIMIT)
    };
    let new = |directory: &Path| {
        let limited = |file| file_number(&directory.join(file)).is_some();
        limited("memory.max") || limited("memory.high")
    };
    match level(membership.memory.as_ref(), &old) {
        Some((directory, cgroup)) => version_1(&directory, cgroup),
        None => level(membership.unified.as_ref(), &new)
            .map(|(directory, cgroup)| version_2(&directory, cgroup))
            .unwrap_or_default(),
    }
}

/// What has been counted since; nothing where the cgroup is gone or another.
pub(super) fn since(before: &MemoryCgroup, mut now: MemoryCgroup) -> MemoryCgroup {
    if now.cgroup != before.cgroup {
        return MemoryCgroup {
            cgroup: before.cgroup.clone(),
            oom_killer: before.oom_killer,
            ..MemoryCgroup::default()
        };
    }
    let difference = |now: &mut Option<u64>, before: Option<u64>| {
        *now = now.zip(before).map(|(now, before)| now.saturating_sub(before));
    };
    difference(&mut now.limit_reached, before.limit_reached);
    difference(&mut now.high_reached, before.high_reached);
    difference(&mut now.files_again, before.files_again);
    difference(&mut now.memory_again, before.memory_again);
    now
}

/// The nearest level that has a limit.
fn level(place: Option<&Place>, limited: &dyn Fn(&Path) -> bool) -> Option<(PathBuf, String)> {
    place?.levels().find(|(directory, _)| limited(directory))
}

fn version_1(directory: &Path, cgroup: String) -> MemoryCgroup {
    let stat = text_if_there(&directory.join("memory.stat")).unwrap_or_default();
    let control = text_if_there(&directory.join("memory.oom_control")).unwrap_or_default();
    MemoryCgroup {
        cgroup: Some(cgroup),
        limit_reached: file_number(&directory.join("memory.failcnt")),
        high_reached: None,
        files_again: field(&stat, "workingset_refault_file").map(page::reported),
        memory_again: field(&stat, "workingset_refault_anon").map(page::reported),
        oom_killer: field(&control, "oom_kill_disable").map(|disabled| disabled == 0),
    }
}

fn version_2(directory: &Path, cgroup: String) -> MemoryCgroup {
    let stat = text_if_there(&directory.join("memory.stat")).unwrap_or_default();
    let events = text_if_there(&directory.join("memory.events")).unwrap_or_default();
    MemoryCgroup {
        cgroup: Some(cgroup),
        limit_reached: field(&events, "max"),
        high_reached: field(&events, "high"),
        files_again: field(&stat, "workingset_refault_file").map(page::reported),
        memory_again: field(&stat, "workingset_refault_anon").map(page::reported),
        oom_killer: Some(true),
    }
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.trim().parse().ok())?
    })
}
