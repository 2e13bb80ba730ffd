//! One thread's folder below `/proc`, held open.
//!
//! The problem: thread ids are used again, so two files read by their paths may be two threads'. The choice: the folder is
//! opened once and all files are opened from there; when the thread is gone the kernel finds nothing in it any more, whoever has
//! its id by then. In: a process's and a thread's id. Out: the texts of the folder's files.

use crate::clocks;
use crate::root::Root;
use holdup_evidence::Ns;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Longest text that is read of one file, bytes: `status` has some 1,500 where a machine has many CPUs.
const MAX_BYTES: usize = 8 << 10;

/// A thread's folder.
#[derive(Debug)]
pub struct Folder {
    folder: OwnedFd,
    /// Kept open, because it is read at each look; `None` where the kernel has none.
    schedstat: Option<File>,
}

impl Folder {
    /// Opens it; `None` when the thread is gone, or nobody's business of ours.
    #[must_use]
    pub fn open(root: &Root, pid: u32, tid: u32) -> Option<Folder> {
        let folder = folder(root, pid, tid)?;
        let schedstat = file_in(&folder, "schedstat");
        Some(Folder { folder, schedstat })
    }

    /// The text of a file; `None` when it, or the thread, is not there, or may not be read.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let mut bytes = Vec::new();
        file_in(&self.folder, name)?
            .take(MAX_BYTES as u64)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What `schedstat` says now: see [`super::clocks`].
    #[must_use]
    pub fn schedstat(&self) -> Option<super::clocks::Turns> {
        /// Three numbers of at most 20 digits.
        const MAX_BYTES: usize = 64;
        let mut bytes = [0; MAX_BYTES];
        let read = self.schedstat.as_ref()?.read_at(&mut bytes, 0).ok()?;
        super::clocks::turns(std::str::from_utf8(bytes.get(..read)?).ok()?)
    }

    /// The same, and instants, none before `earliest`, between which it was read: what has not changed was so at the first of them, and
    /// what has changed was so at the second. Where holdup lost its CPU in between it is read again.
    #[must_use]
    pub fn schedstat_within(&self, earliest: Ns) -> (Option<super::clocks::Turns>, [Ns; 2]) {
        /// A read takes a few microseconds.
        const CLOSE: Ns = 50_000;
        const TRIES: usize = 4;
        let read = || {
            let before = clocks::monotonic().max(earliest);
            let turns = self.schedstat();
            (turns, [before, clocks::monotonic().max(earliest)])
        };
        let mut last = read();
        for _ in 1..TRIES {
            let (_, [before, after]) = last;
            if after - before < CLOSE {
                break;
            }
            last = read();
        }
        last
    }

    /// Whether the kernel has such a count at all: then one that can't be read is of a thread that is gone.
    #[must_use]
    pub fn counts_turns(&self) -> bool {
        self.schedstat.is_some()
    }
}

/// A thread's folder, open; `None` when the thread is gone, or nobody's business of ours.
#[must_use]
pub fn folder(root: &Root, pid: u32, tid: u32) -> Option<OwnedFd> {
    let path = root.proc.join(pid.to_string()).join("task").join(tid.to_string());
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(&path, flags, Mode::empty()).ok()
}

/// The text of a file in such a folder.
#[must_use]
pub fn text_in(folder: &OwnedFd, name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    file_in(folder, name)?
        .take(MAX_BYTES as u64)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file in such a folder, open.
#[must_use]
pub fn file_in(folder: &OwnedFd, name: &str) -> Option<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    openat(folder, name, flags, Mode::empty()).ok().map(File::from)
}

#[cfg(test)]
mod tests {
    use super::Folder;
    use crate::root::{Root, Tree};

    #[test]
    fn a_thread_that_is_gone_has_no_files_whoever_has_its_id() {
        let tree = Tree::new(&[
            ("proc/7/task/9/schedstat", "11 22 3\n"),
            ("proc/7/task/9/wchan", "a"),
        ]);
        let folder = Folder::open(&tree.root, 7, 9).unwrap();
        assert_eq!(folder.text("wchan").as_deref(), Some("a"));
        std::fs::rename(tree.path("proc/7/task/9"), tree.path("proc/7/task/was")).unwrap();
        tree.write("proc/7/task/9/wchan", "another's");
        assert_eq!(folder.text("wchan").as_deref(), Some("a"));
        assert_eq!(folder.schedstat().unwrap().count, 3);
        assert!(Folder::open(&tree.root, 7, 10).is_none());
    }

    #[test]
    fn this_thread_has_had_a_turn() {
        let own = std::process::id();
        let folder = Folder::open(&Root::system(), own, own).unwrap();
        assert!(folder.text("stat").unwrap().starts_with(&own.to_string()));
    }
}
