//! `/proc/PID/fd`: which ends of pipes and sockets a process has open.
//!
//! Only the links themselves are read, never what they lead to: that takes no lock that a stuck process can hold, and
//! touches no file system.

use crate::root::{Root, text_if_there};
use holdup_evidence::DeviceNumber;
use nix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Descriptors that are looked at: a program that wakes itself opens the ends for that among its first.
const MAX_DESCRIPTORS: usize = 1024;

/// Descriptors of each process that are looked at before more of anybody: whoever has many does not keep others from being seen.
const FIRST_DESCRIPTORS: usize = 128;

/// How long all processes are looked through, at most: anybody may have some hundred of them with a thousand descriptors each. What is not
/// reached then counts as not there, as do descriptors beyond the limit. CPU time, so that a busy machine is seen as whole as an idle one;
/// and time, for a machine on which nothing gets on.
const SEARCH_CPU: Duration = Duration::from_millis(1500);
const SEARCH_TIME: Duration = Duration::from_secs(6);

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
    for entry in std::fs::read_dir(folder).ok()?.take(MAX_DESCRIPTORS).flatten() {
        any = true;
        add(&entry.path(), &mut ends);
    }
    // One that has ended and was not seen to by its parent yet has none left.
    any.then_some(ends)
}

/// The descriptors that a program reads from and writes to, if nothing else was agreed.
const STANDARD: [&str; 2] = ["0", "1"];

/// Whether a process reads from a pipe or socket, or writes to one, as its standard input or output: then a program is at the other end.
#[must_use]
pub fn is_used_by_program(root: &Root, pid: u32) -> bool {
    let folder = root.proc.join(pid.to_string()).join("fd");
    STANDARD.iter().any(|descriptor| {
        let mut ends = Ends::default();
        add(&folder.join(descriptor), &mut ends);
        ends != Ends::default()
    })
}

/// Something that processes can have open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Open {
    /// A pipe that can be read from, by inode.
    PipeToRead(u64),
    /// A pipe that can be written to, by inode.
    PipeToWrite(u64),
    /// A socket, by inode.
    Socket(u64),
    /// A file that can be read from, by its path as this mount namespace has it.
    PathToRead(String),
    /// One that can be written to.
    PathToWrite(String),
}

/// Which processes have these open now, lowest id first; `own` is left out. Reads the links of every process, some 5 µs
/// each.
#[must_use]
pub fn holders(root: &Root, wanted: &HashSet<Open>, own: u32) -> HashMap<Open, Vec<u32>> {
    let mut holders: HashMap<Open, Vec<u32>> = HashMap::new();
    let paths: HashSet<&str> = wanted
        .iter()
        .filter_map(|open| match open {
            Open::PathToRead(path) | Open::PathToWrite(path) => Some(path.as_str()),
            Open::PipeToRead(_) | Open::PipeToWrite(_) | Open::Socket(_) => None,
        })
        .collect();
    look_through(root, own, SEARCH_CPU, &mut |pid, link| {
        for open in opens(link, &paths).into_iter().flatten() {
            if wanted.contains(&open) {
                holders.entry(open).or_default().push(pid);
            }
        }
    });
    in_order(&mut holders);
    holders
}

/// Who has which sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketHolders {
    /// By inode, lowest id first.
    pub of: HashMap<u64, Vec<u32>>,
    /// Whether all processes were looked at before the time was up.
    pub whole: bool,
}

/// Who has which sockets; `own` is left out. As long as a look for one of them, and enough for all that is asked about a moment.
#[must_use]
pub fn socket_holders(root: &Root, own: u32) -> SocketHolders {
    let mut holders: HashMap<u64, Vec<u32>> = HashMap::new();
    let whole = look_through(root, own, SEARCH_CPU, &mut |pid, link| {
        let target = std::fs::read_link(link);
        let inode = target
            .ok()
            .and_then(|target| number(target.to_str()?, "socket:["));
        if let Some(inode) = inode {
            holders.entry(inode).or_default().push(pid);
        }
    });
    in_order(&mut holders);
    SocketHolders { of: holders, whole }
}

fn in_order<K>(holders: &mut HashMap<K, Vec<u32>>) {
    for pids in holders.values_mut() {
        pids.sort_unstable();
        pids.dedup();
    }
}

/// When a look through all processes has to end.
struct Search {
    /// By this thread's CPU time.
    cpu: Duration,
    until: Instant,
}

impl Search {
    fn new(cpu: Duration) -> Search {
        Search {
            cpu: cpu_time() + cpu,
            until: Instant::now() + SEARCH_TIME,
        }
    }

    fn is_over(&self) -> bool {
        cpu_time() >= self.cpu || Instant::now() >= self.until
    }
}

