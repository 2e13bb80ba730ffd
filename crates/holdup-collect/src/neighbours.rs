//! Who is in the way of waits that go on, beyond the processes that were asked about.
//!
//! In: objects as they are described, and waits that go on. Out: which processes have the other ends of what is waited for,
//! as the links in `/proc/PID/fd` and the tables of sockets show, and which own the locks: they are to be watched too, so
//! that the chain can be followed to its end.

use super::moment::Moment;
use super::outsiders::shared_owners::{self, Named, SharedOwners, Shares};
use holdup_attribution::attribution::shared_lock_owner;
use holdup_evidence::{
    DeviceNumber, LockHolder, Object, ObjectId, ObjectKind, OtherEnd, SocketAddress, Wait,
};
use holdup_knowledge::file_systems;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_proc::descriptors::{self, FuseServer, Open};
use holdup_proc::{Root, message_queues, names, semaphores, tasks};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Objects that are remembered.
const MAX_OBJECTS: usize = 65_536;

/// The other end of an object, as far as its description tells.
#[derive(Debug, Clone)]
enum Other {
    Pipe(u64),
    Fifo(String),
    /// Unix socket: the inode of the other end, or the process that listens.
    Unix {
        peer: Option<u64>,
        listener: Option<u32>,
    },
    Tcp {
        local: std::net::SocketAddr,
        peer: std::net::SocketAddr,
    },
    /// A socket of UDP that sends to one address.
    Udp {
        peer: std::net::SocketAddr,
    },
    /// A file that a process of this machine serves.
    Fuse(DeviceNumber),
}

/// What is known of objects.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    others: HashMap<ObjectId, Other>,
}

/// What was found out about waits that go on.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Processes that are in the way.
    pub(super) processes: BTreeSet<u32>,
    /// Who has which other end.
    pub(super) ends: Vec<OtherEnd>,
    /// Processes with a connection that nobody has accepted yet.
    pub(super) queued: BTreeSet<u32>,
}

impl Neighbours {
    /// An object was described.
    pub(super) fn described(&mut self, id: ObjectId, object: &Object, peer_inode: Option<u64>) {
        let other = match &object.kind {
            ObjectKind::Pipe => Other::Pipe(object.inode),
            ObjectKind::Fifo => match &object.path {
                Some(path) => Other::Fifo(path.clone()),
                None => return,
            },
            ObjectKind::Socket {
                local: SocketAddress::Inet(local),
                peer: SocketAddress::Inet(peer),
                protocol: 6,
                ..
            } if peer.port() != 0 => Other::Tcp {
                local: *local,
                peer: *peer,
            },
            ObjectKind::Socket {
                peer: SocketAddress::Inet(peer),
                protocol: 17,
                ..
            } if peer.port() != 0 => Other::Udp { peer: *peer },
            ObjectKind::Socket {
                peer: SocketAddress::Unix(_),
                peer_pid,
                ..
            } => Other::Unix {
                peer: peer_inode,
                listener: *peer_pid,
            },
            _ if file_systems::is_served_here(&object.file_system) => Other::Fuse(object.device),
            _ => return,
        };
        if self.others.len() < MAX_OBJECTS {
            self.others.insert(id, other);
        }
    }

