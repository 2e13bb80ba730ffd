//! `/proc/PID/fd`: which ends of pipes and sockets a process has open.
//!
//! Only the links themselves are read, never what they lead to: that takes no lock that a stuck process can hold, and
//! touches no file system.

use crate::root::Root;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Descriptors that are looked at: a program that wakes itself opens the ends for that among its first.
const MOST: usize = 1024;

/// Permissions of such a link: what the descriptor may be used for.
const READS: u32 = 0o400;
const WRITES: u32 = 0o200;

/// Ends that a process has open, by inode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    /// Pipes that it can read from.
    pub read: HashSet<u64>,
    /// Pipes that it can write to.
    pub written: HashSet<u64>,
    /// Sockets.
    pub sockets: HashSet<u64>,
}

/// The ends that a process has open now; `None` when it is gone, or ending.
#[must_use]
pub fn ends(root: &Root, pid: u32) -> Option<Ends> {
    let folder = root.proc.join(pid.to_string()).join("fd");
    let mut ends = Ends::default();
    let mut any = false;
    for entry in std::fs::read_dir(folder).ok()?.take(MOST).flatten() {
        any = true;
        add(&entry.path(), &mut ends);
    }
    // One that has ended and was not seen to by its parent yet has none left.
    any.then_some(ends)
}

fn add(link: &Path, ends: &mut Ends) {
    let Ok(target) = std::fs::read_link(link) else {
        return;
    };
    let target = target.to_string_lossy();
    if let Some(inode) = number(&target, "socket:[") {
        ends.sockets.insert(inode);
    } else if let Some(inode) = number(&target, "pipe:[") {
        let may = std::fs::symlink_metadata(link).map_or(0, |link| link.mode());
        if may & READS != 0 {
            ends.read.insert(inode);
        }
        if may & WRITES != 0 {
            ends.written.insert(inode);
        }
    }
}

fn number(target: &str, prefix: &str) -> Option<u64> {
    target.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::ends;
    use crate::root::Root;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn own_ends_are_found() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let inode = |fd: i32| {
            let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
            let text = link.to_string_lossy().into_owned();
            text.trim_matches(|c: char| !c.is_ascii_digit())
                .parse::<u64>()
                .unwrap()
        };
        let pipe = inode(reader.as_raw_fd());
        let sockets = [inode(one.as_raw_fd()), inode(other.as_raw_fd())];
        let found = ends(&Root::system(), std::process::id()).unwrap();
        assert!(found.read.contains(&pipe) && found.written.contains(&pipe));
        assert!(sockets.iter().all(|socket| found.sockets.contains(socket)));
        drop(writer);
        let found = ends(&Root::system(), std::process::id()).unwrap();
        assert!(found.read.contains(&pipe) && !found.written.contains(&pipe));
        assert_eq!(ends(&Root::system(), u32::MAX), None);
    }
}
