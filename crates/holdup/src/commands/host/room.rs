//! Who waits for room in a pipe or a socket: its other end does not read. Such threads sleep in state S, so no list of blocked tasks has
//! them.
//!
//! In: the tree when a look begins and when it ends. Out: threads that stood in one such call all the while, each with who has the other
//! end, and the full file system that this one writes to, if there is one: a program whose log has no room sleeps and tries again.

use super::behind::Wait;
use super::close_looks::{Answers, Close, Question};
use holdup_evidence::Ns;
use holdup_evidence::observed::Awaited;
use holdup_knowledge::functions::{self, families};
use holdup_proc::conversations::Connection;
use holdup_proc::descriptors::{self, Open};
use holdup_proc::root::text_if_there;
use holdup_proc::sampling::sockets::unix_peers;
use holdup_proc::{Root, names, sockets, tasks};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Threads that are looked through for those that wait for room.
const MAX_THREADS: usize = 20_000;

/// Threads that stand still whose calls are asked for.
const MAX_ASKED: usize = 256;

/// Threads that may wait for room when the look begins, with how often they had gone to sleep by then.
#[derive(Debug, Default)]
pub(super) struct Room(HashMap<(u32, u32), u64>);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) waits: Vec<Wait>,
    /// Full file systems, by the process that has files open there to write to.
    pub(super) full: HashMap<u32, String>,
}

impl Room {
    /// Begins.
    pub(super) fn start(root: &Root) -> Room {
        Room(asleep(root))
    }

    /// What was seen in a look of this length.
    pub(super) fn finish(self, root: &Root, own: u32, look: Ns, connections: &[Connection]) -> Found {
        let now = asleep(root);
        // Who has not run since stands in the same call.
        let mut still: Vec<(u32, u32)> = (self.0.into_iter())
            .filter(|(id, slept)| now.get(id) == Some(slept))
            .map(|(id, _)| id)
            .collect();
        still.sort_unstable();
        still.truncate(MAX_ASKED);
        if still.is_empty() {
            return Found::default();
        }
        let questions = still
            .iter()
            .map(|(pid, tid)| Question::Room { pid: *pid, tid: *tid });
        let answers = Close::start(root, questions.collect()).take();
        let ends: Vec<(u32, End)> = (still.into_iter())
            .filter_map(|(pid, tid)| Some((pid, End::of(answers.room(pid, tid)?, connections)?)))
            .collect();
        found(root, own, look, &ends)
    }
}

/// What is written to.
#[derive(Debug)]
struct End {
    /// The other end.
    other: Option<Open>,
    /// Where it is, if it has a name.
    name: String,
}

impl End {
    /// By the link of the descriptor.
    fn of(link: &str, connections: &[Connection]) -> Option<End> {
        let inode = |kind: &str| -> Option<u64> {
            let rest = link.strip_prefix(kind)?.strip_prefix(":[")?;
            rest.strip_suffix(']')?.parse().ok()
        };
        if let Some(pipe) = inode("pipe") {
            return Some(End {
                other: Some(Open::PipeToRead(pipe)),
                name: link.to_owned(),
            });
        }
        let Some(socket) = inode("socket") else {
            return link.starts_with('/').then(|| End {
                other: Some(Open::PathToRead(link.to_owned())),
                name: link.to_owned(),
            });
        };
        if let Some(one) = connections.iter().find(|one| one.inode == socket) {
            let other = connections
                .iter()
                .find(|other| other.local == one.peer && other.peer == one.local);
            let other = other.map(|other| other.inode).filter(|inode| *inode != 0);
            return Some(End {
                other: other.map(Open::Socket),
                name: one.peer.to_string(),
            });
        }
        let peer = unix_peers::of(socket)?;
        Some(End {
            other: Some(Open::Socket(peer)),
            name: String::new(),
        })
    }
}

