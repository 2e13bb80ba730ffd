//! `/proc/PID/comm`: names of processes that a run had to do with.
//!
//! Only `comm`: reading `cmdline` takes the process's address space lock and can block for as long as the
//! very stall that is being looked at.

use crate::root::{Root, text_if_there};
use std::path::PathBuf;

/// The name of a process that still exists, hostile text of at most 15 bytes.
#[must_use]
pub fn comm(root: &Root, pid: u32) -> Option<String> {
    comm_of(root, &pid.to_string())
}

/// The name of the process that reads this.
#[must_use]
pub fn own(root: &Root) -> Option<String> {
    comm_of(root, "self")
}

fn comm_of(root: &Root, process: &str) -> Option<String> {
    let text = text_if_there(&root.proc.join(process).join("comm"))?;
    Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The process of a thread that still exists.
#[must_use]
pub fn process_of(root: &Root, tid: u32) -> Option<u32> {
    let text = text_if_there(&root.proc.join(tid.to_string()).join("status"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}

/// The process that a process is a child of; 0: of none.
#[must_use]
pub fn parent(root: &Root, pid: u32) -> Option<u32> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("status"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}

/// The letter of the state that a process's first thread is in.
#[must_use]
pub fn state(root: &Root, pid: u32) -> Option<char> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("status"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("State:"))?
        .trim_start()
        .chars()
        .next()
}

/// Where a process looks up paths: its mount namespace, and its root in that, which `chroot` moves.
#[must_use]
pub fn place(root: &Root, pid: u32) -> Option<(String, PathBuf)> {
    let top = std::fs::read_link(root.proc.join(pid.to_string()).join("root")).ok()?;
    Some((namespace(root, pid, "mnt")?, top))
}

/// Which network namespace a process is in, as the kernel names it (`net:[4026531840]`).
#[must_use]
pub fn network_namespace(root: &Root, pid: u32) -> Option<String> {
    namespace(root, pid, "net")
}

/// The same of any kind of namespace (`pid`, `mnt` …).
#[must_use]
pub fn namespace(root: &Root, pid: u32, kind: &str) -> Option<String> {
    let link = std::fs::read_link(root.proc.join(pid.to_string()).join("ns").join(kind)).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// A process's id in its own pid namespace.
#[must_use]
pub fn process_inside(root: &Root, pid: u32) -> Option<u32> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("status"))?;
    let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

/// How many CPUs a process's first thread may run on.
#[must_use]
pub fn allowed_cpus(root: &Root, pid: u32) -> Option<u32> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("status"))?;
    let list = text
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    let ranges = list.trim().split(',').map(count);
    ranges.sum::<Option<u32>>().filter(|cpus| *cpus > 0)
}

/// A process's cgroup: of version 2, else of the hierarchy with the longest path, for version 1 has several; `None` at their
/// roots. Its names are anybody's.
#[must_use]
pub fn cgroup(root: &Root, pid: u32) -> Option<String> {
    let text = text_if_there(&root.proc.join(pid.to_string()).join("cgroup"))?;
    let paths = text
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .filter(|path| *path != "/");
    let second = text.lines().find_map(|line| line.strip_prefix("0::"));
    let second = second.filter(|path| *path != "/");
    second
        .or_else(|| paths.max_by_key(|path| path.len()))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{allowed_cpus, cgroup, comm, process_inside, process_of};
    use crate::root::Tree;

    #[test]
    fn a_name_may_contain_anything() {
        let tree = Tree::new(&[("proc/7/comm", " a\nb \n")]);
        assert_eq!(comm(&tree.root, 7).as_deref(), Some(" a\nb "));
        assert_eq!(comm(&tree.root, 8), None);
    }

    #[test]
    fn a_thread_belongs_to_the_process_that_its_status_names() {
        let tree = Tree::new(&[
            ("proc/9/status", "Name:\tTgid:\t1\nTgid:\t7\nPid:\t9\n"),
            ("proc/10/status", ""),
        ]);
        assert_eq!(process_of(&tree.root, 9), Some(7));
        assert_eq!(process_of(&tree.root, 10), None);
        assert_eq!(process_of(&tree.root, 11), None);
    }

    #[test]
    fn cpus_are_counted_over_all_ranges() {
        let cpus = |list: &str| {
            let status = format!("Name:\tx\nCpus_allowed_list:\t{list}\n");
            let tree = Tree::new(&[("proc/9/status", status.as_str())]);
            allowed_cpus(&tree.root, 9)
        };
        assert_eq!(cpus("0-1"), Some(2));
        assert_eq!(cpus("3"), Some(1));
        assert_eq!(cpus("0-3,8,10-11"), Some(7));
        assert_eq!(cpus(""), None);
        assert_eq!(cpus("4-1"), None);
    }

    #[test]
    fn a_container_has_its_own_number_and_a_cgroup() {
        let tree = Tree::new(&[
            ("proc/9/status", "Name:\tx\nNSpid:\t9\t4\t1\n"),
            ("proc/9/cgroup", "4:memory:/\n0::/docker/abc\n"),
            ("proc/10/cgroup", "4:memory:/a/b:c\n1:cpu:/\n0::/\n"),
            ("proc/11/cgroup", "0::/\n"),
        ]);
        assert_eq!(process_inside(&tree.root, 9), Some(1));
        assert_eq!(cgroup(&tree.root, 9).as_deref(), Some("/docker/abc"));
        assert_eq!(cgroup(&tree.root, 10).as_deref(), Some("/a/b:c"));
        assert_eq!(cgroup(&tree.root, 11), None);
        assert_eq!(process_inside(&tree.root, 10), None);
    }
}
