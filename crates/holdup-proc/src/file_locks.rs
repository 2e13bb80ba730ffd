//! `/proc/PID/fdinfo`: who really has a file lock.
//!
//! The problem: the kernel notes the process that asked for a lock. What `flock` locks belongs to the open file, which is handed on to
//! whoever inherits the descriptor: after `exec 9>lock; flock 9` in a shell the process that is noted has long ended, and the
//! shell has the lock. The choice: the descriptor's own page lists its locks with the process that is noted, so whoever
//! has such a descriptor has the lock. No file is touched; but the page of an epoll set waits for whoever polls it, and so this is for a
//! process that can be left behind.

use crate::root::Root;
use crate::{names, tasks};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Descriptors of one process that are looked at.
const MAX_DESCRIPTORS: usize = 1024;

/// What of a descriptor's page is read, bytes: locks of whole files come before those of byte ranges, of which there may be any number.
const PAGE_BYTES_MAX: u64 = 16 << 10;

/// How long the descriptors of one process are looked at, and those of all: whoever has pages that are long to write keeps nobody else
/// from being looked at.
const PROCESS_TIME: Duration = Duration::from_millis(20);
const SEARCH_TIME: Duration = Duration::from_millis(1000);

/// Whether a process has, on one of its descriptors, a lock for which this process is noted.
#[must_use]
pub fn has(root: &Root, pid: u32, noted: u32) -> bool {
    any_line(root, pid, None, |line| is_noted(line, noted))
}

/// Looks at the pages of a process's files, or of that file alone whose path is given. An epoll set has no path, and a page as long as it is
/// large.
fn any_line(root: &Root, pid: u32, path: Option<&Path>, wanted: impl Fn(&str) -> bool) -> bool {
    let process = root.proc.join(pid.to_string());
    let until = Instant::now() + PROCESS_TIME;
    let entries = std::fs::read_dir(process.join("fd"))
        .into_iter()
        .flatten()
        .flatten();
    let is_file = |name: &std::ffi::OsString| {
        let target = std::fs::read_link(process.join("fd").join(name));
        target.is_ok_and(|target| target.is_absolute() && path.is_none_or(|path| path == target))
    };
    entries
        .take(MAX_DESCRIPTORS)
        .take_while(|_| Instant::now() < until)
        .map(|entry| entry.file_name())
        .filter(is_file)
        .filter_map(|name| page(&process.join("fdinfo").join(name)))
        .any(|text| text.lines().any(&wanted))
}