/// Who waits for whom.
fn found(root: &Root, own: u32, look: Ns, ends: &[(u32, End)]) -> Found {
    let wanted: HashSet<Open> = ends.iter().filter_map(|(_, end)| end.other.clone()).collect();
    let holders = match wanted.is_empty() {
        true => HashMap::new(),
        false => descriptors::holders(root, &wanted, own),
    };
    let unix = unix_names(root, &wanted);
    let mut waits: Vec<Wait> = Vec::new();
    for (waiter, end) in ends {
        let at = end
            .other
            .as_ref()
            .and_then(|other| holders.get(other))
            .into_iter()
            .flatten();
        let others: Vec<u32> = at.copied().filter(|pid| pid != waiter).collect();
        let reader = reader(root, &others);
        let name = match &end.other {
            Some(Open::Socket(inode)) => unix.get(inode).cloned().unwrap_or_else(|| end.name.clone()),
            _ => end.name.clone(),
        };
        // Of a pipe or a pair of sockets without a reader that is known there is nothing to say.
        let is_elsewhere = end.other.is_none() && !name.is_empty();
        if reader.is_some() || is_elsewhere {
            waits.push((*waiter, Awaited::Room, name, reader, look));
        }
    }
    let readers: BTreeSet<u32> = waits.iter().filter_map(|wait| wait.3).collect();
    let questions = readers.iter().map(|pid| Question::Full { pid: *pid }).collect();
    let answers: Answers = match readers.is_empty() {
        true => Answers::default(),
        false => Close::start(root, questions).take(),
    };
    let full = readers.into_iter();
    let full = full.filter_map(|pid| Some((pid, answers.full(pid)?.to_owned())));
    Found {
        full: full.collect(),
        waits,
    }
}

/// Who of several that have an end reads it: a child has inherited it from a parent that leaves it to it. Of several others nobody knows.
fn reader(root: &Root, others: &[u32]) -> Option<u32> {
    let parents: HashSet<u32> = others
        .iter()
        .filter_map(|pid| names::parent(root, *pid))
        .collect();
    let mut readers = others.iter().copied().filter(|pid| !parents.contains(pid));
    readers.next().filter(|_| readers.next().is_none())
}

/// The paths of these Unix sockets.
fn unix_names(root: &Root, wanted: &HashSet<Open>) -> HashMap<u64, String> {
    let any = wanted.iter().any(|open| matches!(open, Open::Socket(_)));
    if !any {
        return HashMap::new();
    }
    let all = sockets::without_tcp(root, std::process::id()).unix.into_iter();
    let named = all.filter(|(inode, _)| wanted.contains(&Open::Socket(*inode)));
    let named = named.map(|(inode, socket)| (inode, socket.path));
    named.collect()
}

/// Threads that sleep in a function in which one waits for room, with how often they have gone to sleep.
fn asleep(root: &Root) -> HashMap<(u32, u32), u64> {
    let threads = tasks::processes(root)
        .into_iter()
        .flat_map(|pid| tasks::threads(root, pid).into_iter().map(move |tid| (pid, tid)));
    let asleep = threads.take(MAX_THREADS).filter_map(|(pid, tid)| {
        let folder = root.proc.join(pid.to_string()).join("task").join(tid.to_string());
        let function = text_if_there(&folder.join("wchan"))?;
        let waits = families::may_wait_for_room(functions::plain(function.trim()));
        let slept = waits.then(|| super::served::slept(&folder)).flatten()?;
        Some(((pid, tid), slept))
    });
    asleep.collect()
}

#[cfg(test)]
mod tests {
    use super::{Room, reader};
    use holdup_evidence::observed::Awaited;
    use holdup_proc::Root;
    use std::os::unix::net::UnixDatagram;
    use std::sync::mpsc;

    #[test]
    fn a_socket_that_this_process_itself_reads_is_nobody_elses() {
        let (one, other) = UnixDatagram::pair().unwrap();
        let (sender, began) = mpsc::channel();
        let writer = std::thread::spawn(move || {
            sender.send(()).unwrap();
            // Until the other end is closed.
            while one.send(&[0; 1024]).is_ok() {}
        });
        began.recv().unwrap();
        let root = Root::system();
        let found = Room::start(&root).finish(&root, 0, 10, &[]);
        let own = std::process::id();
        assert!(
            found
                .waits
                .iter()
                .all(|wait| wait.0 != own && wait.1 == Awaited::Room)
        );
        drop(other);
        writer.join().unwrap();
    }

    #[test]
    fn of_a_parent_and_its_child_the_child_reads() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let root = Root::system();
        let own = std::process::id();
        assert_eq!(reader(&root, &[own, child.id()]), Some(child.id()));
        assert_eq!(reader(&root, &[1, 2]), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