/// CPU time that this thread has used.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Hands over the descriptors of all processes but `own`: the first ones of each, then more of those that have more, until the time is up.
/// Whether it was not.
fn look_through(root: &Root, own: u32, time: Duration, each: &mut dyn FnMut(u32, &Path)) -> bool {
    /// Links after which the clock is looked at.
    const STEP: usize = 64;
    let search = Search::new(time);
    let entries = |pid: u32| {
        let folder = root.proc.join(pid.to_string()).join("fd");
        std::fs::read_dir(folder).into_iter().flatten().flatten()
    };
    let mut longer = Vec::new();
    for pid in crate::tasks::processes(root) {
        if pid == own {
            continue;
        }
        if search.is_over() {
            return false;
        }
        let mut entries = entries(pid);
        for entry in entries.by_ref().take(FIRST_DESCRIPTORS) {
            each(pid, &entry.path());
        }
        longer.extend(entries.next().is_some().then_some(pid));
    }
    for pid in longer {
        let rest = entries(pid).take(MAX_DESCRIPTORS).skip(FIRST_DESCRIPTORS);
        for (at, entry) in rest.enumerate() {
            if at % STEP == 0 && search.is_over() {
                return false;
            }
            each(pid, &entry.path());
        }
    }
    true
}

/// A file below a directory that a process may write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The process.
    pub pid: u32,
    /// The directory, as it was asked for.
    pub below: String,
    /// The file, as this mount namespace has it.
    pub file: String,
}

/// Who has files open to write to below these directories, lowest process id first, each process once a directory; `own` is left out.
#[must_use]
pub fn writers(root: &Root, directories: &[String], own: u32) -> Vec<Written> {
    let pids = crate::tasks::processes(root)
        .into_iter()
        .filter(|pid| *pid != own);
    let search = Search::new(SEARCH_CPU);
    let pids = pids.take_while(|_| !search.is_over());
    pids.flat_map(|pid| written_by(root, pid, directories)).collect()
}

/// The first file below each of these directories that a process has open to write to. Of directories below each other the deepest counts.
#[must_use]
pub fn written_by(root: &Root, pid: u32, directories: &[String]) -> Vec<Written> {
    let below = |target: &Path| {
        let above = directories.iter().filter(|one| target.starts_with(one));
        above.max_by_key(|one| one.len()).cloned()
    };
    let mut found: Vec<Written> = Vec::new();
    let folder = root.proc.join(pid.to_string()).join("fd");
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    for entry in entries.take(MAX_DESCRIPTORS).flatten() {
        let link = entry.path();
        let Ok(target) = std::fs::read_link(&link) else {
            continue;
        };
        let Some(below) = below(&target) else { continue };
        let may = std::fs::symlink_metadata(&link).map_or(0, |link| link.mode());
        if may & WRITES != 0 && !found.iter().any(|one| one.below == below) {
            found.push(Written {
                pid,
                below,
                file: target.to_string_lossy().into_owned(),
            });
        }
    }
    found
}

/// One who serves a FUSE file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FuseServer {
    /// The process.
    pub pid: u32,
    /// Which, by its device number; `None` where the kernel does not say (it does since Linux 6.16), or nothing is mounted.
    pub device: Option<DeviceNumber>,
}

/// Processes that have `/dev/fuse` open, lowest id first; `own` is left out.
#[must_use]
pub fn fuse_servers(root: &Root, own: u32) -> Vec<FuseServer> {
    let mut servers: Vec<FuseServer> = Vec::new();
    look_through(root, own, SEARCH_CPU, &mut |pid, link| {
        let device = std::fs::read_link(link).is_ok_and(|target| target == Path::new("/dev/fuse"));
        let Some(descriptor) = link.file_name().filter(|_| device) else {
            return;
        };
        let infos = root.proc.join(pid.to_string()).join("fdinfo");
        let server = FuseServer {
            pid,
            device: connection(&infos.join(descriptor)),
        };
        if !servers.contains(&server) {
            servers.push(server);
        }
    });
    servers.sort_by_key(|server| server.pid);
    servers
}

/// What the kernel says that a descriptor of `/dev/fuse` serves: its own number of a device.
fn connection(info: &Path) -> Option<DeviceNumber> {
    /// Bits of the minor number in it.
    const MINOR_BITS: u32 = 20;
    let text = text_if_there(info)?;
    let number = text
        .lines()
        .find_map(|line| line.strip_prefix("fuse_connection:"))?;
    let number: u32 = number.trim().parse().ok()?;
    Some(DeviceNumber {
        major: number >> MINOR_BITS,
        minor: number & ((1 << MINOR_BITS) - 1),
    })
}