    /// Who is in the way of these waits of a process each.
    pub(super) fn of(&self, waits: &[(u32, Wait)]) -> Found {
        let root = Root::system();
        let mut found = Found::default();
        let mut wanted: Vec<(ObjectId, Open)> = Vec::new();
        // An address means another server in each network namespace.
        let mut moment = Moment::now();
        let mut owners = SharedOwners::default();
        let mut servers: Option<Vec<FuseServer>> = None;
        let mut unaccepted: HashSet<u64> = HashSet::new();
        for (pid, wait) in waits {
            self.by_lock(*pid, wait, &mut owners, &mut found);
            if system_calls::is(&wait.call, Kind::WaitsForChild | Kind::WaitsForExec) {
                found.processes.extend(tasks::children(&root, *pid));
            }
            // Who has one child may wait for the signal that it sends as it ends, as `timeout` does.
            if system_calls::is(&wait.call, Kind::WaitsForSignal) {
                let children = tasks::children(&root, *pid);
                found
                    .processes
                    .extend(children.first().filter(|_| children.len() == 1));
            }
            for (object, writes) in awaited(wait) {
                let Some(other) = self.others.get(&object) else {
                    continue;
                };
                match other {
                    Other::Pipe(inode) if writes => wanted.push((object, Open::PipeToRead(*inode))),
                    Other::Pipe(inode) => wanted.push((object, Open::PipeToWrite(*inode))),
                    Other::Fifo(path) if writes => wanted.push((object, Open::PathToRead(path.clone()))),
                    Other::Fifo(path) => wanted.push((object, Open::PathToWrite(path.clone()))),
                    Other::Unix {
                        peer: Some(inode), ..
                    } => wanted.push((object, Open::Socket(*inode))),
                    Other::Unix {
                        listener: Some(pid), ..
                    } => found.end(object, vec![*pid], false),
                    Other::Unix { .. } => {}
                    Other::Tcp { local, peer } => {
                        let sockets = moment.sockets(*pid);
                        if let Some(inode) = sockets.other_end(*local, *peer) {
                            if sockets.listens(inode) {
                                unaccepted.insert(inode);
                                found.queued.insert(*pid);
                            }
                            wanted.push((object, Open::Socket(inode)));
                        }
                    }
                    Other::Udp { peer } => {
                        if let Some(inode) = moment.sockets(*pid).bound_to(*peer) {
                            wanted.push((object, Open::Socket(inode)));
                        }
                    }
                    Other::Fuse(device) => {
                        let own = std::process::id();
                        let servers = servers.get_or_insert_with(|| descriptors::fuse_servers(&root, own));
                        found.end(object, serving(servers, *device), false);
                    }
                }
            }
        }
        let opens: HashSet<Open> = wanted.iter().map(|(_, open)| open.clone()).collect();
        if opens.is_empty() {
            return found;
        }
        let holders = descriptors::holders(&root, &opens, std::process::id());
        for (object, open) in wanted {
            let mut pids = holders.get(&open).cloned().unwrap_or_default();
            // Nobody waits for himself: many a reader of a pipe was left the end to write to as well.
            let waiting = waits
                .iter()
                .filter(|(_, wait)| awaited(wait).any(|one| one.0 == object));
            let waiting: HashSet<u32> = waiting.map(|(pid, _)| *pid).collect();
            // That one process has both ends is reported all the same: threads of a server tell each other something there.
            let both = matches!(open, Open::PipeToWrite(_)) && waiting.len() == 1;
            let listens = matches!(open, Open::Socket(inode) if unaccepted.contains(&inode));
            if listens {
                leave_to_children(&root, &mut pids);
            }
            pids.retain(|pid| both || !waiting.contains(pid));
            found.end(object, pids, listens);
        }
        found
    }

    fn by_lock(&self, pid: u32, wait: &Wait, owners: &mut SharedOwners, found: &mut Found) {
        let owner = match &wait.holder {
            Some(
                LockHolder::FileLock { pid }
                | LockHolder::Semaphore { pid }
                | LockHolder::QueueReceiver { pid },
            ) => Some(*pid),
            Some(LockHolder::PiFutex(owner) | LockHolder::Tracer(owner) | LockHolder::Session(owner)) => {
                Some(owner.pid)
            }
            Some(LockHolder::KernelLock(lock)) => lock.owner.map(|owner| owner.pid),
            Some(LockHolder::FutexWords(_)) => shared_lock_owner(wait).and_then(|id| {
                let address = wait.call.args[0];
                match shared_owners::named(&Root::system(), pid, id) {
                    Named::Thread { pid: owner, .. } => {
                        (owners.share(pid, address, owner) == Shares::Yes).then_some(owner)
                    }
                    Named::Nobody | Named::Unknown => None,
                }
            }),
            Some(LockHolder::Runtime(_) | LockHolder::Stopped(_) | LockHolder::NobodyAsked) => None,
            None => last_user(pid, wait).or_else(|| last_receiver(pid, wait)),
        };
        found.processes.extend(owner.filter(|pid| *pid != 0));
    }
}

