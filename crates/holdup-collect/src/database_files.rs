//! Who has the files locked that observed processes have open: SQLite's databases, and others.
//!
//! The problem: SQLite and others ask for a lock without waiting in the kernel, sleep, and ask again, so no wait names a lock or its holder. In:
//! processes, as observation ends. Out: locks of byte ranges that SQLite writes under, and all others, on files that these have open, and their holders. The
//! kernel's table has inodes; what a descriptor's inode is, its `fdinfo` tells without a look at the file, which could block.

use super::sessions::STOPPED;
use holdup_evidence::facts::LockedFile;
use holdup_knowledge::sqlite;
use holdup_proc::lock_table::{self, Held};
use holdup_proc::{Root, names};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read;
use std::path::Path;

/// Processes that are looked at, and descriptors of each.
const PROCESSES_MAX: usize = 512;
const DESCRIPTORS_MAX: usize = 1024;

/// Locks that are kept.
const KEPT_MAX: usize = 16;

/// What of a descriptor's `fdinfo` is looked through, lines: the inode and a lock are among the first.
const LINES_MAX: usize = 16;

/// The same in bytes: a file may have any number of locks.
const PAGE_BYTES_MAX: u64 = 8 << 10;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Locked {
    /// Databases of SQLite.
    pub(super) databases: Vec<LockedFile>,
    /// Other files.
    pub(super) others: Vec<LockedFile>,
}

/// Looks at these.
pub(super) fn look(pids: &BTreeSet<u32>, root: &Root) -> Locked {
    let of_database = |one: &Held| !one.whole && one.exclusive && sqlite::keeps_writers_out(one.bytes);
    let (databases, others): (Vec<Held>, Vec<Held>) =
        lock_table::held(root).into_iter().partition(of_database);
    Locked {
        databases: open(pids, root, &databases),
        others: open(pids, root, &others),
    }
}

/// Those of these locks whose files other processes than their holders have open.
fn open(pids: &BTreeSet<u32>, root: &Root, held: &[Held]) -> Vec<LockedFile> {
    if held.is_empty() {
        return Vec::new();
    }
    let inodes: HashSet<u64> = held.iter().map(|one| one.inode).collect();
    // By file: who has it open.
    let mut open: BTreeMap<(u64, String), Vec<u32>> = BTreeMap::new();
    for pid in pids.iter().take(PROCESSES_MAX) {
        // Who inherited the open file has the lock as well, and does not wait for it.
        for file in files(root, *pid, &inodes, Which::WithoutLock) {
            open.entry(file).or_default().push(*pid);
        }
    }
    let mut found: Vec<LockedFile> = Vec::new();
    for ((inode, file), users) in open {
        let users = |holder: u32| {
            users
                .iter()
                .copied()
                .filter(|pid| *pid != holder)
                .collect::<Vec<u32>>()
        };
        for lock in held.iter().filter(|one| one.inode == inode) {
            // Inodes of two file systems may be the same, names as well are not.
            let theirs = files(root, lock.pid, &HashSet::from([inode]), Which::All);
            let same = theirs.iter().any(|(_, other)| name(other) == name(&file));
            let known = found
                .iter()
                .any(|one| (one.holder, &one.file) == (lock.pid, &file));
            if !same || known || users(lock.pid).is_empty() || found.len() >= KEPT_MAX {
                continue;
            }
            found.push(LockedFile {
                holder: lock.pid,
                process: names::comm(root, lock.pid).unwrap_or_default(),
                stopped: names::state(root, lock.pid) == Some(STOPPED),
                users: users(lock.pid),
                file: file.clone(),
            });
        }
    }
    found
}

fn name(file: &str) -> Option<&str> {
    file.rsplit('/').next()
}

/// Which of a process's descriptors count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those by which the process has no lock.
    WithoutLock,
}

/// Files with these inodes that a process has open.
fn files(root: &Root, pid: u32, inodes: &HashSet<u64>, which: Which) -> BTreeSet<(u64, String)> {
    let folder = root.proc.join(pid.to_string());
    let Ok(entries) = std::fs::read_dir(folder.join("fd")) else {
        return BTreeSet::new();
    };
    let file = |entry: std::fs::DirEntry| {
        let link = std::fs::read_link(entry.path()).ok()?;
        let path = link.to_str().filter(|path| path.starts_with('/'))?;
        let (inode, locked) = inode(&folder.join("fdinfo").join(entry.file_name()))?;
        let counts = which == Which::All || !locked;
        (counts && inodes.contains(&inode)).then(|| (inode, path.to_owned()))
    };
    entries.take(DESCRIPTORS_MAX).flatten().filter_map(file).collect()
}

/// The inode behind a descriptor, and whether the file is locked by it; kernels before 5.14 do not tell.
fn inode(fdinfo: &Path) -> Option<(u64, bool)> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(fdinfo).ok()?;
    file.take(PAGE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = || text.lines().take(LINES_MAX);
    let inode = lines().find_map(|line| line.strip_prefix("ino:")?.trim().parse().ok())?;
    Some((inode, lines().any(|line| line.starts_with("lock:"))))
}

#[cfg(test)]
mod tests {
    use super::{Which, files, look};
    use holdup_proc::Root;
    use std::collections::{BTreeSet, HashSet};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_found_by_its_inode() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = file.as_file().metadata().unwrap().ino();
        let own = std::process::id();
        let of = |which| files(&Root::system(), own, &HashSet::from([inode]), which);
        let path = file.path().to_str().unwrap().to_owned();
        for which in [Which::All, Which::WithoutLock] {
            assert!(of(which).contains(&(inode, path.clone())));
        }
        assert!(files(&Root::system(), own, &HashSet::new(), Which::All).is_empty());
        file.as_file().lock().unwrap();
        assert!(of(Which::All).contains(&(inode, path)));
        assert!(of(Which::WithoutLock).is_empty(), "it has the lock itself");
        // Nobody else has it locked.
        let locks = look(&BTreeSet::from([own]), &Root::system());
        assert!(locks.databases.iter().all(|one| one.holder != own), "{locks:?}");
        assert!(locks.others.iter().all(|one| one.holder != own), "{locks:?}");
    }
}
