//! Cgroups that are frozen: nothing in them runs until somebody thaws them.
//!
//! In: the cgroup trees. Out: paths of the frozen ones that have processes in them, without those below a frozen one. Not for
//! the main thread: the kernel's files of a cgroup take locks that whoever makes cgroups holds.

use crate::root::{Root, text_if_there};
use std::path::{Path, PathBuf};

/// Cgroups that are looked at: a host with two thousand containers has some ten thousand.
const MAX_CGROUPS: usize = 20_000;

/// Processes in frozen cgroups that are reported.
const MAX_PROCESSES: usize = 2_000;

/// The frozen ones.
#[must_use]
pub fn read(root: &Root) -> Vec<String> {
    let top = root.sys.join("fs/cgroup");
    // Version 2 by itself, beside version 1, and the freezer of version 1.
    let trees = [top.clone(), top.join("unified"), top.join("freezer")];
    let mut frozen = Vec::new();
    for tree in &trees {
        // The files of the other version are not there; a tree of controllers is no cgroup.
        if text_if_there(&tree.join("cgroup.procs")).is_some() {
            walk(tree, &mut frozen);
        }
    }
    frozen
}

/// Processes in frozen cgroups and below them, each with the frozen cgroup.
#[must_use]
pub fn processes(root: &Root) -> Vec<(u32, String)> {
    let top = root.sys.join("fs/cgroup");
    let mut found = Vec::new();
    for cgroup in read(root) {
        let below = cgroup.trim_start_matches('/');
        for tree in [top.clone(), top.join("unified"), top.join("freezer")] {
            let folder = tree.join(below);
            if is_frozen(&folder) {
                members(&folder, &cgroup, &mut found);
                break;
            }
        }
    }
    found
}

/// The processes of a cgroup and of those below it.
fn members(folder: &Path, cgroup: &str, found: &mut Vec<(u32, String)>) {
    let mut left = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = left.pop() {
        seen += 1;
        let list = text_if_there(&folder.join("cgroup.procs")).unwrap_or_default();
        let pids = list.lines().filter_map(|line| line.trim().parse().ok());
        let room = MAX_PROCESSES.saturating_sub(found.len());
        found.extend(pids.take(room).map(|pid| (pid, cgroup.to_owned())));
        if seen > MAX_CGROUPS || found.len() >= MAX_PROCESSES {
            return;
        }
        left.extend(folders(&folder));
    }
}

/// Whether a process is in a frozen one.
#[must_use]
pub fn is(root: &Root, pid: u32) -> bool {
    let top = root.sys.join("fs/cgroup");
    let lists = text_if_there(&root.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
    lists.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            return false;
        };
        let trees = match controllers {
            "" => [top.clone(), top.join("unified")],
            "freezer" => [top.join("freezer"), top.join("freezer")],
            _ => return false,
        };
        // What is outside of our own part of the tree is reported as a way upwards.
        let inside = !path.split('/').any(|step| step == "..");
        inside
            && trees
                .iter()
                .any(|tree| is_frozen(&tree.join(path.trim_start_matches('/'))))
    })
}

fn walk(tree: &Path, frozen: &mut Vec<String>) {
    let mut left: Vec<PathBuf> = vec![tree.to_owned()];
    let mut seen = 0;
    while let Some(cgroup) = left.pop() {
        seen += 1;
        if seen > MAX_CGROUPS {
            return;
        }
        if is_frozen(&cgroup) {
            let path = cgroup.strip_prefix(tree).unwrap_or(&cgroup);
            frozen.push(format!("/{}", path.display()));
            continue;
        }
        left.extend(folders(&cgroup));
    }
}

/// The cgroups right below one.
fn folders(cgroup: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(cgroup).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

fn is_frozen(cgroup: &Path) -> bool {
    if let Some(events) = text_if_there(&cgroup.join("cgroup.events")) {
        let has = |line: &str| events.lines().any(|other| other == line);
        return has("frozen 1") && has("populated 1");
    }
    let frozen = text_if_there(&cgroup.join("freezer.state"));
    let populated =
        || text_if_there(&cgroup.join("cgroup.procs")).is_some_and(|list| !list.trim().is_empty());
    frozen.is_some_and(|state| state.trim() == "FROZEN") && populated()
}

#[cfg(test)]
mod tests {
    use super::{is, read};
    use crate::root::Tree;

    #[test]
    fn both_versions_and_only_those_with_processes() {
        let tree = Tree::new(&[
            ("sys/fs/cgroup/freezer/cgroup.procs", "1\n"),
            ("sys/fs/cgroup/freezer/a/freezer.state", "FROZEN\n"),
            ("sys/fs/cgroup/freezer/a/cgroup.procs", "12\n"),
            ("sys/fs/cgroup/freezer/a/b/freezer.state", "FROZEN\n"),
            ("sys/fs/cgroup/freezer/a/b/cgroup.procs", "13\n"),
            ("sys/fs/cgroup/freezer/empty/freezer.state", "FROZEN\n"),
            ("sys/fs/cgroup/freezer/empty/cgroup.procs", ""),
            ("sys/fs/cgroup/unified/cgroup.procs", "1\n"),
            (
                "sys/fs/cgroup/unified/c/d/cgroup.events",
                "populated 1\nfrozen 1\n",
            ),
            ("sys/fs/cgroup/unified/e/cgroup.events", "populated 0\nfrozen 1\n"),
            ("sys/fs/cgroup/unified/f/cgroup.events", "populated 1\nfrozen 0\n"),
        ]);
        let mut frozen = read(&tree.root);
        frozen.sort();
        assert_eq!(frozen, ["/a", "/c/d"]);
        assert!(read(&Tree::new(&[]).root).is_empty());
        let mut processes = super::processes(&tree.root);
        processes.sort();
        assert_eq!(processes, [(12, "/a".to_owned()), (13, "/a".to_owned())]);
    }

    #[test]
    fn a_process_is_frozen_with_its_cgroup() {
        let tree = Tree::new(&[
            ("proc/7/cgroup", "4:freezer:/a\n0::/elsewhere\n"),
            ("proc/8/cgroup", "4:memory:/a\n0::/c:d\n"),
            ("proc/9/cgroup", "0::/../c:d\n4:freezer:/b\n"),
            ("sys/fs/cgroup/freezer/a/freezer.state", "FROZEN\n"),
            ("sys/fs/cgroup/freezer/a/cgroup.procs", "7\n"),
            ("sys/fs/cgroup/c:d/cgroup.events", "populated 1\nfrozen 1\n"),
        ]);
        assert_eq!(
            [7, 8, 9, 10].map(|pid| is(&tree.root, pid)),
            [true, true, false, false]
        );
    }
}