/// Who used last the System V semaphore for which a process waits.
pub(super) fn last_user(pid: u32, wait: &Wait) -> Option<u32> {
    let waits = system_calls::is(&wait.call, Kind::Semaphores);
    waits
        .then(|| semaphores::last_user(&Root::system(), pid, wait.call.args[0]))
        .flatten()
}

/// Who received last from the System V message queue in which a process waits for room.
pub(super) fn last_receiver(pid: u32, wait: &Wait) -> Option<u32> {
    let sends =
        system_calls::is(&wait.call, Kind::SendsToQueue) && system_calls::is(&wait.call, Kind::SystemV);
    sends
        .then(|| message_queues::last_receiver(&Root::system(), pid, wait.call.args[0]))
        .flatten()
}

impl Found {
    fn end(&mut self, object: ObjectId, processes: Vec<u32>, listens: bool) {
        self.processes.extend(&processes);
        if !processes.is_empty() {
            self.ends.push(OtherEnd {
                object,
                processes,
                listens,
            });
        }
    }
}

/// Of processes that have one listener open, leaves out those that have started others of them: they opened it, and leave the clients to their
/// children.
fn leave_to_children(root: &Root, pids: &mut Vec<u32>) {
    let parents: HashSet<u32> = pids.iter().filter_map(|pid| names::parent(root, *pid)).collect();
    pids.retain(|pid| !parents.contains(pid));
}

/// Who serves a FUSE file system: where the kernel does not tell, anybody who serves one.
fn serving(servers: &[FuseServer], device: DeviceNumber) -> Vec<u32> {
    let known = servers.iter().any(|server| server.device.is_some());
    let serves = |server: &&FuseServer| !known || server.device == Some(device);
    let mut pids: Vec<u32> = servers.iter().filter(serves).map(|server| server.pid).collect();
    pids.dedup();
    pids
}

/// What a wait is for, and whether the thread wants to write there.
fn awaited(wait: &Wait) -> impl Iterator<Item = (ObjectId, bool)> + '_ {
    const POLLOUT: u16 = 0x004;
    let writes = system_calls::is(&wait.call, Kind::Writes | Kind::Sends | Kind::MovesData);
    let polled = wait.asked.iter().flat_map(|asked| &asked.polled);
    let polled = polled
        .filter(|fd| !fd.own)
        .filter_map(|fd| Some((fd.object?, fd.events & POLLOUT != 0 && fd.events & 1 == 0)));
    // Of a large set only a part is known, and what somebody was asked on may be in the other.
    let asked = wait.unanswered.map(|object| (object, false));
    wait.object
        .map(|object| (object, writes))
        .into_iter()
        .chain(asked)
        .chain(polled)
}

#[cfg(test)]
mod tests {
    use super::{leave_to_children, serving};
    use holdup_evidence::DeviceNumber;
    use holdup_proc::Root;
    use holdup_proc::descriptors::FuseServer;

    #[test]
    fn who_has_started_another_acceptor_leaves_the_clients_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let process = |pid: u32, parent: u32| {
            let own = folder.path().join(pid.to_string());
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(own.join("status"), format!("Name:\tw\nPPid:\t{parent}\n")).unwrap();
        };
        process(10, 1);
        process(11, 10);
        process(12, 10);
        process(20, 1);
        let root = Root {
            proc: folder.path().to_owned(),
            ..Root::system()
        };
        let left = |pids: &[u32]| {
            let mut pids = pids.to_vec();
            leave_to_children(&root, &mut pids);
            pids
        };
        assert_eq!(left(&[10, 11, 12]), [11, 12]);
        assert_eq!(left(&[10]), [10], "a server of one process");
        assert_eq!(left(&[10, 20]), [10, 20], "two that nobody of them has started");
    }

    #[test]
    fn of_several_daemons_the_one_of_that_file_system_is_in_the_way() {
        let device = |minor| DeviceNumber { major: 0, minor };
        let server = |pid, device| FuseServer { pid, device };
        let listed = [
            server(7, Some(device(41))),
            server(8, Some(device(42))),
            server(9, None),
        ];
        assert_eq!(serving(&listed, device(42)), [8]);
        assert_eq!(serving(&listed, device(43)), [0; 0]);
        assert_eq!(serving(&[server(7, None), server(9, None)], device(42)), [7, 9]);
    }
}
