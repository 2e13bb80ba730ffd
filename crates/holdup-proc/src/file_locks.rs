//! `/proc/PID/fdinfo`: who really has a file lock.
//!
//! The problem: the kernel notes the process that asked for a lock. What `flock` locks belongs to the open file, which is handed on to
//! whoever inherits the descriptor: after `exec 9>lock; flock 9` in a shell the process that is noted has long ended, and the
//! shell has the lock. The choice: the descriptor's own page lists its locks with the process that is noted, so whoever
//! has such a descriptor has the lock. No file is touched; but the page of an epoll set waits for whoever polls it, and so this is for a
//! process that can be left behind.

use crate::root::{Root, text_if_there};
use crate::{names, tasks};
use std::path::Path;

/// Descriptors of one process that are looked at.
const MAX_DESCRIPTORS: usize = 1024;

/// Whether a process has, on one of its descriptors, a lock for which this process is noted.
#[must_use]
pub fn has(root: &Root, pid: u32, noted: u32) -> bool {
    let folder = root.proc.join(pid.to_string()).join("fdinfo");
    any_line(&folder, |line| is_noted(line, noted))
}

fn any_line(folder: &Path, wanted: impl Fn(&str) -> bool) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .take(MAX_DESCRIPTORS)
        .filter_map(|entry| text_if_there(&entry.path()))
        .any(|text| text.lines().any(&wanted))
}

/// Who has the lock for which a process is noted: that one, as long as it lives and has some lock on a descriptor; else whoever inherited it,
/// also while that one lives. `None` where nobody was found.
#[must_use]
pub fn who_has(root: &Root, noted: u32, own: u32) -> Option<u32> {
    let folder = root.proc.join(noted.to_string()).join("fdinfo");
    match any_line(&folder, |line| line.starts_with("lock:")) {
        true => Some(noted),
        false => keeper(root, noted, own),
    }
}

/// `lock:\t1: FLOCK  ADVISORY  WRITE 22057 fe:00:1054 0 EOF`
fn is_noted(line: &str, noted: u32) -> bool {
    let Some(lock) = line.strip_prefix("lock:") else {
        return false;
    };
    let mut words = lock.split_whitespace().skip(1);
    let flock = words.next() == Some("FLOCK");
    flock && words.nth(2).and_then(|pid| pid.parse().ok()) == Some(noted)
}

/// Who has the lock for which a process is noted: of several that inherited it from each other, the first. Reads the pages of
/// all descriptors of all processes, some 10 µs each; `own` is left out.
#[must_use]
pub fn keeper(root: &Root, noted: u32, own: u32) -> Option<u32> {
    let all = tasks::processes(root).into_iter();
    let keepers: Vec<u32> = all.filter(|pid| *pid != own && has(root, *pid, noted)).collect();
    let first = keepers.iter().find(|pid| {
        let parent = names::parent(root, **pid);
        !parent.is_some_and(|parent| keepers.contains(&parent))
    });
    first.or(keepers.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::{has, keeper, who_has};
    use crate::root::Tree;

    const LOCKED: &str = "pos:\t0\nflags:\t0100001\nlock:\t1: FLOCK  ADVISORY  WRITE 57 fe:00:1054 0 EOF\n";

    #[test]
    fn the_first_of_those_who_inherited_it_has_the_lock() {
        let tree = Tree::new(&[
            ("proc/9/fdinfo/9", LOCKED),
            ("proc/9/status", "Name:\tsleep\nPPid:\t80\n"),
            ("proc/80/fdinfo/0", "pos:\t0\n"),
            ("proc/80/fdinfo/9", LOCKED),
            ("proc/80/status", "Name:\tbash\nPPid:\t1\n"),
            ("proc/81/fdinfo/9", &LOCKED.replace("57", "58")),
            ("proc/82/fdinfo/9", &LOCKED.replace("FLOCK", "POSIX")),
            ("proc/83/fdinfo/9", "lock:\n"),
        ]);
        assert_eq!(
            keeper(&tree.root, 57, 1),
            Some(80),
            "the lower number is its child's"
        );
        assert_eq!(keeper(&tree.root, 57, 80), Some(9));
        assert_eq!(keeper(&tree.root, 59, 1), None);
        assert!(has(&tree.root, 81, 58));
        assert!(!has(&tree.root, 82, 57), "such a lock ends with the process");
        assert!(!has(&tree.root, 7, 57), "nobody lives there");
    }

    #[test]
    fn who_has_closed_the_file_has_left_the_lock_to_its_child() {
        let tree = Tree::new(&[
            ("proc/57/fdinfo/0", "pos:\t0\n"),
            ("proc/57/status", "Name:\tpython3\nPPid:\t1\n"),
            ("proc/80/fdinfo/9", LOCKED),
            ("proc/80/status", "Name:\tsleep\nPPid:\t57\n"),
            (
                "proc/90/fdinfo/3",
                "lock:\t1: POSIX  ADVISORY  WRITE 90 fe:00:1054 0 EOF\n",
            ),
        ]);
        assert_eq!(who_has(&tree.root, 57, 1), Some(80));
        assert_eq!(
            who_has(&tree.root, 90, 1),
            Some(90),
            "not a lock that is inherited"
        );
        assert_eq!(who_has(&tree.root, 91, 1), None);
    }
}