/// What a descriptor is, to read from and to write to; of files only these.
fn opens(link: &Path, paths: &HashSet<&str>) -> [Option<Open>; 2] {
    let Ok(target) = std::fs::read_link(link) else {
        return [None, None];
    };
    let target = target.to_string_lossy();
    if let Some(inode) = number(&target, "socket:[") {
        return [Some(Open::Socket(inode)), None];
    }
    let pipe = number(&target, "pipe:[");
    if pipe.is_none() && !paths.contains(target.as_ref()) {
        return [None, None];
    }
    let may = std::fs::symlink_metadata(link).map_or(0, |link| link.mode());
    let read = match pipe {
        Some(inode) => Open::PipeToRead(inode),
        None => Open::PathToRead(target.clone().into_owned()),
    };
    let written = match pipe {
        Some(inode) => Open::PipeToWrite(inode),
        None => Open::PathToWrite(target.into_owned()),
    };
    [
        (may & READS != 0).then_some(read),
        (may & WRITES != 0).then_some(written),
    ]
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
    use super::{
        FIRST_DESCRIPTORS, FuseServer, Open, Written, ends, fuse_servers, holders, look_through,
        socket_holders, writers,
    };
    use crate::root::{Root, Tree};
    use holdup_evidence::DeviceNumber;
    use std::collections::HashSet;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Processes with these descriptors of sockets, numbered from 0.
    fn with_sockets(processes: &[(u32, &[u64])]) -> Tree {
        let tree = Tree::new(&[]);
        for (pid, inodes) in processes {
            let folder = tree.root.proc.join(format!("{pid}/fd"));
            std::fs::create_dir_all(&folder).unwrap();
            for (fd, inode) in inodes.iter().enumerate() {
                let target = format!("socket:[{inode}]");
                std::os::unix::fs::symlink(target, folder.join(fd.to_string())).unwrap();
            }
        }
        tree
    }

    #[test]
    fn who_has_a_socket_is_found_also_behind_many_descriptors_and_once() {
        let many: Vec<u64> = (1000..1000 + 2 * FIRST_DESCRIPTORS as u64)
            .chain([7, 7])
            .collect();
        let tree = with_sockets(&[(5, &many), (6, &[7, 8, 7]), (9, &[8])]);
        let found = socket_holders(&tree.root, 9);
        assert!(found.whole);
        let all = found.of;
        assert_eq!((&all[&7], &all[&8]), (&vec![5, 6], &vec![6]));
        let found = holders(&tree.root, &HashSet::from([Open::Socket(7), Open::Socket(70)]), 5);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&Open::Socket(7)], [6]);
    }

    #[test]
    fn who_has_many_descriptors_comes_last_and_time_ends_a_look() {
        let many: Vec<u64> = (0..2 * FIRST_DESCRIPTORS as u64).collect();
        let tree = with_sockets(&[(5, &many), (6, &[7])]);
        let looked = |time| {
            let mut pids = Vec::new();
            let whole = look_through(&tree.root, 1, time, &mut |pid, _| pids.push(pid));
            (pids, whole)
        };
        let (pids, whole) = looked(Duration::from_secs(60));
        assert!(whole);
        assert_eq!(pids.len(), many.len() + 1);
        assert_eq!(pids.iter().position(|pid| *pid == 6), Some(FIRST_DESCRIPTORS));
        assert_eq!(looked(Duration::ZERO), (Vec::new(), false));
    }

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

    #[test]
    fn who_may_write_below_a_directory_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let _log = std::fs::File::create(&path).unwrap();
        let directories = ["/".to_owned(), folder.path().to_string_lossy().into_owned()];
        let own = std::process::id();
        let found = writers(&Root::system(), &directories, 0);
        let found: Vec<&Written> = found.iter().filter(|one| one.pid == own).collect();
        assert!(
            found
                .iter()
                .any(|one| one.file == path.to_string_lossy() && one.below == directories[1])
        );
        assert!(
            writers(&Root::system(), &directories, own)
                .iter()
                .all(|one| one.pid != own)
        );
    }

    #[test]
    fn a_daemon_is_known_by_what_it_serves() {
        let tree = Tree::new(&[
            (
                "proc/7/fdinfo/3",
                "pos:\t0\nflags:\t02100002\nfuse_connection:\t41\n",
            ),
            ("proc/7/fdinfo/4", "pos:\t0\nfuse_connection:\t41\n"),
            ("proc/8/fdinfo/3", "pos:\t0\nfuse_connection:\t8388609\n"),
            ("proc/9/fdinfo/3", "pos:\t0\n"),
            ("proc/10/fdinfo/3", "pos:\t0\nfuse_connection:\t41\n"),
            ("proc/11/fdinfo/3", "fuse_connection:\t41\n"),
        ]);
        for (pid, fd, target) in [
            (7, 3, "/dev/fuse"),
            (7, 4, "/dev/fuse"),
            (8, 3, "/dev/fuse"),
            (9, 3, "/dev/fuse"),
            (10, 3, "/dev/null"),
            (11, 3, "/dev/fuse"),
        ] {
            let folder = tree.root.proc.join(format!("{pid}/fd"));
            std::fs::create_dir_all(&folder).unwrap();
            std::os::unix::fs::symlink(target, folder.join(fd.to_string())).unwrap();
        }
        let device = |major, minor| Some(DeviceNumber { major, minor });
        let servers = fuse_servers(&tree.root, 11);
        let listed: Vec<_> = servers
            .iter()
            .map(|FuseServer { pid, device }| (*pid, *device))
            .collect();
        assert_eq!(listed, [(7, device(0, 41)), (8, device(8, 1)), (9, None)]);
    }
}
