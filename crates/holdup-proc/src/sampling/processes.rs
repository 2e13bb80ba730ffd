//! Which threads there are: CMD's and its descendants', and those of processes that have lost their parent.
//!
//! In: ids. Out: those that are new. A folder of threads is listed only when the number of its entries has changed, and children
//! are asked for only of a thread that has run. Where the kernel has no lists of children, all processes' parents are looked at.

use super::clocks::stat;
use super::task::Folder;
use crate::root::{Root, text_if_there};
use crate::tasks;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};
use std::os::fd::OwnedFd;

/// A process's folder of threads.
#[derive(Debug)]
pub(super) struct Threads {
    folder: OwnedFd,
    /// Links that it had when it was listed last.
    links: libc::nlink_t,
}

impl Threads {
    /// Opens it.
    #[must_use]
    pub(super) fn open(root: &Root, pid: u32) -> Option<Threads> {
        let path = root.proc.join(pid.to_string()).join("task");
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = open(&path, flags, Mode::empty()).ok()?;
        Some(Threads { folder, links: 0 })
    }

    /// Whether it may list other threads than last time. One that begins as another ends is met with the next change.
    pub(super) fn changed(&mut self) -> bool {
        let Ok(now) = fstat(&self.folder) else {
            return false;
        };
        // A file system whose folders have no such count says 1.
        let same = now.st_nlink == self.links && now.st_nlink > 1;
        self.links = now.st_nlink;
        !same
    }

    /// A thread of it has ended, so the number says nothing.
    pub(super) fn ended_one(&mut self) {
        self.links = 0;
    }
}

/// The children that a thread made and that live; `None` where the kernel does not list them.
#[must_use]
pub(super) fn children(folder: &Folder) -> Option<Vec<u32>> {
    let text = folder.text("children")?;
    Some(
        text.split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect(),
    )
}

/// All processes with their parents, for where children are not listed.
#[must_use]
pub(super) fn parents(root: &Root) -> Vec<(u32, u32)> {
    let parent = |pid: u32| {
        let text = text_if_there(&root.proc.join(pid.to_string()).join("stat"))?;
        Some((pid, stat(&text)?.parent))
    };
    tasks::processes(root).into_iter().filter_map(parent).collect()
}

#[cfg(test)]
mod tests {
    use super::{Threads, children, parents};
    use crate::root::Tree;
    use crate::sampling::task::Folder;

    const STAT: &str = "S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0";

    #[test]
    fn new_threads_and_children_are_noticed() {
        let tree = Tree::new(&[
            ("proc/7/task/7/children", "8 9 \n"),
            ("proc/8/stat", &format!("8 (a) {STAT}")),
            ("proc/9/stat", "rubbish"),
        ]);
        let mut threads = Threads::open(&tree.root, 7).unwrap();
        assert!(threads.changed());
        let folder = Folder::open(&tree.root, 7, 7).unwrap();
        assert_eq!(children(&folder), Some(vec![8, 9]));
        tree.write("proc/7/task/12/stat", "");
        assert!(threads.changed());
        let folder = Folder::open(&tree.root, 7, 12).unwrap();
        assert_eq!(children(&folder), None);
        assert_eq!(parents(&tree.root), [(8, 7)]);
    }
}
