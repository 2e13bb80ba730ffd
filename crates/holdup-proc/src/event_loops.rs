//! `/proc/PID/fd` and `/proc/PID/fdinfo` of epoll sets: which of its sockets an event loop listens to.
//!
//! The kernel lists a set under the set's own lock, which is held while a file in it is polled: only for a child that can be abandoned
//! ([`crate::blocking`]).

use crate::root::{Root, text_if_there};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Descriptors that are looked at.
const DESCRIPTORS_MAX: usize = 16_384;

/// Sets of one process that are read.
const SETS_MAX: usize = 64;

/// What the link of an epoll set leads to.
const EPOLL_SET: &str = "anon_inode:[eventpoll]";

/// How a line about a file of a set begins.
const MEMBER: &str = "tfd:";

/// What the links of those lead to by which a process stirs itself.
const STIRS_ITSELF: [&str; 3] = [
    "anon_inode:[eventfd]",
    "anon_inode:[timerfd]",
    "anon_inode:[signalfd]",
];

/// Sockets of a process that has epoll sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listened {
    /// In a set, by inode.
    pub polled: HashSet<u64>,
    /// Open, and in none.
    pub others: HashSet<u64>,
    /// What else is in a set.
    pub beside: Beside,
}

/// What a set has beside sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Pipes, by inode.
    pub pipes: HashSet<u64>,
    /// Descriptors of neither those, nor what a process makes to stir itself: a timer, a signal, an eventfd. Or what was not open before
    /// the set was read.
    pub unknown: HashSet<u32>,
}

/// The sockets of a process; `None` where it has no set, or not all of it could be looked at.
#[must_use]
pub fn read(root: &Root, pid: u32) -> Option<Listened> {
    let process = root.proc.join(pid.to_string());
    let mut sockets: Vec<(u32, u64)> = Vec::new();
    let mut sets: Vec<u32> = Vec::new();
    let mut pipes: Vec<(u32, u64)> = Vec::new();
    let mut stirs: HashSet<u32> = HashSet::new();
    for (at, entry) in std::fs::read_dir(process.join("fd")).ok()?.flatten().enumerate() {
        if at >= DESCRIPTORS_MAX {
            return None;
        }
        let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(target) = std::fs::read_link(entry.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        if target == EPOLL_SET {
            sets.push(fd);
        } else if STIRS_ITSELF.contains(&target.as_ref()) {
            stirs.insert(fd);
        } else if let Some(inode) = inode_of(&target, "socket:[") {
            sockets.push((fd, inode));
        } else if let Some(inode) = inode_of(&target, "pipe:[") {
            pipes.push((fd, inode));
        }
    }
    if sets.is_empty() || sets.len() > SETS_MAX {
        return None;
    }
    let mut members: HashSet<u32> = HashSet::new();
    for set in sets {
        let text = text_if_there(&process.join("fdinfo").join(set.to_string()))?;
        members.extend(text.lines().filter_map(member));
    }
    let is_socket: HashSet<u32> = sockets.iter().map(|(fd, _)| *fd).collect();
    // Of one socket that is open twice, one place in a set is enough.
    let polled: HashSet<u64> = sockets
        .iter()
        .filter(|(fd, _)| members.contains(fd))
        .map(|(_, inode)| *inode)
        .collect();
    let others = sockets
        .into_iter()
        .map(|(_, inode)| inode)
        .filter(|inode| !polled.contains(inode))
        .collect();
    pipes.retain(|(fd, _)| members.contains(fd));
    let known = |fd: &u32| stirs.contains(fd) || pipes.iter().any(|one| one.0 == *fd);
    let unknown = members.iter().filter(|fd| !known(fd) && !is_socket.contains(*fd));
    let beside = Beside {
        unknown: unknown.copied().collect(),
        pipes: pipes.iter().map(|(_, inode)| *inode).collect(),
    };
    Some(Listened {
        polled,
        others,
        beside,
    })
}

/// `pipe:[7]`.
fn inode_of(target: &str, kind: &str) -> Option<u64> {
    target.strip_prefix(kind)?.strip_suffix(']')?.parse().ok()
}

/// `tfd:        7 events:       19 data: …`.
fn member(line: &str) -> Option<u32> {
    line.strip_prefix(MEMBER)?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::{Beside, member, read};
    use crate::root::{Root, Tree};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_is_in_a_set_is_told_from_who_is_not() {
        let (one, other) = UnixStream::pair().unwrap();
        // SAFETY: makes a descriptor that is nobody else's, and adds an open one to it.
        let _set = unsafe {
            let set = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN.cast_unsigned(),
                u64: 0,
            };
            let added = libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, one.as_raw_fd(), &raw mut event);
            assert_eq!(added, 0);
            OwnedFd::from_raw_fd(set)
        };
        let inode = |socket: &UnixStream| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
            let text = link.to_string_lossy().into_owned();
            text.trim_matches(|c: char| !c.is_ascii_digit())
                .parse::<u64>()
                .unwrap()
        };
        let listened = read(&Root::system(), std::process::id()).unwrap();
        assert!(listened.polled.contains(&inode(&one)));
        assert!(listened.others.contains(&inode(&other)) && !listened.polled.contains(&inode(&other)));
    }

    #[test]
    fn what_stirs_the_process_itself_is_told_from_a_pipe_and_from_what_is_not_known() {
        use std::os::unix::fs::symlink;
        let look = |members: &str| {
            let tree = Tree::new(&[("proc/7/fdinfo/3", members)]);
            let links = tree.root.proc.join("7/fd");
            std::fs::create_dir_all(&links).unwrap();
            let opens = [
                ("3", "anon_inode:[eventpoll]"),
                ("4", "anon_inode:[eventfd]"),
                ("5", "pipe:[55]"),
                ("6", "socket:[66]"),
                ("7", "anon_inode:inotify"),
            ];
            for (fd, target) in opens {
                symlink(target, links.join(fd)).unwrap();
            }
            read(&tree.root, 7).unwrap()
        };
        let own = look("pos:\t0\ntfd: 4 events: 19\ntfd: 5 events: 19\ntfd: 6 events: 19\n");
        assert!(own.beside.unknown.is_empty());
        assert!(own.beside.pipes.contains(&55) && own.polled.contains(&66));
        assert!(
            look("tfd: 7 events: 19\n").beside.unknown.contains(&7),
            "an inotify"
        );
        assert!(
            look("tfd: 9 events: 19\n").beside.unknown.contains(&9),
            "opened meanwhile"
        );
        assert_eq!(look("tfd: 4 events: 19\n").beside, Beside::default());
    }

    #[test]
    fn a_process_without_a_set_or_with_an_odd_one_says_nothing() {
        let tree = Tree::new(&[("proc/7/fd/3", "")]);
        assert_eq!(read(&tree.root, 7), None);
        assert_eq!(read(&tree.root, 8), None);
        assert_eq!(
            member("tfd:        7 events:       19 data:                7"),
            Some(7)
        );
        assert_eq!(member("tfd: x"), None);
        assert_eq!(member("pos:\t0"), None);
    }
}