fn page(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(file).ok()?;
    file.take(PAGE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Who has the lock for which a process is noted: that one, as long as it lives and has some lock on a descriptor; else whoever inherited it,
/// also while that one lives. `None` where nobody was found. `path`: the file, if that is known.
#[must_use]
pub fn who_has(root: &Root, noted: u32, own: u32, path: Option<&Path>) -> Option<u32> {
    match any_line(root, noted, None, |line| line.starts_with("lock:")) {
        true => Some(noted),
        false => keeper(root, noted, own, path),
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

/// Who has the lock for which a process is noted: of several that inherited it from each other, the first. Reads the pages of the files of
/// all processes, some 10 µs each; `own` is left out. `path`: the file, if that is known: who has one of that path is asked first, and
/// others, who may see it elsewhere, only if nobody of them has the lock.
#[must_use]
pub fn keeper(root: &Root, noted: u32, own: u32, path: Option<&Path>) -> Option<u32> {
    let until = Instant::now() + SEARCH_TIME;
    let of = |path: Option<&Path>| {
        let all = tasks::processes(root).into_iter();
        let all = all
            .filter(|pid| *pid != own)
            .take_while(|_| Instant::now() < until);
        let keepers: Vec<u32> = all
            .filter(|pid| any_line(root, *pid, path, |line| is_noted(line, noted)))
            .collect();
        let first = keepers.iter().find(|pid| {
            let parent = names::parent(root, **pid);
            !parent.is_some_and(|parent| keepers.contains(&parent))
        });
        first.or(keepers.first()).copied()
    };
    path.and_then(|path| of(Some(path))).or_else(|| of(None))
}

#[cfg(test)]
mod tests {
    use super::{has, keeper, who_has};
    use crate::root::Tree;
    use std::path::Path;

    /// Gives every descriptor that has a page the link of a file; these that of an epoll set.
    fn with_links(pages: &[(&str, &str)], sets: &[&str]) -> Tree {
        let tree = Tree::new(pages);
        for (page, _) in pages.iter().filter(|(page, _)| page.contains("/fdinfo/")) {
            let link = tree.path(&page.replace("/fdinfo/", "/fd/"));
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            let target = if sets.contains(page) {
                "anon_inode:[eventpoll]"
            } else {
                "/run/lock"
            };
            std::os::unix::fs::symlink(target, link).unwrap();
        }
        tree
    }

    const LOCKED: &str = "pos:\t0\nflags:\t0100001\nlock:\t1: FLOCK  ADVISORY  WRITE 57 fe:00:1054 0 EOF\n";

    #[test]
    fn the_first_of_those_who_inherited_it_has_the_lock() {
        let pages = [
            ("proc/9/fdinfo/9", LOCKED),
            ("proc/9/status", "Name:\tsleep\nPPid:\t80\n"),
            ("proc/80/fdinfo/0", "pos:\t0\n"),
            ("proc/80/fdinfo/9", LOCKED),
            ("proc/80/status", "Name:\tbash\nPPid:\t1\n"),
            ("proc/81/fdinfo/9", &LOCKED.replace("57", "58")),
            ("proc/82/fdinfo/9", &LOCKED.replace("FLOCK", "POSIX")),
            ("proc/83/fdinfo/9", "lock:\n"),
        ];
        let tree = with_links(&pages, &[]);
        assert_eq!(
            keeper(&tree.root, 57, 1, None),
            Some(80),
            "the lower number is its child's"
        );
        assert_eq!(keeper(&tree.root, 57, 80, None), Some(9));
        assert_eq!(keeper(&tree.root, 59, 1, None), None);
        assert!(has(&tree.root, 81, 58));
        assert!(!has(&tree.root, 82, 57), "such a lock ends with the process");
        assert!(!has(&tree.root, 7, 57), "nobody lives there");
    }

    #[test]
    fn who_has_closed_the_file_has_left_the_lock_to_its_child() {
        let pages = [
            ("proc/57/fdinfo/0", "pos:\t0\n"),
            ("proc/57/status", "Name:\tpython3\nPPid:\t1\n"),
            ("proc/80/fdinfo/9", LOCKED),
            ("proc/80/status", "Name:\tsleep\nPPid:\t57\n"),
            (
                "proc/90/fdinfo/3",
                "lock:\t1: POSIX  ADVISORY  WRITE 90 fe:00:1054 0 EOF\n",
            ),
        ];
        let tree = with_links(&pages, &[]);
        assert_eq!(who_has(&tree.root, 57, 1, None), Some(80));
        assert_eq!(
            who_has(&tree.root, 90, 1, None),
            Some(90),
            "not a lock that is inherited"
        );
        assert_eq!(who_has(&tree.root, 91, 1, None), None);
    }

    #[test]
    fn sets_are_not_read_and_the_file_that_is_waited_for_comes_first() {
        let pages = [
            ("proc/60/fdinfo/9", LOCKED),
            ("proc/61/fdinfo/9", LOCKED),
            ("proc/60/status", "Name:\ta\nPPid:\t1\n"),
            ("proc/61/status", "Name:\tb\nPPid:\t1\n"),
        ];
        let tree = with_links(&pages, &["proc/60/fdinfo/9"]);
        assert_eq!(keeper(&tree.root, 57, 1, None), Some(61), "a set has no lock");
        let here = Some(Path::new("/run/lock"));
        assert_eq!(keeper(&tree.root, 57, 1, here), Some(61));
        let elsewhere = Some(Path::new("/other/lock"));
        assert_eq!(
            keeper(&tree.root, 57, 1, elsewhere),
            Some(61),
            "as another sees it"
        );
    }
}
