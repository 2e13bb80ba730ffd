//! Files as a process has them: below its own root, in its own mount namespace.
//!
//! The problem: a process in a container has files of its own under every path, and its links lead wherever it likes. The choice: a path is
//! walked a name at a time below a descriptor of the process's root, links are read and walked here, and `..` never leads above that root.
//! What the walk has arrived at is looked at, and then the same thing is opened, by its descriptor: nobody can put another one in its place
//! in between. Only an ordinary file is read, so much of it. That may take as long as the file system does: only a child that can be left
//! behind reads so ([`crate::blocking`]). Its filter of system calls sees the flags of `openat`; those of `openat2` are in memory, which no
//! such filter reads, so it refuses that call, and none is made here.
//!
//! In: a process, and a path as it has it. Out: the text, or the names in a folder, or nothing.

use crate::root::Root;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstatat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// The most that is read of one file, bytes: configurations are a few hundred.
const MOST_BYTES: u64 = 64 << 10;

/// Links that are followed on the way: as many as the kernel follows.
const MAX_LINKS: usize = 40;

/// Names that are walked in all, those of links included.
const MAX_STEPS: usize = 1024;

/// The text of an ordinary file that a process has under this path. What is not UTF-8 is replaced.
#[must_use]
pub fn text(root: &Root, pid: u32, path: &Path) -> Option<String> {
    let top = root.proc.join(pid.to_string()).join("root");
    let folder = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let top = open(&top, folder, Mode::empty()).ok()?;
    // First only its place: to open a device or a FIFO may do something.
    let place = below(top, path)?;
    if kind(&place)? != SFlag::S_IFREG {
        return None;
    }
    let mut bytes = Vec::new();
    reopened(&place)?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names in a folder that a process has under this path, so many of them. What is not UTF-8 is left out.
#[must_use]
pub fn names(root: &Root, pid: u32, path: &Path, most: usize) -> Option<Vec<String>> {
    let top = root.proc.join(pid.to_string()).join("root");
    let folder = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let place = below(open(&top, folder, Mode::empty()).ok()?, path)?;
    if kind(&place)? != SFlag::S_IFDIR {
        return None;
    }
    let entries = std::fs::read_dir(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()?;
    let names = entries.take(most).flatten();
    Some(
        names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect(),
    )
}

/// A place, and not what stands there.
const PLACE: OFlag = OFlag::O_PATH.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// What is at a place.
fn kind(place: impl AsFd) -> Option<SFlag> {
    let about = fstatat(place, "", AtFlags::AT_EMPTY_PATH).ok()?;
    Some(SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT)
}

/// What stands at a place, to be read.
fn reopened(place: &OwnedFd) -> Option<File> {
    let same = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    open(same.as_str(), flags, Mode::empty()).ok().map(File::from)
}

/// The place of a path below a root that links cannot lead out of: those that begin with `/` begin there.
fn below(top: OwnedFd, path: &Path) -> Option<OwnedFd> {
    let mut ahead: Vec<OsString> = Vec::new();
    // From the root to where the walk is, the root itself left out: the way back up.
    let mut way: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    walk_first(path, &mut ahead, &mut way);
    for _ in 0..MAX_STEPS {
        let Some(name) = ahead.pop() else {
            return way.pop().or(Some(top));
        };
        if name == ".." {
            way.pop();
            continue;
        }
        let here = way.last().unwrap_or(&top);
        let next = openat(here, name.as_os_str(), PLACE, Mode::empty()).ok()?;
        if kind(&next)? == SFlag::S_IFLNK {
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            // Of an open link an empty path is the link itself.
            let leads_to = readlinkat(&next, OsStr::from_bytes(b"")).ok()?;
            walk_first(Path::new(&leads_to), &mut ahead, &mut way);
        } else {
            way.push(next);
        }
    }
    None
}

/// Puts a path before what is still to be walked; one that begins with `/` begins at the root.
fn walk_first(path: &Path, ahead: &mut Vec<OsString>, way: &mut Vec<OwnedFd>) {
    if path.has_root() {
        way.clear();
    }
    for step in path.components().rev().take(MAX_STEPS) {
        match step {
            Component::Normal(name) => ahead.push(name.to_owned()),
            Component::ParentDir => ahead.push(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::root::{Root, Tree};
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn a_path_is_looked_up_below_the_root_of_the_process_and_nowhere_else() {
        let tree = Tree::new(&[
            ("own/etc/resolv.conf", "nameserver 192.0.2.53\n"),
            ("own/run/stub.conf", "nameserver 192.0.2.54\n"),
            ("etc/secret", "of the machine\n"),
        ]);
        let own = tree.root.etc.parent().unwrap().join("own");
        std::fs::create_dir_all(tree.root.proc.join("7")).unwrap();
        symlink(&own, tree.root.proc.join("7/root")).unwrap();
        let read = |path: &str| text(&tree.root, 7, Path::new(path));
        assert_eq!(read("/etc/resolv.conf").unwrap(), "nameserver 192.0.2.53\n");
        symlink("/run/stub.conf", own.join("etc/absolute")).unwrap();
        assert_eq!(read("/etc/absolute").unwrap(), "nameserver 192.0.2.54\n");
        symlink("../../../run/stub.conf", own.join("etc/up")).unwrap();
        assert_eq!(
            read("/etc/up").unwrap(),
            "nameserver 192.0.2.54\n",
            "never above its root"
        );
        symlink("../../etc/secret", own.join("etc/escape")).unwrap();
        assert_eq!(read("/etc/escape"), None);
        symlink("/proc/self/root/etc/passwd", own.join("etc/magic")).unwrap();
        assert_eq!(read("/etc/magic"), None);
        symlink("loop", own.join("etc/loop")).unwrap();
        assert_eq!(read("/etc/loop"), None);
    }

    #[test]
    fn what_is_no_ordinary_file_is_not_opened() {
        let tree = Tree::new(&[("own/etc/hosts", "")]);
        let own = tree.root.etc.parent().unwrap().join("own");
        std::fs::create_dir_all(tree.root.proc.join("7")).unwrap();
        symlink(&own, tree.root.proc.join("7/root")).unwrap();
        // Nobody writes into it: to read it would take for ever.
        nix::unistd::mkfifo(&own.join("etc/resolv.conf"), Mode::S_IRWXU).unwrap();
        assert_eq!(text(&tree.root, 7, Path::new("/etc/resolv.conf")), None);
        assert_eq!(text(&tree.root, 7, Path::new("/etc")), None);
        assert_eq!(text(&tree.root, 8, Path::new("/etc/hosts")), None);
    }

    #[test]
    fn an_own_file_is_read() {
        let own = std::process::id();
        assert!(text(&Root::system(), own, Path::new("/etc/passwd")).is_some());
    }
}
